"""The attention of a transformer on the pictures that it saw, laid out for print.

    attention-atlas figures RECORDING -o DIR [--sequence S] [--layer L] [--head H|mean]
        [--patch ROW COLUMN] [--token POSITION] [--picture N] [--direction From|To] [--quantity Weights|NormWeighted|Rollout]
        [--arrows Strongest|Above|None] [--threshold W] [--opacity O]
        [--width-mm MM] [--font-size PT] [--dark] [--format png|pdf|svg] [--width PIXELS]

The heat of a patch or of the class token, with arrows from each patch to its strongest key and marks of the
patches that attend most to themselves or to the class token; and the heat of every head. Each is also a
function that returns a matplotlib Figure: one_head("run.safetensors", layer=4, head=11, patch=(3, 7)). Of pictures
among words, what a word attends to on all pictures of its text: one_head("run.safetensors", token=40).
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence as Listed
from typing import Any

import matplotlib
import numpy
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal import data
from attentionatlas._internal.arguments import Head, PathLike, head_name, head_option, word
from attentionatlas._internal.charts import Page, color_bar, drawn_from, label_heads, ramp
from attentionatlas._internal.checks import check
from attentionatlas._internal.host import filters
from attentionatlas._internal.names import own
from attentionatlas._internal.recording import Recording
from attentionatlas.output import Output, add_options, options

__dir__ = own(__name__)

#: As on the screen: colors that no heat has.
_ARROWS, _FRAMES = "#00c2d6", "#33d633"
_HEAT = matplotlib.colormaps["inferno"]
CLASS_TOKEN = (-1, -1)
ARROWS = ("Strongest", "Above", "None")
DIRECTIONS, QUANTITIES = ("From", "To"), ("Weights", "NormWeighted", "Rollout")


class _View:
    """A view of one image, of which properties may change."""

    def __init__(self, recording: Recording, page: Page, sequence: int, **properties: Any) -> None:
        if not (recording.has_images or recording.has_pictures):
            raise ValueError("expected a recording of images, whose tokens have a row and a column.")
        self.recording, self.sequence, self.colors = recording, sequence, page.colors(_HEAT)
        self.proxy = recording.own(filters.PatchAttention(**recording.shown_by("PatchAttention"), Sequence=sequence))
        self.proxy.HeatSide = 1
        for name, value in properties.items():
            setattr(self.proxy, name, value)

    def read(self) -> _View:
        """Reads what is shown; raises Error if there is an error."""
        cells = data.fetch(self.proxy)
        names = ("Row", "Column", "Weight")
        self.row, self.column, self.weight = (vtk_to_numpy(cells.GetCellData().GetArray(name)) for name in names)
        #: The height of a patch, whose width is 1.
        self.tall = float(numpy.ptp(data.points(cells)[:4, 1]))
        self.cells = self.shapes(cells)
        if self.recording.has_pictures:  # side by side
            self.column = numpy.array([round(float(cell[:, 0].mean())) for cell in self.cells])
        #: The part of the attention that goes to words, which are not in the picture.
        self.on_words = data.field_number(self.proxy, "Weight on Words")
        return self

    def shapes(self, cells: Any) -> list[Any]:
        """The polygons or lines of an output as rows of places, in columns and rows of patches."""
        places = data.points(cells)[:, :2] / (1, -self.tall)
        polygons = cells.GetPolys() if cells.GetNumberOfPolys() else cells.GetLines()
        return [places[corners] for corners in data.cells(polygons)] if len(places) else []

    def heat(self) -> Any:
        """The weights of the patches as a matrix, without a value where there is none."""
        patches = self.row >= 0
        matrix = numpy.full((self.row.max() + 1, self.column.max() + 1), numpy.nan)
        matrix[self.row[patches], self.column[patches]] = self.weight[patches]
        return matrix

    def picture(self) -> Any:
        """The picture, [height, width, 3], the upper row first."""
        return data.image(self.proxy, "PictureColor", port=3)[::-1]

    def mixed(self, picture: Any, largest: float, opacity: float) -> Any:
        """The picture under the heat, whose scale ends at `largest`, as one image of red, green and blue."""
        heat = self.heat() / largest
        rows, columns = (
            numpy.arange(pixels) * patches // pixels for pixels, patches in zip(picture.shape, heat.shape)
        )
        heat = heat[numpy.ix_(rows, columns)]
        colors = self.colors(heat)[..., :3]
        mixed = (1 - opacity) * picture / 255 + opacity * colors
        return numpy.where(numpy.isnan(heat)[..., None] & self.recording.has_pictures, picture / 255, mixed)

    def show(self, axes: Any, largest: float, opacity: float) -> None:
        """Draws the picture and the heat upon it, and the class tokens beside it."""
        rows, columns = self.heat().shape
        extent = (-0.5, columns - 0.5, rows - 0.5, -0.5)
        # One image, since vector formats would mix two of them in another way.
        axes.imshow(self.mixed(self.picture(), largest, opacity), extent=extent, interpolation="nearest")
        others = numpy.flatnonzero(self.row < 0)
        colors = self.colors(self.weight[others] / largest)
        axes.add_collection(PolyCollection([self.cells[i] for i in others], facecolors=colors, alpha=opacity))
        axes.set_aspect(self.tall)
        axes.set_axis_off()


def _chosen(view: _View, patch: tuple[int, int]) -> str:
    """The patch or token whose attention is shown, in words."""
    if tuple(patch) != CLASS_TOKEN:
        return f"the patch in row {patch[0]}, column {patch[1]}"
    if not view.recording.has_pictures:
        return "the class token"
    return f"\u201c{view.recording.tokens(view.sequence)[int(view.proxy.Token)].strip()}\u201d"


def _title(view: _View, patch: tuple[int, int], direction: str, quantity: str) -> str:
    what = _chosen(view, patch)
    verb = {"From": f"what {what} attends to", "To": f"what attends to {what}"}[direction]
    # Rollout is the same for all heads.
    head = "" if quantity == "Rollout" else ", " + head_name(int(view.proxy.Head))
    return f"Layer {int(view.proxy.Layer)}{head}: {verb}"


def _scale(figure: Any, axes: Any, view: _View, quantity: str, largest: float) -> None:
    """The color bar of weights from 0 on."""
    ticks = numpy.linspace(0, largest, 5)
    labels = {"Weights": "Weight", "NormWeighted": "Weight \u00d7 norm of the value", "Rollout": "Rollout"}
    color_bar(figure, axes, ramp(view.colors, 0, largest), labels[quantity], ticks, [f"{tick:.2g}" for tick in ticks])


def _draw_arrows(axes: Any, view: _View, threshold: float) -> None:
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
        other = "most to a word" if view.recording.has_pictures else "most to the class token"
        for kind, marker, label in ((0, "o", "most to itself"), (1, "s", other)):
            if (kinds == kind).any():
                handles.append(Line2D([], [], color=_ARROWS, marker=marker, linestyle="", label=label))
    if handles:
        size = matplotlib.rcParams["font.size"]
        axes.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), ncol=3, markerscale=0.6,
            handlelength=1.5, columnspacing=1.2, borderaxespad=0.4, fontsize=size,
        )


def _draw_frames(axes: Any, view: _View) -> None:
    for frame in view.shapes(data.fetch(view.proxy, 4)):
        axes.plot(*frame.T, color=_FRAMES, linewidth=1.2, zorder=5, clip_on=False)


def _place(axes: Any, view: _View) -> None:
    """Makes room for the class tokens beside the picture, and names them."""
    corners = numpy.concatenate(view.cells)
    others = [view.cells[i] for i in numpy.flatnonzero(view.row < 0)]
    if others:
        x, y = numpy.concatenate(others)[:, 0].mean(), numpy.concatenate(others)[:, 1].max()
        name = "class\ntoken" if len(others) == 1 else "class\ntokens"
        axes.text(x, y + 0.15, name, ha="center", va="top", size="small")
    low, high = corners.min(axis=0) - 0.05, corners.max(axis=0) + 0.05
    axes.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]))


def _checked(direction: str, quantity: str, arrows: str, opacity: float) -> tuple[str, str, str]:
    """The words, as the filter has them; raises ValueError for others, and for no opacity."""
    check("opacity", opacity, 0, 1)
    return word("direction", direction, DIRECTIONS), word("quantity", quantity, QUANTITIES), word("arrows", arrows, ARROWS)


@drawn_from(Recording)
def one_head(
    recording: Recording, page: Page, layer: int | None = None, head: Head = 0, sequence: int = 0,
    patch: tuple[int, int] = CLASS_TOKEN, direction: str = "From", quantity: str = "Weights", arrows: str = "Strongest",
    threshold: float = 0.1, opacity: float = 0.5, selected: Listed[int] = (), token: int = -1, picture: int = -1,
) -> Any:
    """The heat of a patch on the picture of one image, with arrows and marks of all patches.

    layer: the first recorded one by default. head: a number, or "mean". sequence: the image. patch: its row and column;
    (-1, -1) is the class token. selected: rows in the recording's tokens, in place of one patch. opacity: of the heat,
    0 to 1. Of pictures among words: token: the position of the chosen one, if there is no patch, -1 is the last;
    picture: the one to show, and that of the patch, of those of the text, -1 is all. Other arguments are properties of
    PatchAttention; without arrows, "None", there are no marks either.
    """
    direction, quantity, arrows = _checked(direction, quantity, arrows, opacity)
    layer, head, sequence = recording.place(layer, head, sequence)
    chosen = {"Patch": list(patch), "Direction": direction, "Quantity": quantity, "Layer": layer, "Head": head}
    chosen |= {"ArrowThreshold": threshold, "SelectedTokens": list(selected)}
    chosen["Arrows"] = "Strongest" if arrows == "None" else arrows
    chosen |= {"Token": token, "Picture": picture, "PatchPicture": max(picture, 0)}
    view = _View(recording, page, sequence, **chosen).read()
    figure, (axes,) = page.panels(1)
    largest = max(float(view.weight.max()), 1e-30)
    view.show(axes, largest, opacity)
    if arrows != "None":
        _draw_arrows(axes, view, threshold)
    _draw_frames(axes, view)
    _place(axes, view)
    title = _title(view, patch, direction, quantity)
    title = title if not len(selected) else f"{title.split(':')[0]}: {len(selected)} selected tokens"
    is_share = view.on_words is not None and direction == "From" and quantity != "NormWeighted"
    axes.set_title(f"{title}; {view.on_words:.0%} on words" if is_share else title)
    _scale(figure, axes, view, quantity, largest)
    return page.fit(figure)


@drawn_from(Recording)
def all_heads(
    recording: Recording, page: Page, sequence: int = 0, patch: tuple[int, int] = CLASS_TOKEN, direction: str = "From",
    quantity: str = "Weights", opacity: float = 0.5, token: int = -1, picture: int = -1,
) -> Any:
    """The heat of a patch or word in every layer (rows) and head (columns), each up to its own largest weight."""
    direction, quantity, _ = _checked(direction, quantity, "None", opacity)
    chosen = {"Token": token, "Picture": picture, "PatchPicture": max(picture, 0)}
    sequence = recording.place(None, 0, sequence)[2]
    view = _View(recording, page, sequence, Patch=list(patch), Direction=direction, Quantity=quantity, **chosen)
    figure, (axes,) = page.panels(1)
    step, pixels = 1.08, None
    for row, layer in enumerate(recording.layer_numbers):
        for head in range(recording.head_count):
            view.proxy.Layer, view.proxy.Head = layer, head
            heat = view.read().heat()
            pixels = view.picture() if pixels is None else pixels
            extent = (head * step, head * step + 1, row * step + 1, row * step)
            largest = max(float(numpy.nanmax(heat)), 1e-30)
            axes.imshow(view.mixed(pixels, largest, opacity), extent=extent, interpolation="nearest")
    axes.set(xlim=(-0.04, recording.head_count * step), ylim=(len(recording.layer_numbers) * step, -0.04))
    axes.set_aspect(view.tall * heat.shape[0] / heat.shape[1])
    title = _title(view, patch, direction, quantity).split(": ")[1]
    axes.set_title(title[0].upper() + title[1:] + ", by layer and head")
    for spine in axes.spines.values():
        spine.set_visible(False)
    label_heads(
        axes, {head: head * step + 0.5 for head in range(recording.head_count)},
        {layer: row * step + 0.5 for row, layer in enumerate(recording.layer_numbers)},
    )
    name = "Share of the head\u2019s largest weight"
    color_bar(figure, axes, ramp(view.colors), name, [0, 0.5, 1], shrink=0.5)
    return page.fit(figure)


def render(
    path: PathLike, folder: PathLike, layer: int | None = None, head: Head = 0, sequence: int = 0,
    output: Output | None = None, **place: Any,
) -> list[pathlib.Path]:
    """Renders the figures of an image of a recording; returns their paths. place: as for one_head."""
    output = output or Output()
    folder, stem = pathlib.Path(folder), pathlib.Path(path).stem
    shared = ("patch", "direction", "quantity", "opacity", "token", "picture")
    common = {key: place[key] for key in shared if key in place}
    with Recording.opened(path) as recording:
        figures = {
            "patches": one_head(recording, layer, head, sequence, **place, **output.options),
            "patches-heads": all_heads(recording, sequence, **common, **output.options),
        }
    folder.mkdir(parents=True, exist_ok=True)
    return [output.write(figure, folder, f"{stem}-{name}") for name, figure in figures.items()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders the attention of a transformer on the pictures that it saw.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="of images, safetensors")
    add_options(parser)
    parser.add_argument("--sequence", type=int, default=0, help="the image (default: 0)")
    parser.add_argument("--layer", type=int, help="(default: the first recorded one)")
    parser.add_argument("--head", type=head_option, default=0, help="a number, or mean (default: 0)")
    parser.add_argument(
        "--patch", type=int, nargs=2, default=CLASS_TOKEN, metavar=("ROW", "COLUMN"),
        help="(default: the class token)",
    )
    parser.add_argument("--token", type=int, default=-1, help="of pictures among words: its position (default: the last)")
    parser.add_argument("--picture", type=int, default=-1, help="the one to show of a text (default: all)")
    for name, values in (
        ("direction", DIRECTIONS),
        ("quantity", QUANTITIES),
        ("arrows", ARROWS),
    ):
        parser.add_argument(f"--{name}", choices=values, default=values[0], help=f"(default: {values[0]})")
    parser.add_argument("--threshold", type=float, default=0.1, help="least weight of arrows and marks (default: 0.1)")
    parser.add_argument("--opacity", type=float, default=0.5, help="of the heat, 0 to 1 (default: 0.5)")
    return parser


def main(arguments: Listed[str] | None = None) -> None:
    found = _parser().parse_args(arguments)
    names = ("sequence", "layer", "head", "patch", "direction", "quantity", "arrows", "threshold", "opacity")
    place = {name: getattr(found, name) for name in (*names, "token", "picture")}
    try:
        for path in found.recordings:
            for file in render(path, found.output, output=Output(**options(found)), **place):
                print(file, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
