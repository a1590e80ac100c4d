"""How views and pages show data: as what, in which colors, how large. That of a filter's output follows from the hints of
its XML, and from the class vtkArrayColors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal import host
from attentionatlas.vtk import class_of

#: Representations in ways that a page knows; surfaces are drawn of all other data.
POINTS = ("Points", "Token Labels")
DISCS = ("Point Gaussian", "Collected Discs")
IMAGES = ("Slice", "Squares")
SURFACES = ("Surface", "Surface With Edges", "Wireframe", "Weighted Lines", "Opaque Surface", "Outline")
#: The numbers of a continuous scale, as of ParaView's tables, and its steps in a legend.
_SHADES, _STEPS = 256, 17
_MAP_SCALARS = 1
#: Where a scale has no color for a value.
_NOWHERE = (0.8, 0.8, 0.8)
#: ParaView's scale for arrays that have none of their own.
_COOL_TO_WARM = ((0.231373, 0.298039, 0.752941), (0.865003, 0.865003, 0.865003), (0.705882, 0.0156863, 0.14902))
#: What colors mean whose array has no legend of its own.
_MEANINGS = {"ClassColor": "Predicted token", "TargetColor": "True next token"}


def _as_they_are(array: Any) -> NDArray[numpy.uint8]:
    return vtk_to_numpy(array).astype(numpy.uint8)


@dataclass
class Look:
    """How a dataset is shown. kind: as ParaView calls its representations. array: what gives it colors, of "points" or
    "cells", and its name; None for one color. colors: those of the values of this array, [items, 3 or 4]. legend: what
    they mean. source: what is the same for all outputs of a filter. is_flat: whether discs have no shade. labels: how many,
    at most. letters: their size in points. letter_height: in units of the scene; 0: as letters."""

    name: str = "Data"
    kind: str = "Surface"
    source: Any = None
    array: tuple[str, str] | None = None
    colors: Callable[[Any], NDArray[numpy.uint8]] = _as_they_are
    legend: dict[str, Any] | None = None
    color: Sequence[float] = (1, 1, 1)
    light: dict[str, float] = field(default_factory=lambda: {"ambient": 0.0, "diffuse": 1.0, "specular": 0.0, "power": 100.0})
    opacity: float = 1
    point_size: float = 2
    line_width: float = 1
    edge_color: Sequence[float] = (0, 0, 0.5)
    radius: float = 1
    radii: str | None = None
    has_rim: bool = False
    is_flat: bool = False
    labels: int = 200
    letters: float = 12
    letter_height: float = 0
    position: Sequence[float] = (0, 0, 0)
    scale: Sequence[float] = (1, 1, 1)
    orientation: Sequence[float] = (0, 0, 0)
    origin: Sequence[float] = (0, 0, 0)


def bytes_of(color: Sequence[float]) -> list[int]:
    """A color of numbers from 0 to 1 as bytes."""
    return [round(255 * channel) for channel in color]


def title(name: str, data: Any) -> str:
    """The title of an array's legend: the first line of the field that describes it, or its name."""
    texts = data.GetFieldData().GetAbstractArray(f"{name} Legend")
    if texts is not None and texts.GetNumberOfValues():
        return str(texts.GetValue(0)).split("\n")[0]
    named = data.GetFieldData().GetAbstractArray(f"{name} Title")
    return str(named.GetValue(0)) if named is not None and named.GetNumberOfValues() else _MEANINGS.get(name, name)


def shades(table: Any, low: float, high: float, count: int) -> list[list[int]]:
    """Colors of a table of VTK, evenly between two values."""
    colors, color = [], [0.0, 0.0, 0.0]
    for value in numpy.linspace(low, high, count):
        table.GetColor(value, color)
        colors.append(bytes_of(color))
    return colors


def ramp(table: Any, low: float, high: float, title: str) -> dict[str, Any]:
    """The legend of a table of VTK between two values."""
    return {"title": title, "ramp": shades(table, low, high, _STEPS), "range": [float(low), float(high)]}


def mapped(table: Any) -> Callable[[Any], NDArray[numpy.uint8]]:
    """The colors of a table of VTK for the values of an array."""
    return lambda array: vtk_to_numpy(table.MapScalars(array, _MAP_SCALARS, -1))


def _table(points: Sequence[Sequence[float]], is_diverging: bool = False) -> Any:
    """A table of VTK through points (value, red, green, blue)."""
    from vtkmodules.vtkRenderingCore import vtkDiscretizableColorTransferFunction

    table = vtkDiscretizableColorTransferFunction()
    if is_diverging:
        table.SetColorSpaceToDiverging()
    else:
        table.SetColorSpaceToLab()
    for point in points:
        table.AddRGBPoint(*point)
    table.SetNanColor(*_NOWHERE)
    table.SetNumberOfValues(_SHADES)
    table.DiscretizeOn()
    table.Build()
    return table


def fixed_scale(name: str) -> Any:
    """The table of VTK for an array whose values have the same colors in all datasets, such as Weights."""
    from vtkmodules.vtkCommonDataModel import vtkPolyData

    colors = class_of("vtkArrayColors")()
    colors.Read(vtkPolyData(), 0, name, True)
    return _table(vtk_to_numpy(colors.GetScale()).tolist())


def ribbon_scale() -> Any:
    """The table of VTK for attention from 0 to 1 on the ribbon of a protein."""
    from vtkmodules.vtkCommonCore import vtkFloatArray, vtkStringArray
    from vtkmodules.vtkCommonDataModel import vtkPolyData

    data = vtkPolyData()
    for name in ("Attention", "backbone"):
        array = vtkFloatArray()
        array.SetName(name)
        array.InsertNextValue(1)
        data.GetPointData().AddArray(array)
    binding = vtkStringArray()
    binding.SetName("Token Binding")
    data.GetFieldData().AddArray(binding)
    colors = class_of("vtkArrayColors")()
    colors.Read(data, 0, "Attention", True)
    return _table(vtk_to_numpy(colors.GetScale()).tolist())


def _categories(colors: NDArray[Any]) -> Callable[[Any], NDArray[numpy.uint8]]:
    """The colors of numbers from 0 to those of an array."""
    known = numpy.vstack([colors, bytes_of(_NOWHERE)]).astype(numpy.uint8)

    def of(array: Any) -> NDArray[numpy.uint8]:
        numbers = numpy.nan_to_num(vtk_to_numpy(array), nan=-1).astype(int).reshape(array.GetNumberOfTuples(), -1)[:, 0]
        return known[numpy.where((numbers >= 0) & (numbers < len(colors)), numbers, len(colors))]

    return of


def _chosen(hints: dict[str, Any], data: Any) -> tuple[str, str] | None:
    """The array that gives an output its colors: the last one of the hints that is there, or else the active scalars."""
    sides = {"points": data.GetPointData(), "cells": data.GetCellData()}

    def find(fits: Callable[[str], bool]) -> tuple[str, str] | None:
        for side, arrays in sides.items():
            for number in range(arrays.GetNumberOfArrays()):
                if fits(arrays.GetArrayName(number) or ""):
                    return side, arrays.GetArrayName(number)
        return None

    found = None
    for name in (*hints.get("arrays", ()), (hints.get("discs") or {}).get("array")):
        found = find(lambda other, name=name: other == name) or found  # type: ignore[misc]
    if hints.get("suffix"):
        found = find(lambda other: other.endswith(hints["suffix"])) or found
    for side, arrays in sides.items():
        scalars = arrays.GetScalars()
        if found is None and scalars is not None and scalars.GetName():
            found = side, scalars.GetName()
    return found


def _color(look: Look, data: Any, array: tuple[str, str], is_ours: bool) -> None:
    """Gives a look the colors of an array."""
    side, name = array
    colors = class_of("vtkArrayColors")()
    if not colors.Read(data, ("points", "cells").index(side), name, is_ours):
        return
    look.array = array
    legend = colors.GetLegend().split("\n")[1:]
    if legend:
        entries = [(list(map(int, line.split(" ", 3)[:3])), line.split(" ", 3)[3]) for line in legend]
        look.legend = {"title": title(name, data), "entries": [[meaning, color] for color, meaning in entries]}
        look.colors = _categories(numpy.array([color for color, _ in entries]))
    if colors.AreColors():
        look.colors = _as_they_are
    elif not legend:
        scale = vtk_to_numpy(colors.GetScale()).tolist() if colors.GetScale().GetNumberOfTuples() else []
        if not scale:
            values = (data.GetPointData() if side == "points" else data.GetCellData()).GetArray(name)
            low, high = values.GetRange(-1 if values.GetNumberOfComponents() > 1 else 0)
            scale = [[at, *color] for at, color in zip((low, (low + high) / 2, max(high, low + 1e-30)), _COOL_TO_WARM)]
        table = _table(scale, is_diverging=not colors.GetScale().GetNumberOfTuples())
        if values_are_vectors(data, array):
            table.SetVectorModeToMagnitude()
        look.colors, look.legend = mapped(table), ramp(table, scale[0][0], scale[-1][0], title(name, data))


def values_are_vectors(data: Any, array: tuple[str, str]) -> bool:
    """Whether an array has several numbers for each item."""
    side = data.GetPointData() if array[0] == "points" else data.GetCellData()
    return bool(side.GetArray(array[1]).GetNumberOfComponents() > 1)


def look_of(source: Any, port: int, data: Any, name: str | None = None, **changes: Any) -> Look:
    """How views show an output of a filter, by the hints of its XML. changes: other hints. name: by default the filter's."""
    row = host.table().get(host.kind(source), {})
    hints: dict[str, Any] = {**(row["looks"][port] if "looks" in row else {}), **changes}
    look = Look(name or row.get("label", "Data"), hints.get("kind", "Slice" if data.IsA("vtkImageData") else "Surface"), id(source))
    for key, value in (("ambient", "Ambient"), ("diffuse", "Diffuse"), ("specular", "Specular")):
        look.light[key] = float(hints.get(value, look.light[key]))
    look.color = hints.get("DiffuseColor" if look.light["diffuse"] else "AmbientColor", look.color)
    for key, value in (
        ("opacity", "Opacity"), ("point_size", "PointSize"), ("line_width", "LineWidth"), ("letters", "LabelFontSize"),
        ("letter_height", "LabelHeight"),
    ):
        setattr(look, key, float(hints.get(value, getattr(look, key))))
    look.labels = int(hints.get("MaximumLabels", look.labels))
    array = _chosen(hints, data) if hasattr(data, "GetPointData") else None
    discs = hints.get("discs")
    if discs and (discs["array"] is None or array == ("points", discs["array"])):
        look.kind, look.radius, look.position = "Point Gaussian", discs["radius"], (0, 0, discs["z"])
        look.has_rim = look.is_flat = True
    if array is not None:
        _color(look, data, array, "looks" in row)
    return look
