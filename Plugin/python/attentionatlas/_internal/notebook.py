"""What Jupyter shows by itself: figures as PNG, movies as videos."""

from __future__ import annotations

import base64
import contextlib
import html
import importlib
import io
import pathlib
from typing import Any

import matplotlib.figure
from matplotlib.backends.backend_agg import FigureCanvasAgg

from attentionatlas._internal import style
from attentionatlas._internal.layout import Layout, shown_at

#: The resolution of a figure in a notebook: a page of 180 mm has 1,020 pixels.
_DPI = 144
#: Of PNG: higher levels take longer, for little.
_COMPRESSION = 1
#: What files of vectors say of the time.
DATES = {"pdf": "CreationDate", "svg": "Date"}


def write(figure: Figure, file: Any, format: str, dpi: float) -> None:
    """Writes a figure as png, pdf or svg, the same bytes each time. Figure.savefig shows the same, but draws it twice where it
    has a layout."""
    backend = importlib.import_module(f"matplotlib.backends.backend_{'agg' if format == 'png' else format}")
    engine = figure.get_layout_engine()
    with engine.drawing(figure, dpi if format == "png" else None) if isinstance(engine, Layout) else contextlib.nullcontext():
        with shown_at(figure, dpi, backend.FigureCanvas) as canvas:
            if format == "png":
                canvas.print_png(file, pil_kwargs={"compress_level": _COMPRESSION})
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
