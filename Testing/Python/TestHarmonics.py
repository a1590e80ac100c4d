"""Harmonics of scores, attention made of them, and the accuracy of heads, as scripts use them."""

import atlastest
import numpy
from atlastest import AtlasTest, fetch, point_arrays
from paraview import simple
from vtkmodules.util.numpy_support import vtk_to_numpy

HARMONICS = [
    "1",
    "cos t1",
    "sin t1",
    "cos t2",
    "sin t2",
    "cos 2t2",
    "sin 2t2",
    "cos(t1+t2)",
    "sin(t1+t2)",
    "cos(t1-t2)",
    "sin(t1-t2)",
]

#: Values of HeadAccuracySimplex that are wrong, and what it says about them.
WRONG = {
    "has 3 (0 to 2), found 0, 1, 3.": {"HeadIndices": [0, 1, 3]},
    "has 3 (0 to 2), found 2, 1, 2.": {"HeadIndices": [2, 1, 2]},
    "Pair: expected two tokens from 0 to 4": {"Pair": [5, 0]},
    "Resolution: expected at least 1 segment along each edge, found 0.": {"Resolution": 0},
}

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


def columns(source):
    """The columns of a table, by name."""
    data = fetch(source).GetRowData()
    found = {}
    for i in range(data.GetNumberOfArrays()):
        array = data.GetAbstractArray(i)
        if array.IsA("vtkStringArray"):
            found[array.GetName()] = [array.GetValue(k) for k in range(array.GetNumberOfValues())]
        else:
            found[array.GetName()] = vtk_to_numpy(array)
    return found


def plain(value):
    """A property's value as a list, a number or a text."""
    value = value.GetData() if hasattr(value, "GetData") else value
    return value if isinstance(value, (int, float, str)) else list(value)


def terms(t1, t2):
    """The 11 harmonics."""
    return numpy.array(
        [
            numpy.ones_like(t1 + t2),
            *(f(t) + 0 * (t1 + t2) for t in (t1, t2, 2 * t2) for f in (numpy.cos, numpy.sin)),
            *(f(t) for t in (t1 + t2, t1 - t2) for f in (numpy.cos, numpy.sin)),
        ]
    )


def chart_angles(columns_, rows):
    """theta_1 as a row, theta_2 as a column."""
    axes = (numpy.linspace(-numpy.pi, numpy.pi, n) for n in (columns_, rows))
    t1, t2 = axes
    return t1[None, :], t2[:, None]


class Harmonics(AtlasTest):
    def test_table(self):
        for name, free in (("trained-n5-h3", 9), ("random-n5-h1-d1", 5)):
            expected, path = self.oracle(name)
            table = simple.ScoreHarmonics(Input=atlastest.read_model(path))
            found = columns(table)
            self.assertEqual(found["Harmonic"], HARMONICS)
            for head, coefficients in enumerate(expected["harmonics"]):
                numpy.testing.assert_allclose(found[f"Head {head}"], coefficients, atol=1e-9)
                waves = found[f"Amplitude {head}"] * numpy.exp(1j * found[f"Phase {head}"])
                pairs = coefficients[1::2] + 1j * coefficients[2::2]
                numpy.testing.assert_allclose(waves[1::2], pairs, atol=1e-9)
                numpy.testing.assert_array_equal(waves[1::2], waves[2::2])
                self.assertEqual(waves[0], 0)
            self.assertEqual(atlastest.field_value(table, "FreeParameters"), free)

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
        model = atlastest.read_model()
        for create, view in (
            (simple.ScoreHarmonics, "XYBarChartView"),
            (simple.HeadAccuracy, "XYBarChartView"),
        ):
            hints = create(Input=model).SMProxy.GetHints()
            self.assertEqual(hints.FindNestedElementByName("View").GetAttribute("type"), view)


class Attention(AtlasTest):
    def test_defaults(self):
        source = simple.HarmonicHead()
        self.assertEqual(source.Parametrization, "Coefficients")
        coefficients = list(source.Coefficients)
        self.assertEqual(coefficients, [0.5, 2, 0, 0, -1, -1.5, 1, 1.5, -1, 3, 0])
        self.assertEqual((source.Ties, source.Pattern), (1, "Softmax"))
        self.assertEqual(list(source.Resolution), [512, 512])
        self.assertEqual(source.SweptParameter, "None")
        parameters = list(source.GetProperty("SweptParameter").Available)
        self.assertEqual(len(parameters), 1 + 11 + 6)
        self.assertEqual(parameters[-6:], ["A", "Alpha", "B", "C", "Gamma", "D"])

        image = fetch(source)
        self.assertEqual(image.GetDimensions(), (512, 512, 1))
        numpy.testing.assert_allclose(image.GetBounds()[:4], numpy.pi * numpy.array([-1, 1, -1, 1]))
        found = point_arrays(source)
        self.assertEqual(sorted(found), ["Attention", "Score"])
        t1, t2 = chart_angles(512, 512)
        expected = numpy.tensordot(coefficients, terms(t1, t2), 1)
        self.assert_close(found["Score"], expected.ravel())
        self.assert_close(found["Attention"], 1 / (1 + numpy.exp(-expected.ravel())))

    def test_trained_heads(self):
        model = atlastest.read_model()
        torus = atlastest.torus(model, Quantities=["Score", "Attention"])
        expected = point_arrays(torus)
        table = columns(simple.ScoreHarmonics(Input=model))
        source = simple.HarmonicHead(Resolution=[64, 48])
        for head in range(3):
            source.Coefficients = table[f"Head {head}"].tolist()
            found = point_arrays(source)
            for name in ("Score", "Attention"):
                self.assert_close(found[name], expected[f"{name} {head}"])

    def test_product(self):
        source = simple.HarmonicHead(Resolution=[64, 48], Parametrization="Product")
        source.Gamma = 0.75
        t1, t2 = chart_angles(64, 48)
        a, alpha, b, c, gamma, d = (
            getattr(source, key) for key in ("A", "Alpha", "B", "C", "Gamma", "D")
        )
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

    def test_errors(self):
        source = simple.HarmonicHead(Resolution=[8, 8], SweptParameter="CosTwiceT2")
        source.UpdatePipeline()
        self.assert_one_error("follow from cos(t1+t2)")
        source.SweptParameter = "None"
        source.Coefficients = [numpy.nan] + [0] * 10
        source.UpdatePipeline()
        self.assert_one_error("Coefficients: expected finite numbers, found nan for 1.")
        source.Coefficients = [0] * 11
        numpy.testing.assert_array_equal(point_arrays(source)["Attention"], 0.5)


class Accuracy(AtlasTest):
    def test_table(self):
        expected, path = self.oracle()
        targets = atlastest.read_safetensors(path)[0]["next_token"]
        found = columns(simple.HeadAccuracy(Input=atlastest.read_model(path)))
        alone = [expected[f"head_alone.{h}.class"] == targets for h in range(3)]
        shares = [*(head.mean() for head in alone), expected["pair.accuracy"][0]]
        shares.append(numpy.any(alone, axis=0).mean())
        self.assertEqual(found["Name"], ["Head 0", "Head 1", "Head 2", "All Heads", "Union"])
        numpy.testing.assert_allclose(found["Accuracy"], shares)
        numpy.testing.assert_array_equal(found["Correct"], numpy.rint(25 * numpy.array(shares)))
        numpy.testing.assert_array_equal(found["Pairs"], 25)

    def test_simplex(self):
        # At the points of the triangle, with numpy, from the outputs of the heads at the pairs.
        model = atlastest.read_model()
        pairs = simple.TokenPairs(Input=model)
        torus = simple.AttentionTorus(Input=model, Points=pairs, Quantities=["Head Output"])
        heads = point_arrays(torus)
        tensors = atlastest.read_safetensors(atlastest.TRAINED)[0]
        simplex = simple.HeadAccuracySimplex(Input=model, Resolution=24)
        found = point_arrays(simplex)
        outputs = numpy.stack([heads[f"Head Output {h}"] for h in range(3)]).astype(float)
        mixed = 3 * numpy.tensordot(found["Barycentric"].astype(float), outputs, 1)
        predicted = (mixed @ tensors["unembedding"].T.astype(float)).argmax(-1)
        targets = tensors["next_token"].ravel()
        correct = predicted == targets
        # In single precision a pair on a border may fall to the other side.
        self.assertLess((abs(correct.mean(1) - found["Accuracy"]) > 1e-6).mean(), 0.01)
        for k in numpy.unique(targets):
            difference = abs(correct[:, targets == k].mean(1) - found[f"Accuracy Target {k}"])
            self.assertLess((difference > 1e-6).mean(), 0.01)

    def test_simplex_defaults(self):
        simplex = simple.HeadAccuracySimplex(Input=atlastest.read_model())
        self.assertEqual(list(simplex.HeadIndices), [0, 1, 2])
        self.assertEqual(list(simplex.Pair), [-1, -1])
        self.assertEqual((simplex.Resolution, simplex.Residual), (128, "None"))
        self.assertEqual(fetch(simplex).GetNumberOfPolys(), 128 * 128)
        names = ["Accuracy", *(f"Accuracy Target {k}" for k in range(5)), "Barycentric"]
        self.assertEqual(sorted(point_arrays(simplex)), names)

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

    def test_errors(self):
        for message, properties in WRONG.items():
            simplex = simple.HeadAccuracySimplex(Input=atlastest.read_model(), **properties)
            simplex.UpdatePipeline()
            self.assert_one_error(message)
        tensors, metadata = atlastest.read_safetensors(atlastest.TRAINED)
        del tensors["next_token"]
        path = atlastest.OUTPUT / "no-targets.safetensors"
        atlastest.write_safetensors(path, tensors, metadata)
        for create in (simple.HeadAccuracySimplex, simple.HeadAccuracy):
            create(Input=atlastest.read_model(path)).UpdatePipeline()
            self.assert_one_error("the tensor 'next_token' [5, 5]")


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
        path = str(atlastest.OUTPUT / "state.pvsm")
        simple.SaveState(path)
        simple.ResetSession()
        atlastest.hide_bars()
        self.assertIsNone(simple.FindSource("Source"))
        simple.LoadState(path)
        found, found_arrays = self.look()
        self.assertEqual(found, properties)
        for name, expected in arrays.items():
            self.assert_same_arrays(found_arrays[name], expected)


if __name__ == "__main__":
    atlastest.main()
