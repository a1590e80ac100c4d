"""Figures of where the heads of a recorded transformer look and what they write ("Attention Focus Plots").

    attention-atlas figures RECORDING ... -o DIR [--model CONFIG] [--sequence S] [--layer L] [--head H]
        [--quantity Weights|NormWeighted] [--ranks K] [--width-mm MM] [--font-size PT] [--dark]
        [--format png|pdf|svg] [--width PIXELS]

The scores of one head with the strongest key of each query; its scores as ALiBi + bias + attention, and the
bias against ALiBi (with --model, the config.json of the transformer that was recorded); the heads of every
layer, sorted by how often they look at themselves or the first token, and by how concentrated they are; and
how much each head changes the residual stream (of recordings with head outputs and residual). Each is also a
function that returns a matplotlib Figure: heads_by_layer("run.safetensors", measure="Concentration").
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import sys
from collections.abc import Sequence as Listed
from typing import Any

import matplotlib
import numpy
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, PowerNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from attentionatlas import heads
from attentionatlas._internal import data
from attentionatlas._internal.arguments import Head, PathLike, word
from attentionatlas._internal.charts import Page, color_bar, drawn_from, foreground, label_tokens, show_matrix
from attentionatlas._internal.checks import check
from attentionatlas._internal.names import own
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.recording import Recording, Transformer
from attentionatlas._internal.style import GREY, HEAD_COLORS, WEIGHTS
from attentionatlas.heads import Figure
from attentionatlas.output import Output, add_options, options

__dir__ = own(__name__)

#: What sorts the heads of a layer: values of the property Measure of AttentionFocus, and axis labels.
MEASURES = {
    "StrongestIsSelf": "Share of queries whose strongest key is their own",
    "StrongestIsFirst": "Share of queries whose strongest key is the first",
    "Concentration": "Largest \u2212 second largest weight",
    "SelfWeight": "Weight of the own key",
    "FirstWeight": "Weight of the first key",
    "Entropy": "Entropy / ln(keys)",
    "SinkRate": "Share of queries with a sink",
}
QUANTITIES = ("Weights", "NormWeighted")
#: Kinds of strongest keys: the value of the array Kind, its color, its name.
_KINDS = ((1, "#009e73", "the query itself"), (2, "#cc79a7", "first token"), (0, "#e69f00", "another"))
#: The parts of a score, with their colors.
_PARTS = dict(zip(("ALiBi", "Bias", "Attention", "Distance Bias"), HEAD_COLORS))
#: Points that a scatter plot draws as vectors; of more it makes an image.
_VECTORS = 5000


def _has_updates(recording: Recording) -> bool:
    for layer in map(data.blocks, data.blocks(data.first_part(recording.reader)).values()):
        if layer and data.has_column(next(iter(layer.values())), "Output"):
            return "residual" in layer
    return False


def updates(recording: Recording, port: int = 0) -> dict[str, Any]:
    """The columns of a table of HeadUpdates; raises Missing without head outputs and residual."""
    if not _has_updates(recording):
        raise Missing(f"{recording.name} holds no head outputs and residual")
    return recording.columns("HeadUpdates", port)


def _label_positions(axes: Any, tokens: list[str], room_mm: float) -> None:
    """Writes the tokens, or positions if they are many, below an axis of positions."""
    if label_tokens(axes.xaxis, tokens, room_mm):
        axes.xaxis.set_tick_params(rotation=90)
    axes.margins(x=0.02)


@drawn_from(Recording)
def scores(recording: Recording, page: Page, layer: int | None = None, head: Head = 0, sequence: int = 0) -> Any:
    """The scores of a head before the softmax; frames mark the strongest key of each query."""
    layer, head, sequence = recording.place(layer, head, sequence)
    figure, axes = heads.draw_head(recording, page, layer, head, sequence, "Scores")
    page.fit(figure)
    colors = {kind: color for kind, color, _ in _KINDS}
    weights = recording.attention(layer, head, sequence)
    side = axes.get_window_extent().width / axes.figure.dpi * 72 / len(weights)  # of a cell, in points
    width = min(2, max(0.4, 0.15 * side))
    inner = 0.5 - min(0.3, 0.5 * width / side)
    place = {"layer": layer, "head": head, "sequence": sequence}
    strongest = recording.strongest_keys(**place)
    for query, key, kind in zip(*(strongest[name].astype(int).tolist() for name in ("Query", "Key", "Kind"))):
        corner = (key - inner, query - inner)
        frame = Rectangle(corner, 2 * inner, 2 * inner, fill=False, linewidth=width, edgecolor=colors[kind])
        axes.add_patch(frame)
    handles = [Line2D([], [], color=color, label=name) for _, color, name in _KINDS]
    if numpy.triu(weights, 1).any():  # nowhere to write
        axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), borderpad=0, ncol=3)
    else:
        legend = axes.legend(handles=handles, title="Strongest key of a query", loc="upper right", labelcolor="black")
        legend.get_title().set_color("black")  # on light grey, on dark pages too
    return page.fit(figure)


@drawn_from(Recording)
def breakdown(
    recording: Recording, page: Page, layer: int | None = None, head: int = 0, sequence: int = 0, ranks: int = 4
) -> Any:
    """The largest scores of each query as ALiBi + bias + attention, a panel per rank. Needs the model.

    ranks: how many of the largest scores, 1 to 16.
    """
    check("ranks", ranks, 1, 16)
    layer, head, sequence = recording.place(layer, head, sequence)
    table = recording.columns("ScoreBreakdown", layer=layer, head=head, sequence=sequence, top=ranks)
    ranks, (tokens, _) = int(table["Rank"].max()) + 1, recording.sides(sequence)
    columns = 2 if page.width_mm >= 120 and ranks > 1 else 1
    title = f"Layer {layer}, head {head}: parts of the k-th largest scores"
    figure, panels = page.panels(ranks, columns, title, square=False, height_mm=55 * -(-ranks // columns) + 12)
    parts = [name for name in _PARTS if name in table and table[name].any()]  # which the model has
    values = numpy.concatenate([table[name] for name in (*parts, "Score")])
    low, high = values.min(), values.max()
    for rank, axes in enumerate(panels):
        rows = table["Rank"] == rank
        query = table["Query"][rows]
        for name in parts:
            axes.plot(query, table[name][rows], color=_PARTS[name], marker=".", markersize=3, label=name)
        axes.plot(query, table["Score"][rows], color=foreground(), linestyle=":", label="Score")
        axes.set(title=f"k = {rank + 1}", ylim=(low - 0.05 * (high - low), high + 0.05 * (high - low)))
        axes.set_ylabel("Score" if rank % columns == 0 else "")
        axes.set_xlabel("Query" if rank + columns >= ranks else "")
        axes.set_xlim(-0.5, len(tokens) - 0.5)
        _label_positions(axes, tokens, 0.85 * page.width_mm / columns)
    above = 1.6 if columns > 1 else 0.5  # beside the title of all panels, in heights of letters
    panels[columns - 1].legend(loc="lower right", bbox_to_anchor=(1, 1), borderpad=0, borderaxespad=above, ncol=4)
    return figure


@drawn_from(Recording)
def key_parts(recording: Recording, page: Page, layer: int | None = None, head: int = 0, sequence: int = 0) -> Any:
    """The parts of a head's scores that depend on the key alone, bias and ALiBi, without their means. Needs the model."""
    layer, head, sequence = recording.place(layer, head, sequence)
    table = recording.columns("ScoreBreakdown", 1, layer=layer, head=head, sequence=sequence)
    parts = [name for name in ("ALiBi", "Bias") if table[name].any()]
    if not parts:
        raise Missing(f"{recording.name}: the model has neither ALiBi nor a bias of queries")
    figure, (axes,) = page.panels(1, square=False, height_mm=70)
    for name in parts:
        axes.plot(table["Position"], table[name], color=_PARTS[name], marker=".", markersize=3, label=name)
    axes.axhline(0, color=GREY, linewidth=0.4, zorder=0)
    axes.set(title=f"Layer {layer}, head {head}: what a key adds to every score", xlabel="Key")
    axes.set_ylabel("Score \u2212 mean over keys")
    axes.legend()
    _, tokens = recording.sides(sequence)
    _label_positions(axes, tokens[: len(table["Position"])], 0.9 * page.width_mm)
    return figure


def _numbers(numbers: list[str], shown: int) -> str:
    """The first numbers in words, and how many are left."""
    rest = [f"+{len(numbers) - shown}"] if shown < len(numbers) else []
    return " ".join([*numbers[:shown], *rest])


def _label_heads(axes: Any, layer: int, ranked: list[tuple[float, int]], width: int) -> None:
    """Writes the numbers of heads beside their points; those of points that are too near share the place between them.

    ranked: (value, head) from the largest value on. width: the letters that fit.
    """
    low, high = axes.get_ylim()
    points = axes.get_window_extent().height / axes.figure.dpi * 72
    height = 1.1 * matplotlib.rcParams["font.size"] / points
    groups: list[list[tuple[float, int]]] = []
    middle = [0.0]  # of each group
    for one in ranked:
        groups.append([one])
        middle = [sum(value for value, _ in group) / len(group) for group in groups]
        while len(groups) > 1 and middle[-2] - middle[-1] < height * (high - low):
            groups[-2:] = [groups[-2] + groups[-1]]
            middle[-2:] = [sum(value for value, _ in groups[-1]) / len(groups[-1])]
    for value, group in zip(middle, groups):
        numbers = [str(head) for _, head in group]
        shown = len(numbers)
        while shown > 0 and len(_numbers(numbers, shown)) > width:
            shown -= 1
        box = {"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 0.2}
        axes.annotate(
            _numbers(numbers, shown), (layer, value), (2.5, 0), textcoords="offset points", va="center", size="small", bbox=box
        )


@drawn_from(Recording)
def heads_by_layer(
    recording: Recording, page: Page, measure: str = "StrongestIsSelf", quantity: str = "Weights",
    exclude_first: bool = False,
) -> Any:
    """A measure of all heads against the layer: a point with its number for each head."""
    measure, quantity = word("measure", measure, MEASURES), word("quantity", quantity, QUANTITIES)
    table = recording.columns("AttentionFocus", 1, measure=measure, quantity=quantity, exclude_first=exclude_first)
    layers = sorted({int(layer) for layer in table["Layer"]})
    figure, (axes,) = page.panels(1, square=False, height_mm=min(120, 0.6 * page.width_mm))
    weighted = ", norm-weighted" if quantity == "NormWeighted" else ""
    axes.set(title=MEASURES[measure] + weighted, xlabel="Layer")
    axes.scatter(table["Layer"], table["Value"], s=5, color=HEAD_COLORS[0], linewidths=0, zorder=2)
    axes.set_xticks(layers)
    span, top = max(1, layers[-1] - layers[0]), max(0.1, table["Value"].max())
    axes.set(ylim=(-0.03 * top, 1.05 * top), xlim=(layers[0] - 0.02 * span, layers[-1] + 0.12 * span))
    page.settle(figure)
    letter = 0.55 * matplotlib.rcParams["font.size"]
    points = axes.get_window_extent().width / axes.figure.dpi * 72 / (1.14 * span)  # of a layer
    for layer, after in zip(layers, [*layers[1:], layers[-1] + 0.12 * span]):
        rows = table["Layer"] == layer
        ranked = zip(table["Value"][rows], table["Head"][rows])
        _label_heads(axes, layer, list(ranked), max(2, int((after - layer) * points / letter)))
    return figure


def _histograms(recording: Recording, page: Page, name: str, label: str) -> Any:
    table = updates(recording, 1)
    layers = recording.layer_numbers
    columns = page.columns(len(layers))
    title = f"{label}: a row per head"
    height = 34 * -(-len(layers) // columns) + 14
    figure, panels = page.panels(len(layers), columns, title, square=False, height_mm=height)
    most = table[f"{name} Count"].max()
    for layer, axes in zip(layers, panels):
        rows = table["Layer"] == layer
        counts = table[f"{name} Count"][rows].reshape(-1, 50).astype(float)
        shown = show_matrix(axes, counts, page.pixels(columns), cmap=page.colors(WEIGHTS), norm=PowerNorm(0.5, 0, most))
        axes.set_aspect("auto")
        low, high = table[f"{name} Low"][rows][0], table[f"{name} High"][rows][-1]
        ends = (low, (low + high) / 2, high)
        axes.set_xticks([-0.5, 24.5, 49.5], [f"{value:.2g}".replace("-", "\u2212") for value in ends])
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set(title=f"Layer {layer}")
    panels[0].set_ylabel("Head")
    color_bar(figure, panels, shown, "Tokens", sorted({0, round(most / 4), most}))
    return figure


@drawn_from(Recording)
def magnitudes(recording: Recording, page: Page) -> Any:
    """How much each head changes the residual stream: a histogram of its update over the tokens."""
    return _histograms(recording, page, "Magnitude", "Update magnitude |u| / |x|")


@drawn_from(Recording)
def orientations(recording: Recording, page: Page) -> Any:
    """The cosine of each head's update with the residual stream: a histogram over the tokens."""
    return _histograms(recording, page, "Orientation", "Update orientation cos(u, x)")


def _layer_colors(recording: Recording) -> Any:
    """A color for each layer, from dark blue to orange."""
    return ListedColormap(matplotlib.cm.plasma(numpy.linspace(0, 0.82, len(recording.layer_numbers))))


def _layer_bar(figure: Any, axes: Any, recording: Recording) -> None:
    count = len(recording.layer_numbers)
    norm = BoundaryNorm(numpy.arange(count + 1) - 0.5, count)
    step = -(-count // 16)
    places = range(0, count, step)
    labels = [recording.layer_numbers[place] for place in places]
    color_bar(figure, axes, ScalarMappable(norm, _layer_colors(recording)), "Layer", places, labels)


@drawn_from(Recording)
def orientation_and_magnitude(recording: Recording, page: Page) -> Any:
    """The orientation of each update against its magnitude: all heads and tokens, colored by layer."""
    table = updates(recording)
    figure, (axes,) = page.panels(1, square=False, height_mm=min(120, 0.7 * page.width_mm))
    order = numpy.random.default_rng(0).permutation(len(table["Layer"]))  # hides no layer
    colors = _layer_colors(recording)(numpy.searchsorted(recording.layer_numbers, table["Layer"][order]))
    axes.scatter(
        table["Orientation"][order], table["Magnitude"][order], s=3, c=colors, linewidths=0, alpha=0.7,
        rasterized=len(order) > _VECTORS,
    )
    axes.axvline(0, color=GREY, linewidth=0.4, zorder=0)
    axes.set(title="What each head writes at each token", ylim=(0, None))
    axes.set(xlabel="Orientation cos(u, x)", ylabel="Magnitude |u| / |x|")
    _layer_bar(figure, axes, recording)
    return figure


@drawn_from(Recording)
def position_and_magnitude(recording: Recording, page: Page) -> Any:
    """The magnitude of each update against its position; lines are the means of layers."""
    table, means = updates(recording), updates(recording, 2)
    figure, (axes,) = page.panels(1, square=False, height_mm=min(110, 0.6 * page.width_mm))
    axes.scatter(
        table["Position"], table["Magnitude"], s=2, color=GREY, alpha=0.35, linewidths=0, zorder=1,
        rasterized=len(table["Position"]) > _VECTORS,
    )
    for layer, color in zip(recording.layer_numbers, _layer_colors(recording).colors):
        rows = means["Layer"] == layer
        axes.plot(means["Position"][rows], means["Magnitude"][rows], color=color, zorder=2)
    axes.set(title="Magnitude by position: all heads, and the means of layers", xlabel="Position", ylim=(0, None))
    axes.set_ylabel("Magnitude |u| / |x|")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _layer_bar(figure, axes, recording)
    return figure


FIGURES = {
    "focus-scores": Figure(
        "Where the queries of a head look",
        "The scores of one head before the softmax. Frames mark the strongest key of each query: green where that "
        "is its own position, purple where it is the first token, orange elsewhere.",
        scores,
        ("layer", "head", "sequence"),
    ),
    "focus-breakdown": Figure(
        "What makes a score large",
        "The largest scores of each query of one head as the sum of ALiBi, a bias that depends on the key alone, and "
        "attention.",
        breakdown,
        ("layer", "head", "sequence", "ranks"),
    ),
    "focus-bias": Figure(
        "Bias against ALiBi",
        "The parts of the scores of one head that depend on the key alone, without their means, which the softmax "
        "does not see.",
        key_parts,
        ("layer", "head", "sequence"),
    ),
    "focus-self": Figure(
        "Heads that look at themselves",
        "The share of queries whose strongest key is their own: a point for each head, with its number.",
        functools.partial(heads_by_layer, measure="StrongestIsSelf"),
        ("quantity",),
    ),
    "focus-first": Figure(
        "Heads that look at the first token",
        "The share of queries whose strongest key is the first token, likewise.",
        functools.partial(heads_by_layer, measure="StrongestIsFirst"),
        ("quantity",),
    ),
    "focus-concentration": Figure(
        "How concentrated heads are",
        "The mean difference between the largest and the second largest weight of a query, likewise. 1: all "
        "attention goes to one key.",
        functools.partial(heads_by_layer, measure="Concentration"),
        ("quantity",),
    ),
    "focus-magnitudes": Figure(
        "How much heads write",
        "The length of what each head adds to the residual stream, as a share of its length: histograms over the "
        "tokens, a row per head.",
        magnitudes,
        (),
    ),
    "focus-orientations": Figure(
        "Where to heads write",
        "The cosine of what each head adds with the residual stream, likewise.",
        orientations,
        (),
    ),
    "focus-scatter": Figure(
        "Orientation and magnitude",
        "Each point is what one head adds to the residual stream at one token.",
        orientation_and_magnitude,
        (),
    ),
    "focus-positions": Figure(
        "Position and magnitude",
        "The magnitude of what heads add against the position of the token; lines are the means of layers.",
        position_and_magnitude,
        (),
    ),
}


def render_named(
    path: PathLike, folder: PathLike, layer: int | None = None, head: Head = 0, sequence: int = 0,
    output: Output | None = None, reasons: list[str] | None = None, model: Transformer | PathLike | None = None,
    ranks: int = 4, quantity: str = "Weights", only: Listed[str] | None = None,
) -> dict[str, pathlib.Path]:
    """Renders the figures of a recording; returns {name in FIGURES: path}.

    As render. Figures for which the recording or the model is missing are left out; the reasons are
    appended to the list `reasons`, each once. only: names of FIGURES, all by default; of these ValueError is raised instead.
    """
    output = output or Output()
    place = {"layer": layer, "head": head, "sequence": sequence, "ranks": ranks, "quantity": quantity}
    folder, stem, written = pathlib.Path(folder), pathlib.Path(path).stem, {}
    with Recording.opened(path, model=model) as recording:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in FIGURES.items():
            if only and name not in only:
                continue
            if name == "focus-scores" and not recording.has_scores:
                if only:
                    raise Missing(f"{name}: {recording.name} holds neither scores nor queries and keys")
                continue
            arguments = {key: place[key] for key in figure.arguments}
            try:
                drawn = figure.draw(recording, **arguments, **output.options)
            except ValueError as reason:
                # Not every model has scores that can be split.
                if only or not isinstance(reason, Missing) and name not in ("focus-breakdown", "focus-bias"):
                    raise
                if reasons is not None and str(reason) not in reasons:
                    reasons.append(str(reason))
                continue
            written[name] = output.write(drawn, folder, f"{stem}-{name}")
    return written


def render(
    path: PathLike, folder: PathLike, layer: int | None = None, head: Head = 0, sequence: int = 0, width: int = 2400,
    format: str = "png", style: dict[str, Any] | None = None, **place: Any,
) -> list[pathlib.Path]:
    """Renders the figures of a recording; returns their paths.

    layer (the first by default), head, sequence: what to show of single heads. model: the transformer that was
    recorded, for the parts of scores. ranks: the largest scores of a query (4). quantity: Weights or NormWeighted.
    width: of a PNG, in pixels. format: png, pdf or svg. style: {"width_mm": 180, "font_size": 7, "dark": False}.
    Raises FileNotFoundError or ValueError.
    """
    output = Output(format, width, **(style or {}))
    return list(render_named(path, folder, layer, head, sequence, output, **place).values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders where the heads of a recorded transformer look and what they write.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="safetensors, npy or npz")
    add_options(parser)
    heads.add_place_options(parser)
    parser.add_argument("--model", metavar="CONFIG", help="the config.json of the model, for the parts of scores")
    parser.add_argument("--ranks", type=int, default=4, help="largest scores of a query to split (default: 4)")
    parser.add_argument("--quantity", default="Weights", help="Weights or NormWeighted (default: Weights)")
    return parser


#: Options beside those of all figures of recordings.
_OWN = ("model", "ranks", "quantity")


def own_options(arguments: Listed[str]) -> dict[str, Any]:
    """The options of the command line that only render_named of this module takes."""
    found = _parser().parse_args(arguments)
    return {name: getattr(found, name) for name in _OWN}


def main(arguments: Listed[str] | None = None, only: Listed[str] | None = None) -> None:
    """only: as render_named."""
    found = _parser().parse_args(arguments)
    place = {name: getattr(found, name) for name in ("layer", "head", "sequence", *_OWN)}
    reasons: list[str] = []
    try:
        output = Output(**options(found))
        for path in found.recordings:
            for file in render_named(path, found.output, output=output, reasons=reasons, only=only, **place).values():
                print(file, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    for reason in reasons:
        print(f"left out: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
