"""Where heads look, what they write and what it does: on several MPI ranks as on one, to the byte.

On the first of its numbers of ranks this test leaves its arrays for the others.
"""

import atlastest
from atlastest import AtlasTest
from paraview import simple
from vtkmodules.util.numpy_support import vtk_to_numpy

TRANSFORMERS = atlastest.ORACLE.parent / "transformers"
RECORD = [entry for name in ("QueriesAndKeys", "Values", "HeadOutputs", "Residual") for entry in (name, "1")]


class Focus(AtlasTest):
    def setUp(self):
        super().setUp()
        self.model = simple.TransformerReader(FileName=str(TRANSFORMERS / "gpt2" / "config.json"))
        lines = "\n".join(" ".join(str(7 * i * k % 200) for i in range(1, 18)) for k in range(1, 5))
        self.recording = simple.TransformerRecorder(Input=self.model, TokenIds=lines, Record=RECORD)

    def assert_tables(self, name, source, ports):
        for port in ports:
            simple.OutputPort(source, port).UpdatePipeline()
            table = source.GetClientSideObject().GetOutputDataObject(port)
            columns = [table.GetColumn(c) for c in range(table.GetNumberOfColumns())]
            arrays = {c.GetName(): vtk_to_numpy(c).copy() for c in columns if c.IsNumeric()}
            self.assertTrue(arrays)
            self.assert_as_on_one_rank(f"{name}-{port}", arrays)

    def test_focus(self):
        for per in ("Head", "Query"):
            self.assert_tables(per, simple.AttentionFocus(Input=self.recording, Per=per), range(2))

    def test_updates(self):
        self.assert_tables("updates", simple.HeadUpdates(Input=self.recording, Model=self.model), range(4))

    def test_breakdown(self):
        self.assert_tables("breakdown", simple.ScoreBreakdown(Input=self.recording, Model=self.model), range(2))

    def test_attribution(self):
        inputs = {"Input": self.recording, "Model": self.model}
        for name, source, table, image, arrays in (
            ("logits", simple.LogitAttribution(**inputs), 0, 1, ["Contribution", "Layer", "Head", "Position"]),
            ("lens", simple.LogitLens(**inputs), 1, 0, ["Probability", "TokenId", "Next Rank", "Layer"]),
            ("scores", simple.ScoreAttribution(Layer=1, **inputs), 1, 0, ["ScoreContribution", "Query Head", "Key Head"]),
        ):
            self.assert_tables(name, source, [table])
            shown = simple.PassArrays(Input=simple.OutputPort(source, image), PointDataArrays=arrays)
            self.assert_as_on_one_rank(f"{name}-image", self.image_arrays(shown))

    def test_errors_come_once(self):
        recording = simple.TransformerRecorder(Input=self.model, TokenIds="1 2 3", Record=["QueriesAndKeys"])
        for source, message in (
            (simple.AttentionFocus(Input=recording, SinkThreshold=2), "SinkThreshold"),
            (simple.HeadUpdates(Input=recording), "record HeadOutputs"),
            (simple.ScoreBreakdown(Input=recording, Model=self.model, Query=3), "Query: expected"),
            (simple.AttentionMap(Input=recording, Head=9), "expected a head"),
            (simple.LogitAttribution(Input=recording, Model=self.model), "HeadOutputs and Residual"),
            (simple.LogitLens(Input=recording, Model=self.model), "recording with Residual"),
            (simple.ScoreAttribution(Input=recording, Model=self.model), "HeadOutputs and Residual"),
        ):
            source.UpdatePipeline()
            self.assert_one_error(message)


if __name__ == "__main__":
    atlastest.main()
