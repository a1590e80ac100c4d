"""Writing figures to files, and the options that all of them share."""

from __future__ import annotations

import argparse
import base64
import contextlib
import html
import io
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from matplotlib import font_manager

from attentionatlas._internal import style
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.beside import Begin, at_once, beside
from attentionatlas._internal.charts import MILLIMETRE
from attentionatlas._internal.checks import check, check_page
from attentionatlas._internal.files import complete
from attentionatlas._internal.names import own
from attentionatlas._internal.notebook import DATES, Figure, write

__dir__ = own(__name__)

FORMATS = ("png", "pdf", "svg")
#: Of images in PDF and SVG.
PRINT_DPI = 600


class Output:
    """How figures are written: format, width in pixels (PNG) and millimetres, font size, colors.

    Raises ValueError for a value out of range.
    """

    def __init__(
        self, format: str = "png", width: int = 2400, width_mm: float = 180, font_size: float | None = None,
        dark: bool = False,
    ) -> None:
        if format not in FORMATS:
            raise ValueError(f"format: expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, found '{format}'.")
        check("width", width, 200, 16384, "pixels")
        check_page(width_mm, font_size)
        self.format, self.pixels = format, width
        self._begin: Begin = at_once
        self._options: dict[str, Any] = {"width_mm": width_mm, "font_size": font_size, "dark": dark}
        self.options = self.options_for(width) if format == "png" else {**self._options, "dpi": PRINT_DPI}

    def options_for(self, pixels: int) -> dict[str, Any]:
        """The options of a figure's function for an image of this width."""
        inches = self._options["width_mm"] * MILLIMETRE
        return {**self._options, "dpi": pixels / inches * (1 + 1e-9)}  # not a pixel less by rounding

    def write(self, figure: Any, folder: PathLike, name: str) -> pathlib.Path:
        """Writes a figure into a folder, or begins to, within `with beside()`; returns the file's path."""
        path = pathlib.Path(folder, f"{name}.{self.format}")
        self._begin(lambda: save(figure, path, self.options["dpi"]))
        return path

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Within `with`, other processes write figures while the next ones are drawn, where there are cores for it. Raises
        what one of them raised."""
        try:
            with beside() as self._begin:
                yield
        finally:
            self._begin = at_once


def save(figure: Any, path: PathLike, dpi: float = PRINT_DPI) -> pathlib.Path:
    """Writes a figure in the format that the file's name ends with; the file appears complete or not at
    all. Letters stay text in an embedded font."""
    path = pathlib.Path(path)
    format = path.suffix.lower().lstrip(".")
    with complete(path) as temporary, style.applied():
        if isinstance(figure, Figure) and format in FORMATS:
            with open(temporary, "wb") as file:
                write(figure, file, format, dpi)
        else:
            dates = {"metadata": {DATES[format]: None}} if format in DATES else {}
            figure.savefig(temporary, dpi=dpi, facecolor=figure.get_facecolor(), bbox_inches=None, **dates)
        if format == "svg":
            temporary.write_text(_with_fonts(temporary.read_text(encoding="utf-8")), encoding="utf-8")
    return path


def _with_fonts(svg: str) -> str:
    """An SVG with the letters of its fonts embedded; programs that ignore them use a sans-serif font."""
    letters = html.unescape("".join(re.findall(r">([^<>]+)</(?:text|tspan)>", svg)))
    known = set(font_manager.get_font_names())
    used: set[str] = set()

    def found(match: re.Match[str]) -> str:
        names = [name for name in dict.fromkeys(re.findall("'([^']+)'", match[2])) if name in known]
        used.update(names)
        return match[1] + ", ".join([*(f"'{name}'" for name in names), "sans-serif"])

    # One property font, or since matplotlib 3.8 font-family among others.
    svg = re.sub(r"""(style="(?:[^"]*; )?font(?:-family)?: [^';"]*)('[^;"]*)""", found, svg)
    faces = "\n".join(_font_face(name, letters) for name in sorted(used))
    return svg.replace("<defs>", f"<defs>\n  <style>{faces}</style>", 1)


def _font_face(name: str, letters: str) -> str:
    """The CSS of a font that has just these letters."""
    from fontTools import subset
    from fontTools.ttLib import TTFont

    font = TTFont(font_manager.findfont(name), fontNumber=0, recalcTimestamp=False)
    options = subset.Options(notdef_outline=True)
    options.drop_tables += ["FFTM"]
    cutter = subset.Subsetter(options)
    cutter.populate(text=letters)
    cutter.subset(font)
    font.flavor = "woff"
    file = io.BytesIO()
    font.save(file)
    code = base64.b64encode(file.getvalue()).decode()
    return f"@font-face {{font-family: '{name}'; src: url(data:font/woff;base64,{code});}}"


def add_options(parser: argparse.ArgumentParser, format: str = "png") -> None:
    """Adds the options of Output to the parser of a command line. format: by default."""
    parser.add_argument("-o", "--output", default=".", help="folder to write to (default: .)")
    parser.add_argument("--format", default=format, help=f"png, pdf or svg (default: {format})")
    parser.add_argument("--width", type=int, default=2400, help="of a PNG, in pixels (default: 2400)")
    parser.add_argument(
        "--width-mm",
        type=float,
        default=180,
        metavar="MM",
        help="width in print (default: 180, a page; 89 is a column)",
    )
    parser.add_argument("--font-size", type=float, metavar="PT", help="in points (default: 7)")
    parser.add_argument("--dark", action="store_true", help="light letters on a dark page")


def options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parsed options as keyword arguments of Output."""
    names = ("format", "width", "width_mm", "font_size", "dark")
    return {name: getattr(arguments, name) for name in names}
