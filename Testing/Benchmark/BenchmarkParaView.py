"""How long ParaView takes with the plugin: from its start to a picture, from a slider to the next
frame, and on MPI ranks, as many as there are cores. Writes the JSON of Google Benchmark, which
table.py shows.

    pvpython BenchmarkParaView.py RESULT.json

In the environment: ATLAS_PLUGIN, the plugin; ATLAS_DATA_DIR, where trained-n5-h3.safetensors lies.
"""

import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MODEL = str(pathlib.Path(os.environ["ATLAS_DATA_DIR"], "trained-n5-h3.safetensors"))
PLUGIN = os.environ["ATLAS_PLUGIN"]

COLD = """
from paraview.simple import *
LoadPlugin({plugin!r}, ns=globals())
model = OpenDataFile({model!r})
Show(AttentionTorus(Input=model))
Show(TokenPairs(Input=model))
ResetCamera()
SaveScreenshot({picture!r})
"""


def milliseconds(function, repeats):
    """The times that the calls function(0), function(1), ... take."""
    times = []
    for number in range(repeats):
        begin = time.perf_counter()
        function(number)
        times.append(1000 * (time.perf_counter() - begin))
    return times


def cold():
    """A new pvpython, from nothing to the PNG of the default class map with its pairs."""
    with tempfile.TemporaryDirectory() as folder:
        script, picture = pathlib.Path(folder, "cold.py"), pathlib.Path(folder, "map.png")
        script.write_text(COLD.format(plugin=PLUGIN, model=MODEL, picture=str(picture)))

        def run(_):
            subprocess.run(["pvpython", str(script)], check=True)
            picture.unlink()

        return milliseconds(run, 3)


def sliders(simple, side):
    """What a change takes until the chart has its arrays, and until it is drawn in 800 x 800 pixels."""
    model = simple.AttentionOnlyModelReader(FileNames=[MODEL])
    torus = simple.AttentionTorus(Input=model, Resolution=[side, side])
    view = simple.CreateRenderView(ViewSize=[800, 800])
    simple.Show(torus, view)
    simple.ResetCamera(view)
    simple.Render(view)
    residuals = ("Embedding", "None", "EmbeddingPosition")
    changes = {
        "HeadWeights": lambda number: [1, 1 - 0.01 * (number + 1), 1],
        "Residual": lambda number: residuals[number % 3],
        "WordInValues": lambda number: number % 2,
    }
    for name, value in changes.items():

        def update(number):
            setattr(torus, name, value(number))
            torus.UpdatePipeline()

        def draw(number):
            setattr(torus, name, value(number + 30))
            simple.Render(view)

        yield f"{name}/{side}/update", milliseconds(update, 12)[2:]
        yield f"{name}/{side}/frame", milliseconds(draw, 12)[2:]
    simple.Delete(view)
    simple.Delete(torus)
    simple.Delete(model)


def ranks():
    """The same work on 1, 2, 4, ... ranks of one thread each, while cores last."""
    script = pathlib.Path(__file__).with_name("BenchmarkRanks.py")
    # Without what tells a rank of its own job, as which this process counts.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_"))}
    environment |= {"VTK_SMP_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    count = 1
    while count <= os.cpu_count():
        with tempfile.TemporaryDirectory() as folder:
            result = pathlib.Path(folder, "ranks.json")
            program = ["mpirun", "--allow-run-as-root", "-np", str(count), "pvbatch"]
            subprocess.run([*program, str(script), str(result)], check=True, env=environment)
            for name, time_taken in json.loads(result.read_text()).items():
                yield f"{name}/ranks:{count}", [1000 * time_taken]
        count *= 2


def main(path):
    results = [("Cold", cold()), *ranks()]
    from paraview import simple

    simple.LoadPlugin(PLUGIN, ns=vars(simple))
    for side in (512, 1024, 2048):
        results += sliders(simple, side)
    report = {
        "context": {
            "executable": "BenchmarkParaView",
            "num_cpus": os.cpu_count(),
            "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        },
        "benchmarks": [
            {"name": name, "real_time": statistics.median(times), "time_unit": "ms", "iterations": len(times)}
            for name, times in results
        ],
    }
    temporary = pathlib.Path(path + ".part")
    temporary.write_text(json.dumps(report, indent=2))
    temporary.replace(path)


if __name__ == "__main__":
    main(sys.argv[1])
