"""Proteins: the contacts that a recording shows."""

from __future__ import annotations

import argparse
from typing import Any

import numpy
from vtkmodules.util.numpy_support import vtk_to_numpy
from attentionatlas._internal.arguments import PathLike, index, some
from attentionatlas._internal.errors import update
from attentionatlas._internal.readers import make_filter, open_structure


#: Options of the filter ContactMap, beside the structure, that commands have.
CHOICES = ("chain", "sites", "contact_atom", "contact_distance", "minimum_separation")
MEASURED = ("structure", *CHOICES)


def unrecorded_layers(recording: Any) -> list[int]:
    """The layers of the model, if it is known, that were not recorded."""
    if not recording.has_model:
        return []
    return [layer for layer in range(recording.model.layer_count) if layer not in recording.layer_numbers]


def contact_filter(recording: Any, structure: PathLike | None, options: dict[str, Any]) -> Any:
    """The filter ContactMap on a recording, up to date, which is deleted at the end of the recording's scope.

    structure: a file. options: properties of the filter; TypeError for others. The model is an input if it is known and
    all of its layers were recorded.
    """
    recording.check_open()
    chosen = dict(options)
    chosen["layer"] = some("layer", chosen.get("layer", "all"), recording.layer_numbers, "all")
    chosen["head"] = some("head", chosen.get("head", "all"), range(recording.head_count), "all")
    if not isinstance(chosen.get("sites", ""), str):
        chosen["sites"] = " ".join(map(str, chosen["sites"]))
    chosen["sequence"] = index("sequence", chosen["sequence"], range(recording.sequences))
    inputs = recording.shown_by("ContactMap")
    if recording.has_model and not unrecorded_layers(recording):
        inputs["Model"] = recording.model.reader
    if structure is not None:
        inputs["Structure"] = recording.own(open_structure(structure))
    made = recording.own(make_filter("ContactMap", inputs, chosen))
    update(made)
    return made


def trace(structure: Any, chain: str) -> tuple[Any, Any]:
    """The chain of a structure, as what Mmcif Reader makes: a tube through its C-alpha atoms, broken where residues are
    missing, and these atoms as points with the array Token, such as GLY 12. chain: empty for the first one."""
    from vtkmodules.vtkCommonCore import vtkPoints, vtkStringArray
    from vtkmodules.vtkCommonDataModel import vtkCellArray, vtkPolyData
    from vtkmodules.vtkFiltersCore import vtkTriangleFilter, vtkTubeFilter

    arrays = structure.GetPointData()
    texts = {name: arrays.GetAbstractArray(name) for name in ("atom_types", "chain", "residue_name")}
    numbers = {name: vtk_to_numpy(arrays.GetArray(name)) for name in ("sequence", "model", "residue")}
    first = numbers["model"].min(initial=1)
    points, lines, vertices, names = vtkPoints(), vtkCellArray(), vtkCellArray(), vtkStringArray()
    names.SetName("Token")
    last, runs = 0, []
    for i in range(structure.GetNumberOfPoints()):
        place = int(numbers["sequence"][i])
        is_trace = texts["atom_types"].GetValue(i) == "CA" and place > last and numbers["model"][i] == first
        chain = chain or (texts["chain"].GetValue(i) if is_trace else "")
        if not is_trace or texts["chain"].GetValue(i) != chain:
            continue
        if place != last + 1 or not runs:
            runs.append([])
        runs[-1].append(points.InsertNextPoint(structure.GetPoint(i)))
        names.InsertNextValue(f"{texts['residue_name'].GetValue(i)} {numbers['residue'][i]}")
        last = place
    for run in runs:
        lines.InsertNextCell(len(run), run)
        for point in run:
            vertices.InsertNextCell(1, [point])
    line, marks = vtkPolyData(), vtkPolyData()
    for data in (line, marks):
        data.SetPoints(points)
    line.SetLines(lines)
    marks.SetVerts(vertices)
    marks.GetPointData().AddArray(names)
    places = vtk_to_numpy(points.GetData()).reshape(-1, 3) if points.GetNumberOfPoints() else numpy.zeros((0, 3))
    steps = numpy.linalg.norm(numpy.diff(places, axis=0), axis=1)
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
    """Adds the options of ContactMap to the parser of a command line, beside the structure."""
    parser.add_argument("--chain", default="", help="of the structure (default: the first)")
    parser.add_argument("--sites", default="", metavar="RESIDUES", help='such as a binding site: numbers from 1, as "12 45-48"')
    parser.add_argument("--contact-atom", choices=("CBeta", "CAlpha"), default="CBeta", help="of a residue (default: CBeta)")
    parser.add_argument("--contact-distance", type=float, default=8, metavar="D", help="of contacts, less than this (default: 8)")
    parser.add_argument("--minimum-separation", type=int, default=6, metavar="N", help="of residues in contact, in the sequence (default: 6)")
