"""Attention tokens on several MPI ranks, which share the vocabulary: as on one, to the byte.

On the first of its numbers of ranks this test leaves its arrays for the others.
"""

import atlastest
from atlastest import RANKS, AtlasTest
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy

TRANSFORMERS = atlastest.ORACLE.parent / "transformers"


def numbers(attributes):
    arrays = [attributes.GetArray(i) for i in range(attributes.GetNumberOfArrays())]
    return {array.GetName(): vtk_to_numpy(array).copy() for array in arrays if array}


class Tokens(AtlasTest):
    def setUp(self):
        super().setUp()
        self.model = simple.TransformerReader(FileName=str(TRANSFORMERS / "gpt2" / "config.json"))
        recording = simple.TransformerRecorder(Input=self.model, TokenIds="5 7 9 11 5 7 9 11 100 3\n1 2 3 4 5")
        self.tokens = simple.AttentionTokens(Input=recording, Model=self.model, Layer=-1, Sequence=-1, Top=3)

    def output(self, source, port):
        """What the first rank has; the others have nothing."""
        simple.OutputPort(source, port).UpdatePipeline()
        for rank in range(1, RANKS):
            part = servermanager.Fetch(source, rank, idx=port)
            self.assertEqual(part.GetNumberOfRows() if part.IsA("vtkTable") else part.GetNumberOfCells(), 0)
        return servermanager.Fetch(source, 0, idx=port)

    def test_tokens(self):
        for port in (0, 2, 3):
            table = self.output(self.tokens, port)
            self.assertGreater(table.GetNumberOfRows(), 0)
            self.assert_as_on_one_rank(f"tokens-{port}", numbers(table.GetRowData()))
        cells = self.output(self.tokens, 1)
        self.assertGreater(cells.GetNumberOfCells(), 0)
        self.assert_as_on_one_rank("cells", numbers(cells.GetCellData()))

    def test_shared(self):
        shared = simple.SharedTokens(Input=self.tokens)
        image = self.output(shared, 0)
        self.assertEqual(image.GetNumberOfPoints(), 64)
        self.assert_as_on_one_rank("shared", numbers(image.GetPointData()))

    def test_embedding(self):
        points = self.output(simple.AttentionTokenLayout(Input=self.tokens, Model=self.model, Iterations=50), 0)
        places = {"places": vtk_to_numpy(points.GetPoints().GetData()).copy()}
        self.assert_as_on_one_rank("embedding", places)

    def test_errors_come_once(self):
        self.tokens.Head = 9
        self.tokens.UpdatePipeline()
        self.assert_one_error("Head: expected -1 for all, or 0 to 3, found 9")


if __name__ == "__main__":
    atlastest.main()
