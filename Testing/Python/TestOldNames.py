"""Scripts and states of the last version work, and each old name is told once."""

import pathlib

import atlastest
from atlastest import AtlasTest, point_arrays
from paraview import servermanager, simple

STATES = pathlib.Path(__file__).parent / "states"
BERT = atlastest.ORACLE.parent / "transformers" / "bert" / "config.json"


def segments_of(recorder):
    """The column Segment of a recording's tokens."""
    tokens = atlastest.fetch(recorder).GetBlock(0)
    column = tokens.GetColumnByName("Segment")
    return [int(column.GetValue(row)) for row in range(column.GetNumberOfValues())]


def text_field(source, name):
    return atlastest.fetch(source).GetFieldData().GetAbstractArray(name).GetValue(0)


class OldNames(AtlasTest):
    def read(self, **properties):
        return simple.RecordingReader(
            registrationName="Recording", FileName=str(atlastest.RECORDING), **properties
        )

    def simplex(self, **properties):
        return simple.HeadAccuracySimplex(
            registrationName="Simplex", Input=atlastest.read_model(), Resolution=12, **properties
        )

    def record(self, **properties):
        model = simple.TransformerReader(FileName=str(BERT))
        model.UpdatePipeline()
        self.assert_one_error("are not used")  # its pooler
        return simple.TransformerRecorder(Input=model, TokenIds="5 6 7 8", **properties)

    def load(self, name):
        """Loads a state that the last version has saved."""
        text = (STATES / f"{name}.pvsm").read_text()
        text = text.replace("@DATA@", str(atlastest.DATA)).replace("@ORACLE@", str(BERT.parents[2]))
        path = atlastest.OUTPUT / f"{name}.pvsm"
        path.write_text(text)
        simple.LoadState(str(path))

    def test_segments(self):
        recorder = self.record(TokenTypes="0 0 1 1")
        self.assert_one_error("TokenTypes is deprecated; use Segments.")
        self.assertEqual(recorder.Segments, "0 0 1 1")
        self.assertEqual(segments_of(recorder), [0, 0, 1, 1])
        recorder.TokenTypes = "0 1 1 1"  # told already
        self.assertEqual(segments_of(recorder), [0, 1, 1, 1])
        recorder.TokenTypes = ""
        self.assertEqual(segments_of(recorder), [0, 0, 0, 0])

    def test_weight_processing(self):
        reader = self.read(Processed="Processed")
        self.assert_one_error("Processed is deprecated; use WeightProcessing.")
        self.assertEqual(reader.WeightProcessing, "Processed")
        self.assertEqual(text_field(reader, "Weight Processing"), "processed")
        reader.WeightProcessing = "Unprocessed"
        self.assertEqual(reader.Processed, "Unprocessed")
        self.assertEqual(text_field(reader, "Weight Processing"), "unprocessed")

    def test_automatic_mask(self):
        reader = self.read(Mask="FromFile")
        self.assert_one_error("Mask: FromFile is deprecated; use Auto.")
        self.assertEqual(reader.Mask, "Auto")
        self.assertEqual(text_field(reader, "Mask"), "causal")
        reader.Mask = "Bidirectional"
        self.assertEqual(text_field(reader, "Mask"), "bidirectional")

    def test_head_indices(self):
        expected = point_arrays(self.simplex(HeadIndices=[2, 0, 1]))
        simplex = self.simplex(Heads=[2, 0, 1])
        self.assert_one_error("Heads is deprecated; use HeadIndices.")
        self.assertEqual(list(simplex.HeadIndices), [2, 0, 1])
        self.assert_same_arrays(point_arrays(simplex), expected)
        simplex.HeadIndices = [0, 1, 2]
        self.assertEqual(list(simplex.Heads), [0, 1, 2])
        self.assertNotEqual(
            point_arrays(simplex)["Accuracy"].tolist(), expected["Accuracy"].tolist()
        )

    def test_the_old_defaults_are_silent(self):
        self.simplex(Heads=[0, 1, 2]).UpdatePipeline()
        self.read(Processed="FromFile").UpdatePipeline()
        self.assertEqual(self.take_errors(), [])

    def test_a_bare_proxy(self):
        simplex = servermanager.filters.HeadAccuracySimplex(
            Input=atlastest.read_model(), Heads=[1, 2, 0]
        )
        self.assert_one_error("Heads is deprecated; use HeadIndices.")
        self.assertEqual(list(simplex.HeadIndices), [1, 2, 0])

    def test_old_state(self):
        expected = point_arrays(self.simplex(HeadIndices=[2, 0, 1]))
        simple.ResetSession()
        self.load("0.2.0")
        errors = self.take_errors()
        for text in ("Heads is deprecated", "Processed is deprecated"):
            self.assertEqual(len([error for error in errors if text in error]), 1, errors)
        self.assertEqual(len(errors), 2)
        recording = simple.FindSource("Recording")
        self.assertEqual([recording.Mask, recording.WeightProcessing], ["Auto", "Processed"])
        self.assertEqual(text_field(recording, "Weight Processing"), "processed")
        self.assertGreater(point_arrays(simple.FindSource("Map"))["Weights"].max(), 0.9)
        simplex = simple.FindSource("Simplex")
        self.assertEqual(list(simplex.HeadIndices), [2, 0, 1])
        self.assert_same_arrays(point_arrays(simplex), expected)

    def test_old_state_of_a_recorder(self):
        self.load("0.2.0-recorder")
        self.assertEqual(segments_of(simple.FindSource("Recorder")), [0, 0, 1, 1])
        errors = self.take_errors()
        self.assertEqual(len([e for e in errors if "are not used" not in e]), 1, errors)
        self.assertIn("TokenTypes is deprecated; use Segments.", "".join(errors))

    def test_new_state_is_silent(self):
        self.simplex(HeadIndices=[2, 0, 1])
        self.read(WeightProcessing="Processed", Mask="Bidirectional")
        path = str(atlastest.OUTPUT / "new.pvsm")
        simple.SaveState(path)
        simple.ResetSession()
        simple.LoadState(path)
        self.assertEqual(list(simple.FindSource("Simplex").HeadIndices), [2, 0, 1])
        recording = simple.FindSource("Recording")
        self.assertEqual(text_field(recording, "Weight Processing"), "processed")
        self.assertEqual(text_field(recording, "Mask"), "bidirectional")


if __name__ == "__main__":
    atlastest.main()
