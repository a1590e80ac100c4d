"""The tour: its files, its page, its command line and its errors. What figures show: TestFigures."""

import shutil
import unittest.mock

import atlastest
import attentionatlas as atlas
import numpy
from atlastest import AtlasTest
from attentionatlas import __main__ as commands
from attentionatlas import figures, heads, output, tour
from attentionatlas._internal import learning, movies
from figuretest import Pdf, overlaps
from webpages import Document

MODEL = "trained-n5-h3"
WIDTH = 600


class Page(Document):
    """What a page refers to, and the ids and figures in it."""

    def __init__(self, text):
        super().__init__(text)
        self.links, self.ids = self.given("href", "src", "data"), self.given("id")
        self.figures = self.tags().count("figure")


class Tour(AtlasTest):
    def folder(self):
        folder = atlastest.OUTPUT / self.id().rsplit(".", 1)[-1]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def pages(self):
        """Collects the figures that are written while a test runs, by the names of their files."""
        seen, save = {}, output.save

        def remember(figure, path, *options):
            seen[path.name] = figure
            return save(figure, path, *options)

        self.replace(output, "save", remember)
        return seen

    def replace(self, module, name, value):
        patch = unittest.mock.patch.object(module, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def test_every_figure(self):
        folder, lines, pages = self.folder(), [], self.pages()
        self.replace(movies, "FRAMES", 3)  # enough to play
        self.replace(learning, "STEPS", 100)
        written = tour.render(atlastest.TRAINED, folder, width=WIDTH, progress=lines.append)
        count = len(figures.FIGURES)
        expected = [f"{MODEL}: figure {number} of {count}, {name}" for number, name in enumerate(figures.FIGURES, 1)]
        self.assertEqual(lines, expected, "each is drawn, none omitted")
        self.assertEqual(len(set(written)), len(written))
        self.assertEqual(sorted(folder.iterdir()), sorted([*written, folder / "index.html"]), "nothing else is left")
        self.check_images(written, pages)
        self.check_index(folder, written)

    def check_images(self, written, pages):
        for path in written:
            self.assertTrue(path.name.startswith(f"{MODEL}-"), path)
            if path.suffix == ".ogv":
                self.assertEqual(path.read_bytes()[:4], b"OggS")
                continue
            pixels = atlastest.read_picture(path)
            self.assertEqual(pixels.shape[1], WIDTH, path)
            corners = pixels[[0, 0, -1, -1], [0, -1, 0, -1]]
            self.assertEqual(corners.min(), 255, f"{path}: a white page")
            self.assertEqual(overlaps(pages[path.name]), [], path)
            self.check_panels(pages[path.name], pixels, path)

    def check_panels(self, figure, pixels, path):
        """Each panel has a content: colours or lines other than the page's."""
        figure.set_dpi(WIDTH / figure.get_figwidth())
        figure.draw_without_rendering()
        for axes in figure.axes:
            left, bottom, right, top = axes.get_window_extent().extents.astype(int)
            inside = pixels[bottom + 1 : top, left + 1 : right].reshape(-1, 3)
            self.assertGreater(len(numpy.unique(inside, axis=0)), 1, path)

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
        folder, pages = self.folder(), self.pages()
        written = tour.render_all([], folder, width=WIDTH, recordings=[atlastest.RECORDING], place=(4, 11, 0))
        # It has no queries and keys, no model and no residual; and it is not of images.
        drawn = [name for name in heads.FIGURES if not name.startswith("patches")]
        expected = [*drawn, "focus-scores", "focus-self", "focus-first", "focus-concentration"]
        self.assertEqual(len(written), len(expected))
        for path in written:
            self.assertEqual(overlaps(pages[path.name]), [], path)
        page = Page((folder / "index.html").read_text(encoding="utf-8"))
        self.assertEqual({folder / link for link in page.links if not link.startswith("#")}, set(written))
        self.assertEqual(page.figures, len(expected))

    def test_print(self):
        for width in (180, 89):
            folder = self.folder()
            (path,) = tour.render(atlastest.TRAINED, folder, ["harmonics"], format="pdf", width_mm=width)
            self.assertAlmostEqual(Pdf(path).size_mm[0], width, delta=0.1)

    def test_says_what_is_wrong(self):
        folder, model = self.folder(), atlastest.TRAINED

        def render(path=model, **options):
            return lambda: tour.render(path, folder, **options)

        self.assert_raise(
            (render(names=["map"]), "figure: expected one of layer-norm, .*found 'map'"),
            (lambda: figures.render(model, folder, ["map"]), "figure: expected one of layer-norm, .*found 'map'"),
            (render(width=20), "expected 200 to 16384 pixels, found 20"),
            (render(format="gif"), "format: expected png, pdf or svg, found 'gif'"),
            (render(width_mm=5), "width-mm: expected .*, found 5"),
            (render(font_size=300), "font-size: expected .*, found 300"),
            (render(folder / "absent.safetensors"), "absent.safetensors: no such file", FileNotFoundError),
            (lambda: tour.render_all([model, model], folder), f"two files are named {MODEL}"),
        )
        self.assertEqual(list(folder.iterdir()), [], "and nothing is written")
        bad = folder / "bad.safetensors"
        bad.write_bytes(b"")
        self.assert_raise((render(bad), "bad.safetensors: .*found 0 bytes"))

    def test_figures_of_files_of_one_name(self):
        """They would replace each other."""
        folder = self.folder()
        other = folder / "other" / atlastest.RECORDING.name
        other.parent.mkdir()
        shutil.copy(atlastest.RECORDING, other)
        words = [str(atlastest.RECORDING), str(other), "--only", "weights", "-o", str(folder / "out")]
        with self.assertRaisesRegex(SystemExit, f"two files are named {atlastest.RECORDING.stem}"):
            commands.figures(words)
        self.assertFalse((folder / "out").exists())

    def test_the_training_of_a_model_that_was_just_trained(self):
        with unittest.mock.patch.object(learning, "STEPS", 20), atlas.train("TokenPairs", steps=20, seed=1) as model:
            axes = atlas.figures.training_curves(model).axes[0]
            self.assertEqual(axes.get_xlim(), (0, 20 * model.head_count))
            file = model.file()
            self.assertTrue(file.is_file())
        self.assertFalse(file.exists())

    def test_a_figure_that_was_asked_for_by_name_is_not_left_out(self):
        model = atlastest.DATA / "models" / "language-2"
        for only, message in (("circuits-qk", "zzzzq"), ("circuits-lens", "circuits-lens: ")):
            words = [str(model), "--only", only, "--tokens", "zzzzq", "-o", str(self.folder())]
            with self.subTest(only), self.assertRaisesRegex(SystemExit, message):
                commands.figures(words)

    def test_model_of_one_head(self):
        tensors, metadata = atlastest.read_safetensors(atlastest.TRAINED)
        few = {
            name: values
            for name, values in tensors.items()
            if not name.startswith(("heads.1.", "heads.2.")) and name != "next_token"
        }
        folder, lines = self.folder(), []
        path = folder / "one.safetensors"
        atlastest.write_safetensors(path, few, metadata)
        names = ["class-map", "attention", "outputs", "heads-alone"]
        written = tour.render(path, folder, names, 300, progress=lines.append)
        self.assertEqual(len(written), 5)
        self.assertFalse(any("omitted" in line for line in lines), lines)

    def test_pages_of_many_heads(self):
        _, path = self.oracle("random-n12-h6-d2")
        written = tour.render(path, self.folder(), ["attention", "harmonics"], width=300)
        names = [file.stem.removeprefix("random-n12-h6-d2-") for file in written]
        self.assertEqual(names, ["attention-heads-0-2", "attention-heads-3-5", "harmonics", "harmonics-from-5"])

    def test_omits_what_is_missing(self):
        _, path = self.oracle("random-n5-h1-d1")
        lines = []
        written = tour.render(path, self.folder(), ["simplex", "harmonics"], 300, progress=lines.append)
        self.assertEqual(len(written), 1)
        self.assertIn("  omitted: a simplex needs three heads, random-n5-h1-d1 has 1.", lines)

    def test_links_of_odd_names(self):
        folder = self.folder()
        model = folder / "odd #1.safetensors"
        model.write_bytes(atlastest.TRAINED.read_bytes())
        tour.render(model, folder, ["class-map"], width=300)
        self.assertIn('src="odd%20%231-class-map.png"', (folder / "index.html").read_text())
        self.assertTrue((folder / "odd #1-class-map.png").is_file())

    def test_command_line(self):
        folder = self.folder()
        arguments = ["--width", "300", "--only", "class-map", "--dark", "--width-mm", "89", "--font-size", "8"]
        with unittest.mock.patch("builtins.print") as printed:
            tour.main([str(atlastest.TRAINED), "-o", str(folder), *arguments])
        lines = [str(call.args[0]) for call in printed.call_args_list if call.args]
        self.assertIn(f"{MODEL}: figure 1 of 1, class-map", lines)
        self.assertEqual(lines[-1], str(folder / "index.html"))
        pixels = atlastest.read_picture(folder / f"{MODEL}-class-map.png")
        self.assertEqual(pixels.shape[1], 300)
        self.assertLess(pixels[0, 0].max(), 60, "a dark page")
        with self.assertRaisesRegex(SystemExit, "figure: expected one of .* found 'nope'"):
            tour.main([str(atlastest.TRAINED), "--only", "nope"])

    def drawn(self, *words):
        """What the command figures prints."""
        with unittest.mock.patch("builtins.print") as printed:
            commands.figures([str(word) for word in words])
        return [str(call.args[0]) for call in printed.call_args_list if call.args]

    def test_figures_of_a_recording_with_its_model(self):
        """Each is drawn once, those that need the model, too."""
        folder, model = self.folder(), atlastest.DATA / "models" / "language-2"
        path = folder / "text.safetensors"
        with atlas.open(model) as opened, opened.record("And God said, Let there be light: and there was light.") as ran:
            ran.save(path)
        lines = self.drawn(path, "--model", model / "config.json", "--ranks", "2", "--width", "300", "-o", folder)
        files = [line for line in lines if line.endswith(".png")]
        self.assertEqual(len(files), len(set(files)))
        self.assertEqual(sorted(files), sorted(map(str, folder.glob("*.png"))))
        for name in ("focus-scores", "focus-breakdown", "focus-magnitudes", "embedding-correlation"):
            self.assertIn(str(folder / f"text-{name}.png"), files)
        self.assertIn("text-focus-breakdown.png", (folder / "index.html").read_text())
        self.assertEqual(self.take_errors(), [])

    def test_a_model_without_circuits(self):
        """Reasons are named where the figures are left out, and nothing is reported as an error."""
        folder = self.folder()
        lines = self.drawn(atlastest.DATA / "models" / "bert", "--width", "300", "-o", folder)
        self.assertEqual(self.take_errors(), [])
        omitted = [line for line in lines if line.startswith("  omitted: circuits-")]
        self.assertEqual(len(omitted), 7)
        self.assertIn(
            "  omitted: circuits-bigrams: circuits of logits: expected a model whose unembedding reads the residual "
            "stream, found bert, which has another layer before it.",
            omitted,
        )
        self.assertFalse([line for line in lines if "reported above" in line or line.endswith("..")])
