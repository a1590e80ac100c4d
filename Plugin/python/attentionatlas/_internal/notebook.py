"""What Jupyter shows by itself: figures as PNG, movies as videos."""

from __future__ import annotations

import base64
import html
import io
import pathlib
from typing import Any

import matplotlib.figure

from attentionatlas._internal import style

#: The resolution of a figure in a notebook: a page of 180 mm has 1,020 pixels.
_DPI = 144


class Figure(matplotlib.figure.Figure):
    """A matplotlib Figure that is shown without pyplot too."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        with style.applied():
            self.savefig(file, format="png", dpi=_DPI, facecolor=self.get_facecolor(), bbox_inches=None)
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
