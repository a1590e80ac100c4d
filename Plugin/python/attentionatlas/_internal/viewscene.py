"""What a render view of ParaView shows, as the scene of a page."""

from __future__ import annotations

from typing import Any

import numpy
from paraview import servermanager
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal import looks
from attentionatlas._internal.errors import update
from attentionatlas._internal.webpage import Scene
from attentionatlas._internal.webscene import described, flat_camera


def from_view(view: Any, title: str | None = None, caption: str = "") -> Scene:
    """The scene that a render view shows: the representations that are visible in it, in their colors.

    title: "Scene" by default. Raises ValueError for a view that shows nothing or is no render view, and for a
    representation that a page cannot show, such as Volume.
    """
    if not isinstance(view, servermanager.Proxy):
        found = "no view" if view is None else type(view).__name__
        raise ValueError(f"view: expected a render view, found {found}.")
    if view.GetProperty("CameraPosition") is None or view.GetProperty("Representations") is None:
        raise ValueError(f"view: expected a render view, found {view.GetXMLName()}.")
    view.Update()
    parts, legends = described(_shown(one, view.ViewTime) for one in view.Representations if _is_shown(one))
    is_flat = _is_2d(view) and _looks_along_z(view)
    camera = flat_camera(parts) if is_flat else _camera(view)
    return Scene(title or "Scene", caption, is_flat, camera, parts, legends)


def shows_data(view: Any) -> bool:
    """Whether a render view shows data with points, and not only texts or legends of colors."""
    view.Update()
    return any(_is_shown(shown) and _has_points(shown, view.ViewTime) for shown in view.Representations)


def _has_points(representation: Any, time: float) -> bool:
    source = representation.Input
    update(source, time)
    information = source.GetDataInformation(source.Port)
    # One that a page cannot show is an error, and not left out.
    return bool(information.GetNumberOfPoints() > 0 or information.GetDataClassName() == "vtkHyperTreeGrid")


def _is_2d(view: Any) -> bool:
    return _text(view.InteractionMode) == "2D"


def _looks_along_z(view: Any) -> bool:
    """Whether a view shows the plane of x and y from above, y being upward."""
    back = numpy.subtract(view.CameraPosition, view.CameraFocalPoint)
    up = numpy.array(list(view.CameraViewUp))
    return all(bool(v > (1 - 1e-9) * numpy.linalg.norm(w)) for v, w in ((back[2], back), (up[1], up)))


def _camera(view: Any) -> dict[str, Any]:
    return {
        "position": list(view.CameraPosition),
        "focalPoint": list(view.CameraFocalPoint),
        "viewUp": list(view.CameraViewUp),
        "parallelScale": float(view.CameraParallelScale),
        "isParallel": bool(view.CameraParallelProjection) or _is_2d(view),
        "viewAngle": float(view.CameraViewAngle),
    }


def _is_shown(representation: Any) -> bool:
    return (
        representation.GetProperty("Visibility") is not None
        and representation.Visibility == 1
        and representation.GetProperty("Input") is not None
        and representation.GetProperty("Representation") is not None
        and representation.Input is not None
    )


def _text(value: Any) -> str:
    return str(value).strip("'")


def _shown(representation: Any, time: float) -> tuple[Any, looks.Look]:
    """What a representation shows at a time, and how."""
    source = representation.Input
    update(source, time)
    data = servermanager.Fetch(source, idx=source.Port)

    def value(name: str, default: Any) -> Any:
        """A property, or that of old representations which tells what it is."""
        found = representation.GetProperty(name) or representation.GetProperty(f"{name}Info")
        given = default if found is None else found.GetData()
        return default if given is None else given

    look = looks.Look(_name(source), _text(representation.Representation), source.SMProxy)
    defaults = {"ambient": ("Ambient", 0.0), "diffuse": ("Diffuse", 1.0), "specular": ("Specular", 0.0), "power": ("SpecularPower", 1.0)}
    look.light = {key: float(value(*named)) for key, named in defaults.items()}
    look.color = value("DiffuseColor" if look.light["diffuse"] else "AmbientColor", look.color)
    look.opacity, look.line_width, look.point_size, look.radius, look.letters, look.letter_height = (
        float(value(name, default)) for name, default in (
            ("Opacity", 1), ("LineWidth", 1), ("PointSize", 2), ("GaussianRadius", 1), ("LabelFontSize", 12), ("LabelHeight", 0)
        )
    )
    look.edge_color, look.labels = value("EdgeColor", look.edge_color), int(value("MaximumLabels", look.labels))
    preset = _text(value("ShaderPreset", ""))
    look.has_rim = preset in ("Custom", "Black-edged circle")
    look.is_flat = look.has_rim or preset == "Plain circle"
    look.radii = _text(representation.GaussianScaleArray[1]) if value("ScaleByArray", 0) else None
    look.position = value("Position", None) or value("Translation", look.position)
    look.scale, look.orientation, look.origin = (
        value(name, getattr(look, name.lower())) for name in ("Scale", "Orientation", "Origin")
    )
    if data is not None and hasattr(data, "GetPointData"):
        _color(look, representation, data)
    return data, look


def _color(look: looks.Look, representation: Any, data: Any) -> None:
    """Gives a look the colors of a representation, and what they mean."""
    association, name = map(_text, representation.ColorArrayName)
    table = representation.LookupTable if representation.GetProperty("LookupTable") is not None else None
    if name in ("", "None"):
        return
    look.array = "cells" if association == "CELLS" else "points", name
    maps = representation.GetProperty("MapScalars") is None or representation.MapScalars == 1

    def colors(array: Any) -> Any:
        if not maps and array.GetDataTypeSize() == 1 and array.GetNumberOfComponents() in (3, 4):
            return vtk_to_numpy(array).astype(numpy.uint8)
        return looks.mapped(representation.LookupTable.SMProxy.GetClientSideObject())(array)

    look.colors = colors
    if table is None:
        return
    title = looks.title(name, data)
    if table.InterpretValuesAsCategories:
        names = list(table.Annotations)[1::2]
        shades = numpy.array(list(table.IndexedColors)).reshape(-1, 3)
        entries = [[name, looks.bytes_of(shade)] for name, shade in zip(names, shades)]
        look.legend = {"title": title, "entries": entries} if entries else None
    elif maps and len(table.RGBPoints):
        look.legend = looks.ramp(table.SMProxy.GetClientSideObject(), table.RGBPoints[0], table.RGBPoints[-4], title)


def _name(source: Any) -> str:
    """How the pipeline calls a source, or else what kind it is."""
    manager = servermanager.ProxyManager()
    name = manager.GetProxyName("sources", source.SMProxy) or ""
    return str(source.GetXMLLabel() if name.rstrip("0123456789") in ("", source.GetXMLName()) else name)
