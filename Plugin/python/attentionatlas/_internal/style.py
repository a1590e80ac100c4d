"""The look of the figures: a matplotlib style for print, and its colors.

A user's settings take precedence over this style: whatever a matplotlibrc or matplotlib.style.use changes
from matplotlib's defaults stays as it is. Options given to a figure take precedence over both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.colors import LinearSegmentedColormap, ListedColormap

#: Of Okabe and Ito (2008): distinct with every kind of color vision.
HEAD_COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00"]
#: Decision boundaries on maps in grey.
BOUNDARY = "#d55e00"
GREY = "#808080"
#: Where a matrix has no value.
HIDDEN = "#d4d4d4"


def _ramp(name: str, *colors: str) -> Any:
    ramp = LinearSegmentedColormap.from_list(name, colors)
    ramp.set_bad(HIDDEN)
    return ramp


# After ColorBrewer's Reds, Blues and Oranges (Cynthia Brewer, colorbrewer2.org), from pale to dark.
_BLUES = ["#e8f2ff", "#9ec9e0", "#4291c7", "#08529c", "#08265c"]
REDS = _ramp("atlas-reds", "#ffe8d9", "#fc9e7d", "#f03b2b", "#a60f14", "#54000a")
BLUES = _ramp("atlas-blues", *_BLUES)
ORANGES = _ramp("atlas-oranges", "#fff5eb", "#fcd1a3", "#fc8c3d", "#d94700", "#802605")
#: Values of both signs: blue below 0, white, red above; as in the views.
SIGNED = _ramp("atlas-signed", "#08265c", "#08529c", "#4291c7", "#9ec9e0", "#ffffff", "#fc9e7d", "#f03b2b", "#a60f14", "#54000a")
#: Attention weights of small transformers and of recorded ones.
GREYS = _ramp("atlas-greys", "white", "black")
WEIGHTS = _ramp("atlas-weights", "white", *_BLUES)

STYLE = {
    "font.size": 7,
    # Letters missing from a user's font, such as subscripts, are taken from DejaVu Sans.
    "font.family": ["sans-serif", "DejaVu Sans"],
    "text.parse_math": False,
    "figure.titlesize": "large",
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "axes.titlepad": 3,
    "axes.labelsize": "medium",
    "axes.labelpad": 2,
    "axes.linewidth": 0.5,
    "axes.unicode_minus": True,
    "axes.prop_cycle": cycler(color=HEAD_COLORS),
    "lines.linewidth": 0.9,
    "patch.linewidth": 0.5,
    "legend.fontsize": "medium",
    "legend.frameon": False,
    **{f"{axis}tick.labelsize": "medium" for axis in "xy"},
    **{f"{axis}tick.major.{name}": value for axis in "xy" for name, value in
       {"size": 2, "width": 0.5}.items()},
    **{f"{axis}tick.minor.{name}": value for axis in "xy" for name, value in
       {"size": 1.2, "width": 0.4}.items()},
    # Letters stay text, in an embedded font.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "attentionatlas",
}

_LIGHT, _DARK = "#eeeeee", "#16181c"
DARK = {
    **{f"{place}.facecolor": _DARK for place in ("figure", "axes")},
    **{name: _LIGHT for name in
       ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")},
}


def _changed_by_user() -> dict[str, Any]:
    """The settings that differ from matplotlib's defaults, but for those of windows."""
    skipped = ("backend", "interactive", "toolbar")
    return {
        name: value
        for name, value in dict.items(matplotlib.rcParams)
        if not name.startswith(skipped) and value != matplotlib.rcParamsDefault[name]
    }


@contextlib.contextmanager
def applied(font_size: float | None = None, dark: bool = False) -> Iterator[None]:
    """Applies the style within `with`, beneath the user's own settings.

    font_size: in points, 7 unless the user's settings say otherwise. dark: light letters on a dark page.
    """
    own = {**_changed_by_user(), **({} if font_size is None else {"font.size": font_size})}
    pad = 0.35 * own.get("font.size", STYLE["font.size"])  # labels at a corner do not meet
    pads = {f"{axis}tick.major.pad": pad for axis in "xy"}
    settings = {**STYLE, **pads, **own, **(DARK if dark else {})}
    with matplotlib.rc_context(settings):
        yield


def class_map(colors: Any) -> Any:
    """A color map of a color per class, given as rows of RGB from 0 to 255."""
    return ListedColormap([[value / 255 for value in color] for color in colors])
