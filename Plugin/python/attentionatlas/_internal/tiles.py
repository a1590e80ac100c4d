"""The map of a long text as an image pyramid, of which a page draws the tiles that its window shows.

A pixel stands for `cell` queries and as many keys: the largest or the mean weight of all their pairs, as the filter
AttentionMap pools them. `cell` is a power of two; each level has twice that of the one before it, until all is one
tile. Weights are steps of equal ratios, a byte each. Tiles without a weight above 0 are left out, such as those that
the mask excludes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from attentionatlas._internal import data
from attentionatlas._internal.checks import check
from attentionatlas._internal.looks import fixed_scale, shades
from attentionatlas._internal.recording import Recording
from attentionatlas._internal.webpage import Scene, Texts, json_text

#: Texts of more tokens have tiles; the map of others has a point for each pair.
POINTS = 1024
#: Pixels on a side of a tile.
SIZE = 256
#: The largest sizes of a page, in megabytes: those of texts of JavaScript.
LARGEST = 256
#: Points on a side that the filter gives at most, and tokens on a side of windows that it pools as finely as is asked.
_RESOLUTION, _WINDOW = 4096, 16384
#: Steps of the scale, without 0, and the ratio of its ends, at most.
_STEPS, _RATIO = 255, 1e6
#: Pixels in the table, and letters of their tokens.
_ROWS, _LETTERS = 100, 60
#: What pixels are called.
_MEASURES = {"Maximum": "Largest weight", "Mean": "Mean weight"}


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}" + "s" * (count != 1)


class MapSize(NamedTuple):
    """How large the map of a long text is in a page, at most, before it is made.

    cell: queries and keys of a pixel of the finest level, on each side. levels: of the pyramid. tiles: of all levels,
    256 x 256 pixels each, as far as the mask allows weights in them. megabytes: of the page, without its script.
    """

    cell: int
    levels: int
    tiles: int
    megabytes: float

    def __str__(self) -> str:
        pairs = "single pairs" if self.cell == 1 else f"{self.cell} x {self.cell} pairs a pixel"
        return (
            f"{_counted(self.tiles, 'tile')} of {SIZE} x {SIZE} pixels in {_counted(self.levels, 'level')}, down to {pairs}: "
            f"at most {self.megabytes:.1f} MB"
        )


def _cells(cell: int, sides: tuple[int, int]) -> Iterator[int]:
    """The cells of all levels, the finest first."""
    yield cell
    while max(sides) > SIZE * cell:
        cell *= 2
        yield cell


def _count(cell: int, sides: tuple[int, int], is_causal: bool) -> int:
    """The tiles of a level in which the mask allows weights. sides: the numbers of queries and keys."""
    rows, columns = (-(-side // (SIZE * cell)) for side in sides)
    return rows * (rows + 1) // 2 if is_causal else rows * columns


def size(recording: Recording, sequence: int, cell: int | None, megabytes: float) -> MapSize:
    """The size of a map. cell: None for the finest level that fits."""
    check("megabytes", megabytes, 1, LARGEST)
    if cell is not None and (cell < 1 or cell > 1 << 20 or cell & (cell - 1)):
        raise ValueError(f"cell: expected a power of 2 from 1 to {1 << 20}, found {cell}.")
    texts = recording.sides(sequence)
    sides = len(texts[0]), len(texts[1])
    is_causal = recording.is_causal and sides[0] == sides[1]
    different = texts if texts[0] is not texts[1] else texts[:1]
    words = sum(4 * len(of) + len(json_text(list(set(of)))) for of in different)

    def made(finest: int) -> MapSize:
        cells = list(_cells(finest, sides))
        tiles = sum(_count(of, sides, is_causal) for of in cells)
        # Compressed by nothing, and as text.
        return MapSize(finest, len(cells), tiles, 1.001 * 4 / 3 * (tiles * (SIZE * SIZE + 4) + words) / 1e6)

    found = made(cell or 1)
    while cell is None and found.megabytes > megabytes and found.levels > 1:
        found = made(2 * found.cell)
    if found.megabytes > megabytes:
        raise ValueError(f"megabytes: expected room for {found}; found {megabytes:g}.")
    return found


def _pooled(values: Any, counts: tuple[Any, Any], factors: tuple[int, int], is_mean: bool) -> tuple[Any, tuple[Any, Any]]:
    """Larger cells of factors[0] x factors[1] others, with the queries of their rows and the keys of their columns."""
    starts = [numpy.arange(0, len(count), factor) for count, factor in zip(counts, factors)]
    totals = numpy.add.reduceat(counts[0], starts[0]), numpy.add.reduceat(counts[1], starts[1])
    made = numpy.empty([len(total) for total in totals], numpy.float32)
    for begin in range(0, len(made), SIZE):
        band = slice(begin, begin + SIZE)
        part = values[begin * factors[0] : (begin + SIZE) * factors[0]].astype(float)
        rows = counts[0][begin * factors[0] : (begin + SIZE) * factors[0]]
        if is_mean:
            part = numpy.add.reduceat(part * rows[:, None], numpy.arange(0, len(rows), factors[0])) / totals[0][band, None]
            made[band] = numpy.add.reduceat(part * counts[1], starts[1], 1) / totals[1]
        else:
            part = numpy.maximum.reduceat(part, numpy.arange(0, len(rows), factors[0]))
            made[band] = numpy.maximum.reduceat(part, starts[1], 1)
    return made, totals


def _lengths(side: int, cell: int) -> NDArray[Any]:
    """The tokens of the cells of a side; the last may have fewer."""
    starts = numpy.arange(0, side, cell)
    return numpy.minimum(cell, side - starts)


def _finest(made: Any, sides: tuple[int, int], cell: int, is_mean: bool) -> NDArray[Any]:
    """The pixels [queries, keys] of the finest level, window by window."""
    is_whole = max(sides) <= _RESOLUTION * cell
    span = max(sides) if is_whole else max(cell, min(_WINDOW, _RESOLUTION * cell))
    whole = numpy.zeros([-(-side // cell) for side in sides], numpy.float32)
    for top in range(0, sides[0], span):
        for left in range(0, sides[1], span):
            ends = min(top + span, sides[0]), min(left + span, sides[1])
            made.QueryWindow, made.KeyWindow = (top, ends[0]), (left, ends[1])
            made.Resolution = -(-span // cell)
            image = data.fetch(made)
            columns, rows, _ = image.GetDimensions()
            spacing = image.GetSpacing()
            values = data.point_array(image, "Weights").reshape(rows, columns)[::-1]
            # A window that ends with the text can be finer than the others.
            given = int(spacing[1]), int(spacing[0])
            counts = _lengths(ends[0] - top, given[0]), _lengths(ends[1] - left, given[1])
            values, _ = _pooled(numpy.nan_to_num(values), counts, (cell // given[0], cell // given[1]), is_mean)
            row, column = top // cell, left // cell
            whole[row : row + len(values), column : column + values.shape[1]] = values
    return whole


def _ends(values: NDArray[Any]) -> tuple[float, float]:
    """The ends of the scale: a hundredth of the weights above 0 are below the low one."""
    positive = values[values > 0]
    high = float(positive.max()) if positive.size else 1.0
    low = float(numpy.percentile(positive, 1)) if positive.size else 0.1
    return min(max(low, high / _RATIO), high / 10), high


def _steps(values: NDArray[Any], low: float, high: float) -> NDArray[numpy.uint8]:
    """0 for 0, 1 up to the low end of the scale, and then steps of equal ratios up to the high one."""
    above = numpy.log(numpy.maximum(values, low) / low) / numpy.log(high / low)
    steps = 1 + numpy.ceil((_STEPS - 1) * numpy.minimum(above, 1) - 1e-9)
    return numpy.where(values > 0, steps, 0).astype(numpy.uint8)


def _level(values: NDArray[Any], cell: int, ends: tuple[float, float]) -> dict[str, Any]:
    """The tiles of a level that have a weight above 0: their numbers, by rows, and their pixels."""
    rows, columns = (-(-count // SIZE) for count in values.shape)
    padded = numpy.zeros((rows * SIZE, columns * SIZE), numpy.uint8)
    for begin in range(0, len(values), SIZE):
        steps = _steps(values[begin : begin + SIZE].astype(float), *ends)
        padded[begin : begin + len(steps), : steps.shape[1]] = steps
    tiles = padded.reshape(rows, SIZE, columns, SIZE).swapaxes(1, 2).reshape(rows * columns, SIZE * SIZE)
    shown = tiles.any(axis=1)
    return {
        "cell": cell,
        "dimensions": [values.shape[1], values.shape[0]],
        "numbers": numpy.flatnonzero(shown).astype(numpy.uint32),
        "steps": tiles[shown],
    }


def _strongest(values: NDArray[Any], cell: int, texts: tuple[list[str], list[str]], measure: str) -> dict[str, Any]:
    """The pixels of the finest level with the largest weights, the largest first."""
    flat = values.ravel()
    found = numpy.zeros(0, int)
    for begin in range(0, flat.size, SIZE * values.shape[1]):
        band = flat[begin : begin + SIZE * values.shape[1]]
        some = numpy.argpartition(-band, min(_ROWS, band.size) - 1)[:_ROWS] + begin
        found = numpy.concatenate([found, some[flat[some] > 0]])
        found = found[numpy.lexsort((found, -flat[found]))][:_ROWS]
    columns: dict[str, Any] = {}
    for name, numbers, of in zip(("Query", "Key"), divmod(found, values.shape[1]), texts):
        columns[f"{name} Position"] = (cell * numbers).astype(numpy.int32)[:, None]
        joined = ("".join(of[begin : begin + cell][:_LETTERS]) for begin in (cell * numbers).tolist())
        columns[f"{name} Token" + "s" * (cell > 1)] = Texts(text[:_LETTERS] for text in joined)
    columns[measure] = flat[found].astype(numpy.float32)[:, None]
    return columns


def scene(recording: Recording, made: Any, asked: MapSize, pooling: str, title: str) -> Scene:
    """The map that a filter AttentionMap shows, as a scene."""
    texts = recording.sides(int(made.Sequence))
    sides = len(texts[0]), len(texts[1])
    is_mean, measure = pooling == "Mean", _MEASURES[pooling]
    made.MaximumSize = 1
    values = _finest(made, sides, asked.cell, is_mean)
    ends = _ends(values)
    strongest = _strongest(values, asked.cell, texts, measure)
    levels: dict[str, Any] = {}
    counts = _lengths(sides[0], asked.cell), _lengths(sides[1], asked.cell)
    for cell in _cells(asked.cell, sides):
        if levels:
            values, counts = _pooled(values, counts, (2, 2), is_mean)
        levels[str(cell)] = _level(values, cell, ends)
    colors = shades(fixed_scale("Weights"), 0, 1, _STEPS)
    part = {
        "kind": "tiles",
        "name": "Attention Map",
        "size": SIZE,
        "sides": [sides[1], sides[0]],
        "dimensions": levels[str(asked.cell)]["dimensions"],
        "levels": levels,
        "palette": numpy.array(colors[:1] + colors, numpy.uint8),
        "range": list(ends),
        "measure": measure,
        "tokens": Texts(texts[1]),
        "pointArrays": {},
        "search": [],
        "isPicked": True,
    }
    if texts[0] is not texts[1]:
        part["queryTokens"] = Texts(texts[0])
    half = [sides[1] / 2, sides[0] / 2]
    camera = {
        "focalPoint": [half[0], -half[1], 0.0],
        "position": [half[0], -half[1], 1.0],
        "viewUp": [0.0, 1.0, 0.0],
        "parallelScale": half[1],
        "isParallel": True,
        "viewAngle": 30.0,
        "extent": half,
    }
    pixels = "one pair" if asked.cell == 1 else f"{asked.cell} x {asked.cell} pairs"
    finest = "the weight of one pair" if asked.cell == 1 else f"the {measure.lower()} of {pixels}"
    farther = "" if len(levels) == 1 else f"; farther out, {'of more pairs' if asked.cell > 1 else f'the {measure.lower()} of more pairs'}"
    caption = f"Each row is a query, each column a key. Zoomed in, a pixel is {finest}{farther}."
    legend = {"title": f"{measure}, logarithmic", "ramp": [colors[round(i * (_STEPS - 1) / 16)] for i in range(17)], "range": list(ends)}
    found = Scene(title, caption, True, camera, [part], [legend])
    if len(strongest[measure]):
        found.tables[f"Strongest pixels of {pixels}"] = strongest
    return found
