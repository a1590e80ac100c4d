"""Pages of equal panels as matplotlib figures, and what is drawn in a panel in the plane."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Sequence as Listed
from typing import Any, Protocol, TypeVar, cast

import matplotlib
import matplotlib.figure
import numpy
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection
from matplotlib.colors import BoundaryNorm, Colormap, Normalize
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox, IdentityTransform, TransformedBbox

from attentionatlas._internal import style
from attentionatlas._internal.checks import check_page
from attentionatlas._internal.layout import Layout
from attentionatlas._internal.notebook import Figure
from attentionatlas._internal.readers import Proxies

MILLIMETRE = 1 / 25.4
#: The width below which a page gets fewer columns, per panel.
_PANEL_MM = 34
#: The smallest letters that can be read, in points.
_SMALLEST = 4
#: Points on a side of a chart, at most.
_MOST_POINTS = 4096
#: How many points a matrix has in files of vectors, at least, for each pixel of print.
_SHARPNESS = 0.5
#: Places on a page are the same up to this, in pixels.
_SAME = 1e-6

#: Heads side by side on one page, at most.
HEADS = 3
#: Points on a side of what level lines are drawn from: finer ones break them up.
LEVEL_POINTS = 241
SHARES = numpy.linspace(0, 1, 6)
_ANGLES = {-1: "\u2212\u03c0", -0.5: "\u2212\u03c0/2", 0: "0", 0.5: "\u03c0/2", 1: "\u03c0"}


class Page:
    """What a figure is drawn on: a page of its own, whose height follows from its content, or a user's Axes, Figure or
    SubFigure.

    width_mm: in millimetres. dpi: the resolution of images. ax, figure: a user's. cmap: a user's color map. rows of panels:
    see panels.
    """

    def __init__(
        self, width_mm: float = 180, dpi: float = 600, ax: Any = None, figure: Any = None, cmap: Any = None
    ) -> None:
        self.dpi, self._ax, self._figure, self._cmap = dpi, ax, figure, cmap
        #: Whether the color map was asked for.
        self.has_colors = False
        drawn = ax or figure
        self.is_own = drawn is None
        box = None if self.is_own else ax.get_window_extent() if ax else figure.bbox
        inches = [] if box is None else [side / drawn.figure.dpi for side in (box.width, box.height)]
        self.width_mm: float = width_mm if box is None else inches[0] / MILLIMETRE
        #: The height of a user's Axes or Figure, in millimetres; None for a page of its own.
        self.height_mm: float | None = None if box is None else inches[1] / MILLIMETRE

    def colors(self, own: Any) -> Any:
        """The color map for values: the user's, or else this one."""
        self.has_colors = True
        return own if self._cmap is None else self._cmap

    def columns(self, count: int) -> int:
        """How many of `count` panels lie side by side."""
        most = max(1, round(float(self.width_mm) / _PANEL_MM))
        return math.ceil(count / math.ceil(count / most))

    def pixels(self, columns: int) -> int:
        """The width of one of several panels side by side, in pixels."""
        return min(_MOST_POINTS, max(64, round(float(self.width_mm) * MILLIMETRE * self.dpi / columns)))

    def panels(
        self, count: int, columns: int | None = None, title: str | None = None, square: bool = True,
        height_mm: float | None = None,
    ) -> tuple[Any, list[Any]]:
        """A figure of panels row by row, and its axes. The height of a page of square panels is provisional: see fit.

        height_mm: of a page of its own. title: of all panels. Raises ValueError for a user's Axes if there are several.
        """
        if self._ax is not None:
            if count != 1:
                raise ValueError(f"ax: this figure has {count} panels; give figure=, a Figure or SubFigure, instead.")
            if title:
                self._ax.set_title(title)
            return self._ax.figure, [self._ax]
        columns = columns or self.columns(count)
        rows = math.ceil(count / columns)
        figure = self._figure or self._new_figure(rows, columns, square, height_mm)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for unused in axes[count:]:
            unused.remove()
        if title:
            figure.suptitle(title, x=0.01, horizontalalignment="left")
        return figure, list(axes[:count])

    def _new_figure(self, rows: int, columns: int, square: bool, height_mm: float | None) -> Figure:
        width = self.width_mm * MILLIMETRE
        height = width * (1.2 * rows / columns + 0.3) if height_mm is None else height_mm * MILLIMETRE
        return Figure((width, height), layout=Layout(self.dpi, height, square))

    def canvas(self, height_mm: float) -> tuple[Any, Any]:
        """A figure of one panel that fills it, in millimetres from the lower left corner, without its frame; of a user's
        Axes or Figure, as high as that is."""
        if self.is_own:
            figure = Figure((self.width_mm * MILLIMETRE, height_mm * MILLIMETRE))
            axes = figure.add_axes([0, 0, 1, 1])
        else:
            figure, (axes,) = self.panels(1)
            height_mm = self.height_mm or height_mm
        axes.set(xlim=(0, self.width_mm), ylim=(0, height_mm))
        axes.set_axis_off()
        return figure, axes

    def settle(self, figure: Any) -> None:
        """Gives the panels of a page of its own their places, from which the sizes of texts in them follow."""
        if self.is_own:
            figure.get_layout_engine().settle(figure)

    def fit(self, figure: Any) -> Any:
        """Gives a page of square panels the height that its content needs; returns the figure."""
        if self.is_own:
            figure.get_layout_engine().settle(figure, is_free=True)
        return figure


def _whole(figure: Any) -> Any:
    """The Figure that a SubFigure is on."""
    while not isinstance(figure, matplotlib.figure.Figure):
        figure = figure.figure
    return figure


def _color_map(cmap: Any) -> Any:
    """A color map by itself or by its name, without values in grey; None for None."""
    if cmap is None or isinstance(cmap, Colormap):
        return cmap
    if not isinstance(cmap, str) or cmap not in matplotlib.colormaps:
        raise ValueError(f'cmap: expected a color map of matplotlib or its name, such as "viridis"; found {cmap!r}.')
    found = matplotlib.colormaps[cmap]
    found.set_bad(style.HIDDEN)
    return found


def _page(
    ax: Any, figure: Any, width_mm: float | None, font_size: float | None, dark: bool, dpi: float, cmap: Any = None
) -> tuple[Page, Any]:
    """The page of a figure's options, and its style; raises ValueError for options that do not go together."""
    cmap = _color_map(cmap)
    if ax is None and figure is None:
        width_mm = 180 if width_mm is None else width_mm
        check_page(width_mm, font_size)
        return Page(width_mm, dpi, cmap=cmap), style.applied(font_size, dark)
    if ax is not None and figure is not None:
        raise ValueError("ax, figure: expected one of them, found both.")
    for name, value in (("width_mm", width_mm), ("font_size", font_size), ("dark", dark or None)):
        if value is not None:
            raise ValueError(f"{name}: not with ax= or figure=, which has its own size and style.")
    # Tokens are no formulas, whatever letters they have.
    return Page(dpi=dpi, ax=ax, figure=figure, cmap=cmap), matplotlib.rc_context({"text.parse_math": False})


def _keywords(
    function: Callable[..., Any], skipped: int = 0
) -> tuple[list[inspect.Parameter], list[inspect.Parameter]]:
    """The parameters of a function, less the first ones, as keywords; and whether it takes any others."""
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    named = [p.replace(kind=p.KEYWORD_ONLY) for p in parameters if p.kind != p.VAR_KEYWORD]
    return named, [p for p in parameters if p.kind == p.VAR_KEYWORD]


class Drawing(Protocol):
    """A function that draws a figure, from what is open or from a file, and returns it."""

    def __call__(
        self, source: Proxies | str | os.PathLike[str], /, *arguments: Any, ax: Any = None, figure: Any = None,
        width_mm: float | None = None, font_size: float | None = None, dark: bool = False, dpi: float = 600,
        cmap: Any = None, **options: Any,
    ) -> matplotlib.figure.Figure: ...


Result = TypeVar("Result")


def drawn_from(opener: type[Proxies]) -> Callable[[Callable[..., Any]], Drawing]:
    """Turns draw(opened, page, ...) into a function that returns a matplotlib Figure.

    opener: a class whose opened(source, ...) gives what is drawn, from a file or from what is open. The function takes
    the source, the options of draw, those of the opener as keywords, and those of every figure: ax, an Axes to draw
    into, or figure, a Figure or SubFigure; width_mm (180), font_size in points (7, or the user's setting), dark,
    dpi of the images in it (600), and cmap, the color map of values or its name. A figure whose colors are not those of
    a color map of values raises ValueError for cmap.
    """
    return lambda draw: cast(Drawing, _made(draw, opener, True))


def made_from(opener: type[Proxies]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """As drawn_from, for what is no single figure: it takes neither ax nor figure."""
    return lambda draw: cast(Callable[..., Result], _made(draw, opener, False))


def _made(draw: Callable[..., Any], opener: type[Proxies], own: bool) -> Callable[..., Any]:
    """The function of drawn_from and made_from. own: whether ax and figure are options."""
    draws = inspect.signature(draw)
    options, others = _keywords(opener.__init__, 2)
    takes_others = any(p.kind == p.VAR_KEYWORD for p in draws.parameters.values())
    placed = _keywords(_page)[0] if own else [p for p in _keywords(_page)[0] if p.name not in ("ax", "figure")]

    @functools.wraps(draw)
    def make(
        source: Any, /, *arguments: Any, ax: Any = None, figure: Any = None, width_mm: float | None = None,
        font_size: float | None = None, dark: bool = False, dpi: float = 600, cmap: Any = None, **named: Any,
    ) -> Any:
        if not own and (ax is not None or figure is not None):
            raise TypeError(f"{draw.__name__}: takes neither ax nor figure, as it makes several pages or a movie.")
        page, styled = _page(ax, figure, width_mm, font_size, dark, dpi, cmap)
        opens = {p.name for p in options} - set(draws.parameters)
        drawing = {n: v for n, v in named.items() if n in draws.parameters or takes_others and n not in opens}
        opening = {name: value for name, value in named.items() if name not in drawing}
        unknown = set(opening) - opens
        if unknown and not others:
            raise TypeError(f"{draw.__name__}: got an unexpected keyword argument '{min(unknown)}'")
        with opener.opened(source, **opening) as opened, styled:
            drawn = draw(opened, page, *arguments, **drawing)
            if cmap is not None and not page.has_colors:
                raise ValueError(f"cmap: {draw.__name__} has no color map of values.")
        if page.is_own and isinstance(drawn, Figure) and isinstance(drawn.get_layout_engine(), Layout):
            drawn.get_layout_engine().keep(drawn)
        return _whole(drawn) if isinstance(drawn, matplotlib.figure.FigureBase) else drawn

    first, *shown = (p for p in draws.parameters.values() if p.name != "page")
    first = first.replace(kind=first.POSITIONAL_ONLY)
    defaults = inspect.signature(make, follow_wrapped=False).parameters
    placed = [p.replace(default=defaults[p.name].default) for p in placed]
    parameters = [first, *shown, *options, *placed, *([] if takes_others else others)]
    parameters.sort(key=lambda p: int(p.kind))
    returned = "matplotlib.figure.Figure" if own else draws.return_annotation
    setattr(make, "__signature__", inspect.Signature(parameters, return_annotation=returned))
    return make


def torus_axes(axes: Any, number: int, count: int, columns: int, row: str = "") -> None:
    """Turns panel `number` of `count` into a chart of the torus, labelled at the left and below.

    row: what the panels of its row have in common, to be written at the left.
    """
    step = 0.5 if columns == 1 else 1
    ticks = [turn * math.pi for turn in _ANGLES if turn % step == 0]
    labels = [label for turn, label in _ANGLES.items() if turn % step == 0]
    left, below = number % columns == 0, number + columns >= count
    axes.set(xlim=(-math.pi, math.pi), ylim=(-math.pi, math.pi), aspect="equal")
    axes.set_xticks(ticks, labels)
    axes.set_yticks(ticks, labels)
    axes.tick_params(labelleft=left, labelbottom=below)
    if left:
        axes.set_ylabel(f"{row}\n\u03b8\u2082, token 2".strip())
    if below:
        axes.set_xlabel("\u03b8\u2081, token 1")


class Cells(AxesImage):
    """A matrix as even cells, of which each gets its color once; matplotlib would find that of each pixel."""

    #: Points of a cell, along its width and height, in files of vectors, whose readers blur the borders between points.
    fold: int
    _A: Any

    def make_image(self, renderer: Any, magnification: float = 1.0, unsampled: bool = False) -> Any:
        x1, x2, y1, y2 = self.get_extent()
        seen = TransformedBbox(Bbox([[x1, min(y1, y2)], [x2, max(y1, y2)]]), self.get_transform())
        seen = Bbox([seen.min, seen.max])
        is_whole = numpy.abs(numpy.subtract(seen.extents, self.axes.bbox.extents)).max() < _SAME
        if not (is_whole or unsampled) or not self.get_transform().is_affine or self.get_alpha() is not None:
            return super().make_image(renderer, magnification, unsampled)
        colors, matrix = self.to_rgba(self.get_array(), bytes=True), self._A
        if unsampled:
            self._imcache = colors.repeat(self.fold, axis=0).repeat(self.fold, axis=1)
            self._A = numpy.broadcast_to(0.0, self._imcache.shape[:2])
            try:
                return super().make_image(renderer, magnification, unsampled)
            finally:
                self._A, self._imcache = matrix, None
        sides = numpy.array([seen.width, seen.height]) * magnification
        width, height = (numpy.ceil(sides) if (sides % 1).any() else sides).astype(int)
        rows, columns = matrix.shape
        across = (numpy.arange(width) + 0.5) * columns / width
        along = (numpy.arange(height) + 0.5) * rows / height
        return colors[::-1][along.astype(int)[:, None], across.astype(int)], seen.x0, seen.y0, IdentityTransform()


def show_map(axes: Any, values: Any, **options: Any) -> Any:
    """Shows an array over [-pi, pi]^2, whose outer points lie on the borders; returns the image."""
    half = math.pi / (len(values) - 1)
    edges = (-math.pi - half, math.pi + half)
    limits = axes.axis()
    image = axes.imshow(values, origin="lower", extent=(*edges, *edges), interpolation="antialiased", **options)
    axes.axis(limits)
    return image


def show_matrix(axes: Any, matrix: Any, pixels: int, **options: Any) -> Any:
    """Shows a matrix as even cells, the first row on top; returns the image. pixels: the width of the panel."""
    image = axes.imshow(matrix, interpolation="none", **options)
    image.__class__, image.fold = Cells, max(1, math.ceil(_SHARPNESS * pixels / matrix.shape[1]))
    return image


def label_tokens(axis: Any, tokens: Listed[str], room_mm: float) -> bool:
    """Writes tokens along an axis, in letters that are as small as they have to be, or positions where these could not be
    read; returns whether it wrote tokens. room_mm: the length of the axis."""
    size = 0.9 * room_mm * MILLIMETRE * 72 / max(1, len(tokens))
    if not tokens or size < _SMALLEST:
        axis.set_major_locator(MaxNLocator(integer=True))
        return False
    axis.set_ticks(range(len(tokens)), [token.strip() or repr(token) for token in tokens])
    axis.set_tick_params(length=0, labelsize=min(size, matplotlib.rcParams["font.size"]))
    return True


def label_heads(axes: Any, heads: dict[int, Any], layers: dict[int, Any]) -> None:
    """Labels the columns of a grid of heads and its rows, which are given as {number: place}."""
    axes.set_xticks(list(heads.values()), list(heads))
    axes.set_yticks(list(layers.values()), list(layers))
    axes.tick_params(length=0)
    axes.set(xlabel="Head", ylabel="Layer")


def enlarged(matrix: Any, pixels: int) -> Any:
    """A matrix whose values are repeated until it is at least `pixels` columns wide."""
    fold = max(1, math.ceil(pixels / matrix.shape[1]))
    return matrix.repeat(fold, axis=0).repeat(fold, axis=1)


def show_level(axes: Any, values: Any, color: str = style.BOUNDARY, width: float = 0.9) -> Any:
    """Draws the zero line of an array over [-pi, pi]^2; returns its collections."""
    angles = numpy.linspace(-math.pi, math.pi, len(values))
    return collections_of(axes.contour(angles, angles, values, [0], colors=[color], linewidths=width))


def collections_of(contours: Any) -> Any:
    """The collections of contours; from matplotlib 3.8 on, contours are one."""
    return [contours] if isinstance(contours, Collection) else contours.collections


def show_dots(axes: Any, places: Any, colors: Any, side: float) -> tuple[Any, Any]:
    """Draws dots with a black ring on a white one; side: of the panel, in points. Returns them."""
    width = min(6, 0.035 * side, 0.4 * side / math.sqrt(len(places) or 1))
    rings = axes.scatter(*places.T, s=(1.5 * width) ** 2, color="white", zorder=3)
    black = {"edgecolors": "black", "linewidths": 0.12 * width}
    return rings, axes.scatter(*places.T, s=width**2, facecolors=colors, zorder=4, **black)


def class_bar(figure: Any, axes: Any, colors: Any) -> Any:
    """Adds the legend of the classes, as a color bar."""
    count = len(colors)
    norm = BoundaryNorm(numpy.arange(count + 1) - 0.5, count)
    mappable = ScalarMappable(norm, style.class_map(colors))
    bar = color_bar(figure, axes, mappable, "Next token", range(count))
    bar.ax.invert_yaxis()
    bar.ax.tick_params(length=0)
    if count > 24:
        bar.locator = MaxNLocator(12, integer=True)
        bar.update_ticks()
    return bar


def color_bar(
    figure: Any, axes: Any, mappable: Any, label: str, ticks: Any, labels: Iterable[Any] | None = None, shrink: float = 1
) -> Any:
    """Adds a color bar at the right of axes, as vector paths. shrink: its share of their height."""
    return dressed(figure.colorbar(mappable, ax=axes, aspect=25, pad=0.02, fraction=0.05 * shrink, shrink=shrink), label, ticks, labels)


def dressed(bar: Any, label: str, ticks: Any, labels: Iterable[Any] | None = None) -> Any:
    """A color bar with its label and ticks, as vector paths."""
    bar.set_label(label, labelpad=4)
    bar.set_ticks(ticks, labels=labels)
    bar.minorticks_off()
    bar.solids.set(edgecolor="face", linewidth=0.8, rasterized=False)  # no gaps between the colors
    bar.outline.set_visible(False)
    return bar


def ramp(colors: Any, low: float = 0, high: float = 1) -> Any:
    """What a color bar shows of a color map between two values."""
    return ScalarMappable(Normalize(low, high), colors)


def foreground() -> Any:
    """The color of letters and lines on the page."""
    return matplotlib.rcParams["text.color"]
