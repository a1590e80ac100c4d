"""Web pages in a browser: headless Chromium draws them, without an error, in the colors of the tokens.

Skipped where there is no Chromium.
"""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import web
from figuretest import Expected
from paraview import simple
from randomrecording import write_recording
from webpages import Document, Page, pair_angles

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
#: A graphics processor is not needed. Time runs as fast as the page does its work, for at most ten seconds.
OPTIONS = [
    "--headless=new", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--enable-logging=stderr", "--window-size=1000,800", "--hide-scrollbars", "--disable-dev-shm-usage",
    "--virtual-time-budget=10000",
]
HOSTILE = [
    "</script><script>document.title='run'</script>", "<img src=x onerror=document.title='run'>", " the", " The",
    "&amp;", "<b>",
]


class Shown:
    """What a browser made of a page: the attributes of its root, its elements, its picture and the console."""

    def __init__(self, path, **asked):
        asks = urllib.parse.urlencode(asked, safe=",", quote_via=urllib.parse.quote)
        address = f"{pathlib.Path(path).as_uri()}#{asks}"
        picture = atlastest.OUTPUT / f"{self._name(path, asked)}.png"
        picture.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as profile:
            command = [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", f"--screenshot={picture}", "--dump-dom"]
            ran = subprocess.run([*command, address], capture_output=True, text=True, timeout=300)
        self.console = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
        self.document = Document(ran.stdout)
        self.state = dict(self.document.elements)["html"]
        self.pixels = atlastest.read_picture(picture)[::-1]  # rows from the top
        self.text = re.sub(r"<script.*?</script>", "", ran.stdout, flags=re.S)

    @staticmethod
    def _name(path, asked):
        return re.sub(r"\W+", "-", "-".join([path.stem, *asked, *asked.values()])).strip("-")

    def stage(self):
        """The pixels of the stage within its border."""
        left, top, right, bottom = (round(float(value)) + 1 for value in self.state["data-margins"].split())
        height, width = self.pixels.shape[:2]
        return self.pixels[top : height - bottom, left : width - right]


@unittest.skipUnless(CHROMIUM, "needs Chromium")
class Browser(AtlasTest):
    def shown(self, path, **asked):
        shown = Shown(path, **asked)
        self.assertEqual(shown.console, [])
        self.assertEqual(shown.state["data-status"], "ready", shown.state.get("data-error"))
        return shown

    def test_torus(self):
        """The picture has the colors of the tokens to the byte, and the pointer finds the class below it."""
        path = atlastest.OUTPUT / "torus.html"
        web.page(web.torus(atlastest.TRAINED, size=256), path)
        shown = self.shown(path, hover="0.5,0.55")
        self.assertEqual(shown.state["data-points"], str(256 * 256 + 25))
        stage = shown.stage()
        height, width = stage.shape[:2]
        # The map is a square in the middle, with a margin of 6 percent.
        side = height / 1.06
        steps = numpy.linspace(-0.45, 0.45, 40)
        across, up = numpy.meshgrid(steps, steps)
        down, right = (height / 2 - up * side).astype(int), (width / 2 + across * side).astype(int)
        pixels = stage[down, right]
        theta = 2 * numpy.pi * numpy.column_stack([across.ravel(), up.ravel()])
        classes, probability = Expected(atlastest.TRAINED, theta).classes()
        dots = pair_angles()
        apart = numpy.linalg.norm(theta[:, None] - dots, axis=-1).min(axis=1) > 0.2
        # The box of what is at the pointer lies to the right of it. The window of the picture is a little higher
        # than the one in which the pointer was.
        down, right = down.ravel() / height, right.ravel() - width / 2
        apart &= ~((down > 0.35) & (down < 0.75) & (right > 0) & (right < 250))
        # Each pixel has the color of the point of the map there, or of its neighbor at the border of a square.
        points = Page(path.read_text(encoding="utf-8"))
        colors = points.values(points.parts("image")[0]["colors"]).reshape(256, 256, 3).astype(int)
        column, row = numpy.rint((theta / (2 * numpy.pi) + 0.5) * 255).astype(int).T
        near = [colors[row + i, column + j] for i in (-1, 0, 1) for j in (-1, 0, 1)]
        difference = numpy.abs(pixels.reshape(-1, 3) - near).max(axis=-1).min(axis=0)
        self.assertGreater(apart.sum(), 1000)
        self.assertLessEqual(difference[apart].max(), 1)
        # Where the model is certain, that is the color of the token.
        sure = apart & (probability > 0.9999)
        self.assertGreater(sure.sum(), 300)
        difference = numpy.abs(pixels.reshape(-1, 3) - numpy.array(atlastest.PALETTE)[classes]).max(axis=1)
        self.assertGreater((difference[sure] <= 1).mean(), 0.95)  # but for the pixels of a border
        # What lies at the pointer, at a twentieth of the stage below its middle.
        place = [[0, -0.05 * 1.06 * 2 * numpy.pi]]
        expected, _ = Expected(atlastest.TRAINED, place).classes()
        self.assertIn(f"Class: {expected[0]}", shown.state["data-hover"])

    def test_search_and_hostile_tokens(self):
        """A search finds the tokens with a text, and no token becomes an element."""
        tokens = (HOSTILE * 5)[:30]
        path = write_recording(atlastest.OUTPUT / "hostile.safetensors", tokens)
        page = atlastest.OUTPUT / "hostile.html"
        scenes = [
            web.sentence(path, layer=0, head=1),
            web.head_embedding(path, 0, 1, 3, Perplexity=10, Iterations=100),
        ]
        web.page(scenes, page, dark=True)
        found = self.shown(page, scene="1", search="THE")
        self.assertEqual(found.state["data-found"], "20")  # queries and keys of " the" and " The"
        self.assertIn("20 of 60 points", found.text)
        self.assertEqual(found.state["data-points"], "60")
        self.assertEqual(found.state["data-scene"], "1")
        self.assertGreater(int(found.state["data-labels"]), 10)
        self.assert_no_token_is_an_element(found)
        stage = found.stage()
        background = stage[2, 2]
        self.assertLess(background.max(), 40)  # dark
        self.assertGreater((numpy.abs(stage - background).max(axis=-1) > 40).sum(), 500)

        words = self.shown(page, scene="0", search="<b>")
        self.assertEqual(words.state["data-found"], "2")  # once as a query, once as a key
        self.assert_no_token_is_an_element(words)

    def assert_no_token_is_an_element(self, shown):
        tags = [tag for tag, _ in shown.document.elements]
        self.assertEqual([tags.count(tag) for tag in ("img", "script")], [0, 3])
        self.assertNotIn("<title>run", shown.text)

    def test_surfaces(self):
        """Surfaces in space are drawn with light, in the colors of their tokens, and their items are found."""
        page = atlastest.OUTPUT / "surfaces.html"
        web.page([web.sphere(atlastest.TRAINED), web.deformed_torus(atlastest.TRAINED, 64)], page)
        sphere = self.shown(page, scene="0", hover="0.5,0.5")
        self.assertRegex(sphere.state["data-hover"], r"Class: [0-4]")
        stage = sphere.stage()
        middle = stage[stage.shape[0] // 2, stage.shape[1] // 2].astype(float)
        # The same color as that of the token, but for the light.
        token = numpy.array(atlastest.PALETTE[int(re.search(r"Class: (\d)", sphere.state["data-hover"])[1])], float)
        cosine = middle @ token / numpy.linalg.norm(middle) / numpy.linalg.norm(token)
        self.assertGreater(cosine, 0.99)
        torus = self.shown(page, scene="1")
        self.assertEqual(torus.state["data-cells"], str(63 * 63))
        drawn = numpy.abs(torus.stage() - 255).max(axis=-1) > 24
        self.assertGreater(drawn.mean(), 0.05)

    def test_small_and_large_cells(self):
        """The pointer finds the small cells of a ball, and beside it the one cell that fills the stage."""
        simple.CreateRenderView(
            ViewSize=[400, 400], CameraParallelProjection=1, CameraPosition=[0, 0, 10], CameraParallelScale=1
        )
        ball = simple.Sphere(Radius=0.5, ThetaResolution=64, PhiResolution=64)
        wall = simple.Plane(Origin=[-3, -3, -1], Point1=[3, -3, -1], Point2=[-3, 3, -1])
        for name, source in (("Ball", ball), ("Wall", wall)):
            simple.Show(simple.Calculator(Input=source, Function="coordsY", ResultArrayName=name))
        page = atlastest.OUTPUT / "cells.html"
        web.page(web.scenes(), page)
        for down, expected in (("0.5", 0), ("0.6", -0.2), ("0.35", 0.3)):  # of 2, the height of the stage
            hover = self.shown(page, hover=f"0.5,{down}").state["data-hover"].replace("\N{MINUS SIGN}", "-")
            self.assertRegex(hover, r"^Ball: [-+.\de]+$")
            self.assertAlmostEqual(float(hover.split()[-1]), expected, delta=0.04)  # at the nearest corner
        for down, expected in (("0.1", "3"), ("0.9", "\N{MINUS SIGN}3")):
            self.assertRegex(self.shown(page, hover=f"0.5,{down}").state["data-hover"], f"Wall: {expected}$")

    def test_broken_page(self):
        """A page whose data are damaged says so."""
        page = atlastest.OUTPUT / "damaged.html"
        text = web.page(web.torus(atlastest.TRAINED, size=8)).html()
        page.write_text(re.sub(r'(id="data">)[^<]{20}', r"\1" + "A" * 20, text), encoding="utf-8")
        shown = Shown(page)
        self.assertEqual(shown.state["data-status"], "error")
        self.assertIn("This page cannot be drawn", shown.text)


if __name__ == "__main__":
    atlastest.main()
