"""What lies in space: surfaces rendered by VTK and placed into matplotlib axes as images."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
from vtkmodules.vtkCommonCore import vtkUnsignedCharArray
from vtkmodules.vtkCommonDataModel import vtkPolyData

from attentionatlas._internal import data
from attentionatlas._internal.windows import VIEWPOINT, need_rendering

_SMOOTHING = 2
#: Layers of transparent surfaces that are drawn in their order.
_LAYERS = 4
#: The array with the colors on a ramp.
_RAMP = "Ramp"


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
        return numpy.where(places[..., 2:] > 0, places[..., :2], numpy.nan)


class Scene:
    """Surfaces in space whose square image becomes the content of a panel.

    pixels: the side of the image. camera: from VIEWPOINT by default. Raises OSError where VTK cannot render.
    """

    def __init__(self, pixels: int, camera: Camera | None = None) -> None:
        need_rendering()
        from vtkmodules.vtkRenderingCore import vtkLightKit, vtkRenderer, vtkRenderWindow  # which few figures need

        self.camera = camera or Camera()
        self._shown: list[tuple[Any, Any, str | None, Any]] = []
        self._renderer = vtkRenderer()
        self._renderer.SetBackground(to_rgb(matplotlib.rcParams["figure.facecolor"]))
        self._renderer.SetUseDepthPeeling(True)
        self._renderer.SetMaximumNumberOfPeels(_LAYERS)
        self._renderer.SetUseFXAA(True)
        lights = vtkLightKit()
        for name in ("Key", "Fill", "Back", "Head"):
            getattr(lights, f"Set{name}LightWarmth")(0.5)
        lights.AddLightsToRenderer(self._renderer)
        self._window = vtkRenderWindow()
        self._window.SetOffScreenRendering(True)
        self._window.SetMultiSamples(0)
        self._window.SetAlphaBitPlanes(True)
        self._window.SetSize([_SMOOTHING * pixels] * 2)
        self._window.AddRenderer(self._renderer)

    def show(
        self, source: Any, array: str | None = None, association: str = "Point", ramp: Any = None, opacity: float = 1
    ) -> None:
        """Shows a surface, which a source has or which is a dataset: in the colors of an array, or of numbers of its points
        on a ramp of matplotlib, or white."""
        from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

        mapper, actor = vtkPolyDataMapper(), vtkActor()
        mapper.SetScalarVisibility(array is not None)
        getattr(mapper, f"SetScalarModeToUse{association}FieldData")()
        mapper.SetColorModeToDirectScalars()
        mapper.SelectColorArray(_RAMP if ramp else array)
        actor.SetMapper(mapper)
        shading = actor.GetProperty()
        shading.SetOpacity(opacity)
        # Bright enough for pale colors to stay pale, with light and shade that show the shape.
        shading.SetAmbient(0.35)
        shading.SetDiffuse(0.75)
        shading.SetSpecular(0.15)
        shading.SetSpecularPower(30)
        self._renderer.AddActor(actor)
        self._shown.append((source, mapper, array, ramp))

    def _update(self) -> NDArray[Any]:
        """Takes what the sources have now; returns the projection of its points."""
        for source, mapper, array, ramp in self._shown:
            surface = vtkPolyData()
            surface.ShallowCopy(source if isinstance(source, vtkPolyData) else data.fetch(source))
            if ramp and array:
                colors = ramp.to_rgba(data.point_array(surface, array), bytes=True)[:, :3]
                colored = numpy_to_vtk(numpy.ascontiguousarray(colors), deep=True)
                colored.SetName(_RAMP)
                surface.GetPointData().AddArray(colored)
            mapper.SetInputData(surface)
        return self.camera.project(numpy.concatenate([data.points(mapper.GetInput()) for _, mapper, *_ in self._shown]))

    def place(self, axes: Any, margin: float = 1.04) -> Any:
        """Renders all that is shown into axes, whose coordinates become those of the projection."""
        places = self._update()
        low, high = places.min(axis=0), places.max(axis=0)
        middle, half = (low + high) / 2, margin * (high - low)[:2].max() / 2
        self._look(middle, half, 2 * (high[2] - low[2]) + half)
        extent = (middle[0] - half, middle[0] + half, middle[1] - half, middle[1] + half)
        axes.set_axis_off()
        return axes.imshow(self._image(), extent=extent, interpolation="antialiased")

    def _look(self, middle: NDArray[Any], half: float, distance: float) -> None:
        camera, eye = self.camera, self._renderer.GetActiveCamera()
        focus = middle @ numpy.array([camera.right, camera.up, camera.back])
        eye.SetParallelProjection(True)
        eye.SetFocalPoint(focus)
        eye.SetPosition(focus + distance * camera.back)
        eye.SetViewUp(camera.up)
        eye.SetParallelScale(half)

    def pixels(self) -> NDArray[Any]:
        """What the sources have now as place() shows it: rows of RGB from the top, from 0 to 1."""
        self._update()
        return self._image()

    def _image(self) -> NDArray[Any]:
        """The image, its edges smoothed."""
        self._renderer.ResetCameraClippingRange()
        self._window.Render()
        fine, (width, height) = vtkUnsignedCharArray(), self._window.GetSize()
        self._window.GetPixelData(0, 0, width - 1, height - 1, False, fine, 0)
        shape = height // _SMOOTHING, _SMOOTHING, width // _SMOOTHING, _SMOOTHING, 3
        return vtk_to_numpy(fine).reshape(shape).mean(axis=(1, 3))[::-1] / 255
