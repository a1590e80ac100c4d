"""From a file to a picture, as a script does it."""

import atlastest
import numpy
from atlastest import AtlasTest, fetch, point_arrays, torus
from paraview import simple

def decided(logits):
    """Where the largest logit leads by more than what single precision may lose."""
    largest = numpy.sort(logits, axis=1)
    return largest[:, -1] - largest[:, -2] > 1e-4


class Values(AtlasTest):
    def evaluate(self, name, **properties):
        """What AttentionTorus gives at the points of an oracle, and the oracle."""
        expected, path = self.oracle(name)
        points = atlastest.points_source(expected["theta"])
        source = torus(atlastest.read_model(path), Points=points, **properties)
        source.Quantities = source.GetProperty("Quantities").Available
        return point_arrays(source), expected

    def test_residuals(self):
        for residual in ("EmbeddingPosition", "Embedding", "None"):
            found, expected = self.evaluate("trained-n5-h3", Residual=residual)
            key = residual.replace("gP", "g_p").lower()
            for quantity in ("Output", "Logits", "Probability"):
                self.assert_close(found[quantity], expected[f"{key}.{quantity.lower()}"])
            clear = decided(expected[f"{key}.logits"])
            self.assertGreater(clear.mean(), 0.9)
            numpy.testing.assert_array_equal(found["Class"][clear], expected[f"{key}.class"][clear])


class Reading(AtlasTest):
    def test_open_data_file(self):
        model = simple.OpenDataFile(str(atlastest.TRAINED))
        tensors, _ = atlastest.read_safetensors(atlastest.TRAINED)
        blocks = atlastest.model_blocks(model)
        for name, values in tensors.items():
            numpy.testing.assert_array_equal(blocks[name].reshape(values.shape), values)

    def test_image(self):
        source = torus(atlastest.read_model(), Resolution=[20, 10])
        image = fetch(source)
        self.assertTrue(image.IsA("vtkImageData"))
        self.assertEqual(image.GetDimensions(), (20, 10, 1))
        self.assertAlmostEqual(image.GetBounds()[3], numpy.pi)
        self.assertEqual(sorted(point_arrays(source)), ["Class", "ClassColor", "Probability"])

    def test_chosen_quantities(self):
        source = torus(atlastest.read_model())
        for quantities in (["Attention 1"], ["Class"], [], ["Output", "Score 0"]):
            source.Quantities = quantities
            self.assertEqual(sorted(point_arrays(source)), quantities)

    def test_points_on_and_off(self):
        source = torus(atlastest.read_model())
        self.assertTrue(fetch(source).IsA("vtkImageData"))
        source.Points = simple.Sphere()
        self.assertTrue(fetch(source).IsA("vtkPolyData"))
        source.Points = None
        self.assertTrue(fetch(source).IsA("vtkImageData"))

    def test_filters_of_paraview_follow(self):
        source = torus(atlastest.read_model())
        source.Quantities = ["Class", "ClassColor", "Score"]
        frontier = simple.Contour(Input=source, ContourBy=["POINTS", "Score 0"], Isosurfaces=[0])
        self.assertGreater(fetch(frontier).GetNumberOfLines(), 0)
        moved = simple.AttentionTorus(Input=source.Input, Points=frontier, Quantities=["Score"])
        scores = point_arrays(moved)["Score 0"]
        largest = numpy.abs(point_arrays(source)["Score 0"]).max()
        self.assertLess(numpy.abs(scores).max(), 0.05 * largest)


class Pictures(AtlasTest):
    def setUp(self):
        super().setUp()
        self.model = atlastest.read_model()
        self.view = atlastest.chart_view()

    def expect_nearest_points(self, pixels, colors, resolution):
        """Expects that nearly all pixels have the color of the nearest point of a chart."""
        size = len(pixels)
        nearest = numpy.rint((numpy.arange(size) + 0.5) / size * (resolution - 1)).astype(int)
        colors = colors.reshape(resolution, resolution, 3).astype(int)
        expected = colors[numpy.ix_(nearest, nearest)]
        self.assertLess(atlastest.different_pixels(pixels, expected), 0.03)

    def test_first_show(self):
        source = torus(self.model)
        display = simple.Show(source, self.view)
        self.assertEqual(list(display.ColorArrayName), ["POINTS", "ClassColor"])
        self.assertEqual(display.MapScalars, 0)
        self.assertEqual(display.Representation, "Slice")
        self.assertEqual((display.Ambient, display.Diffuse), (1, 0))

        pairs = simple.TokenPairs(Input=self.model)
        display = simple.Show(pairs, self.view)
        self.assertEqual(list(display.ColorArrayName), ["POINTS", "TargetColor"])
        self.assertEqual(display.MapScalars, 0)
        self.assertEqual(display.Representation, "Point Gaussian")

    def test_class_map(self):
        source = torus(self.model, Resolution=[400, 400])
        simple.Show(source, self.view)
        pixels = atlastest.picture(self.view, "class-map-alone")
        self.expect_nearest_points(pixels, point_arrays(source)["ClassColor"], 400)

    def test_colored_by_class(self):
        source = torus(self.model, Resolution=[400, 400])
        display = simple.Show(source, self.view)
        simple.ColorBy(display, ("POINTS", "Class"))
        self.assertEqual(display.MapScalars, 1)
        table = simple.GetColorTransferFunction("Class")
        self.assertEqual(table.InterpretValuesAsCategories, 1)
        self.assertEqual(list(table.Annotations)[::2], ["0", "1", "2", "3", "4"])
        colors = numpy.rint(255 * numpy.array(table.IndexedColors)).astype(int)
        self.assertEqual(colors.reshape(-1, 3).tolist(), atlastest.PALETTE)

        pixels = atlastest.picture(self.view, "class")
        classes = point_arrays(source)["Class"]
        self.expect_nearest_points(pixels, numpy.array(atlastest.PALETTE)[classes], 400)

    def test_pairs_on_the_map(self):
        simple.Show(torus(self.model, Resolution=[400, 400]), self.view)
        pairs = simple.TokenPairs(Input=self.model)
        simple.Show(pairs, self.view)
        pixels = atlastest.picture(self.view, "class-map")
        self.assert_baseline(pixels, "class-map")

        coordinates = fetch(pairs).GetPoints().GetData()
        colors = point_arrays(pairs)["TargetColor"].astype(int)
        for pair in range(len(colors)):
            x, y, _ = coordinates.GetTuple3(pair)
            column, row = (int((angle / numpy.pi + 1) * 200) for angle in (x, y))
            difference = numpy.abs(pixels[row, column] - colors[pair]).max()
            self.assertLessEqual(difference, 2, f"pair {pair} at {column}, {row}")

    def test_attention_scale(self):
        source = torus(self.model, Quantities=["Attention"])
        simple.Show(source, self.view)
        points = numpy.array(simple.GetColorTransferFunction("Attention 0").RGBPoints)
        self.assertEqual(points.reshape(-1, 4).tolist(), [[0, 1, 1, 1], [1, 0, 0, 0]])

    def test_scale_of_other_arrays(self):
        """Cool to Warm, which was the default before ParaView 6.0."""
        source = torus(self.model, Quantities=["Logits"])
        display = simple.Show(source, self.view)
        simple.ColorBy(display, ("POINTS", "Logits"))
        points = numpy.array(simple.GetColorTransferFunction("Logits").RGBPoints).reshape(-1, 4)
        colors = [[0.23, 0.3, 0.75], [0.87, 0.87, 0.87], [0.71, 0.02, 0.15]]
        numpy.testing.assert_allclose(points[:, 1:], colors, atol=0.01)
        low, high = source.PointData["Logits"].GetRange(-1)
        numpy.testing.assert_allclose(points[[0, -1], 0], [low, high])
