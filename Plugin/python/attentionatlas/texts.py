"""Figures of what the heads of a transformer do over a large text.

    attention-atlas figures CORPUS -o DIR [--layer L] [--head H] [--x COLUMN] [--y COLUMN] [--size COLUMN]
        [--color COLUMN] [--clusters N] [--measure Score|Attention|WrittenNorm|NextTokenEffect]
        [--width-mm MM] [--font-size PT] [--dark] [--format png|pdf|svg] [--width PIXELS]

CORPUS is a file of statistics, which attention-atlas corpus writes. All heads by two of their statistics, with groups of
those that are alike; and of one head the texts that excite it most, the tokens that it attends to and from, and the
features of queries and keys that make its scores. Each is also a function that returns a matplotlib Figure:
contexts("book.safetensors", layer=4, head=11).
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence as Listed
from typing import Any

import matplotlib
import numpy
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike, word
from attentionatlas._internal.charts import Page, color_bar, drawn_from, foreground
from attentionatlas._internal.checks import check
from attentionatlas._internal.corpus import Corpus
from attentionatlas._internal.letters import legible, with_fonts
from attentionatlas._internal.names import own
from attentionatlas._internal.notebook import Figure as OwnFigure
from attentionatlas._internal.style import GREY, HEAD_COLORS
from attentionatlas.heads import Figure
from attentionatlas.output import PRINT_DPI, Output, add_options, options

__dir__ = own(__name__)

#: By what texts are found, and what axes call it.
MEASURES = {
    "Score": "score",
    "Attention": "attention weight",
    "WrittenNorm": "length of what is written",
    "NextTokenEffect": "effect on the next token",
}
#: The colors of queries and keys, as the views have them; black letters can be read on both.
QUERY, KEY, BOTH = "#a6dba0", "#f7b2d9", "#c8c8c8"
#: The areas of points in square points: without a column, and the smallest and largest with one.
_AREA, _AREAS = 14, (6, 70)
#: Parts whose ends are written, and tokens at each end.
_ENDS, _TOKENS = 3, 5
#: A point, and the distance of lines of text, in heights of letters.
_POINT, _LEADING = 25.4 / 72, 1.55


def _columns(corpus: Corpus) -> dict[str, Any]:
    return data.table(corpus.reader)


def _column(columns: dict[str, Any], option: str, name: str, corpus: Corpus) -> Any:
    if name not in corpus.columns_of_heads:
        raise ValueError(f"{option}: expected one of {', '.join(corpus.columns_of_heads)}; found '{name}'.")
    return columns[name]


def _areas(values: Any) -> Any:
    low, high = values.min(), values.max()
    share = (values - low) / (high - low) if high > low else numpy.ones(len(values))
    return _AREAS[0] + (_AREAS[1] - _AREAS[0]) * share


def _write_names(axes: Any, names: list[str], places: Any, areas: Any) -> None:
    """Writes names beside points where they meet neither another name nor another point, those of lonely points first."""
    figure = axes.figure
    renderer = FigureCanvasAgg(OwnFigure((1, 1), dpi=figure.dpi)).get_renderer()
    point = figure.dpi / 72
    spots = axes.transData.transform(places)
    radii = numpy.sqrt(areas / numpy.pi) * point
    frame = axes.get_window_extent()
    distance = numpy.linalg.norm(spots[:, None] - spots, axis=-1)
    numpy.fill_diagonal(distance, numpy.inf)
    taken: list[Any] = []
    for i in numpy.argsort(-distance.min(axis=1), kind="stable") if len(names) > 1 else range(len(names)):
        for right, up in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)):
            shift = radii[i] / point * (0.75 if right and up else 1) + 1
            text = axes.annotate(
                names[i], places[i], (right * shift, up * shift), textcoords="offset points", size="small",
                ha=("right", "center", "left")[right + 1], va=("top", "center", "bottom")[up + 1],
            )
            box = text.get_window_extent(renderer)
            nearest = numpy.clip(spots, (box.x0, box.y0), (box.x1, box.y1))
            is_free = (numpy.linalg.norm(spots - nearest, axis=1) > radii).all()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if is_free and inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()


@drawn_from(Corpus)
def scatter(
    corpus: Corpus, page: Page, x: str = "Previous Token", y: str = "Prefix Matching", size: str | None = None,
    color: str | None = None, clusters: int = 4, by: str = "Statistics",
) -> Any:
    """All heads by two of their statistics, a point each with its layer and head.

    x, y, size, color: columns of Corpus.head_table(). Without color, points have that of their group, one of `clusters`, by
    Statistics or Agreement. Names that find no place are left out.
    """
    columns = _columns(corpus)
    chosen = {option: _column(columns, option, name, corpus) for option, name in (("x", x), ("y", y))}
    areas = numpy.full(len(chosen["x"]), float(_AREA)) if size is None else _areas(_column(columns, "size", size, corpus))
    places = numpy.stack([chosen["x"], chosen["y"]], axis=1)
    figure, (axes,) = page.panels(1, square=False, height_mm=min(130, 0.7 * page.width_mm))
    grows = "" if size is None else f"; area: {size}"
    axes.set(title=f"{len(areas)} heads over {corpus.token_count} tokens{grows}", xlabel=x, ylabel=y)
    points = {"s": areas, "linewidths": 0, "alpha": 0.85}
    if color is None:
        check("clusters", clusters, 1, 20)
        groups = corpus.columns("HeadScatter", clusters=clusters, cluster_by=by)
        axes.scatter(*places.T, c=groups["ClusterColor"] / 255, **points)
        shown = dict(zip(groups["Cluster"].tolist(), (groups["ClusterColor"] / 255).tolist()))
        handles = [
            Line2D([], [], linestyle="", marker="o", markersize=4, color=shown[group], label=f"group {group}")
            for group in sorted(shown)
        ]
        if len(handles) > 1:
            axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(1, 0), borderaxespad=0.2)
    else:
        drawn = axes.scatter(*places.T, c=_column(columns, "color", color, corpus), cmap=page.colors("viridis"), **points)
        color_bar(figure, axes, drawn, color, MaxNLocator(5).tick_values(*drawn.get_clim())[1:-1])
    axes.margins(0.06)
    page.settle(figure)
    names = [f"{layer}.{head}" for layer, head in zip(columns["Layer"].tolist(), columns["Head"].tolist())]
    _write_names(axes, names, places, areas)
    return figure


def _runs(
    corpus: Corpus, layer: int, head: int, measure: str, top: int, around: int
) -> tuple[str, list[float], list[Any]]:
    """By what texts were found, their values, and each text as runs of words: (kind, text), where kind is -1, or 0 for
    the query, 1 for the key and 2 for both."""
    chosen = {"layer": layer, "head": head, "measure": measure, "top": top, "around": around}
    with corpus.scope():
        made = corpus.made("TopContexts", 0, **chosen)
        values = data.table(made)["Value"].tolist()
        words = data.table(made, 1)
        found_by = data.texts(data.fetch(made).GetFieldData().GetAbstractArray("Measure"))[0]
    runs: list[Any] = [[] for _ in values]
    before = None
    for rank, kind, text in zip(words["Rank"].tolist(), words["Kind"].tolist(), words["Token"]):
        if rank == before:
            runs[rank - 1].append((kind, text))
        before = rank  # the first word of a text is its number
    return MEASURES[measure] + found_by.removeprefix(measure), values, runs


class _Ruler:
    """How wide texts are, in millimetres, in print and on a screen of some resolution: pixels move letters."""

    def __init__(self, dpi: float) -> None:
        figures = [OwnFigure((1, 1), dpi=each) for each in (PRINT_DPI, dpi)]
        self._rulers = [(figure, FigureCanvasAgg(figure).get_renderer()) for figure in figures]
        self._known: dict[str, float] = {}

    def width(self, text: str) -> float:
        if text not in self._known:
            self._known[text] = max(self._measured(text, *ruler) for ruler in self._rulers)
        return self._known[text]

    @staticmethod
    def _measured(text: str, figure: Any, renderer: Any) -> float:
        drawn = figure.text(0, 0, text)
        width: float = drawn.get_window_extent(renderer).width / figure.dpi * 25.4
        drawn.remove()
        return width

    def cut(self, text: str, width: float, keep: int) -> str:
        """As much of a text as fits: its beginning (1), its end (-1), or both without the middle (0)."""
        if self.width(text) <= width:
            return text
        least, most = 0, len(text)
        while least < most:  # the largest count that fits
            count = (least + most + 1) // 2
            least, most = (count, most) if self.width(self._shortened(text, count, keep)) <= width else (least, count - 1)
        return self._shortened(text, least, keep)

    @staticmethod
    def _shortened(text: str, count: int, keep: int) -> str:
        if keep == 0:
            return text[: (count + 1) // 2] + "\u2026" + text[len(text) - count // 2 :]
        return text[:count] + "\u2026" if keep > 0 else "\u2026" + text[len(text) - count :]


def _written(text: str) -> str:
    """Text in a line: line breaks as an arrow, other signs that cannot be printed as escape sequences."""
    text = text.replace("\n", "\u21b5").replace("\t", " ")
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _fitted(ruler: _Ruler, runs: list[tuple[int, str]], width: float, gap: float) -> list[tuple[int, str]]:
    """Runs of words in one line: what is far from query and key is left out first."""
    marked = [i for i, (kind, _) in enumerate(runs) if kind >= 0]
    room = width - sum(ruler.width(runs[i][1]) + gap for i in marked)
    rest = {i: ruler.width(text) for i, (kind, text) in enumerate(runs) if kind < 0}
    fitted = list(runs)
    for i in sorted(rest, key=lambda i: rest[i]):  # what the short ones leave is for the long ones
        share = room / len(rest) if rest else 0
        keep = -1 if i < marked[0] else 1 if i > marked[-1] else 0
        text = ruler.cut(runs[i][1], share, keep)
        fitted[i] = (-1, text)
        room -= ruler.width(text)
        del rest[i]
    return fitted


@drawn_from(Corpus)
def contexts(
    corpus: Corpus, page: Page, layer: int | None = None, head: int = 0, measure: str = "Attention", top: int = 10,
    around: int = 24,
) -> Any:
    """The strongest contexts of a head, one in each line, with the query on green and the key on pink.

    measure: Score, Attention, WrittenNorm or NextTokenEffect. top: the number of texts, 1 to 50. around: tokens on either
    side of query and key, as far as the line has room.
    """
    check("top", top, 1, 50)
    layer, head = corpus.place(layer, head)
    measure = word("measure", measure, MEASURES)
    found_by, values, runs = _runs(corpus, layer, head, measure, top, around)
    # One call for all texts, after which all letters have a font.
    texts = iter(with_fonts([_written(text) for line in runs for _, text in line]))
    runs = [[(kind, next(texts)) for kind, _ in line] for line in runs]
    size = matplotlib.rcParams["font.size"]
    pitch = size * _LEADING * _POINT
    lines = max(1, len(runs))
    figure, axes = page.canvas((lines + 2.6) * pitch + 2)
    low, top_mm = axes.get_ylim()
    pitch = min(pitch, (top_mm - low - 2) / (lines + 2.6))
    ruler, gap = _Ruler(figure.dpi), 0.25 * size * _POINT
    y = top_mm - 1 - 0.6 * pitch
    axes.text(1, y, f"Layer {layer}, head {head}: texts of largest {found_by}", va="center_baseline")
    y -= 1.3 * pitch
    x = 1.0
    for text, color in (("query", QUERY), ("key", KEY)):
        x = _write_word(axes, ruler, x, y, text, color, pitch, gap) + 3 * gap
    if not runs:
        axes.text(1, y - 1.3 * pitch, "none was kept", va="center_baseline", color=GREY)
    numbers = [f"{value:.3g}".replace("-", "\u2212") for value in values]
    left = 1 + max(map(ruler.width, numbers), default=0)
    y -= 0.3 * pitch
    for number, line in zip(numbers, runs):
        y -= pitch
        axes.text(left, y, number, ha="right", va="center_baseline", color=GREY)
        x = left + 6 * gap
        for kind, text in _fitted(ruler, line, page.width_mm - x - 1, gap):
            mark = None if kind < 0 else (QUERY, KEY, BOTH)[kind]
            x = _write_word(axes, ruler, x, y, text, mark, pitch, gap)
    return figure


def _write_word(
    axes: Any, ruler: _Ruler, x: float, y: float, text: str, color: str | None, pitch: float, gap: float
) -> float:
    """Writes a run of words at x, on a color if it has one; returns where it ends."""
    width = ruler.width(text)
    if color is not None:
        axes.add_patch(Rectangle((x, y - 0.42 * pitch), width + gap, 0.84 * pitch, facecolor=color, linewidth=0))
    axes.text(
        x + (0 if color is None else gap / 2), y, text, va="center_baseline",
        color=foreground() if color is None else "black",
    )
    return x + width + (0 if color is None else gap)


@drawn_from(Corpus)
def token_table(corpus: Corpus, page: Page, layer: int | None = None, head: int = 0, top: int = 15) -> Any:
    """The tokens that receive most of a head's attention, and those from which most of it comes: its sums over the text,
    with how often each occurs.

    Attention of a query to itself and to the first token does not count. top: the number of tokens, 1 to 60.
    """
    check("top", top, 1, 60)
    layer, head = corpus.place(layer, head)
    size = matplotlib.rcParams["font.size"]
    rows = len(corpus.columns("HeadTokenTable", layer=layer, head=head, top=top)["Token"])
    title = f"Layer {layer}, head {head}: attention over {corpus.token_count} tokens"
    figure, panels = page.panels(2, 2, title, square=False, height_mm=max(40, rows * 1.35 * size * _POINT + 16))
    for axes, order, column, color, name in (
        (panels[0], "ToTotal", "To Total", HEAD_COLORS[3], "To the token"),
        (panels[1], "FromTotal", "From Total", HEAD_COLORS[2], "From the token"),
    ):
        table = corpus.columns("HeadTokenTable", layer=layer, head=head, sort_by=order, top=top)
        axes.barh(range(rows), table[column], height=0.7, color=color, linewidth=0)
        axes.set_yticks(range(rows), legible(table["Token"]))
        axes.set(title=name, xlabel="Sum of weights", ylim=(rows - 0.5, -0.5))
        axes.tick_params(axis="y", length=0)
        most = max(table[column].max(initial=0), 1e-9)
        axes.set_xlim(0, 1.25 * most)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        for row, (value, count) in enumerate(zip(table[column], table["Occurrences"])):
            axes.text(value + 0.015 * most, row, f"{count}\u00d7", va="center", color=GREY, size="small")
    return figure


@drawn_from(Corpus)
def parts(corpus: Corpus, page: Page, layer: int | None = None, head: int = 0, count: int = 8) -> Any:
    """What in queries and keys makes the scores of a head: the share of their variance that each part has, and the tokens
    at both ends of the first three, of those that were drawn.

    A part adds the product of a feature of the query and one of the key to the score: much where both are at the same
    end. count: the number of parts, 1 to 64.
    """
    check("count", count, 1, 64)
    layer, head = corpus.place(layer, head)
    table = corpus.columns("ScoreParts", 0, layer=layer, head=head, parts=count)
    ends = corpus.columns("ScoreParts", 1, layer=layer, head=head, parts=min(count, _ENDS), ends=40)
    size = matplotlib.rcParams["font.size"]
    shown = sorted(set(ends["Part"].tolist()))
    height = max(45, (5 * len(shown) + 2) * 1.35 * size * _POINT + 10)
    title = f"Layer {layer}, head {head}: parts of its scores"
    figure, (left, right) = page.panels(2, 2, title, square=False, height_mm=height)
    left.bar(table["Part"], table["Share"], color=HEAD_COLORS[0], width=0.7, linewidth=0, label="each")
    left.plot(table["Part"], table["Cumulative"], color=HEAD_COLORS[4], marker=".", label="together")
    left.set(xlabel="Part", ylabel="Share of the variance", ylim=(0, 1.02))
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.legend(loc="upper left", bbox_to_anchor=(0, 0.98))
    _write_ends(right, page, figure, ends, shown)
    return figure


def _write_ends(axes: Any, page: Page, figure: Any, ends: dict[str, Any], shown: list[int]) -> None:
    """The different tokens at the ends of parts: lines of the queries and of the keys of each end."""
    axes.set_axis_off()
    axes.set_title("Tokens at the ends")
    rows = 5 * len(shown) + 0.5
    axes.set(xlim=(0, 1), ylim=(rows, 0))
    lines = []
    for part in shown:
        for end, sign in (("Highest", "+"), ("Lowest", "\u2212")):
            for kind, name in ((0, "query"), (1, "key")):
                of = [
                    token
                    for token, p, k, e in zip(ends["Token"], ends["Part"], ends["Kind"], ends["End"])
                    if (p, k, e) == (part, kind, end)
                ]
                lines.append((f"{part}{sign}", name, list(dict.fromkeys(of))[:_TOKENS]))
    texts = iter(legible([token for _, _, tokens in lines for token in tokens]))
    page.settle(figure)
    ruler = _Ruler(axes.figure.dpi)
    width = axes.get_window_extent().width / axes.figure.dpi * 25.4
    colors = {"query": QUERY, "key": KEY}
    for i, (label, name, tokens) in enumerate(lines):
        y = i + 0.5 + i // 4
        if name == "query":
            axes.text(0, y, label, va="center")
        x = (ruler.width("10\u2212") + 2) / width
        tag = (ruler.width("query") + 2) / width
        axes.add_patch(Rectangle((x, y - 0.42), tag, 0.84, facecolor=colors[name], linewidth=0))
        axes.text(x + tag / 2, y, name, va="center", ha="center", color="black")
        x += tag + 2 / width
        words = "   ".join(next(texts) for _ in tokens)
        axes.text(x, y, ruler.cut(words, (1 - x) * width, 1), va="center")


FIGURES = {
    "texts-scatter": Figure(
        "What every head does over a text",
        "All heads by two of their statistics; colors are groups of heads that are alike.",
        scatter,
        ("x", "y", "size", "color", "clusters"),
    ),
    "texts-contexts": Figure(
        "What excites a head",
        "The texts in which one head reaches its largest values, with the query on green and the key on pink.",
        contexts,
        ("layer", "head", "measure"),
    ),
    "texts-tokens": Figure(
        "Tokens to which and from which a head attends",
        "The sums of its weights over the text, with how often each token occurs.",
        token_table,
        ("layer", "head"),
    ),
    "texts-parts": Figure(
        "What makes the scores of a head",
        "The share of the variance of scores that each product of a feature of the query and one of the key has, and the "
        "tokens at their ends.",
        parts,
        ("layer", "head"),
    ),
}


def render_named(
    path: PathLike, folder: PathLike, layer: int | None = None, head: int = 0, output: Output | None = None,
    only: Listed[str] | None = None, **place: Any,
) -> dict[str, pathlib.Path]:
    """Renders the figures of a corpus; returns {name in FIGURES: path}. As render. only: names of FIGURES, all by default."""
    output = output or Output()
    chosen = {"layer": layer, "head": head, **place}
    folder, stem, written = pathlib.Path(folder), pathlib.Path(path).stem, {}
    with Corpus.opened(path) as corpus:
        folder.mkdir(parents=True, exist_ok=True)
        for name in only or FIGURES:
            figure = FIGURES[name]
            arguments = {key: chosen[key] for key in figure.arguments if key in chosen}
            drawn = figure.draw(corpus, **arguments, **output.options)
            written[name] = output.write(drawn, folder, f"{stem}-{name}")
    return written


def render(
    path: PathLike, folder: PathLike, layer: int | None = None, head: int = 0, width: int = 2400, format: str = "png",
    style: dict[str, Any] | None = None, **place: Any,
) -> list[pathlib.Path]:
    """Renders the figures of a corpus; returns their paths.

    layer (the first by default), head: of the figures of one head. place: x, y, size, color and clusters of scatter,
    measure of contexts. width: of a PNG, in pixels. format: png, pdf or svg. style: width_mm (180), font_size in points
    (7), dark (False). Raises FileNotFoundError or ValueError.
    """
    output = Output(format, width, **(style or {}))
    return list(render_named(path, folder, layer, head, output, **place).values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders figures of what the heads of a transformer do over a large text.",
    )
    parser.add_argument("corpora", nargs="+", metavar="CORPUS", help="statistics, of attention-atlas corpus")
    add_options(parser)
    parser.add_argument("--layer", type=int, help="to show large (default: the first one)")
    parser.add_argument("--head", type=int, default=0, help="to show large (default: 0)")
    parser.add_argument("--x", default="Previous Token", metavar="COLUMN", help="to the right (default: Previous Token)")
    parser.add_argument("--y", default="Prefix Matching", metavar="COLUMN", help="upward (default: Prefix Matching)")
    parser.add_argument("--size", metavar="COLUMN", help="with which points grow (default: none)")
    parser.add_argument("--color", metavar="COLUMN", help="of points (default: their group)")
    parser.add_argument("--clusters", type=int, default=4, help="number of groups (default: 4)")
    parser.add_argument("--measure", choices=list(MEASURES), default="Attention", help="of texts (default: Attention)")
    return parser


def main(arguments: Listed[str] | None = None, only: Listed[str] | None = None) -> None:
    """only: as render_named."""
    found = _parser().parse_args(arguments)
    names = ("layer", "head", "x", "y", "size", "color", "clusters", "measure")
    place = {name: getattr(found, name) for name in names}
    try:
        for path in found.corpora:
            output = options(found)
            for file in render_named(path, found.output, output=Output(**output), only=only, **place).values():
                print(file, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
