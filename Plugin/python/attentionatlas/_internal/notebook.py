"""What Jupyter shows by itself: figures as PNG, movies as videos."""

from __future__ import annotations

import base64
import contextlib
import html
import io
import pathlib
from collections.abc import Iterator
from typing import Any

import matplotlib.figure
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from attentionatlas._internal import style

#: The resolution of a figure in a notebook: a page of 180 mm has 1,020 pixels.
_DPI = 144
#: Of PNG: higher levels take longer, for little.
_COMPRESSION = 1


@contextlib.contextmanager
def _measured_once() -> Iterator[None]:
    """Within `with`, equal texts are measured once. A layout measures each of them ten times and more."""
    known: dict[Any, Any] = {}
    measure = Text._get_layout

    def measured(text: Any, renderer: Any) -> Any:
        key = (
            text.get_text(), text.get_fontproperties(), text.get_rotation(), text.get_rotation_mode(), text.get_ha(), text.get_va(),
            text._multialignment, text._linespacing, text.figure.dpi, text.get_wrap(),
        )
        if key not in known:
            known[key] = measure(text, renderer)
        return known[key]

    Text._get_layout = measured
    try:
        yield
    finally:
        Text._get_layout = measure


class Layout(ConstrainedLayoutEngine):
    """A constrained layout that keeps the places of panels which were settled for pictures of a resolution, as long as
    nothing in the figure has changed since."""

    _settled: float | None = None
    _rests = False

    def execute(self, fig: Any) -> None:
        if not self._rests:
            with _measured_once():
                super().execute(fig)

    @contextlib.contextmanager
    def drawing(self, figure: Any, dpi: float) -> Iterator[None]:
        """To be drawn within `with`."""
        self._rests = self._settled == dpi and not figure.stale
        try:
            yield
        finally:
            self._rests = False

    @contextlib.contextmanager
    def settling(self, figure: Any, dpi: float) -> Iterator[None]:
        """To be laid out within `with`."""
        with _at(figure, dpi, _Ruler):
            yield
        self._settled, figure.stale = dpi, False


class _Ruler(FigureCanvasAgg):
    """A canvas that measures texts, and has no room for a picture."""

    def get_renderer(self, cleared: bool = False) -> Any:
        if self._measures is None:
            self._measures = RendererAgg(1, 1, self.figure.dpi)
        return self._measures

    _measures: Any = None


@contextlib.contextmanager
def _at(figure: Any, dpi: float, canvas: type[FigureCanvasAgg]) -> Iterator[Any]:
    """A figure of another resolution on another canvas within `with`."""
    before = figure.canvas, figure.dpi
    try:
        figure.dpi = dpi
        yield canvas(figure)
    finally:
        figure.set_canvas(before[0])
        figure.dpi = before[1]


def save_png(figure: Any, file: Any, dpi: float) -> None:
    """Writes a figure as PNG. Figure.savefig gives the same picture, but draws it twice where it has a layout."""
    engine = figure.get_layout_engine()
    with engine.drawing(figure, dpi) if isinstance(engine, Layout) else contextlib.nullcontext():
        with _at(figure, dpi, FigureCanvasAgg) as canvas:
            canvas.print_png(file, pil_kwargs={"compress_level": _COMPRESSION})


class Figure(matplotlib.figure.Figure):
    """A matplotlib Figure that is shown without pyplot too. Its canvas can measure texts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        FigureCanvasAgg(self)  # others draw a picture to measure a text

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        with style.applied():
            save_png(self, file, _DPI)
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
