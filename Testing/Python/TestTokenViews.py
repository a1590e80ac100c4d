"""Colors of tokens with their legend, search, and lines of attention: proxies on an embedding."""

import atlastest
import numpy
from atlastest import AtlasTest, columns
from paraview import simple
from vtkmodules.util.numpy_support import vtk_to_numpy

EMBEDDING = atlastest.ORACLE.parent / "embedding"
BLUE, VERMILION = numpy.array(atlastest.PALETTE[0]), numpy.array(atlastest.PALETTE[1])


def shade(color, share):
    """A color at the intensity 0.25 + 0.75 share on white."""
    return 255 - (0.25 + 0.75 * numpy.asarray(share)[:, None]) * (255 - color)


class TokenViews(AtlasTest):
    def setUp(self):
        super().setUp()
        self.expected, _ = atlastest.read_safetensors(EMBEDDING / "gpt2.safetensors")
        lines = atlastest.token_lines(self.expected["token.id"].reshape(2, -1))
        self.recording = simple.TransformerRecorder(Input=atlastest.read_transformer("gpt2"), TokenIds=lines)
        self.embedding = simple.HeadEmbedding(Input=self.recording, Method="PCA")

    def colors(self, **properties):
        return simple.TokenColors(Input=self.embedding, **properties)

    def expect_shades(self, source, share):
        found = atlastest.point_arrays(source)["TokenColor"].reshape(8, 2, -1, 3).astype(float)
        for head in found:
            numpy.testing.assert_allclose(head[0], shade(BLUE, share), atol=1)
            numpy.testing.assert_allclose(head[1], shade(VERMILION, share), atol=1)

    def test_colors_are_those_of_the_oracle(self):
        tokens = {name: self.expected[f"token.{name}"] for name in ("position", "frequency")}
        self.expect_shades(self.colors(), numpy.ones(34))
        self.expect_shades(self.colors(By="Position"), tokens["position"] / 16)
        share = self.expected["token.normalized_position"]
        self.expect_shades(self.colors(By="RelativePosition"), share)
        counts = numpy.log(tokens["frequency"])
        self.expect_shades(self.colors(By="TokenCount"), counts / counts.max())
        lengths = self.expected["token.length"] / self.expected["token.length"].max()
        self.expect_shades(self.colors(By="SentenceLength"), lengths)
        self.expect_shades(self.colors(By="SentenceLength", Recording=self.recording), lengths)

    def test_the_legend_of_the_view_is_that_of_the_filter(self):
        colors = self.colors(By="Position")
        view = simple.CreateRenderView(ViewSize=[400, 300])
        shown = simple.Show(colors, view)
        shown.SetScalarBarVisibility(view, True)
        simple.Render(view)
        bar = simple.GetScalarBar(shown.LookupTable, view)
        self.assertEqual(list(shown.ColorArrayName), ["POINTS", "TokenColor"])
        self.assertEqual(shown.MapScalars, 0)
        for by, title in (("Position", "Position (tokens)"), ("Kind", "Kind"), ("Norm", "Norm")):
            colors.By = by
            simple.Render(view)
            legend = columns(colors, 1)
            self.assertEqual(bar.Title, title)
            self.assertEqual(list(shown.LookupTable.Annotations)[1::2], legend["Label"])
            found = 255 * numpy.array(shown.LookupTable.IndexedColors).reshape(-1, 3)
            numpy.testing.assert_allclose(found, legend["TokenColor"], atol=1e-3)
        colors.By = "Kind"
        simple.ResetCamera(view)
        pixels = atlastest.picture(view, "colors").reshape(-1, 3)
        for color in (BLUE, VERMILION):
            self.assertGreater((numpy.abs(pixels - color).max(axis=1) < 8).sum(), 50)

    def test_lines_of_selected_tokens(self):
        lines = simple.AttentionLines(Input=self.embedding, Recording=self.recording)
        lines.SelectedTokens = [5, 20]
        data = atlastest.fetch(lines).GetCellData()
        self.assertEqual(set(vtk_to_numpy(data.GetArray("Query"))), {5, 20})
        lines.SelectedTokens = []
        ids = [-1, 7]  # a point of the first head, on any process
        lines.Selection = simple.IDSelectionSource(IDs=ids, FieldType="POINT")
        data = atlastest.fetch(lines).GetCellData()
        self.assertEqual(set(vtk_to_numpy(data.GetArray("Query"))), {7})
        self.assertEqual(len(set(vtk_to_numpy(data.GetArray("Layer")))), 2)

    def test_lines_are_colored_by_weight(self):
        lines = simple.AttentionLines(Input=self.embedding, Recording=self.recording)
        shown = simple.Show(lines, simple.CreateRenderView(ViewSize=[400, 300]))
        self.assertEqual(list(shown.ColorArrayName), ["CELLS", "Weight"])
        table = simple.GetColorTransferFunction("Weight")
        self.assertEqual([table.RGBPoints[0], table.RGBPoints[-4]], [0, 1])

    def labelled(self, **properties):
        """A view of one head with labels, and its representation."""
        self.embedding.Layer = self.embedding.Head = 0
        view = simple.CreateRenderView(ViewSize=[400, 300], UseColorPaletteForBackground=0)
        view.Background, view.OrientationAxesVisibility = [1, 1, 1], 0
        shown = simple.Show(self.embedding, view, Representation="Token Labels")
        for name, value in properties.items():
            setattr(shown, name, value)
        simple.ResetCamera(view)
        return view, shown

    def ink(self, view, name):
        """Which pixels are about black: those of letters."""
        return atlastest.picture(view, name).max(axis=2) < 100

    def test_labels_are_shown_as_far_as_there_is_room(self):
        view, shown = self.labelled()
        some = self.ink(view, "labels").sum()
        self.assertGreater(some, 300)
        shown.MaximumLabels = 5
        few = self.ink(view, "few").sum()
        self.assertGreater(few, 10)
        self.assertLess(few, some / 3)
        shown.LabelFontSize = 24
        self.assertGreater(self.ink(view, "large").sum(), 2 * few)
        shown.Representation = "Points"
        self.assertEqual(self.ink(view, "points").sum(), 0)
        shown.Representation = "Token Labels"
        shown.Visibility = 0
        self.assertEqual(self.ink(view, "hidden").sum(), 0)
        shown.Visibility = 1
        view.Background = [0, 0, 0]
        pixels = atlastest.picture(view, "dark")
        self.assertGreater((pixels.min(axis=2) > 200).sum(), few)

    def test_a_larger_picture_has_the_same_labels(self):
        view, _ = self.labelled()
        small = self.ink(view, "small")
        path = atlastest.OUTPUT / "double.png"
        simple.SaveScreenshot(str(path), view, ImageResolution=[800, 600])
        pixels = atlastest.read_picture(path)[..., :3].astype(int)
        double = pixels.reshape(300, 2, 400, 2, 3).mean(axis=(1, 3)).max(axis=2) < 200
        near = numpy.zeros_like(small)
        for y, x in numpy.argwhere(small):
            near[max(y - 3, 0) : y + 4, max(x - 3, 0) : x + 4] = True
        self.assertGreater(double.sum(), 300)
        self.assertGreater((double & near).sum() / double.sum(), 0.9)

    def test_colors_of_patches(self):
        recording = self.record_images()
        saved = atlastest.OUTPUT / "vit.safetensors"
        simple.SaveData(str(saved), recording)
        embedding = simple.HeadEmbedding(Input=recording, Method="PCA")
        read = atlastest.read_recording(saved)
        colors = simple.TokenColors(Input=embedding, Recording=read, By="PatchColor")
        found = atlastest.point_arrays(colors)["TokenColor"][:34].reshape(2, 17, 3)
        views, _ = atlastest.read_safetensors(EMBEDDING / "vit.views.safetensors")
        numpy.testing.assert_array_equal(found[:, 0], 128)  # class tokens
        numpy.testing.assert_array_equal(found[:, 1:], numpy.rint(255 * views["patch.rgb"]))
