"""The data of proxies as NumPy arrays, gathered from all ranks. What brings a proxy up to date raises Error if that fails."""

from __future__ import annotations

from typing import Any

import numpy
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal import host
from attentionatlas._internal.errors import update


def fetch(source: Any, port: int = 0) -> Any:
    """The output of a proxy, up to date."""
    update(source)
    return host.fetch(source, port)


#: What a dataset says of itself in Python: the filter and the number of the output that it is.
MADE_BY = "_attentionatlas_made_by"


def copied(source: Any, port: int = 0) -> Any:
    """The output of a proxy, up to date, which stays when the proxy is deleted."""
    found = fetch(source, port)
    copy = found.NewInstance()
    copy.ShallowCopy(found)
    return copy


def first_part(source: Any) -> Any:
    """The output of a proxy on its first rank, up to date. Blocks keep their names, before which Fetch of
    all ranks puts others since ParaView 6.1."""
    update(source)
    return host.first_part(source)


def blocks(data: Any) -> dict[str, Any]:
    """The blocks of fetched data by name; none of data that are no vtkMultiBlockDataSet."""
    if data is None or not data.IsA("vtkMultiBlockDataSet"):
        return {}
    return {data.GetMetaData(i).Get(data.NAME()): data.GetBlock(i) for i in range(data.GetNumberOfBlocks())}


def has_column(data: Any, name: str) -> bool:
    """Whether fetched data are a table with a column."""
    return bool(data is not None and data.IsA("vtkTable") and data.GetColumnByName(name) is not None)


def field_number(source: Any, name: str) -> Any:
    """A number of the field data of a proxy's output, or None if it has none of that name."""
    found = host.field_range(source, name)
    return None if found is None else found[0]


def point_array(data: Any, name: str) -> Any:
    """A point array of a fetched dataset."""
    return vtk_to_numpy(data.GetPointData().GetArray(name))


def point_names(source: Any) -> list[str]:
    """The names of the point arrays of a proxy's output, up to date."""
    arrays = first_part(source).GetPointData()
    return [arrays.GetArrayName(number) for number in range(arrays.GetNumberOfArrays())]


def texts(array: Any) -> list[str]:
    """The values of an array of texts; none without it."""
    return [] if array is None else [array.GetValue(i) for i in range(array.GetNumberOfValues())]


def visible(token: str) -> str:
    """A token as figures write it: with visible spaces, never empty."""
    text = token.replace(" ", "\u00b7")
    return text if text.isprintable() and text else repr(token)


def points(data: Any) -> Any:
    """The points of a fetched dataset, a row each."""
    if data.GetPoints() is None:
        return numpy.zeros((0, 3))
    return vtk_to_numpy(data.GetPoints().GetData()).astype(float)


def cells(array: Any) -> list[Any]:
    """The cells of a vtkCellArray as arrays of point numbers."""
    offsets = vtk_to_numpy(array.GetOffsetsArray()).tolist()
    connectivity = vtk_to_numpy(array.GetConnectivityArray())
    return [connectivity[begin:end] for begin, end in zip(offsets, offsets[1:])]


def image(source: Any, name: str, port: int = 0) -> Any:
    """A point array of an image: [rows, columns] or [rows, columns, components], bottom row first."""
    update(source)
    left, right, bottom, top, _, _ = host.extent(source, port)
    whole = None
    for part in host.parts(source, port):
        if part.GetNumberOfPoints() == 0:
            continue
        x0, x1, y0, y1, _, _ = part.GetExtent()
        values = point_array(part, name)
        values = values.reshape(y1 - y0 + 1, x1 - x0 + 1, *values.shape[1:])
        if whole is None:
            whole = numpy.empty((top - bottom + 1, right - left + 1, *values.shape[2:]), values.dtype)
        whole[y0 - bottom : y1 - bottom + 1, x0 - left : x1 - left + 1] = values
    return whole


def table(source: Any, port: int = 0) -> dict[str, Any]:
    """The columns of a table, or the arrays of the cells of a dataset, or of its points if cells have none, by name:
    arrays of numbers, or lists of text. Points come with their places, the columns x, y and z."""
    data = fetch(source, port)
    columns: dict[str, Any] = {}
    if data.IsA("vtkTable"):
        rows = data.GetRowData()
    else:
        rows = data.GetCellData()
        if rows.GetNumberOfArrays() == 0:
            rows = data.GetPointData()
            columns = dict(zip("xyz", points(data).T)) if data.IsA("vtkPointSet") else {}
    for number in range(rows.GetNumberOfArrays()):
        column = rows.GetAbstractArray(number)
        is_text = column.IsA("vtkStringArray")
        columns[column.GetName()] = texts(column) if is_text else vtk_to_numpy(column).copy()
    return columns
