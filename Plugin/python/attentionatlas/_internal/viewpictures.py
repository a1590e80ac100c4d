"""Pictures of views and sources of ParaView."""

from __future__ import annotations

from typing import Any

from paraview import servermanager, simple

from attentionatlas._internal import session
from attentionatlas._internal.checks import no_points
from attentionatlas._internal.errors import update
from attentionatlas._internal.files import scratch
from attentionatlas._internal.views import PLAIN, flat_view, render_view


def _pictured(view: Any, width: int, height: int) -> bytes:
    with scratch() as folder:
        file = folder / "view.png"
        simple.SaveScreenshot(str(file), view, ImageResolution=[width, height])
        return file.read_bytes()


def png(shown: Any, width: int, height: int) -> bytes:
    """The file of a picture of a view as it is, or of a source in a view of its own."""
    if isinstance(shown, servermanager.Proxy) and shown.SMProxy.IsA("vtkSMViewProxy"):
        if shown.SMProxy.IsA("vtkSMSpreadSheetViewProxy"):
            raise ValueError(f"display: expected a view that draws, found {shown.GetXMLName()}.")
        return _pictured(shown, width, height)
    if not isinstance(shown, servermanager.SourceProxy):
        raise ValueError(f"display: expected a view or a source, found {type(shown).__name__}.")
    update(shown)
    port = shown.Port
    information = shown.GetDataInformation(port)
    if information.GetNumberOfPoints() == 0:
        raise no_points(information.GetDataClassName())
    low, high = information.GetBounds()[4:]
    with session.kept():
        view = flat_view() if low == high else render_view(**PLAIN)
        try:
            simple.Show(simple.OutputPort(shown, port), view)
            view.ViewSize = [width, height]
            simple.ResetCamera(view)
            return _pictured(view, width, height)
        finally:
            simple.Delete(view)
