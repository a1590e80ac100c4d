"""Figures on VTK alone, in a Python without ParaView: surfaces in the colors of classes, and the text of PDF files."""

import os
import subprocess
import unittest
from unittest import mock

import atlastest
import numpy
from atlastest import OUTPUT, PALETTE, RECORDING, TRAINED, draws_surfaces
from attentionatlas._internal import windows
from figuretest import check_pdf, poppler
from matplotlib.image import imread
from vtkmodules.vtkCommonCore import vtkVersion

PYTHON = "/usr/bin/python3"
#: No import finds ParaView.
WITHOUT = """
import sys
sys.modules["paraview"] = None
import attentionatlas as atlas
"""


def run(code, *arguments, **variables):
    """Runs code on VTK alone; what it prints, and its errors."""
    environment = {**os.environ, "ATLAS_HOST": "VTK", **variables}
    command = [PYTHON, "-c", WITHOUT + code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


class VtkFigures(unittest.TestCase):
    def expect(self, code, *arguments):
        done = run(code, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @draws_surfaces
    def test_sphere(self):
        # Seen along an axis, each place of the sphere has the hue of the class with the largest logit there.
        code = """
import numpy
from attentionatlas._internal.space import Camera, Scene
with atlas.open(sys.argv[1]) as model:
    scene = Scene(200, Camera((1, 0, 0)))
    scene.show(model.filter("UnembeddingSphere"), "ClassColor", "Cell")
    import matplotlib.figure
    scene.place(matplotlib.figure.Figure().subplots(), margin=1)
    numpy.save(sys.argv[2], scene.pixels())
"""
        self.expect(code, TRAINED, OUTPUT / "sphere.npy")
        pixels = numpy.load(OUTPUT / "sphere.npy")
        axis = (numpy.arange(200) + 0.5) / 100 - 1
        x, y = numpy.meshgrid(axis, -axis)
        inside = x * x + y * y < 0.9
        z = numpy.sqrt(numpy.where(inside, 1 - x * x - y * y, 0))
        places = numpy.stack([z, x, y], axis=-1)
        unembedding = atlastest.read_safetensors(TRAINED)[0]["unembedding"].astype(float)
        classes = (places @ unembedding.T).argmax(axis=-1)
        # Light and shade scale a color, and highlights add a little white.
        hues = numpy.array(PALETTE) / numpy.linalg.norm(PALETTE, axis=1)[:, None]
        shown = (pixels @ hues.T / numpy.linalg.norm(pixels, axis=-1, keepdims=True)).argmax(axis=-1)
        self.assertGreater(len(numpy.unique(classes[inside])), 2)
        self.assertLess((shown != classes)[inside].mean(), 0.02)
        corners = x * x + y * y > 1.1
        self.assertTrue((pixels[corners] == 1).all())

    @draws_surfaces
    def test_deformed_torus(self):
        # As transparent as it is, the whole has the hue of its color map: more red than blue above, and less below.
        code = "atlas.save(atlas.figures.deformed_torus(sys.argv[1], width_mm=60, dpi=150), sys.argv[2], 150)"
        self.expect(code, TRAINED, OUTPUT / "torus.png")
        pixels = imread(OUTPUT / "torus.png")[..., :3]
        left = pixels[:, : pixels.shape[1] // 4]
        upper, lower = (half[(half < 0.95).any(axis=-1)].mean(axis=0) for half in numpy.array_split(left, 2))
        self.assertGreater(upper[0] - upper[2], 0.1)
        self.assertGreater(lower[2] - lower[0], 0.1)

    def test_pdf(self):
        code = "atlas.save(atlas.heads.weights(sys.argv[1], 4, 11, width_mm=89), sys.argv[2])"
        self.expect(code, RECORDING, OUTPUT / "weights.pdf")
        check_pdf(self, OUTPUT / "weights.pdf", 89)
        text = poppler("pdftotext", OUTPUT / "weights.pdf", "-")
        if text is not None:
            for token in ("visualization", "powers", "users"):
                self.assertIn(token, text)

    def test_command(self):
        command = [PYTHON, "-m", "attentionatlas", "figures", str(RECORDING), "--only", "all-heads", "-o", str(OUTPUT)]
        done = subprocess.run(command, env={**os.environ, "ATLAS_HOST": "VTK"}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(imread(OUTPUT / "gpt2-data-visualization-all-heads.png").shape[1], 2400)

    def test_no_display(self):
        code = "atlas.figures.unembedding_sphere(sys.argv[1], width_mm=60, dpi=100)"
        done = run(code, TRAINED, DISPLAY="unix:9999")
        if done.returncode:
            self.assertRegex(done.stderr, r"NoDisplay: DISPLAY: VTK 9\.\d draws .* found none\. Run .* xvfb-run -a python3")

    def test_others_are_drawn_without_a_display(self):
        code = """
from unittest import mock
from attentionatlas._internal import problems, windows
with mock.patch("attentionatlas._internal.space.need_rendering", side_effect=problems.NoDisplay("DISPLAY: none.")):
    print([path.stem for path in atlas.tour.render(sys.argv[1], sys.argv[2], ["unembedding-sphere", "class-map"], width=300)])
    try:
        atlas.tour.render(sys.argv[1], sys.argv[2], ["unembedding-sphere"], width=300)
    except OSError as error:
        print(error)
"""
        self.assertEqual(self.expect(code, TRAINED, OUTPUT).splitlines(), ["['trained-n5-h3-class-map']", "DISPLAY: none."])

    def test_no_library(self):
        # VTK 9.4 and later would crash without what they render with; those before need no library of these.
        with mock.patch.object(windows, "has_display", return_value=False), mock.patch.object(windows, "_load", return_value=None):
            newer = (vtkVersion.GetVTKMajorVersion(), vtkVersion.GetVTKMinorVersion()) >= (9, 4)
            self.assertNotEqual(windows._finds_libraries(), newer)
            with mock.patch.object(windows, "_finds_libraries", return_value=False):
                with self.assertRaisesRegex(OSError, "DISPLAY: VTK 9.* libEGL or libOSMesa, and found none. Install .* libegl1"):
                    windows.need_rendering()


if __name__ == "__main__":
    unittest.main()
