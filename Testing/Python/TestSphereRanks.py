"""On several MPI ranks the sphere and the circle are as on one, to the byte, and there once."""

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy


class Ranks(AtlasTest):
    def expect_as_on_one_rank(self, source, ports):
        source.UpdatePipeline()
        arrays = {}
        for port in range(ports):
            data = servermanager.Fetch(source, idx=port)
            output = source[port]
            self.assertGreater(data.GetNumberOfPoints(), 0)
            count = output.GetDataInformation().GetNumberOfPoints()
            self.assertEqual(data.GetNumberOfPoints(), count)
            arrays[f"{port} points"] = vtk_to_numpy(data.GetPoints().GetData())
            for attributes in (data.GetPointData(), data.GetCellData()):
                for i in range(attributes.GetNumberOfArrays()):
                    values = vtk_to_numpy(attributes.GetArray(i))
                    arrays[f"{port} {attributes.GetArrayName(i)}"] = values
        name = source.GetXMLName()
        numpy.savez(atlastest.OUTPUT / f"{name}.npz", **arrays)
        with numpy.load(atlastest.REFERENCE / f"{name}.npz") as reference:
            self.assert_same_arrays(arrays, dict(reference))

    def test_sphere(self):
        sphere = simple.UnembeddingSphere(Input=atlastest.read_model())
        self.expect_as_on_one_rank(sphere, 3)

    def test_circle(self):
        circle = simple.WordCircle(Input=atlastest.read_model())
        self.expect_as_on_one_rank(circle, 2)

    def test_picture(self):
        view = atlastest.chart_view()
        sphere = simple.UnembeddingSphere(Input=atlastest.read_model())
        for port in range(3):
            simple.Show(simple.OutputPort(sphere, port), view)
        view.CameraParallelScale = 1.2
        pixels = atlastest.picture(view, "sphere")
        reference = atlastest.read_picture(atlastest.REFERENCE / "sphere.png")
        self.assertLess(atlastest.different_pixels(pixels, reference), 1e-3)
        self.assertGreater(atlastest.different_pixels(pixels, numpy.full_like(pixels, 255)), 0.4)


if __name__ == "__main__":
    atlastest.main()
