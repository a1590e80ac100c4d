"""Movies (Ogg Theora) of matplotlib figures."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy
from matplotlib.backends.backend_agg import FigureCanvasAgg
from vtkmodules.util.numpy_support import numpy_to_vtk
from vtkmodules.vtkCommonDataModel import vtkImageData

from attentionatlas._internal.arguments import PathLike

#: Frames per second, and their number.
RATE, FRAMES = 15, 75
#: The largest width, in pixels.
WIDTH = 960


class Movie:
    """A movie of a figure, whose layout stays as it is; complete once the `with` has ended."""

    def __init__(self, figure: Any, path: PathLike, dpi: float) -> None:
        from vtkmodules.vtkIOOggTheora import vtkOggTheoraWriter  # which few figures need

        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        self._canvas = FigureCanvasAgg(figure)
        self._path = pathlib.Path(path)
        self._part = self._path.with_name(f"{self._path.stem}.part{self._path.suffix}")
        self._writer = vtkOggTheoraWriter()
        self._writer.SetFileName(str(self._part))
        self._writer.SetRate(RATE)
        self._writer.SetQuality(2)
        self._started = False

    def __enter__(self) -> Movie:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._started:
            self._writer.End()
        if kind is None:
            self._part.replace(self._path)
        else:
            self._part.unlink(missing_ok=True)

    def add_frame(self) -> None:
        """Adds what the figure shows now."""
        self._canvas.draw()
        pixels = numpy.asarray(self._canvas.buffer_rgba())[::-1, :, :3]
        height, width = (side // 2 * 2 for side in pixels.shape[:2])
        image = vtkImageData()
        image.SetDimensions(width, height, 1)
        rows = numpy.ascontiguousarray(pixels[:height, :width]).reshape(-1, 3)
        image.GetPointData().SetScalars(numpy_to_vtk(rows, deep=True))
        self._writer.SetInputData(image)
        if not self._started:
            self._writer.Start()
            self._started = True
        self._writer.Write()
