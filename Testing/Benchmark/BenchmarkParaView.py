"""How long ParaView takes with the plugin: from its start to a picture, and what of the start is
the plugin's; from a slider to the next frame; from a checkpoint of a training to the next; and on
MPI ranks, as many as there are cores. Writes the JSON of Google Benchmark, which table.py shows.

    pvpython BenchmarkParaView.py RESULT.json

In the environment: ATLAS_PLUGIN, the plugin; ATLAS_DATA_DIR, where trained-n5-h3.safetensors and models/language-2 lie.
"""

import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

LANGUAGE_MODEL = str(pathlib.Path(os.environ["ATLAS_DATA_DIR"], "models", "language-2", "config.json"))
PROMPTS = [
    "And God said, Let there be light: and there was light. And God saw the light, that it was good.",
    "And the earth was without form, and void; and darkness was upon the face of the deep.",
    "And God called the light Day, and the darkness he called Night.",
    "And God said, Let there be a firmament in the midst of the waters, and let it divide the waters.",
]
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


START = """
from paraview.simple import *
import time
begin = time.perf_counter()
if {loads}:
    LoadPlugin({plugin!r})
print(1000 * (time.perf_counter() - begin))
"""


#: Ends the GUI with 1 if it has the plugin, else with 0.
GUI_START = """
import os
from paraview import servermanager
proxies = servermanager.ProxyManager().SMProxyManager
os._exit(1 if proxies.GetProxyDefinitionManager().HasDefinition("sources", "TransformerReader") else 0)
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


def starts():
    """A new pvpython that imports paraview.simple, without and with the plugin in turn, and what
    LoadPlugin takes of the latter."""
    times = {"without plugin": [], "with plugin": [], "LoadPlugin": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(7):
            for loads, name in ((False, "without plugin"), (True, "with plugin")):
                script = pathlib.Path(folder, "start.py")
                script.write_text(START.format(loads=loads, plugin=PLUGIN))
                begin = time.perf_counter()
                done = subprocess.run(["pvpython", str(script)], check=True, capture_output=True, text=True)
                times[name].append(1000 * (time.perf_counter() - begin))
                if loads:
                    times["LoadPlugin"].append(float(done.stdout.split()[-1]))
    return [(f"Start/{name}", values) for name, values in times.items()]


def gui_starts():
    """The GUI, from nothing to the first script that it runs, without and with the plugin in turn. Nothing where there is
    no GUI."""
    program = shutil.which("paraview")
    if program is None:
        return []
    plugin = ["--plugin-search-paths=" + str(pathlib.Path(PLUGIN).parent), "--plugins=AttentionAtlas"]
    times = {"without plugin": [], "with plugin": []}
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "start.py")
        script.write_text(GUI_START)
        for _ in range(5):
            for name, options in (("without plugin", []), ("with plugin", plugin)):
                begin = time.perf_counter()
                done = subprocess.run([program, "--dr", *options, f"--script={script}"], capture_output=True)
                times[name].append(1000 * (time.perf_counter() - begin))
                if done.returncode != (1 if options else 0):
                    raise RuntimeError(f"{program} {name}: exit code {done.returncode}")
    return [(f"Start of the GUI/{name}", values) for name, values in times.items()]


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
    # What of a frame is drawing the window again, and what of that is ParaView's smoothing of edges (FXAA).
    yield f"Unchanged/{side}/frame", milliseconds(lambda _: simple.Render(view), 12)[2:]
    view.UseFXAA = 0
    yield f"Unchanged/{side}/frame without FXAA", milliseconds(lambda _: simple.Render(view), 12)[2:]

    def move_slider(number):
        torus.HeadWeights = [1, 0.5 - 0.01 * number, 1]
        simple.Render(view)

    yield f"HeadWeights/{side}/frame without FXAA", milliseconds(move_slider, 12)[2:]

    # What of that is before the texture is uploaded: the arrays, and ParaView's copy of the image.
    def bring(number):
        torus.HeadWeights = [1, 0.8 - 0.01 * number, 1]
        view.SMProxy.Update()

    yield f"HeadWeights/{side}/arrays in the view", milliseconds(bring, 12)[2:]
    simple.Delete(view)
    simple.Delete(torus)
    simple.Delete(model)


def playing(simple):
    """A frame of 800 x 600 pixels for each checkpoint of a trained transformer, the first time and
    when the recordings are kept. All sources take the same reader."""
    reader = simple.TransformerReader(FileName=LANGUAGE_MODEL)
    reader.UpdatePipelineInformation()
    steps = list(reader.TimestepValues)
    views = {
        "AttentionMap": lambda recorder: (simple.AttentionMap(Input=recorder, Layer=1, Head=0), 0),
        "HeadEmbedding": lambda recorder: (simple.HeadEmbedding(Input=recorder), 0),
        "HeadScores": lambda recorder: (simple.HeadScores(Input=recorder), 0),
        "HeadComposition": lambda recorder: (simple.HeadComposition(Input=reader), 0),
    }
    for name, make in views.items():
        recorder = simple.TransformerRecorder(Input=reader, Prompts="\n".join(PROMPTS))
        source, port = make(recorder)
        source.UpdatePipeline(steps[0])
        output = simple.OutputPort(source, port)
        is_table = output.GetDataInformation().GetDataSetTypeAsString() == "vtkTable"
        view = simple.CreateView("SpreadSheetView" if is_table else "RenderView", ViewSize=[800, 600])
        simple.Show(output, view)

        def draw(number):
            view.ViewTime = steps[number]
            source.UpdatePipeline(steps[number])
            simple.Render(view)

        draw(0)
        for when in ("first", "again"):
            yield f"Play/{name}/{when}", milliseconds(draw, len(steps))[1:]
        simple.Delete(view)
        simple.Delete(source)
        simple.Delete(recorder)
    simple.Delete(reader)


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
    results = [("Cold", cold()), *starts(), *gui_starts(), *ranks()]
    from paraview import simple

    simple.LoadPlugin(PLUGIN, ns=vars(simple))
    for side in (512, 1024, 2048):
        results += sliders(simple, side)
    results += playing(simple)
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
