"""A scene of a page as a picture, drawn by matplotlib: without a display, without ParaView."""

from __future__ import annotations

import io
from typing import Any

import numpy
from matplotlib.collections import EllipseCollection, LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from attentionatlas._internal import style
from attentionatlas._internal.charts import color_bar, ramp
from attentionatlas._internal.data import visible
from attentionatlas._internal.letters import with_fonts
from attentionatlas._internal.notebook import Figure, write
from attentionatlas._internal.webpage import Scene

_DPI = 100
#: A pixel in points.
_PIXEL = 72 / _DPI
#: The share of the picture that what is shown takes, and of the width that legends take.
_FULL, _LEGENDS = 0.96, 0.2
#: Letters smaller than this, in pixels, are left out.
_SMALLEST = 5
#: The sides of labels: left of their point, right of it, above it to the right (2), below it, upright.
_LEFT, _RIGHT, _BELOW = 0, 1, 3


def _unit(vector: Any) -> NDArray[Any]:
    return numpy.asarray(vector, float) / numpy.linalg.norm(vector)


class _Drawing:
    """Axes whose coordinates are pixels from the middle, and how places of the scene are seen in them."""

    def __init__(self, scene: Scene, axes: Any, size: tuple[float, float]) -> None:
        camera = scene.camera
        self.axes, self.middle = axes, numpy.array(camera["focalPoint"])
        self.back = _unit(numpy.subtract(camera["position"], camera["focalPoint"]))
        self.right = _unit(numpy.cross(camera["viewUp"], self.back))
        self.up = numpy.cross(self.back, self.right)
        half = camera.get("extent") or [camera["parallelScale"]] * 2
        self.scale = _FULL * min(side / 2 / one for side, one in zip(size, half))
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
        self.axes.imshow(
            part["colors"].reshape(rows, columns, -1), origin="lower", extent=(*ends[:, 0], *ends[:, 1]), aspect="auto",
            interpolation="none", alpha=part["opacity"], zorder=order,
        )

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


def _explain(figure: Any, axes: Any, legends: list[Any]) -> None:
    """Color bars, and the entries of categories."""
    handles = []
    for legend in legends:
        if "ramp" in legend:
            colors = LinearSegmentedColormap.from_list("shown", numpy.array(legend["ramp"]) / 255)
            color_bar(figure, axes, ramp(colors, *legend["range"]), legend["title"], legend["range"])
        else:
            handles.append(Line2D([], [], linestyle="", label=legend["title"]))
            handles += [
                Line2D([], [], linestyle="", marker="s", color=numpy.array(color) / 255, label=name)
                for name, color in legend["entries"]
            ]
    if handles:
        figure.legend(handles=handles, loc="center right", bbox_to_anchor=(0.995, 0.5), borderaxespad=0)


def png(scene: Scene, width: int, height: int) -> bytes:
    """The file of a picture of a scene. width, height: in pixels."""
    file = io.BytesIO()
    with style.applied(9):
        figure = Figure((width / _DPI, height / _DPI), dpi=_DPI)
        share = 1 - _LEGENDS if scene.legends else 1
        axes = figure.add_axes((0, 0, share, 1))
        drawing = _Drawing(scene, axes, (share * width, height))
        for order, part in enumerate(scene.parts):
            drawing.draw(part, order)
        _explain(figure, axes, scene.legends)
        write(figure, file, "png", _DPI)
    return file.getvalue()
