"""The scores of heads as trigonometric polynomials: their coefficients, and what these can be turned into."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import numpy
from numpy.typing import NDArray

from attentionatlas._internal import data, movies
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.charts import (
    HEADS,
    LEVEL_POINTS,
    SHARES,
    Page,
    color_bar,
    drawn_from,
    made_from,
    show_level,
    show_map,
    torus_axes,
)
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.notebook import MovieFile
from attentionatlas._internal.style import GREY, GREYS, HEAD_COLORS


def _coefficients(model: SmallModel) -> tuple[Any, list[NDArray[Any]]]:
    """The names of the harmonics, and the coefficients of each head."""
    columns = data.table(model.filter("ScoreHarmonics"))
    return columns["Harmonic"], [columns[f"Head {head}"] for head in range(model.head_count)]


def _symbols(name: str) -> str:
    return name.replace("t1", "\u03b8\u2081").replace("t2", "\u03b8\u2082").replace("-", "\u2212")


@drawn_from(SmallModel)
def harmonics(model: SmallModel, page: Page, first: int = 0) -> Any:
    """The coefficients of the harmonics of the scores, of up to five heads from one on, as bars."""
    first = model.head(first)
    names, coefficients = _coefficients(model)
    shown = coefficients[first : first + len(HEAD_COLORS)]
    title, height = "Harmonics of each head's score", max(55, 0.42 * page.width_mm)
    figure, (axes,) = page.panels(1, title=title, square=False, height_mm=height)
    places, width = numpy.arange(len(names)), 0.8 / len(shown)
    for number, values in enumerate(shown):
        x = places + (number + 0.5) * width - 0.4
        axes.bar(x, values, width, color=HEAD_COLORS[number], label=f"Head {first + number}")
    axes.axhline(0, color=GREY, linewidth=0.5, zorder=0)
    labels = [_symbols(name) for name in names]
    upright = page.width_mm < 24 * matplotlib.rcParams["font.size"]
    axes.set_xticks(places, labels, rotation=90 if upright else 0)
    axes.set(ylabel="Coefficient", xlim=(-0.6, len(names) - 0.4))
    axes.tick_params(axis="x", length=0)
    axes.legend(ncols=len(shown), loc="lower right", bbox_to_anchor=(1.01, 0.99), handlelength=1)
    return figure


def _turned(coefficients: NDArray[Any], angle: float) -> NDArray[Any]:
    """Coefficients on a closed walk through the free parameters: the phase of each harmonic turns, as
    often as no other's but that of the one it is tied to."""
    turned = list(coefficients)
    turned[0] *= math.cos(angle)
    for first, turns in ((1, 1), (3, 2), (5, -1), (7, -1), (9, 3)):
        a, b = coefficients[first : first + 2]
        c, s = math.cos(turns * angle), math.sin(turns * angle)
        turned[first : first + 2] = [a * c - b * s, a * s + b * c]
    return turned


@drawn_from(SmallModel)
def boundary_motion(model: SmallModel, page: Page, head: int | None = None) -> Any:
    """The decision boundary of a head, the last one by default, as the phases of its harmonics turn."""
    head = model.head_count - 1 if head is None else head
    head = model.head(head)
    start = _coefficients(model)[1][head]
    columns = page.columns(6)
    figure, axes = page.panels(6, columns, f"Decision boundary of head {head} as its phases turn")
    pattern, level = (
        model.filter("HarmonicHead", Resolution=[size] * 2)
        for size in (page.pixels(columns), LEVEL_POINTS)
    )
    for number, panel in enumerate(axes):
        pattern.Coefficients = level.Coefficients = _turned(start, number * math.pi / 3)
        torus_axes(panel, number, 6, columns)
        panel.set_title(f"{60 * number}\u00b0")
        shown = show_map(panel, data.image(pattern, "Attention"), cmap=page.colors(GREYS), vmin=0, vmax=1)
        show_level(panel, data.image(level, "Score"))
    color_bar(figure, axes, shown, "Attention", SHARES)
    return page.fit(figure)


@made_from(SmallModel)
def boundary_movie(model: SmallModel, page: Page, path: PathLike) -> MovieFile:
    """Writes a movie of the first heads, whose phases turn once; returns the path."""
    starts = _coefficients(model)[1][:HEADS]
    count = len(starts)
    figure, axes = page.panels(count, count, "Decision boundaries in motion")
    pattern = model.filter("HarmonicHead", Resolution=[LEVEL_POINTS] * 2)
    empty, panels = numpy.zeros((LEVEL_POINTS, LEVEL_POINTS)), []
    for head, (panel, start) in enumerate(zip(axes, starts)):
        torus_axes(panel, head, count, count)
        panel.set_title(f"Head {head}")
        panels.append((panel, show_map(panel, empty, cmap=page.colors(GREYS), vmin=0, vmax=1), start))
    with movies.Movie(page.fit(figure), path, page.dpi) as movie:
        for frame in range(movies.FRAMES):
            levels = []
            for panel, image, start in panels:
                pattern.Coefficients = _turned(start, 2 * math.pi * frame / movies.FRAMES)
                image.set_data(data.image(pattern, "Attention"))
                levels += show_level(panel, data.image(pattern, "Score"))
            movie.add_frame()
            for level in levels:
                level.remove()
    return MovieFile(path)
