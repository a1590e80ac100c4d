"""The tour: its figures, its page, and the words with which it refuses."""

import html.parser
import math
import re
import unittest.mock
import zlib

import atlastest
from atlastest import AtlasTest
from attentionatlas import drawing, figures, heads, learning, sheet, tour
from paraview import simple

MODEL = "trained-n5-h3"
WIDTH = 400


class Page(html.parser.HTMLParser):
    """What a page refers to, and the ids and captions in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.figures = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.figures += tag == "figure"
        for name, value in attributes:
            if name in ("href", "src", "data"):
                self.links.append(value)
            elif name == "id":
                self.ids.append(value)


class Tour(AtlasTest):
    def folder(self):
        folder = atlastest.OUTPUT / self.id().rsplit(".", 1)[-1]
        folder.mkdir(exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        return folder

    def sheets(self):
        """Collects the sheets that are written while a test runs."""
        seen, save = [], sheet.Sheet.save

        def remember(page, path):
            seen.append((page, path))
            return save(page, path)

        patch = unittest.mock.patch.object(sheet.Sheet, "save", remember)
        patch.start()
        self.addCleanup(patch.stop)
        return seen

    def test_every_figure(self):
        folder, told, pages = self.folder(), [], self.sheets()
        frames = unittest.mock.patch.object(drawing, "FRAMES", 3)  # of the movie: enough to play
        frames.start()
        self.addCleanup(frames.stop)
        steps = unittest.mock.patch.object(learning, "STEPS", 300)
        steps.start()
        self.addCleanup(steps.stop)
        written = tour.render(atlastest.TRAINED, folder, width=WIDTH, progress=told.append)
        count = len(figures.FIGURES)
        steps = [line for line in told if not line.startswith("  ")]
        self.assertEqual(
            steps,
            [
                f"{MODEL}: figure {number} of {count}, {name}"
                for number, name in enumerate(figures.FIGURES, 1)
            ],
        )
        # Nothing is left out but what the plugin has no filter for.
        for line in told:
            if line.startswith("  "):
                name = re.fullmatch("  left out: the plugin has no (.+)\\.", line).group(1)
                self.assertFalse(hasattr(simple, name), line)
        self.assertEqual(len(set(written)), len(written))
        self.assertEqual(
            sorted(folder.iterdir()), sorted([*written, folder / "index.html"]), "nothing else is left"
        )
        self.check_pictures(written)
        self.assertGreater(len(pages), 5)
        self.check_texts(pages)
        self.check_index(folder, written)
        self.assertEqual(simple.GetSources(), {}, "the pipeline is as it was")

    def check_pictures(self, written):
        for path in written:
            self.assertTrue(path.name.startswith(f"{MODEL}-"), path)
            if path.suffix == ".ogv":
                self.assertEqual(path.read_bytes()[:4], b"OggS")
                continue
            pixels = atlastest.read_picture(path)
            self.assertEqual(pixels.shape[1], WIDTH, path)
            corners = pixels[[0, 0, -1, -1], [0, -1, 0, -1]]
            self.assertEqual(corners.min(), 255, f"{path}: a white page")
            self.assertGreater((pixels.min(axis=2) < 250).mean(), 0.05, path)

    def check_texts(self, pages):
        """All texts are on their page, and none meets another."""
        for page, path in pages:
            self.assertGreater(len(page.texts), 2, path)
            for number, (text, left, bottom, right, top) in enumerate(page.texts):
                self.assertGreaterEqual(min(left, bottom), 0, f"{path}: {text}")
                self.assertLessEqual(right, page.size[0], f"{path}: {text}")
                self.assertLessEqual(top, page.size[1], f"{path}: {text}")
                for other, left2, bottom2, right2, top2 in page.texts[:number]:
                    apart = left >= right2 or left2 >= right or bottom >= top2 or bottom2 >= top
                    self.assertTrue(apart, f"{path}: '{text}' meets '{other}'")

    def check_index(self, folder, written):
        text = (folder / "index.html").read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual(len(page.ids), len(set(page.ids)))
        shown = set()
        for link in page.links:
            if link.startswith("#"):
                self.assertIn(link[1:], page.ids)
            else:
                self.assertTrue((folder / link).is_file(), link)
                shown.add(folder / link)
        self.assertEqual(shown, set(written))
        drawn = [name for name in figures.FIGURES if f"model-0-{name}" in page.ids]
        self.assertEqual(page.figures, len(drawn))
        self.assertIn("class-map", drawn)
        for name in drawn:
            self.assertIn(figures.FIGURES[name].title, text)

    def test_recording(self):
        folder, pages = self.folder(), self.sheets()
        written = tour.render_all(
            [], folder, width=WIDTH, recordings=[atlastest.RECORDING], place=(0, 4, 11)
        )
        self.assertEqual(len(written), len(heads.FIGURES))
        self.check_texts(pages)
        page = Page((folder / "index.html").read_text(encoding="utf-8"))
        self.assertEqual({folder / link for link in page.links if not link.startswith("#")}, set(written))
        self.assertEqual(page.figures, len(heads.FIGURES))

    def test_size_of_a_map(self):
        (path,) = tour.render(atlastest.TRAINED, self.folder(), ["class-map"], width=WIDTH)
        # The side of the chart is what its margins leave of the width: 4.1 and 5.5 heights of text.
        pixels = atlastest.read_picture(path)
        side = WIDTH * (1 - sheet.TEXT * 9.6)
        self.assertAlmostEqual(
            pixels.shape[0], side + sheet.TEXT * WIDTH * (2.3 + 3.5 + 0.3), delta=1.5
        )
        # The middle of the chart is theta_1 = theta_2 = 0: class 4 there, by the oracle's logits.
        values, _ = self.oracle()
        near = (values["theta"] ** 2).sum(axis=1).argmin()
        self.assertLess(math.dist(values["theta"][near], (0, 0)), 0.5)
        unit = sheet.TEXT * WIDTH
        x = round(4.1 * unit + side * (values["theta"][near][0] / (2 * math.pi) + 0.5))
        y = round(3.5 * unit + side * (values["theta"][near][1] / (2 * math.pi) + 0.5))
        expected = atlastest.PALETTE[int(values["embedding_position.class"][near])]
        white = 1 - values["embedding_position.probability"][near]
        color = pixels[y - 1 : y + 2, x - 1 : x + 2].mean(axis=(0, 1))
        for found, pure in zip(color, expected):
            self.assertLess(abs(found - pure), 40 + 255 * white)

    def test_pdf(self):
        (path,) = tour.render(atlastest.TRAINED, self.folder(), ["class-map"], 300, "pdf")
        data = path.read_bytes()
        self.assertEqual(data[:5], b"%PDF-")
        self.assertTrue(data.endswith(b"%%EOF\n"))
        table = int(re.search(rb"startxref\s+(\d+)", data).group(1))
        self.assertEqual(data[table : table + 4], b"xref")
        for number, place in enumerate(re.findall(rb"(\d{10}) \d{5} n", data[table:]), 1):
            self.assertRegex(data[int(place) :][:12], rb"^%d 0 obj" % number)
        streams = [
            zlib.decompress(data[match.end() :][: int(match.group(1))])
            for match in re.finditer(rb"/Filter /FlateDecode /Length (\d+).*?stream\n", data, re.S)
        ]
        # The picture of the map, three bytes a pixel, and the letters as outlines.
        height = len(max(streams, key=len)) // (3 * 300)
        self.assertEqual(len(max(streams, key=len)), 3 * 300 * height)
        for stream in streams[:1]:
            self.assertNotRegex(stream, rb"\d ca\n", "no operator that PDF does not have")
        self.assertTrue(any(b" c\n" in stream and b" m\n" in stream for stream in streams))

    def test_svg(self):
        (path,) = tour.render(atlastest.TRAINED, self.folder(), ["class-map"], 300, "svg")
        text = path.read_text()
        self.assertIn('xlink:href="data:image/png;base64,', text)
        self.assertTrue(text.rstrip().endswith("</svg>"))

    def test_says_what_is_wrong(self):
        folder = self.folder()
        for render in (tour.render, figures.render):
            with self.assertRaisesRegex(ValueError, "unknown figure 'map'; known are layer-norm, class"):
                render(atlastest.TRAINED, folder, ["map"])
        with self.assertRaisesRegex(ValueError, "expected 200 to 16384 pixels, found 20"):
            tour.render(atlastest.TRAINED, folder, width=20)
        with self.assertRaisesRegex(ValueError, "unknown format 'gif'; known are png, pdf, svg"):
            tour.render(atlastest.TRAINED, folder, format="gif")
        with self.assertRaisesRegex(FileNotFoundError, "absent.safetensors: no such file"):
            tour.render(folder / "absent.safetensors", folder)
        with self.assertRaisesRegex(ValueError, f"two files are named {MODEL}"):
            tour.render_all([atlastest.TRAINED, atlastest.TRAINED], folder)
        self.assertEqual(list(folder.iterdir()), [], "and nothing is written")
        bad = folder / "bad.safetensors"
        bad.write_bytes(b"")
        with self.assertRaisesRegex(ValueError, "bad.safetensors: cannot be read"):
            tour.render(bad, folder)
        self.assert_one_error("bad.safetensors", "found 0 bytes")
        self.assertEqual(simple.GetSources(), {})

    def test_model_of_one_head(self):
        tensors, metadata = atlastest.read_safetensors(atlastest.TRAINED)
        few = {
            name: values
            for name, values in tensors.items()
            if not name.startswith(("heads.1.", "heads.2.")) and name != "next_token"
        }
        folder, told = self.folder(), []
        path = folder / "one.safetensors"
        atlastest.write_safetensors(path, few, metadata)
        names = ["class-map", "attention", "outputs", "heads-alone"]
        written = tour.render(path, folder, names, 300, progress=told.append)
        self.assertEqual(len(written), 5)
        self.assertFalse(any("left out" in line for line in told), told)

    def test_texts_of_many_heads_and_tokens(self):
        _, path = self.oracle("random-n12-h6-d2")
        pages = self.sheets()
        tour.render(path, self.folder(), ["class-map", "heads-alone", "harmonics"], width=WIDTH)
        self.assertEqual(len(pages), 4)  # harmonics of five heads and of one
        self.check_texts(pages)

    def test_colors_are_those_of_the_bar(self):
        tour.render(atlastest.TRAINED, self.folder(), ["simplex"], width=300)
        points = list(simple.GetColorTransferFunction("Accuracy").RGBPoints)
        self.assertEqual(len(points), 4 * len(drawing.ORANGES))
        self.assertEqual((points[0], points[1:4]), (0, list(drawing.ORANGES[0])))
        self.assertEqual((points[-4], points[-3:]), (1, list(drawing.ORANGES[-1])))

    def test_links_of_odd_names(self):
        folder = self.folder()
        model = folder / "odd #1.safetensors"
        model.write_bytes(atlastest.TRAINED.read_bytes())
        tour.render(model, folder, ["class-map"], width=300)
        self.assertIn('src="odd%20%231-class-map.png"', (folder / "index.html").read_text())
        self.assertTrue((folder / "odd #1-class-map.png").is_file())

    def test_command_line(self):
        folder = self.folder()
        with unittest.mock.patch("builtins.print") as told:
            tour.main(
                [str(atlastest.TRAINED), "-o", str(folder), "--width", "300", "--only", "class-map"]
            )
        lines = [str(call.args[0]) for call in told.call_args_list if call.args]
        self.assertIn(f"{MODEL}: figure 1 of 1, class-map", lines)
        self.assertEqual(lines[-1], str(folder / "index.html"))
        with self.assertRaisesRegex(SystemExit, "unknown figure 'nope'; known are"):
            tour.main([str(atlastest.TRAINED), "--only", "nope"])


if __name__ == "__main__":
    atlastest.main()
