"""Where filters run: as VTK classes in this process, or as ParaView's proxies.

ParaView is the host where its Python is, as in pvpython, and VTK alone elsewhere. The variable ATLAS_HOST of the environment,
ParaView or VTK, decides otherwise: VTK alone starts sooner.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from attentionatlas._internal.hosts import is_paraview, need_paraview, table, words
from attentionatlas._internal.problems import Error

__all__ = ["is_paraview", "need_paraview", "table", "words"]


def version() -> str:
    """The name of the host with its version: ParaView 6.1."""
    if is_paraview():
        from paraview import simple

        found = simple.GetParaViewVersion()
        return f"ParaView {found.major}.{found.minor}"
    from vtkmodules.vtkCommonCore import vtkVersion

    return f"VTK {vtkVersion.GetVTKMajorVersion()}.{vtkVersion.GetVTKMinorVersion()}"


def choices(source: Any, option: str) -> list[str]:
    """The names of arrays and the like that a property of a filter can choose among; none where any text may do."""
    if is_paraview():
        return list(getattr(source.GetProperty(option), "Available", None) or [])
    found: list[str] = source.choices(option)
    return found


def load() -> None:
    """Makes the filters ready: loads the plugin into ParaView, or VTK's classes."""
    if is_paraview():
        from attentionatlas._internal.plugin import load_plugin

        load_plugin()


class _Filters:
    """The readers, sources, filters and writers by their names: filters.AttentionMap(Input=reader, Layer=1) makes one."""

    def __getattr__(self, name: str) -> Any:
        if is_paraview():
            from paraview import simple

            return getattr(simple, name)
        if name not in table():
            raise AttributeError(f"the plugin has no {name}")
        from attentionatlas._internal import vtkhost

        return functools.partial(vtkhost.Filter, name)


filters = _Filters()


def delete(source: Any) -> None:
    """Frees what a filter has. Those that use its output are deleted before it."""
    if is_paraview():
        from paraview import simple

        simple.Delete(source)
    else:
        source.delete()


def output_port(source: Any, port: int) -> Any:
    """An output of a filter, as an input of others."""
    if is_paraview():
        from paraview import simple

        return simple.OutputPort(source, port)
    from attentionatlas._internal import vtkhost

    return vtkhost.Port(source, port)


def at_time(source: Any, time: float) -> Any:
    """What a source has at a time, as an input of others."""
    if is_paraview():
        from paraview import simple

        return simple.ForceTime(Input=source, IgnorePipelineTime=1, ForcedTime=time)
    from attentionatlas._internal import vtkhost

    return vtkhost.Kept(source, time)


def kind(source: Any) -> str:
    """The name of a reader, source or filter as the table has it."""
    found: str = source.GetXMLName() if is_paraview() else getattr(source, "name", "")
    return found


def is_proxy(value: Any) -> bool:
    """Whether a value is a proxy of ParaView."""
    if not is_paraview():
        return False
    from paraview import servermanager

    return isinstance(value, servermanager.Proxy)


def know_class(name: str) -> None:
    """Lets Python know the class of a filter, without which ParaView's knows no commands of those that it makes later."""
    if is_paraview():
        from attentionatlas.vtk import class_of

        class_of(table()[name]["class"])


def held(source: Any, row: Mapping[str, Any]) -> float | None:
    """The number that the class of a source has for a property, given by its row, that was set: another one where it was
    beyond the range of the class. None for properties of other kinds, and on a server."""
    if row.get("type") not in ("int", "float") or row.get("count", 1) != 1 or not row["command"].startswith("Set"):
        return None
    found = algorithms(source)[-1:]
    getter = getattr(found[0], f"G{row['command'][1:]}", None) if found else None
    value = None if getter is None or row.get("each") or row.get("indexed") or row.get("selects") else getter()
    return value if isinstance(value, (int, float)) else None


def session_kept() -> AbstractContextManager[None]:
    """Lets the session of ParaView be at the end of `with` what it was."""
    if not is_paraview():
        return contextlib.nullcontext()
    from attentionatlas._internal import session

    return session.kept()


def outputs(source: Any) -> int:
    """The number of outputs of a filter."""
    if is_paraview():
        count: int = source.SMProxy.GetNumberOfOutputPorts()
        return count
    ports: int = source.algorithm.GetNumberOfOutputPorts()
    return ports


def update(source: Any, time: float | None) -> None:
    """Brings a filter up to date, also at a time. Errors are those of raised()."""
    source.UpdatePipeline(*([] if time is None else [time]))


def algorithms(source: Any) -> list[Any]:
    """The algorithms of VTK in this process whose output a source uses, in the order of computation, and its own at the end."""
    if is_paraview():
        from attentionatlas._internal.paraviewhost import algorithms as algorithms_of_proxies

        return algorithms_of_proxies(source)
    found: list[Any] = source.producers()
    return found


def fetch(source: Any, port: int) -> Any:
    """The data of an output that is up to date, gathered from all ranks."""
    if is_paraview():
        from paraview import servermanager

        return servermanager.Fetch(source, idx=port)
    return source.output(port)


def parts(source: Any, port: int) -> list[Any]:
    """The data of an output that is up to date, as each rank has it."""
    if is_paraview():
        from paraview import servermanager

        ranks = servermanager.ActiveConnection.GetNumberOfDataPartitions()
        return [servermanager.Fetch(source, rank, idx=port) for rank in range(ranks)]
    return [source.output(port)]


def first_part(source: Any, port: int = 0) -> Any:
    """The data of an output that is up to date, as the first rank has it."""
    if is_paraview():
        from paraview import servermanager

        return servermanager.Fetch(source, 0, idx=port)
    return source.output(port)


def extent(source: Any, port: int) -> Any:
    """The extent of an image that is up to date."""
    return source.GetDataInformation(port).GetExtent() if is_paraview() else source.output(port).GetExtent()


def field_range(source: Any, name: str) -> tuple[float, float] | None:
    """The least and largest value of a field array of an output that is up to date; None without it."""
    if not is_paraview():
        from attentionatlas._internal import vtkhost

        return vtkhost.field_range(source.output(0), name)
    fields = source.GetDataInformation().DataInformation.GetFieldDataInformation()
    array = fields.GetArrayInformation(name)
    found: tuple[float, float] | None = None if array is None else array.GetComponentRange(0)
    return found


def raised(source: Any, kind: type[Error]) -> AbstractContextManager[None]:
    """Raises an exception of this kind at the end of `with` if a filter has failed, or one whose output it uses."""
    if is_paraview():
        from attentionatlas._internal.paraviewhost import raised as raised_by_proxies

        return raised_by_proxies(source, kind)
    from attentionatlas._internal import vtkhost

    return vtkhost.raised(source, kind)


def writer(file: str, source: Any, properties: Mapping[str, Any]) -> Any:
    """A writer of a file for what a source has."""
    if is_paraview():
        from paraview import simple

        made = simple.CreateWriter(file, proxy=source, **properties)
        made.UpdateVTKObjects()
        return made
    from attentionatlas._internal import vtkhost

    return vtkhost.writer(file, source, properties)


def calculated(source: Any, name: str, function: str) -> Any:
    """A dataset with one point array more, by a formula of its others."""
    if is_paraview():
        from paraview import simple

        return simple.Calculator(Input=source, ResultArrayName=name, Function=function)
    from attentionatlas._internal import vtkhost

    return vtkhost.calculated(source, name, function)
