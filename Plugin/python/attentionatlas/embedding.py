"""Figures of the joint embeddings of queries and keys: what each head of a recorded transformer compares.

    attention-atlas figures RECORDING ... -o DIR [--method TSNE|UMAP|PCA] [--layer L] [--head H]
        [--search TEXT] [--perplexity P] [--iterations N] [--neighbors K] [--sample TOKENS] [--seed S]
        [--width-mm MM] [--font-size PT] [--dark] [--format png|pdf|svg] [--width PIXELS]

A query and a key of every token are points of one space per head, where a small distance means a large
score (Yeh et al. 2023, AttentionViz). Figures: all heads, colored by position, by norm, or by whether a
token matches a search; one head with its tokens; and how well distance stands for attention, per head. Each
is also a function that returns a matplotlib Figure: all_heads("run.safetensors", by="Norm").
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import pathlib
from collections.abc import Iterator, Sequence as Listed
from typing import Any, NamedTuple

import matplotlib
import numpy
from matplotlib.colors import LinearSegmentedColormap

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike, index, word
from attentionatlas._internal.charts import Page, color_bar, drawn_from, foreground, label_heads, ramp, show_matrix
from attentionatlas._internal.errors import update
from attentionatlas._internal.host import filters
from attentionatlas._internal.names import own
from attentionatlas._internal.readers import Missing, Proxies, holds_queries, make_filter
from attentionatlas._internal.recording import Recording
from attentionatlas._internal.style import HIDDEN, SIGNED
from attentionatlas.heads import Figure
from attentionatlas.output import Output, add_options, options

__dir__ = own(__name__)

METHODS = {"TSNE": "t-SNE", "UMAP": "UMAP", "PCA": "PCA"}


class Coloring(NamedTuple):
    """What colors a figure: a value of the property By of TokenColors, what it is called, and its two ends."""

    quantity: str
    name: str
    low: str
    high: str


COLORINGS = {
    "Kind": Coloring("Kind", "kind", "", ""),
    "Position": Coloring("RelativePosition", "position in the sequence", "first", "last"),
    "Norm": Coloring("Norm", "norm", "least", "largest"),
}
#: Texts of tokens in a figure of one head, at most.
_LABELS = 400
#: Numbers side by side in a matrix, at most.
_NUMBERS = 16


class Embedding(Proxies):
    """The joint embeddings of a recording's heads.

    source: an opened Recording, or its file. method: TSNE, UMAP or PCA. properties: others of the filter HeadEmbedding,
    such as perplexity=30. Raises FileNotFoundError for a missing file, ValueError for one that holds no recording or
    whose embedding reports an error, Missing for a recording without queries and keys.
    """

    def __init__(self, source: Recording | PathLike, method: str = "TSNE", **properties: Any) -> None:
        super().__init__()
        recording = source if isinstance(source, Recording) else Recording(source)
        self._recording = None if recording is source else recording
        self.name = recording.name
        try:
            if not holds_queries(recording.reader):
                raise Missing(f"{recording.name} holds no queries and keys")
            chosen = {"dimensions": 2, "method": method, **recording.some_heads(properties)}
            self.points = self.own(make_filter("HeadEmbedding", recording.shown_by("HeadEmbedding"), chosen))
            self.colors = self.own(filters.TokenColors(Input=self.points))
            self.search = self.own(filters.TokenSearch(Input=self.points))
            update(self.points)
        except BaseException:
            self.close()
            raise
        self.heads = data.table(self.points, 1)
        whole = data.fetch(self.points)
        self.places = data.points(whole)[:, :2]
        names = ("Kind", "Layer", "Head", "Token Index")
        self.kind, self.layer, self.head, self.token = (data.point_array(whole, name) for name in names)
        self.texts = data.texts(whole.GetPointData().GetAbstractArray("Token"))

    @classmethod
    @contextlib.contextmanager
    def opened(cls, source: Any, **options: Any) -> Iterator[Embedding]:
        """An Embedding; that of an opened Recording, which keeps it; or that of a file, which is closed after `with`."""
        if isinstance(source, Recording):
            source = source.kept(cls, **options)
        with super().opened(source, **options) as made:
            yield made

    def close(self) -> None:
        super().close()
        if self._recording is not None:
            self._recording.close()

    @property
    def method(self) -> str:
        """The name of the method, as figures write it."""
        return METHODS[str(self.points.Method).strip("'")]

    def layers(self) -> list[int]:
        """The layers that are embedded, in ascending order."""
        return sorted(set(int(layer) for layer in self.heads["Layer"]))

    def place(self, layer: int | None, head: int) -> tuple[int, int]:
        """Layer, the first one by default, and head; raises ValueError if there is no such head."""
        layers = self.layers()
        chosen = layers[0] if layer is None else index("layer", layer, layers)
        return chosen, index("head", head, range(int(max(self.heads["Head"])) + 1))

    def points_of(self, layer: int, head: int) -> Any:
        """Whether each point is of a head."""
        return (self.layer == layer) & (self.head == head)

    def colored(self, by: str) -> tuple[Any, list[Any]]:
        """The color of each point, and the ramps of queries and keys, by what COLORINGS names."""
        self.colors.By = COLORINGS[by].quantity
        colors = data.point_array(data.fetch(self.colors), "TokenColor") / 255
        legend = data.table(self.colors, 1)
        ramps = []
        for kind, name in enumerate(("queries", "keys")):
            shades = legend["TokenColor"][legend["Kind"] == kind] / 255
            shades = shades if len(shades) > 1 else [*shades, *shades]
            ramps.append(LinearSegmentedColormap.from_list(f"atlas-{name}", shades))
        return colors, ramps

    def matching(self, text: str, match: str = "Contains") -> Any:
        """Whether each point's token matches a text."""
        self.search.Text, self.search.Match = text, match
        found = data.fetch(self.search)
        return data.point_array(found, "Match") > 0


def _dots(axes: Any, places: Any, c: Any) -> Any:
    """Draws points as an image, as they may be millions; lines and letters around them stay paths. Their
    order is random, the same in every run, so that keys do not lie above all queries."""
    order = numpy.random.default_rng(0).permutation(len(places))
    colors = c if isinstance(c, str) else c[order]
    side = axes.get_window_extent().width / axes.figure.dpi * 72
    size = min(4.0, max(0.2, 0.5 * side / numpy.sqrt(len(places) or 1)))
    return axes.scatter(*places[order].T, s=size**2, linewidths=0, c=colors, rasterized=True)


def _frame(axes: Any, places: Any) -> None:
    """The square of a picture, without numbers: only distances mean something."""
    low, high = places.min(axis=0), places.max(axis=0)
    margin = 0.02 * (high - low).max()
    axes.set(xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin))
    axes.set_aspect("equal")


def _grid_of_heads(embedding: Embedding, axes: Any) -> None:
    """Labels the rows and columns of a grid of heads."""
    middle = {}
    for layer, head in zip(embedding.heads["Layer"], embedding.heads["Head"]):
        places = embedding.places[embedding.points_of(int(layer), int(head))]
        if len(places):
            middle[int(layer), int(head)] = (places.min(axis=0) + places.max(axis=0)) / 2
    columns = {head: x for (_, head), (x, _) in middle.items()}
    rows = {layer: y for (layer, _), (_, y) in middle.items()}
    label_heads(axes, columns, rows)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _legend(figure: Any, axes: Any, ramps: list[Any], by: str) -> None:
    """A color bar for queries and one for keys."""
    _, name, low, high = COLORINGS[by]
    for kind, colors in zip(("Keys", "Queries"), reversed(ramps)):
        color_bar(figure, axes, ramp(colors), f"{kind}: {name}", [0, 1], [low, high], shrink=0.5)


@drawn_from(Embedding)
def all_heads(embedding: Embedding, page: Page, by: str = "Position") -> Any:
    """The joint embeddings of every layer (rows) and head (columns), colored by Position or Norm."""
    by = word("by", by, COLORINGS)
    colors, ramps = embedding.colored(by)
    figure, (axes,) = page.panels(1)
    axes.set_title(f"{embedding.method} of the queries and keys of each head")
    _frame(axes, embedding.places)
    _dots(axes, embedding.places, c=colors)
    _grid_of_heads(embedding, axes)
    _legend(figure, axes, ramps, by)
    return page.fit(figure)


@drawn_from(Embedding)
def search(embedding: Embedding, page: Page, text: str, match: str = "Contains") -> Any:
    """All heads, with the queries and keys of the tokens that match a text before the others."""
    found = embedding.matching(text, match)
    figure, (axes,) = page.panels(1)
    count = len(set(embedding.token[found]))
    sought = text.replace(" ", "\u00b7")
    axes.set_title(f"\u201c{sought}\u201d in the {embedding.method} of each head: {count} tokens")
    _frame(axes, embedding.places)
    _dots(axes, embedding.places[~found], c=HIDDEN)
    colors, ramps = embedding.colored("Kind")
    _dots(axes, embedding.places[found], c=colors[found])
    _grid_of_heads(embedding, axes)
    for shades, name in zip(ramps, ("query", "key")):
        axes.scatter([], [], s=12, linewidths=0, color=shades(1.0), label=name)
    axes.scatter([], [], s=12, linewidths=0, color=HIDDEN, label="other tokens")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return page.fit(figure)


def _write_tokens(axes: Any, places: Any, texts: list[str], colors: list[Any]) -> None:
    """Writes texts beside points where they do not overlap. Points are taken in an order that spreads them
    over the picture, the same in every run."""
    order = numpy.random.default_rng(0).permutation(len(places))[: 20 * _LABELS]
    height = matplotlib.rcParams["font.size"] * axes.figure.dpi / 72
    box = axes.get_window_extent()
    pixels = axes.transData.transform(places)
    taken: list[tuple[float, ...]] = []
    written = 0
    for i in order:
        x, y = pixels[i]
        text = texts[i].strip() or repr(texts[i])
        right, top = x + 0.62 * height * (len(text) + 0.5), y + 0.6 * height
        rectangle = (x, y - 0.6 * height, right, top)
        inside = x > box.x0 and right < box.x1 and rectangle[1] > box.y0 and top < box.y1
        meets = any(
            rectangle[0] < other[2] and other[0] < rectangle[2] and rectangle[1] < other[3] and other[1] < top
            for other in taken
        )
        if not inside or meets:
            continue
        taken.append(rectangle)
        axes.annotate(
            text, places[i], (2, 0), textcoords="offset points", color=colors[i], verticalalignment="center"
        )
        written += 1
        if written == _LABELS:
            break


@drawn_from(Embedding)
def one_head(
    embedding: Embedding, page: Page, layer: int | None = None, head: int = 0, by: str = "Position"
) -> Any:
    """The joint embedding of one head with its tokens, as many as fit without overlap."""
    by = word("by", by, COLORINGS)
    layer, head = embedding.place(layer, head)
    chosen = embedding.points_of(layer, head)
    colors, ramps = embedding.colored(by)
    places, shades = embedding.places[chosen], colors[chosen]
    figure, (axes,) = page.panels(1)
    axes.set_title(f"Layer {layer}, head {head}: {embedding.method} of queries and keys")
    axes.set(xticks=[], yticks=[])
    _frame(axes, places)
    _legend(figure, axes, ramps, by)
    page.fit(figure)
    _dots(axes, places, c=shades)
    if embedding.texts:
        texts = [embedding.texts[i] for i in numpy.flatnonzero(chosen)]
        _write_tokens(axes, places, texts, [foreground()] * len(texts))
    return figure


def _matrix_of(embedding: Embedding, column: str) -> Any:
    """A column of the table of heads as a matrix of layers and heads."""
    layers = embedding.layers()
    matrix = numpy.full((len(layers), int(max(embedding.heads["Head"])) + 1), numpy.nan)
    for layer, head, value in zip(embedding.heads["Layer"], embedding.heads["Head"], embedding.heads[column]):
        matrix[layers.index(int(layer)), int(head)] = value
    return matrix


@drawn_from(Embedding)
def correlation(embedding: Embedding, page: Page) -> Any:
    """How well distance stands for attention: the correlation of distance and score, for each head."""
    matrix = _matrix_of(embedding, "Correlation")
    figure, (axes,) = page.panels(1)
    axes.set_title("Correlation of distance and score: \u22121 where distance stands for attention")
    shown = show_matrix(axes, matrix, page.pixels(1), cmap=page.colors(SIGNED), vmin=-1, vmax=1)
    if matrix.shape[1] <= _NUMBERS:
        for (row, column), value in numpy.ndenumerate(matrix):
            color = "white" if abs(value) > 0.5 else "black"
            text = f"{value:.2f}".replace("-", "\u2212")
            axes.text(column, row, text, color=color, ha="center", va="center", size="small")
    rows = {layer: row for row, layer in enumerate(embedding.layers())}
    label_heads(axes, {head: head for head in range(matrix.shape[1])}, rows)
    color_bar(figure, axes, shown, "Correlation", numpy.linspace(-1, 1, 5), shrink=0.5)
    return page.fit(figure)


FIGURES = {
    "embedding": Figure(
        "What the heads compare",
        "A query and a key of every token as points, near each other where a head attends: one picture per "
        "layer (rows) and head (columns). The lightness is the position in the sequence.",
        all_heads,
        (),
    ),
    "embedding-norms": Figure(
        "The norms of queries and keys",
        "The same points; the lightness is the norm of the query or key.",
        functools.partial(all_heads, by="Norm"),
        (),
    ),
    "embedding-head": Figure(
        "The tokens of one head",
        "The queries and keys of one head with the texts of as many tokens as fit.",
        one_head,
        ("layer", "head"),
    ),
    "embedding-correlation": Figure(
        "Distance and attention",
        "The correlation of the distance of a query and a key with their score, for each head. Where it is "
        "near -1, near points attend to each other.",
        correlation,
        (),
    ),
}


def render_named(
    source: Recording | PathLike, folder: PathLike, layer: int | None = None, head: int = 0, text: str = "",
    output: Output | None = None, only: Listed[str] | None = None, **properties: Any,
) -> dict[str, pathlib.Path]:
    """Renders the figures of a recording; returns {name: path}. As render. only: names of FIGURES, all by default."""
    output = output or Output()
    stem = pathlib.Path(source.name if isinstance(source, Recording) else source).stem
    folder, written = pathlib.Path(folder), {}
    place = {"layer": layer, "head": head}
    with Embedding.opened(source, **properties) as embedding:
        folder.mkdir(parents=True, exist_ok=True)
        figures = {name: (FIGURES[name].draw, FIGURES[name].arguments) for name in only or FIGURES}
        if text:
            figures["embedding-search"] = (functools.partial(search, text=text), ())
        for name, (draw, arguments) in figures.items():
            drawn = draw(embedding, **{key: place[key] for key in arguments}, **output.options)
            written[name] = output.write(drawn, folder, f"{stem}-{name}")
    return written


def render(
    source: Recording | PathLike, folder: PathLike, layer: int | None = None, head: int = 0, text: str = "",
    width: int = 2400, format: str = "png", style: dict[str, Any] | None = None, **properties: Any,
) -> list[pathlib.Path]:
    """Renders the figures of a recording; returns their paths.

    layer (the first by default), head: what to show large. text: what to search for. width: of a PNG, in
    pixels. format: png, pdf or svg. style: {"width_mm": 180, "font_size": 7, "dark": False}. properties: of
    the filter HeadEmbedding, such as method="UMAP". Raises FileNotFoundError or ValueError.
    """
    output = Output(format, width, **(style or {}))
    return list(render_named(source, folder, layer, head, text, output, **properties).values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders the joint embeddings of the queries and keys of a recorded transformer.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="safetensors, npy or npz")
    add_options(parser)
    parser.add_argument("--method", default="TSNE", help="TSNE, UMAP or PCA (default: TSNE)")
    parser.add_argument("--layer", type=int, help="to show large (default: the first recorded one)")
    parser.add_argument("--head", type=int, default=0, help="to show large (default: 0)")
    parser.add_argument("--search", default="", metavar="TEXT", help="also a figure of the tokens with this text")
    for name, what in (
        ("perplexity", "of t-SNE (default: 50)"),
        ("iterations", "of t-SNE (default: 750)"),
        ("neighbors", "of UMAP (default: 15)"),
        ("sample", "this many tokens (default: 0, all)"),
        ("seed", "of the sample and of random numbers (default: 0)"),
    ):
        kind = float if name == "perplexity" else int
        parser.add_argument(f"--{name}", type=kind, help=what)
    return parser


def main(arguments: Listed[str] | None = None, only: Listed[str] | None = None) -> None:
    """only: as render_named."""
    found = _parser().parse_args(arguments)
    properties = {"method": found.method.upper()}
    for name in ("perplexity", "iterations", "neighbors", "sample", "seed"):
        if getattr(found, name) is not None:
            properties[name] = getattr(found, name)
    try:
        if properties["method"] not in METHODS:
            raise ValueError(f"method: expected {', '.join(METHODS)}, found '{found.method}'.")
        output = Output(**options(found))
        for path in found.recordings:
            place = (found.layer, found.head, found.search)
            for file in render_named(path, found.output, *place, output, only, **properties).values():
                print(file, flush=True)
    except (OSError, ValueError, Missing) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
