"""Pages, pictures and the article on VTK alone, in a Python without ParaView and without a display: what ParaView's Python
writes, to the byte."""

import json
import os
import shutil
import subprocess
import sys
import unittest

import attentionatlas
import numpy
from atlastest import DATA, OUTPUT, PALETTE, RECORDING, TRAINED, read_picture, read_safetensors, write_safetensors
from attentionatlas import article, web
from attentionatlas._internal import host
from randomrecording import write_recording
from webpages import Page

PYTHON = "/usr/bin/python3"
#: No import finds ParaView.
WITHOUT = """
import sys
sys.modules["paraview"] = None
import attentionatlas as atlas
from attentionatlas import web
"""
#: Scenes of all kinds, of the files that are the arguments.
SCENES = """
model, recording, transformer, corpus = sys.argv[1:5]
scenes = [
    web.torus(model, 40), web.deformed_torus(model, 20), web.sphere(model),
    web.attention_map(recording, 1, 2), web.attention_map(recording, all_heads=True), web.attention_map(recording, 0, 1, cell=4),
    web.sentence(recording, 0, 1, all_heads=True), web.head_embedding(recording, 1, 2, method="PCA"),
    web.head_embedding(recording, 1, 2, 3, method="PCA"), web.composition(transformer, "V"),
    web.scatter(corpus), web.contexts(corpus, 1, 5, all_heads=True),
]
web.page(scenes, sys.argv[5])
"""
#: Tests that compare with ParaView, or run a part of it.
with_paraview = unittest.skipUnless(host.is_paraview(), "needs ParaView")


def run(code, *arguments):
    """Runs code on VTK alone; what it prints. Raises AssertionError for errors."""
    environment = {**os.environ, "ATLAS_HOST": "VTK"}
    environment.pop("DISPLAY", None)
    command = [PYTHON, "-c", WITHOUT + code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        raise AssertionError(done.stderr)
    return done.stdout


class VtkPages(unittest.TestCase):
    maxDiff = 2000

    def compare(self, found, expected, pages, place=""):
        """Compares descriptions of scenes, and the arrays that they name."""
        self.assertEqual(type(found), type(expected), place)
        if isinstance(found, list):
            self.assertEqual(len(found), len(expected), place)
            for number, (one, other) in enumerate(zip(found, expected)):
                self.compare(one, other, pages, f"{place}[{number}]")
        elif isinstance(found, dict) and "at" in found:
            one, other = (page.values(array) for page, array in zip(pages, (found, expected)))
            self.assertEqual({**found, "at": 0}, {**expected, "at": 0}, place)
            numpy.testing.assert_array_equal(one, other, place)
        elif isinstance(found, dict):
            self.assertEqual(list(found), list(expected), place)
            for name in found:
                self.compare(found[name], expected[name], pages, f"{place}.{name}")
        else:
            self.assertEqual(found, expected, place)

    @with_paraview
    def test_pages_are_those_of_paraview(self):
        recording = write_recording(OUTPUT / "random.safetensors")
        files = [TRAINED, recording, DATA / "models" / "induction", DATA / "corpus" / "language-2.safetensors"]
        run(SCENES, *files, OUTPUT / "vtk.html")
        sys.argv[1:] = [*map(str, files), str(OUTPUT / "paraview.html")]
        exec("import sys\n" + SCENES, {"web": web})
        texts = [(OUTPUT / f"{name}.html").read_text(encoding="utf-8") for name in ("vtk", "paraview")]
        pages = [Page(text) for text in texts]
        self.compare(*(page.scenes for page in pages), pages)
        self.assertEqual(*texts)

    def test_command(self):
        page = OUTPUT / "command.html"
        only = "torus,deformed-torus,sphere,map,sentence"
        arguments = ["web", str(TRAINED), str(RECORDING), "--only", only, "--size", "16", "-o", str(page)]
        code = f"from attentionatlas.__main__ import main\nmain({arguments!r})"
        self.assertEqual(run(code).strip(), str(page))
        titles = [scene["title"].split(": ")[1] for scene in Page(page.read_text(encoding="utf-8")).scenes]
        self.assertEqual(titles, ["Torus", "Deformed torus", "Sphere of the unembedding", "Attention map", "Sentence"])

    def test_colors_of_weights(self):
        """White for 0, dark blue for 1, and lighter for less between them."""
        weights = numpy.eye(6) + numpy.diag([0.6, 0.4, 0.2, 0, 0], -1) - numpy.diag([0, 0.6, 0.4, 0.2, 0, 0])
        tensors = {"attention": numpy.float32(weights[None, None]), "token_ids": numpy.arange(6)}
        write_safetensors(OUTPUT / "weights.safetensors", tensors, {"tokens": json.dumps(list("abcdef"))})
        run("web.page(web.attention_map(sys.argv[1]), sys.argv[2])", OUTPUT / "weights.safetensors", OUTPUT / "weights.html")
        page = Page((OUTPUT / "weights.html").read_text(encoding="utf-8"))
        (image,), (legend,) = page.parts("image"), page.scenes[0]["legends"]
        values = page.values(image["pointArrays"]["Weights"])[:, 0]
        colors = page.values(image["colors"])
        numpy.testing.assert_array_equal(values.reshape(6, 6)[::-1], numpy.float32(weights))
        self.assertEqual(numpy.unique(colors[values == 0], axis=0).tolist(), [[255, 255, 255]])
        numpy.testing.assert_allclose(colors[values == 1][0], [0.03 * 255, 0.15 * 255, 0.36 * 255], atol=1)
        for value, color in ((0.2, (0.91, 0.95, 1)), (0.4, (0.62, 0.79, 0.88)), (0.6, (0.26, 0.57, 0.78))):
            numpy.testing.assert_allclose(colors[values == numpy.float32(value)][0], numpy.multiply(color, 255), atol=2)
        self.assertEqual((legend["title"], legend["range"]), ("Weights", [0, 1]))

    def test_widget_and_display(self):
        code = """
with atlas.open(sys.argv[1]) as recording:
    print(len(atlas.widget(recording, layer=4, head=11).scenes))
    print("<iframe" in web.sentence(recording, 4, 11)._repr_html_())
    dataset = recording.dataset("AttentionMap", layer=4, head=11)
    for name, shown in (("map", dataset), ("sentence", web.sentence(recording, 4, 11))):
        atlas.display(shown, 400, 300).save(f"{sys.argv[2]}/{name}.png")
    try:
        atlas.display("map")
    except ValueError as error:
        print(error)
"""
        said = run(code, RECORDING, OUTPUT).splitlines()
        self.assertEqual(said, ["1", "True", "display: expected a scene, a source or a dataset, found str."])
        # In a frame the matrix, its first row on top, and in each cell the color of the weight; at the left and below the tokens.
        weights = read_safetensors(RECORDING)[0]["attention"][4, 11].astype(float)
        pixels = read_picture(OUTPUT / "map.png")[::-1].astype(int)
        self.assertEqual(pixels.shape[:2], (300, 400))
        is_ink = (pixels.max(axis=-1) < 200) & (numpy.ptp(pixels, axis=-1) < 12)  # not the blue of weights
        (low, *_, high), (left, *_, right) = (numpy.flatnonzero(is_ink.sum(axis=1 - axis) > 100) for axis in (0, 1))
        self.assertAlmostEqual(high - low, right - left, delta=2)
        side = (high - low) / len(weights)
        dark = 255 - pixels[..., 0]
        found = [[dark[int(low + (q + 0.5) * side), int(left + (k + 0.5) * side)] for k in range(6)] for q in range(6)]
        for words in (is_ink[low:high, : left - 2], is_ink[high + 2 :, left:right].T):
            self.assertTrue(all(part.any() for part in numpy.array_split(words, 6)))
        order = numpy.argsort(weights, axis=None)
        self.assertTrue((numpy.diff(numpy.ravel(found)[order]) >= 0).all(), found)
        words = read_picture(OUTPUT / "sentence.png")
        self.assertGreater((words.min(axis=-1) < 100).sum(), 300)

    def test_legends_are_off_the_data(self):
        """In a picture of any shape a legend is whole, beside or below what is shown, and small."""
        code = """
with atlas.open(sys.argv[1]) as model:
    dataset = atlas.open(sys.argv[2]).dataset("AttentionMap", layer=4, head=11)
    for name, shown in (("sphere", web.sphere(model)), ("map", dataset)):
        for size in ((400, 400), (500, 400), (300, 500), (900, 600)):
            atlas.display(shown, *size).save(f"{sys.argv[3]}/{name}-{size[0]}-{size[1]}.png")
"""
        run(code, TRAINED, RECORDING, OUTPUT)
        for width, height in ((400, 400), (500, 400), (300, 500), (900, 600)):
            for name in ("sphere", "map"):
                pixels = read_picture(OUTPUT / f"{name}-{width}-{height}.png")[::-1].astype(int)
                border = numpy.concatenate([pixels[[0, -1]].reshape(-1, 3), pixels[:, [0, -1]].reshape(-1, 3)])
                self.assertTrue((border == 255).all(), f"{name} at {width} x {height}")
            # Lines without ink cut the picture of the sphere into the sphere, which is nearly as high as it is wide, and,
            # beside or below it, a title and a square for each class.
            pixels = read_picture(OUTPUT / f"sphere-{width}-{height}.png")[::-1].astype(int)
            ink = (pixels < 250).any(axis=-1)
            is_beside = (width, height) == (900, 600)
            used = numpy.flatnonzero(ink.any(axis=0 if is_beside else 1))
            first = used[numpy.flatnonzero(numpy.diff(used) > 1)[0]] + 1
            sphere, legend = (ink[:, :first], pixels[:, first:]) if is_beside else (ink[:first], pixels[first:])
            high, wide = (numpy.ptp(numpy.flatnonzero(sphere.any(axis=axis))) for axis in (1, 0))
            self.assertLess(abs(high - wide), 0.1 * wide)
            self.assertGreater(min(high, wide), 0.78 * min(width, height))
            for color in PALETTE:
                self.assertGreater((numpy.abs(legend - numpy.array(color)) < 2).all(axis=-1).sum(), 15)
            letters = (legend.max(axis=-1) < 120).any(axis=1).sum()
            self.assertLess(letters, (0.2 if is_beside else 0.1) * height)

    @with_paraview
    def test_a_dataset_is_shown_alike(self):
        code = """
with atlas.open(sys.argv[1]) as recording:
    atlas.display(recording.dataset("AttentionMap", layer=4, head=11), 300, 200).save(sys.argv[2])
"""
        run(code, RECORDING, OUTPUT / "alike.png")
        with attentionatlas.open(RECORDING) as recording:
            shown = attentionatlas.display(recording.dataset("AttentionMap", layer=4, head=11), 300, 200)
        self.assertEqual(shown.png, (OUTPUT / "alike.png").read_bytes())

    def test_pictures_of_surfaces(self):
        """Seen along an axis, each place of the sphere has about the hue of the class with the largest logit there."""
        code = """
with atlas.open(sys.argv[1]) as model:
    scene = web.sphere(model)
    scene.camera.update(position=[5.0, 0.0, 0.0], focalPoint=[0.0, 0.0, 0.0], viewUp=[0.0, 0.0, 1.0], parallelScale=1.0)
    scene.parts, scene.legends = scene.parts[:1], []
    atlas.display(scene, 300, 300).save(sys.argv[2])
"""
        run(code, TRAINED, OUTPUT / "sphere.png")
        pixels = read_picture(OUTPUT / "sphere.png")[::-1].astype(float)
        axis = (numpy.arange(300) - 149.5) / (0.96 * 150)
        x, y = numpy.meshgrid(axis, -axis)
        inside = x * x + y * y < 0.85
        places = numpy.stack([numpy.sqrt(numpy.where(inside, 1 - x * x - y * y, 0)), x, y], axis=-1)
        tensors = read_safetensors(TRAINED)[0]
        classes = (places @ tensors["unembedding"].T.astype(float)).argmax(axis=-1)
        for number in numpy.unique(classes[inside]):
            colors = pixels[inside & (classes == number)]
            hue = numpy.median(colors / numpy.linalg.norm(colors, axis=1)[:, None], axis=0)
            near = (colors / numpy.linalg.norm(colors, axis=1)[:, None] @ hue) > 0.99
            self.assertGreater(near.mean(), 0.9)

    @with_paraview
    def test_article(self):
        """The same seed gives the same article; a state needs ParaView."""
        options = "steps=100, pdf=False, states=False"
        run(f"from attentionatlas import article\narticle.write(sys.argv[1], {options})", OUTPUT / "vtk-article.html")
        article.write(OUTPUT / "article.html", steps=100, pdf=False, states=False)
        texts = [(OUTPUT / f"{name}.html").read_text(encoding="utf-8") for name in ("vtk-article", "article")]
        self.assertEqual(*map(len, texts))
        self.assertTrue(texts[0] == texts[1])

    def test_states_need_paraview(self):
        """Without its program nothing is written, and the command leaves states out and says so; both in one sentence."""
        folder = OUTPUT / "without-states"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        code = """
import os
os.environ["PATH"] = "/nowhere"
from attentionatlas import article
try:
    article.write(sys.argv[1] + "/none.html", steps=100, pdf=False)
except RuntimeError as error:
    print(error)
print(os.listdir(sys.argv[1]))
sys.stderr = sys.stdout
article.main(["-o", sys.argv[1] + "/some.html", "--steps", "100", "--no-pdf"])
"""
        missing = "need ParaView's program pvpython, which was not found"
        self.assertEqual(run(code, folder).splitlines(), [
            f"the states of the article {missing}.", "[]", f"left out: the states of the article: they {missing}",
            str(folder / "some.html"),
        ])
        self.assertEqual([path.name for path in folder.iterdir()], ["some.html"])

    @with_paraview
    def test_states_that_fail(self):
        """What they had begun is gone."""
        folder = OUTPUT / "failed-states"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "bin").mkdir(parents=True)
        program = folder / "bin" / "pvpython"
        program.write_text("#!/bin/sh\necho it broke >&2\nexit 1\n")
        program.chmod(0o755)
        code = """
import os
os.environ["PATH"] = sys.argv[1] + "/bin:" + os.environ["PATH"]
from attentionatlas import article
article.main(["-o", sys.argv[1] + "/some.html", "--steps", "100", "--no-pdf"])
"""
        with self.assertRaisesRegex(AssertionError, "^the states of the article could not be made: it broke\n$"):
            run(code, folder)
        self.assertEqual([path.name for path in folder.iterdir()], ["bin"])

    def test_commands_without_paraview(self):
        """A command that needs no scene starts no ParaView; a scene says that it needs it."""
        site = OUTPUT / "site"
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(
            "import atexit, os, sys\natexit.register(lambda: print('paraview' in sys.modules, file=open(os.environ['ATLAS_SAID'], 'w')))\n")
        environment = {**os.environ, "PYTHONPATH": f"{site}:{os.environ['PYTHONPATH']}", "ATLAS_SAID": str(OUTPUT / "said.txt")}
        for words in (["figures", str(RECORDING), "--only", "weights"], ["findings", "--only", "previous-gpt2"]):
            command = [os.environ["ATLAS_PROGRAM"], *words, "-o", str(OUTPUT / "plain")]
            subprocess.run(command, env=environment, check=True, capture_output=True)
            self.assertEqual((OUTPUT / "said.txt").read_text(), "False\n", words)
        self.assertTrue((OUTPUT / "plain" / "previous-gpt2.pdf").is_file())
        state = OUTPUT / "none.pvsm"
        state.unlink(missing_ok=True)
        with self.assertRaisesRegex(AssertionError, "^attention-atlas scene: A scene needs ParaView: [^.]*\. See the page Scripting of the documentation\.\n$"):
            run(f"from attentionatlas.__main__ import main\nmain({['scene', str(RECORDING), '-o', str(state)]!r})")
        self.assertFalse(state.exists())

    def test_what_needs_paraview(self):
        for code, what in (("web.from_view(None)", "A view"), ("web.scenes()", "A view"), ("import attentionatlas.scene", "A scene")):
            with self.assertRaisesRegex(AssertionError, f"{what} needs ParaView: expected its Python, which is pvpython, found VTK"):
                run(code)


if __name__ == "__main__":
    unittest.main()
