"""A small transformer learns inside ParaView, in time."""

import csv
import math
import os
import shutil
import subprocess

import atlastest
from atlastest import AtlasTest
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy

OPTIONS = {
    "VocabularySize": 4, "Heads": 2, "HeadDimension": 1, "Steps": 300, "LearningRate": 0.02,
    "BatchSize": 8, "Mode": "Boosting", "PriorDecay": 0.9, "Specialization": 0.1, "Seed": 3,
    "CheckpointEvery": 100, "Optimizer": "GradientDescent", "Initialization": "Gaussian", "Runs": 2,
}  # fmt: skip


class Training(AtlasTest):
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
        table = atlastest.columns(training, 1)
        self.assertEqual(list(table), ["Step", "Loss", "Accuracy", "Phase", "Accuracy Head 0", "Accuracy Head 1"])
        self.assertEqual(table["Step"].tolist(), [0, 100, 200, 300])
        self.assertEqual(table["Phase"].tolist(), [0, 0, 1, 1])

    def test_is_repeated_from_its_state(self):
        training = simple.AttentionOnlyTraining(registrationName="Training", **OPTIONS)
        training.UpdatePipeline(200)
        expected = atlastest.model_blocks(training)
        self.reload()
        found = simple.FindSource("Training")
        for name, value in OPTIONS.items():
            self.assertEqual(getattr(found, name), value, name)
        found.UpdatePipeline(200)
        self.assert_same_arrays(atlastest.model_blocks(found), expected)

    def test_chart_of_it(self):
        training = simple.AttentionOnlyTraining()
        output = simple.OutputPort(training, 1)
        controller = servermanager.ParaViewPipelineController()
        self.assertEqual(controller.GetPreferredViewType(training.SMProxy, 1), "XYChartView")
        view = simple.CreateView("XYChartView")
        display = simple.Show(output, view)
        self.assertEqual((display.UseIndexForXAxis, display.XArrayName), (0, "Step"))
        heads = [f"Accuracy Head {head}" for head in range(3)]
        self.assertEqual(list(display.SeriesVisibility), ["Accuracy", *heads, "Loss"])
        simple.Render(view)
        simple.SaveScreenshot(str(atlastest.OUTPUT / "training-chart.png"), view, ImageResolution=[600, 400])
        simple.Delete(view)

    def test_sweep(self):
        training = simple.AttentionOnlyTraining(Steps=400, Runs=3, AllModes=1, Seed=7)
        table = atlastest.columns(training, 2)
        heads = [f"Accuracy Head {head}" for head in range(3)]
        self.assertEqual(list(table), ["Seed", "Mode", "Loss", "Accuracy", "Steps to Learn", *heads, "Union"])
        self.assertEqual(table["Seed"].tolist(), 3 * [7, 8, 9])
        self.assertEqual(table["Mode"], [mode for mode in ("Joint", "Boosting", "BoostingOutputOnly") for _ in range(3)])

    def test_temporal_filters(self):
        training = simple.AttentionOnlyTraining(Steps=300, CheckpointEvery=100)
        expected = {step: atlastest.fetch(simple.TokenPairs(Input=training), step) for step in (0, 100, 300)}

        def outputs(data):
            return vtk_to_numpy(data.GetPointData().GetArray("Output"))

        pairs = simple.TokenPairs(Input=training)
        shifted = simple.TemporalShiftScale(Input=pairs, PostShift=1000)
        self.assertEqual(list(shifted.TimestepValues), [1000, 1100, 1200, 1300])
        self.assertEqual(outputs(atlastest.fetch(shifted, 1300)).tobytes(), outputs(expected[300]).tobytes())
        between = simple.TemporalInterpolator(Input=pairs)
        middle = outputs(atlastest.fetch(between, 50))
        mean = (outputs(expected[0]).astype(float) + outputs(expected[100])) / 2
        self.assertLess(abs(middle - mean).max(), 1e-5)
        forced = simple.ForceTime(Input=pairs, IgnorePipelineTime=1, ForcedTime=100)
        self.assertEqual(outputs(atlastest.fetch(forced, 300)).tobytes(), outputs(expected[100]).tobytes())

    def test_task_of_a_model(self):
        training = simple.AttentionOnlyTraining(ModelFile=str(atlastest.TRAINED), Steps=0)
        reader = simple.AttentionOnlyModelReader(FileNames=[str(atlastest.TRAINED)])
        task = atlastest.model_blocks(reader)["next_token"]
        self.assertEqual(atlastest.model_blocks(training)["next_token"].tobytes(), task.tobytes())
        training.ContinueModel = 1
        self.assertEqual(atlastest.columns(training, 1)["Accuracy"][0], 1)

    def test_runner_without_paraview(self):
        """The program writes what the source trains, and the reader reads it as time steps."""
        folder = atlastest.OUTPUT / "runner"
        shutil.rmtree(folder, ignore_errors=True)
        train = [os.environ["ATLAS_PROGRAM"], "learn", "--task", "TokenPairs", "--steps", "300", "--seed", "3"]
        train += ["--specialization", "0.1"]
        quietly = {"check": True, "stdout": subprocess.DEVNULL}
        subprocess.run([*train, "--checkpoint-every", "100", "-o", folder], **quietly)
        files = sorted(folder.glob("*.safetensors"))
        self.assertEqual([file.name for file in files], [f"step-{n}00.safetensors" for n in range(4)])
        reader = simple.AttentionOnlyModelReader(FileNames=[str(file) for file in files])
        self.assertEqual(list(reader.TimestepValues), [0, 100, 200, 300])
        training = simple.AttentionOnlyTraining(Steps=300, Seed=3, Specialization=0.1, CheckpointEvery=100, Runs=2)
        for step in (0, 200):
            reader.UpdatePipeline(step)
            training.UpdatePipeline(step)
            self.assert_same_arrays(atlastest.model_blocks(reader), atlastest.model_blocks(training))
        with open(folder / "curves.csv", newline="") as file:
            rows = {float(row["Step"]): row for row in csv.DictReader(file)}
        self.assert_same_rows(atlastest.columns(training, 1), [rows[step] for step in (0, 100, 200, 300)])
        subprocess.run([*train, "--seeds", "2", "--table", folder / "seeds.csv"], **quietly)
        with open(folder / "seeds.csv", newline="") as file:
            self.assert_same_rows(atlastest.columns(training, 2), list(csv.DictReader(file)))

    def assert_same_rows(self, table, rows):
        """That a table has these rows, by the names that both have. No step is -1 or nan."""
        common = table.keys() & rows[0].keys()
        self.assertGreaterEqual(len(common), 7)
        for name in common:
            values = [float(row[name]) for row in rows]
            self.assertEqual([-1 if math.isnan(value) else value for value in values], list(table[name]), name)
