"""Linked views of a language model; scene.py writes them as a ParaView state.

With prompts: all heads, one head, its words, and the joint embedding of queries and keys, of a run of the model; and which
heads read which, and the QK circuit of the one head. Without prompts, of its weights alone: which heads read which, how much
each head copies with its eigenvalues, the QK and the OV circuit of one head on some words, and the largest entries of its QK
circuit as a spreadsheet. Layer and head are the same in all views of one head. In the GUI, a head that is selected in the
graph, in its square or in a row of a table is the one that is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paraview import simple

from attentionatlas._internal.arguments import PathLike, json_lines
from attentionatlas._internal.errors import update
from attentionatlas._internal.readers import label, make_filter, open_transformer
from attentionatlas._internal.recording_scene import link, show, show_heads
from attentionatlas._internal.views import arrange, diagram, table_view


def build(path: PathLike, prompts: Sequence[str] = ()) -> Any:
    """Builds the views of a model, given by its config.json, in the present session; returns the layout.

    Raises ValueError for a file that holds no model or prompts that it cannot run, OSError where ParaView cannot render.
    """
    model = open_transformer(path, registrationName=label(path))
    if len(model.TimestepValues) > 1:  # checkpoints: those of the trained model
        time = simple.GetAnimationScene()
        time.UpdateAnimationUsingDataTimeSteps()
        time.AnimationTime = model.TimestepValues[-1]
    views, shown = _show_run(model, prompts) if prompts else ([], [])
    views.append(diagram("Composition of heads"))
    show(simple.HeadComposition(registrationName="Composition", Input=model), views[-1], (0, 2))
    if not prompts:
        views.append(diagram("Copying of heads"))
        show(simple.HeadSpectra(registrationName="Spectra", Input=model), views[-1], (1, 2, 3))
    for circuit in ("QK",) if prompts else ("QK", "OV"):
        views.append(diagram(f"{circuit} circuit"))
        one = simple.HeadCircuit(registrationName=f"{circuit} circuit", Input=model, Circuit=circuit)
        shown.append(show(one, views[-1], (1,)))
    if not prompts:
        views.append(table_view("Largest entries"))
        simple.Show(simple.OutputPort(shown[0], 0), views[-1])
    link(shown)
    simple.SetActiveSource(shown[0])
    simple.SetActiveView(views[1 if prompts else 0])
    return arrange(views)


def _show_run(model: Any, prompts: Sequence[str]) -> tuple[list[Any], list[Any]]:
    """What show_heads does, of a run of the model."""
    texts = {"prompts": json_lines("prompts", prompts), "prompt_format": "JsonLines"}
    recording = make_filter("TransformerRecorder", {"Input": model}, texts)
    simple.RenameSource("Recording", recording)
    update(recording, simple.GetAnimationScene().AnimationTime)
    return show_heads(recording)
