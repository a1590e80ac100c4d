"""A chart of the torus as a picture for print: axes in multiples of pi, a title, a colour bar."""

import math
import pathlib

from paraview import simple
from vtkmodules import vtkRenderingFreeType  # noqa: F401 (makes vtkTextRenderer work)
from vtkmodules.vtkRenderingCore import vtkTextProperty, vtkTextRenderer

#: Where fonts with Greek letters usually lie; ParaView's own have none.
_FONTS = [
    pathlib.Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"),
    pathlib.Path("/usr/share/fonts/TTF/DejaVuSans.ttf"),
    pathlib.Path("/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf"),
]

_TICKS = [
    (-math.pi, "\u2212\u03c0"),
    (-math.pi / 2, "\u2212\u03c0/2"),
    (0, "0"),
    (math.pi / 2, "\u03c0/2"),
    (math.pi, "\u03c0"),
]

#: What to write where no font has the letters.
_ASCII = str.maketrans(
    {"\u03c0": "pi", "\u03b8": "theta", "\u2212": "-", "\u2081": "1", "\u2082": "2"}
)

#: VTK_FONT_FILE of vtkTextProperty.h, which Python lacks.
_FONT_FROM_FILE = 4

_BLACK = [0, 0, 0]
_WHITE = [1, 1, 1]

#: Heights relative to the width of the picture: legible when printed 8 cm wide (7 and 8 points).
_TICK_TEXT = 0.031
_LABEL_TEXT = 0.035
_TITLE_TEXT = 0.037

#: What the picture shows, in radians: the chart from -pi to pi, and room for the axes and the bar.
_LEFT, _RIGHT, _BOTTOM, _TOP = -5.0, 5.0, -4.35, 3.95


def _font():
    """A font file that has Greek letters, or None."""
    candidates = list(_FONTS)
    try:
        import matplotlib

        candidates.append(
            pathlib.Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
        )
    except ImportError:
        pass
    return next((font for font in candidates if font.is_file()), None)


class Chart:
    """A picture of one chart. Its pipeline objects are deleted by close(), or at the end of `with`.

    width: in pixels, at least 200; the height follows from it.
    """

    def __init__(self, title, width=2400):
        self.width = width
        self._font = _font()
        self._sources = []
        self.view = simple.CreateRenderView(
            ViewSize=[width, round(width * (_TOP - _BOTTOM) / (_RIGHT - _LEFT))],
            UseColorPaletteForBackground=0,
            Background=_WHITE,
            OrientationAxesVisibility=0,
            InteractionMode="2D",
            CameraParallelProjection=1,
            CameraFocalPoint=[(_LEFT + _RIGHT) / 2, (_BOTTOM + _TOP) / 2, 0],
            CameraPosition=[(_LEFT + _RIGHT) / 2, (_BOTTOM + _TOP) / 2, 20],
            CameraViewUp=[0, 1, 0],
            CameraParallelScale=(_TOP - _BOTTOM) / 2,
        )
        self._draw_axes(title)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Deletes the view and everything that was made for it."""
        for source in self._sources:
            simple.Delete(source)
        simple.Delete(self.view)

    def text(self, text, x, y, size, horizontal=0.5, vertical=0.5):
        """Writes a line of text at a point of the chart, in radians.

        size: of the font, relative to the width. horizontal, vertical: which part of the text is at
        the point, from 0 (left, bottom) to 1 (right, top).
        """
        if self._font is None:
            text = text.translate(_ASCII)
        size = round(size * self.width)
        # Text at a point in space is anchored at its lower left: the other anchors are up to us.
        columns, rows = self._extent(text, size)
        radian = (_RIGHT - _LEFT) / self.width
        display = self._show(simple.Text(registrationName="Label", Text=text))
        display.TextPropMode = "Billboard 3D Text"
        display.BillboardPosition = [
            x - horizontal * columns * radian,
            y - vertical * rows * radian,
            0,
        ]
        display.Color = _BLACK
        display.FontSize = size
        if self._font is not None:
            display.FontFamily = "File"
            display.FontFile = str(self._font)

    def _extent(self, text, size):
        """Width and height of a text, in pixels."""
        style = vtkTextProperty()
        style.SetFontSize(size)
        if self._font is not None:
            style.SetFontFamily(_FONT_FROM_FILE)
            style.SetFontFile(str(self._font))
        box = [0, 0, 0, 0]
        vtkTextRenderer.GetInstance().GetBoundingBox(style, text, box, 72)
        return box[1] - box[0] + 1, box[3] - box[2] + 1

    def map(self, torus, array):
        """Shows an array of an AttentionTorus in its colours, unshaded; returns the display."""
        display = simple.Show(torus, self.view)
        display.SetRepresentationType("Slice")  # a texture: exact colours, and quick
        return self._color(display, array)

    def pairs(self, pairs, array="TargetColor"):
        """Shows TokenPairs as discs in the colour of an array; returns the display."""
        display = self._color(simple.Show(pairs, self.view), array)
        # Small enough for neighbours, of which there are as many as tokens, to lie side by side.
        tokens = math.sqrt(max(pairs.GetDataInformation().GetNumberOfPoints(), 1))
        display.GaussianRadius = min(0.1, 0.4 * 2 * math.pi / tokens)
        return display

    def color_bar(self, table, title, labels=None, length=None):
        """Shows the colour bar of a lookup table at the right; labels: values to write at it."""
        bar = simple.GetScalarBar(table, self.view)
        bar.Title, bar.ComponentTitle = title, ""
        bar.WindowLocation = "Any Location"
        length = length or 2 * math.pi / (_TOP - _BOTTOM)
        bar.ScalarBarLength = length
        bar.Position = [
            (math.pi + 0.4 - _LEFT) / (_RIGHT - _LEFT),
            (math.pi - _BOTTOM) / (_TOP - _BOTTOM) - length,
        ]
        bar.ScalarBarThickness = round(0.03 * self.width)
        bar.TitleColor = bar.LabelColor = _BLACK
        bar.TitleFontSize = round(_LABEL_TEXT * self.width)
        bar.LabelFontSize = round(_TICK_TEXT * self.width)
        bar.DrawAnnotations = 1
        if self._font is not None:
            bar.TitleFontFamily = bar.LabelFontFamily = "File"
            bar.TitleFontFile = bar.LabelFontFile = str(self._font)
        if labels is not None:
            bar.AutomaticLabelFormat = 0
            bar.LabelFormat = bar.RangeLabelFormat = "%.1f"
            bar.UseCustomLabels = 1
            bar.CustomLabels = labels
            bar.AddRangeLabels = 0
        bar.Visibility = 1

    def save(self, path):
        """Renders and writes a PNG, first under a temporary name."""
        path = pathlib.Path(path)
        temporary = path.with_name(path.stem + ".part" + path.suffix)
        simple.SaveScreenshot(str(temporary), self.view)
        temporary.replace(path)
        return path

    @staticmethod
    def _color(display, array):
        # Not simple.ColorBy: that stretches the colours over the range of the data.
        display.ColorArrayName = ["POINTS", array]
        display.LookupTable = simple.GetColorTransferFunction(array)
        return display

    def _show(self, source):
        self._sources.append(source)
        return simple.Show(source, self.view)

    def _line(self, points):
        flat = [coordinate for point in points for coordinate in (*point, 0.02)]
        display = self._show(simple.PolyLineSource(registrationName="Axis", Points=flat))
        display.ColorArrayName = [None, ""]
        display.AmbientColor = display.DiffuseColor = _BLACK
        display.Ambient, display.Diffuse = 1, 0
        display.LineWidth = max(1, self.width / 600)

    def _draw_axes(self, title):
        pi, tick = math.pi, 0.12
        self._line([(-pi, -pi), (pi, -pi), (pi, pi), (-pi, pi), (-pi, -pi)])
        for value, label in _TICKS:
            self._line([(value, -pi), (value, -pi - tick)])
            self._line([(-pi, value), (-pi - tick, value)])
            self.text(label, value, -pi - 1.7 * tick, _TICK_TEXT, vertical=1)
            self.text(label, -pi - 1.7 * tick, value, _TICK_TEXT, horizontal=1)
        self.text("\u03b8\u2081, token 1", 0, -pi - 0.66, _LABEL_TEXT, vertical=1)
        self.text("\u03b8\u2082,", -pi - 1.1, pi * 0.81, _LABEL_TEXT)
        self.text("token 2", -pi - 0.9, pi * 0.69, _LABEL_TEXT)
        self.text(title, -pi, pi + 0.22, _TITLE_TEXT, horizontal=0, vertical=0)
