"""A transformer learns inside ParaView, in time, and every view of it follows."""

import csv
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import atlastest
from atlastest import AtlasTest
from paraview import simple

PROGRAM = os.environ.get("ATLAS_PROGRAM", "")
SMALL = {
    "Vocabulary": 16, "Context": 32, "Layers": 2, "Heads": 2, "ModelDimension": 32, "BatchSize": 16,
    "Steps": 40, "CheckpointEvery": 20, "Warmup": 5,
}  # fmt: skip
#: The same for the program.
OPTIONS = [
    "--task", "RepeatedTokens", "--vocabulary", 16, "--context", 32, "--heads", 2, "--model-dimension", 32,
    "--batch-size", 16, "--steps", 40, "--warmup", 5, "--seed", 3,
]  # fmt: skip
#: The settings of a recipe that properties replace, by property.
SETTINGS = {
    "Vocabulary": "vocabulary", "Context": "context", "Repeats": "repeats", "Curriculum": "curriculum",
    "CurriculumVocabulary": "curriculum_vocabulary",
    "TrainShare": "train_share", "Layers": "layers", "Heads": "heads", "ModelDimension": "model_dimension",
    "HeadDimension": "head_dimension", "MlpDimension": "mlp_dimension", "Positions": "positions",
    "Normalization": "normalization", "Activation": "activation", "Tied": "tied", "BatchSize": "batch_size",
    "Steps": "steps", "LearningRate": "rate", "WeightDecay": "weight_decay", "Warmup": "warmup",
}  # fmt: skip


def table_of(training):
    """The rows of the curves, by column."""
    return {name: values.astype(float).tolist() for name, values in atlastest.columns(training, 1).items()}


def documented():
    """The text of each property's documentation."""
    root = ElementTree.parse(atlastest.SOURCE / "XML" / "AttentionAtlasLearning.xml").getroot()
    (proxy,) = (p for p in root.iter("SourceProxy") if p.get("name") == "TransformerTraining")
    texts = {}
    for element in proxy:
        if element.tag.endswith("Property"):
            texts[element.get("name")] = " ".join(element.findtext("Documentation").split())
    return texts


def learn(*arguments):
    return subprocess.run([PROGRAM, "learn", *map(str, arguments)], capture_output=True, text=True)


class TransformerTraining(AtlasTest):
    def test_the_map_follows_time(self):
        training = simple.TransformerTraining(**SMALL)
        self.assertEqual(list(training.TimestepValues), [0, 20, 40])
        block = " ".join(str(3 * i % 16) for i in range(10))
        recorder = simple.TransformerRecorder(Input=training, TokenIds=f"{block} {block}")
        attention = simple.AttentionMap(Input=recorder, Layer=1, Head=0)
        scores = simple.HeadScores(Input=recorder)
        composition = simple.HeadComposition(Input=training)
        found = {}
        for time in (0, 20, 40, 0):
            arrays = atlastest.point_arrays(attention, time)
            for source in (scores, composition):
                source.UpdatePipeline(time)
            if time in found:
                self.assert_same_arrays(arrays, found[time])
            found[time] = arrays
        self.assertNotEqual(found[0]["Weights"].tobytes(), found[40]["Weights"].tobytes())

    def test_induction_heads_form(self):
        """The first steps of the recipe are enough for the heads to form."""
        training = simple.TransformerTraining(Steps=300, MeasureEvery=100)
        curves = table_of(training)
        self.assertEqual(list(curves)[:4], ["Step", "Loss", "Accuracy", "Held-out Loss"])
        self.assertEqual((curves["Step"][0], curves["Step"][-1]), (0, training.TimestepValues[-1]))
        self.assertLess(curves["Induction"][0], 0.2)
        self.assertGreater(curves["Induction"][-1], 0.5)
        self.assertGreater(curves["Previous Token"][-1], 3 * curves["Previous Token"][0])

    def test_chart(self):
        training = simple.TransformerTraining(**SMALL)
        view = simple.CreateView("XYChartView")
        display = simple.Show(simple.OutputPort(training, 1), view)
        self.assertEqual((display.UseIndexForXAxis, display.XArrayName), (0, "Step"))
        self.assertIn("Held-out Loss", list(display.SeriesVisibility))
        self.assertNotIn("Step", list(display.SeriesVisibility))
        simple.Render(view)
        simple.Delete(view)

    def test_is_repeated_from_its_state(self):
        training = simple.TransformerTraining(registrationName="Training", Seed=3, **SMALL)
        expected = table_of(training)
        self.reload()
        found = simple.FindSource("Training")
        for name, value in SMALL.items():
            self.assertEqual(getattr(found, name), value, name)
        self.assertEqual(str(table_of(found)), str(expected))

    def test_documentation_has_the_recipes(self):
        """The values that a tooltip gives are those of DefaultRecipe."""
        training = simple.TransformerTraining()
        tasks = list(training.GetProperty("Task").Available)
        recipes = {task: json.loads(learn("--task", task, "--print-recipe").stdout) for task in tasks}
        words = {True: "on", False: "off"}
        texts = documented()
        for name, setting in SETTINGS.items():
            (listed,) = re.findall(r"recipe of the task: (.*?)\. ", texts[name])
            others = list(tasks)  # those that are not named yet
            for value, of in re.findall(r"(\S+) \(([^)]*)\)", listed.replace("all pairs", "0")):
                for task in others if of in ("all tasks", "all others") else of.split(", "):
                    expected = recipes[task][setting]
                    expected = words[expected] if isinstance(expected, bool) else expected
                    expected = expected if isinstance(expected, str) else f"{expected:g}"
                    self.assertEqual(value, expected, f"{name} of {task}")
                others = [task for task in others if task not in of.split(", ")]

    def test_program_writes_what_the_source_trains(self):
        folder = atlastest.OUTPUT / "learned"
        shutil.rmtree(folder, ignore_errors=True)
        done = learn(*OPTIONS, "--checkpoint-every", 20, "-o", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        training = simple.TransformerTraining(Seed=3, **SMALL)
        reader = simple.TransformerReader(FileName=str(folder / "config.json"))
        self.assertEqual(list(reader.TimestepValues), [0, 20, 40])
        for time in (0, 20, 40):
            arrays = []
            for source in (training, reader):
                recorder = simple.TransformerRecorder(Input=source, TokenIds="1 2 3 1 2 3")
                arrays.append(atlastest.point_arrays(simple.AttentionMap(Input=recorder, Layer=1, Head=1), time))
            self.assert_same_arrays(*arrays)
        self.take_errors()
        with open(folder / "curves.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for name, values in table_of(training).items():
            self.assertEqual(str([float(row[name]) for row in rows]), str(values), name)
        self.assert_saved_as(folder, training)
        goes_on = simple.TransformerTraining(ContinueFrom=str(folder), Steps=60, CheckpointEvery=20)
        whole = simple.TransformerTraining(Seed=3, **{**SMALL, "Steps": 60})
        self.assertEqual(list(goes_on.TimestepValues), [40, 60])
        self.assertEqual(table_of(goes_on)["Held-out Loss"][-1], table_of(whole)["Held-out Loss"][-1])

    def assert_saved_as(self, expected, training):
        """The writer makes the files of the program, and adds no other."""
        folder = atlastest.OUTPUT / "saved"
        shutil.rmtree(folder, ignore_errors=True)
        model, curves = (simple.OutputPort(training, port) for port in (0, 1))
        files = contents(expected)
        for _ in range(2):  # over the files of the same training, too
            simple.SaveData(str(folder / "config.json"), proxy=model, Curves=curves)
            self.assertEqual(sorted(contents(folder)), sorted(files))
            self.assertEqual(contents(folder), files)
        shutil.rmtree(folder)
        simple.GetAnimationScene().UpdateAnimationUsingDataTimeSteps()
        simple.GetAnimationScene().AnimationTime = 20
        training.UpdatePipeline(20)
        simple.SaveData(str(folder / "config.json"), proxy=model, Checkpoints=0)
        at_20 = {name.partition("/")[2]: text for name, text in files.items() if name.startswith("checkpoint-20/")}
        last = (*at_20, "curves.csv", "training-state.safetensors")
        others = [name for name in files if "/" not in name and name not in last]
        self.assertEqual(contents(folder), {**{name: files[name] for name in others}, **at_20})
        opened = simple.TransformerReader(FileName=str(folder / "config.json"))
        other = simple.OutputPort(simple.TransformerTraining(Seed=4, **SMALL), 0)
        for path, source, error in (
            (folder / "model.json", model, "FileName: expected config.json in a folder for the model, found .*model.json"),
            (expected / "config.json", other, "learned: expected a folder without another training, found training-sta"),
            (folder / "copy" / "config.json", opened, "input model: expected one that was just trained, found .*config"),
        ):
            simple.SaveData(str(path), proxy=source)
            (text,) = self.take_errors()
            self.assertRegex(text, error)
        self.assertEqual(contents(expected), files)

    def test_saved_training_goes_on(self):
        """Half a training saved from ParaView and continued has all bytes of one that the program never interrupted."""
        folder = atlastest.OUTPUT / "goes-on"
        shutil.rmtree(folder, ignore_errors=True)
        done = learn(*OPTIONS, "--checkpoint-every", 10, "-o", folder / "whole")
        self.assertEqual(done.returncode, 0, done.stderr)
        whole = contents(folder / "whole")

        def save(place, **settings):
            training = simple.TransformerTraining(**{**settings, "CheckpointEvery": 10})
            model, curves = (simple.OutputPort(training, port) for port in (0, 1))
            simple.SaveData(str(place / "config.json"), proxy=model, Curves=curves)

        for place in (folder / "by-program", folder / "by-source"):
            save(place, **{**SMALL, "Seed": 3, "Steps": 20})
            self.assertNotEqual(contents(place)["training-state.safetensors"], whole["training-state.safetensors"])
        done = learn("--continue", folder / "by-program", "--steps", 40, "--checkpoint-every", 10, "-o", folder / "by-program")
        self.assertEqual(done.returncode, 0, done.stderr)
        save(folder / "by-source", ContinueFrom=str(folder / "by-source"), Steps=40)
        for place in ("by-program", "by-source"):
            found = contents(folder / place)
            self.assertEqual(sorted(found), sorted(whole))
            for name, data in whole.items():
                self.assertEqual(found[name], data, f"{place}/{name}")


def contents(folder):
    """The bytes of the files in a folder, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
