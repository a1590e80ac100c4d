"""Figures of the three dimensions in which the transformer works: circle, sphere and deformed torus.

Surfaces are images rendered by ParaView; lines and dots on them are drawn over these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import NDArray
from paraview import simple

from attentionatlas._internal import data
from attentionatlas._internal.charts import Page, class_bar, color_bar, drawn_from, foreground, ramp
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.space import Camera, Scene, color_scale
from attentionatlas._internal.style import BLUES, GREY, HEAD_COLORS, REDS
from attentionatlas._internal.views import VIEWPOINT

#: A round ball.
FINE = {"ThetaResolution": 180, "PhiResolution": 90}
_NORMAL = numpy.ones(3) / math.sqrt(3)
_PLANE = "#59bfd9"
#: Dots with numbers in them, at most.
_NUMBERED = 16


def _draw_lines(axes: Any, places: NDArray[Any], lines: Iterable[Any], **options: Any) -> None:
    """Draws lines, given as arrays of numbers of places."""
    for line in lines:
        axes.plot(*places[line].T, solid_capstyle="round", **options)


def _draw_dots(axes: Any, places: NDArray[Any], width: float, colors: Any, **options: Any) -> None:
    axes.scatter(*places.T, s=width**2, c=colors, linewidths=0.4, **options)


def show_sphere(model: SmallModel, axes: Any, camera: Camera, pixels: int, pale: bool = False) -> None:
    """Draws the cells of the unembedding, the arcs between them and their centres.

    pale: for what is drawn on them to stand out.
    """
    sphere = model.filter("UnembeddingSphere")
    with Scene(pixels, camera) as scene:
        scene.show(sphere, "ClassColor", association="CELLS", Opacity=0.3 if pale else 1)
        if pale:
            scene.show(scene.own(simple.Sphere(Radius=0.985, **FINE)))
        scene.place(axes)
    arcs, centres = (data.fetch(sphere, port) for port in (2, 1))
    places = camera.visible_on_sphere(data.points(arcs))
    _draw_lines(axes, places, data.cells(arcs.GetLines()), color="black", linewidth=0.7, zorder=2)
    places = camera.visible_on_sphere(data.points(centres))
    _draw_dots(axes, places, 4.5, "white", edgecolors="black", zorder=4)


@drawn_from(SmallModel)
def unembedding_sphere(model: SmallModel, page: Page) -> Any:
    """The token predicted for each direction of the output, from two sides, and the token pairs."""
    pairs = model.deformed(model.filter("TokenPairs"), "UnitSphere")
    places = data.points(data.fetch(pairs))
    figure, axes = page.panels(2, 2, "Unembedding on the sphere")
    for panel, title, sign in zip(axes, ("One side", "The other side"), (1, -1)):
        camera = Camera([sign * c for c in VIEWPOINT])
        show_sphere(model, panel, camera, page.pixels(2))
        _draw_dots(panel, camera.visible_on_sphere(places), 3, "black", zorder=3)
        panel.set_title(title)
    class_bar(figure, axes, model.colors())
    return page.fit(figure)


def _angle_lines(model: SmallModel, number: int) -> Any:
    """Lines of the torus along which one angle, 0 or 1, stays the same, with the output of the model."""
    lines = []
    for value in numpy.linspace(-math.pi, math.pi, 24, endpoint=False):
        ends = [numpy.insert([end], number, value) for end in (-math.pi, math.pi)]
        points = {f"Point{n}": [*end, 0] for n, end in enumerate(ends, 1)}
        lines.append(model.own(simple.Line(Resolution=720, **points)))
    together = model.own(simple.AppendGeometry(Input=lines))
    return model.filter("AttentionTorus", Points=together, Quantities=["Output"])


def _show_lines_on_sphere(model: SmallModel, axes: Any, number: int, colors: Any, pixels: int) -> None:
    """Draws the lines of one angle, pushed to the unit sphere, in the colors of that angle."""
    camera = Camera()
    show_sphere(model, axes, camera, pixels, pale=True)
    lines = data.fetch(model.deformed(_angle_lines(model, number), "UnitSphere"))
    places = camera.visible_on_sphere(data.points(lines))
    angles = data.point_array(lines, f"Theta{number + 1}")
    for line in data.cells(lines.GetLines()):
        share = (angles[line[1]] + math.pi) / (2 * math.pi)
        _draw_lines(axes, places, [line], color=colors(share), linewidth=0.9, zorder=3)


@drawn_from(SmallModel)
def deformed_torus(model: SmallModel, page: Page) -> Any:
    """The torus at the outputs of the attention layer, colored by each angle."""
    torus = model.chart(401, Quantities=["Output"])
    figure, axes = page.panels(6, 3, "Output as a deformed torus")
    for row, (symbol, colors) in enumerate((("\u03b8\u2081", REDS), ("\u03b8\u2082", BLUES))):
        panels, array = axes[3 * row : 3 * row + 3], f"Theta{row + 1}"
        color_scale(array, colors, -math.pi, math.pi)
        for panel, normalization in zip(panels, ("None", "Whitened")):
            surface = model.deformed(torus, normalization)
            with Scene(page.pixels(3)) as scene:
                scene.show(surface, array, Opacity=0.75, InterpolateScalarsBeforeMapping=0)
                scene.place(panel)
        _show_lines_on_sphere(model, panels[2], row, colors, page.pixels(3))
        for panel, title in zip(panels, ("Raw", "Whitened", "Unit sphere")):
            panel.set_title(title)
        ticks = (-math.pi, 0, math.pi), ("\u2212\u03c0", "0", "\u03c0")
        color_bar(figure, panels, ramp(colors, -math.pi, math.pi), symbol, *ticks)
    return page.fit(figure)


def _show_circle(axes: Any, words: Any, circle: Any, camera: Camera) -> None:
    """Draws words before and after layer normalization, and the plane and circle between them."""
    points = data.points(words)
    places, plane = (camera.project(p)[:, :2] for p in (points, data.points(circle)))
    normalized = data.point_array(words, "Normalized") == 1
    colors = data.point_array(words, "ClassColor") / 255
    for polygon in data.cells(circle.GetPolys()):
        axes.fill(*plane[polygon].T, color=_PLANE, alpha=0.3, linewidth=0, zorder=2)
    _draw_lines(axes, plane, data.cells(circle.GetLines()), color=HEAD_COLORS[0], linewidth=1.2, zorder=3)
    # What lies behind the plane is drawn before it.
    behind = points @ _NORMAL * numpy.sign(camera.back @ _NORMAL) < -1e-6
    for line in data.cells(words.GetLines()):
        _draw_lines(axes, places, [line], color=GREY, linewidth=0.8, zorder=1 if behind[line].any() else 2.5)
    for hidden, order in ((True, 1.5), (False, 3.5)):
        shown = ~normalized & (behind == hidden)
        _draw_dots(axes, places[shown], 3, foreground(), zorder=order)
    shown = places[normalized]
    _draw_dots(axes, shown, 8 if len(shown) <= _NUMBERED else 4, colors[normalized], edgecolors="black", zorder=4)
    _number_dots(axes, shown, data.point_array(words, "Token")[normalized], colors[normalized])
    middle = (plane.min(axis=0) + plane.max(axis=0)) / 2
    half = 0.51 * numpy.ptp(plane, axis=0).max()
    axes.set(aspect="equal", xlim=middle[0] + [-half, half], ylim=middle[1] + [-half, half])
    axes.set_axis_off()


def _number_dots(axes: Any, places: NDArray[Any], tokens: NDArray[Any], colors: NDArray[Any]) -> None:
    """Writes the tokens into their dots where there are few."""
    if len(tokens) > _NUMBERED:
        return
    for place, token, color in zip(places, tokens, colors):
        dark = color @ [0.3, 0.6, 0.1] < 0.45
        options = {"color": "white" if dark else "black", "fontsize": "small", "zorder": 5}
        axes.annotate(f"{token}", place, ha="center", va="center_baseline", **options)


def _label_angles(axes: Any, camera: Camera) -> None:
    """Writes angles around the circle, seen along its axis."""
    u, v = numpy.array([1, 0, -1]) / math.sqrt(2), numpy.array([-1, 2, -1]) / math.sqrt(6)
    for turn, text in ((0, "0"), (0.5, "\u03c0/2"), (1, "\u03c0"), (-0.5, "\u2212\u03c0/2")):
        direction = math.cos(turn * math.pi) * u + math.sin(turn * math.pi) * v
        ends = camera.project([math.sqrt(3) * r * direction for r in (1, 1.06, 1.16)])[:, :2]
        axes.plot(*ends[:2].T, color=foreground(), linewidth=0.5)
        axes.text(*ends[2], text, horizontalalignment="center", verticalalignment="center")


@drawn_from(SmallModel)
def layer_norm(model: SmallModel, page: Page) -> Any:
    """The word embeddings before and after layer normalization, in space and along (1, 1, 1)."""
    source = model.filter("WordCircle")
    words, circle = data.fetch(source), data.fetch(source, port=1)
    cameras = (Camera((1, -0.45, 0.55)), Camera((1, 1, 1), (-1, 2, -1)))
    figure, axes = page.panels(2, 2, "Layer normalization puts words on a circle")
    for panel, title, camera in zip(axes, ("In space", "Along (1, 1, 1)"), cameras):
        _show_circle(panel, words, circle, camera)
        panel.set_title(title)
    _label_angles(axes[1], cameras[1])
    return page.fit(figure)
