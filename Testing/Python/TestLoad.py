"""A long session: hundreds of changes and renderings, after which memory is what it was."""

import gc
import itertools
import os

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import simple

CYCLES = 500
#: What a session may keep, in MiB, between the middle and the end: less than one of its charts a cycle.
GROWTH = 16


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
        reader = simple.RecordingReader(FileName=str(atlastest.RECORDING))
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


if __name__ == "__main__":
    atlastest.main()
