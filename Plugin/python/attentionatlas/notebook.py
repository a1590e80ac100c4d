"""What Jupyter shows by itself: figures and pictures of ParaView's views as PNG, movies as videos.

    from attentionatlas import display, figures
    figures.class_map("model.safetensors")       # the last line of a cell is shown
    display(GetActiveView())                     # or display(torus), a source in a view of its own

Scenes of attentionatlas.web show themselves as a page in a frame.
"""

import base64
import html
import io
import pathlib
import tempfile

import matplotlib.figure

from attentionatlas import style

#: The resolution of a figure in a notebook: a page of 180 mm has 1,020 pixels.
_DPI = 144


class Figure(matplotlib.figure.Figure):
    """A matplotlib Figure that is shown without pyplot too."""

    def _repr_png_(self):
        file = io.BytesIO()
        with style.applied():
            self.savefig(file, format="png", dpi=_DPI, facecolor=self.get_facecolor(), bbox_inches=None)
        return file.getvalue()


def _image(png):
    return f'<img alt="" style="max-width: 100%" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


class Figures(list):
    """Figures, one below the other."""

    def _repr_html_(self):
        return "<br>".join(_image(figure._repr_png_()) for figure in self)


class MovieFile(type(pathlib.Path())):
    """The path of a movie, which is shown as a video."""

    def _repr_html_(self):
        if self.suffix != ".ogv" or not self.is_file():
            return None  # such as the folder of a movie, which is of this class too
        code = base64.b64encode(self.read_bytes()).decode()
        title = html.escape(self.name, quote=True)
        return f'<video controls loop muted title="{title}" src="data:video/ogg;base64,{code}"></video>'


class Picture:
    """A picture of a ParaView view. png: the bytes of the file; width, height: in pixels."""

    def __init__(self, png, width, height):
        self.png, self.width, self.height = png, width, height

    def _repr_png_(self):
        return self.png

    def save(self, path):
        """Writes the picture to a .png file; returns its path. Raises ValueError for another name."""
        path = pathlib.Path(path)
        if path.suffix != ".png":
            raise ValueError(f"{path}: expected a name that ends with .png.")
        temporary = path.with_name(f"{path.stem}.part{path.suffix}")
        try:
            temporary.write_bytes(self.png)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return path


def _pictured(view, width, height):
    from paraview import simple

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "view.png")
        simple.SaveScreenshot(str(file), view, ImageResolution=[width, height])
        return Picture(file.read_bytes(), width, height)


def _is_flat(bounds):
    """Whether data lie in a plane of x and y."""
    return bounds[4] == bounds[5]


def display(shown, width=900, height=600):
    """A picture of a view as it is, or of a source or output port in a view of its own, which Jupyter shows.

    width, height: in pixels. Raises ValueError for anything else, and for a source without points or cells; OSError
    where ParaView cannot render.
    """
    from paraview import servermanager, simple

    from attentionatlas import session
    from attentionatlas.charts import check
    from attentionatlas.space import PLAIN, render_view

    check("width", width, 16, 16384, "pixels")
    check("height", height, 16, 16384, "pixels")
    if isinstance(shown, servermanager.Proxy) and shown.SMProxy.IsA("vtkSMViewProxy"):
        if shown.SMProxy.IsA("vtkSMSpreadSheetViewProxy"):
            raise ValueError(f"display: expected a view that draws, found {shown.GetXMLName()}.")
        return _pictured(shown, width, height)
    if not isinstance(shown, servermanager.SourceProxy):
        raise ValueError(f"display: expected a view or a source, found {type(shown).__name__}.")
    shown.UpdatePipeline()
    port = shown.Port
    information = shown.GetDataInformation(port)
    if information.GetNumberOfPoints() == 0:
        found = (information.GetDataClassName() or "no data").removeprefix("vtk")
        raise ValueError(
            f"display: expected a source with points, found none ({found}). SpreadSheetView shows tables."
        )
    flat = _is_flat(information.GetBounds())
    with session.kept():
        view = render_view(**({"InteractionMode": "2D", "CameraParallelProjection": 1} if flat else {}), **PLAIN)
        try:
            simple.Show(simple.OutputPort(shown, port), view)
            view.ViewSize = [width, height]
            simple.ResetCamera(view)
            return _pictured(view, width, height)
        finally:
            simple.Delete(view)
