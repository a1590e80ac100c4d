"""Web pages in a browser: headless Chromium draws them, without an error, in the colors of the tokens. They are
pointed at, tapped, walked through by keys, searched, and read as tables.

Skipped where there is no Chromium.
"""

import csv
import json
import re
import time
import unittest

import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import web
from attentionatlas._internal import data
from chromium import PROGRAM, Chromium
from figuretest import Expected
from paraview import servermanager, simple
from randomrecording import TOKENS, attention_of, write_recording, write_text
from webpages import Page, pair_angles

HOSTILE = [
    "</script><script>document.title='run'</script>", "<img src=x onerror=document.title='run'>", " the", " The",
    "&amp;", "<b>",
]


#: The texts of the rows of the table.
CELLS = """[...document.querySelectorAll("#sheet tr")].map(row => [...row.children].map(cell => cell.textContent))"""


def value(text):
    """The number that a page writes."""
    return float(text.replace("\N{MINUS SIGN}", "-"))


def shown(token):
    """A token as a page writes it: spaces before it as dots, and line breaks."""
    return re.sub("^ +", lambda spaces: len(spaces[0]) * "\N{MIDDLE DOT}", token.replace("\n", "\\n"))


def separate(a, b):
    """Whether two rectangles do not meet."""
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@unittest.skipUnless(PROGRAM, "needs Chromium")
class Browser(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = cls.enterClassContext(Chromium())
        cls.recording = write_recording(atlastest.OUTPUT / "random.safetensors")

    def setUp(self):
        super().setUp()
        self.browser.resize()
        self.browser.prefer("light")

    def open(self, path, asks=""):
        """Opens a page, which draws its scene without a message."""
        self.browser.open(path, asks)
        self.assertEqual(self.browser.state("error"), None)
        self.assertEqual(self.browser.console, [])

    def page(self, name, scenes, asks="", **options):
        path = atlastest.OUTPUT / f"{name}.html"
        web.page(scenes, path, **options)
        self.open(path, asks)
        return path

    def place(self, across, down):
        """A place of the stage, as shares of its width and height, in the window."""
        left, top, right, bottom = self.browser.rectangle("#stage")
        return left + across * (right - left), top + down * (bottom - top)

    def point(self, across, down):
        """What the box says of a place of the stage under the pointer."""
        self.browser.point(*self.place(across, down))
        return self.browser.state("item")

    def stage(self, name):
        """The pixels of the stage within its border, rows from the top."""
        path = atlastest.OUTPUT / f"{name}.png"
        self.browser.picture(path)
        left, top, right, bottom = (round(v) for v in self.browser.rectangle("#stage"))
        return atlastest.read_picture(path)[::-1][top:bottom, left:right]

    def text(self, name):
        return self.browser.run(f"document.getElementById('{name}').textContent")

    def click(self, name):
        self.browser.run(f"document.getElementById('{name}').click()")
        self.browser.settle()

    def downloaded(self, name, pattern):
        """The rows of the one file that the page then leaves in a folder."""
        folder = atlastest.OUTPUT / name
        for earlier in folder.glob("*.csv"):
            earlier.unlink()
        self.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        self.click("csv")
        end = time.monotonic() + 30
        while not list(folder.glob(pattern)) and time.monotonic() < end:
            time.sleep(0.05)
        (file,) = folder.glob(pattern)
        with file.open(newline="", encoding="utf-8") as opened:
            return list(csv.reader(opened))

    def focused(self):
        return self.browser.run("document.activeElement.id")

    def test_torus(self):
        """The picture has the colors of the tokens to the byte, and the pointer finds the class below it."""
        path = self.page("torus", web.torus(atlastest.TRAINED, size=256))
        self.assertEqual(self.browser.state("points"), str(256 * 256 + 25))
        stage = self.stage("torus")
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
        self.assertIn(f"Class: {expected[0]}", self.point(0.5, 0.55))

    def test_search_and_hostile_tokens(self):
        """A search finds the tokens with a text, and no token becomes an element."""
        tokens = (HOSTILE * 5)[:30]
        path = write_recording(atlastest.OUTPUT / "hostile.safetensors", tokens)
        scenes = [web.sentence(path, layer=0, head=1), web.head_embedding(path, 0, 1, 3, Perplexity=10, Iterations=100)]
        page = self.page("hostile", scenes, "scene=1&search=THE", theme="dark")
        state = self.browser.state
        self.assertEqual(state("found"), "20")  # queries and keys of " the" and " The"
        self.assertEqual(self.text("found"), "20 of 60 points")
        self.assertEqual((state("points"), state("scene")), ("60", "1"))
        self.assertGreater(int(state("labels")), 10)
        self.assert_no_token_is_an_element()
        stage = self.stage("hostile")
        background = stage[2, 2]
        self.assertLess(background.max(), 40)  # dark
        self.assertGreater((numpy.abs(stage - background).max(axis=-1) > 40).sum(), 500)

        self.open(page, "scene=0&search=<b>")
        self.assertEqual(state("found"), "2")  # once as a query, once as a key
        self.assert_no_token_is_an_element()

    def assert_no_token_is_an_element(self):
        """Nor with the box of an item and the table."""
        self.browser.run("document.getElementById('stage').focus()")
        self.browser.press("ArrowRight")
        self.click("table")
        rows = self.browser.run(CELLS)
        self.assertTrue(set(HOSTILE) & {cell for row in rows for cell in row})
        tags = self.browser.run("['img', 'script', 'b'].map(tag => document.body.querySelectorAll(tag).length)")
        legends = self.browser.run("document.querySelectorAll('.legend > b').length")
        self.assertEqual(tags, [0, 3, legends])
        self.assertEqual(self.browser.run("document.title"), "Attention Atlas")

    def test_typing(self):
        """A search begins when the typing pauses, and draws only what it changes."""
        self.page("typing", web.deformed_torus(atlastest.TRAINED, 32))
        built = int(self.browser.state("built"))
        self.browser.run("document.getElementById('search').focus()")
        # All letters in one task of the page: between keys that the test presses, a slow machine makes pauses.
        self.browser.run("[...'1213'].forEach(letter => document.execCommand('insertText', false, letter))")
        self.browser.wait("document.documentElement.dataset.found === '0'")  # no token has this number
        self.assertEqual(int(self.browser.state("built")), built + 1)  # the pairs once, and not the surface
        time.sleep(0.4)
        self.assertEqual(int(self.browser.state("built")), built + 1)

    def test_tap(self):
        """A tap shows the box of an item, which it does not cover, until a tap elsewhere; a phone has room for it."""
        self.browser.resize(390, 844, phone=True)
        self.page("tap", web.attention_map(self.recording, layer=0, head=1))
        width = self.browser.run("document.documentElement.scrollWidth")
        self.assertLessEqual(width, 390)
        self.browser.run("document.getElementById('stage').scrollIntoView()")
        weights = self.weights(0, 1)
        for across, down in ((0.5, 0.5), (0.6, 0.6), (0.7, 0.4)):
            x, y = self.place(across, down)
            self.browser.tap(x, y)
            item = re.fullmatch(r"Weights: (\S+); Query: (.*); Key: (.*)", self.browser.state("item"))
            query, key = (self.shown_tokens().index(name) for name in item.groups()[1:])
            places = numpy.argwhere(numpy.isclose(weights, value(item[1]), rtol=1e-3, atol=1e-12))
            tokens = [tuple(TOKENS[i] for i in place) for place in places]
            self.assertIn((TOKENS[query], TOKENS[key]), tokens)
            self.assertTrue(separate(self.browser.rectangle("#box"), [x - 8, y - 8, x + 8, y + 8]))
            self.assertIn(item[0], self.text("announced"))
            self.assertGreater(self.browser.run("document.getElementById('mark').width"), 0)
        self.browser.picture(atlastest.OUTPUT / "tap.png")
        self.click("closer")
        self.assertEqual(self.browser.state("item"), item[0])  # it stays
        self.click("reset")
        self.browser.tap(*self.place(0.01, 0.99))
        self.assertEqual(self.browser.state("item"), None)
        self.assertTrue(self.browser.run("document.getElementById('box').hidden"))

    def shown_tokens(self):
        """The tokens of the recording as a page writes them."""
        return [token.replace(" ", "\N{MIDDLE DOT}") for token in TOKENS[:10]]

    def weights(self, layer, head):
        """The causal attention of the first sequence."""
        return attention_of(self.recording, layer, head, slice(10))

    def test_keys(self):
        """Tab leads into the scene, arrows step through the items that are announced, Escape leaves."""
        self.page("keys", web.torus(atlastest.TRAINED, size=64))
        tensors, _ = atlastest.read_safetensors(atlastest.TRAINED)
        for _ in range(20):
            self.browser.press("Tab")
            if self.focused() == "stage":
                break
        self.assertEqual(self.focused(), "stage")
        count = len(tensors["word_embedding"])
        for step in range(7):
            first, second = divmod(step, count)
            item = self.browser.state("item")
            self.assertTrue(item.startswith(f"First: {first}; Second: {second}; Target: "), item)
            self.assertIn(f"Target: {tensors['next_token'][first, second]};", item)
            self.assertEqual(self.text("announced"), f"Token Pairs: 25 points, number {step + 1}. {item}")
            # The mark lies around the pair on the map, and the box beside it.
            place = self.pair_on_screen(step)
            ring = self.mark_near(*place)
            self.assertGreater(ring, 40)
            x, y = place
            self.assertTrue(separate(self.browser.rectangle("#box"), [x - 8, y - 8, x + 8, y + 8]))
            self.browser.press("ArrowRight")
        self.browser.press("End")
        self.assertIn("number 25.", self.text("announced"))
        self.browser.press("ArrowRight")
        self.assertIn("number 1.", self.text("announced"))
        # The map itself: by columns and rows.
        self.browser.press("PageDown")
        for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
            self.browser.press(key)
        self.assertIn(f"Attention Torus: 4,096 points, number {64 + 3}.", self.text("announced"))
        theta = -numpy.pi + numpy.array([[2, 1]]) * 2 * numpy.pi / 63
        classes, probability = Expected(atlastest.TRAINED, theta).classes()
        self.assertIn(f"Class: {classes[0]}; Probability: {probability[0]:.4g}", self.browser.state("item"))
        self.browser.press("Escape")
        self.assertEqual((self.browser.state("item"), self.focused()), (None, "table"))

    def pair_on_screen(self, number):
        """Where a pair of the torus is in the window. The map is a square in the middle with a margin of 6 percent."""
        left, top, right, bottom = self.browser.rectangle("#stage")
        across, up = pair_angles()[number] / (2 * numpy.pi)
        side = (bottom - top) / 1.06
        return (left + right) / 2 + across * side, (top + bottom) / 2 - up * side

    def mark_near(self, x, y):
        """How many pixels of the mark have its color within 16 pixels of a place."""
        left, top, _, _ = self.browser.rectangle("#stage")
        return self.browser.run(
            f"(() => {{ const d = document.getElementById('mark').getContext('2d')"
            f".getImageData({round(x - left) - 16}, {round(y - top) - 16}, 33, 33).data; let n = 0;"
            "for (let i = 0; i < d.length; i += 4) n += d[i + 3] > 200 && d[i] < 40 && d[i + 2] > 150; return n; })()"
        )

    def test_table(self):
        """The table has the values of the model by pages, and the file all of them with all digits."""
        self.page("table", web.torus(atlastest.TRAINED, size=64))
        self.assertTrue(self.browser.run("document.getElementById('rows').hidden"))
        self.click("table")
        heads, *rows = self.browser.run(CELLS)
        self.assertEqual(heads[:5], ["Point", "First", "Second", "Target", "Predicted"])
        tensors, _ = atlastest.read_safetensors(atlastest.TRAINED)
        classes, probability = Expected(atlastest.TRAINED, pair_angles()).classes()
        named = [dict(zip(heads, row)) for row in rows]
        for number, row in enumerate(named):
            place = divmod(number, 5)
            self.assertEqual((row["First"], row["Second"]), tuple(map(str, place)))
            self.assertEqual(row["Target"], str(tensors["next_token"][place]))
            self.assertEqual(row["Predicted"], str(classes[number]))
        found = [value(row["Probability"]) for row in named]
        numpy.testing.assert_allclose(found, probability, atol=6e-5)
        found = [[value(row["x"]), value(row["y"])] for row in named]
        numpy.testing.assert_allclose(found, pair_angles(), atol=6e-4)
        self.assertEqual(self.text("table-caption"), "Torus. Token Pairs: 25 points")
        self.browser.picture(atlastest.OUTPUT / "table.png")
        self.browser.run("document.querySelectorAll('#cells button')[7].click()")
        self.assertIn(f"First: 1; Second: 2; Target: {tensors['next_token'][1, 2]}", self.browser.state("item"))
        self.assertGreater(self.browser.run("document.getElementById('mark').width"), 0)
        self.assertIn("First: 1; Second: 2", self.text("announced"))

        self.choose("kind", 1)
        self.assertEqual(self.text("shown-rows"), "1 to 100 of 4,096")
        for _ in range(40):
            self.click("next")
        self.assertEqual(self.text("shown-rows"), "4,001 to 4,096 of 4,096")
        self.assertTrue(self.browser.run("document.getElementById('next').disabled"))
        self.assertEqual(self.browser.run(CELLS)[-1][0], "4095")

        heads, *rows = self.downloaded("downloads", "attention-torus.csv")
        self.assertEqual(heads, ["Point", "Class", "Probability", "x", "y"])
        rows = numpy.array(rows, float)
        steps = numpy.linspace(-numpy.pi, numpy.pi, 64)
        theta = numpy.stack(numpy.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
        classes, probability = Expected(atlastest.TRAINED, theta).classes()
        numpy.testing.assert_array_equal(rows[:, 0], numpy.arange(4096))
        same = rows[:, 1] == classes
        self.assertGreater(same.mean(), 0.999)  # but for ties in single precision
        numpy.testing.assert_allclose(rows[same, 2], probability[same], atol=1e-4)
        numpy.testing.assert_allclose(rows[:, 3:], theta, atol=1e-6)

    def test_texts_are_no_formulas(self):
        """A spreadsheet would compute what begins like a formula."""
        formulas = ["=1+1", "+1", "-1", "@sum"]
        path = write_recording(atlastest.OUTPUT / "formulas.safetensors", ([*formulas, "plain"] * 6)[:30])
        self.page("formulas", web.sentence(path, layer=0, head=0))
        self.click("table")
        cells = set()
        for kind in self.browser.run("[...document.getElementById('kind').options].map(option => option.value)"):
            self.choose("kind", kind)
            cells.update(cell for row in self.downloaded(f"formulas/{kind}", "*.csv") for cell in row)
        self.assertIn("plain", cells)
        self.assertLessEqual({f"'{text}" for text in formulas}, cells)
        self.assertFalse({"=1+1", "+1", "@sum"} & cells)

    def choose(self, name, value):
        """Chooses a value of a list."""
        self.browser.run(
            f"(l => {{ l.value = '{value}'; l.dispatchEvent(new Event('change')); }})(document.getElementById('{name}'))"
        )
        self.browser.settle()

    def on_screen(self, scene, place):
        """Where a place of a flat scene is in the window."""
        left, top, right, bottom = self.browser.rectangle("#stage")
        width, height = right - left, bottom - top
        extent = scene["camera"]["extent"]
        scale = height / 2 / max(extent[1], extent[0] * height / width)
        across, up = scale * (numpy.asarray(place)[:2] - scene["camera"]["focalPoint"][:2])
        return (left + right) / 2 + across, (top + bottom) / 2 - up

    def disc_on_screen(self, page, layer, head):
        """Where the disc of a head is in the window."""
        scene = page.scenes[0]
        discs = next(part for part in scene["parts"] if "Cluster" in part.get("cellArrays", {}))
        layers, heads = (page.values(discs["pointArrays"][name])[:, 0] for name in ("Layer", "Head"))
        return self.on_screen(scene, page.values(discs["points"])[(layers == layer) & (heads == head)].mean(axis=0))

    def assert_shows_head(self, layer, head):
        """In the list, the tabs, and, if its scene is open, with the words of its texts and its table of tokens."""
        run, key = self.browser.run, f"{layer}-{head}"
        self.assertEqual((self.browser.state("head"), run("document.getElementById('head').value")), (key, key))
        title = f"Top contexts: layer {layer}, head {head}"
        self.assertEqual(run("document.getElementById('tab-1').textContent"), title)
        if self.browser.state("scene") != "1":
            return
        self.assertEqual(self.text("scene-title"), title)
        place = {"Input": self.corpus, "Layer": layer, "Head": head}
        texts = simple.TopContexts(Top=3, **place)
        texts.UpdatePipeline()
        words = servermanager.Fetch(texts, idx=1).GetPointData().GetAbstractArray("Token")
        expected = [shown(words.GetValue(i)) for i in range(words.GetNumberOfValues())]
        self.choose("kind", 0)
        heads, *rows = run(CELLS)
        self.assertEqual([row[heads.index("Token")] for row in rows], expected)
        self.choose("kind", 1 + self.has_marks)
        heads, *rows = run(CELLS)
        tokens = data.table(simple.HeadTokenTable(Top=50, **place))
        self.assertEqual([row[heads.index("Token")] for row in rows], [shown(token) for token in tokens["Token"]])
        found = [value(row[heads.index("To Total")]) for row in rows]
        numpy.testing.assert_allclose(found, tokens["To Total"], rtol=6e-4)

    def test_heads(self):
        """A head that is chosen at its disc, by a key, in the table, the list or the address is shown by all scenes."""
        file = atlastest.DATA / "corpus" / "language-2.safetensors"
        self.corpus = simple.CorpusReader(FileName=str(file))
        scenes = [web.scatter(file), web.contexts(file, 0, 2, top=3, all_heads=True)]
        self.has_marks = any(part["kind"] == "mesh" for part in scenes[1].parts)
        path = self.page("heads", scenes)
        page, run = Page(path.read_text(encoding="utf-8")), self.browser.run
        address = "window.location.hash"
        self.assert_shows_head(0, 2)
        self.assertEqual((self.browser.state("item"), run(address)), (None, ""))

        self.browser.click(*self.disc_on_screen(page, 1, 5))
        self.assert_shows_head(1, 5)
        self.assertEqual(run(address), "#1-5")
        item = self.browser.state("item")
        self.assertTrue(item.startswith("Layer: 1; Head: 5; Name: 1.5; "), item)
        self.assertEqual(self.text("announced"), f"Head 1.5 is shown. {item}")
        self.assertGreater(self.mark_near(*self.disc_on_screen(page, 1, 5)), 40)
        # The table of all heads marks it.
        self.click("table")
        current = "[...document.querySelectorAll('#cells tr[aria-current=true]')].map(row => row.children[3].textContent)"
        self.assertEqual(run(current), ["1.5"])
        run("document.querySelectorAll('#cells button')[3].click()")
        self.assert_shows_head(0, 3)
        self.assertEqual((run(address), run(current)), ("#0-3", ["0.3"]))

        # Arrows step on from there; Enter chooses.
        run("document.getElementById('stage').focus()")
        self.browser.press("ArrowRight")
        self.assertIn("Head: 4; Name: 0.4", self.browser.state("item"))
        self.assert_shows_head(0, 3)
        self.browser.press("Enter")
        self.assert_shows_head(0, 4)
        self.assertEqual(run(address), "#0-4")

        # Its texts and tokens, and those of another one from the list.
        self.click("tab-1")
        self.assert_shows_head(0, 4)
        self.choose("head", "1-7")
        self.assert_shows_head(1, 7)
        self.assertEqual(run(address), "#1-7&scene=1")
        self.assertEqual(self.text("announced"), "Head 1.7 is shown.")
        self.browser.picture(atlastest.OUTPUT / "heads.png")
        # Back leads to the head before, in the same scene.
        run("window.history.back()")
        self.browser.wait("document.documentElement.dataset.head === '0-4'")
        self.browser.settle()
        self.assert_shows_head(0, 4)
        # A link shows its head at once; an unknown one is the first head.
        self.open(path, "1-3&scene=1")
        self.click("table")
        self.assert_shows_head(1, 3)
        self.open(path, "1-3")
        self.assertTrue(self.browser.state("item").startswith("Layer: 1; Head: 3; "))
        self.open(path, "9-9&scene=1")
        self.click("table")
        self.assert_shows_head(0, 2)
        # Pages without a corpus have no such list.
        self.page("torus", web.torus(atlastest.TRAINED, size=8), "1-3")
        self.assertTrue(run("document.getElementById('choosing').hidden"))

    def test_heads_of_a_recording(self):
        """The list shows another head in all scenes; the pointer reads its weights, and finds lines that are seen alone."""
        tensors, metadata = atlastest.read_safetensors(atlastest.RECORDING)
        attention, tokens = tensors["attention"], [shown(token) for token in json.loads(metadata["tokens"])]
        scenes = [make(atlastest.RECORDING, all_heads=True) for make in (web.attention_map, web.sentence)]
        path = self.page("recording", scenes)
        page, run = Page(path.read_text(encoding="utf-8")), self.browser.run
        self.assertEqual((self.browser.state("head"), len(run("[...document.getElementById('head').options]"))), ("4-11", 144))
        self.assertEqual(self.text("status"), "36 pairs")
        self.choose("head", "5-1")
        self.assertEqual((self.text("scene-title"), run("window.location.hash")), ("Attention map: layer 5, head 1", "#5-1"))
        self.assertEqual(self.browser.state("item"), None)
        (image,) = page.parts("image")
        for query, key in ((5, 0), (3, 2), (0, 4)):
            place = [image["origin"][0] + key * image["spacing"][0], image["origin"][1] + (5 - query) * image["spacing"][1]]
            self.browser.point(*self.on_screen(page.scenes[0], place))
            item = re.fullmatch(r"Weights: (\S+); Query: (.*); Key: (.*)", self.browser.state("item"))
            self.assertEqual(item.groups()[1:], (tokens[query], tokens[key]))
            numpy.testing.assert_allclose(value(item[1]), attention[5, 1, query, key], rtol=1e-3)

        self.click("tab-1")
        self.assertEqual((self.text("scene-title"), self.browser.state("head")), ("Sentence: layer 5, head 1", "5-1"))
        self.assertEqual(self.text("status"), "12 points, 21 lines, 6 faces")
        scene = page.scenes[1]
        other = next(of for of in scene["heads"] if (of["layer"], of["head"]) == (5, 1))
        lines = other["parts"][0]
        points = page.values(lines["points"])
        ends = points[page.values(lines["lines"]["points"])[:, 0]].reshape(-1, 2, 3)
        queries, keys = (page.values(lines["cellArrays"][name])[:, 0] for name in ("Query", "Key"))
        found = []
        for query, key, (begin, end) in zip(queries, keys, ends):
            self.browser.point(*self.on_screen(other, 0.4 * begin + 0.6 * end))
            item, weight = self.browser.state("item"), attention[5, 1, query, key]
            if item and weight > 0.9:
                named = f"Query Token: {tokens[query]}; Key Token: {tokens[key]}; Weight: {weight:.4g}; "
                self.assertTrue(item.startswith(named), item)
            found.append((weight, item and value(re.search(r"Weight: ([^;]+)", item)[1])))
        self.assertGreater(sum(weight > 0.9 for weight, _ in found), 2)
        self.assertGreater(sum(weight < 0.03 and item is None for weight, item in found), 2)
        self.assertFalse([item for _, item in found if item is not None and item < 0.03])
        self.open(path, "7-3&scene=1")
        self.assertEqual(self.text("scene-title"), "Sentence: layer 7, head 3")

    def test_long_box(self):
        """The box of an item with many data is whole on a phone and in a low window."""
        file = atlastest.DATA / "corpus" / "language-2.safetensors"
        path = self.page("box", web.scatter(file))
        page = Page(path.read_text(encoding="utf-8"))
        for width, height in ((390, 800), (1000, 520)):
            self.browser.resize(width, height)
            self.browser.settle()
            self.browser.point(*self.disc_on_screen(page, 1, 6))
            self.assertTrue(self.browser.state("item").startswith("Layer: 1; Head: 6; "))
            self.browser.picture(atlastest.OUTPUT / f"box-{width}.png")
            stage, box = self.browser.rectangle("#stage"), self.browser.rectangle("#box")
            self.assertTrue(stage[0] <= box[0] and stage[1] <= box[1] and box[2] <= stage[2] and box[3] <= stage[3])
            heights = self.browser.run("(b => [b.scrollHeight, b.clientHeight])(document.getElementById('box'))")
            self.assertLessEqual(*heights)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)

    def test_theme(self):
        """A page follows the system while it is open, until its reader chooses; labels follow too."""
        page = self.page("theme", web.composition(atlastest.DATA / "models" / "induction" / "config.json"))
        for system, choice, is_dark in (
            ("dark", None, True), ("light", None, False), ("light", "dark", True), ("dark", "light", False),
            ("dark", "system", True),
        ):
            self.browser.prefer(system)
            if choice:
                self.choose("theme", choice)
            self.browser.settle()
            stage = self.stage(f"theme-{system}-{choice}").astype(float)
            lightness = stage.mean(axis=-1)
            background = lightness[3, 3]
            self.assertEqual(background < 40, is_dark, (system, choice))
            # Labels and dots are the other extreme.
            most = lightness.max() if is_dark else 255 - lightness.min()
            self.assertGreater(most, 230, (system, choice))
            # The next page that the reader opens has what was chosen.
            self.open(page)
            self.assertEqual(self.browser.run("document.documentElement.dataset.theme"), choice or "system")

    def test_surfaces(self):
        """Surfaces in space are drawn with light, in the colors of their tokens, and their items are found."""
        scenes = [web.sphere(atlastest.TRAINED), web.deformed_torus(atlastest.TRAINED, 64)]
        page = self.page("surfaces", scenes, "scene=0")
        stage = self.stage("sphere")
        item = self.point(0.5, 0.5)
        self.assertRegex(item, r"Class: [0-4]")
        middle = stage[stage.shape[0] // 2, stage.shape[1] // 2].astype(float)
        # The same color as that of the token, but for the light.
        token = numpy.array(atlastest.PALETTE[int(re.search(r"Class: (\d)", item)[1])], float)
        cosine = middle @ token / numpy.linalg.norm(middle) / numpy.linalg.norm(token)
        self.assertGreater(cosine, 0.99)
        self.open(page, "scene=1")
        self.assertEqual(self.browser.state("cells"), str(63 * 63))
        drawn = numpy.abs(self.stage("surface") - 255).max(axis=-1) > 24
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
        self.page("cells", web.scenes())
        for down, expected in ((0.5, 0), (0.6, -0.2), (0.35, 0.3)):  # of 2, the height of the stage
            item = self.point(0.5, down)
            self.assertRegex(item, r"^Ball: \S+$")
            self.assertAlmostEqual(value(item.split()[-1]), expected, delta=0.04)  # at the nearest corner
        for down, expected in ((0.1, 3), (0.9, -3)):
            item = self.point(0.5, down)
            self.assertRegex(item, r"\bWall: \S+$")
            self.assertEqual(value(item.split()[-1]), expected)

    def pixel(self, across, down):
        """The pixel of the map of a long text at a place of the stage: its weights, and positions of queries and keys."""
        item = self.point(across, down)
        found = re.fullmatch(
            r"Largest weight: (.*); Query positions?: (.*); Query tokens?: (.*); Key positions?: (.*); Key tokens?: (.*)", item
        )
        self.assertIsNotNone(found, item)
        weights, *sides = found.groups()
        ranges = []
        for positions, tokens in (sides[:2], sides[2:]):
            ends = [int(number.replace(",", "")) for number in positions.split(" to ")]
            ranges.append(slice(ends[0], ends[-1] + 1))
            words = "".join(self.words[ranges[-1]])
            self.assertTrue(words.startswith(tokens.replace("\N{MIDDLE DOT}", " ").rstrip("\N{HORIZONTAL ELLIPSIS}")), item)
        return weights, *ranges

    def assert_pixel(self, across, down):
        """The pixel at a place has the largest weight of its pairs, and the color of that; returns its middle."""
        text, queries, keys = self.pixel(across, down)
        weight = self.long_weights[queries, keys].max()
        low, high = map(value, text.split(" to ")) if " to " in text else (0, value(text.split(" ")[-1]))
        self.assertTrue(low * 0.994 <= weight <= high * 1.006, (text, weight))
        return (queries.start + queries.stop) / 2, (keys.start + keys.stop) / 2

    def wheel(self, across, down, clicks):
        """Turns the wheel over a place, away from the reader to come closer."""
        x, y = self.place(across, down)
        for _ in range(clicks):
            self.browser.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-120)
            self.browser.settle()
        time.sleep(0.5)  # in which the wheel comes to rest

    def drag(self, begin, end):
        for kind, at, buttons in (("mousePressed", begin, 1), ("mouseMoved", end, 1), ("mouseReleased", end, 0)):
            x, y = self.place(*at)
            self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=buttons, clickCount=1)
            self.browser.settle()

    def test_tiles(self):
        """The map of a long text: zooming shows the tiles of finer levels at the same place; the address keeps it."""
        self.words = [f" <b>{number}" for number in range(1500)]
        file = atlastest.OUTPUT / "long.safetensors"
        self.long_weights = write_text(file, self.words)
        path = self.page("tiles", web.attention_map(file))
        run, state = self.browser.run, self.browser.state
        self.browser.picture(atlastest.OUTPUT / "tiles.png")
        # At first all of the text: 1,500 tokens are shown by less pixels than that.
        self.assertEqual((state("cell"), state("tiles")), ("4", "0-0 1-0 1-1"))
        places = [(0.45, 0.5), (0.4, 0.8), (0.5, 0.6)]
        for place in places:
            self.assert_pixel(*place)
        masked, queries, keys = self.pixel(0.6, 0.2)
        self.assertEqual(masked, "0")
        self.assertGreater(keys.start, queries.stop)

        # The wheel keeps what is under the pointer.
        query, key = self.assert_pixel(0.45, 0.6)
        self.wheel(0.45, 0.6, 24)
        self.assertEqual(state("cell"), "1")
        self.assertRegex(state("item"), r"Query position: \d")  # the item under the pointer is a finer one now
        closer = self.assert_pixel(0.45, 0.6)
        self.assertLess(max(abs(query - closer[0]), abs(key - closer[1])), 12)
        # Of 21 tiles only those are drawn that can be seen.
        drawn = [tuple(map(int, tile.split("-"))) for tile in state("tiles").split()]
        self.assertIn((int(closer[0]) // 256, int(closer[1]) // 256), drawn)
        self.assertLess(len(drawn), 9)
        for place in places:
            self.assert_pixel(*place)

        # A drag moves the map; keys step, move and zoom.
        before = self.assert_pixel(0.5, 0.5)
        self.drag((0.5, 0.5), (0.6, 0.4))
        after = self.assert_pixel(0.6, 0.4)
        self.assertLess(max(abs(a - b) for a, b in zip(before, after)), 2)
        run("document.getElementById('stage').focus()")
        self.browser.press("ArrowRight")
        first = [int(n.replace(",", "")) for n in re.findall(r"position: ([0-9,]+)", state("item"))]
        self.browser.press("ArrowDown")
        self.browser.press("ArrowRight")
        second = [int(n.replace(",", "")) for n in re.findall(r"position: ([0-9,]+)", state("item"))]
        self.assertEqual(second, [first[0] + 1, first[1] + 1])
        self.assertIn(state("item"), self.text("announced"))
        self.assertIn(f"Query token: \N{MIDDLE DOT}<b>{second[0]};", state("item"))
        tags = run("document.body.querySelectorAll('b').length")
        self.assertEqual(tags, run("document.querySelectorAll('.legend > b').length"))
        for _ in range(8):
            self.browser.press("+")
        self.browser.picture(atlastest.OUTPUT / "tiles-closer.png")

        # The address leads to the same place.
        self.browser.press("Escape")
        time.sleep(0.5)
        address, shown = run("window.location.hash"), (state("cell"), state("tiles"))
        self.assertRegex(address, r"^#at=[\d.]+,[\d.]+,[\d.]+$")
        here = self.assert_pixel(0.52, 0.47)
        self.open(path, address[1:])
        self.assertEqual((state("cell"), state("tiles")), shown)
        self.assertEqual(self.assert_pixel(0.52, 0.47), here)
        # The color of a pixel is that of its step.
        page = Page(path.read_text(encoding="utf-8"))
        (part,) = page.parts("tiles")
        level = part["levels"]["1"]
        query, key = (int(middle) for middle in here)
        number = page.values(level["numbers"])[:, 0].tolist().index(query // 256 * 6 + key // 256)
        step = page.values(level["steps"])[number, query % 256 * 256 + key % 256]
        self.browser.point(1, 1)
        stage = self.stage("tiles-place")
        row, column = (int(share * count) for share, count in zip((0.47, 0.52), stage.shape))
        near = stage[row - 1 : row + 2, column - 1 : column + 2].reshape(-1, 3).astype(int)
        self.assertLessEqual(numpy.abs(near - page.values(part["palette"])[step]).max(axis=1).min(), 1)
        self.click("reset")
        time.sleep(0.5)
        self.assertEqual((run("window.location.hash"), state("cell")), ("", "4"))
        # The table has the strongest pixels; the map has no items of its own in it.
        self.click("table")
        self.assertEqual(self.text("table-caption"), "Attention map: layer 0, head 0. Strongest pixels of one pair: 100 rows")

    def test_broken_page(self):
        """A page whose data are damaged says so."""
        page = atlastest.OUTPUT / "damaged.html"
        text = web.page(web.torus(atlastest.TRAINED, size=8)).html()
        page.write_text(re.sub(r'(id="data">)[^<]{20}', r"\1" + "A" * 20, text), encoding="utf-8")
        self.browser.open(page)
        self.assertEqual(self.browser.state("status"), "error")
        self.assertIn("This page cannot be drawn", self.text("status"))
