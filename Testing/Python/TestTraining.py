"""A small transformer learns inside ParaView, in time."""

import atlastest
from atlastest import AtlasTest
from paraview import servermanager, simple

OPTIONS = {
    "VocabularySize": 4, "Heads": 2, "HeadDimension": 1, "Steps": 300, "LearningRate": 0.02,
    "BatchSize": 8, "Mode": "Boosting", "PriorDecay": 0.9, "Specialization": 0.1, "Seed": 3,
    "CheckpointEvery": 100,
}  # fmt: skip


class Training(AtlasTest):
    def test_defaults(self):
        training = simple.AttentionOnlyTraining()
        defaults = {
            "VocabularySize": 5, "Heads": 3, "HeadDimension": 3, "Steps": 3500, "BatchSize": 0,
            "LearningRate": 0.01, "Mode": "Joint", "PriorDecay": 1, "Seed": 0,
        }  # fmt: skip
        for name, value in defaults.items():
            self.assertEqual(getattr(training, name), value, name)
        self.assertEqual(list(training.TimestepValues), list(range(0, 3501, 50)))

    def test_play_shows_it_learning(self):
        training = simple.AttentionOnlyTraining(Steps=1500)
        pairs = simple.TokenPairs(Input=training)
        scene = simple.GetAnimationScene()
        scene.UpdateAnimationUsingDataTimeSteps()
        view = atlastest.chart_view()
        simple.Show(atlastest.torus(training), view)
        simple.Show(pairs, view)
        accuracies, pictures = [], []
        for time in (0, 1500):
            scene.AnimationTime = time
            pictures.append(atlastest.picture(view, f"step-{time}"))
            accuracies.append(atlastest.fetch(pairs, time).GetFieldData().GetArray("Accuracy").GetValue(0))
        self.assertLess(accuracies[0], 0.5)
        self.assertEqual(accuracies[1], 1)
        self.assertGreater(atlastest.different_pixels(*pictures), 0.5)

    def test_table(self):
        training = simple.AttentionOnlyTraining(**OPTIONS)
        training.UpdatePipeline()
        table = servermanager.Fetch(training, idx=1)
        names = [table.GetColumnName(i) for i in range(table.GetNumberOfColumns())]
        heads = ["Accuracy Head 0", "Accuracy Head 1"]
        self.assertEqual(names, ["Step", "Loss", "Accuracy", "Phase", *heads])
        self.assertEqual([table.GetValue(row, 0).ToInt() for row in range(4)], [0, 100, 200, 300])
        self.assertEqual([table.GetValue(row, 3).ToInt() for row in range(4)], [0, 0, 1, 1])

    def test_is_repeated_from_its_state(self):
        training = simple.AttentionOnlyTraining(registrationName="Training", **OPTIONS)
        training.UpdatePipeline(200)
        expected = atlastest.model_blocks(training)
        path = str(atlastest.OUTPUT / "training.pvsm")
        simple.SaveState(path)
        simple.ResetSession()
        simple.LoadState(path)
        found = simple.FindSource("Training")
        for name, value in OPTIONS.items():
            self.assertEqual(getattr(found, name), value, name)
        found.UpdatePipeline(200)
        self.assert_same_arrays(atlastest.model_blocks(found), expected)

    def test_senseless_rate_is_named(self):
        training = simple.AttentionOnlyTraining(LearningRate=-1)
        training.UpdatePipeline()
        self.assert_one_error("LearningRate: expected a positive number, found -1")


if __name__ == "__main__":
    atlastest.main()
