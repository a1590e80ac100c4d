"""The unembedding on the sphere and layer normalization as geometry: pictures and states. TestUnembeddingSphere and TestWordCircle have the values."""

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import simple


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

    def test_state(self):
        self.sphere.Resolution = 44
        circle = simple.WordCircle(registrationName="Circle", Input=self.sphere.Input)
        shown = view()
        for port in range(3):
            simple.Show(simple.OutputPort(self.sphere, port), shown)
        simple.Show(simple.OutputPort(circle, 1), shown)
        simple.RenameSource("Sphere", self.sphere)
        before = atlastest.picture(shown, "before")
        self.reload()
        self.assertEqual(simple.FindSource("Sphere").Resolution, 44)
        after = atlastest.picture(simple.GetRenderViews()[0], "after")
        self.assertEqual((before != after).sum(), 0)
        self.assertGreater((before != 255).any(axis=-1).mean(), 0.5)

    def test_first_show_of_the_circle(self):
        shown = view()
        circle = simple.WordCircle(Input=atlastest.read_model())
        display = simple.Show(circle, shown)
        self.assertEqual(display.Representation, "Surface")
        self.assertEqual(list(display.ColorArrayName), ["POINTS", "ClassColor"])
        self.assertEqual(display.RenderPointsAsSpheres, 1)
        display = simple.Show(simple.OutputPort(circle, 1), shown)
        self.assertEqual(list(display.ColorArrayName), ["CELLS", "CircleColor"])
        self.assertEqual(display.MapScalars, 0)
        self.assertAlmostEqual(display.Opacity, 0.4)
