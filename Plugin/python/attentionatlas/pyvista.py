"""Attention on the meshes of PyVista, where that is installed.

    import attentionatlas as atlas
    import pyvista

    mesh = pyvista.read("mesh.vtu")                              # with a point array of tokens
    with atlas.open("run.safetensors") as recording:
        bound = mesh.attention.bind(recording, method="Array", token_array="Token")
        shown = bound.attention.of(recording, token=16, layer=1, head="mean")
    shown.plot(scalars="Attention")

PyVista finds this module by its entry points: `mesh.attention` on all datasets, and pyvista.read for recordings, small
models and statistics of a corpus in .safetensors files. It runs on VTK alone, not in ParaView's Python.
"""

from __future__ import annotations

from typing import Any

import pyvista

from attentionatlas._internal.arguments import Head, PathLike, Sequence, index
from attentionatlas._internal.data import copied
from attentionatlas._internal.host import is_paraview
from attentionatlas._internal.opening import open_file
from attentionatlas._internal.readers import make_filter
from attentionatlas._internal.recording import Recording


class Blocks(pyvista.MultiBlock):
    """A pyvista.MultiBlock of tables, which have no place in space; PyVista 0.49 cannot print one."""

    @property
    def bounds(self) -> Any:
        """Those of nothing: zeros."""
        return pyvista.MultiBlock().bounds


def read(path: PathLike) -> Any:
    """The blocks of a .safetensors file, tables of its layers and heads: a pyvista.MultiBlock, or a Table of a corpus.

    Raises FileNotFoundError for a missing file, ValueError for one of another kind.
    """
    with open_file(path) as opened:
        return _wrapped(copied(opened.reader))


def _wrapped(data: Any) -> Any:
    """PyVista's view of a dataset, block by block: PyVista 0.49 refuses blocks of tables that it wraps at once."""
    if data is None or not data.IsA("vtkMultiBlockDataSet"):
        return pyvista.wrap(data)
    found = Blocks()
    for number in range(data.GetNumberOfBlocks()):
        found.append(_wrapped(data.GetBlock(number)), data.GetMetaData(number).Get(data.NAME()))
    found.GetFieldData().ShallowCopy(data.GetFieldData())
    return found


def _opened(recording: Any) -> Recording:
    if not isinstance(recording, Recording):
        raise ValueError(f"recording: expected one that attentionatlas.open has opened, found {recording!r}.")
    return recording


@pyvista.register_dataset_accessor("attention", pyvista.DataSet)
class MeshAttention:
    """Attention on the points or cells of a mesh: mesh.attention."""

    def __init__(self, mesh: Any) -> None:
        self._mesh = mesh

    def _made(self, name: str, inputs: dict[str, Any], options: dict[str, Any]) -> Any:
        if is_paraview():
            raise ValueError("mesh.attention: expected VTK alone as the host, found ParaView; set ATLAS_HOST=VTK.")
        made = make_filter(name, {"Input": self._mesh, **inputs}, options)
        try:
            return pyvista.wrap(copied(made))
        finally:
            made.delete()

    def bind(self, recording: Recording, method: str = "Array", **options: Any) -> Any:
        """A copy of the mesh whose points or cells know their tokens.

        method: Array, by the point array token_array of positions in the sequence from 0; Nearest, to token_positions, a mesh
        with a point per token; Grid, to patches by grid_origin, patch_size and patch_counts; Weights, by weight_array; or
        Residues. options: of the filter BindTokens, such as places="Cells". Raises ValueError for a bad value.
        """
        return self._made("BindTokens", {"Recording": _opened(recording).reader}, {"method": method, **options})

    def of(
        self, recording: Recording, token: int = 0, layer: int | None = None, head: Head = "mean", sequence: Sequence = 0,
        **options: Any,
    ) -> Any:
        """A copy of a mesh that is bound, with the attention of a token to all others as the array Attention, 0 to 1.

        layer: by default the first recorded one. head, sequence: a number, or "mean". options: of the filter
        SpatialAttention, such as direction="To" or quantity="NormWeighted". Raises ValueError for a bad value.
        """
        layer, chosen, sequence = _opened(recording).place(layer, head, sequence)
        if sequence >= 0:
            token = index("token", token, range(recording.lengths[sequence]))
        places = {"token": token, "layer": layer, "head": chosen, "sequence": sequence}
        return self._made("SpatialAttention", {"Recording": recording.reader}, {**places, **options})
