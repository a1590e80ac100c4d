"""Proteins: the contacts that a recording shows."""

from __future__ import annotations

import argparse
from typing import Any

import numpy
from vtkmodules.util.numpy_support import vtk_to_numpy
from attentionatlas._internal.arguments import PathLike, index, some
from attentionatlas._internal.errors import update
from attentionatlas._internal.readers import make_filter, open_structure


#: Options of the filter ContactMap that commands have.
MEASURED = ("structure", "chain", "contact_atom", "contact_distance", "minimum_separation")


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


def trace(structure: Any, chain: str) -> tuple[Any, Any]:
    """The chain of a structure, as what Mmcif Reader makes: a tube through its C-alpha atoms in the order of their places,
    broken where places are missing, and these atoms as points with the arrays Token, such as GLY 12, and Place.

    chain: empty for the first one. The first model counts, and of an atom with several locations the first. Raises
    ValueError without residues.
    """
    from vtkmodules.vtkCommonCore import vtkIntArray, vtkPoints, vtkStringArray
    from vtkmodules.vtkCommonDataModel import vtkCellArray, vtkPolyData
    from vtkmodules.vtkFiltersCore import vtkTriangleFilter, vtkTubeFilter

    arrays = structure.GetPointData()
    texts = {name: arrays.GetAbstractArray(name) for name in ("atom_types", "chain", "residue_name")}
    sequence, models, residues = (vtk_to_numpy(arrays.GetArray(name)) for name in ("sequence", "model", "residue"))
    atoms = [i for i in numpy.flatnonzero(sequence > 0).tolist() if texts["atom_types"].GetValue(i) == "CA"]
    chain = chain or (texts["chain"].GetValue(atoms[0]) if atoms else "")
    first = min((models[i] for i in atoms), default=0)
    found: dict[int, int] = {}
    for i in atoms:
        if models[i] == first and texts["chain"].GetValue(i) == chain:
            found.setdefault(int(sequence[i]), i)
    if not found:
        raise ValueError(f"structure: expected C-alpha atoms of a protein, found none in chain '{chain}'.")
    points, lines, vertices, names, places = vtkPoints(), vtkCellArray(), vtkCellArray(), vtkStringArray(), vtkIntArray()
    names.SetName("Token")
    places.SetName("Place")
    count = 0
    for place, i in sorted(found.items()):
        if place - 1 not in found:
            lines.InsertNextCell(0)
            count = 0
        point, count = points.InsertNextPoint(structure.GetPoint(i)), count + 1
        lines.InsertCellPoint(point)
        lines.UpdateCellCount(count)
        vertices.InsertNextCell(1, [point])
        names.InsertNextValue(f"{texts['residue_name'].GetValue(i)} {residues[i]}")
        places.InsertNextValue(place)
    line, marks = vtkPolyData(), vtkPolyData()
    for data in (line, marks):
        data.SetPoints(points)
    line.SetLines(lines)
    marks.SetVerts(vertices)
    for array in (names, places):
        marks.GetPointData().AddArray(array)
    steps = numpy.linalg.norm(numpy.diff(vtk_to_numpy(points.GetData()), axis=0), axis=1)
    tube = vtkTubeFilter()
    tube.SetInputData(line)
    tube.SetRadius(0.12 * float(numpy.median(steps)) if len(steps) else 1)
    tube.SetNumberOfSides(12)
    tube.CappingOn()
    triangles = vtkTriangleFilter()
    triangles.SetInputConnection(tube.GetOutputPort())
    triangles.Update()
    return triangles.GetOutput(), marks


def add_contact_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ContactMap to the parser of a command line."""
    parser.add_argument("--structure", metavar="FILE", help="a .cif or .pdb file of the recorded protein, for its contacts")
    parser.add_argument("--chain", default="", help="of the structure (default: the first)")
    parser.add_argument("--contact-atom", choices=("CBeta", "CAlpha"), default="CBeta", help="of a residue (default: CBeta)")
    parser.add_argument("--contact-distance", type=float, default=8, metavar="D", help="of contacts, less than this (default: 8)")
    parser.add_argument("--minimum-separation", type=int, default=6, metavar="N", help="of residues in contact, in the sequence (default: 6)")
