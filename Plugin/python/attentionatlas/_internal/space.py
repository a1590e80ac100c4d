"""What lies in space: surfaces rendered by ParaView and placed into matplotlib axes as images."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from numpy.typing import NDArray
from paraview import simple

from attentionatlas._internal import data
from attentionatlas._internal.files import scratch
from attentionatlas._internal.readers import Proxies
from attentionatlas._internal.views import VIEWPOINT, render_view

#: Bright enough for pale colors to stay pale, with light and shade that show the shape.
_SHADING = {"Ambient": 0.35, "Diffuse": 0.75, "Specular": 0.15, "SpecularPower": 30}
_SMOOTHING = 2


def _unit(vector: Any) -> NDArray[Any]:
    return numpy.array(vector, float) / numpy.linalg.norm(vector)


class Camera:
    """A parallel projection along a direction, from the middle to the eye; up is what points upwards."""

    def __init__(self, direction: Any = VIEWPOINT, up: Any = (0, 0, 1)) -> None:
        self.back = _unit(direction)
        self.right = _unit(numpy.cross(up, self.back))
        self.up = numpy.cross(self.back, self.right)

    def project(self, points: Any) -> NDArray[Any]:
        """Places to the right and upwards, and how near to the eye, a row per point."""
        return numpy.asarray(points) @ numpy.array([self.right, self.up, self.back]).T

    def visible_on_sphere(self, points: Any) -> NDArray[Any]:
        """The projection of points of the unit sphere, those behind it as nan."""
        places = self.project(points)
        return numpy.where(places[:, 2:] > 0, places[:, :2], numpy.nan)


class Scene(Proxies):
    """A square render view whose image becomes the content of a panel.

    pixels: the side of the image. camera: from VIEWPOINT by default.
    """

    def __init__(self, pixels: int, camera: Camera | None = None) -> None:
        super().__init__()
        self.camera = camera or Camera()
        self._pixels = _SMOOTHING * pixels
        self._sources: list[Any] = []
        self._background = to_rgb(matplotlib.rcParams["figure.facecolor"])
        self.view = render_view(
            ViewSize=[self._pixels] * 2,
            UseColorPaletteForBackground=0,
            Background=self._background,
            OrientationAxesVisibility=0,
            CameraParallelProjection=1,
            **{f"{light}LightWarmth": 0.5 for light in ("Key", "Fill", "Back", "Head")},
        )

    def __exit__(self, *error: Any) -> None:
        simple.Delete(self.view)  # first: a view that loses its sources one by one takes long
        super().__exit__(*error)

    def show(
        self, source: Any, array: str | None = None, color: Any = "white", association: str = "POINTS",
        **properties: Any,
    ) -> None:
        """Shows a surface in the colors of an array, or in one color."""
        display = simple.Show(source, self.view)
        self._sources.append(source)
        display.SetRepresentationType("Surface")
        if display.LookupTable:
            display.SetScalarBarVisibility(self.view, False)  # figures have their own
        display.ColorArrayName = [association if array else None, array or ""]
        if array is None:
            display.AmbientColor = display.DiffuseColor = to_rgb(color)
        else:
            display.LookupTable = simple.GetColorTransferFunction(array)
            display.MapScalars = 0 if array.endswith("Color") else 1
        for name, value in {**_SHADING, **properties}.items():
            setattr(display, name, value)

    def place(self, axes: Any, margin: float = 1.04) -> Any:
        """Renders all that is shown into axes, whose coordinates become those of the projection."""
        places = numpy.concatenate(
            [self.camera.project(data.points(data.fetch(source))) for source in self._sources]
        )
        low, high = places.min(axis=0), places.max(axis=0)
        middle, half = (low + high) / 2, margin * (high - low)[:2].max() / 2
        self._look(middle, half, 2 * (high[2] - low[2]) + half)
        extent = (middle[0] - half, middle[0] + half, middle[1] - half, middle[1] + half)
        axes.set_axis_off()
        return axes.imshow(self.pixels(), extent=extent, interpolation="antialiased")

    def _look(self, middle: NDArray[Any], half: float, distance: float) -> None:
        camera = self.camera
        focus = middle @ numpy.array([camera.right, camera.up, camera.back])
        self.view.CameraFocalPoint = focus
        self.view.CameraPosition = focus + distance * camera.back
        self.view.CameraViewUp = camera.up
        self.view.CameraParallelScale = half

    def pixels(self) -> NDArray[Any]:
        """What the view shows, its edges smoothed: rows of RGB from the top."""
        with scratch() as folder:
            file = folder / "scene.png"
            simple.SaveScreenshot(str(file), self.view)
            fine = imread(file)[..., :3]
        side = self._pixels // _SMOOTHING
        return fine.reshape(side, _SMOOTHING, side, _SMOOTHING, 3).mean(axis=(1, 3))


def color_scale(name: str, colors: Any, low: float, high: float) -> None:
    """Gives an array of ParaView a color map of matplotlib between two values."""
    table = simple.GetColorTransferFunction(name)
    shares = numpy.linspace(0, 1, 33)
    points = numpy.column_stack([low + (high - low) * shares, colors(shares)[:, :3]])
    table.RGBPoints = points.ravel().tolist()
    table.ColorSpace = "RGB"
    table.AutomaticRescaleRangeMode = "Never"
    table.ScalarRangeInitialized = 1  # or the first display would fit it to its data
