"""What the findings share: their records, and panels that several of them draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, SupportsFloat, SupportsInt

import matplotlib
import numpy
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from attentionatlas._internal.charts import MILLIMETRE, Page, label_heads, show_matrix
from attentionatlas._internal.style import GREY, WEIGHTS

#: A head, as (layer, head).
Place = tuple[int, int]


class Result(NamedTuple):
    """What a finding measured. holds: True, False or None (cannot be tested on models of this size). measured: the number
    in words. numbers: those behind it, by name. definition: what the number means. threshold: by which it holds. reason:
    what the claim needs that the model does not have, if holds is None."""

    holds: bool | None
    measured: str
    numbers: dict[str, Any]
    definition: str
    threshold: str
    reason: str = ""


#: A figure, and what was measured.
Drawn = tuple[Any, Result]
#: Makes them from what a finding is about, such as a Study, and a Page.
Draw = Callable[[Any, Page], Drawn]


class Finding(NamedTuple):
    """A claim with the figure that tests it. name: of its files. source: author and year. model: the name of a folder of
    models, or "gpt2" for the recording of GPT-2. seen: what one sees, why it is so. look: the pipeline in ParaView."""

    name: str
    title: str
    source: str
    claim: str
    model: str
    draw: Draw
    seen: str
    look: str


def name_of(place: Sequence[int]) -> str:
    """A head as layer.head."""
    return f"{int(place[0])}.{int(place[1])}"


def place_at(index: SupportsInt, matrix: NDArray[Any]) -> Place:
    """The (layer, head) of an index into the values of a matrix of heads, row by row."""
    layer, head = divmod(int(index), matrix.shape[1])
    return layer, head


def highest(matrix: NDArray[Any]) -> Place:
    """The (layer, head) of the largest value of a matrix of heads, which has no NaN throughout."""
    return place_at(numpy.nanargmax(matrix), matrix)


def number(value: SupportsFloat, digits: int = 2) -> str:
    """A number with a true minus."""
    return f"{float(value):.{digits}f}".replace("-", "\u2212")


def row(
    page: Page, count: int, title: str | None = None, height: float = 58, columns: int | None = None
) -> tuple[Any, Any]:
    """A figure of `count` panels side by side, each `height` millimetres high, and its axes."""
    columns = columns or count
    figure, axes = page.panels(count, columns, title, square=False)
    rows = -(-count // columns)
    figure.set_figheight((height * rows + (8 if title else 0)) * MILLIMETRE)
    figure.get_layout_engine().set(wspace=0.05, hspace=0.06)
    return figure, axes


def show_heads(
    axes: Any, matrix: NDArray[Any], page: Page, columns: int = 2, colors: Any = WEIGHTS,
    limits: tuple[float, float] = (0, 1), digits: int = 2,
) -> Any:
    """Shows a matrix of layers and heads with its numbers; returns the image."""
    low, high = limits
    shown = show_matrix(axes, matrix, page.pixels(columns), cmap=colors, vmin=low, vmax=high)
    rows, count = matrix.shape
    label_heads(axes, {head: head for head in range(count)}, {layer: layer for layer in range(rows)})
    axes.set_aspect("auto")
    if count > 12:
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        return shown
    for (layer, head), value in numpy.ndenumerate(matrix):
        share = (value - low) / (high - low) if high > low else 0
        dark = abs(2 * share - 1) > 0.55 if low < 0 else share > 0.55
        text = number(value, digits) if numpy.isfinite(value) else ""
        axes.text(head, layer, text, ha="center", va="center", size="small", color="white" if dark else "black")
    return shown


def show_map(
    axes: Any, matrix: NDArray[Any], page: Page, title: str, columns: int = 2, highest: float | None = None
) -> Any:
    """Shows attention weights, queries downward and keys to the right."""
    most = highest or max(float(numpy.nanmax(matrix)), 1e-9)
    shown = show_matrix(axes, matrix, page.pixels(columns), cmap=WEIGHTS, vmin=0, vmax=most)
    axes.set_aspect("auto")
    axes.set(title=title, xlabel="Key position", ylabel="Query position")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    return shown


def name_points(axes: Any, points: Iterable[Any], names: Iterable[str], most: int = 12) -> None:
    """Writes names beside points where they do not overlap, the first ones first."""
    axes.figure.get_layout_engine().settle(axes.figure)
    height = matplotlib.rcParams["font.size"] * axes.figure.dpi / 72
    taken: list[tuple[float, ...]] = []
    for place, text in zip(points, names):
        x, y = axes.transData.transform(place)
        box = (x, y - 0.6 * height, x + 0.65 * height * (len(text) + 1), y + 0.6 * height)
        if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            continue
        taken.append(box)
        axes.annotate(text, place, (3, 0), textcoords="offset points", va="center", size="small")
        if len(taken) == most:
            return


def threshold_line(axes: Any, value: float, text: str | None = None, across: bool = False) -> None:
    """A dashed line at a threshold."""
    (axes.axvline if across else axes.axhline)(value, color=GREY, linestyle="--", linewidth=0.6, zorder=0, label=text)


def step_axis(axes: Any, steps: Sequence[float]) -> None:
    """A logarithmic axis of training steps, on which step 0 has a place of its own."""
    later = [step for step in steps if step > 0]
    axes.set_xscale("symlog", linthresh=max(1, min(later, default=1)), linscale=0.3)
    axes.set_xlim(left=0, right=1.05 * max(steps))
    axes.set_xlabel("Training step")
    ticks = [0] + [10**k for k in range(7) if min(later, default=1) <= 10**k <= max(steps)]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
