"""Tables of the plugin's filters, as pandas has them or as structured arrays."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy
from numpy.typing import NDArray

from attentionatlas._internal import data, host
from attentionatlas._internal.errors import update
from attentionatlas._internal.readers import Proxies, filter_name, make_filter

if TYPE_CHECKING:
    import pandas

#: A pandas DataFrame if pandas is installed, else a NumPy structured array with the same columns.
Table: TypeAlias = Union["pandas.DataFrame", NDArray[Any]]


#: Rows that a notebook shows of a table.
_SHOWN = 20


class Rows(numpy.ndarray[Any, Any]):
    """A structured array, which Jupyter shows as a table."""

    def _repr_html_(self) -> str | None:
        if self.dtype.names is None or self.ndim != 1:
            return None  # a column or a row of it
        lines = [("th", self.dtype.names), *(("td", row) for row in self[:_SHOWN].tolist())]
        body = "".join(
            "<tr>" + "".join(f"<{tag}>{html.escape(_text(value))}</{tag}>" for value in values) + "</tr>" for tag, values in lines
        )
        return f"<table>{body}</table><p>{len(self)} rows, {len(self.dtype.names)} columns</p>"


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _flat(columns: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Columns of one component each: those of more are named as ParaView names them in files, Eigenvalue 0:1."""
    flat: dict[str, NDArray[Any]] = {}
    for name, values in columns.items():
        array = numpy.asarray(values, dtype=object if isinstance(values, list) else None)
        if array.ndim == 1:
            flat[name] = array
        else:
            flat.update({f"{name}:{i}": column for i, column in enumerate(array.T)})
    return flat


def as_table(columns: dict[str, Any]) -> Table:
    """Columns by name as a table: arrays [rows] or [rows, components], or lists of text."""
    flat = _flat(columns)
    try:
        import pandas
    except ImportError:
        rows = len(next(iter(flat.values()), ()))
        table = numpy.empty(rows, [(name, values.dtype) for name, values in flat.items()])
        for name, values in flat.items():
            table[name] = values
        return table.view(Rows)
    return pandas.DataFrame(flat)


class Tables(Proxies):
    """What filters can be applied to: its tables."""

    name: str
    _reader: Any

    @property
    def reader(self) -> Any:
        """The source in ParaView's pipeline, as paraview.simple takes it."""
        self.check_open()
        return self._reader

    def _inputs(self, name: str) -> dict[str, Any]:
        """The inputs of a filter of this name."""
        raise NotImplementedError

    def made(self, name: str, port: int = 0, **options: Any) -> Any:
        """A filter on this, up to date, which is deleted at the end of the scope; raises as table."""
        self.check_open()
        name = filter_name(name)
        made = self.own(make_filter(name, self._inputs(name), options))
        update(made)
        if port >= host.outputs(made):
            raise ValueError(f"port: {name} has {host.outputs(made)} outputs, found {port}.")
        return made

    def columns(self, name: str, port: int = 0, **options: Any) -> dict[str, Any]:
        """The columns of a table by name: arrays [rows] or [rows, components], or lists of text; raises as table."""
        with self.scope():
            columns: dict[str, Any] = data.table(self.made(name, port, **options), port)
            return columns

    def table(self, name: str, port: int = 0, **options: Any) -> Table:
        """The table that any filter of the plugin makes of this: rows of an output table, cells or points of others.

        name: of the filter, such as "AttentionFocus". port: the number of its output. options: its properties, such as
        exclude_first=True for ExcludeFirst; Reference.md lists them. Raises ValueError if the filter reports an error
        or for a bad value, TypeError for an unknown option.
        """
        return as_table(self.columns(name, port, **options))

    def dataset(self, name: str, port: int = 0, **options: Any) -> Any:
        """The dataset of VTK that any filter of the plugin makes of this, such as a vtkImageData, which PyVista wraps.

        name, port, options: as table, whose errors it raises. The dataset stays when this is closed.
        """
        with self.scope():
            found = data.copied(self.made(name, port, **options), port)
        setattr(found, data.MADE_BY, (filter_name(name), port))  # which decides how display shows it
        return found

    def _of(self, name: str, port: int, options: dict[str, Any]) -> Table:
        """The table of a method whose arguments are the options of a filter: table(name, port, ...)."""
        return self.table(name, port, **{key: value for key, value in options.items() if key != "self"})

    def _summary(self) -> dict[str, str]:
        """What a notebook shows of this."""
        raise NotImplementedError

    def _line(self) -> str:
        """The same in a line."""
        return ", ".join(f"{name.lower()} {value}" for name, value in self._summary().items())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {'closed' if self.closed else self._line()}>"

    def _repr_html_(self) -> str:
        """A summary, as Jupyter shows it."""
        if self.closed:
            return html.escape(repr(self))
        return summary(f"{type(self).__name__} {self.name}", self._summary())


def summary(title: str, rows: dict[str, str]) -> str:
    """A table of names and values in HTML, both as text."""
    cells = (
        f'<tr><th style="text-align: left">{html.escape(name)}</th>'
        f'<td style="text-align: left">{html.escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table><caption>{html.escape(title)}</caption>{''.join(cells)}</table>"
