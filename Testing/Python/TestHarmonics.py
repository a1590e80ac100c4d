"""Harmonics of scores, attention made of them, and the accuracy of heads, as scripts use them."""

import atlastest
import numpy
from atlastest import AtlasTest, columns, plain, point_arrays
from paraview import simple

#: No property of HarmonicHead and HeadAccuracySimplex at its default.
SOURCE = {
    "Parametrization": "Product",
    "Coefficients": [1, -2, 3, 0.5, -1.5, 2.5, 4, -3, 1.25, 0.75, -0.25],
    "Ties": 0,
    "A": 2,
    "Alpha": 1.5,
    "B": -1,
    "C": 3,
    "Gamma": 0.25,
    "D": -2,
    "Pattern": "Hardmax",
    "Resolution": [40, 30],
    "SweptParameter": "Gamma",
    "SweepRange": [0.5, 2],
    "SweepSteps": 7,
}
SIMPLEX = {"HeadIndices": [2, 0, 1], "Residual": "Embedding", "Pair": [1, 3], "Resolution": 20}


class Harmonics(AtlasTest):
    def test_bar_chart(self):
        table = simple.ScoreHarmonics(Input=atlastest.read_model())
        view = simple.CreateView("XYBarChartView", ViewSize=[500, 400])
        display = simple.Show(table, view)
        self.assertEqual(list(display.SeriesVisibility), ["Head 0", "Head 1", "Head 2"])
        pixels = atlastest.picture(view, "bars")
        simple.Delete(view)
        # Bars of three colors, each on a good part of the picture.
        saturated = numpy.ptp(pixels, axis=-1) > 60
        colors, counts = numpy.unique(pixels[saturated], axis=0, return_counts=True)
        self.assertGreaterEqual((counts > 500).sum(), 3)

    def test_preferred_views(self):
        for create in (simple.ScoreHarmonics, simple.HeadAccuracy):
            hints = create(Input=atlastest.read_model()).SMProxy.GetHints()
            self.assertEqual(hints.FindNestedElementByName("View").GetAttribute("type"), "XYBarChartView")


class Attention(AtlasTest):
    def test_names_of_parameters(self):
        source = simple.HarmonicHead(Resolution=[8, 6])
        self.assertEqual(sorted(point_arrays(source)), ["Attention", "Score"])
        parameters = list(source.GetProperty("SweptParameter").Available)
        self.assertEqual(len(parameters), 1 + 11 + 6)
        self.assertEqual(parameters[-6:], ["A", "Alpha", "B", "C", "Gamma", "D"])

    def test_product(self):
        source = simple.HarmonicHead(Resolution=[64, 48], Parametrization="Product")
        source.Gamma = 0.75
        t1, t2 = numpy.meshgrid(*(numpy.linspace(-numpy.pi, numpy.pi, n) for n in (64, 48)))
        a, alpha, b, c, gamma, d = (getattr(source, key) for key in ("A", "Alpha", "B", "C", "Gamma", "D"))
        query = a * numpy.cos(t2 - alpha) + b
        key = c * (numpy.cos(t1 - gamma) - numpy.cos(t2 - gamma)) + d
        self.assert_close(point_arrays(source)["Score"], (query * key).ravel())

    def test_play(self):
        source = simple.HarmonicHead(Resolution=[64, 48])
        source.UpdatePipelineInformation()
        self.assertEqual(len(source.TimestepValues), 0)
        source.SweptParameter = "CosT1"
        source.SweepRange = [-2, 4]
        source.SweepSteps = 4
        source.UpdatePipelineInformation()
        numpy.testing.assert_allclose(source.TimestepValues, [0, 1 / 3, 2 / 3, 1])

        frontier = simple.Contour(Input=source, ContourBy=["POINTS", "Score"], Isosurfaces=[0])
        view = atlastest.chart_view()
        simple.Show(source, view)
        simple.Show(frontier, view)
        scene = simple.GetAnimationScene()
        scene.UpdateAnimationUsingDataTimeSteps()
        scene.GoToFirst()
        values = []
        pictures = []
        for step in range(4):
            # The pipeline is where the animation is: nothing here updates it.
            simple.Render(view)
            values.append(source.FieldData["Swept Value"].GetRange()[0])
            pictures.append(atlastest.picture(view, f"sweep-{step}"))
            scene.GoToNext()
        numpy.testing.assert_allclose(values, [-2, 0, 2, 4], atol=1e-12)
        for before, after in zip(pictures, pictures[1:]):
            self.assertGreater(atlastest.different_pixels(before, after), 0.02)

    def test_first_show(self):
        view = atlastest.chart_view()
        source = simple.HarmonicHead(Resolution=[400, 400])
        display = simple.Show(source, view)
        self.assertEqual(display.Representation, "Slice")
        self.assertEqual(list(display.ColorArrayName), ["POINTS", "Attention"])
        points = numpy.array(simple.GetColorTransferFunction("Attention").RGBPoints)
        self.assertEqual(points.reshape(-1, 4).tolist(), [[0, 1, 1, 1], [1, 0, 0, 0]])
        pixels = atlastest.picture(view, "harmonic-head")
        attention = point_arrays(source)["Attention"].reshape(400, 400, 1)
        expected = numpy.rint(255 * (1 - attention)).astype(int) * numpy.ones(3, int)
        self.assertLess(atlastest.different_pixels(pixels, expected), 0.02)

        display.ColorArrayName = ["POINTS", "Score"]
        points = numpy.array(simple.GetColorTransferFunction("Score").RGBPoints).reshape(-1, 4)
        self.assertEqual(points[1].tolist(), [0, 1, 1, 1])
        self.assertEqual(points[0][0], -points[2][0])


class Accuracy(AtlasTest):
    def test_pair(self):
        simplex = simple.HeadAccuracySimplex(Input=atlastest.read_model(), Pair=[1, 2])
        found = point_arrays(simplex)
        target = atlastest.read_safetensors(atlastest.TRAINED)[0]["next_token"][1, 2]
        numpy.testing.assert_array_equal(found["Correct Pair"], found["Predicted"] == target)
        self.assertEqual(set(found["Correct Pair"]), {0, 1})
        view = atlastest.chart_view()
        display = simple.Show(simplex, view)
        simple.ColorBy(display, ("POINTS", "Predicted"))
        colors = numpy.array(simple.GetColorTransferFunction("Predicted").IndexedColors)
        self.assertEqual(numpy.rint(255 * colors).reshape(-1, 3).tolist(), atlastest.PALETTE)

    def test_first_show(self):
        view = atlastest.chart_view()
        simplex = simple.HeadAccuracySimplex(Input=atlastest.read_model())
        display = simple.Show(simplex, view)
        self.assertEqual(display.Representation, "Surface")
        self.assertEqual(list(display.ColorArrayName), ["POINTS", "Accuracy"])
        self.assertEqual(display.MapScalars, 1)
        table = simple.GetColorTransferFunction("Accuracy")
        self.assertEqual(list(table.RGBPoints)[::4], [0, 0.5, 1])
        view.CameraFocalPoint = [0.5, 0.433, 0]
        view.CameraPosition = [0.5, 0.433, 10]
        view.CameraParallelScale = 0.5
        pixels = atlastest.picture(view, "simplex")
        # The corner of head 0 is at the lower right, paler than the dark spot where all work.
        white = (pixels == 255).all(axis=-1)
        self.assertLess(abs((~white).mean() - numpy.sqrt(3) / 4), 0.01)
        self.assertFalse(white[30, 30])
        self.assertTrue(white[370, 30])
        self.assertGreater(pixels[40, 360].sum(), pixels[~white].sum(axis=1).min() + 200)


class State(AtlasTest):
    def look(self):
        """All that must come back."""
        source, simplex = simple.FindSource("Source"), simple.FindSource("Simplex")
        harmonics, accuracy = simple.FindSource("Harmonics"), simple.FindSource("Accuracy")
        return {
            "source": {key: plain(getattr(source, key)) for key in SOURCE},
            "simplex": {key: plain(getattr(simplex, key)) for key in SIMPLEX},
            "residual": accuracy.Residual,
            "rows": columns(harmonics)["Harmonic"] + columns(accuracy)["Name"],
        }, {
            "source": point_arrays(source, 0.5),
            "simplex": point_arrays(simplex),
        }

    def test_pvsm(self):
        model = atlastest.read_model()
        simple.HarmonicHead(registrationName="Source", **SOURCE)
        simple.HeadAccuracySimplex(registrationName="Simplex", Input=model, **SIMPLEX)
        simple.ScoreHarmonics(registrationName="Harmonics", Input=model)
        simple.HeadAccuracy(registrationName="Accuracy", Input=model, Residual="RawEmbedding")
        properties, arrays = self.look()
        self.assertEqual(properties["source"], SOURCE)
        self.assertEqual(properties["simplex"], SIMPLEX)
        self.reload()
        found, found_arrays = self.look()
        self.assertEqual(found, properties)
        for name, expected in arrays.items():
            self.assert_same_arrays(found_arrays[name], expected)
