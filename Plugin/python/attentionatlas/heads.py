"""Figures of what the heads of a recorded transformer attend to in one sequence.

    pvpython -m attentionatlas.heads RECORDING ... -o DIR [--sequence S] [--layer L] [--head H]
        [--quantity Weights|NormWeighted|Rollout] [--width-mm MM] [--font-size PT] [--dark]
        [--format png|pdf|svg] [--width PIXELS]

One head with its tokens, before and after the softmax, as lines between words (sentence.py has more of them),
and of images on the picture; a layer; all layers and heads as a matrix; and what each head is known for. Each
is also a function that returns a matplotlib Figure: weights("run.safetensors", layer=4, head=11). A head or
sequence of -1 is the mean over all.
"""

import argparse
import collections
import math
import pathlib
import sys

import numpy

from attentionatlas._internal.charts import SHARES, color_bar, drawn_from, enlarged, fit, label_heads, show_matrix
from attentionatlas._internal.recording import Recording
from attentionatlas._internal.style import ORANGES, WEIGHTS
from attentionatlas.output import Output, add_options, options
from attentionatlas.patches import heads_of_patch, patches
from attentionatlas.sentence import sentence

#: More labels than these cannot be read.
_LABELS = 40
#: What the figure of weights can show, and how some are written.
QUANTITIES = ("Weights", "NormWeighted", "Rollout")
_NAMES = {"NormWeighted": "Norm-weighted"}


def _label_tokens(axes, tokens):
    """Writes the tokens beside the rows and below the columns of a matrix."""
    if len(tokens) > _LABELS:
        tokens = []
    texts = [token.strip() or repr(token) for token in tokens]
    axes.set_xticks(range(len(texts)), texts, rotation=90)
    axes.set_yticks(range(len(texts)), texts)
    axes.tick_params(length=0)
    axes.set(xlabel="Key", ylabel="Query")


def _title(recording, layer, head, quantity):
    name = _NAMES.get(quantity, quantity).lower()
    if quantity == "Rollout":
        return f"Layers {recording.layers[0]} to {layer}: {name}"
    return f"Layer {layer}, {'mean of all heads' if head == -1 else f'head {head}'}: {name}"


def draw_head(recording, page, layer, head, quantity, **colors):
    """A figure of one quantity of a head with its tokens; scores that the mask excludes are hidden."""
    layer = recording.layers[0] if layer is None else layer
    matrix = recording.matrix(layer, head, quantity)
    if quantity == "Scores" and not numpy.triu(recording.matrix(layer, head), 1).any():
        matrix[numpy.triu_indices(len(matrix), 1)] = numpy.nan  # excluded by the mask
    figure, (axes,) = page.panels(1)
    axes.set_title(_title(recording, layer, head, quantity))
    shown = show_matrix(axes, matrix, page.pixels(1), **colors)
    _label_tokens(axes, recording.tokens)
    bar = color_bar(figure, axes, shown, _NAMES.get(quantity, quantity), SHARES)
    if quantity != "Weights":
        low, high = shown.get_clim()
        ticks = low + (high - low) * SHARES
        digits = 1 if high - low >= 1 else 2
        bar.set_ticks(ticks, labels=[f"{tick:.{digits}f}" for tick in ticks])
    return fit(figure)


@drawn_from(Recording.opened)
def scores(recording, page, layer=None, head=0):
    """The scaled products of queries and keys of a head, before the softmax."""
    return draw_head(recording, page, layer, head, "Scores", cmap=ORANGES)


@drawn_from(Recording.opened)
def weights(recording, page, layer=None, head=0, quantity="Weights"):
    """The attention weights of a head, or of their mean (-1).

    quantity: Weights; NormWeighted, weight times the norm of value W_O (Kobayashi et al. 2020); or Rollout, from
    the first recorded layer to this one (Abnar and Zuidema 2020).
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity: expected one of {', '.join(QUANTITIES)}, found {quantity}.")
    highest = 1 if quantity == "Weights" else None
    return draw_head(recording, page, layer, head, quantity, cmap=WEIGHTS, vmin=0, vmax=highest)


@drawn_from(Recording.opened)
def layer_weights(recording, page, layer=None):
    """The attention weights of each head of a layer, the first one by default."""
    layer = recording.layers[0] if layer is None else layer
    title = f"Layer {layer}: weights of its {recording.heads} heads"
    figure, axes = page.panels(recording.heads, title=title)
    columns = page.columns(recording.heads)
    for head, panel in enumerate(axes):
        matrix = recording.matrix(layer, head)
        shown = show_matrix(panel, matrix, page.pixels(columns), cmap=WEIGHTS, vmin=0, vmax=1)
        panel.set(title=f"Head {head}", xticks=[], yticks=[])
    color_bar(figure, axes, shown, "Weights", SHARES)
    return fit(figure)


def _mosaic(recording, pixels):
    """The weights of all heads as one matrix, a row of tiles per layer, with narrow gaps; long ones are pooled."""
    side = max(24, math.ceil(pixels / recording.heads))
    gap = side // 24
    tiles = (map(lambda tile: enlarged(tile, side), row) for row in recording.panels(side))
    return numpy.block([[numpy.pad(tile, gap, constant_values=numpy.nan) for tile in row] for row in tiles])


@drawn_from(Recording.opened)
def all_heads(recording, page):
    """The attention weights of every layer (rows) and head (columns)."""
    mosaic = _mosaic(recording, page.pixels(1))
    side = mosaic.shape[1] / recording.heads
    figure, (axes,) = page.panels(1)
    axes.set_title(f"Weights of {len(recording.layers)} layers \u00d7 {recording.heads} heads")
    shown = show_matrix(axes, mosaic, page.pixels(1), cmap=WEIGHTS, vmin=0, vmax=1)
    columns = {head: (head + 0.5) * side - 0.5 for head in range(recording.heads)}
    label_heads(axes, columns, {layer: (row + 0.5) * side - 0.5 for row, layer in enumerate(recording.layers)})
    color_bar(figure, axes, shown, "Weights", SHARES)
    return fit(figure)


@drawn_from(Recording.opened)
def head_scores(recording, page):
    """What each head is known for: the share of its attention that is in a pattern, and prefix matching and sink.

    The names are those of HeadScores, with its default measure. Scores that no head has are left out, such as
    those of repetitions in a text that has none.
    """
    columns = {name: matrix for name, matrix in recording.scores().items() if matrix.any() or name == "Sink"}
    across = min(3, len(columns))
    figure, axes = page.panels(len(columns), across, title="What each head is known for")
    for panel, (name, matrix) in zip(axes, columns.items()):
        shown = show_matrix(panel, matrix, page.pixels(across), cmap=WEIGHTS, vmin=0, vmax=1)
        step = max(1, math.ceil(max(matrix.shape) / 12))
        rows = {layer: row for row, layer in enumerate(recording.layers) if row % step == 0}
        label_heads(panel, {head: head for head in range(0, recording.heads, step)}, rows)
        panel.set_title(name)
    color_bar(figure, axes, shown, "Score", SHARES)
    return fit(figure)


#: A figure of a recording: its title, what it shows, its function, and the arguments that this takes.
Figure = collections.namedtuple("Figure", "title sentence draw arguments")

FIGURES = {
    "scores": Figure(
        "What a head compares: scores",
        "The scaled products of queries (rows) and keys (columns) of one head, before the softmax; grey "
        "where the mask excludes the key.",
        scores,
        ("layer", "head"),
    ),
    "weights": Figure(
        "What a head attends to: weights",
        "The same head after the softmax: how much each query (row) attends to each key (column), from white "
        "(not at all) to dark blue (to it alone).",
        weights,
        ("layer", "head", "quantity"),
    ),
    "sentence": Figure(
        "What a head connects: words",
        "The same weights as lines from queries (left) to keys (right), and what each key receives as bars. Of "
        "long texts, the first 256 tokens.",
        sentence,
        ("layer", "head", "quantity"),
    ),
    "patches": Figure(
        "What the class token attends to: patches",
        "The same head on the picture that the model saw: the heat of the class token, or of a patch; arrows from "
        "each patch to its strongest key, and marks of the patches that attend most to themselves (discs) or to "
        "the class token (squares).",
        patches,
        ("layer", "head", "quantity"),
    ),
    "patches-heads": Figure(
        "Patches in all heads",
        "What the class token attends to, in every layer (rows) and head (columns), each up to its own largest "
        "weight.",
        heads_of_patch,
        ("quantity",),
    ),
    "layer": Figure(
        "The heads of a layer",
        "The weights of each head of that layer on the same sequence.",
        layer_weights,
        ("layer",),
    ),
    "all-heads": Figure(
        "All heads",
        "The weights of every recorded layer (rows) and head (columns).",
        all_heads,
        (),
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


def render_named(path, folder, sequence=0, layer=None, head=0, output=None, quantity="Weights"):
    """Renders the figures of a recording; returns {name in FIGURES: path}.

    As render; the scores are omitted if the recording holds attention weights only, and figures of patches
    unless it is one of images.
    """
    output = output or Output()
    place = {"layer": layer, "head": head, "quantity": quantity}
    folder, stem, written = pathlib.Path(folder), pathlib.Path(path).stem, {}
    with Recording.opened(path, sequence) as recording:
        folder.mkdir(parents=True, exist_ok=True)
        missing = [] if recording.has_scores else ["scores"]
        missing += [] if recording.has_images else ["patches", "patches-heads"]
        for name, figure in FIGURES.items():
            if name in missing:
                continue
            arguments = {key: place[key] for key in figure.arguments}
            drawn = figure.draw(recording, **arguments, **output.options)
            written[name] = output.write(drawn, folder, f"{stem}-{name}")
    return written


def render(
    path, folder, sequence=0, layer=None, head=0, width=2400, format="png", quantity="Weights", **style
):
    """Renders the figures of a recording; returns their paths.

    sequence, layer (the first by default), head, quantity of the weights: what to show. width: of a PNG, in pixels. format: png,
    pdf or svg. style: width_mm (180), font_size in points (7), dark (False). Raises FileNotFoundError or
    ValueError.
    """
    output = Output(format, width, **style)
    return list(render_named(path, folder, sequence, layer, head, output, quantity).values())


def add_place_options(parser):
    """Adds the options that select a sequence, layer and head to the parser of a command line."""
    parser.add_argument("--sequence", type=int, default=0, help="of the recordings (default: 0)")
    parser.add_argument("--layer", type=int, help="to show large (default: the first recorded one)")
    parser.add_argument("--head", type=int, default=0, help="to show large; -1: their mean (default: 0)")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="pvpython -m attentionatlas.heads",
        description="Renders figures of what the heads of a recorded transformer attend to.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="safetensors, npy or npz")
    add_options(parser)
    add_place_options(parser)
    parser.add_argument("--quantity", choices=QUANTITIES, default="Weights", help="of the weights (default: Weights)")
    found = parser.parse_args(arguments)
    try:
        for path in found.recordings:
            place = (found.sequence, found.layer, found.head)
            for file in render(path, found.output, *place, quantity=found.quantity, **options(found)):
                print(file, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
