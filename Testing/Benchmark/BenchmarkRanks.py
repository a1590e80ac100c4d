"""What a change takes on these MPI ranks with a thread each: a part of BenchmarkParaView.py.

    mpirun -np N pvbatch BenchmarkRanks.py RESULT.json
"""

import json
import os
import pathlib
import statistics
import sys
import time

from paraview import simple

MODEL = str(pathlib.Path(os.environ["ATLAS_DATA_DIR"], "trained-n5-h3.safetensors"))
REPEATS = 7


def seconds(source, change):
    """The median time of updates of all ranks after the changes change(0), change(1), ..."""
    times = []
    for number in range(REPEATS):
        change(number)
        begin = time.perf_counter()
        source.UpdatePipeline()
        source.GetDataInformation().GetNumberOfPoints()  # asks every rank
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def main(path):
    simple.LoadPlugin(os.environ["ATLAS_PLUGIN"], ns=vars(simple))
    model = simple.AttentionOnlyModelReader(FileNames=[MODEL])
    chart = simple.AttentionTorus(Input=model, Resolution=[4096, 4096])
    surface = simple.TorusDeformation(Input=simple.AttentionTorus(Input=model, Resolution=[1024, 1024]))
    training = simple.AttentionOnlyTraining(Runs=40, Steps=500)

    def weigh(source):
        def change(number):
            source.HeadWeights = [1, 1 - 0.01 * number, 1]

        return change

    def seed(number):
        training.Seed = 100 * number

    found = {
        "Chart/4096": seconds(chart, weigh(chart)),
        "Surface/1024": seconds(surface, weigh(surface.Input)),
        "Training/40x500": seconds(training, seed),
    }
    pathlib.Path(path).write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
