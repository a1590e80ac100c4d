"""No failure or cancel on one of several MPI ranks leaves the others waiting, at any exchange of any filter.

A rank fails in place of an exchange, number 0, 1, ..., as the environment variable ATLAS_TEST_FAILURE says. When no
exchange has that number, the filter gives what it gave before.
"""

import unittest

import atlastest
from atlastest import RANKS, RECORD, AtlasTest
from paraview import simple

MOST_EXCHANGES = 20


@unittest.skipIf(RANKS == 1, "one rank has nobody to wait for")
class RankFailures(AtlasTest):
    def setUp(self):
        super().setUp()
        self.model = atlastest.read_transformer("gpt2")
        self.ids = "\n".join(" ".join(str(7 * i * k % 200) for i in range(1, 12)) for k in range(1, 5))
        self.recording = simple.TransformerRecorder(Input=self.model, TokenIds=self.ids, Record=RECORD)
        self.embedding = simple.HeadEmbedding(Input=self.recording, Method="PCA")
        self.embedding.UpdatePipeline()

    def tell_ranks(self, text):
        """Sets the variable on every rank. From 5.13 on, the script brings functions like any() into this module."""
        source = simple.ProgrammableSource(OutputDataSetType="vtkTable")
        source.Script = f"import os; os.environ['ATLAS_TEST_FAILURE'] = {text!r}"
        source.UpdatePipeline()
        simple.Delete(source)

    def size(self, source):
        """How much the ranks have in the filter's first output."""
        source.UpdatePipeline()
        information = source.GetDataInformation()
        return (information.GetNumberOfPoints(), information.GetNumberOfCells(), information.GetNumberOfRows(),
                information.GetNumberOfDataSets(), information.GetMemorySize() > 0)

    def check(self, make):
        def run():
            source = make()
            size = self.size(source)
            simple.Delete(source)
            return size

        expected = run()
        self.assertNotEqual(set(expected), {0, False})
        failures = 0
        for kind in ("throw", "memory", "cancel"):
            for rank in range(RANKS):
                for exchange in range(MOST_EXCHANGES + 1):
                    self.assertLess(exchange, MOST_EXCHANGES)
                    self.tell_ranks(f"{rank}:{exchange}:{kind}")
                    size = run()
                    self.tell_ranks("")
                    errors = self.take_errors()
                    if size == expected and not errors:
                        break
                    failures += 1
                    wanted = {"throw": "a failure for a test.", "memory": "bad_alloc", "cancel": None}[kind]
                    self.assertEqual(errors != [], wanted is not None)  # once for each update of an output
                    self.assertEqual([error for error in errors if wanted not in error], [])
        self.assertGreater(failures, 0)
        self.assertEqual(run(), expected)

    def test_filters(self):
        small = atlastest.torus(atlastest.read_model(), Quantities=["Output", "Head Output"])
        shown = {"Input": self.recording}
        both = {"Input": self.recording, "Model": self.model}
        for name, properties in (
            ("TransformerRecorder", {"Input": self.model, "TokenIds": self.ids}),
            ("HeadEmbedding", {"Method": "PCA", **shown}),
            ("TokenColors", {"Input": self.embedding, "By": "Norm"}),
            ("TokenSearch", {"Input": self.embedding, "Match": "TokenId", "Text": "7 14"}),
            ("AttentionLines", {"Input": self.embedding, "Recording": self.recording}),
            ("AttentionMatrix", shown),
            ("HeadScores", shown),
            ("HeadUpdates", both),
            ("AttentionFocus", shown),
            ("AttentionTokens", {"Layer": -1, "Sequence": -1, **both}),
            ("SkipTrigrams", {"Input": self.model}),
            ("SummableColors", {"Input": small}),
            ("TransformerTraining", {"Task": "RepeatedTokens", "Steps": 4, "MeasureEvery": 2}),
            ("ActivationPatching", {"Input": self.model, "Prompt": "1 2 3 4", "PatchFrom": "7 9 3 2", "Target": "#3", "Against": "#8"}),
        ):
            with self.subTest(name):
                self.check(lambda: getattr(simple, name)(**properties))
