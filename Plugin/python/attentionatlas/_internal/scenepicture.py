"""A scene of a page as a picture, drawn by matplotlib: without a display, without ParaView."""

from __future__ import annotations

import io
import math
import textwrap
from typing import Any

import numpy
from matplotlib.collections import EllipseCollection, LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from attentionatlas._internal import style
from attentionatlas._internal.charts import dressed, ramp
from attentionatlas._internal.data import visible
from attentionatlas._internal.letters import with_fonts
from attentionatlas._internal.notebook import Figure, write
from attentionatlas._internal.webpage import Scene

_DPI = 100
#: A pixel in points.
_PIXEL = 72 / _DPI
#: The share of its room that what is shown takes.
_FULL = 0.96
#: The letters of legends in points: for each pixel of the shorter side of a picture, the smallest and the largest.
_LETTERS = 9 / 600, 6.5, 36
#: The share of a side of the picture that a color bar takes, and the most that a column of categories takes.
_BAR, _WIDEST = 0.7, 0.35
#: Letters smaller than this, in pixels, are left out.
_SMALLEST = 5
#: The sides of labels: left of their point, right of it, above it to the right (2), below it, upright.
_LEFT, _RIGHT, _BELOW = 0, 1, 3


def _unit(vector: Any) -> NDArray[Any]:
    return numpy.asarray(vector, float) / numpy.linalg.norm(vector)


def _scale(scene: Scene, size: tuple[float, float]) -> float:
    """Pixels for a length of 1, so that a scene fills a picture of this size."""
    half = scene.camera.get("extent") or [scene.camera["parallelScale"]] * 2
    return float(_FULL * min(side / 2 / one for side, one in zip(size, half)))


class _Drawing:
    """Axes whose coordinates are pixels from the middle, and how places of the scene are seen in them."""

    def __init__(self, scene: Scene, axes: Any, size: tuple[float, float]) -> None:
        camera = scene.camera
        self.axes, self.middle = axes, numpy.array(camera["focalPoint"])
        self.back = _unit(numpy.subtract(camera["position"], camera["focalPoint"]))
        self.right = _unit(numpy.cross(camera["viewUp"], self.back))
        self.up = numpy.cross(self.back, self.right)
        self.scale = _scale(scene, size)
        axes.set(xlim=(-size[0] / 2, size[0] / 2), ylim=(-size[1] / 2, size[1] / 2))
        axes.set_axis_off()

    def places(self, points: Any) -> NDArray[Any]:
        """Where points are seen, and how near to the eye."""
        found: NDArray[Any] = (numpy.asarray(points, float) - self.middle) @ numpy.array([self.right, self.up, self.back]).T
        return found * self.scale

    def draw(self, part: dict[str, Any], order: int) -> None:
        getattr(self, f"_{part['kind']}")(part, order)

    def _image(self, part: dict[str, Any], order: int) -> None:
        columns, rows = part["dimensions"]
        (dx, dy), (x, y, z) = part["spacing"], part["origin"]
        ends = self.places([[x - dx / 2, y - dy / 2, z], [x + (columns - 0.5) * dx, y + (rows - 0.5) * dy, z]])
        made = self.axes.imshow(
            part["colors"].reshape(rows, columns, -1), origin="lower", extent=(*ends[:, 0], *ends[:, 1]), aspect="auto",
            interpolation="none", alpha=part["opacity"], zorder=order,
        )
        if not part["hasSquares"]:  # which ends at its outermost points
            low, high = self.places([[x, y, z], [x + (columns - 1) * dx, y + (rows - 1) * dy, z]])[:, :2]
            made.set_clip_path(Rectangle(low, *(high - low), transform=self.axes.transData))

    def _discs(self, part: dict[str, Any], order: int) -> None:
        diameters = 2 * self.scale * numpy.broadcast_to(part.get("radii", part["radius"]), (len(part["points"]), 1))[:, 0]
        for share, color in (((1, "black"), (0.82, "white"), (0.62, _colors(part))) if part["hasRim"] else ((1, _colors(part)),)):
            self.axes.add_collection(EllipseCollection(
                share * diameters, share * diameters, 0 * diameters, units="xy", offsets=self.places(part["points"])[:, :2],
                transOffset=self.axes.transData, facecolors=color, linewidths=0, alpha=part["opacity"], zorder=order,
            ))

    def _dots(self, part: dict[str, Any], order: int) -> None:
        places = self.places(part["points"])
        if part["size"]:
            self.axes.scatter(
                *places[:, :2].T, s=(part["size"] * _PIXEL) ** 2, c=_colors(part), linewidths=0, alpha=part["opacity"],
                zorder=order,
            )
        if part.get("labels"):
            self._write(part, places, order)

    def _write(self, part: dict[str, Any], places: Any, order: int) -> None:
        labels = part["labels"]
        size = min(labels["largest"], 0.8 * labels["height"] * self.scale) if labels["height"] else labels["size"]
        if size < _SMALLEST:
            return
        texts = with_fonts([text.strip() or visible(text) for text in labels["names"].texts])
        sides = labels["sides"][:, 0] if "sides" in labels else numpy.full(len(places), _RIGHT)
        hidden = labels["hidden"][:, 0] if "hidden" in labels else numpy.zeros(len(places))
        gap = max(3, part["size"] / 2 + 2)
        kinds = {_LEFT: (-gap, 0, "right", "center"), _RIGHT: (gap, 0, "left", "center"), _BELOW: (0, -gap, "center", "top")}
        chosen = numpy.linspace(0, len(places) - 1, min(len(places), labels["most"])).round().astype(int)
        for i in dict.fromkeys(chosen.tolist()):
            x, y, across, along = kinds.get(int(sides[i]), (gap, gap, "left", "bottom"))
            self.axes.text(
                places[i, 0] + x, places[i, 1] + y, texts[labels["names"].indices[i]], size=size * _PIXEL, ha=across, va=along,
                rotation=90 if sides[i] == _BELOW else 0, color=style.GREY if hidden[i] else "black", zorder=order + 0.5,
                clip_on=True,
            )

    def _mesh(self, part: dict[str, Any], order: int) -> None:
        places = self.places(part["points"])
        for kind in ("polys", "lines"):
            cells = part.get(kind)
            if not cells or not cells["count"]:
                continue
            corners, ends = cells["points"][:, 0], _offsets(cells)
            drawn = [places[corners[a:b]] for a, b in zip(ends[:-1], ends[1:])]
            depth = numpy.argsort([cell[:, 2].mean() for cell in drawn], kind="stable")
            colors = _cell_colors(part, cells, corners, ends)
            if kind == "polys":
                colors[:, :3] *= _shades(part, drawn)[:, None]
                edges = [channel / 255 for channel in part["edgeColor"]] if part.get("showsEdges") else colors[depth]
                made = PolyCollection(
                    [drawn[i][:, :2] for i in depth], facecolors=colors[depth].clip(0, 1), edgecolors=numpy.clip(edges, 0, 1),
                    linewidths=0.3, zorder=order,
                )
            else:
                widths = numpy.broadcast_to(cells.get("widths", numpy.array([[part["lineWidth"]]])), (cells["count"], 1))[:, 0]
                made = LineCollection(
                    [drawn[i][:, :2] for i in depth], colors=colors[depth], linewidths=widths[depth] * _PIXEL, zorder=order
                )
            self.axes.add_collection(made, autolim=False)


def _offsets(cells: dict[str, Any]) -> Any:
    return cells["offsets"][:, 0] if "offsets" in cells else numpy.arange(cells["count"] + 1) * cells["size"]


def _one_color(part: dict[str, Any]) -> list[float]:
    """The color of a part without colors of its items; ink is black."""
    return [0.0, 0.0, 0.0] if part.get("inherits") else [channel / 255 for channel in part["color"]]


def _colors(part: dict[str, Any]) -> Any:
    return part["pointColors"] / 255 if "pointColors" in part else [_one_color(part)]


def _cell_colors(part: dict[str, Any], cells: dict[str, Any], corners: Any, ends: Any) -> NDArray[Any]:
    """The colors of cells, with opacity: [cells, 4]."""
    if "cellColors" in part:
        found = part["cellColors"][cells["first"] : cells["first"] + cells["count"]] / 255
    elif "pointColors" in part:
        sums = numpy.add.reduceat(part["pointColors"][corners] / 255, ends[:-1])
        found = sums / numpy.diff(ends)[:, None]
    else:
        found = numpy.tile(_one_color(part), (cells["count"], 1))
    opacity = found[:, 3:] if found.shape[1] == 4 else numpy.ones((len(found), 1))
    return numpy.hstack([found[:, :3], part["opacity"] * opacity])


def _shades(part: dict[str, Any], drawn: list[Any]) -> NDArray[Any]:
    """How light faces are, lit from the eye."""
    light = part["light"]
    if not light["diffuse"]:
        return numpy.full(len(drawn), light["ambient"])
    normals = numpy.array([numpy.cross(face[1] - face[0], face[2] - face[0]) for face in drawn])
    toward = numpy.abs(normals[:, 2]) / numpy.maximum(numpy.linalg.norm(normals, axis=1), 1e-30)
    return numpy.asarray(light["ambient"] + light["diffuse"] * toward)


class _Legends:
    """The legends of a scene at the right of it, or below it.

    extent: the pixels that they take from the side of the picture, or from its height.
    """

    def __init__(self, figure: Any, legends: list[Any], is_below: bool) -> None:
        self._figure, self._is_below = figure, is_below
        self._size = figure.bbox.size
        self._renderer = figure.canvas.get_renderer()
        #: The height of a line, and the gap around a legend.
        self._line, self._gap = self._measured("x").height * 2, self._measured("x").height
        self._made = [self._bar(legend) if "ramp" in legend else self._list(legend) for legend in legends]
        self._boxes = [made.get_tightbbox(self._renderer) for made in self._made]
        self.extent = sum(box.size[int(is_below)] + self._gap for box in self._boxes) + self._gap

    def remove(self) -> None:
        for made in self._made:
            made.remove()

    def place(self) -> None:
        """Puts one after the other, each in the middle of the side; the first is the nearest to the scene."""
        across = int(self._is_below)
        begin = self.extent if self._is_below else self._size[0] - self.extent
        for made, box in zip(self._made, self._boxes):
            corner = (self._size - box.size) / 2
            corner[across] = begin - self._gap - box.size[1] if self._is_below else begin + self._gap
            begin += (-1 if self._is_below else 1) * (self._gap + box.size[across])
            moved = corner - box.min
            if isinstance(made, Legend):
                made.set_bbox_to_anchor((moved / self._size).tolist(), self._figure.transFigure)
            else:
                made.set_position(made.get_position().translated(*(moved / self._size)))

    def _measured(self, text: str) -> Any:
        shown = self._figure.text(0, 0, text)
        box = shown.get_window_extent(self._renderer)
        shown.remove()
        return box

    def _wrapped(self, text: str, most: float) -> str:
        """A text in lines of at most so many pixels."""
        width = self._measured(text).width
        return text if width <= most else textwrap.fill(text, max(8, int(len(text) * most / width)))

    def _bar(self, legend: dict[str, Any]) -> Any:
        colors = LinearSegmentedColormap.from_list("shown", numpy.array(legend["ramp"]) / 255)
        side = self._size[1 - self._is_below]
        sides = numpy.array([self._line, _BAR * side])[:: -1 if self._is_below else 1] / self._size
        axes = self._figure.add_axes((0, 0, *sides))
        bar = self._figure.colorbar(
            ramp(colors, *legend["range"]), cax=axes, orientation="horizontal" if self._is_below else "vertical"
        )
        dressed(bar, self._wrapped(legend["title"], side - 2 * self._gap), legend["range"])
        return axes

    def _list(self, legend: dict[str, Any]) -> Any:
        """Categories in columns. What half of the picture has no room for is left out."""
        names = [name for name, _ in legend["entries"]]
        cell = max(self._measured(name).width for name in names) + 2.5 * self._line
        width, height = self._size * (1, 0.5) if self._is_below else self._size * (0.5, 1)
        title = self._wrapped(legend["title"], (1 if self._is_below else _WIDEST) * self._size[0] - 2 * self._gap)
        rows = max(1, int((height - 2 * self._gap) / self._line) - 1 - title.count("\n"))
        most = max(1, int((width - 2 * self._gap) / cell))
        columns = min(most, len(names)) if self._is_below else min(most, math.ceil(len(names) / rows))
        handles = [
            Line2D([], [], linestyle="", marker="s", color=numpy.array(color) / 255, label=name) for name, color in legend["entries"]
        ]
        if len(handles) > rows * columns:
            handles[rows * columns - 1 :] = [Line2D([], [], linestyle="", label="\u2026")]
        made = self._figure.legend(
            handles=handles, title=title, ncols=columns, loc="lower left", bbox_to_anchor=(0, 0), borderaxespad=0, borderpad=0,
            labelspacing=0.35, handletextpad=0.3, handlelength=1, columnspacing=1, alignment="left",
        )
        return made


def _explain(figure: Any, scene: Scene) -> tuple[float, float]:
    """Draws the legends where they leave the scene more room; returns what they take of the width and of the height."""
    if not scene.legends:
        return 0, 0
    size = figure.bbox.size
    found = []
    for is_below in (False, True):
        legends = _Legends(figure, scene.legends, is_below)
        taken = (0, legends.extent) if is_below else (legends.extent, 0)
        found.append((_scale(scene, numpy.maximum(size - taken, 1)), taken, legends))
    best = max(found, key=lambda one: one[0])
    for one in found:
        one[2].place() if one is best else one[2].remove()
    return best[1]


def png(scene: Scene, width: int, height: int) -> bytes:
    """The file of a picture of a scene. width, height: in pixels."""
    file = io.BytesIO()
    share, *bounds = _LETTERS
    with style.applied(float(numpy.clip(share * min(width, height), *bounds))):
        figure = Figure((width / _DPI, height / _DPI), dpi=_DPI)
        right, below = _explain(figure, scene)
        size = max(1, width - right), max(1, height - below)
        axes = figure.add_axes((0, below / height, size[0] / width, size[1] / height))
        drawing = _Drawing(scene, axes, size)
        for order, part in enumerate(scene.parts):
            drawing.draw(part, order)
        write(figure, file, "png", _DPI)
    return file.getvalue()
