"""The torus in space and vectors as colors are the same on several MPI ranks."""

import atlastest
import numpy
from atlastest import AtlasTest, torus
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy

RANKS = servermanager.vtkProcessModule.GetProcessModule().GetNumberOfLocalPartitions()


class ShapeRanks(AtlasTest):
    def setUp(self):
        super().setUp()
        self.model = atlastest.read_model()
        self.chart = torus(self.model, Quantities=["Output", "Mix"])

    def parts(self, source):
        source.UpdatePipeline()
        return [servermanager.Fetch(source, rank) for rank in range(RANKS)]

    def expect_as_on_one_rank(self, name, values):
        numpy.save(atlastest.OUTPUT / f"{name}.npy", values)
        reference = numpy.load(atlastest.REFERENCE / f"{name}.npy")
        self.assertEqual(values.tobytes(), reference.tobytes())

    def test_surface(self):
        surface = simple.TorusDeformation(
            Input=self.chart, Shape="Vectors", Normalization="Whitened"
        )
        parts = self.parts(surface)
        self.assertEqual(sum(part.GetNumberOfPolys() for part in parts), 63 * 47)
        for part in parts:
            self.assertGreater(part.GetNumberOfPolys(), 0)
        points = [vtk_to_numpy(part.GetPoints().GetData()) for part in parts]
        self.expect_as_on_one_rank("surface", numpy.unique(numpy.concatenate(points), axis=0))

    def test_pairs_are_there_once(self):
        pairs = simple.TorusDeformation(
            Input=simple.TokenPairs(Input=self.model), Shape="Vectors", Reference=self.chart
        )
        self.assertEqual(
            [part.GetNumberOfPoints() for part in self.parts(pairs)], [25] + [0] * (RANKS - 1)
        )

    def test_scale_of_colors_is_that_of_all(self):
        colors = simple.SummableColors(Input=self.chart, Vectors=["Output", "Mix 0"])
        for scale in ("Additive", "SharedRange"):
            colors.Scale = scale
            found = [
                [part.GetFieldData().GetArray(name).GetValue(0) for name in ("Color Gain", "Color Offset")]
                for part in self.parts(colors)
            ]
            self.assertEqual(found, found[:1] * RANKS)
            self.expect_as_on_one_rank(f"scale-{scale}", numpy.array(found[0]))


if __name__ == "__main__":
    atlastest.main()
