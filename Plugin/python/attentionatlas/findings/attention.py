"""Findings about what heads attend to: positions, spirals and clumps, induction, sinks, decay, concentration, updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.charts import Page, color_bar
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.recording import Recording
from attentionatlas._internal.style import GREY, HEAD_COLORS
from attentionatlas.embedding import Embedding
from attentionatlas.findings.base import (
    Drawn, Place, Result, highest, name_of, name_points, number, place_at, row, show_heads, show_map, threshold_line,
)
from attentionatlas.findings.study import Attention, Study, ids, log_softmax
from attentionatlas.focus import updates as head_updates

#: A head is one of positions if so much of the variance of its weights depends on positions alone ...
SHARE = 0.8
#: ... and the weight on its favorite offset is at least this many times that of uniform attention.
PEAK = 3
#: Layers that a model needs to have early and later ones.
DEEP = 4
#: A model copies if an earlier copy of a hidden token raises its log probability by at least this many nats.
COPIES = 0.1
#: Neighbors of a point in a layout, and how ordered they have to be.
NEIGHBORS, ORDER = 10, 0.5


def _visible(weights: NDArray[Any]) -> NDArray[Any]:
    """The pairs of queries and keys that any sequence gives weight."""
    return weights.max(axis=0) > 0


def position_share(weights: NDArray[Any]) -> float:
    """How much of the variance of weights [sequences, queries, keys] depends on the positions alone: 1 minus the
    variance between sequences over the whole variance, of all pairs that are visible; unbiased."""
    values = weights[:, _visible(weights)].astype(float)
    sequences, pairs = values.shape
    if sequences < 2 or values.var() == 0:
        return numpy.nan
    within = values.var(axis=0, ddof=1).mean()
    return float(1 - within / values.var(ddof=1))


def offset_profile(weights: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The mean weight by offset, key minus query position, from 1 - T to T - 1, and that of even attention."""
    mean, visible = weights.mean(axis=0), _visible(weights)
    even = visible / visible.sum(axis=1, keepdims=True)
    offsets = numpy.arange(1 - len(mean), len(mean))
    visits = numpy.array([max(1, numpy.trace(visible, offset)) for offset in offsets])
    found, chance = (numpy.array([numpy.trace(m, offset) for offset in offsets]) / visits for m in (mean, even))
    return offsets, found, chance


def _peak(weights: NDArray[Any]) -> tuple[int, float]:
    """The favorite offset of a head, and how many times that of even attention its weight there is. Offsets that few
    pairs have are left out."""
    offsets, profile, even = offset_profile(weights)
    times = numpy.where((even > 0) & (abs(offsets) <= len(weights[0]) // 2), profile / numpy.maximum(even, 1e-12), 0)
    return int(offsets[times.argmax()]), float(times.max())


def _of_positions(attention: Attention) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Of each head: the share of positions, the favorite offset, and its weight over that of even attention."""
    shape = len(attention.layer_numbers), attention.head_count
    share, offset, peak = numpy.full(shape, numpy.nan), numpy.zeros(shape, int), numpy.zeros(shape)
    for i, layer in enumerate(attention.layer_numbers):
        for head in range(attention.head_count):
            weights = attention.stack(layer, head)
            share[i, head] = position_share(weights)
            offset[i, head], peak[i, head] = _peak(weights)
    return share, offset, peak


def position_heads(study: Study, page: Page) -> Drawn:
    """Whether there are heads whose attention depends on positions alone."""
    with Attention.opened(study.text()) as attention:
        share, offset, peak = _of_positions(attention)
        chosen = highest(numpy.where(peak >= PEAK, share, -1))
        least = highest(-share)
        stacks = [attention.stack(*place) for place in (chosen, least)]
    found = (share >= SHARE) & (peak >= PEAK)
    figure, axes = row(page, 4, f"{study.name}: what attention depends on", 58, 2)
    _share_panel(axes[0], share, peak)
    for panel, place, weights, title in zip(axes[1:3], (chosen, least), stacks, ("most", "least")):
        what = f"Head {name_of(place)}, {title} positional: mean of texts"
        shown = show_map(panel, weights.mean(axis=0), page, what)
        top = shown.get_clim()[1]
        color_bar(figure, panel, shown, "Weight", [0, top], ["0", number(top)])
    for weights, place, color in zip(stacks, (chosen, least), HEAD_COLORS):
        offsets, profile, even = offset_profile(weights)
        middle = (abs(offsets) <= len(weights[0]) // 2) & (even > 0)
        axes[3].plot(offsets[middle], profile[middle], color=color, label=f"Head {name_of(place)}", marker=".", markersize=3)
    axes[3].set(title="Mean weight by offset", xlabel="Key position \u2212 query position", ylabel="Weight", ylim=(0, None))
    axes[3].legend()
    measured = (
        f"{int(found.sum())} of {share.size} heads; head {name_of(chosen)}: {100 * share[chosen]:.0f} % of the variance, "
        f"{number(peak[chosen], 1)} times even attention at offset {offset[chosen]:+d}".replace("-", "\u2212")
    )
    return figure, Result(
        bool(found.any()),
        measured,
        {"share": share, "peak": peak, "offset": offset},
        "The share of the variance of a head's attention weights, over texts and visible pairs, that their positions "
        "explain (the variance of the means of pairs over the whole variance); and the mean weight on the head's "
        "favorite offset over that of even attention.",
        f"Holds if a head has a share of at least {SHARE} and at least {PEAK} times even attention at its offset (even "
        "attention itself depends on positions alone).",
    )


def _share_panel(axes: Any, share: NDArray[Any], peak: NDArray[Any]) -> None:
    """A point for each head: how many times even attention, and the share of positions."""
    places = list(numpy.ndindex(*share.shape))
    colors = [HEAD_COLORS[layer % len(HEAD_COLORS)] for layer, _ in places]
    points = numpy.array([(peak[place], share[place]) for place in places])
    axes.scatter(*points.T, s=9, c=colors, linewidths=0)
    threshold_line(axes, SHARE)
    threshold_line(axes, PEAK, across=True)
    axes.set(title="Every head (layer.head)", xlabel="Weight at the favorite offset / even", ylabel="Share of positions")
    axes.set(xscale="log", ylim=(-0.05, 1.08))
    axes.set_xticks([1, 3, 10, 30], ["1", "3", "10", "30"])
    axes.minorticks_off()
    order = numpy.argsort(-points[:, 1])
    name_points(axes, points[order], [name_of(places[i]) for i in order])


def layout_order(places: NDArray[Any], position: NDArray[Any], sequence: NDArray[Any]) -> float:
    """How well positions are in order in a layout: 1 minus the mean difference of position of a point and its nearest
    neighbors from other sequences over that of all such pairs. 1: neighbors have the same position; 0: chance."""
    squares = ((places[:, None] - places[None]) ** 2).sum(axis=-1)
    others = sequence[:, None] != sequence[None]
    squares[~others] = numpy.inf
    nearest = numpy.argpartition(squares, NEIGHBORS, axis=1)[:, :NEIGHBORS]
    difference = abs(position[:, None] - position[None])
    near = numpy.take_along_axis(difference, nearest, axis=1).mean()
    return float(1 - near / difference[others].mean())


def _layout(study: Study, place: Place) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[Any]]:
    """The t-SNE of a head: places, positions from 0, and colors by position and by position mod 5."""
    properties = {"Layer": place[0], "Head": place[1], "Arrangement": "Overlaid"}
    with Embedding.opened(study.text(), **properties) as embedding:
        colors = [embedding.colored("Position")[0]]
        embedding.colors.By = "PositionMod5"
        whole = data.fetch(embedding.colors)
        colors.append(data.point_array(whole, "TokenColor") / 255)
        position, sequence = (data.point_array(whole, name).astype(int) for name in ("Position", "Sequence"))
        return embedding.places.copy(), position.copy(), sequence.copy(), colors


def spirals(study: Study, page: Page) -> Drawn:
    """Whether layouts of heads of positions are in the order of positions: spirals and clumps."""
    with Attention.opened(study.text()) as attention:
        share, offset, peak = _of_positions(attention)
    positional = numpy.where(peak >= PEAK, share, share - 1)
    order = numpy.argsort(-positional, axis=None)
    chosen = [place_at(i, share) for i in (*order[:2], order[-1])]
    figure, axes = row(page, 6, f"{study.name}: t-SNE of the queries (blue) and keys (red) of three heads", 58, 3)
    found = []
    for column, place in enumerate(chosen):
        places, position, sequence, colors = _layout(study, place)
        found.append(layout_order(places, position.astype(float), sequence))
        for panel, shades, by in zip(axes[column::3], colors, ("position, pale to dark", "position mod 5")):
            panel.scatter(*places.T, s=2.5, c=shades, linewidths=0, rasterized=len(places) > 5000)
            panel.set(xticks=[], yticks=[], title=f"Head {name_of(place)} by {by}", aspect="equal", adjustable="datalim")
        axes[3 + column].set_xlabel(f"share of positions {number(share[place])}, order {number(found[-1])}")
    return figure, Result(
        found[0] >= ORDER and found[0] > found[2],
        f"order {number(found[0])} and {number(found[1])} in the two most positional heads, {number(found[2])} in the "
        "least positional one",
        {"heads": [name_of(place) for place in chosen], "order": found, "share": [share[place] for place in chosen],
         "offset": [offset[place] for place in chosen]},
        f"Order: 1 minus the mean difference of position of a point and its {NEIGHBORS} nearest neighbors from other "
        "texts in the layout, over the mean difference of all pairs from different texts. 1: neighbors have the same "
        "position; 0: chance.",
        f"Holds if the order of the most positional head is at least {ORDER} and above that of the least positional one.",
    )


def induction(study: Study, page: Page, least: float = 0.5, least_previous: float = 0.5) -> Drawn:
    """Whether there are induction heads, and heads of the previous token before them."""
    inductive = study.head_scores()["Induction"]
    with Attention.opened(study.repeated()) as attention:
        means = {place: attention.mean(*place) for place in attention.places()}
    previous, first = numpy.zeros_like(inductive), numpy.zeros_like(inductive)
    for place, weights in means.items():
        previous[place], first[place] = stripe(weights, -1), stripe(weights[: study.block, : study.block], -1)
    chosen, before = highest(inductive), highest(first)
    figure, axes = row(page, 4, f"{study.name}: random tokens, each sequence a block written twice", 60, 2)
    for panel, matrix, title in zip(axes, (first, inductive), ("Previous token, in the first block", "Induction")):
        shown = show_heads(panel, matrix, page)
        panel.set_title(f"{title}: mean weight")
    color_bar(figure, axes[:2], shown, "Score", [0, 0.5, 1])
    for panel, place, title in zip(axes[2:], (before, chosen), ("previous token", "induction")):
        shown = show_map(panel, means[place], page, f"Head {name_of(place)}, {title}: mean weights", highest=1)
    color_bar(figure, axes[2:], shown, "Weight", [0, 0.5, 1])
    return figure, Result(
        bool(inductive[chosen] > least and first[before] > least_previous and before[0] < chosen[0]),
        f"induction {number(inductive[chosen])} (head {name_of(chosen)}), previous token {number(first[before])} in the "
        f"first block (head {name_of(before)}; {number(previous[before])} in both)",
        {"induction": inductive, "previous token": previous, "previous token, first block": first},
        "Mean attention weight from each token of the second block to the token after its first copy (induction), "
        "and of each token of the first block to the one before (previous token); only the first block can be "
        "copied from. Even "
        f"attention would give about {number(1 / (1.5 * study.block), 2)}.",
        f"Holds if a head has induction above {least} and one of an earlier layer previous token above {least_previous}.",
    )


def stripe(weights: NDArray[Any], offset: int) -> float:
    """The mean weight at an offset, key minus query position."""
    return float(numpy.diagonal(weights, offset).mean())


def _stripes(means: Any, block: int, shift: int) -> NDArray[Any]:
    """Of each head the mean weight at an offset from the other copy of a token, in both halves of the repeated block."""
    shape = tuple(1 + max(numbers) for numbers in zip(*means))
    found = numpy.zeros(shape)
    for place, weights in means.items():
        found[place] = numpy.mean([stripe(weights, block + shift), stripe(weights, shift - block)])
    return found


def both_directions(study: Study, page: Page) -> Drawn:
    """Whether heads of a bidirectional model attend to what came after, and before, another copy of their token."""
    block, length = study.block, 2 * study.block
    plain = {"Kind": "Random", "Length": length, "Count": 16, "Seed": 2}
    control = study.recording("random", lambda: {"Tokens": study.random_tokens(**plain)})
    with Attention.opened(study.repeated()) as attention, Attention.opened(control) as random:
        means, others = ({p: heads.mean(*p) for p in heads.places()} for heads in (attention, random))
    shifts = {"after": 1, "before": -1, "same": 0}
    scores, chance = ({name: _stripes(m, block, shift) for name, shift in shifts.items()} for m in (means, others))
    chosen = {name: highest(scores[name] - chance[name]) for name in ("after", "before")}
    itself = highest(scores["same"])
    figure, axes = row(page, 4, f"{study.name}: random tokens, each sequence a block of {block} written twice", 60, 2)
    top = max(0.1, *(values.max() for values in scores.values()))
    for panel, name in zip(axes, chosen):
        shown = show_heads(panel, scores[name], page, limits=(0, top), digits=3)
        panel.set_title(f"Weight on the token {name} the other copy")
    color_bar(figure, axes[:2], shown, "Mean weight", [0, top / 2, top], [number(t) for t in (0, top / 2, top)])
    for panel, (name, place) in zip(axes[2:], chosen.items()):
        _around_copy(panel, means[place], others[place], block)
        panel.set_title(f"Head {name_of(place)}: weight around the other copy")
    axes[2].legend()
    even, gain = 1 / length, _gain_of_copies(study)
    found = {name: (float(scores[name][place]), float(chance[name][place])) for name, place in chosen.items()}
    holds = all(score > 5 * even and score > 2 * usual for score, usual in found.values())
    reason = (
        f"The claim is about a model that copies. In this one, an earlier copy raises the log probability of a hidden token "
        f"by {number(gain, 3)} nats."
    )
    return figure, Result(
        holds or (False if gain >= COPIES else None),
        ", ".join(
            f"{name} {number(score, 3)} (head {name_of(chosen[name])}; without repetition {number(usual, 3)})"
            for name, (score, usual) in found.items()
        )
        + f"; on the other copy itself {number(scores['same'][itself], 3)} (head {name_of(itself)}; "
        f"{number(chance['same'][itself], 3)}); an earlier copy raises a hidden token by {number(gain, 3)} nats",
        {**scores, **{f"{name}, control": chance[name] for name in shifts}, "gain of copies": gain},
        "Mean attention weight from each token of a repeated block to the token after, or before, its other copy, and to "
        "this copy itself; "
        f"control: the same offsets in random tokens without repetition. Even attention is {number(even, 3)}.",
        "Holds if in both directions a head has more than 5 times even attention and twice its control. A model copies if "
        f"an earlier copy of the block raises the log probability of a hidden token by at least {COPIES} nats.",
        "" if holds or gain >= COPIES else reason,
    )


def _gain_of_copies(study: Study) -> float:
    """By how much the first copy of a block raises the log probability of a hidden token in the middle of the second one,
    over a block of other tokens in its place: the mean over blocks, in nats."""
    random = numpy.random.default_rng(4)
    block, count = study.block, 64
    rows = random.integers(study.first_word(), study.vocabulary, (2, count, 2 * block))
    rows[:, :, block:] = rows[0, :, :block]
    hidden = rows[0, :, block + block // 2].copy()
    rows[:, :, block + block // 2] = study.special("[MASK]")
    logits, _ = study.logits(TokenIds=ids(rows.reshape(-1, 2 * block)))
    chances = log_softmax(logits.reshape(2, count, 2 * block, -1)[:, :, block + block // 2])
    found = numpy.take_along_axis(chances, hidden[None, :, None], axis=-1)[..., 0]
    return float((found[0] - found[1]).mean())


def _around_copy(axes: Any, repeated: NDArray[Any], plain: NDArray[Any], block: int, reach: int = 5) -> None:
    """The mean weights of a head at the offsets around the other copy of the token, with those of the control."""
    shifts = numpy.arange(-reach, reach + 1)
    for matrix, color, label in ((repeated, HEAD_COLORS[0], "repeated"), (plain, GREY, "not repeated")):
        values = [numpy.mean([stripe(matrix, block + s), stripe(matrix, s - block)]) for s in shifts]
        axes.plot(shifts, values, color=color, label=label, marker=".", markersize=4)
    axes.set(xlabel="Offset from the other copy", ylabel="Mean weight")
    axes.set_ylim(0, 1.25 * axes.get_ylim()[1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def alibi_slopes(heads: int) -> NDArray[Any]:
    """The slopes of ALiBi (Press et al. 2022) for any number of heads."""
    power = 2 ** int(numpy.floor(numpy.log2(heads)))
    slopes = [2 ** (-8 * (k + 1) / power) for k in range(power)]
    return numpy.array(slopes + [2 ** (-4 * (2 * k + 1) / power) for k in range(heads - power)])


def decay_of(scores: NDArray[Any]) -> NDArray[Any]:
    """The mean score by distance, from 0 to half the length, over the queries that have all of these distances."""
    reach = scores.shape[1] // 2
    rows = numpy.arange(reach, scores.shape[1])
    return numpy.array([scores[:, rows, rows - d].mean() for d in range(reach + 1)])


def line_through(values: NDArray[Any]) -> tuple[float, float]:
    """Slope and R2 of the line through values at 0, 1, 2, ..."""
    at = numpy.arange(len(values))
    slope, start = numpy.polyfit(at, values, 1)
    rest = values - (slope * at + start)
    return float(slope), float(1 - rest.var() / values.var()) if values.var() > 0 else numpy.nan


def alibi_decay(study: Study, page: Page) -> Drawn:
    """Whether scores of an ALiBi model fall linearly with distance."""
    with Attention.opened(study.text()) as attention:
        shape = len(attention.layer_numbers), attention.head_count
        decays = {place: decay_of(attention.stack(*place, "Scores")) for place in attention.places()}
        weights = {place: decay_of(attention.stack(*place)) for place in attention.places()}
    fits = {place: line_through(values) for place, values in decays.items()}
    slopes, quality = (numpy.array([fits[p][i] for p in decays]).reshape(shape) for i in (0, 1))
    alibi = -alibi_slopes(study.head_count)
    figure, axes = row(page, 3, f"{study.name}: scores and weights by distance, mean over texts", 66)
    shades = [*HEAD_COLORS, "#56b4e9", "#000000", GREY]
    for (layer, head), values in decays.items():
        style = "-" if layer == 0 else ("--" if layer == 1 else ":")
        color = shades[head % len(shades)]
        axes[0].plot(values - values[0], color=color, linestyle=style)
        axes[1].plot(weights[layer, head], color=color, linestyle=style, label=f"head {head}" if layer == 0 else None)
    axes[0].set(title="Score \u2212 that of the own key", xlabel="Distance", ylabel="Score before the softmax")
    axes[1].set(title="Weight", xlabel="Distance", yscale="log", ylabel="Mean weight")
    axes[1].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes[1].yaxis.set_minor_formatter(NullFormatter())
    axes[1].legend(ncol=2, fontsize="small")
    layers = numpy.repeat(numpy.arange(shape[0]), shape[1])
    axes[2].scatter(numpy.tile(alibi, shape[0]), slopes.ravel(), s=12, c=[HEAD_COLORS[i] for i in layers], linewidths=0)
    low = 1.1 * min(alibi.min(), slopes.min())
    axes[2].plot([low, 0], [low, 0], color=GREY, linewidth=0.6, zorder=0)
    axes[2].set(title="Slope of every head", xlabel="Slope of ALiBi alone", ylabel="Slope of the scores")
    straight = quality >= 0.9
    return figure, Result(
        bool(straight.mean() > 0.5),
        f"{int(straight.sum())} of {quality.size} heads with R\u00b2 \u2265 0.9; median "
        f"{number(numpy.median(quality))}",
        {"R2": quality, "slope": slopes, "ALiBi": -alibi},
        "R\u00b2 of the line through a head's mean score at distances from 0 to half the length of the texts.",
        "Holds if R\u00b2 is at least 0.9 in more than half of the heads.",
    )


def _by_layer(axes: Any, values: NDArray[Any], title: str, label: str) -> None:
    """A point for each head by layer, and the means of layers as a line."""
    layers, count = values.shape
    at = numpy.repeat(numpy.arange(layers), count)
    axes.scatter(at, values.ravel(), s=9, color=HEAD_COLORS[0], linewidths=0, zorder=3)
    axes.plot(numpy.arange(layers), values.mean(axis=1), color=HEAD_COLORS[4], zorder=2, label="mean of the layer")
    axes.set(title=title, xlabel="Layer", ylabel=label, ylim=(0, 1.03))
    axes.set_xticks(range(layers))
    order = numpy.argsort(-values, axis=None)
    places = [place_at(i, values) for i in order]
    name_points(axes, [(p[0], values[p]) for p in places], [name_of(p) for p in places])


def _focus_of(focus: Any, **properties: Any) -> dict[str, NDArray[Any]]:
    table = focus.columns("AttentionFocus", exclude_first=True, **properties)
    shape = len(focus.layer_numbers), focus.head_count
    return {name: numpy.asarray(column, float).reshape(shape) for name, column in table.items()}


def sinks(path_of: tuple[str, PathLike], page: Page) -> Drawn:
    """Whether heads of later layers attend to the first token."""
    name, path = path_of
    with Recording.opened(path) as focus:
        table = _focus_of(focus)
    first, strongest = table["First Weight"], table["Strongest Is First"]
    figure, axes = row(page, 2, f"{name}: attention to the first token", 66)
    _by_layer(axes[0], strongest, "Share of queries whose strongest key is the first", "Share")
    _by_layer(axes[1], first, "Mean weight of the first key", "Weight")
    axes[0].legend(loc="best")
    means = strongest.mean(axis=1)
    half = max(1, len(means) // 2)
    early, late = float(means[:half].mean()), float(means[half:].mean())
    holds = bool(late > early and late > 0.5)
    return figure, Result(
        holds or (False if len(means) >= DEEP else None),
        f"{100 * early:.0f} % of queries in the first half of the layers, {100 * late:.0f} % in the second",
        {"strongest is first": strongest, "first weight": first},
        "The share of queries, but for the first of each text, whose largest weight is that of the first token: "
        "the mean over the heads of the first and of the second half of the layers.",
        "Holds if the share is above 50 % in the second half and larger than in the first.",
        "" if holds else _shallow(len(means)),
    )


def _shallow(layers: int) -> str:
    """Why claims about later layers cannot be tested on a model; empty if they can."""
    if layers >= DEEP:
        return ""
    return f"The claim is about later layers: this needs at least {DEEP} layers, and the model has {layers}."


def concentration(path_of: tuple[str, PathLike], page: Page) -> Drawn:
    """How concentrated heads are on one key."""
    name, path = path_of
    with Recording.opened(path) as focus:
        table = _focus_of(focus)
    lead, entropy = table["Concentration"], table["Entropy"]
    figure, axes = row(page, 2, f"{name}: how concentrated each head is", 66)
    _by_layer(axes[0], lead, "Largest minus second largest weight", "Mean over queries")
    _by_layer(axes[1], entropy, "Entropy / ln(number of keys)", "Mean over queries")
    spread = float(lead.max() - lead.min())
    return figure, Result(
        bool(lead.max() > 0.5 and lead.min() < 0.2),
        f"from {number(lead.min())} (head {name_of(highest(-lead))}) to {number(lead.max())} (head "
        f"{name_of(highest(lead))})",
        {"concentration": lead, "entropy": entropy, "spread": spread},
        "The largest minus the second largest attention weight of a query, the mean over queries but for the first.",
        "Holds if some head is above 0.5 (it attends to single tokens) and some head below 0.2 (it spreads its "
        "attention).",
    )


def of_text(draw: Callable[..., Drawn]) -> Callable[[Study, Page], Drawn]:
    """A figure of the text that a model reads."""
    return lambda study, page: draw((study.name, study.text()), page)


def _ranks(values: NDArray[Any]) -> NDArray[Any]:
    return numpy.argsort(numpy.argsort(values)).astype(float)


def updates(study: Study, page: Page) -> Drawn:
    """Whether the size of what heads write changes with position."""
    with Recording.opened(study.text()) as focus:
        means = head_updates(focus, 2)
        layers = focus.layer_numbers
    figure, axes = row(page, 2, f"{study.name}: what heads add to the residual stream, |u| / |x|", 66)
    numbers = {}
    for layer in layers:
        rows = means["Layer"] == layer
        position, size = means["Position"][rows], means["Magnitude"][rows]
        numbers[str(layer)] = float(numpy.corrcoef(_ranks(position), _ranks(size))[0, 1])
        color = HEAD_COLORS[layer % len(HEAD_COLORS)]
        axes[0].plot(position, size, color=color, label=f"layer {layer}")
        axes[1].plot(position, means["Orientation"][rows], color=color)
    axes[0].set(title="Size, mean over heads and texts", xlabel="Position", ylabel="|u| / |x|", ylim=(0, None))
    axes[1].set(title="Direction: cosine with the stream", xlabel="Position", ylabel="cos(u, x)")
    axes[1].axhline(0, color=GREY, linewidth=0.4)
    axes[0].legend()
    words = ", ".join(f"layer {layer}: {number(value)}" for layer, value in numbers.items())
    return figure, Result(
        any(abs(value) > 0.5 for value in numbers.values()),
        f"rank correlation of position and size: {words}",
        {"rank correlation": numbers},
        "Spearman's correlation of the position and the mean length of what a head adds to the residual stream "
        "over the length of the stream.",
        "Holds if it is beyond \u00b10.5 in a layer.",
    )


def idle_sinks(study: Study, page: Page) -> Drawn:
    """Whether heads write little when they attend to the first token."""
    with Recording.opened(study.text()) as focus:
        looks = focus.columns("AttentionFocus", per="Query")
        writes = head_updates(focus)
    keys = ("Layer", "Head", "Token Index")
    order = [numpy.lexsort([table[key] for key in reversed(keys)]) for table in (looks, writes)]
    first, size = looks["First Weight"][order[0]], writes["Magnitude"][order[1]]
    layer, position = looks["Layer"][order[0]], looks["Position"][order[0]]
    later = position > 0
    title = f"{study.name}: what a head writes, by its attention to the first token"
    figure, axes = row(page, study.layer_count, title, 66, min(4, study.layer_count))
    numbers = {}
    for number_of, panel in enumerate(axes):
        rows = later & (layer == number_of)
        panel.scatter(first[rows], size[rows], s=2, color=HEAD_COLORS[0], alpha=0.3, linewidths=0, rasterized=True)
        panel.set(title=f"Layer {number_of}", xlabel="Weight of the first token", xlim=(0, 1), ylim=(0, None))
        sink, rest = rows & (first > 0.5), rows & (first <= 0.5)
        if sink.sum() >= 20 and rest.sum() >= 20:
            numbers[str(number_of)] = float(size[sink].mean() / size[rest].mean())
    axes[0].set_ylabel("|u| / |x|")
    later_half = [value for name, value in numbers.items() if 2 * int(name) >= study.layer_count]
    holds = any(value < 0.5 for value in later_half)
    reason = _shallow(study.layer_count)
    if not (later_half or reason):
        reason = "No later layer has 20 queries that give the first token more than half of their weight."
    return figure, Result(
        holds or (None if reason else False),
        ", ".join(f"layer {name}: {number(value)} times" for name, value in numbers.items())
        or "too few queries give the first token more than half of their weight",
        {"ratio": numbers},
        "The mean size |u| / |x| of what heads write at queries that give the first token more than half of their "
        "weight, over that at all other queries (without the first of each text).",
        "Holds if the ratio is below 0.5 in a layer of the later half; needs 20 such queries.",
        "" if holds else reason,
    )


def gpt2_previous(path_of: tuple[str, PathLike], page: Page) -> Drawn:
    """Whether head 4.11 of GPT-2 attends to the previous token."""
    name, path = path_of
    with Attention.opened(path) as attention:
        scores = attention.head_scores()["Previous Token"]
        matrix = attention.attention(4, 11)
        tokens = attention.tokens()
    figure, axes = row(page, 2, f"{name}: the previous token", 66)
    shown = show_heads(axes[0], scores, page, digits=1)
    axes[0].set_title("Share of attention on the previous token")
    color_bar(figure, axes[0], shown, "Score", [0, 0.5, 1])
    shown = show_map(axes[1], matrix, page, "Head 4.11", highest=1)
    axes[1].set_xticks(range(len(tokens)), [token.strip() for token in tokens], rotation=90)
    axes[1].set_yticks(range(len(tokens)), [token.strip() for token in tokens])
    axes[1].set(xlabel="Key", ylabel="Query")
    color_bar(figure, axes[1], shown, "Weight", [0, 0.5, 1])
    best = highest(scores)
    if scores.shape[0] < 5 or scores.shape[1] < 12:
        raise Missing("the recording has no head 4.11")
    return figure, Result(
        bool(best == (4, 11) and scores[best] > 0.5),
        f"head {name_of(best)} has the most: {number(scores[best])} of its attention",
        {"previous token": scores},
        "The share of a head's attention that is on the token before the query.",
        "Holds if head 4.11 has the largest score and it is above 0.5.",
    )
