"""Pages of equal panels as matplotlib figures, and what is drawn in a panel in the plane."""

import collections
import functools
import inspect
import math

import matplotlib
import numpy
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection
from matplotlib.colors import BoundaryNorm, Normalize
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from attentionatlas._internal import style
from attentionatlas._internal.checks import check_page
from attentionatlas._internal.notebook import Figure

MILLIMETRE = 1 / 25.4
#: The width below which a page gets fewer columns, per panel.
_PANEL_MM = 34
#: Points on a side of a chart, at most.
_MOST_POINTS = 4096

#: Heads side by side on one page, at most.
HEADS = 3
#: Points on a side of what level lines are drawn from: finer ones break them up.
LEVEL_POINTS = 241
SHARES = numpy.linspace(0, 1, 6)
_ANGLES = {-1: "\u2212\u03c0", -0.5: "\u2212\u03c0/2", 0: "0", 0.5: "\u03c0/2", 1: "\u03c0"}


class Page(collections.namedtuple("Page", "width_mm dpi")):
    """The size of a figure: its width in millimetres, and the resolution of images in it."""

    def columns(self, count):
        """How many of `count` panels lie side by side."""
        most = max(1, round(self.width_mm / _PANEL_MM))
        return math.ceil(count / math.ceil(count / most))

    def pixels(self, columns):
        """The width of one of several panels side by side, in pixels."""
        return min(_MOST_POINTS, max(64, round(self.width_mm * MILLIMETRE * self.dpi / columns)))

    def panels(self, count, columns=None, title=None, square=True):
        """A figure of panels row by row, and its axes. The height is provisional: see fit."""
        columns = columns or self.columns(count)
        rows = math.ceil(count / columns)
        width = self.width_mm * MILLIMETRE
        height = width * (1.2 * rows / columns + 0.3)
        figure = Figure((width, height), layout="compressed" if square else "constrained")
        figure.get_layout_engine().set(w_pad=0.04, h_pad=0.03, wspace=0.02, hspace=0.02)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for unused in axes[count:]:
            unused.remove()
        if title:
            figure.suptitle(title, x=0.01, horizontalalignment="left")
        return figure, list(axes[:count])


def fit(figure):
    """Gives a figure of square panels the height that its content needs; returns it."""
    images = [image for image in figure.findobj(AxesImage) if image.get_visible()]
    for image in images:  # they need no room of their own, and resampling takes long
        image.set_visible(False)
    for _ in range(3):
        figure.get_layout_engine().execute(figure)
        content = Bbox.union([axes.get_tightbbox() for axes in figure.axes]).height
        if figure._suptitle is not None:
            content += 1.3 * figure._suptitle.get_window_extent().height
        height = content / figure.dpi + 0.1
        change = abs(height - figure.get_figheight())
        figure.set_figheight(height)
        if change < 0.004:  # inches: a tenth of a millimetre
            break
    for image in images:
        image.set_visible(True)
    return figure


def drawn_from(opener):
    """Turns draw(model, page, ...) into a function that returns a matplotlib Figure.

    The function takes a file's name or an opened model, the options of draw, and those of every figure:
    width_mm; font_size in points (None: 7, or the user's setting); dark; dpi of the images in it.
    """

    def decorate(draw):
        @functools.wraps(draw)
        def make(model, *arguments, width_mm=180, font_size=None, dark=False, dpi=600, **options):
            check_page(width_mm, font_size)
            with opener(model) as opened, style.applied(font_size, dark):
                return draw(opened, Page(width_mm, dpi), *arguments, **options)

        own = [p for p in inspect.signature(draw).parameters.values() if p.name != "page"]
        common = [
            p for p in inspect.signature(make, follow_wrapped=False).parameters.values()
            if p.kind == p.KEYWORD_ONLY
        ]
        make.__signature__ = inspect.Signature([*own, *common])
        return make

    return decorate


def torus_axes(axes, number, count, columns, row=""):
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


def show_map(axes, values, **options):
    """Shows an array over [-pi, pi]^2, whose outer points lie on the borders; returns the image."""
    half = math.pi / (len(values) - 1)
    edges = (-math.pi - half, math.pi + half)
    limits = axes.axis()
    image = axes.imshow(values, origin="lower", extent=(*edges, *edges), interpolation="antialiased", **options)
    axes.axis(limits)
    return image


def show_matrix(axes, matrix, pixels, **options):
    """Shows a matrix as even cells, the first row on top; returns the image."""
    rows, columns = matrix.shape
    fine = numpy.ma.masked_invalid(enlarged(matrix, pixels))
    extent = (-0.5, columns - 0.5, rows - 0.5, -0.5)
    return axes.imshow(fine, extent=extent, interpolation="none", **options)


def label_heads(axes, heads, layers):
    """Labels the columns of a grid of heads and its rows, which are given as {number: place}."""
    axes.set_xticks(list(heads.values()), list(heads))
    axes.set_yticks(list(layers.values()), list(layers))
    axes.tick_params(length=0)
    axes.set(xlabel="Head", ylabel="Layer")


def enlarged(matrix, pixels):
    """A matrix whose values are repeated until it is at least `pixels` columns wide."""
    fold = max(1, math.ceil(pixels / matrix.shape[1]))
    return matrix.repeat(fold, axis=0).repeat(fold, axis=1)


def show_level(axes, values, color=style.BOUNDARY, width=0.9):
    """Draws the zero line of an array over [-pi, pi]^2; returns its collections."""
    angles = numpy.linspace(-math.pi, math.pi, len(values))
    return collections_of(axes.contour(angles, angles, values, [0], colors=[color], linewidths=width))


def collections_of(contours):
    """The collections of contours; from matplotlib 3.8 on, contours are one."""
    return [contours] if isinstance(contours, Collection) else contours.collections


def show_dots(axes, places, colors, side):
    """Draws dots with a black ring on a white one; side: of the panel, in points. Returns them."""
    width = min(6, 0.035 * side, 0.4 * side / math.sqrt(len(places) or 1))
    rings = axes.scatter(*places.T, s=(1.5 * width) ** 2, color="white", zorder=3)
    black = {"edgecolors": "black", "linewidths": 0.12 * width}
    return rings, axes.scatter(*places.T, s=width**2, facecolors=colors, zorder=4, **black)


def class_bar(figure, axes, colors):
    """Adds the legend of the classes, as a colour bar."""
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


def color_bar(figure, axes, mappable, label, ticks, labels=None, shrink=1):
    """Adds a colour bar at the right of axes, as vector paths. shrink: its share of their height."""
    bar = figure.colorbar(mappable, ax=axes, aspect=25, pad=0.02, fraction=0.05 * shrink, shrink=shrink)
    bar.set_label(label, labelpad=4)
    bar.set_ticks(ticks, labels=labels)
    bar.minorticks_off()
    bar.solids.set(edgecolor="face", linewidth=0.8, rasterized=False)  # no gaps between the colours
    bar.outline.set_visible(False)
    return bar


def ramp(colors, low=0, high=1):
    """What a colour bar shows of a colour map between two values."""
    return ScalarMappable(Normalize(low, high), colors)


def foreground():
    """The colour of letters and lines on the page."""
    return matplotlib.rcParams["text.color"]
