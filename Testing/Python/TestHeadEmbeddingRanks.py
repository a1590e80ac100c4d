"""Layouts of heads on several MPI ranks are as on one, to the byte.

On the first of its numbers of ranks this test leaves its arrays for the others.
"""

import atlastest
import numpy
from atlastest import RANKS, AtlasTest
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy

TRANSFORMERS = atlastest.ORACLE.parent / "transformers"


class HeadEmbedding(AtlasTest):
    def setUp(self):
        super().setUp()
        model = simple.TransformerReader(FileName=str(TRANSFORMERS / "gpt2" / "config.json"))
        lines = "\n".join(" ".join(str(7 * i * k % 200) for i in range(1, 18)) for k in range(1, 5))
        self.recording = simple.TransformerRecorder(Input=model, TokenIds=lines)

    def arrays(self, embedding):
        """All arrays of points, of all ranks one after another, and the table of the first."""
        embedding.UpdatePipeline()
        parts = []
        for rank in range(RANKS):
            part = servermanager.Fetch(embedding, rank)
            if part.GetNumberOfPoints() > 0:
                points = {"Points": vtk_to_numpy(part.GetPoints().GetData()).copy()}
                parts.append({**atlastest.arrays_of(part), **points})
        arrays = {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}
        table = embedding.GetClientSideObject().GetOutputDataObject(1)
        for c in range(table.GetNumberOfColumns()):
            column = vtk_to_numpy(table.GetColumn(c)).copy()
            arrays[f"table {table.GetColumnName(c)}"] = column
        return arrays, len(parts)

    def check(self, name, embedding):
        arrays, parts = self.arrays(embedding)
        self.assertEqual(len(arrays["Points"]), 8 * 2 * 68)
        self.assertEqual(len(arrays["table Layer"]), 8)
        self.assertEqual(parts, RANKS)
        self.assert_as_on_one_rank(name, arrays)

    def test_methods(self):
        for method in ("PCA", "TSNE", "UMAP"):
            embedding = simple.HeadEmbedding(Input=self.recording, Method=method, Perplexity=20)
            self.check(method, embedding)

    def test_cross_attention(self):
        """Queries of targets of 9 tokens in all, with the start token of each, and keys of sources of 12."""
        model = atlastest.ORACLE.parent / "models" / "transformers" / "bart" / "config.json"
        recording = simple.TransformerRecorder(
            Input=simple.TransformerReader(FileName=str(model)),
            TokenIds="5 7 9 11\n8 6 4\n3 12 15 20 22", Targets="9 8\n7\n6 5 4",
        )
        for method in ("PCA", "TSNE"):
            embedding = simple.HeadEmbedding(
                Input=recording, AttentionKind="Cross", Method=method, Perplexity=4, Iterations=100
            )
            arrays, parts = self.arrays(embedding)
            self.assertEqual(len(arrays["Points"]), 8 * (9 + 12))
            self.assertEqual(parts, RANKS)
            self.assert_as_on_one_rank(f"cross-{method}", arrays)

    def test_a_change_is_the_same_everywhere(self):
        embedding = simple.HeadEmbedding(Input=self.recording, Method="TSNE", Perplexity=20)
        embedding.UpdatePipeline()
        embedding.Perplexity = 25  # starts from the layout before, whichever rank has made it
        self.check("warm", embedding)
        embedding.Layer, embedding.Head = 1, 3
        arrays, parts = self.arrays(embedding)
        self.assertEqual(parts, 1)
        self.assertEqual(list(arrays["table Iterations"]), [250])
        self.assert_as_on_one_rank("one", arrays)

    def test_an_error_is_told_once(self):
        simple.HeadEmbedding(Input=self.recording, Method="TSNE", Perplexity=100).UpdatePipeline()
        self.assert_one_error("the largest that works for 136 points")


if __name__ == "__main__":
    atlastest.main()
