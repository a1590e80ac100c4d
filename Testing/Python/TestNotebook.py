"""What notebooks show by themselves: figures and views as PNG, pages in a frame, movies as videos."""

import contextlib
import html.parser
import pathlib

import atlastest
import attentionatlas
import numpy
from atlastest import AtlasTest
from attentionatlas import embedding, figures, heads, sentence, tour, web
from attentionatlas._internal.notebook import Figure, Figures, MovieFile
from paraview import simple
from randomrecording import write_recording
from webpages import Page


class Notebook(AtlasTest):
    def pixels(self, shown, name):
        """The picture that an object gives to a notebook, rows from the top."""
        png = shown._repr_png_()
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        path = atlastest.OUTPUT / f"{name}.png"
        path.write_bytes(png)
        return atlastest.read_picture(path)[::-1]

    def test_figures(self):
        """Each figure is a page of 180 mm at 144 dots per inch, without pyplot."""
        recording = write_recording(atlastest.OUTPUT / "random.safetensors")
        shown = {
            "class-map": figures.class_map(atlastest.TRAINED, dpi=60),
            "weights": heads.weights(recording, layer=0, head=1, dpi=60),
            "sentence": sentence.lines(recording, layer=0, head=1),
            "correlation": embedding.correlation(recording, perplexity=10, iterations=50, dpi=60),
        }
        for name, figure in shown.items():
            self.assertIsInstance(figure, Figure)
            pixels = self.pixels(figure, name)
            self.assertAlmostEqual(pixels.shape[1], 180 / 25.4 * 144, delta=2)
            self.assertTrue((pixels[0, 0] == 255).all())
            self.assertGreater((pixels.min(axis=-1) < 128).sum(), 100)
        dark = self.pixels(figures.class_map(atlastest.TRAINED, dark=True, dpi=60), "dark")
        self.assertLess(dark[0, 0].max(), 40)

    def test_pages_of_a_sentence(self):
        recording = write_recording(atlastest.OUTPUT / "random.safetensors")
        shown = sentence.pages(recording, rows=3)
        self.assertIsInstance(shown, Figures)
        self.assertGreater(len(shown), 0)
        self.assertEqual(shown._repr_html_().count("data:image/png;base64,"), len(shown))

    def test_movie(self):
        path = atlastest.OUTPUT / "movie.ogv"
        path.write_bytes(b"content")
        movie = MovieFile(path)
        self.assertEqual(movie, pathlib.Path(path))
        self.assertEqual(movie.parent, path.parent)
        self.assertIn("data:video/ogg;base64,Y29udGVudA==", movie._repr_html_())
        for other in (movie.parent, movie.with_suffix(".png"), movie.with_name("none.ogv")):
            self.assertIsNone(other._repr_html_())

    def test_page_in_a_frame(self):
        """The frame has the whole page, whose text a parser gives back."""
        scene = web.torus(atlastest.TRAINED, size=16)
        page = web.page(scene, title='A "title" & more')
        frames = []

        class Frame(html.parser.HTMLParser):
            def handle_starttag(self, tag, attributes):
                frames.append((tag, dict(attributes)))

        Frame().feed(page._repr_html_())
        ((tag, attributes),) = frames
        self.assertEqual((tag, attributes["sandbox"]), ("iframe", "allow-scripts allow-downloads"))
        self.assertEqual(attributes["srcdoc"], page.html())
        self.assertEqual(attributes["title"], 'A "title" & more')
        self.assertEqual(len(Page(attributes["srcdoc"]).scenes), 1)
        self.assertTrue(scene._repr_html_().startswith("<iframe"))

    def test_views_and_sources(self):
        """A view as it is, a source in a view of its own, in its own colors."""
        source = simple.Sphere(Radius=2)
        view = simple.CreateRenderView(UseColorPaletteForBackground=0, Background=[0, 0, 1])
        shown = simple.Show(source, view)
        shown.AmbientColor = shown.DiffuseColor = [1, 0, 0]
        simple.ResetCamera(view)
        pixels = self.pixels(attentionatlas.display(view, 300, 200), "view")
        self.assertEqual(pixels.shape[:2], (200, 300))
        self.assertEqual(pixels[0, 0].tolist(), [0, 0, 255])
        self.assertEqual(pixels[100, 150].argmax(), 0)

        torus = atlastest.torus(atlastest.read_model(), Quantities=["ClassColor"])
        before = len(simple.GetRenderViews())
        pixels = self.pixels(attentionatlas.display(torus, 200, 200), "source")
        self.assertEqual(len(simple.GetRenderViews()), before)
        self.assertEqual(simple.GetActiveView(), view)
        self.assertEqual(pixels[0, 0].tolist(), [255, 255, 255])
        match = [(numpy.abs(pixels - color).max(axis=-1) <= 2).mean() for color in atlastest.PALETTE]
        self.assertGreater(sum(match), 0.3)
        port = attentionatlas.display(simple.OutputPort(torus, 0), 200, 200)
        self.assertEqual((port.width, port.height), (200, 200))
        saved = port.save(atlastest.OUTPUT / "saved.png")
        self.assertEqual(saved.read_bytes(), port._repr_png_())
        with self.assertRaisesRegex(ValueError, "saved.jpg: expected a name that ends with .png"):
            port.save(atlastest.OUTPUT / "saved.jpg")
        (atlastest.OUTPUT / "folder.png").mkdir(exist_ok=True)
        with self.assertRaises(OSError):
            port.save(atlastest.OUTPUT / "folder.png")
        self.assertFalse((atlastest.OUTPUT / "folder.part.png").exists())

    def test_widget_of_every_view(self):
        corpus = atlastest.DATA / "corpus" / "language-2.safetensors"
        with contextlib.ExitStack() as files:
            small, model, statistics = (
                files.enter_context(attentionatlas.open(path))
                for path in (atlastest.TRAINED, atlastest.TRANSFORMERS / "gpt2", corpus)
            )
            recording = files.enter_context(model.record(token_ids="5 17 9 8 4\n4 5 6 7 8"))
            protein = files.enter_context(attentionatlas.open(atlastest.DATA / "geometry" / "protein.safetensors"))
            lattice = {"structure": atlastest.DATA / "models" / "protein" / "chain.pdb", "contact_atom": "CAlpha"}
            shown = {"model": small, "recording": recording, "transformer": model, "corpus": statistics}
            for kind, views in web.SCENES.items():
                for view in views:
                    options = {"size": 16} if view.endswith("torus") else {}
                    options = {"method": "PCA"} if view.startswith("embedding") else options
                    is_protein = view in ("contact-map", "structure")
                    source = protein if is_protein else shown[kind]
                    page = attentionatlas.widget(source, view, **(lattice if is_protein else options))
                    self.assertTrue(page._repr_html_().startswith("<iframe"), view)
            self.assertRegex(attentionatlas.widget(recording).scenes[0].title, r"^Attention map: layer \d, head \d$")
            self.assert_raise(
                (lambda: attentionatlas.widget(recording, "torus"), "view: expected one of map, .*; found 'torus'"),
                (lambda: attentionatlas.widget(3), "widget: expected a model, a recording, .*, a file or a view, found int"),
            )

    def test_the_pipeline_stays_as_it_was(self):
        tour.render(atlastest.TRAINED, atlastest.OUTPUT / "tour", ["class-map", "unembedding-sphere"], width=300)
        attentionatlas.heads.weights(atlastest.RECORDING, dpi=60)
        with self.assertRaises(ValueError):
            tour.render(atlastest.SOURCE / "LICENSE", atlastest.OUTPUT / "tour", ["class-map"])
        self.assertEqual((simple.GetSources(), simple.GetRenderViews()), ({}, []))

    def test_bad_input(self):
        rows = (
            ("torus", "expected a view or a source, found str"),
            (None, "expected a view or a source, found NoneType"),
            (simple.CreateView("SpreadSheetView"), "a view that draws, found SpreadSheetView"),
            (simple.HyperTreeGridRandom(), r"points, found none \(HyperTreeGrid\)"),
            (simple.ProgrammableSource(OutputDataSetType="vtkPolyData", Script="pass"), "points, found none"),
        )
        self.assert_raise(*((lambda shown=shown: attentionatlas.display(shown), message) for shown, message in rows))
        too_small = "width: expected 16 to 16384 pixels, found 1"
        self.assert_raise((lambda: attentionatlas.display(simple.Sphere(), width=1), too_small))
