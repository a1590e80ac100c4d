"""Datasets of VTK and how they look as the scenes of a page in a browser: what web.py writes.

A scene has parts. Each is an image in the plane; discs or dots at points; or a mesh of lines and faces. Places
are 32-bit numbers and colors bytes, as their Look maps them; arrays of the data are what the page shows of the
item under the pointer.
"""

from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import NDArray
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal.data import visible
from attentionatlas._internal.looks import DISCS, IMAGES, POINTS, SURFACES, Look, bytes_of, ramp, ribbon_scale, shades
from attentionatlas._internal.webpage import Scene, Texts
from attentionatlas._internal.windows import VIEWPOINT

#: A search reads the first of these point arrays that exists, or else the two token numbers of a pair.
_TEXTS = ("Token", "Head Name", "Label")
_PAIR = ("First", "Second")
#: Arrays of the numbers of tokens, and how their words are called.
_WORDS = {"Query": "Query Token", "Key": "Key Token", "Token Index": "Token"}
#: Arrays that the page needs for drawing only.
_DRAWING = ("Normals", "Side", "Radius", "Hidden", "Opacity", "TCoords", "Label", "vtkOriginalPointIds", "vtkGhostType")
#: Widths of weighted lines, and tokens of a map that are written, as in ParaView.
_WIDTHS, _LABELS = 5, 256
#: The query, as in ParaView, and residues that were not recorded.
_QUERY, _NOWHERE = [51, 230, 51], [150, 150, 150]
#: The side of labels below columns.
_BELOW = 3


def flat_scene(shown: Iterable[tuple[Any, Look]], title: str, caption: str = "") -> Scene:
    """The scene of datasets in the plane. Raises ValueError for data without points, and for what a page cannot show."""
    parts, legends = described(shown)
    return Scene(title, caption, True, flat_camera(parts), parts, legends)


def scene_in_space(
    shown: Iterable[tuple[Any, Look]], title: str, caption: str = "", up: tuple[int, int, int] = (0, 0, 1)
) -> Scene:
    """The scene of datasets in space, seen from where figures are; raises as flat_scene."""
    parts, legends = described(shown)
    low, high = bounds(parts)
    middle, radius = (low + high) / 2, float(numpy.linalg.norm(high - low)) / 2
    right = numpy.cross(up, VIEWPOINT)
    seen = [right, numpy.cross(VIEWPOINT, right)]
    seen = numpy.transpose([axis / numpy.linalg.norm(axis) for axis in seen])
    half = max(numpy.abs((part["points"] - middle) @ seen).max() for part in parts if "points" in part)
    camera = {
        "position": (middle + 4 * radius * numpy.array(VIEWPOINT)).tolist(),
        "focalPoint": middle.tolist(),
        "viewUp": list(map(float, up)),
        "parallelScale": 1.06 * float(half),
        "isParallel": True,
        "viewAngle": 30.0,
    }
    return Scene(title, caption, False, camera, parts, legends)


def color_by_attention(
    scene: Scene, weights: NDArray[Any], positions: NDArray[Any], rows: NDArray[numpy.int32], owners: NDArray[numpy.int32]
) -> None:
    """Lets the page color residues, and what is drawn of them, by the attention of the one that its reader chooses.

    scene: its first two parts are the surface and the residues. weights: [queries, keys]. positions: of both in their
    sequence. rows: of each residue among them, or -1. owners: of each point of the surface its residue, or -1.
    """
    surface, residues = scene.parts[:2]
    surface.update(owners=owners[:, None], isPicked=False, inherits=False)
    levels = numpy.vstack([weights, weights.mean(axis=0)])
    highest = levels.max(axis=1)
    shares = levels / numpy.where(highest > 0, highest, 1)[:, None]
    scale = ribbon_scale()
    residues["attention"] = {
        "matrix": numpy.round(65535 * shares).astype(numpy.uint16).reshape(-1, 1),
        "highest": [float(value) for value in highest],
        "positions": positions.tolist(),
        "rows": rows[:, None],
        "colors": numpy.array(shades(scale, 0, 1, 256), numpy.uint8),
        "mark": _QUERY,
        "none": _NOWHERE,
    }
    legend = ramp(scale, 0, 1, "Mean attention")
    legend.update(isAttention=True, range=[0.0, float(highest[-1])])
    scene.legends[:0] = [legend, {"title": "Query", "entries": [["residue", _QUERY]]}]


def described(shown: Iterable[tuple[Any, Look]]) -> tuple[list[Any], list[Any]]:
    """The parts and the legends of datasets."""
    parts, legends = [], []
    outputs: dict[Any, list[Any]] = {}
    for data, look in shown:
        before = len(parts)
        _add(data, look, parts, legends)
        outputs.setdefault(look.source, []).extend(parts[before:])
    if not parts:
        raise ValueError("view: expected a visible representation with data, found none.")
    for of_one in outputs.values():
        _name_tokens(of_one)
    return parts, legends


def _name_tokens(parts):
    """Gives the lines and bars of a filter the words of their tokens, which are another output of it."""
    tokens: dict[int, str] = {}
    for known in (part["pointArrays"] for part in parts):
        if {"Token", "Token Index"} <= set(known):
            texts = [known["Token"].texts[i] for i in known["Token"].indices]
            tokens.update(zip(known["Token Index"].ravel().tolist(), texts))
    for part in (part for part in parts if tokens and part.get("cellArrays")):
        arrays = part["cellArrays"]
        words = {_WORDS[name]: Texts(tokens[i] for i in arrays[name].ravel().tolist()) for name in _WORDS if name in arrays}
        part["cellArrays"] = {**words, **arrays}


def _add(data, look, parts, legends):
    """Adds the parts of a dataset, and the legend of its colors unless it is there already."""
    if look.kind not in (*POINTS, *DISCS, *IMAGES, *SURFACES):
        known = ", ".join([*SURFACES, *POINTS, *DISCS[:1], *IMAGES])
        raise ValueError(f"representation: a page shows {known}; found {look.kind}. Hide it or choose another.")
    if data is not None and not hasattr(data, "GetNumberOfPoints"):
        raise ValueError(f"{look.name}: expected data with points, found {data.GetClassName()}.")
    if data is None or data.GetNumberOfPoints() == 0:
        return
    if data.IsA("vtkImageData") and look.kind in IMAGES:
        made = _images(look, data, look.kind == "Squares")
    else:
        made = _shapes(look, _poly_data(data, look))
    for part in made:
        part.setdefault("name", look.name)
        if "points" in part and not numpy.isfinite(part["points"]).all():
            raise ValueError(f"{look.name}: expected finite coordinates, found NaN or infinity.")
    parts += made
    _add_legend(look.legend, legends)


def _add_legend(legend, legends):
    """Adds a legend; one with the same colors as another becomes a part of its title."""
    if not legend:
        return
    for other in legends:
        if "entries" in legend and legend["entries"] == other.get("entries"):
            if legend["title"] not in other["title"].split(" / "):
                other["title"] += f" / {legend['title']}"
            return
    if legend not in legends:
        legends.append(legend)


def _poly_data(data, look):
    """The surface of any data, where it is shown."""
    if look.kind == "Outline":
        from vtkmodules.vtkFiltersModeling import vtkOutlineFilter

        data = _filtered(vtkOutlineFilter(), data)
    elif look.kind in DISCS and not data.IsA("vtkPolyData"):
        from vtkmodules.vtkFiltersPoints import vtkConvertToPointCloud

        data = _filtered(vtkConvertToPointCloud(), data)  # those inside too
    if data.IsA("vtkCompositeDataSet"):
        from vtkmodules.vtkFiltersGeometry import vtkCompositeDataGeometryFilter

        data = _filtered(vtkCompositeDataGeometryFilter(), data)
    elif not data.IsA("vtkPolyData"):
        from vtkmodules.vtkFiltersGeometry import vtkGeometryFilter

        data = _filtered(vtkGeometryFilter(), data)
    return _moved(data, look)


def _filtered(made, data):
    """The output of a VTK filter."""
    made.SetInputDataObject(data)
    made.Update()
    return made.GetOutputDataObject(0)


def _moved(data, look):
    if not any(look.position) and list(look.scale) == [1, 1, 1] and not any(look.orientation):
        return data
    from vtkmodules.vtkCommonTransforms import vtkTransform
    from vtkmodules.vtkFiltersGeneral import vtkTransformPolyDataFilter

    transform = vtkTransform()
    transform.Translate(*(p + o for p, o in zip(look.position, look.origin)))
    for axis, angle in zip((2, 0, 1), (look.orientation[2], look.orientation[0], look.orientation[1])):
        transform.RotateWXYZ(angle, *(float(axis == i) for i in range(3)))
    transform.Scale(*look.scale)
    transform.Translate(*(-o for o in look.origin))
    mover = vtkTransformPolyDataFilter()
    mover.SetTransform(transform)
    return _filtered(mover, data)


def _colors(look, data):
    """The colors of points or cells: (association, [items, 3 or 4]), or None for one color."""
    if look.array is None:
        return None
    association, name = look.array
    array = (data.GetCellData() if association == "cells" else data.GetPointData()).GetArray(name)
    if array is None:
        return None
    colors = look.colors(array)
    if colors.shape[1] == 4 and (colors[:, 3] == 255).all():
        colors = colors[:, :3]
    return association, colors


def numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers [items] or [items, components] as the smallest type that holds their integers, or as 32-bit reals."""
    if values.ndim == 1:
        values = values[:, None]
    if values.dtype.kind == "f":
        return values.astype(numpy.float32)
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for kind in (numpy.uint8, numpy.int8, numpy.uint16, numpy.int16, numpy.uint32, numpy.int32):
        if numpy.iinfo(kind).min <= low and high <= numpy.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(numpy.float64)


def _strings(array):
    return Texts([array.GetValue(i) for i in range(array.GetNumberOfValues())])


def _arrays(attributes):
    """The arrays that a person reads, by name: NumPy arrays [items, components] or Texts."""
    found = {}
    for number in range(attributes.GetNumberOfArrays()):
        array = attributes.GetAbstractArray(number)
        name = array.GetName()
        if not name or name in _DRAWING or name.endswith("Color"):
            continue
        if array.IsA("vtkStringArray"):
            found[name] = _strings(array)
        elif attributes.GetArray(name) is not None and array.GetNumberOfTuples():
            found[name] = numbers(vtk_to_numpy(attributes.GetArray(name)))
    return dict(sorted(found.items(), key=lambda item: item[0] != "Token"))  # the word first


def _searched(arrays):
    """The names of the arrays that a search looks at."""
    texts = [name for name in _TEXTS if isinstance(arrays.get(name), Texts)]
    if texts:
        return texts[:1]
    return list(_PAIR) if all(name in arrays for name in _PAIR) else []


def _is_ink(color):
    """Whether a color is nearly black or white, as lines and dots on a page that is dark or light."""
    return max(color) - min(color) < 16 and (max(color) <= 64 or min(color) >= 192)


def _common(look, data):
    """What all shapes have."""
    part = {
        "points": vtk_to_numpy(data.GetPoints().GetData()).astype(numpy.float32),
        "color": bytes_of(look.color),
        "light": look.light,
        "opacity": look.opacity,
        "pointArrays": _arrays(data.GetPointData()),
        "isPicked": True,
    }
    colors = _colors(look, data)
    if colors is None:
        part["inherits"] = _is_ink(part["color"])
    else:
        part[f"{colors[0][:-1]}Colors"] = colors[1]
    # Letters of axes have neither data nor a meaning to search for.
    part["search"] = _searched(part["pointArrays"])
    if set(part["pointArrays"]) == {"Token"}:
        part["search"], part["isPicked"] = [], False
    return part


def _shapes(look, data):
    """The parts of a surface, of lines or of points."""
    if data.GetNumberOfPoints() == 0:
        return []
    common = _common(look, data)
    if look.kind in (*POINTS, *DISCS):
        _color_points(common, data)
    if look.kind in DISCS:
        return [{**common, "kind": "discs", **_radii(look, data)}]
    if look.kind in POINTS:
        part = {**common, "kind": "dots", "size": _dot_size(look, data)}
        if look.kind == "Token Labels":
            part["labels"] = _labels(look, data)
        return [part]
    made = []
    if data.GetNumberOfVerts() and not data.GetNumberOfPolys() and not data.GetNumberOfLines():
        dots = {**common, "kind": "dots", "size": _dot_size(look, data)}
        _color_points(dots, data)
        made.append(dots)
    mesh = _mesh(look, data)
    if mesh:
        made.append({**common, **mesh, "search": [], "kind": "mesh"})
    return made


def _color_points(part, data):
    """Gives points the colors of the vertices that they are."""
    colors = part.pop("cellColors", None)
    if colors is None:
        return
    verts = data.GetVerts()
    if data.GetNumberOfCells() != verts.GetNumberOfCells():
        raise ValueError("points: expected colors of points, found those of cells. Color them by a point array.")
    part["pointColors"] = numpy.full((data.GetNumberOfPoints(), colors.shape[1]), 255, numpy.uint8)
    part["pointColors"][:, :3] = part["color"]
    sizes = numpy.diff(vtk_to_numpy(verts.GetOffsetsArray()))
    part["pointColors"][vtk_to_numpy(verts.GetConnectivityArray())] = numpy.repeat(colors, sizes, axis=0)


def _dot_size(look, data):
    """The diameter of dots, in pixels; larger than ParaView's where there is room for it."""
    size = look.point_size
    if size < 1 or (size == 1 and set(_arrays(data.GetPointData())) == {"Token"}):
        return 0  # words alone, and the letters of axes
    if data.GetPointData().HasArray("Side"):
        return max(size, 4)  # where lines meet words
    return max(size, 8 if data.GetNumberOfPoints() <= 500 else 6 if data.GetNumberOfPoints() <= 5000 else 4)


def _radii(look, data):
    """The radius of discs, in units of the scene, and whether they have a rim."""
    found = {"radius": look.radius, "hasRim": look.has_rim}
    if look.is_flat:
        found["light"] = {"ambient": 1.0, "diffuse": 0.0, "specular": 0.0, "power": 1.0}
    array = data.GetPointData().GetArray(look.radii) if look.radii else None
    if array is not None:
        values = vtk_to_numpy(array).astype(numpy.float32).reshape(data.GetNumberOfPoints(), -1)[:, 0]
        found["radii"] = look.radius * values[:, None]
    return found


def _labels(look, data):
    """The texts beside points, as the representation Token Labels has them."""
    tokens = data.GetPointData().GetAbstractArray("Token")
    if tokens is None:
        return None
    found = {
        "names": _strings(tokens),
        "most": look.labels,
        "size": look.letters * 96 / 72 * 0.8,
        "largest": 2 * look.letters,
        "height": look.letter_height,
    }
    for name, key in (("Side", "sides"), ("Hidden", "hidden")):
        array = data.GetPointData().GetArray(name)
        if array is not None:
            found[key] = numbers(vtk_to_numpy(array))
    return found


def _cells(cells, first):
    """The cells of a vtkCellArray: `size` points each, or `offsets` of their first points. first: number of the
    first one among all cells."""
    offsets = vtk_to_numpy(cells.GetOffsetsArray())
    found = {
        "first": first,
        "count": cells.GetNumberOfCells(),
        "points": vtk_to_numpy(cells.GetConnectivityArray()).astype(numpy.int32)[:, None],
    }
    sizes = numpy.diff(offsets)
    if len(sizes) and (sizes == sizes[0]).all():
        found["size"] = int(sizes[0])
    else:
        found["offsets"] = offsets.astype(numpy.int32)[:, None]
    return found


def _mesh(look, data):
    """The lines and faces of a dataset; None without any."""
    lines, polys = data.GetNumberOfLines(), data.GetNumberOfPolys()
    if data.GetNumberOfStrips():
        raise ValueError("triangle strips: expected lines and polygons. Put the filter Triangulate before the view.")
    if not lines and not polys:
        return None
    first = data.GetNumberOfVerts()
    mesh = {"cellArrays": _arrays(data.GetCellData()), "lineWidth": look.line_width}
    if lines:
        mesh["lines"] = _cells(data.GetLines(), first)
        opacity = data.GetCellData().GetArray("Opacity")
        if look.kind == "Weighted Lines" and opacity is not None:
            share = vtk_to_numpy(opacity)[first : first + lines]
            step = numpy.clip((share * _WIDTHS).astype(int), 0, _WIDTHS - 1) + 1
            widths = numpy.maximum(1, look.line_width * step / _WIDTHS)
            mesh["lines"]["widths"] = widths.astype(numpy.float32)[:, None]
    if polys:
        cells = _cells(data.GetPolys(), first + lines)
        if look.kind == "Wireframe":
            mesh.setdefault("lines", _outlines(data.GetPolys(), first + lines))
        else:
            mesh["polys"] = cells
            if look.kind == "Surface With Edges":
                mesh.update(showsEdges=True, edgeColor=bytes_of(look.edge_color))
    normals = data.GetPointData().GetNormals() or data.GetPointData().GetArray("Normals")
    if polys and normals is not None and look.light["diffuse"] > 0:
        mesh["normals"] = numpy.round(127 * numpy.clip(vtk_to_numpy(normals), -1, 1)).astype(numpy.int8)
    return mesh


def _outlines(polys, first):
    """The borders of faces, as closed lines."""
    offsets, points = (vtk_to_numpy(a) for a in (polys.GetOffsetsArray(), polys.GetConnectivityArray()))
    closed = [numpy.append(points[a:b], points[a]) for a, b in zip(offsets[:-1], offsets[1:])]
    return {
        "first": first,
        "count": len(closed),
        "points": numpy.concatenate(closed).astype(numpy.int32)[:, None],
        "offsets": (offsets + numpy.arange(len(offsets))).astype(numpy.int32)[:, None],
    }


def _images(look, data, has_squares):
    """The parts of an image in the plane: its points as pixels, and the tokens of a map."""
    left, right, bottom, top, low, high = data.GetExtent()
    if low != high:
        raise ValueError(f"image: expected one in the plane, found {high - low + 1} layers. Take a slice of it.")
    spacing = [s * f for s, f in zip(data.GetSpacing(), look.scale)]
    corner = [o + e * s for o, e, s in zip(data.GetOrigin(), (left, bottom, low), data.GetSpacing())]
    colors = _colors(look, data)
    if colors is None or colors[0] != "points":
        raise ValueError("image: expected colors of its points. Color it by a point array.")
    arrays = _arrays(data.GetPointData())
    part = {
        "kind": "image",
        "dimensions": [right - left + 1, top - bottom + 1],
        "origin": [c * f + p for c, f, p in zip(corner, look.scale, look.position)],
        "spacing": spacing[:2],
        "colors": colors[1],
        "hasSquares": has_squares,
        "pointArrays": arrays,
        "opacity": look.opacity,
        "isPicked": True,
        "search": [],
    }
    tokens = _tokens_of_axes(data, part["dimensions"])
    if tokens is None:
        return [part]
    keys, queries = tokens
    # The first row is on top, and the points of an image begin at the bottom.
    arrays[_axis_title(data, "Query")] = Texts([query for query in reversed(queries) for _ in keys])
    arrays[_axis_title(data, "Key")] = Texts(keys * len(queries))
    return [part, *(_axes(part, *tokens) if has_squares and max(map(len, tokens)) <= _LABELS else [])]


def _tokens_of_axes(data, dimensions):
    """The tokens of the columns and of the rows, from the top, of a map; None where it has none."""
    fields = [data.GetFieldData().GetAbstractArray(f"{axis} Token") for axis in ("Key", "Query")]
    if None in fields or [field.GetNumberOfValues() for field in fields] != dimensions:
        return None
    return tuple([field.GetValue(i) for i in range(field.GetNumberOfValues())] for field in fields)


def _axis_title(data, axis):
    """What the columns or rows of a map are called."""
    title = data.GetFieldData().GetAbstractArray(f"{axis} Title")
    return title.GetValue(0) if title is not None and title.GetNumberOfValues() else axis


def _axes(image, keys, queries):
    """The tokens of the columns and rows of a map, at its border, and the frame."""
    (columns, rows), (dx, dy), (x, y, z) = image["dimensions"], image["spacing"], image["origin"]
    below = [[x + i * dx, y - 0.5 * dy, z] for i in range(columns)]
    beside = [[x - 0.5 * dx, y + (rows - 1 - j) * dy, z] for j in range(rows)]
    tokens = Texts([token.strip() or visible(token) for token in [*keys, *queries]])
    labels = {
        "kind": "dots",
        "size": 0,
        "points": numpy.array(below + beside, numpy.float32),
        "color": [0, 0, 0],
        "opacity": 1.0,
        "pointArrays": {"Token": tokens},
        "search": ["Token"],
        "isPicked": False,
        "labels": {
            "names": tokens,
            "most": 2 * _LABELS,
            "size": 12.0,
            "largest": 28.0,
            "height": 0.8 * min(dx, dy),
            "sides": numpy.array([_BELOW] * columns + [0] * rows, numpy.uint8)[:, None],
        },
    }
    ends = ((0, 0), (1, 0), (1, 1), (0, 1))
    corners = [[x + (i * columns - 0.5) * dx, y + (j * rows - 0.5) * dy, z] for i, j in ends]
    frame = {
        "kind": "mesh",
        "points": numpy.array(corners, numpy.float32),
        "color": [0, 0, 0],
        "inherits": True,
        "opacity": 1.0,
        "pointArrays": {},
        "cellArrays": {},
        "isPicked": False,
        "search": [],
        "lineWidth": 1.0,
        "lines": {"first": 0, "count": 1, "size": 5, "points": numpy.array([0, 1, 2, 3, 0], numpy.int32)[:, None]},
    }
    return [labels, frame]


def flat_camera(parts: list[Any]) -> dict[str, Any]:
    """The camera that sees all of a scene in the plane from above."""
    low, high = bounds(parts)
    middle, half = (low + high) / 2, (high - low)[:2] / 2
    extent = (1.06 * numpy.maximum(half, 1e-6)).tolist()
    return {
        "position": [*middle[:2].tolist(), float(high[2]) + 10 * float(max(half.max(), 1e-6))],
        "focalPoint": middle.tolist(),
        "viewUp": [0.0, 1.0, 0.0],
        "parallelScale": extent[1],
        "isParallel": True,
        "viewAngle": 30.0,
        "extent": extent,
    }


def bounds(parts: list[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The least and the largest coordinates of all parts, with room for letters beside them."""
    low, high = numpy.full(3, numpy.inf), numpy.full(3, -numpy.inf)
    for part in parts:
        if part["kind"] == "image":
            margin = 0.5 if part["hasSquares"] else 0
            ends = numpy.array([[-margin, -margin], numpy.array(part["dimensions"]) - 1 + margin]) * part["spacing"]
            places = numpy.column_stack([ends + part["origin"][:2], [part["origin"][2]] * 2])
        else:
            places = part["points"].astype(float)
        room = _room(part)
        low, high = numpy.minimum(low, places.min(axis=0) - room[0]), numpy.maximum(high, places.max(axis=0) + room[1])
    return low, high


def _room(part):
    """How much room the labels of a part need at its left and below, and at its right and above."""
    labels = part.get("labels")
    if not labels or not labels["height"]:
        return numpy.zeros((2, 3))
    longest = max(map(len, labels["names"].texts), default=0)
    width, height = 0.42 * labels["height"] * (longest + 1), labels["height"]
    sides = set(labels["sides"].ravel().tolist()) if "sides" in labels else set()
    below = width if _BELOW in sides else height
    return numpy.array([[width if 0 in sides else height, below, 0], [width if 1 in sides else height, height, 0]])
