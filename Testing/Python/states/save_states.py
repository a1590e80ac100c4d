"""Saves the states that TestOldStates opens, with what they show, by the ParaView at hand.

    ATLAS_PLUGIN=.../AttentionAtlas.so PYTHONPATH=Plugin/python \
      Plugin/scripts/with-display.sh pvpython Testing/Python/states/save_states.py Data FOLDER

Writes NAME.pvsm.gz and NAME.py.gz, in which @DATA@ stands for the folder of the data, and the picture of
each of its views. Views are born as ParaView's own settings have them.
"""

import gzip
import pathlib
import sys

from attentionatlas import load_plugin, scene
from paraview import simple, smstate

DATA = pathlib.Path(sys.argv[1]).resolve()
FOLDER = pathlib.Path(sys.argv[2]).resolve()
SIZE = [400, 300]
MODEL = DATA / "trained-n5-h3.safetensors"


def read_model():
    return simple.AttentionOnlyModelReader(registrationName="Model", FileNames=[str(MODEL)])


def render_view():
    return simple.CreateRenderView(ViewSize=SIZE)


def show(view, source, array=None):
    """Shows a source; with an array, colored by it, with its legend."""
    display = simple.Show(source, view)
    if array is not None:
        simple.ColorBy(display, ("POINTS", array))
        display.SetScalarBarVisibility(view, True)
    return display


def tilt(view):
    view.CameraPosition, view.CameraViewUp = [5, -9, 6], [0, 0, 1]
    simple.ResetCamera(view)


def map_with_pairs():
    model, view = read_model(), render_view()
    show(view, simple.AttentionTorus(registrationName="Torus", Input=model), "ClassColor")
    show(view, simple.TokenPairs(registrationName="Pairs", Input=model))
    view.AxesGrid.Visibility = 1
    simple.ResetCamera(view)


def deformed_torus():
    model, view = read_model(), render_view()
    torus = simple.AttentionTorus(
        registrationName="Torus", Input=model, Quantities=["Class", "ClassColor", "Attention"]
    )
    donut = simple.TorusDeformation(registrationName="Donut", Input=torus)
    pairs = simple.TokenPairs(registrationName="Pairs", Input=model)
    show(view, donut, "Attention 0")
    show(view, simple.TorusDeformation(registrationName="Bent Pairs", Input=pairs))
    view.AxesGrid.Visibility = 1
    tilt(view)


def attention_map():
    view = render_view()
    recording = simple.RecordingReader(
        registrationName="Recording",
        FileName=str(DATA / "recordings" / "gpt2-data-visualization.safetensors"),
    )
    shown = simple.AttentionMap(registrationName="Map", Input=recording, Layer=4, Head=11)
    show(view, shown).SetScalarBarVisibility(view, True)
    simple.ResetCamera(view)


def charts():
    """The accuracy of heads as bars, and a training as curves."""
    model = read_model()
    bars = simple.CreateView("XYBarChartView", ViewSize=SIZE)
    show(bars, simple.HeadAccuracy(registrationName="Accuracy", Input=model))
    curves = simple.CreateView("XYChartView", ViewSize=SIZE)
    training = simple.AttentionOnlyTraining(registrationName="Training", Steps=200)
    show(curves, simple.OutputPort(training, 1))


def linked_views():
    scene.build(MODEL)


def save(build):
    """Builds in a new session, and writes the states and pictures."""
    for view in simple.GetViews():
        simple.Delete(view)
    simple.ResetSession()
    load_plugin()
    build()
    simple.RenderAllViews()
    name = build.__name__.replace("_", "-")
    path = FOLDER / f"{name}.pvsm"
    simple.SaveState(str(path))
    for suffix, text in ((".pvsm", path.read_text()), (".py", smstate.get_state())):
        text = text.replace(str(DATA), "@DATA@").encode()
        (FOLDER / f"{name}{suffix}.gz").write_bytes(gzip.compress(text, mtime=0))
    path.unlink()
    pictures = [view for view in simple.GetViews() if view.GetXMLName() != "SpreadSheetView"]
    for number, view in enumerate(pictures):
        simple.SaveScreenshot(str(FOLDER / f"{name}-{number}.png"), view, ImageResolution=SIZE)


FOLDER.mkdir(parents=True, exist_ok=True)
for build in (map_with_pairs, deformed_torus, attention_map, charts, linked_views):
    save(build)
scene.clear()
