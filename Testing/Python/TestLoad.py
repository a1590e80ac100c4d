"""A long session: hundreds of changes and renderings, after which memory is what it was."""

import gc
import itertools
import os

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import servermanager, simple
from vtkmodules.vtkCommonDataModel import vtkDataObject

CYCLES = 120
#: Time steps of a series.
STEPS = 400
#: What a session may keep, in MiB, between the middle and the end: less than one of its charts a cycle.
GROWTH = 8


def resident():
    """The memory of this process in MiB."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as statistics:
        return int(statistics.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Load(AtlasTest):
    def cycles(self, *changes):
        """Makes changes in turn, rendering after each; returns the memory at the middle and the end."""
        view = simple.CreateRenderView(ViewSize=[200, 200])
        shown = {id(source): source for source, *_ in changes}
        for source in shown.values():
            simple.Show(source, view)
        memory = []
        for cycle, (source, name, values) in zip(range(CYCLES), itertools.cycle(changes)):
            setattr(source, name, values[cycle // len(changes) % len(values)])
            simple.Render(view)
            if cycle in (CYCLES // 2, CYCLES - 1):
                memory.append(resident())
            self.assertGreater(source.GetDataInformation().GetMemorySize(), 0)
        return memory

    def test_charts(self):
        model = simple.AttentionOnlyModelReader(FileNames=[str(atlastest.TRAINED)])
        torus = simple.AttentionTorus(Input=model, Quantities=["ClassColor", "Output"])
        surface = simple.TorusDeformation(Input=torus)
        simplex = simple.HeadAccuracySimplex(Input=model)
        weights = [[1, w, 1] for w in numpy.linspace(0, 2, 7)]
        before, after = self.cycles(
            (torus, "HeadWeights", weights),
            (torus, "Residual", ["None", "Embedding", "EmbeddingPosition"]),
            (surface, "Shape", ["Vectors", "Donut"]),
            (torus, "Resolution", [[120, 120], [250, 250], [90, 180]]),
            (simplex, "Resolution", [40, 80, 20]),
        )
        self.assertLess(after - before, GROWTH)

    def test_maps(self):
        reader = atlastest.read_recording()
        attention = simple.AttentionMap(Input=reader)
        before, after = self.cycles(
            (attention, "Layer", range(12)),
            (attention, "Head", range(12)),
            (attention, "Quantity", ["Scores", "Weights"]),
        )
        self.assertLess(after - before, GROWTH)

    def test_trainings(self):
        training = simple.AttentionOnlyTraining(Steps=40, CheckpointEvery=10)
        torus = simple.AttentionTorus(Input=training, Resolution=[60, 60])
        before, after = self.cycles(
            (training, "Seed", range(50)),
            (training, "Heads", [1, 2, 3]),
            (torus, "Pattern", ["Hardmax", "Softmax"]),
        )
        self.assertLess(after - before, GROWTH)

    def test_time_steps(self):
        folder = atlastest.OUTPUT / "steps"
        folder.mkdir(exist_ok=True)
        tensors, metadata = atlastest.read_safetensors(atlastest.TRAINED)
        files = []
        for step in range(STEPS):
            files.append(str(folder / f"step-{step:05d}.safetensors"))
            atlastest.write_safetensors(files[-1], tensors, {**metadata, "step": str(step)})
        model = simple.AttentionOnlyModelReader(FileNames=files)
        surface = simple.TorusDeformation(Input=simple.AttentionTorus(Input=model, Resolution=[60, 60]))
        view = simple.CreateRenderView(ViewSize=[200, 200])
        simple.Show(surface, view)
        scene = simple.GetAnimationScene()
        scene.UpdateAnimationUsingDataTimeSteps()
        self.assertEqual(len(scene.TimeKeeper.TimestepValues), STEPS)
        memory = []
        for step in range(STEPS):
            surface.UpdatePipeline(step)
            if step % 20 == 0:
                view.ViewTime = step
                simple.Render(view)
            if step in (STEPS // 2, STEPS - 1):
                memory.append(resident())
                found = servermanager.Fetch(surface).GetInformation()
                self.assertEqual(found.Get(vtkDataObject.DATA_TIME_STEP()), step)
        self.assertLess(memory[1] - memory[0], GROWTH)
