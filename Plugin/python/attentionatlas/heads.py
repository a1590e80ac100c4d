"""Figures of what the heads of a recorded transformer attend to in one sequence.

    attention-atlas figures RECORDING ... -o DIR [--sequence S] [--layer L] [--head H]
        [--quantity Weights|NormWeighted|Rollout] [--width-mm MM] [--font-size PT] [--dark]
        [--format png|pdf|svg] [--width PIXELS]

One head with its tokens, before and after the softmax, as lines between words (sentence.py has more of them),
and of images on the picture; a layer; all layers and heads as a matrix; and what each head is known for. Each
is also a function that returns a matplotlib Figure: weights("run.safetensors", layer=4, head=11). A head or
sequence of "mean" is the mean over all.
"""

from __future__ import annotations

import argparse
import math
import pathlib
from collections.abc import Callable, Sequence as Listed
from typing import Any, NamedTuple

import numpy

from attentionatlas._internal.arguments import MEAN, Head, PathLike, Sequence, head_name, head_option, word
from attentionatlas._internal.charts import SHARES, Page, color_bar, drawn_from, enlarged, label_heads, label_tokens, show_matrix
from attentionatlas._internal.names import own
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.recording import Recording
from attentionatlas._internal.style import SIGNED, WEIGHTS
from attentionatlas.output import Output, add_options, options
from attentionatlas.patches import all_heads as heads_on_picture
from attentionatlas.patches import one_head
from attentionatlas.sentence import lines

__dir__ = own(__name__)

#: The share of a page's width that a square matrix has.
_SIDE = 0.82
#: The cells on a side of a tile in the matrix of all heads, at least. The gap around a tile is one cell for each so many.
_TILE = 24
#: What the figure of weights can show, and how some are written.
QUANTITIES = ("Weights", "NormWeighted", "Rollout")
_NAMES = {"NormWeighted": "Norm-weighted"}


def _label_tokens(axes: Any, queries: list[str], keys: list[str], room_mm: float) -> None:
    """Writes the tokens, or the positions of many, beside the rows and below the columns of a matrix."""
    for axis, name, tokens in ((axes.xaxis, "Key", keys), (axes.yaxis, "Query", queries)):
        has_tokens = label_tokens(axis, tokens, room_mm)
        axis.set_label_text(name if has_tokens else f"{name} position")
        if has_tokens and axis is axes.xaxis:
            axis.set_tick_params(rotation=90)


def _title(recording: Recording, layer: int, head: int, quantity: str) -> str:
    name = _NAMES.get(quantity, quantity).lower()
    if quantity == "Rollout":
        return f"Layers {recording.layer_numbers[0]} to {layer}: {name}"
    return f"Layer {layer}, {head_name(head)}: {name}"


def draw_head(
    recording: Recording, page: Page, layer: int | None, head: Head, sequence: Sequence, quantity: str, **colors: Any
) -> tuple[Any, Any]:
    """A figure of one quantity of a head with its tokens, and its axes; scores that the mask excludes are hidden."""
    layer, head, sequence = recording.place(layer, head, sequence)
    matrix = recording.attention(layer, head, sequence, quantity)
    is_signed = quantity == "Scores"
    queries, keys = recording.sides(sequence)
    if is_signed and queries is keys and not numpy.triu(recording.attention(layer, head, sequence), 1).any():
        matrix[numpy.triu_indices(len(matrix), 1)] = numpy.nan  # excluded by the mask
    if is_signed:
        most = float(numpy.nanmax(numpy.abs(matrix), initial=0)) or 1
        colors = {"cmap": page.colors(SIGNED), "vmin": -most, "vmax": most}
    figure, (axes,) = page.panels(1)
    axes.set_title(_title(recording, layer, head, quantity))
    shown = show_matrix(axes, matrix, page.pixels(1), **colors)
    if sequence == MEAN:
        queries = keys = []
    _label_tokens(axes, queries, keys, _SIDE * page.width_mm)
    bar = color_bar(figure, axes, shown, _NAMES.get(quantity, quantity), SHARES)
    if quantity != "Weights":
        low, high = shown.get_clim()
        ticks = numpy.linspace(low, high, 5 if is_signed else 6)
        digits = 1 if high - low >= 1 else 2
        bar.set_ticks(ticks, labels=[f"{tick:.{digits}f}".replace("-", "\u2212") for tick in ticks])
    return figure, axes


@drawn_from(Recording)
def scores(recording: Recording, page: Page, layer: int | None = None, head: Head = 0, sequence: Sequence = 0) -> Any:
    """The scaled products of queries and keys of a head, before the softmax."""
    figure, _ = draw_head(recording, page, layer, head, sequence, "Scores")
    return page.fit(figure)


@drawn_from(Recording)
def weights(
    recording: Recording, page: Page, layer: int | None = None, head: Head = 0, sequence: Sequence = 0,
    quantity: str = "Weights",
) -> Any:
    """The attention weights of a head, or of "mean", that of all heads.

    quantity: Weights; NormWeighted, weight times the norm of value W_O (Kobayashi et al. 2020); or Rollout, from
    the first recorded layer to this one (Abnar and Zuidema 2020).
    """
    quantity = word("quantity", quantity, QUANTITIES)
    highest = 1 if quantity == "Weights" else None
    figure, _ = draw_head(recording, page, layer, head, sequence, quantity, cmap=page.colors(WEIGHTS), vmin=0, vmax=highest)
    return page.fit(figure)


@drawn_from(Recording)
def layer_weights(recording: Recording, page: Page, layer: int | None = None, sequence: Sequence = 0) -> Any:
    """The attention weights of each head of a layer, the first one by default."""
    layer, _, _ = recording.place(layer, 0, sequence)
    title = f"Layer {layer}: weights of its {recording.head_count} heads"
    figure, axes = page.panels(recording.head_count, title=title)
    columns = page.columns(recording.head_count)
    for head, panel in enumerate(axes):
        matrix = recording.attention(layer, head, sequence)
        shown = show_matrix(panel, matrix, page.pixels(columns), cmap=page.colors(WEIGHTS), vmin=0, vmax=1)
        panel.set(title=f"Head {head}", xticks=[], yticks=[])
    color_bar(figure, axes, shown, "Weights", SHARES)
    return page.fit(figure)


def _mosaic(recording: Recording, pixels: int, sequence: Sequence) -> Any:
    """The weights of all heads as one matrix, a row of tiles per layer, with narrow gaps; long ones are pooled."""
    side = max(_TILE, math.ceil(pixels / recording.head_count))
    tiles = (map(lambda tile: enlarged(tile, _TILE), row) for row in recording.panels(side, sequence))
    return numpy.block([[numpy.pad(tile, round(len(tile) / _TILE), constant_values=numpy.nan) for tile in row] for row in tiles])


@drawn_from(Recording)
def all_heads(recording: Recording, page: Page, sequence: Sequence = 0) -> Any:
    """The attention weights of every layer (rows) and head (columns)."""
    mosaic = _mosaic(recording, page.pixels(1), sequence)
    side = mosaic.shape[1] / recording.head_count
    figure, (axes,) = page.panels(1)
    axes.set_title(f"Weights of {len(recording.layer_numbers)} layers \u00d7 {recording.head_count} heads")
    shown = show_matrix(axes, mosaic, page.pixels(1), cmap=page.colors(WEIGHTS), vmin=0, vmax=1)
    columns = {head: (head + 0.5) * side - 0.5 for head in range(recording.head_count)}
    label_heads(axes, columns, {layer: (row + 0.5) * side - 0.5 for row, layer in enumerate(recording.layer_numbers)})
    color_bar(figure, axes, shown, "Weights", SHARES)
    return page.fit(figure)


@drawn_from(Recording)
def head_scores(recording: Recording, page: Page) -> Any:
    """What each head is known for: the share of its attention that is in a pattern, and prefix matching and sink.

    The names are those of HeadScores, with its default measure. Scores that no head has are left out, such as
    those of repetitions in a text that has none.
    """
    columns = {name: matrix for name, matrix in recording.head_scores().items() if matrix.any() or name == "Sink"}
    across = min(3, len(columns))
    figure, axes = page.panels(len(columns), across, title="What each head is known for")
    for panel, (name, matrix) in zip(axes, columns.items()):
        shown = show_matrix(panel, matrix, page.pixels(across), cmap=page.colors(WEIGHTS), vmin=0, vmax=1)
        step = max(1, math.ceil(max(matrix.shape) / 12))
        rows = {layer: row for row, layer in enumerate(recording.layer_numbers) if row % step == 0}
        label_heads(panel, {head: head for head in range(0, recording.head_count, step)}, rows)
        panel.set_title(name)
    color_bar(figure, axes, shown, "Score", SHARES)
    return page.fit(figure)


class Figure(NamedTuple):
    """A figure for render: its title, what it shows, its function, and which arguments of render this takes."""

    title: str
    sentence: str
    draw: Callable[..., Any]
    arguments: tuple[str, ...]


FIGURES = {
    "scores": Figure(
        "What a head compares: scores",
        "The scaled products of queries (rows) and keys (columns) of one head, before the softmax: red above 0, blue "
        "below; grey where the mask excludes the key.",
        scores,
        ("layer", "head", "sequence"),
    ),
    "weights": Figure(
        "What a head attends to: weights",
        "The same head after the softmax: how much each query (row) attends to each key (column), from white "
        "(not at all) to dark blue (to it alone).",
        weights,
        ("layer", "head", "sequence", "quantity"),
    ),
    "sentence": Figure(
        "What a head connects: words",
        "The same weights as lines from queries (left) to keys (right), and what each key receives as bars. Of "
        "long texts, the first 256 tokens.",
        lines,
        ("layer", "head", "sequence", "quantity"),
    ),
    "patches": Figure(
        "What the class token attends to: patches",
        "The same head on the picture that the model saw: the heat of the class token, or of a patch; arrows from "
        "each patch to its strongest key, and marks of the patches that attend most to themselves (discs) or to "
        "the class token (squares).",
        one_head,
        ("layer", "head", "sequence", "quantity"),
    ),
    "patches-heads": Figure(
        "Patches in all heads",
        "What the class token attends to, in every layer (rows) and head (columns), each up to its own largest "
        "weight.",
        heads_on_picture,
        ("sequence", "quantity"),
    ),
    "layer": Figure(
        "The heads of a layer",
        "The weights of each head of that layer on the same sequence.",
        layer_weights,
        ("layer", "sequence"),
    ),
    "all-heads": Figure(
        "All heads",
        "The weights of every recorded layer (rows) and head (columns).",
        all_heads,
        ("sequence",),
    ),
    "head-scores": Figure(
        "What each head is known for",
        "How much of the attention of each head is on the token before, on earlier copies of the same token, and on "
        "the token after those (induction); the mean attention of repeated tokens to the latter (prefix matching), "
        "and of all to the first token (sink).",
        head_scores,
        (),
    ),
}


def render_named(
    path: PathLike, folder: PathLike, layer: int | None = None, head: Head = 0, sequence: Sequence = 0,
    output: Output | None = None, quantity: str = "Weights", only: Listed[str] | None = None,
) -> dict[str, pathlib.Path]:
    """Renders the figures of a recording; returns {name in FIGURES: path}.

    As render; the scores are omitted if the recording holds attention weights only, and figures of patches
    unless it is one of images or of pictures among words. only: names of FIGURES, all by default; raises Missing for one
    that is omitted.
    """
    output = output or Output()
    place = {"layer": layer, "head": head, "sequence": sequence, "quantity": quantity}
    folder, stem, written = pathlib.Path(folder), pathlib.Path(path).stem, {}
    with Recording.opened(path) as recording:
        folder.mkdir(parents=True, exist_ok=True)
        missing = [] if recording.has_scores else ["scores"]
        missing += [] if recording.has_images or recording.has_pictures else ["patches", "patches-heads"]
        for name in only or FIGURES:
            figure = FIGURES[name]
            if name in missing and only:
                raise Missing(f"{stem}: the recording holds nothing for the figure {name}.")
            if name in missing:
                continue
            arguments = {key: place[key] for key in figure.arguments}
            drawn = figure.draw(recording, **arguments, **output.options)
            written[name] = output.write(drawn, folder, f"{stem}-{name}")
    return written


def render(
    path: PathLike, folder: PathLike, layer: int | None = None, head: Head = 0, sequence: Sequence = 0, width: int = 2400,
    format: str = "png", quantity: str = "Weights", **style: Any,
) -> list[pathlib.Path]:
    """Renders the figures of a recording; returns their paths.

    layer (the first by default), head, sequence, quantity of the weights: what to show. width: of a PNG, in pixels. format: png,
    pdf or svg. style: width_mm (180), font_size in points (7), dark (False). Raises FileNotFoundError or
    ValueError.
    """
    output = Output(format, width, **style)
    return list(render_named(path, folder, layer, head, sequence, output, quantity).values())


def add_place_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select a sequence, layer and head to the parser of a command line."""
    parser.add_argument("--sequence", type=head_option, default=0, help="of the recordings: a number, or mean (default: 0)")
    parser.add_argument("--layer", type=int, help="to show large (default: that of the head)")
    parser.add_argument("--head", type=head_option, default=0, help="to show large: a number, or mean (default: the one "
        "with most to see, by prefix matching, the token before or the first token; with --layer 0)")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders figures of what the heads of a recorded transformer attend to.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="safetensors, npy or npz")
    add_options(parser)
    add_place_options(parser)
    parser.add_argument("--quantity", choices=QUANTITIES, default="Weights", help="of the weights (default: Weights)")
    return parser


def main(arguments: Listed[str] | None = None, only: Listed[str] | None = None) -> None:
    """only: as render_named."""
    found = _parser().parse_args(arguments)
    try:
        output = Output(**options(found))
        for path in found.recordings:
            place = (found.layer, found.head, found.sequence)
            for file in render_named(path, found.output, *place, output, found.quantity, only).values():
                print(file, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
