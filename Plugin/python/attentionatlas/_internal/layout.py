"""The places of panels on a page: a grid of equal ones, with what is written around them and color bars beside them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, NullLocator
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

#: How often panels are measured whose ticks change with their size, and how often lengths are balanced, at most.
_ROUNDS, _STEPS = 4, 50
#: A layout is done when places change by less than this share of a page, and lengths by less than so many inches.
_CLOSE, _SAME = 5e-4, 1e-6


@contextlib.contextmanager
def _measured_once() -> Iterator[None]:
    """Within `with`, equal texts are measured once. A layout measures each text ten times and more."""
    known: dict[Any, Any] = {}
    measure = Text._get_layout

    def measured(text: Any, renderer: Any) -> Any:
        key = (
            text.get_text(), text.get_fontproperties(), text.get_rotation(), text.get_rotation_mode(), text.get_ha(), text.get_va(),
            text._multialignment, text._linespacing, text.figure.dpi,
        )
        if text.get_wrap():  # at the border of the figure
            return measure(text, renderer)
        if key not in known:
            known[key] = measure(text, renderer)
        return known[key]

    Text._get_layout = measured
    try:
        yield
    finally:
        Text._get_layout = measure


class _Ruler(FigureCanvasAgg):
    """A canvas that measures texts, and has no room for a picture."""

    def get_renderer(self, cleared: bool = False) -> Any:
        if self._measures is None:
            self._measures = RendererAgg(1, 1, self.figure.dpi)
        return self._measures

    _measures: Any = None


@contextlib.contextmanager
def shown_at(figure: Any, dpi: float, canvas: type[Any] = _Ruler) -> Iterator[Any]:
    """A figure of another resolution on another canvas within `with`."""
    before = figure.canvas, figure.dpi
    try:
        figure.dpi = dpi
        yield canvas(figure)
    finally:
        figure.set_canvas(before[0])
        figure.dpi = before[1]


class _Bar(NamedTuple):
    """A color bar beside some panels. share: its largest width, as a share of theirs. height: its height, as a share of
    theirs. aspect: its height divided by its width. pad: the gap before it, as a share of their width."""

    axes: Any
    rows: range
    columns: range
    share: float
    height: float
    aspect: float
    pad: float


class _Grid:
    """The panels of a figure by row and column, and its color bars. Lengths are in inches.

    pads: at the borders of the page. gaps: between panels, as matplotlib's constrained layout takes them. is_square: whether
    panels of a fixed shape leave no space between them.
    """

    def __init__(self, figure: Any, pads: tuple[float, float], gaps: tuple[float, float], is_square: bool) -> None:
        self._figure, self._pads, self._is_square = figure, pads, is_square
        specs = {axes: axes.get_subplotspec() for axes in figure.axes if getattr(axes, "get_subplotspec", lambda: None)()}
        bars = {axes: axes._colorbar_info for axes in figure.axes if hasattr(axes, "_colorbar_info")}
        grids = {spec.get_gridspec() for spec in specs.values()}
        others = (*figure.subfigs, *figure.legends, figure._supxlabel, figure._supylabel)
        #: Whether there is nothing else, which a user can add.
        self.is_plain = len(grids) == 1 and not any(others) and all(spec.num1 == spec.num2 for spec in specs.values()) and all(
            info["location"] == "right" and specs.keys() >= set(info["parents"]) for info in bars.values()
        )
        if not self.is_plain:
            return
        self._panels = {axes: (spec.rowspan.start, spec.colspan.start) for axes, spec in specs.items()}
        # As matplotlib has it, the one that came last stands next to the panels.
        self._bars = [self._bar(axes, info) for axes, info in reversed(bars.items())]
        self._rows, self._columns = grids.pop().get_geometry()
        self._gaps = [
            2 * max(pad, gap * side / count / 2)
            for pad, gap, side, count in zip(pads, gaps, figure.get_size_inches(), (self._columns, self._rows))
        ]
        #: How far what is written goes beyond each panel and color bar: at the left, below, at the right, above.
        self._reach: dict[Any, NDArray[Any]] = {}
        self._title = 0.0

    def _bar(self, axes: Any, info: Any) -> _Bar:
        rows, columns = (range(min(places), max(places) + 1) for places in zip(*(self._panels[one] for one in info["parents"])))
        return _Bar(axes, rows, columns, info["fraction"], info["shrink"], info["aspect"], info["pad"])

    def measure(self) -> bool:
        """Measures what is written around panels, a second time only what depends on their size; whether there is such."""
        renderer, dpi = self._figure.canvas.get_renderer(), self._figure.dpi
        measured = [axes for axes in (*self._panels, *(bar.axes for bar in self._bars)) if axes not in self._reach or _is_loose(axes)]
        for axes in measured:
            box, label, frame = axes.get_tightbbox(renderer, for_layout_only=True), axes.yaxis.label, axes.bbox
            if box is None:  # hidden
                self._reach[axes] = numpy.zeros(4)
                continue
            beside = box
            if axes.axison and label.get_visible() and label.get_text():  # which can be longer than the axis
                beside = label.get_window_extent(renderer)
            reach = frame.x0 - box.x0, frame.y0 - min(box.y0, beside.y0), box.x1 - frame.x1, max(box.y1, beside.y1) - frame.y1
            self._reach[axes] = numpy.maximum(0, reach) / dpi
        title = self._figure._suptitle
        if title is not None and title.get_visible() and title.get_text():
            self._title = title.get_window_extent(renderer).height / dpi + self._pads[1]
        return any(map(_is_loose, measured))

    def _margins(self) -> NDArray[Any]:
        """The room around the panels of each column and row for what is written: at the left, below, at the right, above."""
        margins = numpy.zeros((4, max(self._rows, self._columns)))
        for axes, (row, column) in self._panels.items():
            for side, place in enumerate((column, row, column, row)):
                margins[side, place] = max(margins[side, place], self._reach[axes][side])
        return margins

    def _shapes(self) -> NDArray[Any]:
        """The largest height of a panel of each row by its width; 0 for rows whose panels take any."""
        shapes = numpy.zeros(self._rows)
        for axes, (row, _) in self._panels.items():
            shapes[row] = max(shapes[row], _shape(axes) if self._is_square else 0)
        return shapes

    def solve(self, height: float, is_free: bool) -> bool:
        """Gives panels and color bars their places on a page of this height or, if it is free, the page the height up to this
        that they need; returns whether there is room."""
        width, (pad, rim), (gap, space) = self._figure.get_figwidth(), self._pads, self._gaps
        rows, columns, shapes = self._rows, self._columns, self._shapes()
        margins = self._margins()
        left, right = margins[0, :columns], margins[2, :columns]
        below, above = margins[1, :rows], margins[3, :rows]
        side = width / columns / 2
        bars: list[tuple[Any, int, float, float, float, float]] = []
        for _ in range(_STEPS):
            # Of the page, the heights of panels; then the color bars beside them, whose widths follow from both.
            rest = height - self._title - 2 * rim - (rows - 1) * space - below.sum() - above.sum()
            is_any = shapes == 0
            heights = side * shapes
            heights[is_any] = max(0.0, rest - heights.sum()) / max(1, is_any.sum())
            tops = numpy.cumsum(above + heights + below + space) - heights - below - space  # downward
            beside = numpy.zeros((rows, columns))
            bars = []
            for bar in self._bars:
                first, last = bar.columns[0], bar.columns[-1]
                across = side * len(bar.columns) + sum(
                    right[one] + beside[:, one].max() + gap + left[one + 1] for one in range(first, last))
                top, bottom = tops[bar.rows[0]], tops[bar.rows[-1]] + heights[bar.rows[-1]]
                tall = min(bar.height * (bottom - top), bar.aspect * bar.share * across)
                reach = self._reach[bar.axes]
                begin = beside[bar.rows, last].max() + bar.pad * across + reach[0]
                beside[bar.rows, last] = begin + tall / bar.aspect + reach[2]
                spare = (bottom - top - tall) / 2
                bars.append((bar.axes, last, begin, top + spare, tall / bar.aspect, tall))
                above[bar.rows[0]] = max(above[bar.rows[0]], reach[3] - spare)
                below[bar.rows[-1]] = max(below[bar.rows[-1]], reach[1] - spare)
            around = left + right + beside.max(axis=0)
            found = (width - 2 * pad - (columns - 1) * gap - around.sum()) / columns
            if not is_any.any():
                found = min(found, rest / shapes.sum())
            if found <= 0 or heights.min() <= 0:
                return False
            done, side = abs(found - side) < _SAME, found
            if done:
                break
        content = self._title + 2 * rim + (rows - 1) * space + (above + heights + below).sum()
        page = content if is_free else height
        self._figure.set_figheight(page)
        ends = numpy.cumsum(around + side + gap)
        begins = (width + gap - ends[-1]) / 2 + ends - around - side - gap + left
        down = self._title + rim + (page - content) / 2

        def place(axes: Any, x: float, y: float, wide: float, tall: float) -> None:
            axes._set_position(Bbox.from_bounds(x / width, 1 - (down + y + tall) / page, wide / width, tall / page))
            axes.apply_aspect()

        for axes, (row, column) in self._panels.items():
            place(axes, begins[column], tops[row], side, heights[row])
        for axes, column, begin, top, wide, tall in bars:
            place(axes, begins[column] + side + right[column] + begin, top, wide, tall)
        if self._title and self._figure._suptitle._autopos:
            self._figure._suptitle.set_y(1 - rim / page)
        return True


def _shape(axes: Any) -> float:
    """The height of axes by their width, if that is fixed; else 0."""
    if axes.get_box_aspect() is not None:
        return float(axes.get_box_aspect())
    is_fixed = axes.get_aspect() != "auto" and axes.get_adjustable() == "box"
    return float(axes.get_aspect() * axes.get_data_ratio()) if is_fixed else 0.0


def _is_loose(axes: Any) -> bool:
    """Whether what is written around axes can depend on their size: ticks without places of their own, texts, other axes."""
    locators = (axis.get_major_locator() for axis in (axes.xaxis, axes.yaxis))
    return bool(axes.texts or axes.child_axes) or not all(isinstance(one, (FixedLocator, NullLocator)) for one in locators)


class Layout(ConstrainedLayoutEngine):
    """The layout of a grid of panels, which keeps their places as long as nothing in the figure has changed since they were
    settled. A figure with more than panels and color bars has matplotlib's constrained layout, which takes ten times as long.

    dpi: of its pictures, by default. height: the largest of a page whose height is free, in inches. is_square: whether panels
    of a fixed shape leave no space between them.
    """

    def __init__(self, dpi: float, height: float, is_square: bool) -> None:
        super().__init__(compress=is_square, w_pad=0.04, h_pad=0.03, wspace=0.02, hspace=0.02)
        self._dpi, self._height, self._is_square = dpi, height, is_square
        #: The resolution for which panels have their places.
        self._settled: float | None = None
        self._rests = False

    def execute(self, fig: Any) -> None:
        if not self._rests:
            self.settle(fig, dpi=fig.dpi)

    def settle(self, figure: Any, is_free: bool = False, dpi: float | None = None) -> None:
        """Gives panels their places, for pictures of a resolution. is_free: the page gets the height that they need."""
        dpi = dpi or self._dpi
        sides = {name: self._params[name] for name in ("w_pad", "h_pad", "wspace", "hspace")}
        grid = _Grid(figure, (sides["w_pad"], sides["h_pad"]), (sides["wspace"], sides["hspace"]), self._is_square)
        with _measured_once(), shown_at(figure, dpi):
            if not grid.is_plain or not self._place(figure, grid, is_free):
                super().execute(figure)
        self._settled = dpi
        self.keep(figure)

    def _place(self, figure: Any, grid: _Grid, is_free: bool) -> bool:
        """Places what is in a grid; returns whether there is room for it."""
        for _ in range(_ROUNDS):
            before = [*figure.get_size_inches(), *(value for axes in figure.axes for value in axes.get_position(True).bounds)]
            depends = grid.measure()
            if not grid.solve(self._height if is_free else figure.get_figheight(), is_free):
                return False
            after = [*figure.get_size_inches(), *(value for axes in figure.axes for value in axes.get_position(True).bounds)]
            if not depends or numpy.abs(numpy.subtract(after, before)).max() < _CLOSE:
                break
        return True

    def keep(self, figure: Any) -> None:
        """Keeps places that were settled, whatever was drawn in the panels since."""
        figure.stale = figure.stale and self._settled is None

    @contextlib.contextmanager
    def drawing(self, figure: Any, dpi: float | None) -> Iterator[None]:
        """To be drawn within `with`, at a resolution, or as vectors, which are right for any."""
        is_settled = self._settled is not None and (dpi is None or math.isclose(dpi, self._settled, rel_tol=1e-6))
        if figure.stale or not is_settled:
            self.settle(figure, dpi=dpi)
        self._rests = True
        try:
            yield
        finally:
            self._rests = False
            self.keep(figure)  # of another resolution meanwhile
