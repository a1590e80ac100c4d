"""The figures of mixtures of three heads: triangles in the color of an accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib
import numpy

from attentionatlas._internal import charts, data
from attentionatlas._internal.charts import SHARES, Drawing, Page, drawn_from
from attentionatlas._internal.checks import check
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.style import ORANGES

#: Accuracies that are told apart by color, at most.
_LEVELS = 64
#: Triangles on one page, at most.
_MOST = 9


def show_simplex(axes: Any, triangle: Any, name: str) -> None:
    """Draws an accuracy over the mixtures of three heads as polygons, the heads at the corners.

    triangle: the output of HeadAccuracySimplex.
    """
    corners = numpy.array(data.cells(triangle.GetPolys()))
    values = data.point_array(triangle, name)
    steps = numpy.unique(values).astype(float)
    if len(steps) > _LEVELS:
        steps = numpy.linspace(steps[0], steps[-1], _LEVELS)
    edges = [steps[0] - 1, *(steps[1:] + steps[:-1]) / 2, steps[-1] + 1]
    x, y = data.points(triangle).T[:2]
    regions = axes.tricontourf(x, y, corners, values, levels=edges, colors=ORANGES(steps))
    for region in charts.collections_of(regions):
        region.set(edgecolor="face", linewidth=0.1)  # no gaps between the regions
    _draw_frame(axes)


def _draw_frame(axes: Any) -> None:
    height = math.sqrt(3) / 2
    axes.plot([0, 1, 0.5, 0], [0, 0, height, 0], color=charts.foreground(), linewidth=0.5)
    axes.plot([0.5], [height / 3], "+", color="black", markersize=5, markeredgewidth=0.6)
    for text, x, y, place in (
        ("Head 2", 0, -0.03, ("left", "top")),
        ("Head 0", 1, -0.03, ("right", "top")),
        ("Head 1", 0.5, height + 0.02, ("center", "bottom")),
    ):
        axes.text(x, y, text, horizontalalignment=place[0], verticalalignment=place[1])
    axes.set(aspect="equal", xlim=(-0.02, 1.02), ylim=(-0.02, height + 0.02))
    axes.set_axis_off()


def title_above(axes: Any, text: str) -> None:
    """Writes a title above the name of the head at the top."""
    axes.set_title(text, pad=1.7 * matplotlib.rcParams["font.size"])


def accuracy_bar(figure: Any, axes: Any) -> None:
    """Adds the color bar of accuracies."""
    charts.color_bar(figure, axes, charts.ramp(ORANGES), "Accuracy", SHARES)


def _triangle(model: SmallModel) -> tuple[Any, list[int]]:
    """The output of HeadAccuracySimplex and the true next tokens that occur; or raises Missing."""
    if model.head_count < 3:
        raise Missing(f"a simplex needs three heads, {model.name} has {model.head_count}")
    triangle = data.fetch(model.filter("HeadAccuracySimplex", Resolution=256, Pair=[0, 0]))
    arrays = triangle.GetPointData()
    targets = [k for k in range(model.token_count) if arrays.GetArray(f"Accuracy Target {k}") is not None]
    if not targets:
        raise Missing(f"{model.name} has no next_token")
    return triangle, targets


def _draw(page: Page, triangle: Any, title: str, panels: Sequence[tuple[str, str]]) -> Any:
    figure, axes = page.panels(len(panels), title=title)
    for panel, (array, text) in zip(axes, panels):
        show_simplex(panel, triangle, array)
        title_above(panel, text)
    accuracy_bar(figure, axes)
    return page.fit(figure)


@drawn_from(SmallModel)
def simplex(model: SmallModel, page: Page) -> Any:
    """The accuracy of mixtures of the first three heads: over all pairs, one target, one pair."""
    triangle, (first, *_) = _triangle(model)
    panels = [("Accuracy", "All pairs"), (f"Accuracy Target {first}", f"Target {first}")]
    panels += [("Correct Pair", "Pair (0, 0)")]
    return _draw(page, triangle, "Accuracy of mixed heads", panels)


@drawn_from(SmallModel)
def simplex_targets(model: SmallModel, page: Page, first: int = 0) -> Any:
    """The accuracy of mixtures over the pairs of each true next token, from one token on."""
    triangle, targets = _triangle(model)
    check("target", first, 0, targets[-1])
    shown = [k for k in targets if k >= first][:_MOST]
    panels = [(f"Accuracy Target {k}", f"Target {k}") for k in shown]
    return _draw(page, triangle, "Accuracy by true next token", panels)


def pages(model: SmallModel) -> Iterator[tuple[str, Drawing, dict[str, Any]]]:
    """The pages of the figure in the tour: suffix, function, arguments."""
    _, targets = _triangle(model)
    yield "simplex", simplex, {}
    for number in range(0, len(targets), _MOST):
        first = targets[number]
        suffix = "simplex-targets" if number == 0 else f"simplex-targets-from-{first}"
        yield suffix, simplex_targets, {"first": first}
