"""On several MPI ranks everything is as on one, to the byte, and nothing is there twice."""

import atlastest
from atlastest import RANKS, fetch, point_arrays, torus
from paraview import simple
from ranktest import RankTest


class Ranks(RankTest):
    def setUp(self):
        super().setUp()
        self.model = atlastest.read_model()

    def chart(self, **properties):
        source = torus(self.model, Resolution=[131, 97], **properties)
        source.Quantities = source.GetProperty("Quantities").Available
        return source

    def point_count(self, source):
        """The number of points on all ranks together."""
        source.UpdatePipeline()
        return source.GetDataInformation().GetNumberOfPoints()

    def test_every_rank_has_a_part_of_the_chart(self):
        # Neighbours share a row or a column of points.
        source = self.chart()
        self.assertGreaterEqual(self.point_count(source), 131 * 97)
        for part in self.parts(source):
            self.assertGreater(part.GetNumberOfPoints(), 0)
        arrays = self.image_arrays(source)
        self.assertEqual(arrays["Class"].shape, (97, 131, 1))
        self.assert_as_on_one_rank("chart", arrays)

    def test_points(self):
        points = simple.Wavelet(WholeExtent=[-30, 30, -20, 20, 0, 0])
        source = self.chart(Points=points)
        arrays = self.image_arrays(source)
        self.assertEqual(arrays["Class"].shape, (41, 61, 1))
        self.assert_as_on_one_rank("points", arrays)

    def test_points_that_one_rank_has(self):
        pairs = simple.TokenPairs(Input=self.model)
        source = self.chart(Points=pairs)
        self.assertEqual(self.point_count(source), 25)
        self.assert_as_on_one_rank("points-of-pairs", point_arrays(source))

    def test_pairs(self):
        pairs = simple.TokenPairs(Input=self.model)
        self.assertEqual(self.point_count(pairs), 25)
        self.assertEqual(fetch(pairs).GetNumberOfVerts(), 25)
        self.assert_as_on_one_rank("pairs", point_arrays(pairs))

    def test_save_data(self):
        folder = atlastest.OUTPUT / "saved"
        folder.mkdir(exist_ok=True)
        simple.SaveData(str(folder / "copy.safetensors"), proxy=self.model)
        self.assertEqual([path.name for path in folder.iterdir()], ["copy.safetensors"])
        found, metadata = atlastest.read_safetensors(folder / "copy.safetensors")
        expected, expected_metadata = atlastest.read_safetensors(atlastest.TRAINED)
        self.assert_same_arrays(found, expected)
        self.assertEqual(metadata, expected_metadata)

    def show_map(self, view):
        """The class map as a surface, which it is on several ranks; on one it would be a texture."""
        display = simple.Show(torus(self.model, Resolution=[400, 400]), view)
        self.assertEqual(display.Representation, "Opaque Surface" if RANKS > 1 else "Slice")
        if RANKS == 1:
            display.SetRepresentationType("Surface")

    def test_picture(self):
        view = atlastest.chart_view()
        self.show_map(view)
        pixels = self.assert_picture(view, "class-map-alone")
        reference = atlastest.read_picture(atlastest.REFERENCE / "class-map-alone.png")
        # Where two parts meet, or by rounding, a few pixels may differ a little.
        self.assertLess(atlastest.different_pixels(pixels, reference, 1), 1e-4)
        simple.Show(simple.TokenPairs(Input=self.model), view)
        # ... which it could not tell if the pairs were in neither.
        self.assertGreater(atlastest.different_pixels(self.assert_picture(view, "class-map"), pixels), 0.005)

    def test_picture_of_the_donut(self):
        """ParaView would cut its parts and exchange them if their colors could be translucent."""
        view = atlastest.chart_view()
        view.CameraPosition, view.CameraViewUp = [5, -9, 6], [0, 0, 1]
        donut = simple.TorusDeformation(Input=torus(self.model))
        display = simple.Show(donut, view)
        self.assertEqual(display.Representation, "Opaque Surface" if RANKS > 1 else "Surface")
        self.assert_picture(view, "donut")
