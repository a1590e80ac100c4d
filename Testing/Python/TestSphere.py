"""The unembedding on the sphere and layer normalization as geometry, as scripts drive them."""

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy


def fetch(source, port):
    """One output of a source, up to date."""
    source.UpdatePipeline()
    return servermanager.Fetch(source, idx=port)


def points(data):
    return vtk_to_numpy(data.GetPoints().GetData()).copy()


def array(attributes, name):
    return vtk_to_numpy(attributes.GetArray(name)).copy()


def unembedding():
    tensors, _ = atlastest.read_safetensors(atlastest.TRAINED)
    return tensors["unembedding"].astype(float)


def view(size=400):
    return simple.CreateRenderView(
        ViewSize=[size, size],
        OrientationAxesVisibility=0,
        CameraParallelProjection=1,
        CameraParallelScale=1,
        UseColorPaletteForBackground=0,
        Background=[1, 1, 1],
    )


class Sphere(AtlasTest):
    def setUp(self):
        super().setUp()
        self.sphere = simple.UnembeddingSphere(Input=atlastest.read_model())

    def test_defaults(self):
        self.assertEqual(self.sphere.Resolution, 128)
        bare = servermanager.filters.UnembeddingSphere(Input=self.sphere.Input)
        self.assertGreater(fetch(bare, 0).GetNumberOfCells(), 128 * 128 / 8)

    def test_cells_are_what_is_predicted(self):
        cells = fetch(self.sphere, 0)
        found = array(cells.GetCellData(), "Class")
        at = points(cells)
        middles = []
        for i in range(cells.GetNumberOfCells()):
            ids = cells.GetCell(i).GetPointIds()
            middles.append(sum(at[ids.GetId(k)] for k in range(ids.GetNumberOfIds())))
        predicted = (numpy.array(middles) @ unembedding().T).argmax(axis=1)
        numpy.testing.assert_array_equal(found, predicted)
        self.assertEqual(set(found), {0, 1, 2, 3, 4})
        self.assertLess(numpy.abs(numpy.linalg.norm(at, axis=1) - 1).max(), 1e-15)
        colors = array(cells.GetCellData(), "ClassColor")
        numpy.testing.assert_array_equal(colors, numpy.array(atlastest.PALETTE)[found])

    def test_centres_are_the_rows(self):
        centres = fetch(self.sphere, 1)
        rows = unembedding()
        self.assert_close(points(centres), rows / numpy.linalg.norm(rows, axis=1)[:, None], 1e-14)
        self.assertEqual(array(centres.GetPointData(), "Class").tolist(), [0, 1, 2, 3, 4])
        self.assertEqual(array(centres.GetPointData(), "Reachable").tolist(), [1, 1, 1, 1, 1])

    def test_arcs_are_ties(self):
        arcs = fetch(self.sphere, 2)
        logits = points(arcs) @ unembedding().T
        first = array(arcs.GetCellData(), "First")
        second = array(arcs.GetCellData(), "Second")
        for i in range(arcs.GetNumberOfCells()):
            ids = arcs.GetCell(i).GetPointIds()
            for k in range(ids.GetNumberOfIds()):
                at = logits[ids.GetId(k)]
                self.assertAlmostEqual(at[first[i]], at.max(), 10)
                self.assertAlmostEqual(at[second[i]], at.max(), 10)

    def test_first_show(self):
        shown = view()
        display = simple.Show(self.sphere, shown)
        self.assertEqual(display.Representation, "Surface")
        self.assertEqual(list(display.ColorArrayName), ["CELLS", "ClassColor"])
        self.assertEqual(display.MapScalars, 0)
        display = simple.Show(simple.OutputPort(self.sphere, 1), shown)
        self.assertEqual(display.Representation, "Point Gaussian")
        self.assertEqual(list(display.ColorArrayName), ["POINTS", "ClassColor"])
        display = simple.Show(simple.OutputPort(self.sphere, 2), shown)
        self.assertEqual(display.ColorArrayName[1], "")
        self.assertEqual(list(display.DiffuseColor), [0, 0, 0])

    def test_picture(self):
        # With its full light the middle of each pixel has the color of what is predicted there.
        shown = view()
        display = simple.Show(self.sphere, shown)
        display.Ambient, display.Diffuse = 1, 0
        for direction in numpy.vstack([numpy.eye(3), -numpy.eye(3)]):
            shown.CameraPosition = (5 * direction).tolist()
            shown.CameraFocalPoint = [0, 0, 0]
            up = numpy.roll(numpy.abs(direction), 1)
            shown.CameraViewUp = up.tolist()
            pixels = atlastest.picture(shown, "sphere")
            axis = (numpy.arange(400) + 0.5) / 200 - 1
            x, y = numpy.meshgrid(axis, axis)
            inside = x * x + y * y < 0.97
            z = numpy.sqrt(numpy.where(inside, 1 - x * x - y * y, 0))
            right = numpy.cross(up, direction)
            at = x[..., None] * right + y[..., None] * up + z[..., None] * direction
            expected = numpy.array(atlastest.PALETTE)[(at @ unembedding().T).argmax(axis=-1)]
            wrong = numpy.abs(pixels - expected).max(axis=-1) > 24
            self.assertLess(wrong[inside].mean(), 0.02, direction)

    def test_bad_resolution(self):
        self.sphere.Resolution = 3
        self.sphere.UpdatePipeline()
        self.assert_one_error("Resolution: expected at least 8", "found 3")
        self.sphere.Resolution = 20
        self.assertGreater(fetch(self.sphere, 0).GetNumberOfCells(), 0)

    def test_state(self):
        self.sphere.Resolution = 44
        circle = simple.WordCircle(registrationName="Circle", Input=self.sphere.Input)
        shown = view()
        for port in range(3):
            simple.Show(simple.OutputPort(self.sphere, port), shown)
        simple.Show(simple.OutputPort(circle, 1), shown)
        simple.RenameSource("Sphere", self.sphere)
        before = atlastest.picture(shown, "before")
        path = str(atlastest.OUTPUT / "sphere.pvsm")
        simple.SaveState(path)
        simple.Delete(shown)
        simple.ResetSession()
        atlastest.hide_bars()
        simple.LoadState(path)
        self.assertEqual(simple.FindSource("Sphere").Resolution, 44)
        after = atlastest.picture(simple.GetRenderViews()[0], "after")
        self.assertEqual((before != after).sum(), 0)
        self.assertGreater((before != 255).any(axis=-1).mean(), 0.5)


class Circle(AtlasTest):
    def setUp(self):
        super().setUp()
        self.circle = simple.WordCircle(Input=atlastest.read_model())

    def test_tokens(self):
        expected, path = self.oracle()
        self.circle.Input = atlastest.read_model(path)
        tokens = fetch(self.circle, 0)
        data = tokens.GetPointData()
        angle = expected["token_angle"]
        self.assert_close(array(data, "Angle"), numpy.concatenate([angle, angle]), 1e-6)
        self.assertEqual(array(data, "Token").tolist(), [*range(5), *range(5)])
        self.assertEqual(array(data, "Normalized").tolist(), [0] * 5 + [1] * 5)
        tensors, _ = atlastest.read_safetensors(path)
        raw = tensors["word_embedding"].astype(float)
        normalized = raw - raw.mean(axis=1, keepdims=True)
        normalized /= raw.std(axis=1, keepdims=True)
        self.assert_close(points(tokens), numpy.vstack([raw, normalized]), 1e-12)

    def test_circle(self):
        circle = fetch(self.circle, 1)
        self.assertEqual(circle.GetNumberOfLines(), 1)
        self.assertEqual(circle.GetNumberOfPolys(), 1)
        norms = numpy.linalg.norm(points(circle), axis=1)
        self.assertAlmostEqual(norms.min(), numpy.sqrt(3), 12)
        self.assertLess(numpy.abs(points(circle).sum(axis=1)).max(), 1e-10)

    def test_first_show(self):
        shown = view()
        display = simple.Show(self.circle, shown)
        self.assertEqual(display.Representation, "Surface")
        self.assertEqual(list(display.ColorArrayName), ["POINTS", "ClassColor"])
        self.assertEqual(display.RenderPointsAsSpheres, 1)
        display = simple.Show(simple.OutputPort(self.circle, 1), shown)
        self.assertEqual(list(display.ColorArrayName), ["CELLS", "CircleColor"])
        self.assertEqual(display.MapScalars, 0)
        self.assertAlmostEqual(display.Opacity, 0.4)


if __name__ == "__main__":
    atlastest.main()
