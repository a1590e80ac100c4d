"""Views of ParaView, and their places in its window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paraview import simple
from vtkmodules.vtkRenderingUI import vtkGenericRenderWindowInteractor

from attentionatlas._internal.windows import VIEWPOINT as VIEWPOINT, has_display, need_rendering

#: Properties of a view for a white page.
PLAIN = {"UseColorPaletteForBackground": 0, "Background": [1, 1, 1], "OrientationAxesVisibility": 0}


def render_view(**properties: Any) -> Any:
    """A render view, or one of another kind that renders, where there is no display too. Raises OSError for
    ParaView before 6.0, which would crash without one."""
    kind = properties.pop("kind", "RenderView")
    need_rendering()
    view = simple.CreateView(kind, **properties)
    if has_display():
        return view
    # That of pvpython takes the display of any window for one of X, and crashes (VTK 9.6).
    interactor = vtkGenericRenderWindowInteractor()
    interactor.Initialize()
    view.SMProxy.SetupInteractor(interactor)
    return view


def diagram(name: str) -> Any:
    """A view of flat pictures, which frames them by itself below a title."""
    return render_view(kind="AttentionDiagram", registrationName=name)


def table_view(name: str) -> Any:
    """A view of tables."""
    return simple.CreateView("SpreadSheetView", registrationName=name)


def arrange(views: Sequence[Any]) -> Any:
    """Puts views side by side into two rows of a new layout, which is returned."""
    layout = simple.CreateLayout(name="Attention Atlas")
    upper, half = layout.SplitVertical(0, 0.5), (len(views) + 1) // 2
    for cell, row in ((upper, views[:half]), (upper + 1, views[half:])):
        for left, view in zip(range(len(row), 0, -1), row):
            simple.AssignViewToLayout(view=view, layout=layout, hint=cell)
            if left > 1:
                cell = layout.SplitHorizontal(cell, 1 / left) + 1
    return layout


def flat_view(**properties: Any) -> Any:
    """A view of the plane."""
    return render_view(InteractionMode="2D", CameraParallelProjection=1, **PLAIN, **properties)
