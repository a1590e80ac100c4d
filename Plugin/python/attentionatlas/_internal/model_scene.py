"""Linked views of a small attention-only transformer; scene.py writes them as a ParaView state.

The class map with its token pairs, the pairs on the sphere of the unembedding, the deformed torus, and the pairs as a
spreadsheet. Token pairs that are selected in one view are selected in all, the weights of heads are the same in all, and
the two views in space turn together. Also how scenes of any kind are saved.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

from paraview import simple

from attentionatlas._internal import recording_scene
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.files import complete
from attentionatlas._internal.readers import open_model
from attentionatlas._internal.views import PLAIN, VIEWPOINT, arrange, flat_view, render_view, table_view

#: Of the cameras of the views in space; of the selected pairs in the plane and those in each of them; of the heads.
LINKS = ("Views in space", "Selection on the sphere", "Selection on the surface", "HeadWeights")


def build(path: PathLike) -> Any:
    """Builds the views of a model in the present session; returns the layout.

    Raises ValueError for a file that holds no model, OSError where ParaView cannot render.
    """
    model = open_model(path)
    torus = simple.AttentionTorus(
        registrationName="Torus", Input=model, Quantities=["Class", "Probability", "ClassColor", "Output"]
    )
    pairs = simple.TokenPairs(registrationName="Pairs", Input=model)
    chart, table = flat_view(registrationName="Class map"), table_view("Token pairs")
    sphere, surface = (
        render_view(registrationName=name, CameraParallelProjection=1, **PLAIN)
        for name in ("Unembedding sphere", "Deformed torus")
    )
    layout = arrange([chart, sphere, table, surface])

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
    recording_scene.link((torus, pairs), LINKS[3:])
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


def save_session(make: Callable[[], Any], state: pathlib.Path) -> pathlib.Path:
    """Writes what a function builds in an empty session as a state, which appears complete or not at all."""
    clear()
    make()
    simple.RenderAllViews()
    with complete(state) as temporary:
        simple.SaveState(str(temporary))
    return state
