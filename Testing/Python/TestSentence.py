"""Attention between words: the proxy, its picture and its links to other views, and its figures for print."""

import json
import warnings

import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import sentence
from attentionatlas._internal import data
from attentionatlas.output import Output, save
from figuretest import poppler
from matplotlib.collections import LineCollection
from paraview import simple
from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
from vtkmodules.vtkCommonCore import VTK_ID_TYPE
from vtkmodules.vtkCommonDataModel import vtkSelection, vtkSelectionNode
from vtkmodules.vtkFiltersExtraction import vtkConvertSelection

LAYER, HEAD = 4, 11
AMBER = [230, 140, 0]
#: What points and words of a recording share.
INDEX = "Token Index"


def cell_array(source, name, port=0):
    """A cell array of an output."""
    return vtk_to_numpy(data.fetch(source, port).GetCellData().GetArray(name))


def write_attention(name, tokens, causal=True, seed=3):
    """A recording of random attention, [1, 2, tokens, tokens], with its tokens; returns its path."""
    generator = numpy.random.default_rng(seed)
    scores = 2 * generator.normal(size=(1, 2, len(tokens), len(tokens)))
    if causal:
        scores[..., *numpy.triu_indices(len(tokens), 1)] = -numpy.inf
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    path = atlastest.OUTPUT / f"{name}.npy"
    atlastest.OUTPUT.mkdir(parents=True, exist_ok=True)
    numpy.save(path, (weights / weights.sum(axis=-1, keepdims=True)).astype("f4"))
    path.with_suffix(".tokens.json").write_text(json.dumps(tokens), encoding="utf-8")
    return path


class Proxy(AtlasTest):
    def test_rollout(self):
        reader = atlastest.read_recording()
        attention = atlastest.read_safetensors(atlastest.RECORDING)[0]["attention"]
        shown = simple.AttentionSentence(Input=reader, Layer=2, Quantity="Rollout")
        found, expected = numpy.zeros((6, 6)), numpy.eye(6)
        found[cell_array(shown, "Query"), cell_array(shown, "Key")] = cell_array(shown, "Weight")
        for layer in range(3):
            expected = (attention[layer].mean(axis=0) + numpy.eye(6)) / 2 @ expected
        numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)


class Links(AtlasTest):
    """Selections by Token Index, between words and points of an embedding."""

    def setUp(self):
        super().setUp()
        recording = simple.TransformerRecorder(Input=atlastest.read_transformer("gpt2"), TokenIds="5 17 9 8\n4 5 6 7 8")
        self.sentence = simple.AttentionSentence(Input=recording, Sequence=1)
        self.embedding = simple.HeadEmbedding(Input=recording, Method="PCA")
        self.embedding.UpdatePipeline()
        self.words = simple.OutputPort(self.sentence, 1)
        self.words.UpdatePipeline()

    def by_token(self, ids, source):
        """A selection of points as one of their tokens, as a linked selection has it."""
        node = vtkSelectionNode()
        node.SetContentType(vtkSelectionNode.INDICES)
        node.SetFieldType(vtkSelectionNode.POINT)
        node.SetSelectionList(numpy_to_vtk(numpy.array(ids), array_type=VTK_ID_TYPE))
        selection = vtkSelection()
        selection.AddNode(node)
        points = data.fetch(source, getattr(source, "Port", 0))
        chosen = vtkConvertSelection.ToPedigreeIdSelection(selection, points).GetNode(0).GetSelectionList()
        pairs = [x for i in range(chosen.GetNumberOfTuples()) for x in (INDEX, str(chosen.GetValue(i)))]
        return simple.PedigreeIDSelectionSource(FieldType="POINT", PedigreeIDs=pairs)

    def tokens(self, selection, source, name=INDEX):
        found = data.fetch(simple.ExtractSelection(Input=source, Selection=selection))
        points = [found] if not found.IsA("vtkCompositeDataSet") else [found.GetBlock(0)]
        return data.point_array(points[0], name)

    def test_words_select_points(self):
        selection = self.by_token([1, 8], self.words)  # a query and a key: tokens 5 and 7
        self.assertEqual(set(self.tokens(selection, self.words)), {5, 7})
        found = self.tokens(selection, self.embedding)
        self.assertEqual(set(found), {5, 7})
        self.assertEqual(len(found), 2 * 2 * 8)  # queries and keys of all heads

    def test_points_select_words(self):
        selection = self.by_token([6], self.embedding)
        self.assertEqual(set(self.tokens(selection, self.embedding)), {6})
        found = self.tokens(selection, self.words, "Side")
        self.assertEqual(sorted(found), [0, 1])
        self.sentence.Selection = selection
        self.assertEqual(set(cell_array(self.sentence, "Query")), {6})
        self.assertEqual(list(cell_array(self.sentence, "Key")), [4, 5, 6])
        self.sentence.Direction = "ToKeys"
        self.assertEqual(set(cell_array(self.sentence, "Key")), {6})


class Picture(AtlasTest):
    def shown(self, name, background=(1, 1, 1), size=(600, 400), **properties):
        """A picture of all outputs as they are first shown."""
        reader = atlastest.read_recording(name)
        source = simple.AttentionSentence(Input=reader, **properties)
        view = simple.CreateRenderView(ViewSize=size, UseColorPaletteForBackground=0)
        view.Background, view.OrientationAxesVisibility = background, 0
        shown = [simple.Show(simple.OutputPort(source, port), view) for port in range(3)]
        simple.ResetCamera(view)
        return view, shown

    def columns(self, chosen):
        """The first and last column of chosen pixels."""
        columns = numpy.flatnonzero(chosen.any(axis=0))
        return columns[0], columns[-1]

    def test_first_apply(self):
        view, shown = self.shown(atlastest.RECORDING, Layer=LAYER, Head=HEAD)
        self.assertEqual([one.Representation for one in shown], ["Weighted Lines", "Token Labels", "Surface"])
        self.assertEqual(list(shown[0].ColorArrayName), ["CELLS", "HeadColor"])
        self.assertEqual(shown[0].MapScalars, 0)
        pixels = atlastest.picture(view, "first")
        ink = pixels.max(axis=2) < 100
        amber = numpy.abs(pixels - AMBER).max(axis=2) < 40
        left, right = self.columns(ink)
        begin, end = self.columns(amber)
        self.assertLess(left, begin)
        self.assertLess(right, end)  # bars
        self.assertGreater(left, 5)
        between = ink[:, begin + 5 : begin + 60]
        self.assertEqual(between.sum(), 0)  # no word lies under a line

    def test_opacity_is_the_weight(self):
        weights = numpy.zeros((1, 1, 3, 3), "f4")
        weights[0, 0] = [[1, 0, 0], [0, 0.5, 0.5], [0.25, 0, 0.75]]
        path = atlastest.OUTPUT / "opacity.npy"
        numpy.save(path, weights)
        view, shown = self.shown(path)
        shown[0].LineWidth = 9
        pixels = atlastest.picture(view, "opacity")
        for weight in (1, 0.5, 0.75):  # lines that do not cross
            expected = 255 - weight * (255 - numpy.array(AMBER))
            self.assertGreater((numpy.abs(pixels - expected).max(axis=2) < 8).sum(), 100, weight)

    def test_width_grows_with_the_weight(self):
        weights = numpy.zeros((1, 1, 2, 2), "f4")
        weights[0, 0] = [[1, 0], [0.5, 0.5]]
        path = atlastest.OUTPUT / "width.npy"
        numpy.save(path, weights)
        view, shown = self.shown(path, HiddenTokens=[], SelectedTokens=[0])
        shown[2].Visibility = 0
        shown[0].LineWidth = 10
        wide = numpy.abs(atlastest.picture(view, "wide") - AMBER).max(axis=2) < 40
        self.assertAlmostEqual(wide.sum(axis=0).max(), 10, delta=1)
        shown[0].Input.SelectedTokens = [1]
        half = 255 - 0.5 * (255 - numpy.array(AMBER))
        narrow = numpy.abs(atlastest.picture(view, "narrow") - half).max(axis=2) < 20
        column = narrow[:, narrow.any(axis=0)].sum(axis=0)
        self.assertLess(numpy.median(column), 2 * 8)  # two lines of 0.6 of the width
        shown[0].Representation = "Surface"
        self.assertGreater((atlastest.picture(view, "even") < 250).sum(), 0)

    def test_cells_are_selected_by_their_number(self):
        view, shown = self.shown(atlastest.RECORDING, Layer=LAYER, Heads=[0, 3, 11])
        source = shown[0].Input
        simple.Render(view)
        simple.SelectSurfaceCells(Rectangle=[0, 0, 599, 399], View=view)
        chosen = data.fetch(simple.ExtractSelection(Input=source))
        chosen = chosen.GetBlock(0) if chosen.IsA("vtkCompositeDataSet") else chosen
        keys = vtk_to_numpy(chosen.GetCellData().GetArray("Key"))
        self.assertGreater(len(keys), 30)
        places = vtk_to_numpy(chosen.GetCellData().GetArray("vtkOriginalCellIds"))
        numpy.testing.assert_array_equal(keys, cell_array(source, "Key")[places])

    def test_hidden_words_are_gray(self):
        view, _ = self.shown(atlastest.RECORDING, HideFirst=1)
        pixels = atlastest.picture(view, "hidden")
        gray = (numpy.ptp(pixels, axis=2) < 12) & (numpy.abs(pixels[..., 0] - 153) < 20)
        self.assertGreater(gray.sum(), 20)

    def test_letters_grow_with_the_scene(self):
        view, shown = self.shown(atlastest.RECORDING)
        small = (atlastest.picture(view, "small").max(axis=2) < 100).sum()
        shown[1].LabelFontSize = 60
        view.GetActiveCamera().Zoom(1.5)
        large = (atlastest.picture(view, "large").max(axis=2) < 100).sum()
        self.assertGreater(large, 1.5 * small)
        shown[1].LabelFontSize = 5
        self.assertLess((atlastest.picture(view, "least").max(axis=2) < 100).sum(), small)

    def test_letters_of_other_scripts(self):
        tokens = [" \u05e9\u05dc\u05d5\u05dd", " \u043c\u0438\u0440", " \u0645\u0631\u062d\u0628\u0627"]
        view, _ = self.shown(write_attention("scripts", tokens))
        self.assertGreater((atlastest.picture(view, "scripts").max(axis=2) < 100).sum(), 150)
        self.assertEqual(self.take_errors(), [])

    def test_letters_without_a_font(self):
        view, _ = self.shown(write_attention("unknown", ["a", "\u0378", "b"]))
        self.assertGreater((atlastest.picture(view, "unknown").max(axis=2) < 100).sum(), 150)
        errors = self.take_errors()
        self.assertEqual(len(errors), 1)
        self.assertIn("shown as \\u{...}. Install one, such as Debian's package fonts-noto-core", errors[0])

    def test_a_font_file(self):
        view, shown = self.shown(atlastest.RECORDING)
        shown[1].FontFile = str(atlastest.SOURCE / "LICENSE")
        simple.Render(view)
        self.assert_one_error("FontFile: expected a TrueType or OpenType font, found")


class Figures(AtlasTest):
    def lines(self, figure):
        """The ends, colors and widths of all lines."""
        drawn = [item for item in figure.axes[0].collections if isinstance(item, LineCollection)]
        ends = numpy.concatenate([numpy.array(item.get_segments()).reshape(-1, 2, 2) for item in drawn])
        colors = numpy.concatenate([item.get_colors() for item in drawn])
        return ends, colors, numpy.concatenate([item.get_linewidths() for item in drawn])

    def texts(self, figure):
        return [text.get_text() for text in figure.axes[0].texts]

    def test_lines_are_the_weights(self):
        figure = sentence.lines(atlastest.RECORDING, LAYER, HEAD, threshold=0.05)
        attention = atlastest.read_safetensors(atlastest.RECORDING)[0]["attention"][LAYER, HEAD]
        expected = numpy.sort(attention[attention >= 0.05])
        ends, colors, widths = self.lines(figure)
        numpy.testing.assert_allclose(numpy.sort(colors[:, 3]), expected, atol=0.006)
        self.assertTrue((numpy.argsort(widths) == numpy.argsort(colors[:, 3])).all() or len(set(widths)) < 3)
        self.assertTrue((ends[:, 0, 0] < ends[:, 1, 0]).all())
        self.assertGreater(numpy.ptp(ends[..., 0]), 0.7 * 180)  # the lines fill the page
        labels = ["Data", "\u00b7visualization", "\u00b7em", "powers", "\u00b7users", "\u00b7to"]
        self.assertEqual(self.texts(figure)[1:13], 2 * labels)
        self.assertEqual(self.texts(figure)[0], f"Layer {LAYER}, head {HEAD}")

    def test_several_heads_have_colors(self):
        figure = sentence.lines(atlastest.RECORDING, LAYER, [0, 1])
        colors = numpy.unique(numpy.round(255 * self.lines(figure)[1][:, :3]), axis=0)
        self.assertEqual(sorted(colors.tolist()), sorted(map(list, numpy.array(atlastest.PALETTE[:2], float))))
        legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        self.assertEqual(legend, ["head 0", "head 1"])

    def test_a_page_of_256_tokens(self):
        path = write_attention("page", [f" word{i}" for i in range(256)])
        (figure,) = sentence.pages(path)
        width, height = figure.get_size_inches() * 25.4
        self.assertAlmostEqual(width, 180)
        self.assertLessEqual(height, 250)
        words = [text for text in figure.axes[0].texts if "word" in text.get_text()]
        self.assertEqual(len(words), 6 * 128)  # three pages of 128 rows
        self.assertGreaterEqual(min(text.get_size() for text in words), 4.95)
        places = {(text.get_position(), text.get_ha()) for text in words}
        self.assertEqual(len(places), len(words))
        rows = numpy.unique(numpy.round([y for (_, y), _ in places], 6))
        self.assertGreater(numpy.diff(rows).min() / 25.4 * 72, 5)  # a letter's height
        file = save(figure, atlastest.OUTPUT / "page.pdf")
        text = poppler("pdftotext", file, "-")
        self.assertIn("\u00b7word255", text)

    def test_pages_of_long_texts(self):
        path = write_attention("long", [f" w{i}" for i in range(400)])
        figures = sentence.pages(path, threshold=0.2)
        shown = sum(len(self.lines(figure)[0]) for figure in figures)
        attention = numpy.load(path)[0, 0]
        self.assertEqual(shown, (attention >= 0.2).sum())
        self.assertEqual(len(figures), 2)  # ten panels of 100 rows; five side by side
        for figure in figures:
            self.assertLessEqual(figure.get_size_inches()[1] * 25.4, 250)
        self.assertIn(f"(page 1 of {len(figures)})", self.texts(figures[0])[0])
        part = sentence.lines(path, first=100, count=50)
        self.assertIn("tokens 100 to 149 of 400", self.texts(part)[0])
        self.assertEqual(self.texts(sentence.lines(path))[0].split("; ")[1], "tokens 0 to 255 of 400")

    def test_files(self):
        folder = atlastest.OUTPUT / "figures"
        for format in ("png", "pdf", "svg"):
            files = sentence.render(atlastest.RECORDING, folder, Output(format, 400), layer=LAYER, head="mean")
            self.assertEqual([file.name for file in files], [f"{atlastest.RECORDING.stem}-sentence.{format}"])
        self.assertEqual(atlastest.read_picture(folder / f"{atlastest.RECORDING.stem}-sentence.png").shape[1], 400)
        sentence.main([str(atlastest.RECORDING), "-o", str(folder), "--width", "400", "--head", "0,mean",
                       "--hide-first", "--hidden", "2", "--selected", "3,4", "--rows", "4"])

    def test_letters_without_a_font(self):
        path = write_attention("escape", ["a", "\u0378"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figure = sentence.lines(path)
        self.assertIn("\\u{0378}", self.texts(figure))
        self.assertTrue(any("fonts-noto-core" in str(warning.message) for warning in caught))

    def test_bad_input(self):
        path = atlastest.RECORDING
        self.assert_raise(
            (lambda: sentence.lines("none.npy"), "none.npy: no such file", FileNotFoundError),
            (lambda: sentence.lines(path, rows=0), "rows: expected 1 to"),
            (lambda: sentence.lines(path, layer=12), "layer: expected one of 0 to 11, found 12"),
            (lambda: sentence.lines(path, width_mm=5), "width-mm: expected"),
        )
