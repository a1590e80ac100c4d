"""Pictures of views and sources, which Jupyter shows."""

from __future__ import annotations

import pathlib
from typing import Any

from attentionatlas._internal.host import need_paraview

need_paraview("A view")

from paraview import servermanager, simple

from attentionatlas._internal import session
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.checks import check
from attentionatlas._internal.errors import update
from attentionatlas._internal.files import complete, scratch
from attentionatlas._internal.views import PLAIN, flat_view, render_view


class Picture:
    """A picture of a ParaView view. png: the bytes of the file; width, height: in pixels."""

    def __init__(self, png: bytes, width: int, height: int) -> None:
        self.png, self.width, self.height = png, width, height

    def _repr_png_(self) -> bytes:
        return self.png

    def save(self, path: PathLike) -> pathlib.Path:
        """Writes the picture to a .png file; returns its path. Raises ValueError for another name."""
        path = pathlib.Path(path)
        if path.suffix != ".png":
            raise ValueError(f"{path}: expected a name that ends with .png.")
        with complete(path) as temporary:
            temporary.write_bytes(self.png)
        return path


def _pictured(view: Any, width: int, height: int) -> Picture:
    with scratch() as folder:
        file = folder / "view.png"
        simple.SaveScreenshot(str(file), view, ImageResolution=[width, height])
        return Picture(file.read_bytes(), width, height)


def display(shown: Any, width: int, height: int) -> Picture:
    """What attentionatlas.display does."""
    check("width", width, 16, 16384, "pixels")
    check("height", height, 16, 16384, "pixels")
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
        found = (information.GetDataClassName() or "no data").removeprefix("vtk")
        raise ValueError(
            f"display: expected a source with points, found none ({found}). SpreadSheetView shows tables."
        )
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
