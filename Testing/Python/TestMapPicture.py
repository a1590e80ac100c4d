"""The picture of an attention map: one even square per query and key, in one piece on all ranks."""

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import simple

LAYER, HEAD, SIZE = 4, 11, 600
#: The colors of weights 0 and 1.
WHITE, DARK = [255, 255, 255], [8, 38, 92]


class MapPicture(AtlasTest):
    def setUp(self):
        super().setUp()
        reader = atlastest.read_recording()
        self.map = simple.AttentionMap(Input=reader, Layer=LAYER, Head=HEAD)
        self.map.UpdatePipeline()
        self.weights = atlastest.read_safetensors(atlastest.RECORDING)[0]["attention"][LAYER, HEAD]
        self.tokens = len(self.weights)
        self.view = atlastest.chart_view(SIZE)
        self.display = simple.Show(self.map, self.view)
        self.frame(self.tokens / 2)

    def frame(self, scale):
        """The view shows so much around the map's middle."""
        middle = (self.tokens - 1) / 2
        self.view.CameraFocalPoint = [middle, -middle, 0]
        self.view.CameraPosition = [middle, -middle, 10]
        self.view.CameraParallelScale = scale

    def test_squares(self):
        self.assertEqual(self.display.Representation, "Squares")
        pixels = atlastest.picture(self.view, "squares")[::-1]
        self.assert_as_on_one_rank("squares", {"pixels": pixels})
        side = SIZE // self.tokens
        checked = 0
        for query in range(self.tokens):
            for key in range(self.tokens):
                square = pixels[query * side : (query + 1) * side, key * side : (key + 1) * side]
                inner = square[4:-4, 4:-4].reshape(-1, 3)
                numpy.testing.assert_array_equal(inner.min(axis=0), inner.max(axis=0))
                weight = self.weights[query, key]
                if weight < 0.001 or weight > 0.999:
                    numpy.testing.assert_allclose(inner[0], DARK if weight > 0.5 else WHITE, atol=4)
                    checked += 1
        self.assertGreater(checked, 20)

    def dark_outside(self):
        """The share of dark pixels beside the map."""
        self.frame(self.tokens)
        pixels = atlastest.picture(self.view, "labels")
        quarter = SIZE // 4 - 4
        dark = pixels.max(axis=-1) < 128
        dark[quarter:-quarter, quarter:-quarter] = False
        return dark.mean()

    def test_labels(self):
        shown = self.dark_outside()
        self.assertGreater(shown, 0.002)
        self.display.TokenLabels = False
        self.assertEqual(self.dark_outside(), 0)
        self.display.TokenLabels = True
        self.assertEqual(self.dark_outside(), shown)
        self.display.SetRepresentationType("Surface")
        self.assertEqual(self.dark_outside(), 0)
        self.display.SetRepresentationType("Squares")
        simple.Hide(self.map, self.view)
        self.assertEqual(self.dark_outside(), 0)
        simple.Show(self.map, self.view)
        simple.Delete(self.map)
        self.assertEqual(self.dark_outside(), 0)

    def test_another_quantity(self):
        self.display.SetScalarBarVisibility(self.view, True)
        for quantity in ("Scores", "Weights", "Scores"):
            self.map.Quantity = quantity
            simple.Render(self.view)
            self.assertEqual(list(self.display.ColorArrayName), ["POINTS", quantity])
            bar = simple.GetScalarBar(simple.GetColorTransferFunction(quantity), self.view)
            title = {"Scores": "Attention score", "Weights": "Attention weight"}[quantity]
            self.assertEqual((bar.Title, bar.Visibility), (title, 1))
            other = "Weights" if quantity == "Scores" else "Scores"
            old = simple.GetScalarBar(simple.GetColorTransferFunction(other), self.view)
            self.assertEqual(old.Visibility, 0)

    def test_ranges(self):
        self.map.UpdatePipelineInformation()
        for name, first, last in (("Sequence", -1, 0), ("Layer", 0, 11), ("Head", -1, 11)):  # -1: the mean
            domain = self.map.SMProxy.GetProperty(name).GetDomain("range")
            self.assertEqual((domain.GetMinimum(0), domain.GetMaximum(0)), (first, last), name)

    def test_sliders_keep_the_defaults(self):
        new = simple.AttentionMap(Input=self.map.Input)
        new.UpdatePipeline()
        simple.Show(new)
        self.assertEqual((new.Sequence, new.Layer, new.Head), (0, 0, 0))
