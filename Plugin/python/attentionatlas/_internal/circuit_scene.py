"""Linked views of the circuits of a language model; scene.py writes them as a ParaView state.

The graph of which heads read which, how much each head copies with its eigenvalues, the QK and the OV circuit of
one head on some words, and the largest entries of its QK circuit as a spreadsheet. Layer and head are the same
in all views of one head. In the GUI, a head that is selected in the graph, in its square or in a row of a table
is the one that is shown.
"""

from typing import Any

from paraview import simple

from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.readers import open_transformer
from attentionatlas._internal.recording_scene import link, show
from attentionatlas._internal.space import diagram


def build(path: PathLike) -> Any:
    """Builds the views of a model, given by its config.json, in the present session; returns the layout.

    Raises ValueError for a file that holds no model, OSError where ParaView cannot render.
    """
    model = open_transformer(path, registrationName="Transformer")
    layout = simple.CreateLayout(name="Circuits")
    graph, copying, attends, writes = (diagram() for _ in range(4))
    table = simple.CreateView("SpreadSheetView")
    simple.AssignViewToLayout(view=graph, layout=layout, hint=0)
    right = layout.SplitHorizontal(0, 0.4)
    simple.AssignViewToLayout(view=attends, layout=layout, hint=right + 1)
    layout.SplitVertical(right, 0.6)
    simple.AssignViewToLayout(view=copying, layout=layout, hint=2 * right + 2)
    upper = layout.SplitVertical(right + 1, 0.65)
    simple.AssignViewToLayout(view=table, layout=layout, hint=upper + 1)
    layout.SplitHorizontal(upper, 0.5)
    simple.AssignViewToLayout(view=writes, layout=layout, hint=2 * upper + 2)

    show(simple.HeadComposition(registrationName="Composition", Input=model), graph, (0, 2))
    show(simple.HeadSpectra(registrationName="Spectra", Input=model), copying, (1, 2, 3))
    shown = [
        show(simple.HeadCircuit(registrationName=f"{circuit} circuit", Input=model, Circuit=circuit), view, (1,))
        for circuit, view in (("QK", attends), ("OV", writes))
    ]
    simple.Show(simple.OutputPort(shown[0], 0), table)
    link(shown, ("Layer", "Head"))
    if len(model.TimestepValues) > 1:  # checkpoints: those of the trained model
        time = simple.GetAnimationScene()
        time.UpdateAnimationUsingDataTimeSteps()
        time.AnimationTime = model.TimestepValues[-1]
    simple.SetActiveSource(shown[0])
    simple.SetActiveView(graph)
    return layout
