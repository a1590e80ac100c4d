"""The attention of a vision transformer on the picture that it saw, laid out for print.

    pvpython -m attentionatlas.patches RECORDING -o DIR [--sequence S] [--layer L] [--head H|mean]
        [--patch ROW COLUMN] [--direction From|To] [--quantity Weights|NormWeighted|Rollout]
        [--arrows Strongest|Above|None] [--threshold W] [--opacity O]
        [--width-mm MM] [--font-size PT] [--dark] [--format png|pdf|svg] [--width PIXELS]

The heat of a patch or of the class token, with arrows from each patch to its strongest key and marks of the
patches that attend most to themselves or to the class token; and the heat of every head. Each is also a
function that returns a matplotlib Figure: patches("run.safetensors", 0, layer=4, head=11, patch=(3, 7)).
"""

import argparse
import pathlib
import sys

import matplotlib
import numpy
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from paraview import simple
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal import data
from attentionatlas._internal.charts import color_bar, drawn_from, fit, label_heads, ramp
from attentionatlas._internal.checks import check
from attentionatlas._internal.readers import has_images
from attentionatlas._internal.recording import opened_sequence
from attentionatlas.output import Output, add_options, options

#: As on the screen: colors that no heat has.
_ARROWS, _FRAMES = "#00c2d6", "#33d633"
_HEAT = matplotlib.colormaps["inferno"]
CLASS_TOKEN = (-1, -1)
ARROWS = ("Strongest", "Above", "None")


class _View:
    """A view of one image, of which properties may change."""

    def __init__(self, opened, sequence, **properties):
        reader, shown = opened
        if not has_images(reader):
            raise ValueError("expected a recording of images, whose tokens have a row and a column.")
        self.proxy = simple.PatchAttention(Input=reader, Sequence=shown if sequence is None else sequence)
        scales = data.first_part(reader).GetFieldData().GetArray("Score Scale")
        #: The recorded ones.
        self.layers = [int(scales.GetComponent(i, 0)) for i in range(scales.GetNumberOfTuples())]
        for name, value in properties.items():
            setattr(self.proxy, name, value)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        simple.Delete(self.proxy)

    def read(self):
        """Reads what is shown; raises ValueError if there is an error."""
        cells = data.fetch(self.proxy)
        if cells.GetNumberOfCells() == 0:
            raise ValueError(f"no attention of layer {self.proxy.Layer}; see the error reported above.")
        names = ("Row", "Column", "Weight")
        self.row, self.column, self.weight = (vtk_to_numpy(cells.GetCellData().GetArray(name)) for name in names)
        #: The height of a patch, whose width is 1.
        self.tall = numpy.ptp(data.points(cells)[:4, 1])
        self.cells = self.shapes(cells)
        return self

    def shapes(self, cells):
        """The polygons or lines of an output as rows of places, in columns and rows of patches."""
        places = data.points(cells)[:, :2] / (1, -self.tall)
        polygons = cells.GetPolys() if cells.GetNumberOfPolys() else cells.GetLines()
        return [places[corners] for corners in data.cells(polygons)] if len(places) else []

    def heat(self):
        """The weights of the patches as a matrix, without a value where there is none."""
        patches = self.row >= 0
        matrix = numpy.full((self.row.max() + 1, self.column.max() + 1), numpy.nan)
        matrix[self.row[patches], self.column[patches]] = self.weight[patches]
        return matrix

    def picture(self):
        """The picture, [height, width, 3], the upper row first."""
        return data.image(self.proxy, "PictureColor", port=3)[::-1]

    def mixed(self, picture, largest, opacity):
        """The picture under the heat, whose scale ends at `largest`, as one image of red, green and blue."""
        heat = self.heat() / largest
        rows, columns = (
            numpy.arange(pixels) * patches // pixels for pixels, patches in zip(picture.shape, heat.shape)
        )
        colors = _HEAT(heat[numpy.ix_(rows, columns)])[..., :3]
        return (1 - opacity) * picture / 255 + opacity * colors

    def show(self, axes, largest, opacity):
        """Draws the picture and the heat upon it, and the class tokens beside it."""
        rows, columns = self.heat().shape
        extent = (-0.5, columns - 0.5, rows - 0.5, -0.5)
        # One image, since vector formats would mix two of them in another way.
        axes.imshow(self.mixed(self.picture(), largest, opacity), extent=extent, interpolation="nearest")
        others = numpy.flatnonzero(self.row < 0)
        colors = _HEAT(self.weight[others] / largest)
        axes.add_collection(PolyCollection([self.cells[i] for i in others], facecolors=colors, alpha=opacity))
        axes.set_aspect(self.tall)
        axes.set_axis_off()


def _number(name, value):
    return "mean of the heads" if value == -1 else f"{name} {value}"


def _title(view, patch, direction, quantity):
    what = "the class token" if tuple(patch) == CLASS_TOKEN else f"the patch in row {patch[0]}, column {patch[1]}"
    verb = {"From": f"what {what} attends to", "To": f"what attends to {what}"}[direction]
    # Rollout is the same for all heads.
    head = "" if quantity == "Rollout" else ", " + _number("head", int(view.proxy.Head))
    return f"Layer {int(view.proxy.Layer)}{head}: {verb}"


def _scale(figure, axes, quantity, largest):
    """The color bar of weights from 0 on."""
    ticks = numpy.linspace(0, largest, 5)
    labels = {"Weights": "Weight", "NormWeighted": "Weight \u00d7 norm of the value", "Rollout": "Rollout"}
    color_bar(figure, axes, ramp(_HEAT, 0, largest), labels[quantity], ticks, [f"{tick:.2g}" for tick in ticks])


def _draw_arrows(axes, view, threshold):
    """Arrows, marks and frames, and a legend of those that are there."""
    handles = []
    style = {"facecolors": _ARROWS, "edgecolors": "black", "linewidths": 0.15}
    arrows = view.shapes(data.fetch(view.proxy, 1))
    if arrows:
        axes.add_collection(PolyCollection(arrows, zorder=3, **style))
        name = "strongest key" if str(view.proxy.Arrows).strip("'") == "Strongest" else "key"
        label = f"to the {name}, {threshold:g} or more"
        handles.append(Line2D([], [], color=_ARROWS, marker=">", markevery=[-1], label=label))
    output = data.fetch(view.proxy, 2)
    marks = view.shapes(output)
    if marks:
        axes.add_collection(PolyCollection(marks, zorder=4, **style))
        kinds = vtk_to_numpy(output.GetCellData().GetArray("Mark"))
        for kind, marker, label in ((0, "o", "most to itself"), (1, "s", "most to the class token")):
            if (kinds == kind).any():
                handles.append(Line2D([], [], color=_ARROWS, marker=marker, linestyle="", label=label))
    if handles:
        size = matplotlib.rcParams["font.size"]
        axes.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), ncol=3, markerscale=0.6,
            handlelength=1.5, columnspacing=1.2, borderaxespad=0.4, fontsize=size,
        )


def _draw_frames(axes, view):
    for frame in view.shapes(data.fetch(view.proxy, 4)):
        axes.plot(*frame.T, color=_FRAMES, linewidth=1.2, zorder=5, clip_on=False)


def _place(axes, view):
    """Makes room for the class tokens beside the picture, and names them."""
    corners = numpy.concatenate(view.cells)
    others = [view.cells[i] for i in numpy.flatnonzero(view.row < 0)]
    if others:
        x, y = numpy.concatenate(others)[:, 0].mean(), numpy.concatenate(others)[:, 1].max()
        name = "class\ntoken" if len(others) == 1 else "class\ntokens"
        axes.text(x, y + 0.15, name, ha="center", va="top", size="small")
    low, high = corners.min(axis=0) - 0.05, corners.max(axis=0) + 0.05
    axes.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]))


def _check(direction, arrows, opacity):
    for name, value, known in (("direction", direction, ("From", "To")), ("arrows", arrows, ARROWS)):
        if value not in known:
            raise ValueError(f"{name}: expected {', '.join(known[:-1])} or {known[-1]}, found '{value}'.")
    check("opacity", opacity, 0, 1)


@drawn_from(opened_sequence)
def patches(
    recording, page, sequence=None, layer=None, head=0, patch=CLASS_TOKEN, direction="From", quantity="Weights",
    arrows="Strongest", threshold=0.1, opacity=0.5, selected=(),
):
    """The heat of a patch on the picture of one image, with arrows and marks of all patches.

    sequence: the image, the first or that of the opened recording. layer: the first recorded one by default.
    head: -1 for the mean. patch: its row and column; (-1, -1) is the class token. selected: rows in the
    recording's tokens, in place of one patch. opacity: of the heat, 0 to 1. Other arguments are properties of
    PatchAttention; without arrows, "None", there are no marks either.
    """
    _check(direction, arrows, opacity)
    chosen = {"Patch": list(patch), "Direction": direction, "Quantity": quantity, "Head": head}
    chosen |= {"ArrowThreshold": threshold, "SelectedTokens": list(selected)}
    with _View(recording, sequence, **chosen) as view:
        view.proxy.Layer = view.layers[0] if layer is None else layer
        view.proxy.Arrows = "Strongest" if arrows == "None" else arrows
        view.read()
        figure, (axes,) = page.panels(1)
        largest = max(float(view.weight.max()), 1e-30)
        view.show(axes, largest, opacity)
        if arrows != "None":
            _draw_arrows(axes, view, threshold)
        _draw_frames(axes, view)
        _place(axes, view)
        title = _title(view, patch, direction, quantity)
        axes.set_title(title if not len(selected) else f"{title.split(':')[0]}: {len(selected)} selected tokens")
        _scale(figure, axes, quantity, largest)
        return fit(figure)


@drawn_from(opened_sequence)
def heads_of_patch(
    recording, page, sequence=None, patch=CLASS_TOKEN, direction="From", quantity="Weights", opacity=0.5
):
    """The heat of a patch in every layer (rows) and head (columns), each up to its own largest weight."""
    _check(direction, "None", opacity)
    reader, _ = recording
    heads = int(data.field_number(reader, "Heads"))
    with _View(recording, sequence, Patch=list(patch), Direction=direction, Quantity=quantity) as view:
        figure, (axes,) = page.panels(1)
        step, picture = 1.08, None
        for row, layer in enumerate(view.layers):
            for head in range(heads):
                view.proxy.Layer, view.proxy.Head = layer, head
                heat = view.read().heat()
                picture = view.picture() if picture is None else picture
                extent = (head * step, head * step + 1, row * step + 1, row * step)
                largest = max(float(numpy.nanmax(heat)), 1e-30)
                axes.imshow(view.mixed(picture, largest, opacity), extent=extent, interpolation="nearest")
        axes.set(xlim=(-0.04, heads * step), ylim=(len(view.layers) * step, -0.04))
        axes.set_aspect(view.tall * heat.shape[0] / heat.shape[1])
        title = _title(view, patch, direction, quantity).split(": ")[1]
        axes.set_title(title[0].upper() + title[1:] + ", by layer and head")
        for spine in axes.spines.values():
            spine.set_visible(False)
        label_heads(
            axes, {head: head * step + 0.5 for head in range(heads)},
            {layer: row * step + 0.5 for row, layer in enumerate(view.layers)},
        )
        name = "Share of the head\u2019s largest weight"
        color_bar(figure, axes, ramp(_HEAT), name, [0, 0.5, 1], shrink=0.5)
        return fit(figure)


def render(path, folder, output=None, layer=None, head=0, **place):
    """Renders the figures of an image of a recording; returns their paths. place: as for patches."""
    output = output or Output()
    folder, stem = pathlib.Path(folder), pathlib.Path(path).stem
    common = {key: place[key] for key in ("sequence", "patch", "direction", "quantity", "opacity") if key in place}
    figures = {
        "patches": patches(path, layer=layer, head=head, **place, **output.options),
        "patches-heads": heads_of_patch(path, **common, **output.options),
    }
    folder.mkdir(parents=True, exist_ok=True)
    return [output.write(figure, folder, f"{stem}-{name}") for name, figure in figures.items()]


def _parser():
    parser = argparse.ArgumentParser(
        prog="pvpython -m attentionatlas.patches",
        description="Renders the attention of a vision transformer on the picture that it saw.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="of images, safetensors")
    add_options(parser)
    parser.add_argument("--sequence", type=int, default=0, help="the image (default: 0)")
    parser.add_argument("--layer", type=int, help="(default: the first recorded one)")
    parser.add_argument("--head", default="0", help="a number, or mean (default: 0)")
    parser.add_argument(
        "--patch", type=int, nargs=2, default=CLASS_TOKEN, metavar=("ROW", "COLUMN"),
        help="(default: the class token)",
    )
    for name, values in (
        ("direction", ("From", "To")),
        ("quantity", ("Weights", "NormWeighted", "Rollout")),
        ("arrows", ARROWS),
    ):
        parser.add_argument(f"--{name}", choices=values, default=values[0], help=f"(default: {values[0]})")
    parser.add_argument("--threshold", type=float, default=0.1, help="least weight of arrows and marks (default: 0.1)")
    parser.add_argument("--opacity", type=float, default=0.5, help="of the heat, 0 to 1 (default: 0.5)")
    return parser


def main(arguments=None):
    found = _parser().parse_args(arguments)
    names = ("sequence", "layer", "patch", "direction", "quantity", "arrows", "threshold", "opacity")
    place = {name: getattr(found, name) for name in names}
    try:
        place["head"] = -1 if found.head == "mean" else int(found.head)
        for path in found.recordings:
            for file in render(path, found.output, Output(**options(found)), **place):
                print(file, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
