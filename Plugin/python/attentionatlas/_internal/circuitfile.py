"""Circuits of transformers: parts of a model that are saved, compared and run alone."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.readers import Proxies, open_circuit, write_circuit
from attentionatlas._internal.tables import Table, as_table


class Circuit:
    """A part of a transformer, nodes and the edges between them, which can be saved, compared and run alone.

    source: a file that save or Save Data of Attribution Patching wrote; Transformer.find_circuit makes others. Raises
    FileNotFoundError for a missing file, ValueError for one that holds no circuit. Where options of filters and record
    take a circuit_file, they also take a Circuit.

    path: of the file, temporary for a circuit that was just found. nodes: by name, "embed", "head 0.1" or "mlp 0", also
    those at edges.
    """

    def __init__(self, source: PathLike) -> None:
        #: The file; a temporary one, as long as this object, for a circuit that was just found.
        self.path = pathlib.Path(source)
        self._folder: Any = None
        columns = self._columns(1)
        #: Names of the nodes, without the logits.
        self.nodes: list[str] = list(columns["Node"])
        self._edges = self._columns(2)

    @classmethod
    def found(cls, source: Any) -> Circuit:
        """The circuit that the graph of a filter shows, in a file of its own."""
        folder = tempfile.TemporaryDirectory(prefix="attention-atlas-")
        made = cls(write_circuit(source, pathlib.Path(folder.name) / "found.circuit"))
        made._folder = folder
        return made

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"<Circuit of {len(self.nodes)} nodes and {len(self.edges)} edges>"

    def _columns(self, port: int, compare_with: str = "") -> dict[str, Any]:
        with Proxies() as proxies:
            columns: dict[str, Any] = data.table(proxies.own(open_circuit(self.path, CompareWith=compare_with)), port)
            return columns

    @property
    def edges(self) -> Table:
        """A row per edge, strongest first: From, To, its Input, Q, K, V or Stream, and the Effect; none in a circuit of
        nodes."""
        return as_table(self._edges)

    def save(self, path: PathLike) -> pathlib.Path:
        """Writes it to a file, which appears complete or not at all; returns its path.

        path: a name that ends with .circuit. Raises ValueError for another name, FileNotFoundError for a missing folder.
        """
        with Proxies() as proxies:
            return write_circuit(proxies.own(open_circuit(self.path)), path)

    def compare(self, other: Circuit | PathLike, nodes: bool = False) -> Table:
        """The edges of two circuits: the rows of edges, with In: both, file (this one alone) or other. Effects are those of
        this one where it has the edge.

        other: a circuit, or its file, of a model of the same architecture, layers and heads; another raises ValueError.
        nodes: the nodes instead: Node, Layer, Head and In.
        """
        return as_table(self._columns(1 if nodes else 2, os.fspath(other)))
