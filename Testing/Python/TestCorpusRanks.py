"""Statistics of a corpus on several MPI ranks, which share its batches: as on one, to the byte."""

import atlastest
from atlastest import RANKS, arrays_of
from paraview import simple
from ranktest import RankTest

MODEL = atlastest.DATA / "models" / "language-2" / "config.json"
OPTIONS = {
    "Documents": "Paragraphs", "BatchTokens": 200, "Samples": 100, "SampleValues": 1, "Contexts": 5,
    "DictionaryFile": str(atlastest.DATA / "dictionaries" / "language-2" / "sae_weights.safetensors"),
}


class Corpus(RankTest):
    def setUp(self):
        super().setUp()
        self.model = simple.TransformerReader(FileName=str(MODEL), Checkpoints=0)
        self.texts = [atlastest.write_prose("a.txt"), atlastest.write_prose("other.txt")]

    def measured(self, tokens=3000, files=None, **options):
        given = {"Files": files or self.texts, "TokenLimit": tokens, **OPTIONS, **options}
        return simple.CorpusStatistics(Input=self.model, **given)

    def arrays(self, source):
        """The columns and all bytes of the statistics, which the first rank has."""
        table = self.first(source)
        self.assertEqual(table.GetNumberOfRows(), 16)
        return arrays_of(table, "RowData") | arrays_of(table, "FieldData")

    def test_statistics(self):
        arrays = self.arrays(self.measured())
        self.assertGreaterEqual(arrays["Tokens"][0], 3000)
        self.assert_as_on_one_rank("statistics", arrays)

    def test_all_of_the_text(self):
        """The last round of batches has fewer than ranks."""
        for batch in (200, 100000):
            arrays = self.arrays(self.measured(0, self.texts[:1], BatchTokens=batch))
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
            self.assert_first(name, getattr(simple, name)(Input=source), *range(ports))

    def test_errors_come_once(self):
        binary = str(MODEL.with_name("model.safetensors"))
        self.assert_told_once(
            (self.measured(Window=1), "Window: expected 2 to 128 tokens"),
            (self.measured(files=[self.texts[0], binary], tokens=0), "model.safetensors, line 1: expected UTF-8 text"),
        )
