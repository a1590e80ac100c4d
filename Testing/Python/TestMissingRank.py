"""A file that one of two ranks cannot see, as on the disks of a cluster's nodes, is an error: none waits.

Each rank works in a folder of its own, of which that of the first alone gets the files.
"""

import shutil

import atlastest
from atlastest import AtlasTest
from paraview import simple


class MissingRank(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        assert atlastest.RANKS == 2
        # Not on the other rank, which does not run this script.
        shutil.copy(atlastest.TRAINED, "model.safetensors")
        shutil.copy(atlastest.RECORDING, "recording.safetensors")
        shutil.copytree(atlastest.TRANSFORMERS / "llama", "llama", dirs_exist_ok=True)

    def points(self, source):
        source.UpdatePipeline()
        return source.GetDataInformation().GetNumberOfPoints()

    def assert_has_a_part(self, source, whole):
        """The part of the rank that has the file, and no more."""
        self.assertGreater(self.points(source), 0)
        self.assertLess(self.points(source), whole)

    def test_colors_of_a_model(self):
        model = simple.AttentionOnlyModelReader(FileNames=["model.safetensors"])
        torus = simple.AttentionTorus(Input=model, Quantities=["Output"], Resolution=[40, 40])
        self.assert_has_a_part(simple.SummableColors(Input=torus), 40 * 40)

    def test_maps_of_a_recording(self):
        recording = simple.RecordingReader(FileName="recording.safetensors")
        self.assert_has_a_part(simple.AttentionMap(Input=recording), 36)

    def test_statistics(self):
        recording = simple.RecordingReader(FileName="recording.safetensors")
        model = simple.TransformerReader(FileName="llama/config.json")
        for name, given, properties in (
            ("AttentionFocus", recording, {}),
            ("HeadScores", recording, {}),
            ("SkipTrigrams", model, {}),
            ("ActivationPatching", model, {"Prompt": "1 2 3", "PatchFrom": "1 4 3"}),
            ("AttributionPatching", model, {"Prompt": "1 2 3", "PatchFrom": "1 4 3"}),
        ):
            statistics = getattr(simple, name)(Input=given, **properties)
            statistics.UpdatePipeline()
            self.assertEqual(statistics.GetDataInformation().DataInformation.GetNumberOfRows(), 0)

    def test_models(self):
        """One that the second rank does not have, and another one of the same name."""
        for name in ("llama", "other"):
            model = simple.TransformerReader(FileName=f"{name}/config.json")
            recorder = simple.TransformerRecorder(Input=model, TokenIds="1 2 3\n4 5")
            self.assertEqual(self.points(recorder), 0)
            self.assert_one_error("expected the same model and sequences on every rank, found others on rank 1")
