"""Figures of attention tokens: the tokens that vectors of the heads of a recorded transformer stand for.

    attention-atlas figures RECORDING ... --model CONFIG -o DIR [--layer L] [--head H] [--sequence S]
        [--reading Plain|Refactored|PublishedCode] [--read N] [--random] [--seed S]
        [--width-mm MM] [--font-size PT] [--dark] [--format png|pdf|svg] [--width PIXELS]

CONFIG is the config.json of the model that was recorded. A vector of a head times its W_O W_U gives a logit
for each token of the vocabulary; the largest is its attention token. Figures: the tokens of one head, of a
layer, and of that layer for random inputs beside the text; how often tokens occur and how many different
ones each head and layer has; their embeddings; and how many any two heads share. The last three are of all
sequences; with --random also of random tokens instead. Each is also a function that returns a matplotlib
Figure: one_head("run.safetensors", layer=0, head=1, model="gpt2/config.json").
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
from collections.abc import Iterable, Iterator, Sequence as Listed
from typing import Any

import matplotlib
import numpy
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.ticker import FuncFormatter, MaxNLocator
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike, index, some, word
from attentionatlas._internal.charts import Page, color_bar, drawn_from, show_matrix
from attentionatlas._internal.host import filters
from attentionatlas._internal.letters import legible
from attentionatlas._internal.names import own
from attentionatlas._internal.readers import Missing, Proxies, make_filter
from attentionatlas._internal.recording import Recording, Transformer
from attentionatlas._internal.style import HIDDEN, ORANGES
from attentionatlas.heads import Figure
from attentionatlas.output import Output, add_options, options

__dir__ = own(__name__)

READINGS = ("Plain", "Refactored", "PublishedCode")
#: The vectors of a figure, as figures name them.
VECTORS = {"QueryKey": "query \u00d7 key", "Query": "query", "Key": "key", "Value": "value"}
#: The random inputs of RandomPrompts: kind, what they are called, tokens of the block.
RANDOM = {
    "OneToken": ("one random token", 1),
    "Random": ("random tokens", 1),
    "RepeatedBlock": ("three random tokens", 3),
}
#: More labels than these cannot be read.
_LABELS = 40
#: Tokens that a color bar names, at most.
_NAMED = 24
#: The width of the border of weight 1, of the side of a cell, and the least weight that has one.
_BORDER, _LEAST = 0.35, 0.02


def _discovery() -> Any:
    colors = matplotlib.colormaps["viridis"].copy()
    colors.set_bad(HIDDEN)
    return colors


class Tokens(Proxies):
    """The attention tokens of a recording.

    source: an opened Recording, or its file. model: of a file, the transformer that was recorded. properties: of the
    filter AttentionTokens, such as reading="Refactored". Raises FileNotFoundError for a missing file, Missing without
    the model, and ValueError for what reports an error, such as a recording without queries, keys and values.
    """

    def __init__(
        self, source: Recording | PathLike, model: Transformer | PathLike | None = None, **properties: Any
    ) -> None:
        super().__init__()
        self.recording = source if isinstance(source, Recording) else Recording(source, model)
        self._own_recording = None if self.recording is source else self.recording
        self.name = self.recording.name
        chosen = {"vectors": list(VECTORS), "sequence": "all", "layer": "all", "maximum_tokens": 64, **properties}
        try:
            chosen["sequence"] = some("sequence", chosen["sequence"], range(self.recording.sequences), "all")
            self.model = self.recording.model
            inputs = {"Input": self.recording.reader, "Model": self.model.reader}
            self.filter = self.own(make_filter("AttentionTokens", inputs, chosen))
            self.rows = data.table(self.filter)
        except BaseException:
            self.close()
            raise
        self.places = sorted(set(zip(self.rows["Layer"].tolist(), self.rows["Head"].tolist())))
        self.layers = sorted({layer for layer, _ in self.places})
        self.heads = max(head for _, head in self.places) + 1
        self.vectors = [name for name in VECTORS if name in set(self.rows["Vector"])]
        self._read_cells()

    @classmethod
    @contextlib.contextmanager
    def opened(cls, source: Any, **options: Any) -> Iterator[Tokens]:
        """Tokens; those of an opened Recording, which keeps them; or those of a file, which is closed after `with`."""
        if isinstance(source, Recording):
            options = {name: value for name, value in options.items() if value is not None}
            source = source.kept(cls, **options)
        with super().opened(source, **options) as made:
            yield made

    def close(self) -> None:
        super().close()
        if self._own_recording is not None:
            self._own_recording.close()

    def _read_cells(self) -> None:
        cells = data.fetch(self.filter, 1).GetCellData()
        names = ("Layer", "Head", "Query", "Key", "Discovery", "Weight", "Border")
        self.cells = {name: vtk_to_numpy(cells.GetArray(name)) for name in names}
        self.cells["Token"] = numpy.array(data.texts(cells.GetAbstractArray("Token")))
        kept = self.cells["Border"] == 0
        self.cells = {name: values[kept] for name, values in self.cells.items()}

    def place(self, layer: int | None = None, head: int = 0) -> tuple[int, int]:
        """A layer, the first by default, and head; raises ValueError if there is no such head."""
        chosen = self.layers[0] if layer is None else index("layer", layer, self.layers)
        return chosen, index("head", head, range(self.heads))

    def image(self, layer: int, head: int) -> Any:
        """The discovery and weight of each cell of a head, [queries, keys]; NaN beyond the query."""
        chosen = (self.cells["Layer"] == layer) & (self.cells["Head"] == head)
        length = int(self.cells["Query"][chosen].max()) + 1
        images = numpy.full((2, length, length), numpy.nan)
        place = self.cells["Query"][chosen], self.cells["Key"][chosen]
        images[0][place], images[1][place] = self.cells["Discovery"][chosen], self.cells["Weight"][chosen]
        return images

    def discovered(self, layer: int, head: int) -> list[str]:
        """The tokens of a head's image, in the order in which they first appear."""
        chosen = (self.cells["Layer"] == layer) & (self.cells["Head"] == head)
        _, first = numpy.unique(self.cells["Discovery"][chosen], return_index=True)
        found: list[str] = self.cells["Token"][chosen][first].tolist()
        return found

    def words(self, layer: int, head: int, vector: str) -> list[str]:
        """The attention tokens of a head's vectors in the first sequence."""
        rows = self.rows
        chosen = (rows["Layer"] == layer) & (rows["Head"] == head) & (rows["Rank"] == 1)
        chosen &= rows["Sequence"] == rows["Sequence"].min()
        chosen &= numpy.array(rows["Vector"]) == vector
        return [rows["Token"][i] for i in numpy.flatnonzero(chosen)]

    def texts(self) -> list[str]:
        """The tokens of the first sequence, as far as they are read; ids where texts are not known."""
        words = self.recording.tokens(int(self.rows["Sequence"].min()))
        return words[: len(self.image(*self.places[0])[0])]

    def counts(self, vector: str) -> dict[str, Any]:
        """How often each head has a token: columns Layer, Head, Count, Rank, Unique."""
        table = data.table(self.filter, 2)
        chosen = numpy.array(table["Vector"]) == vector
        return {name: table[name][chosen] for name in ("Layer", "Head", "Count", "Rank")}

    def unique(self, vector: str) -> dict[tuple[int, int], int]:
        """The number of different tokens of each head, and of each layer's heads together (head -1)."""
        table = data.table(self.filter, 3)
        chosen = numpy.array(table["Vector"]) == vector
        keys = zip(table["Layer"][chosen].tolist(), table["Head"][chosen].tolist())
        return dict(zip(keys, table["Unique"][chosen].tolist()))

    def shared(self, vector: str) -> Any:
        """How many tokens any two heads share, in the order of places."""
        with self.scope():
            shared = self.own(filters.SharedTokens(Input=self.filter, Vector=vector))
            return data.image(shared, "Shared Tokens")[::-1].astype(float)

    def embedded(self, vector: str, **properties: Any) -> tuple[Any, Any]:
        """The places of the embeddings of a vector's tokens, and their layers."""
        properties = {"Input": self.filter, "Model": self.model.reader, "Vector": vector, **properties}
        with self.scope():
            points = data.fetch(self.own(filters.AttentionTokenLayout(**properties)))
        return data.points(points)[:, :2], data.point_array(points, "Layer")


def _pixels(discovery: Any, weights: Any, width: int) -> Any:
    """The image of a head in colors, at least `width` pixels wide: each cell with its border."""
    count = len(discovery)
    side = max(12, -(-width // count))
    last = max(1, numpy.nanmax(discovery))
    colors = _discovery()(discovery / last)
    picture = colors.repeat(side, axis=0).repeat(side, axis=1)
    for query, key in zip(*numpy.nonzero(numpy.nan_to_num(weights) >= _LEAST)):
        border = max(1, round(_BORDER * weights[query, key] * side))
        cell = picture[query * side : (query + 1) * side, key * side : (key + 1) * side]
        inner = cell[border:-border, border:-border].copy()
        cell[:] = 1
        cell[border:-border, border:-border] = inner
    return picture


def _draw_cells(axes: Any, page: Page, tokens: Tokens, layer: int, head: int, columns: int) -> None:
    """Draws the image of a head: colors by the order of discovery, borders by the attention."""
    discovery, weights = tokens.image(layer, head)
    end = len(discovery) - 0.5
    picture = _pixels(discovery, weights, page.pixels(columns))
    axes.imshow(picture, extent=(-0.5, end, end, -0.5), interpolation="none")
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _write_axes(axes: Any, tokens: Tokens, layer: int, head: int) -> None:
    """Writes tokens at all sides, clockwise from the top those of queries, keys, values and the text."""
    texts = tokens.texts()
    if len(texts) > _LABELS:
        return
    places = range(len(texts))
    axes.set_yticks(places, legible(texts))
    axes.set(ylabel="Text")
    sides = (("Query", "top"), ("Key", "right"), ("Value", "bottom"))
    for vector, side in sides:
        words = legible(tokens.words(layer, head, vector))
        if not words:
            continue
        if side == "right":
            axis = axes.secondary_yaxis(side)
            axis.set_yticks(places, words)
            axis.set_ylabel("Key tokens")
        else:
            axis = axes if side == "bottom" else axes.secondary_xaxis(side)
            axis.set_xticks(places, words, rotation=90)
            axis.set_xlabel(f"{vector} tokens")
        axis.tick_params(length=0)
        for spine in axis.spines.values():
            spine.set_visible(False)
    axes.tick_params(length=0)


@drawn_from(Tokens)
def one_head(tokens: Tokens, page: Page, layer: int | None = None, head: int = 0) -> Any:
    """The attention tokens of q * k of one head, with those of queries, keys and values at the sides."""
    layer, head = tokens.place(layer, head)
    figure, (axes,) = page.panels(1)
    axes.set_title(f"Layer {layer}, head {head}: attention tokens", pad=3)
    _draw_cells(axes, page, tokens, layer, head, 1)
    _write_axes(axes, tokens, layer, head)
    names = legible(tokens.discovered(layer, head))
    count = len(names)
    # The colors of _pixels, a step for each token.
    steps = ListedColormap(_discovery()(numpy.arange(count) / max(1, count - 1)))
    norm = BoundaryNorm(numpy.arange(count + 1) - 0.5, max(count, 2))
    ticks = numpy.unique(numpy.linspace(0, count - 1, _NAMED).astype(int))
    label = "Token, in order of appearance" + (f" ({len(ticks)} of {count} are named)" if count > len(ticks) else "")
    color_bar(figure, axes, ScalarMappable(norm, steps), label, ticks, [names[tick] for tick in ticks], shrink=0.6)
    return page.fit(figure)


def _heads_of(tokens: Tokens, layer: int) -> list[int]:
    return [head for place, head in tokens.places if place == layer]


@drawn_from(Tokens)
def layer_heads(tokens: Tokens, page: Page, layer: int | None = None) -> Any:
    """The attention tokens of q * k of each head of a layer, the first one by default."""
    layer, _ = tokens.place(layer)
    heads = _heads_of(tokens, layer)
    columns = min(4, len(heads))
    figure, axes = page.panels(len(heads), columns, title=f"Layer {layer}: attention tokens of its heads")
    for panel, head in zip(axes, heads):
        _draw_cells(panel, page, tokens, layer, head, columns)
        panel.set_title(f"Head {head}")
    return page.fit(figure)


@contextlib.contextmanager
def random_inputs(tokens: Tokens, length: int, seed: int = 0) -> Iterator[dict[str, Tokens]]:
    """The attention tokens of the model of others on random inputs, for `with`: {name: Tokens}."""
    found = {}
    with contextlib.ExitStack() as opened:
        for kind, (name, block) in RANDOM.items():
            recording = opened.enter_context(tokens.model.record_random(kind, length, block=block, seed=seed))
            same = {key: str(getattr(tokens.filter, key)).strip("'") for key in ("Reading", "Processing")}
            found[name] = opened.enter_context(Tokens(recording, maximum_tokens=0, **same))
        yield found


@drawn_from(Tokens)
def random_heads(tokens: Tokens, page: Page, layer: int | None = None, length: int = 0, seed: int = 0) -> Any:
    """The heads of a layer (columns) on the text and on random inputs (rows): one token repeated, random
    tokens, three tokens repeated. length: of the random inputs; 0: that of the text. seed: of random numbers."""
    layer, _ = tokens.place(layer)
    heads = _heads_of(tokens, layer)
    with random_inputs(tokens, length or len(tokens.image(layer, 0)[0]), seed) as inputs:
        inputs = {"text": tokens, **inputs}
        figure, axes = page.panels(
            len(inputs) * len(heads), len(heads), title=f"Layer {layer}: text and random inputs"
        )
        for row, (name, found) in enumerate(inputs.items()):
            for column, head in enumerate(heads):
                panel = axes[row * len(heads) + column]
                _draw_cells(panel, page, found, layer, head, len(heads))
                if row == 0:
                    panel.set_title(f"Head {head}")
                if column == 0:
                    panel.set_ylabel(name)
    return page.fit(figure)


def _starts(tokens: Tokens) -> list[int]:
    """The number of the first head of each layer."""
    return [i for i, (_, head) in enumerate(tokens.places) if head == tokens.places[0][1]]


def _layer_colors(layers: list[int]) -> tuple[dict[int, Any], Any]:
    """A color for each layer, and what a color bar shows of them."""
    count = len(layers)
    colors = matplotlib.colormaps["viridis"](numpy.linspace(0, 0.92, count))
    mappable = ScalarMappable(BoundaryNorm(numpy.arange(count + 1) - 0.5, count), ListedColormap(colors))
    return dict(zip(layers, colors)), mappable


def _layer_bar(figure: Any, axes: Any, tokens: Tokens, mappable: Any) -> None:
    bar = color_bar(figure, axes, mappable, "Layer", range(len(tokens.layers)), tokens.layers, shrink=0.5)
    bar.ax.tick_params(length=0)


def _draw_counts(axes: Any, tokens: Tokens, vector: str, colors: dict[int, Any]) -> None:
    """The counts of tokens, their numbers by head, and by layer."""
    frequency, by_head, by_layer = axes
    counts, unique = tokens.counts(vector), tokens.unique(vector)
    for layer, head in tokens.places:
        chosen = (counts["Layer"] == layer) & (counts["Head"] == head)
        falling = numpy.sort(counts["Count"][chosen])[::-1]
        frequency.plot(numpy.arange(len(falling)) + 1, falling, color=colors[layer], linewidth=0.6)
    frequency.set(xscale="log", yscale="log")
    frequency.set(ylabel=f"{VECTORS[vector]}: count", xlabel="Token of the head, by count")
    for axis in (frequency.xaxis, frequency.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    numbers = [unique[place] for place in tokens.places]
    by_head.bar(range(len(numbers)), numbers, color=[colors[layer] for layer, _ in tokens.places], width=1)
    by_head.set(xlabel="Head, by layer", ylabel="Different tokens", xlim=(-0.5, len(numbers) - 0.5))
    by_head.set_xticks(_starts(tokens), tokens.layers)
    for axes_of_counts in (by_head, by_layer):
        axes_of_counts.yaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True, steps=[1, 2, 5, 10]))
    for i, layer in enumerate(tokens.layers):
        by_layer.bar(i, unique[layer, -1], color=colors[layer], alpha=0.35, width=0.8)
        of_heads = [unique[layer, head] for head in _heads_of(tokens, layer)]
        by_layer.scatter([i] * len(of_heads), of_heads, s=6, color=[colors[layer]], linewidths=0)
    by_layer.set(xlabel="Layer", ylabel="Different tokens")
    by_layer.set_xticks(range(len(tokens.layers)), tokens.layers)


@drawn_from(Tokens)
def frequencies(tokens: Tokens, page: Page) -> Any:
    """How often tokens occur, and how many different ones each head and each layer has (dots: its heads,
    bars: together), for each kind of vector."""
    rows = len(tokens.vectors)
    title, height = "Frequencies of attention tokens", page.width_mm * (0.24 * rows + 0.06)
    figure, axes = page.panels(3 * rows, 3, title=title, square=False, height_mm=height)
    colors, mappable = _layer_colors(tokens.layers)
    for row, vector in enumerate(tokens.vectors):
        _draw_counts(axes[3 * row : 3 * row + 3], tokens, vector, colors)
    _layer_bar(figure, axes, tokens, mappable)
    return figure


@drawn_from(Tokens)
def embeddings(tokens: Tokens, page: Page, perplexity: float = 30, iterations: int = 1000) -> Any:
    """The embeddings of the attention tokens in a plane by t-SNE, colored by layer: a point for each head and
    token."""
    count = len(tokens.vectors)
    figure, axes = page.panels(count, min(2, count), title="t-SNE of the embeddings of attention tokens")
    colors, mappable = _layer_colors(tokens.layers)
    for panel, vector in zip(axes, tokens.vectors):
        places, layers = tokens.embedded(vector, Perplexity=perplexity, Iterations=iterations)
        order = numpy.random.default_rng(0).permutation(len(places))  # no layer lies above all others
        shades = numpy.array([colors[layer] for layer in layers[order]])
        side = panel.get_window_extent().width / panel.figure.dpi * 72
        size = min(4.0, max(0.4, 0.5 * side / numpy.sqrt(len(places))))
        panel.scatter(*places[order].T, s=size**2, c=shades, linewidths=0, rasterized=len(places) > 5000)
        panel.set(title=f"{VECTORS[vector]}: {len(places)} tokens of heads", xticks=[], yticks=[])
        panel.set_box_aspect(1)
    _layer_bar(figure, axes, tokens, mappable)
    return page.fit(figure)


@drawn_from(Tokens)
def shared(tokens: Tokens, page: Page) -> Any:
    """How many attention tokens any two heads share; heads by layer."""
    count = len(tokens.vectors)
    columns = min(2, count)
    figure, axes = page.panels(count, columns, title="Attention tokens that two heads share")
    starts = _starts(tokens)
    for panel, vector in zip(axes, tokens.vectors):
        matrix = tokens.shared(vector)
        numpy.fill_diagonal(matrix, numpy.nan)
        most = max(1, int(numpy.nanmax(matrix, initial=0)))
        shown = show_matrix(panel, matrix, page.pixels(columns), cmap=page.colors(ORANGES), vmin=0, vmax=most)
        panel.set(title=VECTORS[vector], xlabel="Head, by layer", ylabel="Head, by layer")
        panel.set_xticks(starts, tokens.layers)
        panel.set_yticks(starts, tokens.layers)
        ticks = numpy.unique(numpy.linspace(0, most, 5).astype(int))
        color_bar(figure, panel, shown, "Shared tokens", ticks)
    return page.fit(figure)


FIGURES = {
    "tokens-head": Figure(
        "The attention tokens of a head",
        "A cell for each query (row) and key (column), with the token that the product of their vectors stands "
        "for. Colors run from dark to bright in the order in which tokens first appear; white borders are as wide "
        "as the attention. At the sides, clockwise from the top: the tokens of queries, keys and values, and those "
        "of the text.",
        one_head,
        ("layer", "head"),
    ),
    "tokens-layer": Figure(
        "The attention tokens of a layer",
        "The same for each head of a layer. The same color means other tokens in other heads.",
        layer_heads,
        ("layer",),
    ),
    "tokens-random": Figure(
        "Text and random inputs",
        "The heads of a layer (columns) on the text, on one random token that is repeated, on random tokens, and "
        "on three random tokens that are repeated.",
        random_heads,
        ("layer",),
    ),
    "tokens-frequencies": Figure(
        "Frequencies of attention tokens",
        "How often a head has each of its tokens, how many different ones it has, and how many its layer has: "
        "dots for the heads, bars for all together.",
        frequencies,
        (),
    ),
    "tokens-embeddings": Figure(
        "The embeddings of attention tokens",
        "A point for each head and token, near similar tokens (t-SNE), colored by layer.",
        embeddings,
        (),
    ),
    "tokens-shared": Figure(
        "Shared attention tokens",
        "How many tokens two heads have in common, for each kind of vector.",
        shared,
        (),
    ),
}
#: The figures that are of all sequences, and so also of random ones.
_OF_ALL = ("tokens-frequencies", "tokens-embeddings", "tokens-shared")


def _write(
    tokens: Tokens, names: Iterable[str], folder: pathlib.Path, stem: str, place: dict[str, Any], output: Output
) -> list[pathlib.Path]:
    written = []
    for name in names:
        figure = FIGURES[name]
        drawn = figure.draw(tokens, **{key: place[key] for key in figure.arguments}, **output.options)
        written.append(output.write(drawn, folder, f"{stem}-{name}"))
    return written


def render(
    path: PathLike, folder: PathLike, layer: int | None = None, head: int = 0, *, model: Transformer | PathLike,
    random: dict[str, Any] | None = None, output: Output | None = None, only: Listed[str] | None = None,
    **properties: Any,
) -> list[pathlib.Path]:
    """Renders the figures of a recording; returns their paths.

    layer (the first by default), head: what to show large. model: that was recorded. random: arguments of
    Transformer.record_random, to draw figures of all sequences also for random tokens. output: an Output. only: names of
    FIGURES, all by default. properties: of the filter AttentionTokens, such as reading="Refactored". Raises
    FileNotFoundError, ValueError or Missing.
    """
    output = output or Output()
    folder, stem = pathlib.Path(folder), pathlib.Path(path).stem
    place = {"layer": layer, "head": head}
    with Recording(path, model) as recording:
        with Tokens.opened(recording, **properties) as tokens:
            folder.mkdir(parents=True, exist_ok=True)
            written = _write(tokens, only or FIGURES, folder, stem, place, output)
        of_all = [name for name in _OF_ALL if not only or name in only]
        if random and of_all:
            with recording.model.record_random(**random) as other:
                with Tokens.opened(other, **{**properties, "sequence": "all"}) as tokens:
                    written += _write(tokens, of_all, folder, f"{stem}-random", place, output)
    return written


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders the attention tokens of the heads of a recorded transformer.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="safetensors, npy or npz")
    parser.add_argument("--model", required=True, metavar="CONFIG", help="the config.json of the recorded model")
    add_options(parser)
    parser.add_argument("--layer", type=int, help="to show large (default: the first recorded one)")
    parser.add_argument("--head", type=int, default=0, help="to show large (default: 0)")
    parser.add_argument("--sequence", type=lambda text: text if text == "all" else int(text), default="all",
                        help="of the recordings: a number, or all (default: all)")
    parser.add_argument("--reading", default="Plain", help="Plain, Refactored or PublishedCode (default: Plain)")
    parser.add_argument("--read", type=int, default=32, help="read of each sequence (default: 32; 0: all)")
    parser.add_argument("--random", action="store_true", help="also figures of 32 random sequences")
    parser.add_argument("--seed", type=int, default=0, help="of the random sequences (default: 0)")
    return parser


def main(arguments: Listed[str] | None = None, only: Listed[str] | None = None) -> None:
    """only: as render."""
    found = _parser().parse_args(arguments)
    random = {"kind": "Random", "count": 32, "length": found.read or 32, "seed": found.seed}
    try:
        properties = {"reading": word("reading", found.reading, READINGS), "maximum_tokens": found.read, "sequence": found.sequence}
        output = Output(**options(found))
        for path in found.recordings:
            for file in render(
                path, found.output, found.layer, found.head, model=found.model, random=random if found.random else None,
                output=output, only=only, **properties,
            ):
                print(file, flush=True)
    except (OSError, ValueError, Missing) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
