"""Proteins: the contacts that a recording shows."""

from __future__ import annotations

import argparse
import functools
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray
from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
from attentionatlas._internal.arguments import PathLike, index, some
from attentionatlas._internal.errors import update
from attentionatlas._internal.readers import make_filter, open_structure


#: Options of the filter ContactMap that commands have.
MEASURED = ("structure", "chain", "contact_atom", "contact_distance", "minimum_separation", "sites")


def unrecorded_layers(recording: Any) -> list[int]:
    """The layers of the model, if it is known, that were not recorded."""
    if not recording.has_model:
        return []
    return [layer for layer in range(recording.model.layer_count) if layer not in recording.layer_numbers]


def contact_filter(
    recording: Any, structure: PathLike | None, options: dict[str, Any], predicts: bool = True
) -> Any:
    """The filter ContactMap on a recording, up to date, which is deleted at the end of the recording's scope.

    structure: a file. options: properties of the filter; TypeError for others. The model is an input if it is known and
    all of its layers were recorded, unless predicts is False.
    """
    recording.check_open()
    chosen = dict(options)
    chosen["layer"] = some("layer", chosen.get("layer", "all"), recording.layer_numbers, "all")
    chosen["head"] = some("head", chosen.get("head", "all"), range(recording.head_count), "all")
    sites = chosen.get("sites")
    if sites is not None and not isinstance(sites, str):
        chosen["sites"] = " ".join(map(str, numpy.atleast_1d(sites)))
    chosen["sequence"] = index("sequence", chosen["sequence"], range(recording.sequences))
    inputs = recording.shown_by("ContactMap")
    if predicts and recording.has_model and not unrecorded_layers(recording):
        inputs["Model"] = recording.model.reader
    if structure is not None:
        inputs["Structure"] = recording.own(open_structure(structure))
    made = recording.own(make_filter("ContactMap", inputs, chosen))
    update(made)
    return made


def of_heads(layer: int | str, head: int | str) -> str:
    """Whose evidence is shown, of a layer and a head, each a number or "all"."""
    if layer == "all":
        return "all heads of all layers" if head == "all" else f"head {head} of all layers"
    return f"all heads of layer {layer}" if head == "all" else f"layer {layer}, head {head}"


@dataclass
class Ribbon:
    """The backbone of a structure. surface: its triangles with their normals. residues: a point at each C-alpha, with the
    arrays Token, such as GLY 12, Chain and Place. owners: of each point of the surface the number of its residue; -1: none."""

    surface: Any
    residues: Any
    owners: NDArray[numpy.int32]


def ribbon(structure: Any) -> Ribbon:
    """The output Ribbon of Mmcif Reader in parts. Raises ValueError without residues."""
    from vtkmodules.vtkCommonCore import vtkPoints
    from vtkmodules.vtkCommonDataModel import vtkPolyData

    arrays = structure.GetPointData()
    chains, names, insertions = (texts(arrays.GetAbstractArray(name)) for name in ("chain", "residue_name", "insertion"))
    places, numbers = (vtk_to_numpy(arrays.GetArray(name)) for name in ("sequence", "residue"))
    known: dict[tuple[str, int], int] = {}
    firsts: list[int] = []
    owners = numpy.full(len(places), -1, numpy.int32)
    for i in numpy.flatnonzero(places > 0).tolist():
        owners[i] = known.setdefault((chains[i], int(places[i])), len(known))
        if len(firsts) < len(known):
            firsts.append(i)  # the atom itself
    if not firsts:
        raise ValueError("structure: expected a protein with C-alpha atoms, found none.")
    surface, residues = vtkPolyData(), vtkPolyData()
    surface.SetPoints(structure.GetPoints())
    surface.SetPolys(structure.GetPolys())
    surface.GetPointData().SetNormals(arrays.GetNormals())
    points = vtkPoints()
    points.SetData(numpy_to_vtk(vtk_to_numpy(structure.GetPoints().GetData())[firsts], deep=True))
    residues.SetPoints(points)
    add_array(residues, "Token", [f"{names[i]} {numbers[i]}{insertions[i]}" for i in firsts])
    add_array(residues, "Chain", [chains[i] for i in firsts])
    add_array(residues, "Place", places[firsts])
    return Ribbon(surface, residues, owners)


def texts(array: Any) -> list[str]:
    """The values of an array of strings."""
    return [array.GetValue(i) for i in range(array.GetNumberOfValues())]


def add_array(made: Any, name: str, values: Any) -> None:
    """Adds an array of texts or numbers to the points of a dataset."""
    from vtkmodules.vtkCommonCore import vtkStringArray

    if isinstance(values, list):
        array = vtkStringArray()
        for value in values:
            array.InsertNextValue(value)
    else:
        array = numpy_to_vtk(values, deep=True)
    array.SetName(name)
    made.GetPointData().AddArray(array)


def place_residues(made: Ribbon, lines: Any) -> tuple[NDArray[numpy.int32], NDArray[Any]]:
    """Of each residue of a ribbon its row among the recorded residues, -1 for others, by the output Lines of ContactMap; and
    the positions of these rows in the recorded sequence. Gives the residues the array Position and, if sites are known, Site."""
    fields = lines.GetFieldData()
    chain = fields.GetAbstractArray("chain").GetValue(0)
    places, positions = (vtk_to_numpy(fields.GetArray(name)) for name in ("sequence", "Position"))
    rows = {int(place): row for row, place in enumerate(places) if place > 0}
    arrays = made.residues.GetPointData()
    own = zip(texts(arrays.GetAbstractArray("Chain")), vtk_to_numpy(arrays.GetArray("Place")).tolist())
    found = numpy.array([rows.get(place, -1) if of == chain else -1 for of, place in own], numpy.int32)
    add_array(made.residues, "Position", numpy.where(found < 0, -1, positions[found]).astype(numpy.int32))
    if fields.HasArray("Site"):
        sites = vtk_to_numpy(fields.GetArray("Site"))
        add_array(made.residues, "Site", numpy.where(found < 0, 0, sites[found]).astype(numpy.int32))
    return found, positions


def mean_attention(
    recording: Any, positions: NDArray[Any], layer: int | str, head: int | str, sequence: int
) -> NDArray[numpy.float64]:
    """The attention of a head, or the mean of several, between these positions of a sequence: an array [queries, keys].
    layer, head: a number, or "all"."""
    layers = recording.layer_numbers if layer == "all" else [layer]
    matrices = (recording.attention(of, "mean" if head == "all" else head, sequence) for of in layers)
    chosen = numpy.ix_(positions, positions)
    return functools.reduce(numpy.add, (matrix[chosen].astype(numpy.float64) for matrix in matrices)) / len(layers)


def add_contact_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ContactMap to the parser of a command line."""
    parser.add_argument("--structure", metavar="FILE", help="a .cif or .pdb file of the recorded protein, for its contacts")
    parser.add_argument("--chain", default="", help="of the structure (default: the first)")
    parser.add_argument("--contact-atom", choices=("CBeta", "CAlpha"), default="CBeta", help="of a residue (default: CBeta)")
    parser.add_argument("--contact-distance", type=float, default=8, metavar="D", help="of contacts, less than this (default: 8)")
    parser.add_argument("--minimum-separation", type=int, default=6, metavar="N", help="of residues in contact, in the sequence (default: 6)")
    parser.add_argument("--sites", default="", metavar="RESIDUES", help='such as a binding site: numbers from 1, as "12 45-48"')
