"""Colors, search and lines on several MPI ranks are as on one, to the byte.

On the first of its numbers of ranks this test leaves its arrays for the others.
"""

import atlastest
import numpy
from atlastest import RANKS, AtlasTest
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy

TRANSFORMERS = atlastest.ORACLE.parent / "transformers"


class TokenViews(AtlasTest):
    def setUp(self):
        super().setUp()
        model = simple.TransformerReader(FileName=str(TRANSFORMERS / "gpt2" / "config.json"))
        lines = "\n".join(" ".join(str(7 * i * k % 200) for i in range(1, 18)) for k in range(1, 5))
        self.recording = simple.TransformerRecorder(Input=model, TokenIds=lines)
        self.embedding = simple.HeadEmbedding(Input=self.recording, Method="PCA")

    def parts(self, source):
        source.UpdatePipeline()
        parts = [servermanager.Fetch(source, rank) for rank in range(RANKS)]
        return [part for part in parts if part.GetNumberOfPoints() > 0]

    def joined(self, arrays):
        return {name: numpy.concatenate([part[name] for part in arrays]) for name in arrays[0]}

    def table(self, source, port):
        simple.OutputPort(source, port).UpdatePipeline()
        table = source.GetClientSideObject().GetOutputDataObject(port)
        columns = [table.GetColumn(c) for c in range(table.GetNumberOfColumns())]
        return {c.GetName(): vtk_to_numpy(c).copy() for c in columns if c.IsNumeric()}

    def test_colors(self):
        for by in ("Position", "Norm", "TokenCount", "SentenceLength"):
            colors = simple.TokenColors(Input=self.embedding, By=by)
            arrays = [atlastest.arrays_of(part) for part in self.parts(colors)]
            self.assert_as_on_one_rank(by, self.joined(arrays))
            self.assert_as_on_one_rank(f"legend-{by}", self.table(colors, 1))

    def test_lines(self):
        lines = simple.AttentionLines(Input=self.embedding, Recording=self.recording)
        parts = self.parts(lines)
        arrays = []
        for part in parts:
            data = part.GetCellData()
            cells = [data.GetArray(i) for i in range(data.GetNumberOfArrays())]
            arrays.append({cell.GetName(): vtk_to_numpy(cell).copy() for cell in cells})
        self.assertEqual(len(arrays), RANKS)
        self.assert_as_on_one_rank("lines", self.joined(arrays))

    def test_a_selection_of_one_rank_holds_on_all(self):
        lines = simple.AttentionLines(Input=self.embedding, Recording=self.recording)
        lines.Selection = simple.IDSelectionSource(IDs=[0, 7], FieldType="POINT")
        layers = []
        for part in self.parts(lines):
            data = part.GetCellData()
            self.assertEqual(set(vtk_to_numpy(data.GetArray("Query"))), {7})
            layers.extend(vtk_to_numpy(data.GetArray("Layer")))
        self.assertEqual(set(layers), {0, 1})

    def test_words_are_on_the_first_rank(self):
        sentence = simple.AttentionSentence(Input=self.recording, Sequence=1, Layer=1, HideFirst=1)
        (lines,) = self.parts(sentence)
        data = lines.GetCellData()
        names = ("Weight", "Query", "Key", "HeadColor")
        cells = {name: vtk_to_numpy(data.GetArray(name)).copy() for name in names}
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
        search = simple.TokenSearch(Input=self.embedding, Match="TokenId", Text="7 14 21 49")
        arrays = [atlastest.arrays_of(part) for part in self.parts(search)]
        self.assert_as_on_one_rank("search", self.joined(arrays))
        table = self.table(search, 2)
        self.assertEqual(len(table["Layer"]), 8)
        self.assert_as_on_one_rank("heads", table)

    def test_search_in_heads_on_several_ranks(self):
        """The points are dealt out by their places: every head is in several parts."""
        spread = simple.RedistributeDataSet(Input=self.embedding)
        search = simple.TokenSearch(Input=spread, Match="TokenId", Text="7 14 21 49")
        found = self.table(search, 2)
        expected = simple.TokenSearch(Input=self.embedding, Match="TokenId", Text="7 14 21 49")
        for name, values in self.table(expected, 2).items():
            numpy.testing.assert_allclose(found[name], values, rtol=1e-5)

    def test_an_error_is_told_once(self):
        search = simple.TokenSearch(Input=self.embedding, Match="Regular Expression", Text="(a")
        search.UpdatePipeline()
        self.assert_one_error("Text: cannot understand the regular expression '(a'")


if __name__ == "__main__":
    atlastest.main()
