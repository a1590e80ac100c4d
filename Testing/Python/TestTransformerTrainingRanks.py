"""A transformer that is trained on several MPI ranks is that of one rank, on every rank."""

import shutil

import atlastest
import numpy
from atlastest import RANKS
from paraview import servermanager, simple
from ranktest import RankTest, tables

SMALL = {
    "Vocabulary": 16, "Context": 32, "Heads": 2, "ModelDimension": 32, "BatchSize": 16, "Steps": 40,
    "CheckpointEvery": 20,
}  # fmt: skip


class TransformerTrainingRanks(RankTest):
    def setUp(self):
        super().setUp()
        self.training = simple.TransformerTraining(**SMALL)

    def test_recordings(self):
        recorder = simple.TransformerRecorder(Input=self.training, TokenIds="1 2 3 4 1 2 3 4\n5 6 7 5 6 7")
        for step in (0, 20, 40):
            recorder.UpdatePipeline(step)
            for rank in range(RANKS):
                self.assert_as_on_one_rank(f"step-{step}", tables(servermanager.Fetch(recorder, rank)))

    def test_composition(self):
        composition = simple.HeadComposition(Input=self.training)
        composition.UpdatePipeline(40)
        self.assert_as_on_one_rank("composition", atlastest.arrays_of(servermanager.Fetch(composition, 0)))

    def test_curves(self):
        self.training.UpdatePipeline()
        table = servermanager.Fetch(self.training, 0, idx=1)
        information = simple.OutputPort(self.training, 1).GetDataInformation()
        self.assertEqual(information.GetNumberOfRows(), table.GetNumberOfRows(), "once, on the first rank")
        self.assert_as_on_one_rank("curves", tables(table))

    def test_folder(self):
        folder = atlastest.OUTPUT / f"trained-on-{RANKS}"
        shutil.rmtree(folder, ignore_errors=True)
        model, curves = (simple.OutputPort(self.training, port) for port in (0, 1))
        simple.SaveData(str(folder / "config.json"), proxy=model, Curves=curves)
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self.assertEqual(sum(name.endswith("config.json") for name in files), 4, "the model and three checkpoints")
        self.assert_as_on_one_rank("folder", {name: numpy.frombuffer(text, "u1") for name, text in files.items()})
        simple.SaveData(str(folder / "model.json"), proxy=model)
        self.assert_one_error("FileName: expected config.json in a folder for the model")

    def test_errors(self):
        self.training.Heads = 33
        self.training.UpdatePipeline()
        self.assert_one_error("HeadDimension: 33 heads do not fit")
        self.training.Heads = 2
        self.training.UpdatePipeline()
        self.training.LearningRate = 1e30
        self.training.UpdatePipeline()
        self.assert_one_error("diverged")
