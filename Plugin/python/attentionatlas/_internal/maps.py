"""Charts of the torus: what a transformer predicts, attends to, mixes and adds up at each point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from attentionatlas._internal import data, host
from attentionatlas._internal.charts import (
    HEADS,
    LEVEL_POINTS,
    SHARES,
    Page,
    class_bar,
    color_bar,
    drawn_from,
    show_dots,
    show_level,
    show_map,
    torus_axes,
)
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.style import GREYS


def show_classes(model: SmallModel, axes: Any, pairs: Any, size: int, **properties: Any) -> None:
    """Shows the class map and the token pairs in a chart of the torus."""
    torus = model.chart(size, Quantities=["ClassColor"], **properties)
    show_map(axes, data.image(torus, "ClassColor"))
    show_pairs(axes, pairs)


def show_pairs(axes: Any, pairs: Any) -> tuple[Any, Any]:
    """Draws token pairs as dots in the color of their true next token; returns what is drawn."""
    side = axes.get_window_extent().width * 72 / axes.figure.dpi
    colors = data.point_array(pairs, "TargetColor") / 255
    return show_dots(axes, data.points(pairs)[:, :2], colors, side)


@drawn_from(SmallModel)
def class_map(model: SmallModel, page: Page) -> Any:
    """The predicted next token at each point of the torus, and the token pairs."""
    pairs, accuracy = model.pair_points()
    figure, (axes,) = page.panels(1)
    title = "Predicted next token"
    axes.set_title(title if accuracy is None else f"{title} (accuracy {100 * accuracy:.3g} %)")
    torus_axes(axes, 0, 1, 1)
    class_bar(figure, axes, model.colors())
    page.fit(figure)
    show_classes(model, axes, pairs, page.pixels(1))
    return figure


@drawn_from(SmallModel)
def attention(model: SmallModel, page: Page, heads: Sequence[int] | None = None) -> Any:
    """The attention of token 2 to token 1 of some heads (the first ones), softmax and hardmax."""
    heads = list(range(min(HEADS, model.head_count)) if heads is None else map(model.head, heads))
    count = len(heads)
    figure, axes = page.panels(2 * count, count, "Attention of token 2 to token 1")
    scores = model.chart(LEVEL_POINTS, Quantities=["Score"])
    for row, pattern in enumerate(("Softmax", "Hardmax")):
        torus = model.chart(page.pixels(count), Pattern=pattern, Quantities=["Attention"])
        for column, head in enumerate(heads):
            panel = axes[row * count + column]
            torus_axes(panel, row * count + column, 2 * count, count, pattern)
            panel.set_title(f"Head {head}" if row == 0 else "")
            shown = show_map(panel, data.image(torus, f"Attention {head}"), cmap=page.colors(GREYS), vmin=0, vmax=1)
            show_level(panel, data.image(scores, f"Score {head}"))
    color_bar(figure, axes, shown, "Attention", SHARES)
    return page.fit(figure)


@drawn_from(SmallModel)
def mixes(model: SmallModel, page: Page, head: int = 0) -> Any:
    """The vectors that a head mixes as colors: words, positions and both, softmax and hardmax."""
    head = model.head(head)
    parts = (("Word Mix", "Words"), ("Position Mix", "Positions"), ("Mix", "Both"))
    arrays = [f"{part} {head}" for part, _ in parts]
    figure, axes = page.panels(6, 3, f"What head {head} mixes")
    score = data.image(model.chart(LEVEL_POINTS, Quantities=["Score"]), f"Score {head}")
    for row, pattern in enumerate(("Softmax", "Hardmax")):
        torus = model.chart(page.pixels(3), Pattern=pattern, Quantities=arrays)
        colors = model.filter("SummableColors", Input=torus, Vectors=arrays, Scale="SharedRange")
        for column, (array, (_, name)) in enumerate(zip(arrays, parts)):
            panel = axes[3 * row + column]
            torus_axes(panel, 3 * row + column, 6, 3, pattern)
            panel.set_title(name if row == 0 else "")
            show_map(panel, data.image(colors, f"{array} Color"))
            show_level(panel, score, "black", 0.6)
    return page.fit(figure)


@drawn_from(SmallModel)
def outputs(model: SmallModel, page: Page, scale: str = "Additive") -> Any:
    """The outputs of the heads, their sum, and the sum with the residual, as colors.

    scale: Additive, under which colors add up as the vectors do, or SharedRange.
    """
    panels = [(f"Head Output {head}", f"Head {head}") for head in range(model.head_count)]
    total = "+".join(f'"{array}"' for array, _ in panels)
    panels += [("Sum", "Sum of heads"), ("Output", "With residual")]
    columns = page.columns(len(panels))
    torus = model.chart(page.pixels(columns), Quantities=["Head Output", "Output"])
    summed = model.own(host.calculated(torus, "Sum", total))
    arrays = [array for array, _ in panels]
    colors = model.filter("SummableColors", Input=summed, Vectors=arrays, Scale=scale)
    title = "Head outputs: colors add up" if scale == "Additive" else "Head outputs on one scale"
    figure, axes = page.panels(len(panels), columns, title)
    for number, (array, text) in enumerate(panels):
        torus_axes(axes[number], number, len(panels), columns)
        axes[number].set_title(text)
        show_map(axes[number], data.image(colors, f"{array} Color"))
    return page.fit(figure)


@drawn_from(SmallModel)
def heads_alone(model: SmallModel, page: Page) -> Any:
    """The class map and accuracy of each head by itself, without the residual, and of all heads."""
    panels = [(f"Head {head}", numpy.eye(model.head_count)[head].tolist(), "None") for head in range(model.head_count)]
    panels += [("All heads", [], "EmbeddingPosition")]
    count, columns = len(panels), page.columns(len(panels))
    figure, axes = page.panels(count, columns, "Next token by each head alone")
    results = []
    for number, (name, weights, residual) in enumerate(panels):
        properties = {"HeadWeights": weights, "Residual": residual}
        pairs, accuracy = model.pair_points(**properties)
        torus_axes(axes[number], number, count, columns)
        axes[number].set_title(name if accuracy is None else f"{name}: {100 * accuracy:.0f} %")
        results.append((axes[number], pairs, properties))
    class_bar(figure, axes, model.colors())
    page.fit(figure)
    for panel, pairs, properties in results:
        show_classes(model, panel, pairs, page.pixels(columns), **properties)
    return figure
