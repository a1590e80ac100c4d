"""What Jupyter shows by itself: figures as PNG, movies as videos."""

from __future__ import annotations

import base64
import contextlib
import html
import importlib
import io
import pathlib
import struct
import zlib
from typing import Any

import matplotlib.figure
import numpy
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.typing import NDArray

from attentionatlas._internal import style
from attentionatlas._internal.layout import Layout, shown_at

#: The resolution of a figure in a notebook: a page of 180 mm has 1,020 pixels.
_DPI = 144
#: Of PNG: higher levels take longer, for little.
_COMPRESSION = 1
#: What files of vectors say of the time.
DATES = {"pdf": "CreationDate", "svg": "Date"}


def _png(pixels: NDArray[Any], dpi: float) -> bytes:
    """A PNG file of rows of RGBA. PIL takes three times as long, and its files are larger, as it tries five filters on each
    row; this one is the difference from the row above, which is 0 in most of a figure."""
    is_opaque = bool((pixels[..., 3] == 255).all())
    height, width, _ = pixels.shape
    above = pixels[..., : 3 if is_opaque else 4].reshape(height, -1)
    rows = numpy.empty((height, above.shape[1] + 1), numpy.uint8)
    rows[:, 0], rows[0, 1:] = 2, above[0]
    numpy.subtract(above[1:], above[:-1], out=rows[1:, 1:])
    per_metre = round(dpi / 0.0254)
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 2 if is_opaque else 6, 0, 0, 0),
        b"pHYs": struct.pack(">IIB", per_metre, per_metre, 1),
        b"IDAT": zlib.compress(rows, _COMPRESSION),
        b"IEND": b"",
    }
    chunks = (struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part)) for name, part in parts.items())
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def write(figure: Figure, file: Any, format: str, dpi: float) -> None:
    """Writes a figure as png, pdf or svg, the same bytes each time. Figure.savefig shows the same, but draws it twice where it
    has a layout."""
    backend = importlib.import_module(f"matplotlib.backends.backend_{'agg' if format == 'png' else format}")
    engine = figure.get_layout_engine()
    with engine.drawing(figure, dpi if format == "png" else None) if isinstance(engine, Layout) else contextlib.nullcontext():
        with shown_at(figure, dpi, backend.FigureCanvas) as canvas:
            if format == "png":
                canvas.draw()
                file.write(_png(numpy.asarray(canvas.buffer_rgba()), dpi))
            else:
                getattr(canvas, f"print_{format}")(file, metadata={DATES[format]: None})


class Figure(matplotlib.figure.Figure):
    """A matplotlib Figure that is shown without pyplot too. Its canvas can measure texts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        FigureCanvasAgg(self)  # others draw a picture to measure a text

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        with style.applied():
            write(self, file, "png", _DPI)
        return file.getvalue()


def _image(png: bytes) -> str:
    return f'<img alt="" style="max-width: 100%" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


class Figures(list[Any]):
    """Figures, one below the other."""

    def _repr_html_(self) -> str:
        return "<br>".join(_image(figure._repr_png_()) for figure in self)


class MovieFile(type(pathlib.Path())):  # type: ignore[misc] # of this system
    """The path of a movie, which is shown as a video."""

    def _repr_html_(self) -> str | None:
        if self.suffix != ".ogv" or not self.is_file():
            return None  # such as the folder of a movie, which is of this class too
        code = base64.b64encode(self.read_bytes()).decode()
        title = html.escape(self.name, quote=True)
        return f'<video controls loop muted title="{title}" src="data:video/ogg;base64,{code}"></video>'
