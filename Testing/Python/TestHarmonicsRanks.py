"""Tables, triangle and harmonic charts on several MPI ranks are as on one, and there once."""

import atlastest
import numpy
from atlastest import AtlasTest, point_arrays
from paraview import servermanager, simple

RANKS = servermanager.vtkProcessModule.GetProcessModule().GetNumberOfLocalPartitions()


class HarmonicsRanks(AtlasTest):
    def test_simplex(self):
        simplex = simple.HeadAccuracySimplex(Input=atlastest.read_model(), Resolution=20)
        simplex.UpdatePipeline()
        self.assertEqual(simplex.GetDataInformation().GetNumberOfPoints(), 231)
        self.assert_as_on_one_rank("simplex", point_arrays(simplex))

    def test_tables(self):
        model = atlastest.read_model()
        for create, rows in ((simple.ScoreHarmonics, 11), (simple.HeadAccuracy, 5)):
            table = create(Input=model)
            table.UpdatePipeline()
            self.assertEqual(table.GetDataInformation().GetNumberOfRows(), rows)

    def test_chart(self):
        source = simple.HarmonicHead(Resolution=[131, 97])
        source.UpdatePipeline()
        whole = {name: numpy.full((97, 131), -9, "f4") for name in ("Score", "Attention")}
        for rank in range(RANKS):
            part = servermanager.Fetch(source, rank)
            left, right, bottom, top, _, _ = part.GetExtent()
            self.assertLess((right - left + 1) * (top - bottom + 1), 131 * 97 / RANKS * 1.1)
            for name, values in atlastest.arrays_of(part).items():
                window = whole[name][bottom : top + 1, left : right + 1]
                window[:] = values.reshape(window.shape)
        self.assertTrue((whole["Attention"] >= 0).all())
        self.assert_as_on_one_rank("chart", whole)

    def test_picture(self):
        view = atlastest.chart_view()
        simple.Show(simple.HarmonicHead(Resolution=[400, 400]), view)
        pixels = atlastest.picture(view, "attention")
        reference = atlastest.read_picture(atlastest.REFERENCE / "attention.png")
        self.assertEqual(atlastest.different_pixels(pixels, reference), 0)


if __name__ == "__main__":
    atlastest.main()
