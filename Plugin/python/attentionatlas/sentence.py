"""The attention between the words of a recorded text, laid out for print.

    attention-atlas figures RECORDING -o DIR [--sequence S] [--layer L] [--head H,...|mean]
        [--quantity Weights|NormWeighted|Rollout] [--threshold W] [--hide-first] [--hide-special]
        [--hidden TOKEN,...] [--selected TOKEN,...] [--direction FromQueries|ToKeys]
        [--first TOKEN] [--count TOKENS] [--rows ROWS]
        [--width-mm MM] [--font-size PT] [--dark] [--format png|pdf|svg] [--width PIXELS]

Queries are on the left and keys on the right; a line is the more opaque and the wider, the larger its weight;
bars are what each key receives. A text of more rows than a page has is cut into parts, with a panel for each
part of the queries and each part of the keys. Each figure is also a matplotlib Figure:
lines("run.safetensors", layer=4, head=11), and pages(...) is a list of figures for texts of any length.
"""

from __future__ import annotations

import argparse
import inspect
import math
import pathlib
from collections.abc import Sequence as Listed
from typing import Any

import matplotlib
import numpy
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal import data
from attentionatlas._internal.arguments import MEAN, Head, PathLike, Sequence, head_name
from attentionatlas._internal.charts import Page, drawn_from, foreground, made_from
from attentionatlas._internal.checks import check
from attentionatlas._internal.letters import readable
from attentionatlas._internal.names import own
from attentionatlas._internal.notebook import Figure, Figures
from attentionatlas._internal.readers import make_filter
from attentionatlas._internal.recording import Recording
from attentionatlas._internal.style import GREY
from attentionatlas.output import Output, add_options, options

__dir__ = own(__name__)

#: The height of a printed page's figure.
_HEIGHT_MM = 247
#: Tokens of one figure, and rows of a panel, unless asked for.
TOKENS, _ROWS = 256, 128
#: The distance of rows, in heights of letters; a point; and parts of a panel, in millimetres.
_LEADING, _POINT = 1.04, 25.4 / 72
_BARS, _GAP, _TITLE, _LEAST_LINES = 7, 3, 6, 12
#: A word is at most this share of a panel wide; longer ones have smaller letters.
_WIDEST = 0.3
_WIDTHS = (0.15, 1.4)
#: A single head, darker than on the screen.
_ONE_HEAD = numpy.array([0.80, 0.42, 0.0])


class _Words:
    """What the filter shows of one sequence."""

    def __init__(
        self, recording: Recording, layer: int | None, head: Head | Listed[Head], sequence: Sequence, **properties: Any
    ) -> None:
        many = list(head) if isinstance(head, (list, tuple)) else [head]
        places = [recording.place(layer, one, sequence) for one in many]
        self.heads = [one for _, one, _ in places]
        self.layer, _, self.sequence = places[0]
        chosen: dict[str, Any] = {"Layer": self.layer, "Head": self.heads[0], "Sequence": self.sequence, **properties}
        several = self.heads if len(self.heads) > 1 else []
        shown = recording.shown_by("AttentionSentence")
        sentence = recording.own(make_filter("AttentionSentence", shown, {**chosen, "Heads": several}))
        words = data.fetch(sentence, 1)
        self._read(words, data.fetch(sentence, 0), data.fetch(sentence, 2))
        self.quantity = str(sentence.Quantity).strip("'")
        queries, keys = recording.sides(self.sequence)
        #: Whether queries and keys are the same tokens, which those of cross attention are not.
        self.is_one_text = queries is keys
        self.is_causal = self.is_one_text and not (self.pairs[:, 1] > self.pairs[:, 0]).any()
        self.length = len(queries)

    def _read(self, words: Any, lines: Any, bars: Any) -> None:
        sides = data.point_array(words, "Side")
        label = words.GetPointData().GetAbstractArray("Label")
        #: Of the queries and of the keys: their texts, and whether each is hidden.
        self.labels = [[label.GetValue(int(i)) for i in numpy.flatnonzero(sides == side)] for side in range(2)]
        self.hidden = [data.point_array(words, "Hidden")[sides == side] > 0 for side in range(2)]
        firsts = [data.point_array(words, "Token Index")[sides == side][0] for side in range(2)]
        self.first = int(data.point_array(words, "Position")[sides == 0][0])

        def cells(whole: Any, name: str) -> Any:
            array = whole.GetCellData().GetArray(name)
            return vtk_to_numpy(array) if array.GetNumberOfTuples() else numpy.zeros(0)

        self.pairs = numpy.transpose([cells(lines, name) for name in ("Query", "Key")]).astype(int) - firsts
        self.opacity, self.head = cells(lines, "Opacity"), cells(lines, "Head")
        self.has_key_bars = bars.GetCellData().HasArray("Received") == 1
        self.bars = cells(bars, "Received" if self.has_key_bars else "Given")
        self.bar_rows = cells(bars, "Token Index").astype(int) - firsts[self.has_key_bars]
        self.bar_heads = cells(bars, "Head")
        colors = cells(bars, "HeadColor").reshape(-1, 4)[:, :3] / 255
        self.colors = {int(head): color for head, color in zip(self.bar_heads, colors)}

    def color(self, head: int) -> Any:
        """The color of a head: that of the class palette if several are shown."""
        return self.colors.get(int(head), _ONE_HEAD) if len(self.heads) > 1 else _ONE_HEAD

    def title(self) -> str:
        names = ["mean" if head == MEAN else str(head) for head in self.heads]
        if len(names) > 1:
            what = f"heads {', '.join(names)}"
        else:
            what = head_name(self.heads[0])
        kind = {"Weights": "", "NormWeighted": ", weighted by norms", "Rollout": ": rollout"}[self.quantity]
        return f"Layer {self.layer}" + (kind if self.quantity == "Rollout" else f", {what}{kind}")


class _Panel:
    """The place of a panel, in millimetres from the lower left corner: its rows and columns."""

    def __init__(self, left: float, right: float, top: float, pitch: float, queries: range, keys: range) -> None:
        self.left, self.right, self.top, self.pitch = left, right, top, pitch
        self.queries, self.keys = queries, keys

    def y(self, row: int, rows: range) -> float:
        return self.top - (row - rows.start + 0.5) * self.pitch


def _parts(words: _Words, rows: int) -> list[tuple[range, range]]:
    """The panels of a text: ranges of queries and of keys, as far as these can be attended to."""
    counts = map(len, words.labels)
    queries, keys = ([range(begin, min(begin + rows, count)) for begin in range(0, count, rows)] for count in counts)
    return [(q, k) for q in queries for k in keys if not words.is_causal or k.start <= q.start]


class _Layout:
    """Sizes, in millimetres, of panels side by side on a page. rows: of a panel; None: chosen."""

    def __init__(self, words: _Words, page: Page, rows: int | None) -> None:
        texts, self.families = readable([*words.labels[0], *words.labels[1]])
        self.labels = texts[: len(words.labels[0])], texts[len(words.labels[0]) :]
        self.base = matplotlib.rcParams["font.size"]
        available = ((page.height_mm or _HEIGHT_MM) - 2 * _TITLE) / _POINT / _LEADING  # of letters of one point
        count = max(map(len, words.labels))
        if rows is None:
            rows = count if count <= available / self.base or not page.is_own else math.ceil(count / math.ceil(count / _ROWS))
        if page.is_own:
            check("rows", rows, 1, math.floor(available / 3))
        rows = min(rows, count)
        self.size = min(self.base, available / rows)
        self.pitch = self.size * _LEADING * _POINT
        self.parts = _parts(words, rows)
        widest = max(map(len, texts)) * 0.6 * self.size * _POINT
        least = 2 * min(widest, 18) + _BARS + _LEAST_LINES
        self.columns = max(1, min(len(self.parts), math.floor((page.width_mm + _GAP) / (least + _GAP))))
        self.panel = (page.width_mm - (self.columns - 1) * _GAP - 2) / self.columns
        self.word = min(widest, _WIDEST * self.panel) + 1

    def rows_of_panels(self) -> list[list[tuple[range, range]]]:
        """The parts side by side, from the top downward."""
        return [self.parts[i : i + self.columns] for i in range(0, len(self.parts), self.columns)]

    def height(self, parts: list[tuple[range, range]]) -> float:
        """Of panels side by side, with the names of their columns."""
        return float(max(len(part) for pair in parts for part in pair) * self.pitch + _TITLE)

    def place(self, words: _Words, number: int, top: float, queries: range, keys: range) -> _Panel:
        """A panel, the number-th from the left."""
        begin = 1 + number * (self.panel + _GAP)
        left = begin + self.word + (0 if words.has_key_bars else _BARS)
        right = begin + self.panel - self.word - (_BARS if words.has_key_bars else 0)
        return _Panel(left, right, top, self.pitch, queries, keys)


def _write_words(axes: Any, words: _Words, layout: _Layout, panel: _Panel) -> None:
    """The words of both columns, outside of the lines; wide ones are smaller."""
    renderer = FigureCanvasAgg(Figure((1, 1), dpi=72)).get_renderer()  # which measures them
    columns = ((panel.queries, panel.left - 0.7, "right"), (panel.keys, panel.right + 0.7, "left"))
    for side, (rows, x, align) in enumerate(columns):
        for row in rows:
            text = layout.labels[side][row]
            color = GREY if words.hidden[side][row] else foreground()
            drawn = axes.text(
                x, panel.y(row, rows), text, size=layout.size, color=color, ha=align, va="center_baseline",
                family=[*matplotlib.rcParams["font.family"], *layout.families],
            )
            width = drawn.get_window_extent(renderer, dpi=72).width * _POINT
            if width > layout.word - 0.7:
                drawn.set_size(layout.size * (layout.word - 0.7) / width)


def _draw_lines(axes: Any, words: _Words, panel: _Panel) -> None:
    """The lines between the words of a panel; the strongest last."""
    query, key = words.pairs.T
    inside = (query >= panel.queries.start) & (query < panel.queries.stop)
    inside &= (key >= panel.keys.start) & (key < panel.keys.stop)
    chosen = numpy.flatnonzero(inside)
    chosen = chosen[numpy.argsort(words.opacity[chosen], kind="stable")]
    shift = min(0.15, 0.7 / len(words.heads))
    middle = (len(words.heads) - 1) / 2
    offsets = {head: panel.pitch * shift * (middle - i) for i, head in enumerate(words.heads)}
    ends, colors = [], []
    for i in chosen:
        offset = offsets[int(words.head[i])]
        ends.append([
            (panel.left, panel.y(query[i], panel.queries) + offset),
            (panel.right, panel.y(key[i], panel.keys) + offset),
        ])
        # A few opacities, so that a PDF is not larger than need be.
        colors.append((*words.color(words.head[i]), round(float(words.opacity[i]), 2)))
    low, high = _WIDTHS
    width = (low + (high - low) * words.opacity[chosen]) * min(1, panel.pitch / 2)
    axes.add_collection(LineCollection(ends, colors=colors, linewidths=width, capstyle="butt"))


def _draw_bars(axes: Any, words: _Words, layout: _Layout, panel: _Panel) -> None:
    """What each key receives, or each query gives, with the largest as long as there is room."""
    totals = numpy.bincount(words.bar_rows, words.bars, len(words.labels[words.has_key_bars]))
    if not totals.any():
        return
    rows = panel.keys if words.has_key_bars else panel.queries
    sign = 1 if words.has_key_bars else -1
    start = panel.right + layout.word if words.has_key_bars else panel.left - layout.word
    ends = dict.fromkeys(rows, start)
    height = 0.6 * panel.pitch
    for row, value, head in zip(words.bar_rows, words.bars, words.bar_heads):
        if row in ends:
            length = sign * (_BARS - 1) * value / totals.max()
            corner = (ends[row], panel.y(row, rows) - height / 2)
            axes.add_patch(Rectangle(corner, length, height, facecolor=words.color(head), linewidth=0))
            ends[row] += length


def _name_columns(axes: Any, layout: _Layout, panel: _Panel) -> None:
    size = min(layout.size + 1, layout.base)
    for x, name, align in ((panel.left, "Query", "right"), (panel.right, "Key", "left")):
        axes.text(x, panel.top + 0.8, name, color=GREY, size=size, ha=align)


def _name_heads(axes: Any, words: _Words) -> None:
    for head in words.heads:
        label = "mean" if head == MEAN else f"head {head}"
        axes.plot([], [], color=words.color(head), linewidth=2, label=label)
    axes.legend(loc="upper right", ncol=min(len(words.heads), 6), borderaxespad=0.2)


def _draw(words: _Words, layout: _Layout, rows_of_panels: list[Any], page: Page, title: str) -> Any:
    """A figure of panels, side by side and one below the other."""
    height = sum(map(layout.height, rows_of_panels)) + _TITLE
    figure, axes = page.canvas(height)
    height = page.height_mm or height
    axes.text(1, height - 1, title, size=matplotlib.rcParams["axes.titlesize"], va="top")
    top = height - _TITLE
    for parts in rows_of_panels:
        for number, (queries, keys) in enumerate(parts):
            panel = layout.place(words, number, top - _TITLE + 1, queries, keys)
            _draw_lines(axes, words, panel)
            _write_words(axes, words, layout, panel)
            others = queries if words.has_key_bars else keys
            if queries == keys if words.is_one_text else others.start == 0:  # once for each word
                _draw_bars(axes, words, layout, panel)
            _name_columns(axes, layout, panel)
        top -= layout.height(parts)
    if len(words.heads) > 1:
        _name_heads(axes, words)
    return figure


def _title(words: _Words, number: int = 1, figures: int = 1) -> str:
    count = len(words.labels[0])
    last = words.first + count - 1
    part = f"; tokens {words.first} to {last} of {words.length}" if count < words.length else ""
    return words.title() + part + (f" (page {number} of {figures})" if figures > 1 else "")


def _show(
    recording: Recording, page: Page, layer: int | None, head: Head | Listed[Head], sequence: Sequence,
    rows: int | None, properties: dict[str, Any],
) -> tuple[_Words, _Layout]:
    """The words of a sequence, and their layout. properties: arguments of pages, as the filter has them."""
    names = {"first": "FirstToken", "count": "TokenCount", "hidden": "HiddenTokens", "selected": "SelectedTokens"}
    chosen = {names.get(key) or key.title().replace("_", ""): value for key, value in properties.items()}
    words = _Words(recording, layer, head, sequence, **{
        key: list(value) if isinstance(value, tuple) else value for key, value in chosen.items()
    })
    return words, _Layout(words, page, rows)


@made_from(Recording)
def pages(
    recording: Recording, page: Page, layer: int | None = None, head: Head | Listed[Head] = 0, sequence: Sequence = 0,
    threshold: float = 0.01, hide_first: bool = False, hide_special: bool = False, hidden: Listed[int] = (),
    selected: Listed[int] = (), direction: str = "FromQueries", quantity: str = "Weights", first: int = 0,
    count: int = 0, rows: int | None = None,
) -> Figures:
    """The attention between words, as a list of figures that each fit on a page; for texts of any length.

    layer: the first recorded one by default. head: a number, "mean", or a list of several. sequence: a number, or
    "mean". threshold: the least weight of a line, 0 to 1. hide_first, hide_special: without the first token, or tokens
    such as [CLS]. hidden, selected: rows in the recording's tokens. direction: FromQueries or ToKeys, the lines of the
    selected tokens. quantity: Weights, NormWeighted or Rollout. first, count: the tokens to show; count 0 is all. rows:
    of a panel; by default as many as fit with letters of at least 5 points.
    """
    words, layout = _show(recording, page, layer, head, sequence, rows, {
        "threshold": threshold, "hide_first": hide_first, "hide_special": hide_special, "hidden": hidden,
        "selected": selected, "direction": direction, "quantity": quantity, "first": first, "count": count,
    })
    figures = layout.rows_of_panels()
    return Figures(
        _draw(words, layout, [parts], page, _title(words, number, len(figures)))
        for number, parts in enumerate(figures, 1)
    )


@drawn_from(Recording)
def lines(
    recording: Recording, page: Page, layer: int | None = None, head: Head | Listed[Head] = 0, sequence: Sequence = 0,
    rows: int | None = None, count: int = TOKENS, **options: Any,
) -> Any:
    """The attention between words, as one figure: of 256 tokens, unless count is another number.

    options: others of pages, such as threshold=0.05, hide_first=True or first=100.
    """
    known = inspect.signature(pages).parameters
    for name in options:
        if name not in known:
            raise TypeError(f"lines: got an unexpected keyword argument '{name}'")
    chosen = {"threshold": 0.01, **options, "count": count}
    words, layout = _show(recording, page, layer, head, sequence, rows, chosen)
    return _draw(words, layout, layout.rows_of_panels(), page, _title(words))


def render(path: PathLike, folder: PathLike, output: Output | None = None, **place: Any) -> list[pathlib.Path]:
    """Renders the pages of a sequence of a recording; returns their paths. place: as for pages."""
    output = output or Output()
    folder, stem = pathlib.Path(folder), pathlib.Path(path).stem
    figures = pages(path, **place, **output.options)
    folder.mkdir(parents=True, exist_ok=True)
    digits = len(str(len(figures)))
    names = [f"{stem}-sentence-{n:0{digits}}" for n in range(1, len(figures) + 1)]
    if len(figures) == 1:
        names = [f"{stem}-sentence"]
    return [output.write(figure, folder, name) for figure, name in zip(figures, names)]


def _numbers(text: str) -> list[int]:
    """The numbers of a list such as 0,3,11."""
    try:
        return [int(word) for word in text.split(",") if word]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers such as 0,3,11, found '{text}'") from None


def _heads(text: str) -> Head | list[Head]:
    numbers: list[Head] = [one if one == "mean" else _numbers(one)[0] for one in text.split(",") if one]
    if not numbers:
        raise argparse.ArgumentTypeError("expected a head, heads such as 0,3,11, or mean, found nothing")
    return numbers[0] if len(numbers) == 1 else numbers


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders the attention between the words of a recorded text.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="safetensors, npy or npz")
    add_options(parser)
    parser.add_argument("--sequence", type=int, default=0, help="of the recording (default: 0)")
    parser.add_argument("--layer", type=int, help="(default: the first recorded one)")
    parser.add_argument("--head", type=_heads, default=0, help="a head, several, or mean (default: 0)")
    parser.add_argument("--quantity", default="Weights", help="Weights, NormWeighted or Rollout (default: Weights)")
    parser.add_argument("--threshold", type=float, default=0.01, help="the least weight of a line (default: 0.01)")
    parser.add_argument("--hide-first", action="store_true", help="without the first token")
    parser.add_argument("--hide-special", action="store_true", help="without tokens such as [CLS]")
    parser.add_argument("--hidden", type=_numbers, default=[], metavar="TOKEN,...", help="without these tokens")
    parser.add_argument("--selected", type=_numbers, default=[], metavar="TOKEN,...", help="lines of these alone")
    parser.add_argument("--direction", default="FromQueries", help="FromQueries or ToKeys (default: FromQueries)")
    parser.add_argument("--first", type=int, default=0, help="the first token to show (default: 0)")
    parser.add_argument("--count", type=int, default=0, help="of tokens to show (default: 0, all)")
    parser.add_argument("--rows", type=int, help="of a panel (default: what fits)")
    return parser


def main(arguments: Listed[str] | None = None) -> None:
    found = _parser().parse_args(arguments)
    output = options(found)
    place = {name: value for name, value in vars(found).items() if name not in (*output, "recordings", "output")}
    try:
        for path in found.recordings:
            for file in render(path, found.output, Output(**output), **place):
                print(file, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
