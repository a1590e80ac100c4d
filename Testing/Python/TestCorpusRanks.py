"""Statistics of a corpus on several MPI ranks, which share its batches: as on one, to the byte.

On the first of its numbers of ranks this test leaves its arrays for the others.
"""

import atlastest
from atlastest import RANKS, AtlasTest
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy

MODEL = atlastest.DATA / "models" / "language-2" / "config.json"
TEXTS = [str(atlastest.SOURCE / "Plugin" / "Documentation" / name) for name in ("Glossary.md", "Tutorial.md")]
OPTIONS = {"Documents": "Paragraphs", "BatchTokens": 200, "Samples": 100, "SampleValues": 1, "Contexts": 5}


def numbers(attributes):
    arrays = [attributes.GetArray(i) for i in range(attributes.GetNumberOfArrays())]
    return {array.GetName(): vtk_to_numpy(array).copy() for array in arrays if array}


class Corpus(AtlasTest):
    def setUp(self):
        super().setUp()
        self.model = simple.TransformerReader(FileName=str(MODEL), Checkpoints=0)

    def measured(self, tokens=3000, files=TEXTS, **options):
        return simple.CorpusStatistics(Input=self.model, Files=files, TokenLimit=tokens, **{**OPTIONS, **options})

    def output(self, source, port=0):
        """What the first rank has; the others have nothing."""
        simple.OutputPort(source, port).UpdatePipeline()
        for rank in range(1, RANKS):
            part = servermanager.Fetch(source, rank, idx=port)
            self.assertEqual(part.GetNumberOfRows() if part.IsA("vtkTable") else part.GetNumberOfCells(), 0)
        return servermanager.Fetch(source, 0, idx=port)

    def arrays(self, source):
        """The columns and all bytes of the statistics."""
        table = self.output(source)
        self.assertEqual(table.GetNumberOfRows(), 16)
        return numbers(table.GetRowData()) | numbers(table.GetFieldData())

    def test_statistics(self):
        arrays = self.arrays(self.measured())
        self.assertGreaterEqual(arrays["Tokens"][0], 3000)
        self.assert_as_on_one_rank("statistics", arrays)

    def test_all_of_the_text(self):
        """The last round of batches has fewer than ranks."""
        for batch in (200, 100000):
            arrays = self.arrays(self.measured(0, TEXTS[:1], BatchTokens=batch))
            self.assertEqual(arrays["Complete"][0], 1)
            self.assert_as_on_one_rank(f"whole-{batch}", arrays)

    def test_goes_on(self):
        """From what was measured, and from a file: as at once."""
        at_once = self.arrays(self.measured())
        source = self.measured(1000)
        self.assertLess(self.arrays(source)["Tokens"][0], 3000)
        path = str(atlastest.OUTPUT / f"part-{RANKS}.safetensors")
        simple.SaveData(path, proxy=source)
        source.TokenLimit = 3000
        self.assert_same_arrays(self.arrays(source), at_once)
        self.assert_same_arrays(self.arrays(self.measured(ContinueFrom=path)), at_once)

    def test_views(self):
        source = self.measured()
        for name, ports in (("HeadScatter", 1), ("HeadHistogram", 2), ("HeadTokenTable", 1), ("TopContexts", 3), ("ScoreParts", 2)):
            filter = getattr(simple, name)(Input=source)
            for port in range(ports):
                data = self.output(filter, port)
                attributes = data.GetRowData() if data.IsA("vtkTable") else data.GetCellData()
                self.assert_as_on_one_rank(f"{name}-{port}", numbers(attributes))

    def test_errors_come_once(self):
        self.measured(Window=1).UpdatePipeline()
        self.assert_one_error("Window: expected 2 to 128 tokens")
        binary = str(atlastest.DATA / "models" / "language-2" / "model.safetensors")
        self.measured(files=[*TEXTS[:1], binary], tokens=0).UpdatePipeline()
        self.assert_one_error("model.safetensors, line 1: expected UTF-8 text")


if __name__ == "__main__":
    atlastest.main()
