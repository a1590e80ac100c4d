"""Diagrams as vector graphics: the areas and texts of the view, in SVG and in PDF."""

import re
import subprocess
import xml.etree.ElementTree as xml

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import simple

SIZE = (600, 400)
SVG = "{http://www.w3.org/2000/svg}"


def corners(path):
    """The points of an area, as the document has them."""
    return numpy.array([[float(n) for n in pair] for pair in re.findall(r"(-?[\d.e+-]+),(-?[\d.e+-]+)", path.get("d"))])


class VectorExport(AtlasTest):
    def setUp(self):
        super().setUp()
        self.reader = atlastest.read_recording()
        self.view = simple.CreateView("AttentionDiagram", ViewSize=SIZE)

    def show(self, filter_):
        filter_.UpdatePipeline()
        displays = [
            simple.Show(simple.OutputPort(filter_, port), self.view)
            for port in range(filter_.SMProxy.GetNumberOfOutputPorts())
            if filter_.GetDataInformation(port).DataInformation.GetDataClassName() != "vtkTable"
        ]
        simple.Render(self.view)
        return displays[0]

    def export(self, name, **options):
        path = atlastest.OUTPUT / name
        path.unlink(missing_ok=True)
        simple.ExportView(str(path), view=self.view, **options)
        return path

    def document(self, **options):
        return xml.parse(self.export("view.svg", **options)).getroot()

    def rendered(self, path):
        """A page as pixels, from below."""
        target = path.with_name(path.stem + "-page")
        subprocess.run(["pdftoppm", "-r", "72", "-png", "-singlefile", path, target], check=True)
        return atlastest.read_picture(target.with_suffix(".png"))

    def test_areas_have_the_colors_of_weights(self):
        shown = simple.AttentionMap(Input=self.reader, Layer=3, Head=5)
        self.show(shown)
        document = self.document()
        self.assertEqual([int(document.get(n)) for n in ("width", "height")], list(SIZE))
        weights = atlastest.read_safetensors(atlastest.RECORDING)[0]["attention"][3, 5]
        colors = simple.GetColorTransferFunction("Weights").GetClientSideObject()
        camera = self.view.GetActiveCamera()
        scale = SIZE[1] / 2 / camera.GetParallelScale()
        middle = camera.GetFocalPoint()
        areas = [p for p in document.iter(f"{SVG}path") if len(corners(p)) == 4]
        for query in range(len(weights)):
            for key in range(len(weights)):
                x = SIZE[0] / 2 + (key - middle[0]) * scale
                y = SIZE[1] / 2 + (query + middle[1]) * scale
                inside = [p for p in areas if (corners(p).min(axis=0) <= (x, y)).all() and (corners(p).max(axis=0) >= (x, y)).all()]
                color = inside[-1].get("fill")
                found = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
                expected = numpy.zeros(3)
                colors.GetColor(weights[query, key], expected)
                numpy.testing.assert_allclose(found, 255 * expected, atol=1.5, err_msg=f"{query}, {key}")

    def test_texts_are_texts(self):
        shown = simple.AttentionMap(registrationName="Map", Input=self.reader, Layer=3, Head=5)
        display = self.show(shown)
        display.SetScalarBarVisibility(self.view, True)
        simple.Render(self.view)
        texts = list(self.document().iter(f"{SVG}text"))
        words = [t.text.strip() for t in texts]
        for word in ("Data", "·visualization", "powers", "·users"):
            self.assertEqual(words.count(word), 2, word)
        for word in ("Query", "Key", "Attention weight"):
            self.assertEqual(words.count(word), 1, word)
        self.assertTrue(any(w.startswith("Map") and "Head 5" in w for w in words), words)
        sizes = {t.get("font-size") for t in texts}
        self.assertLessEqual(sizes, {"12px", "13px"})
        upwards = [w.strip() for w, t in zip(words, texts) if "rotate(-90" in t.get("transform")]
        self.assertIn("Query", upwards)
        self.assertNotIn("Key", upwards)

    def test_pdf_has_the_same_texts_and_picture(self):
        for name in ("AttentionMap", "AttentionSentence", "HeadScores", "AttentionMatrix"):
            with self.subTest(filter=name):
                shown = getattr(simple, name)(Input=self.reader)
                self.show(shown)
                path = self.export(f"{name}.pdf")
                text = subprocess.run(["pdftotext", path, "-"], check=True, capture_output=True, text=True).stdout
                words = {t.text.strip() for t in self.document().iter(f"{SVG}text")}
                self.assertGreater(len(words), 6)
                for word in words:
                    self.assertIn(word.split()[0], text)
                self.assertFalse(subprocess.run(["pdfimages", "-list", path], check=True, capture_output=True, text=True).stdout.splitlines()[2:])
                view = atlastest.picture(self.view, name)[..., :3]
                page = self.rendered(path)[..., :3]
                self.assertEqual(page.shape, view.shape)
                # Letters are of another font, and borders half a pixel aside.
                blurred = [p.reshape(SIZE[1] // 8, 8, SIZE[0] // 8, 8, 3).mean(axis=(1, 3)) for p in (view, page)]
                self.assertLess(numpy.abs(blurred[0] - blurred[1]).mean(), 4)
                simple.Delete(shown)

    def test_any_script(self):
        model = atlastest.read_transformer("gpt2")
        run = simple.TransformerRecorder(Input=model, TokenIds="1 2 3")
        shown = simple.AttentionMap(Input=run)
        self.show(shown)
        self.view.Title = "Внимание <&> \"x\" Ω"
        simple.Render(self.view)
        self.assertIn(self.view.Title, [t.text.strip() for t in self.document().iter(f"{SVG}text")])

    def test_background(self):
        self.show(simple.AttentionMap(Input=self.reader))
        path = self.export("plain.svg", Background=0)
        fills = [p.get("fill") for p in xml.parse(path).getroot().iter(f"{SVG}path")]
        with_ground = [p.get("fill") for p in self.document().iter(f"{SVG}path")]
        self.assertEqual(with_ground[1:], fills)
        self.assertEqual(with_ground[0].lower(), "#ffffff")

    def test_what_cannot_be_written_is_named(self):
        self.show(simple.AttentionMap(Input=self.reader))
        folder = atlastest.OUTPUT / "no such folder"
        simple.ExportView(str(folder / "view.svg"), view=self.view)
        self.assert_one_error("no such folder")
        self.assertFalse(folder.exists())

    def test_large_slices_are_pictures(self):
        """As the view shows them, in the document and on the page."""
        display = self.show(simple.Wavelet(WholeExtent=[0, 299, 0, 299, 0, 0]))
        display.Representation, display.ColorArrayName = "Slice", ["POINTS", "RTData"]
        simple.Render(self.view)
        (image,) = (i for i in self.document().iter(f"{SVG}image") if i.get("width") == "300")
        self.assertEqual(image.get("height"), "300")
        view = atlastest.picture(self.view, "slice")[..., :3]
        page = self.rendered(self.export("slice.pdf"))[..., :3]
        self.assertLess(atlastest.different_pixels(page, view), 0.03)

    def test_discs_have_their_radius(self):
        """In units of the scene."""
        display = self.show(simple.PointSource(NumberOfPoints=3, Radius=1))
        display.Representation, display.GaussianRadius = "Point Gaussian", 0.25
        simple.Render(self.view)
        radius = 0.25 * SIZE[1] / 2 / self.view.GetActiveCamera().GetParallelScale()
        discs = [float(c.get("r")) for c in self.document().iter(f"{SVG}circle")]
        numpy.testing.assert_allclose(discs, [radius] * 3, rtol=1e-4)

    def test_labels_of_heads_lie_beside_all_discs(self):
        self.show(simple.HeadScatter(Input=simple.CorpusReader(FileName=str(atlastest.DATA / "corpus" / "language-2.safetensors"))))
        document = self.document()
        heads = [f"{layer}.{head}" for layer in range(2) for head in range(8)]
        labels = {t.text.strip(): t for t in document.iter(f"{SVG}text") if t.text.strip() in heads}
        self.assertEqual(sorted(labels), heads)
        discs = [corners(p) for p in document.iter(f"{SVG}path") if len(corners(p)) == 32]
        self.assertEqual(len(discs), len(heads))
        for name, text in labels.items():
            x, y = map(float, re.search(r"translate\(([-\d.]+)[ ,]+([-\d.]+)", text.get("transform")).groups())
            size = float(text.get("font-size").removesuffix("px"))
            for disc in discs:
                middle = disc.mean(axis=0)
                radius = numpy.linalg.norm(disc - middle, axis=1).max()
                nearest = numpy.clip(middle, (x, y - 0.7 * size), (x + size, y))  # of the first letters
                self.assertGreater(numpy.linalg.norm(nearest - middle), 0.8 * radius, name)

    def test_what_has_no_lines_is_named(self):
        self.show(simple.Plane())
        self.view.AxesGrid.Visibility = 1
        simple.Render(self.view)
        self.export("axes.svg")
        self.assert_one_error("axes.svg: left out a vtkPVGridAxes3DActor")

    def test_other_views_keep_paraviews_exporters(self):
        view = simple.CreateView("RenderView", ViewSize=[200, 200])
        simple.Show(simple.Sphere(), view)
        simple.Render(view)
        path = atlastest.OUTPUT / "sphere.svg"
        simple.ExportView(str(path), view=view)
        self.assertNotIn("Attention", path.read_text())
