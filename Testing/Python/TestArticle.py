"""The live article in Chromium and Firefox: its numbers beside those of the plugin, its controls, questions and
guesses, its address, its pictures and its states.

The parts in a browser are skipped where there is none.
"""

import base64
import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import atlastest
import firefox
import numpy
from atlastest import AtlasTest
from attentionatlas import article
from chromium import PROGRAM, Chromium
from paraview import simple
from PIL import Image

POINTS, MODELS = 500, 20
NAMES = ("two-tokens", "circle", "torus", "harmonics", "sphere", "heads", "training", "trained")
HOSTILE = "</title><script>document.title='run'</script><img src=x onerror=document.title='run'>"


def random_model(random, tokens, heads, size):
    """The tensors of a small model."""

    def normal(*shape):
        return random.normal(size=shape)

    tensors = {"word_embedding": normal(tokens, 3), "position_embedding": normal(2, 3), "unembedding": normal(tokens, 3)}
    for head in range(heads):
        tensors |= {f"heads.{head}.{name}": normal(size, 3) for name in ("query", "key", "value")}
        tensors[f"heads.{head}.output"] = normal(3, size)
    return tensors


def described(tensors, heads):
    """A model as the page has it, by the formulas of its file."""
    words = tensors["word_embedding"] - tensors["word_embedding"].mean(axis=1, keepdims=True)
    angles = numpy.arctan2(words @ [-1, 2, -1] / 6**0.5, words @ [1, 0, -1] / 2**0.5)
    parts = [angles, tensors["position_embedding"]]
    for head in range(heads):
        query, key, value, output = (tensors[f"heads.{head}.{name}"] for name in ("query", "key", "value", "output"))
        parts += [query.T @ key / len(query) ** 0.5, output @ value]
    numbers = numpy.concatenate([part.ravel() for part in [*parts, tensors["unembedding"]]])
    return {"heads": heads, "tokens": len(words), "numbers": numbers.tolist(), "next": None, "colors": []}


class Case:
    """A random model with random settings, and what the plugin says of it at random points."""

    def __init__(self, seed):
        random = numpy.random.default_rng(seed)
        self.heads, tokens = int(random.integers(3, 7)), int(random.integers(2, 25))
        tensors = random_model(random, tokens, self.heads, int(random.integers(1, 5)))
        self.points = random.uniform(-numpy.pi, numpy.pi, (POINTS, 2))
        temperature = [0.3, 1, 2.5, 0][seed % 4]
        residual = ("EmbeddingPosition", "Embedding", "None")[seed % 3]
        weights = random.uniform(-1, 2, self.heads).tolist()
        self.model = described(tensors, self.heads)
        self.settings = {
            "temperature": temperature,
            "residual": residual,
            "weights": weights,
            "angles": self.model["numbers"][:tokens],
            "waves": [None] * self.heads,
        }
        # The plugin has no temperature: queries are divided by it.
        for head in range(self.heads):
            tensors[f"heads.{head}.query"] /= temperature or 1
        path = atlastest.OUTPUT / f"random-{seed}.safetensors"
        metadata = {"format": "attention-atlas.attention-only", "version": "1"}
        atlastest.write_safetensors(path, tensors, metadata)
        chart = simple.AttentionTorus(
            Input=atlastest.read_model(path),
            Points=atlastest.points_source(self.points),
            Residual=residual,
            HeadWeights=weights,
            Pattern="Softmax" if temperature else "Hardmax",
            Quantities=["Output", "Probability", "Class", "Score", "Attention"],
        )
        arrays = atlastest.point_arrays(chart)
        first, last = (self._of_head(arrays, "Score", head) * (temperature or 1) for head in (0, self.heads - 1))
        columns = [arrays["Output"], arrays["Probability"], first, self._of_head(arrays, "Attention", 0), last]
        self.expected = numpy.column_stack(columns)
        self.classes = arrays["Class"]

    @staticmethod
    def _of_head(arrays, name, head):
        return numpy.asarray(arrays[f"{name} {head}"], float)

    def found(self, browser, shader):
        """What the page says, by its script or by its shader."""
        arguments = [self.model, self.settings, self.points.tolist(), shader]
        values = browser.run(f"window.article.evaluate({', '.join(map(json.dumps, arguments))})")
        return numpy.array(values, float)


class ArticleTest(AtlasTest):
    files = []

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = atlastest.OUTPUT / "made"
        cls.folder.mkdir(exist_ok=True)
        cls.path = cls.folder / "article.html"
        if not ArticleTest.files:  # once for all classes
            sphere = simple.Sphere(registrationName="Of the caller")
            view = simple.CreateView("RenderView")
            simple.Show(sphere, view)
            ArticleTest.files = article.write(cls.path, title=f"Attention {HOSTILE}", pdf=PROGRAM is not None)
            ArticleTest.session = list(simple.GetSources().values()) == [sphere] and simple.GetRenderViews() == [view]


class Values(ArticleTest):
    def check(self, browser):
        """At 10,000 points of 20 random models with random settings."""
        largest = {True: 0.0, False: 0.0}
        for seed in range(MODELS):
            case = Case(seed)
            scale = numpy.maximum(1, numpy.abs(case.expected).max(axis=0))
            for shader in (False, True):
                with self.subTest(seed=seed, shader=shader):
                    found = case.found(browser, shader)
                    difference = numpy.abs(found[:, :-1] - case.expected) / scale
                    # Hardmax jumps where a score is zero but for rounding.
                    near = numpy.abs(case.expected[:, 4:7:2]).min(axis=1) < 1e-4
                    self.assertLess(near.mean(), 0.01)
                    if case.settings["temperature"] == 0:
                        difference = difference[~near & self.same_side(found, case)]
                    self.assertGreater(len(difference), 0.98 * POINTS)
                    largest[shader] = max(largest[shader], difference.max())
                    self.assertLess(difference.max(), 1e-5)
                    sure = case.expected[:, 3] > 0.5 + 1e-3
                    same = found[sure, -1] == case.classes[sure]
                    self.assertGreaterEqual(same.mean(), 1 if case.settings["temperature"] else 0.99)
        print("largest difference:", largest)

    @staticmethod
    def same_side(found, case):
        """Where no head between the first and the last is at its frontier either: its jump is no rounding."""
        return numpy.abs(found[:, :3] - case.expected[:, :3]).max(axis=1) < 0.05

    @unittest.skipUnless(PROGRAM, "needs Chromium")
    def test_chromium(self):
        with Chromium() as browser:
            browser.open(self.path)
            self.check(browser)

    @unittest.skipUnless(firefox.PROGRAM and firefox.websocket, "needs Firefox and python3-websocket")
    def test_firefox(self):
        with firefox.Firefox() as browser:
            browser.open(self.path)
            self.assertEqual(browser.run("document.documentElement.dataset.error ?? null"), None)
            self.check(browser)


@unittest.skipUnless(PROGRAM, "needs Chromium")
class Reading(ArticleTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = cls.enterClassContext(Chromium())

    def open(self, asks="", still=True):
        self.browser.resize(1300, 900)
        value = "reduce" if still else "no-preference"
        features = [{"name": "prefers-reduced-motion", "value": value}, {"name": "prefers-color-scheme", "value": "light"}]
        self.browser.call("Emulation.setEmulatedMedia", features=features)
        self.browser.open(self.path, asks)
        self.assertEqual(self.browser.state("error"), None)
        self.assertEqual(self.browser.console, [])

    def chapter(self, name, script):
        """The value of a script about a chapter."""
        return self.browser.run(f"(chapter => {script})(window.article.chapters.find(({{name}}) => name === '{name}'))")

    def shown(self, name):
        """What the canvases of a chapter show."""
        self.browser.run(f"document.getElementById('{name}').scrollIntoView()")
        self.browser.settle()
        pictures = self.browser.run(
            f"[...document.querySelectorAll('#{name} canvas')].map(canvas => {{ canvas.view.draw(); return canvas.toDataURL(); }})"
        )
        read = [Image.open(io.BytesIO(base64.b64decode(picture.split(",")[1]))) for picture in pictures]
        return [numpy.asarray(picture.convert("RGBA")).astype(int) for picture in read]

    def assert_same(self, pictures, expected):
        """The same but for a few pixels at the edges of what is drawn."""
        for found, picture in zip(pictures, expected, strict=True):
            self.assertLess((numpy.abs(found - picture).max(axis=-1) > 24).mean(), 0.001)

    def test_page(self):
        """One file below 4 MB that asks for no network, whose title is no element."""
        self.open()
        text = self.path.read_text(encoding="utf-8")
        self.assertLess(len(text.encode()), 4_000_000)
        self.assertNotIn("<img src=x", text)
        self.assertEqual(self.browser.run("document.title"), f"Attention {HOSTILE}")
        self.assertEqual(self.browser.run("performance.getEntriesByType('resource').length"), 0)
        self.assertEqual(
            self.browser.run("[...document.querySelectorAll('section.chapter[data-controls]')].map(({id}) => id)"),
            list(NAMES),
        )

    def test_hostile_tokens(self):
        """Tokens become no elements."""
        self.open()
        token = "<img src=x onerror=document.title=1>"
        self.chapter(
            "trained",
            f"{{ chapter.page.model.run.tokens.fill({json.dumps(token)}); chapter.setCell([3, 2]); chapter.update(); }}",
        )
        self.browser.settle()
        self.assertIn(token, self.browser.run("document.querySelector('#trained .readout').textContent"))
        self.assertEqual(self.browser.run("document.querySelectorAll('.readout *').length"), 0)
        self.assertEqual(self.browser.console, [])

    def test_controls(self):
        """Each control changes the pictures and the address, which gives the same pictures back; Reset undoes it."""
        for name in NAMES:
            self.open()
            self.chapter(name, "chapter.touch({})")  # the text does not move it from now on
            before = self.shown(name)
            controls = self.browser.run(
                f"[...document.querySelectorAll('#{name} .control input, #{name} .control select')].map(({{id}}) => id)"
            )
            for control in controls:
                with self.subTest(control):
                    self.browser.run(
                        f"""(() => {{
                        const control = document.getElementById('{control}');
                        if (control.type === 'checkbox') return control.click();
                        if (control.tagName === 'SELECT') control.value = String((Number(control.value) + 1) % control.options.length);
                        else control.value = String(Number(control.value) > (Number(control.min) + Number(control.max)) / 2 ? control.min : control.max);
                        control.dispatchEvent(new Event(control.tagName === 'SELECT' ? 'change' : 'input', {{bubbles: true}}));
                    }})()"""
                    )
                    # The address is written a little later.
                    setting = control.removeprefix(f"{name}-")
                    value = self.chapter(name, f"String(chapter.values['{setting}'])")
                    self.browser.wait(
                        f"location.hash.includes('chapter={name}') && location.hash.includes('&{setting}={value}')"
                    )
                    moved = self.shown(name)
                    self.assertTrue(any((a != b).any() for a, b in zip(moved, before, strict=True)))
                    if control in (controls[0], controls[-1]):
                        self.open(self.browser.run("location.hash.slice(1)"))
                        self.assert_same(self.shown(name), moved)
                    self.browser.run(
                        f"[...document.querySelectorAll('#{name} .controls > button')].find(({{textContent}}) => textContent === 'Reset').click()"
                    )
                    self.assertTrue(
                        self.chapter(
                            name,
                            "Object.entries(chapter.defaults).every(([name, value]) => chapter.values[name] === value)",
                        )
                    )
                    self.chapter(name, "chapter.touch({})")
                    self.assert_same(self.shown(name), before)

    def test_address_out_of_range(self):
        """What no control can say is brought into its range."""
        self.open("chapter=two-tokens&temperature=-7&head=99&angle0=NaN&weight0=1e9&point=1,Infinity&unknown=3")
        values = self.chapter("two-tokens", "chapter.values")
        self.assertEqual((values["temperature"], values["head"], values["weight0"]), (0, 2, 3))
        self.assertEqual(self.browser.run("window.article.point"), [0.6, -0.9])

    def test_questions(self):
        """No question is answered at first, and 'Show me' answers each."""
        self.open()
        questions = self.browser.run(
            "[...document.querySelectorAll('.question')].map(question => [question.closest('section').id, question.dataset.question])"
        )
        self.assertEqual(len(questions), 16)
        for name, question in questions:
            with self.subTest(question):
                place = f"document.querySelector('[data-question={question}]')"
                self.assertFalse(self.browser.run(f"{place}.classList.contains('met')"))
                self.browser.run(f"{place}.querySelector('button').click()")
                self.browser.settle()
                self.assertTrue(self.browser.run(f"{place}.classList.contains('met')"))
                self.assertIn("\N{CHECK MARK}", self.browser.run(f"{place}.querySelector('output').textContent"))

    def test_guesses(self):
        """A guess shows what comes after it, and says whether it was right."""
        self.open()
        guesses = self.browser.run(
            "[...document.querySelectorAll('fieldset[data-answer]')].map(({dataset}) => [dataset.answer, dataset.reveal])"
        )
        self.assertEqual(len(guesses), 4)
        for answer, reveal in guesses:
            with self.subTest(reveal):
                place = f"document.querySelector('[data-reveal={reveal}]')"
                self.assertTrue(self.browser.run(f"document.getElementById('{reveal}').hidden"))
                self.browser.run(f"{place}.querySelector('input:not([value={answer}])').click()")
                self.assertFalse(self.browser.run(f"document.getElementById('{reveal}').hidden"))
                self.assertEqual(self.browser.run(f"{place}.querySelector('.answer').textContent"), "Not so.")
                self.browser.run(f"{place}.querySelector('input[value={answer}]').click()")
                self.assertIn("Right", self.browser.run(f"{place}.querySelector('.answer').textContent"))
        self.browser.settle()
        self.assertEqual(self.chapter("two-tokens", "chapter.values.temperature"), 0)  # the reveal moved the picture

    def test_scrolling(self):
        """The text moves the pictures, but not what the reader has moved."""
        self.open()
        steps = "document.querySelectorAll('#torus .text > [data-set]')"
        for number, shape in ((2, 2), (0, 0)):
            self.browser.run(f"{steps}[{number}].scrollIntoView({{block: 'center'}})")
            self.browser.wait(f"window.article.chapters.find(({{name}}) => name === 'torus').values.shape === {shape}")
        self.chapter("torus", "chapter.touch({shape: 1.5})")
        self.browser.run(f"{steps}[2].scrollIntoView({{block: 'center'}})")
        self.browser.settle()
        self.assertEqual(self.chapter("torus", "chapter.values.shape"), 1.5)

    def test_linked_point(self):
        """A point in one picture is the point in all, at its angles; keys move it too."""
        self.open()
        self.shown("circle")
        left, top, right, bottom = self.browser.rectangle("#circle canvas[data-view=map]")
        # The square lies within the margins of the axes.
        x, y = left + 44 + 0.75 * (right - left - 54), top + 10 + 0.25 * (bottom - top - 44)
        self.browser.point(x, y)
        expected = [numpy.pi / 2, numpy.pi / 2]
        numpy.testing.assert_allclose(self.browser.run("window.article.point"), expected, atol=0.03)
        self.browser.wait("location.hash.includes(`point=${window.article.point.join(',')}`)")
        self.browser.run("document.querySelector('#circle canvas[data-view=map]').focus()")
        before = self.browser.run("window.article.point")
        self.browser.press("ArrowLeft")
        self.browser.press("ArrowUp")
        numpy.testing.assert_allclose(self.browser.run("window.article.point"), numpy.add(before, [-0.05, 0.05]))

    def test_point_in_space(self):
        """A click on the surface chooses the angles whose place is drawn there, and one on the sphere those whose
        output has that direction."""
        self.open("chapter=torus&shape=1")
        self.shown("torus")
        view = "document.querySelector('#torus canvas[data-view=space]').view"
        theta = [-1.1, 0.4]
        # The place of the point by the formula of the torus, seen by the camera of the view.
        place = self.browser.run(
            f"""(() => {{
            const {{area, look}} = {view}.last, [t1, t2] = {theta};
            const r = 1 + 0.42 * Math.cos(t2), p = [r * Math.cos(t1) / 1.3, r * Math.sin(t1) / 1.3, 0.42 * Math.sin(t2) / 1.3];
            const seen = look.camera.slice(0, 2).map(row => row[0] * p[0] + row[1] * p[1] + row[2] * p[2]);
            const box = {view}.canvas.getBoundingClientRect();
            return [box.left + (area.x + (seen[0] * look.zoom[0] + 1) / 2 * area.width) / area.ratio,
                    box.top + (area.y + (1 - seen[1] * look.zoom[1]) / 2 * area.height) / area.ratio];
        }})()"""
        )
        self.browser.point(*place)
        numpy.testing.assert_allclose(self.browser.run("window.article.point"), theta, atol=0.06)
        found = self.chapter(
            "sphere",
            """(() => {
            const {output} = chapter.evaluator.at(0.3, 1.9), size = Math.hypot(...output);
            chapter.pointAtDirection(output.map(value => value / size));
            const again = chapter.evaluator.at(...window.article.point).output;
            return [output.reduce((sum, value, i) => sum + value * again[i], 0) / size / Math.hypot(...again), chapter.away];
        })()""",
        )
        self.assertGreater(found[0], 0.9999)
        self.assertEqual(found[1], "")

    def test_map(self):
        """The map has the colors of the plugin's own chart at the same points."""
        self.open()
        self.shown("training")
        size = 256
        pixels = self.browser.run(
            f"""(() => {{
            const {{painter, model}} = window.article, chapter = window.article.chapters[1];
            painter.begin({size}, {size});
            painter.drawSurface(chapter.evaluator, {{camera: [[1, 0, 0], [0, 0, 1], [0, -1, 0]], zoom: [1, 1], isFlat: true}});
            const bytes = new Uint8Array({4 * size * size});
            painter.gl.readPixels(0, 0, {size}, {size}, painter.gl.RGBA, painter.gl.UNSIGNED_BYTE, bytes);
            return Array.from(bytes);
        }})()"""
        )
        found = numpy.array(pixels).reshape(-1, 4)[:, :3]
        angles = -numpy.pi + (numpy.arange(size) + 0.5) * 2 * numpy.pi / size
        theta = numpy.stack(numpy.meshgrid(angles, angles), axis=-1).reshape(-1, 2)
        model = atlastest.read_model(self.folder / "article" / "model.safetensors")
        chart = simple.AttentionTorus(Input=model, Points=atlastest.points_source(theta), Quantities=["ClassColor"])
        expected = atlastest.point_arrays(chart)["ClassColor"].astype(int)
        near = numpy.abs(found - expected).max(axis=1) <= 3
        self.assertGreater(near.mean(), 0.97)  # but for pixels of a border, which are smoothed

    def test_motion(self):
        """The boundary moves at first, until it is paused, and not where the reader wants no motion."""
        for still in (True, False):
            self.open(still=still)
            self.browser.run("document.getElementById('hero').scrollIntoView()")
            waves = "JSON.stringify(window.article.hero.settings.waves[0])"
            first = self.browser.run(waves)
            if still:
                self.browser.settle()
                self.assertEqual(self.browser.run(waves), first)
            else:
                self.browser.wait(f"{waves} !== {json.dumps(first)}")
                self.browser.run("document.getElementById('hero-play').click()")
                self.browser.settle()
                paused = self.browser.run(waves)
                self.browser.settle()
                self.assertEqual(self.browser.run(waves), paused)

    def test_scenes(self):
        """The scenes of the trained transformer are drawn in their frames."""
        self.open()
        for name in ("embedding", "sentence", "composition"):
            self.browser.run(f"document.querySelector('[data-scene={name}]').scrollIntoView()")
            self.browser.wait(f"document.querySelector('[data-scene={name}] iframe') !== null")
        self.browser.settle()
        self.assertEqual(self.browser.console, [])
        self.assertGreater(
            self.browser.run("document.querySelector('[data-scene=embedding] iframe').srcdoc.length"), 400_000
        )
        for theme in ("dark", "system"):
            self.browser.run(
                f"(t => {{ t.value = '{theme}'; t.dispatchEvent(new Event('change')); }})(document.getElementById('theme'))"
            )
            text = self.browser.run("document.querySelector('[data-scene=embedding] iframe').srcdoc.slice(0, 200)")
            self.assertIn(f'data-theme="{theme}"', text)

    def test_phone(self):
        """On a phone nothing is wider than the screen, and a tap on a map moves the point."""
        self.open()
        self.browser.resize(390, 844, phone=True)
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 390)
        self.shown("two-tokens")
        left, top, right, bottom = self.browser.rectangle("#two-tokens canvas")
        self.browser.run("document.querySelector('#two-tokens canvas').scrollIntoView({block: 'center'})")
        left, top, right, bottom = self.browser.rectangle("#two-tokens canvas")
        before = self.browser.run("window.article.point")
        self.browser.tap((left + right) / 2, (top + bottom) / 2)
        self.assertNotEqual(self.browser.run("window.article.point"), before)

    def test_print(self):
        """The PDF file has the text of all chapters and their pictures."""
        pdf = self.path.with_suffix(".pdf")
        text = subprocess.run(["pdftotext", "-layout", str(pdf), "-"], capture_output=True, text=True, check=True).stdout
        for number in range(1, 9):
            self.assertRegex(text, rf"(?m)^\W*{number}\. [A-Z]")
        self.assertNotIn("Show me", text)
        subprocess.run(["pdftoppm", "-r", "30", "-png", str(pdf), str(atlastest.OUTPUT / "page")], check=True)
        pages = sorted(atlastest.OUTPUT.glob("page-*.png"))
        self.assertGreater(len(pages), 5)
        colored = 0
        for page in pages:
            pixels = numpy.asarray(Image.open(page).convert("RGB")).astype(int)
            colored += (pixels.max(axis=-1) - pixels.min(axis=-1) > 80).mean() > 0.02
        self.assertGreaterEqual(colored, 5)


class Files(ArticleTest):
    def test_session(self):
        """What the caller had is there as it was, and nothing beside it."""
        self.assertTrue(ArticleTest.session)

    def test_states(self):
        """The states beside the page open wherever the folder is, and show data of the files beside them."""
        folder = atlastest.OUTPUT / "a reader's folder"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(self.folder / "article", folder)
        self.addCleanup(shutil.move, folder, self.folder / "article")
        for name in (*NAMES, "composition"):
            with self.subTest(name):
                simple.ResetSession()
                self.start_session()
                self.assertNotIn(str(self.folder), (folder / f"{name}.pvsm").read_text(encoding="utf-8"))
                simple.LoadState(str(folder / f"{name}.pvsm"), data_directory=str(folder))
                files = [
                    path
                    for source in simple.GetSources().values()
                    for key in ("FileName", "FileNames", "ModelFile")
                    if source.GetProperty(key) is not None
                    for path in numpy.atleast_1d(source.GetPropertyValue(key)).tolist()
                ]
                self.assertTrue(files)
                self.assertEqual({pathlib.Path(path).is_relative_to(folder) for path in files}, {True}, files)
                shown = [
                    view
                    for view in simple.GetRenderViews()
                    if any(getattr(one, "Visibility", 0) for one in view.Representations)
                ]
                self.assertTrue(shown or name == "harmonics")
                for view in simple.GetViews():
                    self.assertIsNotNone(simple.GetLayout(view))
                for view in shown:
                    simple.Render(view)
        text = self.path.read_text(encoding="utf-8")
        self.assertIn('href="article/circle.pvsm"', text)

    def test_wrong_input(self):
        """One error, which says what was expected, and no file."""
        random = numpy.random.default_rng(0)
        folder = atlastest.OUTPUT
        about = {"format": "attention-atlas.attention-only", "version": "1"}

        def write(**given):
            return lambda: article.write(**{"path": folder / "none.html", "pdf": False, **given})

        def model(heads, tokens):
            path = folder / f"{heads}-{tokens}.safetensors"
            atlastest.write_safetensors(path, random_model(random, tokens, heads, 2), about)
            return write(model=path)

        self.assert_raise(
            (model(2, 5), "expected a model with 3 to 8 heads, found 2"),
            (model(3, 30), "2 to 24 tokens, found 30"),
            (model(3, 5), "expected a model with next_token, found none"),
            (write(model=atlastest.DATA / "recordings" / "language-2.safetensors"), "small .* model, found a recording"),
            (write(model=folder / "missing.safetensors"), "no such file", FileNotFoundError),
            (write(transformer=atlastest.TRAINED), "expected a transformer, found a model"),
            (write(steps=1), "steps"),
            (write(theme="pink"), "theme: expected system, light, dark"),
            (write(path=folder / "page.txt"), "ends with .html"),
        )
        self.assertEqual(list(folder.glob("none*")), [])

    def test_same_bytes(self):
        """The same seed gives the same page."""
        texts = []
        for name in ("a", "b"):
            (path,) = article.write(atlastest.OUTPUT / f"{name}.html", steps=100, pdf=False, states=False)
            texts.append(path.read_bytes())
        self.assertEqual(*texts)

    def test_without_browser(self):
        """Without Chromium the command writes the page, and says what it left out."""
        path, errors = os.environ["PATH"], io.StringIO()
        try:
            os.environ["PATH"] = "/nowhere"
            with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
                article.main(["-o", str(atlastest.OUTPUT / "plain.html"), "--steps", "100", "--no-states"])
        finally:
            os.environ["PATH"] = path
        self.assertIn("left out: the PDF file: no Chromium browser found", errors.getvalue())
        self.assertTrue(pathlib.Path(atlastest.OUTPUT / "plain.html").is_file())
