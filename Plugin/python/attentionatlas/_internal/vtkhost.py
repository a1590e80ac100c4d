"""The filters as VTK classes in this process, with the names, defaults and words that ParaView's proxies have."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vtkmodules.vtkCommonCore import vtkInformationVector
from vtkmodules.vtkCommonDataModel import vtkDataObject
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline, vtkTrivialProducer

from attentionatlas._internal.hosts import table
from attentionatlas._internal.problems import Error
from attentionatlas.vtk import class_of

#: Associations of arrays by their words, as SetInputArrayToProcess takes them.
_ASSOCIATIONS = {"POINTS": 0, "CELLS": 1, "ROWS": 6}
#: Values of the default of such an array in the XML, of which the last two are the association and the name.
_ARRAY = 5


class Port:
    """An output of a filter, as an input of others."""

    def __init__(self, source: Any, number: int) -> None:
        self.source, self.Port = source, number


class _Source:
    """What has outputs: a filter, or data that were kept."""

    algorithm: Any
    #: The sources of its inputs.
    _inputs: dict[str, list[Any]]

    def UpdatePipeline(self, time: float | None = None) -> None:
        """Brings the outputs up to date, also at a time."""
        self._prepare()
        ports = range(self.algorithm.GetNumberOfOutputPorts())
        if time is not None:
            requests = vtkInformationVector()
            requests.SetNumberOfInformationObjects(len(ports))
            for port in ports:
                requests.GetInformationObject(port).Set(vtkStreamingDemandDrivenPipeline.UPDATE_TIME_STEP(), time)
            self.algorithm.UpdateInformation()
            self.algorithm.Update(0, requests)
        for port in ports or (-1,):  # that of a writer
            self.algorithm.Update(port)

    def _prepare(self) -> None:
        """Readies the sources of the inputs."""
        for sources in self._inputs.values():
            for source in sources:
                source.source._prepare()

    def output(self, port: int) -> Any:
        """The data of an output that is up to date."""
        return self.algorithm.GetOutputDataObject(port)

    def producers(self) -> list[Any]:
        """The algorithms whose output this one uses, in the order of computation, and its own at the end."""
        found: list[Any] = []
        for sources in self._inputs.values():
            for source in sources:
                found += [one for one in source.source.producers() if one not in found]
        return [*found, self.algorithm]

    def delete(self) -> None:
        """Frees what was computed."""
        self._inputs = {}
        self.algorithm = None


class Kept(_Source):
    """The data of a source at a time, ForcedTime as ParaView calls it, or a dataset."""

    def __init__(self, source: Any, time: float | None = None) -> None:
        self._inputs = {}
        self._source, self.ForcedTime = source, time
        self.algorithm = vtkTrivialProducer()
        if isinstance(source, vtkDataObject):
            self.algorithm.SetOutput(source)

    def _prepare(self) -> None:
        if isinstance(self._source, vtkDataObject):
            return
        with raised(self._source):
            self._source.UpdatePipeline(self.ForcedTime)
        found = self._source.output(0)
        copy = found.NewInstance()
        copy.ShallowCopy(found)
        self.algorithm.SetOutput(copy)


class Plain(_Source):
    """One of VTK's own filters, with inputs."""

    def __init__(self, algorithm: Any, *inputs: Any) -> None:
        self.algorithm, self._inputs = algorithm, {"Input": [_port(one) for one in inputs]}
        for port in self._inputs["Input"]:
            add = algorithm.AddInputConnection if len(inputs) > 1 else algorithm.SetInputConnection
            add(port.source.algorithm.GetOutputPort(port.Port))


def calculated(source: Any, name: str, function: str) -> Plain:
    """A dataset with one point array more, by a formula of its others, whose names are in quotation marks."""
    from vtkmodules.vtkFiltersCore import vtkArrayCalculator

    calculator = vtkArrayCalculator()
    for array in sorted(set(re.findall(r'"([^"]+)"', function))):
        calculator.AddVectorVariable(f'"{array}"', array, 0, 1, 2)
    calculator.SetFunction(function)
    calculator.SetResultArrayName(name)
    return Plain(calculator, source)


class Filter(_Source):
    """A reader, source, filter or writer by its name: Filter("AttentionMap", Input=reader, Layer=1, Quantity="Scores").

    Its properties are attributes, by the names that ParaView gives them in Python. An input is a Filter, a Port of one or a
    dataset. Raises AttributeError for an unknown property, ValueError for a bad value.
    """

    def __init__(self, _filter: str, registrationName: str = "", **properties: Any) -> None:
        row = table()[_filter]
        made: Any = {
            "name": _filter, "algorithm": class_of(row["class"])(), "_inputs": {},
            "_sources": {one["name"]: one for one in row["inputs"]},
            "_rows": {one["name"]: one for one in row["properties"]}, "_values": {},
        }
        vars(self).update(made)
        # Inputs first: others can depend on them.
        for name in sorted(properties, key=lambda name: name not in self._sources):
            setattr(self, name, properties[name])

    def ListProperties(self) -> list[str]:
        """The names of the inputs and properties."""
        return [*self._sources, *self._rows]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.ListProperties()]

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("_sources", ()):
            return self._inputs.get(name)
        row = vars(self).get("_rows", {}).get(name)
        if row is None:
            raise AttributeError(f"{vars(self).get('name', 'filter')} has no property {name}")
        if row.get("selects") and name not in self._values:
            return [one for one in self.choices(name) if getattr(self.algorithm, f"Get{_array(row)}Status")(one)]
        return self._values.get(name, _shown(row, row.get("default", [])))

    def choices(self, name: str) -> list[str]:
        """The names that a property selects among; none of one that selects nothing."""
        row = self._rows[name]
        if not row.get("selects"):
            return []
        count = getattr(self.algorithm, f"GetNumberOf{_array(row)}s")()
        return [getattr(self.algorithm, f"Get{_array(row)}Name")(number) for number in range(count)]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("algorithm", "_inputs"):
            vars(self)[name] = value
        elif name in self._sources:
            self._connect(name, value)
        elif name in self._rows:
            numbers = _numbers(self._rows[name], value)
            self._call(self._rows[name], numbers)
            self._values[name] = _shown(self._rows[name], numbers)
        else:
            raise AttributeError(f"{self.name}: expected one of {', '.join(self.ListProperties())}; found {name}.")

    def _connect(self, name: str, value: Any) -> None:
        row = self._sources[name]
        ports = [_port(one) for one in (value if isinstance(value, (list, tuple)) else [value]) if one is not None]
        self._inputs[name] = ports
        command = getattr(self.algorithm, row["command"])
        links = [port.source.algorithm.GetOutputPort(port.Port) for port in ports] or [None]
        for link in links:
            if row["command"] == "SetInputConnection":
                command(row["port"], link)
            else:
                command(link)

    def _call(self, row: Mapping[str, Any], numbers: Sequence[Any]) -> None:
        """Gives the class the values of a property."""
        command = getattr(self.algorithm, row["command"])
        each = row.get("each", 0)
        if row.get("indexed"):
            if row.get("number"):
                getattr(self.algorithm, row["number"])(len(numbers))
            for place, one in enumerate(numbers):
                command(place, one)
        elif row.get("selects"):
            getattr(self.algorithm, row["clean"])()
            for one in numbers:
                command(one, 1)
        elif each:
            getattr(self.algorithm, row["clean"])()
            for begin in range(0, len(numbers), each):
                command(*numbers[begin : begin + each])
        elif row["command"] == "SetInputArrayToProcess":
            command(0, 0, 0, _ASSOCIATIONS[numbers[0]], numbers[1])
        else:
            command(*numbers)

    def _prepare(self) -> None:
        super()._prepare()
        followed = [row for row in self._rows.values() if row.get("range") and row["name"] not in self._values]
        if not followed:
            return
        for sources in self._inputs.values():
            for source in sources:
                source.source.UpdatePipeline()
        self.algorithm.UpdateInformation()
        for row in followed:
            command, end = row["range"]
            getattr(self.algorithm, row["command"])(getattr(self.algorithm, command)()[end])


def _array(row: Mapping[str, Any]) -> str:
    """What the commands of a property that selects call it: RecordArray of SetRecordArrayStatus."""
    command: str = row["command"]
    return command.removeprefix("Set").removesuffix("Status")


def port_of(value: Any) -> Port | None:
    """An output of a source, or a dataset, as an input; None for anything else."""
    return _port(value) if isinstance(value, (Port, _Source, vtkDataObject)) else None


def _port(value: Any) -> Port:
    """An input as an output of a source."""
    if isinstance(value, Port):
        return value
    return Port(Kept(value) if isinstance(value, vtkDataObject) else value, 0)


def _numbers(row: Mapping[str, Any], value: Any) -> list[Any]:
    """The values of a property as its class takes them; raises ValueError for others."""
    is_list = not isinstance(value, (str, bytes)) and hasattr(value, "__iter__")
    values = list(value) if is_list else [value]
    count = 0 if row.get("each") or row.get("indexed") or row.get("selects") else row.get("count", 1)
    if row["command"] == "SetInputArrayToProcess":
        if len(values) != 2 or values[0] not in _ASSOCIATIONS:
            raise ValueError(f"{row['name']}: expected an association among {', '.join(_ASSOCIATIONS)} and the name of an "
                             f"array, found {value!r}.")
    elif count and len(values) != count:
        raise ValueError(f"{row['name']}: expected {count} values, found {len(values)}.")
    return [_number(row, one) for one in values]


def _number(row: Mapping[str, Any], value: Any) -> Any:
    """One value of a property as its class takes it."""
    words = row.get("words", {})
    if row["type"] == "text":
        return str(value)
    if isinstance(value, str) and value in words:
        return words[value]
    try:
        if row["type"] == "int" and int(value) == value:
            return int(value)
        if row["type"] == "float":
            return float(value)
        raise ValueError("a fraction")
    except (TypeError, ValueError) as error:
        expected = f"one of {', '.join(words)}" if words else "a number"
        raise ValueError(f"{row['name']}: expected {expected}, found {value!r}.") from error


def _shown(row: Mapping[str, Any], numbers: Sequence[Any]) -> Any:
    """Values of a property as Python shows them: words, and a value alone without a list."""
    if row["command"] == "SetInputArrayToProcess" and len(numbers) == _ARRAY:
        return [next(word for word, number in _ASSOCIATIONS.items() if str(number) == numbers[3]), numbers[4]]
    words = {number: word for word, number in row.get("words", {}).items()}
    shown = [words.get(one, one) for one in numbers]
    is_one = row.get("count") == 1 and not row.get("each")
    if is_one:
        return shown[0] if shown else ("" if row["type"] == "text" else 0)
    return shown


def blocks(data: Any) -> Iterator[Any]:
    """A dataset and those within it."""
    yield data
    if data is not None and data.IsA("vtkMultiBlockDataSet"):
        for number in range(data.GetNumberOfBlocks()):
            if data.GetBlock(number) is not None:
                yield from blocks(data.GetBlock(number))


def field_range(data: Any, name: str) -> tuple[float, float] | None:
    """The least and largest value of a field array of a dataset or of those within it; None without it."""
    found = []
    for block in blocks(data):
        fields = None if block is None else block.GetFieldData()
        array = None if fields is None else fields.GetAbstractArray(name)
        if array is not None:
            found.append(array.GetRange(0) if hasattr(array, "GetRange") else (0.0, 0.0))
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None


@contextlib.contextmanager
def raised(source: Any, kind: type[Error] = Error) -> Iterator[None]:
    """Raises an exception of this kind at the end of `with` if a filter has failed, or one whose output it uses, with what
    that says of the last time that it ran. What they say meanwhile is not displayed."""
    errors = class_of("vtkFilterErrors")()
    for algorithm in source.producers():
        errors.AddFilter(algorithm)
    try:
        yield
        errors.Gather()
        text = errors.GetText()
    finally:
        errors.RemoveAllFilters()
    if text:
        raise kind(text)


def writer(file: str, source: Any, properties: Mapping[str, Any]) -> Any:
    """A writer of a file for what a source has: the one for the format that the data name."""
    port = _port(source)
    port.source.UpdatePipeline()
    fields = port.source.output(port.Port).GetFieldData()
    array = fields.GetAbstractArray("Format")
    has = None if array is None else array.GetValue(0)
    for name, row in table().items():
        if has in next((one.get("formats", ()) for one in row["inputs"] if one["name"] == "Input"), ()) and row.get("writes"):
            return Filter(name, Input=source, FileName=file, **properties)
    raise ValueError(f"{file}: expected data that a file can hold, found {has or 'data without a format'}.")
