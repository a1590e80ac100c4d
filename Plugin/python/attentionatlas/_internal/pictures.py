"""Pictures of scenes, sources and views, which Jupyter shows."""

from __future__ import annotations

import pathlib
import types
from typing import Any

from vtkmodules.vtkCommonDataModel import vtkDataObject

from attentionatlas._internal import data, host
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.checks import check, no_points
from attentionatlas._internal.files import complete
from attentionatlas._internal.webpage import Scene


class Picture:
    """A picture of a scene, a source or a view. png: the bytes of the file; width, height: in pixels."""

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


def _scene(shown: Any) -> Scene:
    """The scene of a dataset or, on VTK alone, of an output of a filter."""
    from attentionatlas._internal.looks import look_of
    from attentionatlas._internal.vtkhost import port_of
    from attentionatlas._internal.webscene import flat_scene, scene_in_space

    if isinstance(shown, vtkDataObject):
        name, number = getattr(shown, data.MADE_BY, ("", 0))
        found, source = shown, types.SimpleNamespace(name=name, GetXMLName=lambda: name)
    else:
        port = port_of(shown)
        if port is None:
            raise ValueError(f"display: expected a scene, a source or a dataset, found {type(shown).__name__}.")
        source, number = port.source, port.Port
        found = data.fetch(source, number)
    if not hasattr(found, "GetNumberOfPoints") or not found.GetNumberOfPoints():
        raise no_points(found.GetClassName() if found is not None else "")
    low, high = found.GetBounds()[4:]
    looks = [(found, look_of(source, number, found))]
    return flat_scene(looks, "") if low == high else scene_in_space(looks, "")


def display(shown: Any, width: int, height: int) -> Picture:
    """What attentionatlas.display does."""
    check("width", width, 16, 16384, "pixels")
    check("height", height, 16, 16384, "pixels")
    if host.is_paraview() and not isinstance(shown, (Scene, vtkDataObject)):
        from attentionatlas._internal import viewpictures

        return Picture(viewpictures.png(shown, width, height), width, height)
    from attentionatlas._internal import scenepicture

    scene = shown if isinstance(shown, Scene) else _scene(shown)
    return Picture(scenepicture.png(scene, width, height), width, height)
