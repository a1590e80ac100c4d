"""Figures of the three dimensions in which the transformer works: circle, sphere and deformed torus.

Surfaces are images rendered by VTK; lines and dots on them are drawn over these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import NDArray

from attentionatlas._internal import data
from attentionatlas._internal.charts import Page, class_bar, color_bar, drawn_from, foreground, ramp
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.space import Camera, Scene
from attentionatlas._internal.style import BLUES, GREY, HEAD_COLORS, REDS
from attentionatlas._internal.windows import VIEWPOINT

#: Lines of an angle on the sphere, and the points of each.
_LINES, _POINTS = 24, 720
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


def _ball(radius: float) -> Any:
    from vtkmodules.vtkFiltersSources import vtkSphereSource  # which few figures need

    ball = vtkSphereSource()
    ball.SetRadius(radius)
    ball.SetThetaResolution(180)
    ball.SetPhiResolution(90)
    ball.Update()
    return ball.GetOutput()


def show_sphere(model: SmallModel, axes: Any, camera: Camera, pixels: int, pale: bool = False) -> None:
    """Draws the cells of the unembedding, the arcs between them and their centres.

    pale: for what is drawn on them to stand out.
    """
    sphere = model.filter("UnembeddingSphere")
    scene = Scene(pixels, camera)
    scene.show(sphere, "ClassColor", "Cell", opacity=0.3 if pale else 1)
    if pale:
        scene.show(_ball(0.985))
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


def _show_lines_on_sphere(model: SmallModel, axes: Any, number: int, colors: Any, pixels: int) -> None:
    """Draws lines of the torus along which one angle, 0 or 1, stays the same, pushed to the unit sphere, in the colors of
    that angle."""
    camera = Camera()
    show_sphere(model, axes, camera, pixels, pale=True)
    sizes = (_LINES, _POINTS) if number == 0 else (_POINTS, _LINES)
    chart = model.filter("AttentionTorus", Resolution=[size + 1 for size in sizes], Quantities=["Output"])
    # Its borders are one where it is a torus.
    points = data.points(data.fetch(model.deformed(chart, "UnitSphere"))).reshape(*sizes[::-1], 3)
    lines = camera.visible_on_sphere(points if number else points.swapaxes(0, 1))
    for line, places in enumerate(lines):
        places = numpy.append(places, places[:1], 0)
        _draw_lines(axes, places, [slice(None)], color=colors(line / _LINES), linewidth=0.9, zorder=3)


@drawn_from(SmallModel)
def deformed_torus(model: SmallModel, page: Page) -> Any:
    """The torus at the outputs of the attention layer, colored by each angle."""
    torus = model.chart(401, Quantities=["Output"])
    figure, axes = page.panels(6, 3, "Output as a deformed torus")
    for row, (symbol, colors) in enumerate((("\u03b8\u2081", REDS), ("\u03b8\u2082", BLUES))):
        panels, array = axes[3 * row : 3 * row + 3], f"Theta{row + 1}"
        scale = ramp(colors, -math.pi, math.pi)
        for panel, normalization in zip(panels, ("None", "Whitened")):
            surface = model.deformed(torus, normalization)
            scene = Scene(page.pixels(3))
            scene.show(surface, array, ramp=scale, opacity=0.75)
            scene.place(panel)
        _show_lines_on_sphere(model, panels[2], row, colors, page.pixels(3))
        for panel, title in zip(panels, ("Raw", "Whitened", "Unit sphere")):
            panel.set_title(title)
        ticks = (-math.pi, 0, math.pi), ("\u2212\u03c0", "0", "\u03c0")
        color_bar(figure, panels, scale, symbol, *ticks)
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
