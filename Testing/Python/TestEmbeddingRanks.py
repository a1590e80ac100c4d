"""Layouts of heads with their colors, search and lines on several MPI ranks, which share the heads: as on one, to the byte."""

import atlastest
import numpy
from atlastest import RANKS, numbers, read_transformer
from paraview import simple
from ranktest import RankTest, first_output
from vtkmodules.util.numpy_support import vtk_to_numpy

SEARCH = {"Match": "TokenId", "Text": "7 14 21 49"}


class Embedding(RankTest):
    def setUp(self):
        super().setUp()
        lines = "\n".join(" ".join(str(7 * i * k % 200) for i in range(1, 18)) for k in range(1, 5))
        self.recording = simple.TransformerRecorder(Input=read_transformer("gpt2"), TokenIds=lines)

    def embedding(self, **properties):
        return simple.HeadEmbedding(**{"Input": self.recording, "Method": "PCA", "Perplexity": 20, **properties})

    def shared(self, source):
        """The arrays of all ranks one after another, and how many ranks have some."""
        parts = [numbers(part) for part in self.parts(source) if part.GetNumberOfPoints() > 0]
        return {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}, len(parts)

    def assert_shared(self, name, source, points=8 * 2 * 68, ranks=RANKS, table=None):
        """Expects so many points, of which all ranks have some, and a table of the first, as they are on one."""
        arrays, parts = self.shared(source)
        self.assertEqual((len(arrays["Points"]), parts), (points, ranks))
        self.assert_as_on_one_rank(name, arrays)
        if table is not None:
            self.assert_tables(f"table-{name}", source, table)

    def test_layouts(self):
        for method in ("PCA", "TSNE", "UMAP"):
            embedding = self.embedding(Method=method)
            self.assert_shared(method, embedding, table=1)
            self.assertEqual(first_output(embedding, 1).GetNumberOfRows(), 8)

    def test_cross_attention(self):
        """Queries of targets of 9 tokens in all, with the start token of each, and keys of sources of 12."""
        recording = simple.TransformerRecorder(
            Input=read_transformer("bart"), TokenIds="5 7 9 11\n8 6 4\n3 12 15 20 22", Targets="9 8\n7\n6 5 4"
        )
        options = {"Input": recording, "AttentionKind": "Cross", "Perplexity": 4, "Iterations": 100}
        for method in ("PCA", "TSNE"):
            self.assert_shared(f"cross-{method}", self.embedding(Method=method, **options), 8 * (9 + 12), table=1)

    def test_a_change_is_the_same_everywhere(self):
        embedding = self.embedding(Method="TSNE")
        embedding.UpdatePipeline()
        embedding.Perplexity = 25  # starts from the layout before, whichever rank has made it
        self.assert_shared("warm", embedding, table=1)
        embedding.Layer, embedding.Head = 1, 3
        self.assert_shared("one", embedding, 2 * 68, ranks=1, table=1)
        self.assertEqual(list(numbers(first_output(embedding, 1))["RowData Iterations"]), [250])

    def test_colors(self):
        for by in ("Position", "Norm", "TokenCount", "SentenceLength"):
            self.assert_shared(by, simple.TokenColors(Input=self.embedding(), By=by), table=1)

    def test_lines(self):
        lines = simple.AttentionLines(Input=self.embedding(), Recording=self.recording)
        arrays, parts = self.shared(lines)
        self.assertEqual(parts, RANKS)
        self.assert_as_on_one_rank("lines", {name: arrays[name] for name in arrays if name.startswith("CellData")})
        lines.Selection = simple.IDSelectionSource(IDs=[0, 7], FieldType="POINT")  # of one rank, which holds on all
        arrays, _ = self.shared(lines)
        self.assertEqual(set(arrays["CellData Query"]), {7})
        self.assertEqual(set(arrays["CellData Layer"]), {0, 1})

    def test_words_are_on_the_first_rank(self):
        sentence = simple.AttentionSentence(Input=self.recording, Sequence=1, Layer=1, HideFirst=1)
        data = self.first(sentence).GetCellData()
        cells = {name: vtk_to_numpy(data.GetArray(name)).copy() for name in ("Weight", "Query", "Key", "HeadColor")}
        self.assertEqual(len(cells["Weight"]), 16 * 17 // 2)
        self.assert_as_on_one_rank("sentence", cells)
        view = simple.CreateRenderView(ViewSize=[300, 300], UseColorPaletteForBackground=0)
        view.Background = [1, 1, 1]
        for port in range(3):
            simple.Show(simple.OutputPort(sentence, port), view)
        simple.ResetCamera(view)
        pixels = atlastest.picture(view, "sentence")
        self.assertGreater((pixels.max(axis=2) < 100).sum(), 100)  # letters
        between = numpy.ptp(pixels[:, 112:188], axis=2) > 8  # lines on white
        self.assertGreater(between.sum(), 6000)

    def test_search(self):
        """Also of points that are dealt out by their places, so that every head is in several parts."""
        search = simple.TokenSearch(Input=self.embedding(), **SEARCH)
        self.assert_shared("search", search, table=2)
        expected = numbers(first_output(search, 2))
        self.assertEqual(len(expected["RowData Layer"]), 8)
        spread = simple.TokenSearch(Input=simple.RedistributeDataSet(Input=self.embedding()), **SEARCH)
        found = numbers(first_output(spread, 2))
        for name, values in expected.items():
            numpy.testing.assert_allclose(found[name], values, rtol=1e-5)

    def test_errors_come_once(self):
        self.assert_told_once(
            (self.embedding(Method="TSNE", Perplexity=100), "the largest that works for 136 points"),
            (simple.TokenSearch(Input=self.embedding(), Match="Regular Expression", Text="(a"), "Text: cannot understand"),
        )
