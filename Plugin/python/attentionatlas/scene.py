"""A ParaView state of linked views on a small attention-only transformer, a recording, or the circuits of a
language model, which its config.json names.

    attention-atlas scene MODEL.safetensors|RECORDING.safetensors|CONFIG.json -o SCENE.pvsm

Of an attention-only transformer four views: the class map with its token pairs, the pairs on the sphere of the
unembedding, the deformed torus, and the pairs as a spreadsheet. Token pairs that are selected in one view are
selected in all; the two views in space turn together. Of the others: see recording_scene and circuit_scene.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable, Sequence as Listed
from typing import Any

from paraview import simple

from attentionatlas._internal import circuit_scene, recording_scene
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.files import complete
from attentionatlas._internal.plugin import load_plugin
from attentionatlas._internal.readers import kind_of, open_model
from attentionatlas._internal.space import PLAIN, VIEWPOINT, flat_view, render_view

#: Of the cameras of the views in space; of the selected pairs in the plane and those in each of them.
LINKS = ("Views in space", "Selection on the sphere", "Selection on the surface")

def build(path: PathLike) -> Any:
    """Builds the views of a file in the present session; returns their first layout.

    Raises FileNotFoundError or ValueError for a file that is not there or neither, OSError where ParaView
    cannot render.
    """
    load_plugin()
    builders = {"transformer": circuit_scene.build, "model": build_model, "recording": recording_scene.build}
    kind = kind_of(path)
    if kind not in builders:
        raise ValueError(f"{path}: expected a model or a recording, found statistics of a corpus, which have no scene.")
    return builders[kind](path)


def build_model(path: PathLike) -> Any:
    """Builds the views of an attention-only transformer; as build."""
    model = open_model(path)
    torus = simple.AttentionTorus(
        registrationName="Torus", Input=model, Quantities=["Class", "Probability", "ClassColor", "Output"]
    )
    pairs = simple.TokenPairs(registrationName="Pairs", Input=model)
    layout = simple.CreateLayout(name="Attention Atlas")
    chart = flat_view()
    sphere, surface = (render_view(CameraParallelProjection=1, **PLAIN) for _ in range(2))
    table = simple.CreateView("SpreadSheetView")
    simple.AssignViewToLayout(view=chart, layout=layout, hint=0)
    right = layout.SplitHorizontal(0, 0.5)
    simple.AssignViewToLayout(view=sphere, layout=layout, hint=right)
    layout.SplitVertical(1, 0.6)
    layout.SplitVertical(2, 0.6)
    simple.AssignViewToLayout(view=table, layout=layout, hint=5)
    simple.AssignViewToLayout(view=surface, layout=layout, hint=6)

    _show_chart(torus, pairs, chart)
    on_sphere = _show_sphere(model, pairs, sphere)
    on_surface = _show_surface(torus, pairs, surface)
    simple.Show(pairs, table)
    for view in (sphere, surface):
        simple.ResetCamera(view)
    scale = 0.65 * max(sphere.CameraParallelScale, surface.CameraParallelScale)
    for view in (sphere, surface):
        view.CameraFocalPoint, view.CameraViewUp = [0, 0, 0], [0, 0, 1]
        view.CameraPosition = [4 * scale * c for c in VIEWPOINT]
        view.CameraParallelScale, view.CenterOfRotation = scale, [0, 0, 0]
    simple.AddCameraLink(sphere, surface, LINKS[0])
    for name, moved in zip(LINKS[1:], (on_sphere, on_surface)):
        # Points are the same by their numbers, not by their places.
        simple.AddSelectionLink(pairs, moved, name)
    simple.SetActiveSource(pairs)
    simple.SetActiveView(chart)
    return layout


def _show_chart(torus: Any, pairs: Any, view: Any) -> None:
    simple.Show(torus, view)
    simple.Show(pairs, view)
    simple.ResetCamera(view)


def _moved(source: Any, name: str, normalization: str, **reference: Any) -> Any:
    """A source at the outputs of the model."""
    return simple.TorusDeformation(
        registrationName=name,
        Input=source,
        Shape="Vectors",
        Vectors=["POINTS", "Output"],
        Normalization=normalization,
        **reference,
    )


def _show_sphere(model: Any, pairs: Any, view: Any) -> Any:
    cells = simple.UnembeddingSphere(registrationName="Sphere", Input=model)
    for port in range(3):
        simple.Show(simple.OutputPort(cells, port), view)
    on_sphere = _moved(pairs, "Pairs on the sphere", "UnitSphere")
    simple.Show(on_sphere, view)
    return on_sphere


def _show_surface(torus: Any, pairs: Any, view: Any) -> Any:
    surface = _moved(torus, "Deformed torus", "PerAxis")
    on_surface = _moved(pairs, "Pairs on the surface", "PerAxis", Reference=torus)
    simple.Show(surface, view)
    simple.Show(on_surface, view)
    return on_surface


def clear() -> None:
    """Takes everything out of the session: links, which would outlive what they link, then views, as
    what they draw with goes with their windows, then the rest."""
    for name in LINKS + recording_scene.LINKS:
        simple.RemoveLink(name)
    for view in simple.GetViews():
        simple.Delete(view)
    simple.ResetSession()


def save(path: PathLike, state: PathLike) -> pathlib.Path:
    """Writes the scene of a file as a ParaView state, first under a temporary name.

    As build; the state names the file by its absolute path. Replaces what the session has.
    """
    state = pathlib.Path(state)
    if state.suffix != ".pvsm":
        raise ValueError(f"{state}: expected a name that ends with .pvsm.")
    file = pathlib.Path(path).resolve()
    return save_session(lambda: build(file), state)


def save_session(make: Callable[[], Any], state: pathlib.Path) -> pathlib.Path:
    """Writes what a function builds in an empty session as a state, which appears complete or not at all."""
    clear()
    make()
    simple.RenderAllViews()
    with complete(state) as temporary:
        simple.SaveState(str(temporary))
    return state


def main(arguments: Listed[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="attention-atlas scene",
        description="Writes a ParaView state of linked views on an attention-only transformer, a recording or circuits.",
    )
    parser.add_argument("file", metavar="FILE", help="a model, a recording, or the config.json of a language model")
    parser.add_argument("-o", "--output", default="scene.pvsm", help="default: scene.pvsm")
    options = parser.parse_args(arguments)
    try:
        print(save(options.file, options.output))
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
