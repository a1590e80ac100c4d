"""A figure for print: panels side by side on one white page, with axes, titles and a colour bar.

The page is one render view in two dimensions, in radians of its panels. Texts and colour bars are laid
over it, so that a PDF or SVG has them as outlines and letters; what ParaView cannot write as lines, the
maps and the pictures of scenes, is an image in them, as sharp as in the PNG.
"""

import base64
import math
import pathlib
import re
import tempfile
import zlib

import numpy
from paraview import servermanager, simple
from vtkmodules import vtkRenderingFreeType  # noqa: F401 (makes vtkTextRenderer work)
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonCore import VTK_UNSIGNED_CHAR
from vtkmodules.vtkCommonDataModel import vtkImageData
from vtkmodules.vtkIOImage import vtkPNGReader, vtkPNGWriter
from vtkmodules.vtkIOOggTheora import vtkOggTheoraWriter
from vtkmodules.vtkRenderingCore import vtkTextProperty, vtkTextRenderer

#: Where fonts with Greek letters usually lie; ParaView's own have none.
_FONTS = [
    pathlib.Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"),
    pathlib.Path("/usr/share/fonts/TTF/DejaVuSans.ttf"),
    pathlib.Path("/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf"),
]

#: What to write where no font has the letters.
_ASCII = str.maketrans(
    {
        "\u03c0": "pi",
        "\u03b8": "theta",
        "\u03bb": "lambda",
        "\u03a3": "sum",
        "\u2212": "-",
        "\u2080": "0",
        "\u2081": "1",
        "\u2082": "2",
        "\u2083": "3",
    }
)

#: VTK_FONT_FILE of vtkTextProperty.h, which Python lacks.
_FONT_FROM_FILE = 4

#: What a figure can be written as.
FORMATS = ("png", "pdf", "svg")

BLACK, GREY, WHITE = [0, 0, 0], [0.45, 0.45, 0.45], [1, 1, 1]

#: Heights of text relative to the width of the picture: 7 and 8 points when printed 8 cm wide.
TEXT, TITLE_TEXT = 0.031, 0.0355

#: The length of a panel's sides, in radians.
SIDE = 2 * math.pi


def _label_format(digits):
    """How a colour bar writes numbers: as printf does, or as std::format does from ParaView 6.1 on."""
    return f"%.{digits}f" if simple.GetParaViewVersion() < 6.1 else f"{{:.{digits}f}}"


def font():
    """A font file that has Greek letters, or None."""
    candidates = list(_FONTS)
    try:
        import matplotlib

        candidates.append(
            pathlib.Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
        )
    except ImportError:
        pass
    return next((file for file in candidates if file.is_file()), None)


def angles(ratio=1):
    """Ticks in multiples of pi: (value, label), five of them, or three where there is less room."""
    ticks = [
        (-math.pi, "\u2212\u03c0"),
        (-math.pi / 2, "\u2212\u03c0/2"),
        (0, "0"),
        (math.pi / 2, "\u03c0/2"),
        (math.pi, "\u03c0"),
    ]
    return ticks[:: 1 if ratio == 1 else 2]


class Sheet:
    """A page of equal square panels. Its pipeline objects are deleted at the end of `with`.

    title: above all panels, "" for none. panels: how many there are, row by row, in so many columns.
    width: in pixels, at least 200; the height follows from it. axes: whether the panels are charts of
    the torus, with axes of angles at the left and below. bar: whether there is room for a colour bar at
    the right. titles: whether each panel has one. below, left: room under and left of the panels, in heights of text.
    """

    def __init__(
        self, title, panels=1, columns=1, width=2400, axes=True, bar=False, titles=True, below=None, left=None
    ):
        self.width, self.panels, self.axes = width, panels, axes
        self.columns = min(columns, panels)
        self.rows = -(-panels // self.columns)
        self.texts = []  # (text, left, bottom, right, top) of each, in pixels
        self._font = font()
        self._sources, self._labels = [], []
        self._lines, self._fills = {}, {}  # what is drawn when the page is written, by colour
        self._scenes = tempfile.TemporaryDirectory()
        self._files, self._upright = 0, []
        self._drawn = False  # whether it has more than lines, rectangles and text
        self._lay_out(title, bar, titles, below, left)
        self.size = (width, round(width * self._height / self._width))
        self.view = simple.CreateRenderView(
            ViewSize=self.size,
            UseColorPaletteForBackground=0,
            Background=WHITE,
            OrientationAxesVisibility=0,
            InteractionMode="2D",
            CameraParallelProjection=1,
            CameraFocalPoint=[self._width / 2, self._height / 2, 0],
            CameraPosition=[self._width / 2, self._height / 2, 20],
            CameraViewUp=[0, 1, 0],
            CameraParallelScale=self._height / 2,
        )
        if title:
            top = self._height - 0.45 * self.unit
            # Over the panels, unless it is longer.
            extent = self._extent(title, round(TITLE_TEXT * width))[0] / self.pixels
            left = min(self._left, self._width - extent - 0.3 * self.unit)
            self.text(title, max(left, 0.3 * self.unit), top, TITLE_TEXT, 0, 1)

    def _lay_out(self, title, bar, titles, below, left):
        """Sizes in radians; `unit` is the height of the text."""
        # In heights of text. Neighbours need room for the labels at the ends of their axes.
        left = left or ((4.1 if self.columns == 1 else 3.3) if self.axes else 0.5)
        right = 5.5 if bar else 0.9 if self.axes else 0.5
        self._gap = 1.5 if self.axes else 0.6
        self._over = (2 if self.axes else 1.6) if titles else 0.3  # of each panel
        top = 2.3 if title else 0.4
        bottom = below or (3.5 if self.axes else 0.7)
        across = left + right + (self.columns - 1) * self._gap
        self._width = self.columns * SIDE / (1 - TEXT * across)
        self.unit = TEXT * self._width
        self.pixels = self.width / self._width  # of a radian
        self._left, self._bottom = left * self.unit, bottom * self.unit
        self._height = self.rows * (SIDE + self._over * self.unit) + (top + bottom) * self.unit

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Deletes the view and everything that was made for it."""
        simple.Delete(self.view)  # first: a view that loses its sources one by one takes long
        for source in reversed(self._sources):
            simple.Delete(source)
        self._scenes.cleanup()

    def panel(self, number, title="", frame=True):
        """The panel at a place, counted row by row from the upper left one."""
        return Panel(self, number, title, frame)

    def place(self, row, column):
        """The middle of a panel, in radians of the page."""
        return (
            self._left + column * (SIDE + self._gap * self.unit) + SIDE / 2,
            self._bottom + (self.rows - 1 - row) * (SIDE + self._over * self.unit) + SIDE / 2,
        )

    def text(self, text, x, y, size=TEXT, horizontal=0.5, vertical=0.5, upright=False, color=BLACK):
        """Writes a line of text at a point of the page, in radians.

        size: of the font, relative to the width. horizontal, vertical: which part of the text is at
        the point, from 0 (left, bottom) to 1 (right, top). upright: turned by a quarter to the left.
        """
        if self._font is None:
            text = text.translate(_ASCII)
        size = round(size * self.width)
        columns, rows = self._extent(text, size, upright)
        left = round(x * self.pixels - horizontal * columns)
        bottom = round(y * self.pixels - vertical * rows)
        self.texts.append((text, left, bottom, left + columns, bottom + rows))
        width, height = self.size
        source = self.own(simple.Text(registrationName="Label", Text=text))
        display = simple.Show(source, self.view)
        display.WindowLocation = "Any Location"
        display.Position = [left / width, bottom / height]
        display.Justification, display.VerticalJustification = "Left", "Bottom"
        display.Color, display.FontSize = color, size
        display.Orientation = 90 if upright else 0
        if self._font is not None:
            display.FontFamily, display.FontFile = "File", str(self._font)
        self._labels.append(display)
        if upright:
            self._upright.append((display, columns / width))

    def rewrite(self, title):
        """Replaces the title of the page by another of about the same length."""
        self._sources[0].Text = title

    def text_width(self, text, size=TEXT):
        """How wide a text is, in radians of the page."""
        return self._extent(text, round(size * self.width))[0] / self.pixels

    def _extent(self, text, size, upright=False):
        """Width and height of a text, in pixels."""
        style = vtkTextProperty()
        style.SetFontSize(size)
        style.SetOrientation(90 if upright else 0)
        if self._font is not None:
            style.SetFontFamily(_FONT_FROM_FILE)
            style.SetFontFile(str(self._font))
        box = [0, 0, 0, 0]
        vtkTextRenderer.GetInstance().GetBoundingBox(style, text, box, 72)
        return box[1] - box[0] + 1, box[3] - box[2] + 1

    def color_bar(self, table, title, labels=None, digits=1):
        """Shows the colour bar of a lookup table at the right of all panels.

        labels: values to write at it, with so many digits behind the point.
        """
        right, lower, upper = self._beside()
        bar = simple.GetScalarBar(table, self.view)
        bar.Title = bar.ComponentTitle = ""
        bar.WindowLocation = "Any Location"
        bar.ScalarBarLength = (upper - lower) / self._height
        bar.Position = [(right + 0.6 * self.unit) / self._width, lower / self._height]
        bar.ScalarBarThickness = round(0.8 * TEXT * self.width)
        bar.LabelColor = BLACK
        bar.LabelFontSize = round(TEXT * self.width)
        bar.DrawAnnotations = 1
        bar.TextPosition = (
            "Ticks left/bottom, annotations right/top"
            if table.InterpretValuesAsCategories
            else "Ticks right/top, annotations left/bottom"
        )
        if self._font is not None:
            bar.LabelFontFamily, bar.LabelFontFile = "File", str(self._font)
        room = 4.2
        if table.InterpretValuesAsCategories:
            longest = max((self.text_width(text) for text in table.Annotations[1::2]), default=0)
            room = 1.9 + longest / self.unit
        self.text(title, right + room * self.unit, (lower + upper) / 2, horizontal=0, upright=True)
        if labels is not None:
            bar.AutomaticLabelFormat = 0
            bar.LabelFormat = bar.RangeLabelFormat = _label_format(digits)
            bar.UseCustomLabels = 1
            bar.CustomLabels = labels
            bar.AddRangeLabels = 0
        bar.Visibility = 1
        self._labels.append(bar)

    def ramp(self, colors, title, labels, row=None):
        """Shows a colour bar without table at the right of all panels, or of those in one row.

        colors: from the lower end to the upper one. labels: (place from 0 to 1, text).
        """
        right, lower, upper = self._beside(row)
        left, right, length = right + 0.6 * self.unit, right + 1.4 * self.unit, upper - lower
        image = vtkImageData()
        image.SetDimensions(2, len(colors), 1)
        image.AllocateScalars(VTK_UNSIGNED_CHAR, 3)
        for number, color in enumerate(colors):
            for component, value in enumerate(color):
                for column in range(2):
                    level = round(255 * value)
                    image.SetScalarComponentFromDouble(column, number, 0, component, level)
        file = self.scene_file()
        writer = vtkPNGWriter()
        writer.SetFileName(str(file))
        writer.SetInputData(image)
        writer.Write()
        self.image(file, [left, lower], [right - left, length / (len(colors) - 1)])
        for place, text in labels:
            height = lower + place * length
            self.line([(right, height), (right + 0.3 * self.unit, height)])
            self.text(text, right + 0.5 * self.unit, height, horizontal=0)
        place = right + 2.5 * self.unit
        self.text(title, place, (lower + upper) / 2, horizontal=0, upright=True)

    def image(self, file, place, step):
        """Shows a PNG: its lower left pixel at a place of the page, others a step further each."""
        source = simple.PNGSeriesReader(
            registrationName="Picture", FileNames=[str(file)], DataSpacing=[*step, 1]
        )
        display = self.show(source)
        display.SetRepresentationType("Slice")
        display.Position = [*place, 0]
        display.ColorArrayName = ["POINTS", "PNGImage"]
        display.MapScalars = 0

    def _beside(self, row=None):
        """Right side, bottom and top of all panels, or of those in one row."""
        right = self.place(0, self.columns - 1)[0] + SIDE / 2
        lower = self.place(self.rows - 1 if row is None else row, 0)[1] - SIDE / 2
        upper = self.place(row or 0, 0)[1] + SIDE / 2
        return right, lower, upper

    def save(self, path):
        """Writes the page as the kind of file that the name says, first under a temporary name."""
        self._draw()
        path = pathlib.Path(path)
        temporary = path.with_name(path.stem + ".part" + path.suffix)
        if path.suffix == ".png":
            simple.SaveScreenshot(str(temporary), self.view)
        else:
            image = 1 if self._drawn else 0
            options = {"Rasterize3Dgeometry": image, "Rendertextaspaths": 1}
            self._shift_upright(1)
            simple.ExportView(str(temporary), view=self.view, **options)
            self._shift_upright(-1)
            if path.suffix == ".pdf":
                temporary.write_bytes(_deflated(temporary.read_bytes()))
            elif self._drawn:
                temporary.write_text(self._with_picture(temporary.read_text()))
        temporary.replace(path)
        return path

    def _shift_upright(self, sign):
        """The exporter turns text around its corner, where the screen shows all of it to the right."""
        for display, width in self._upright:
            x, y = display.Position
            display.Position = [x + sign * width, y]

    def movie(self, path, rate):
        """A Movie of the page, to which frames can be added."""
        self._draw()
        return Movie(self.view, path, rate)

    def _with_picture(self, svg):
        """An SVG with the picture under its letters: Debian's exporter leaves it out."""
        for label in self._labels:
            label.Visibility = 0
        picture = pathlib.Path(self._scenes.name, "page.png")
        simple.SaveScreenshot(str(picture), self.view)
        for label in self._labels:
            label.Visibility = 1
        width, height = self.size
        code = base64.b64encode(picture.read_bytes()).decode()
        image = f'<image width="{width}" height="{height}" xlink:href="data:image/png;base64,{code}"/>'
        return svg.replace("<g>\n", f"<g>\n{image}\n", 1)

    def own(self, source):
        """A source that goes with the page."""
        self._sources.append(source)
        return source

    def show(self, source):
        """Shows a source that goes with the page, as part of the image; returns the display."""
        self._drawn = True
        return simple.Show(self.own(source), self.view)

    @property
    def stroke(self):
        """The width of the lines of axes, in radians."""
        return max(1, self.width / 600) / self.pixels

    def line(self, points, color=BLACK, width=1.0):
        """Draws a line through points of the page; width: relative to that of the axes."""
        self._lines.setdefault((tuple(color), width), []).append(points)

    def rectangle(self, left, bottom, right, top, color):
        """Fills a rectangle of the page; one without extent is nothing."""
        if left < right and bottom < top:
            self._fills.setdefault(tuple(color), []).append((left, bottom, right, top))

    def _draw(self):
        """Draws the lines and rectangles, those of a colour as one: each display takes its time."""
        for (color, width), lines in self._lines.items():
            sources = [
                simple.PolyLineSource(Points=[c for point in line for c in (*point, 0.02)])
                for line in lines
            ]
            self._draw_together(sources, color, width)
        for color, rectangles in self._fills.items():
            sources = [
                simple.Plane(
                    Origin=[left, bottom, 0.01], Point1=[right, bottom, 0.01], Point2=[left, top, 0.01]
                )
                for left, bottom, right, top in rectangles
            ]
            self._draw_together(sources, color)
        self._lines, self._fills = {}, {}

    def _draw_together(self, sources, color, width=1.0):
        self._sources += sources
        together = self.own(simple.AppendGeometry(Input=sources))
        self.paint(simple.Show(together, self.view), list(color), width)

    def paint(self, display, color, width=1.0):
        """Gives a display one flat colour and its lines a width, relative to that of the axes."""
        display.ColorArrayName = [None, ""]
        display.AmbientColor = display.DiffuseColor = color
        display.Ambient, display.Diffuse, display.Specular = 1, 0, 0
        display.LineWidth = max(1, width * self.width / 600)

    def scene_file(self):
        """The name of a new temporary file for a picture."""
        self._files += 1
        return pathlib.Path(self._scenes.name, f"{self._files}.png")


class Movie:
    """A movie (Ogg Theora) of a view, so many frames a second; whole once the `with` has ended."""

    def __init__(self, view, path, rate):
        self._view, self._path = view, pathlib.Path(path)
        self._part = self._path.with_name(self._path.stem + ".part" + self._path.suffix)
        self._writer = vtkOggTheoraWriter()
        self._writer.SetFileName(str(self._part))
        self._writer.SetRate(rate)
        self._writer.SetQuality(2)
        self._started = False

    def __enter__(self):
        return self

    def __exit__(self, kind, *error):
        if self._started:
            self._writer.End()
        if kind is None:
            self._part.replace(self._path)

    def add_frame(self):
        """Adds what the view shows now."""
        picture = self._path.with_name(self._path.stem + ".part.png")
        simple.SaveScreenshot(str(picture), self._view)
        reader = vtkPNGReader()
        reader.SetFileName(str(picture))
        reader.Update()
        picture.unlink()
        self._writer.SetInputData(reader.GetOutput())
        if not self._started:
            self._writer.Start()
            self._started = True
        self._writer.Write()


class Panel:
    """A square of a sheet, in radians from -pi to pi around its middle."""

    def __init__(self, sheet, number, title="", frame=True):
        self.sheet = sheet
        row, column = divmod(number, sheet.columns)
        self.x, self.y = sheet.place(row, column)
        if title:
            self.text(title, -math.pi, math.pi + 0.3 * sheet.unit, horizontal=0, vertical=0)
        if frame:
            self.frame()
        if sheet.axes:
            self._draw_axes(number + sheet.columns >= sheet.panels, column == 0)

    def text(self, text, x, y, **options):
        """Writes a line of text, as Sheet.text does."""
        self.sheet.text(text, self.x + x, self.y + y, **options)

    def line(self, points, **options):
        """Draws a line, as Sheet.line does."""
        self.sheet.line([(self.x + x, self.y + y) for x, y in points], **options)

    def rectangle(self, left, bottom, right, top, color):
        """Fills a rectangle, as Sheet.rectangle does."""
        self.sheet.rectangle(self.x + left, self.y + bottom, self.x + right, self.y + top, color)

    def frame(self):
        pi = math.pi
        self.line([(-pi, -pi), (pi, -pi), (pi, pi), (-pi, pi), (-pi, -pi)])

    def map(self, source, array):
        """Shows an array of an image over [-pi, pi]^2 in its colours, unshaded; returns the display."""
        # A filter of its own: a view shows each output once, and panels may share a source.
        alone = simple.PassArrays(
            registrationName="Map",
            Input=source,
            PointDataArrays=[array],
            CellDataArrays=[],
            FieldDataArrays=["VocabularySize"],
        )
        display = self.sheet.show(alone)
        display.SetRepresentationType("Slice")  # a texture: exact colours, and quick
        display.Position = [self.x, self.y, 0]
        return self._color(display, array)

    def pairs(self, pairs, array="TargetColor"):
        """Shows TokenPairs as discs in the colour of an array; returns the display."""
        display = self._color(simple.Show(pairs, self.sheet.view), array)
        display.Position = [self.x, self.y, 0.05]
        # Small enough for neighbours, of which there are as many as tokens, to lie side by side.
        tokens = math.sqrt(max(pairs.GetDataInformation().GetNumberOfPoints(), 1))
        display.GaussianRadius = min(0.1 * self.sheet.unit / 0.31, 0.4 * SIDE / tokens)
        return display

    def level(self, source, array, value=0, color=(0.84, 0.37, 0), width=1.5):
        """Draws the level line of an image's array."""
        contour = self.sheet.own(simple.Contour(
            registrationName="Level",
            Input=source,
            ContourBy=["POINTS", array],
            Isosurfaces=[value],
            ComputeNormals=0,
            ComputeScalars=0,
        ))
        # As tubes: OpenGL leaves gaps in wide lines of pieces as short as these.
        lines = self.sheet.own(simple.TriangleStrips(registrationName="Lines", Input=contour))
        radius = width * self.sheet.stroke / 2
        tube = simple.Tube(registrationName="Frontier", Input=lines, Radius=radius, Capping=0)
        display = self.sheet.show(tube)
        self.sheet.paint(display, list(color))
        display.Position = [self.x, self.y, 0.02]

    def surface(self, source, array, table, scale, x, y):
        """Shows an array of a flat surface, unshaded, its origin at x, y; returns the display."""
        alone = simple.PassArrays(
            registrationName="Map", Input=source, PointDataArrays=[array], CellDataArrays=[]
        )
        display = self.sheet.show(alone)
        display.SetRepresentationType("Surface")
        display.Ambient, display.Diffuse, display.Specular = 1, 0, 0
        display.Scale = [scale, scale, 1]
        display.Position = [self.x + x, self.y + y, 0]
        return self._color(display, array, table)

    def solid(self, source, array, scale, direction, up=(0, 0, 1)):
        """Shows a surface in space, so many times larger, from a direction; returns the display."""
        back = _unit(direction)
        right = _unit(_cross(up, back))
        display = self.sheet.show(source)
        display.SetRepresentationType("Surface")
        display.Scale = [scale] * 3
        display.Orientation = _turn(right, _cross(back, right), back)
        display.Position = [self.x, self.y, 0]
        for name, value in _SHADING.items():
            setattr(display, name, value)
        return self._color(display, array)

    def picture(self, scene):
        """Puts the picture of a Scene into the panel."""
        file = self.sheet.scene_file()
        scene.save(file)
        step = SIDE / scene.pixels
        place = [self.x - math.pi + step / 2, self.y - math.pi + step / 2]
        self.sheet.image(file, place, [step, step])

    @staticmethod
    def _color(display, array, table=None):
        # Not simple.ColorBy: that stretches the colours over the range of the data.
        display.ColorArrayName = ["POINTS", array]
        display.LookupTable = table or simple.GetColorTransferFunction(array)
        if array.endswith("Color"):
            display.MapScalars = 0
        return display

    def _draw_axes(self, below, left):
        pi, unit = math.pi, self.sheet.unit
        tick = 0.3 * unit
        for value, label in angles(self.sheet.columns):
            self.line([(value, -pi), (value, -pi - tick)])
            self.line([(-pi, value), (-pi - tick, value)])
            if below:
                self.text(label, value, -pi - 1.6 * tick, vertical=1)
            if left:
                self.text(label, -pi - 1.6 * tick, value, horizontal=1)
        if below:
            self.text("\u03b8\u2081, token 1", 0, -pi - 1.85 * unit, vertical=1)
        if left:
            room = 3.9 if self.sheet.columns == 1 else 3.1
            self.text("\u03b8\u2082, token 2", -pi - room * unit, 0, horizontal=0, upright=True)


class Scene:
    """A view in three dimensions that becomes the picture of a panel.

    sheet: of that panel. direction: from the middle to the eye; up: what is up. Rendered twice as large
    as it is shown, so that the page smoothes its edges.
    """

    SMOOTHING = 2

    def __init__(self, sheet, direction, up=(0, 0, 1)):
        self.pixels = max(32, round(SIDE * sheet.pixels)) * self.SMOOTHING
        self._sources, self._shown = [], []
        self._back = _unit(direction)
        self._right = _unit(_cross(up, self._back))
        self._up = _cross(self._back, self._right)
        self.view = simple.CreateRenderView(
            ViewSize=[self.pixels, self.pixels],
            UseColorPaletteForBackground=0,
            Background=WHITE,
            OrientationAxesVisibility=0,
            KeyLightWarmth=0.5,
            FillLightWarmth=0.5,
            BackLightWarmth=0.5,
            HeadLightWarmth=0.5,
            CameraParallelProjection=1,
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        simple.Delete(self.view)
        for source in reversed(self._sources):
            simple.Delete(source)

    def own(self, source):
        """A source that is deleted with the scene."""
        self._sources.append(source)
        return source

    def show(self, source, array=None, color=GREY, association="POINTS", **properties):
        """Shows a source in the colours of an array, or in one colour; returns the display."""
        display = simple.Show(source, self.view)
        self._shown.append(source)
        display.SetRepresentationType("Surface")
        if array is None:
            display.ColorArrayName = [None, ""]
            display.AmbientColor = display.DiffuseColor = list(color)
        else:
            display.ColorArrayName = [association, array]
            display.LookupTable = simple.GetColorTransferFunction(array)
            if array.endswith("Color"):
                display.MapScalars = 0
        for name, value in {**_SHADING, **properties}.items():
            setattr(display, name, value)
        return display

    def balls(self, source, color=BLACK, radius=0.05, array=None):
        """Shows the points of a source as balls."""
        glyph = simple.Glyph(
            registrationName="Balls",
            Input=source,
            GlyphType="Sphere",
            ScaleFactor=2 * radius,
            OrientationArray=["POINTS", "No orientation array"],
            ScaleArray=["POINTS", "No scale array"],
            GlyphMode="All Points",
        )
        glyph.GlyphType.ThetaResolution = glyph.GlyphType.PhiResolution = 24
        return self.show(self.own(glyph), array, color)

    def tubes(self, source, color=BLACK, radius=0.01, array=None, **properties):
        """Shows the lines of a source as tubes."""
        tube = simple.Tube(registrationName="Tubes", Input=source, Radius=radius, NumberofSides=12)
        return self.show(self.own(tube), array, color, **properties)

    def look(self, margin=1.05):
        """Turns the camera at all that is shown."""
        points = numpy.concatenate([_points(source) for source in self._shown])
        across = [points @ numpy.array(axis) for axis in (self._right, self._up, self._back)]
        middle = [(a.min() + a.max()) / 2 for a in across]
        axes = (self._right, self._up, self._back)
        self._focus = [sum(m * axis[c] for m, axis in zip(middle, axes)) for c in range(3)]
        self._scale = margin * max(numpy.ptp(across[0]), numpy.ptp(across[1])) / 2
        depth = numpy.ptp(across[2]) + self._scale
        self.view.CameraFocalPoint = self._focus
        self.view.CameraPosition = [f + 2 * depth * b for f, b in zip(self._focus, self._back)]
        self.view.CameraViewUp = self._up
        self.view.CameraParallelScale = self._scale

    def project(self, point):
        """Where a point is in the panel, in its radians."""
        offset = [p - f for p, f in zip(point, self._focus)]
        return tuple(
            math.pi * sum(o * a for o, a in zip(offset, axis)) / self._scale
            for axis in (self._right, self._up)
        )

    def save(self, path):
        simple.SaveScreenshot(str(path), self.view)


#: Bright enough for pale colours to stay so, with light and shade that show the shape.
_SHADING = {"Ambient": 0.35, "Diffuse": 0.75, "Specular": 0.15, "SpecularPower": 30}


def _points(source):
    """The points of a source, a row each."""
    source.UpdatePipeline()
    points = servermanager.Fetch(source).GetPoints()
    return vtk_to_numpy(points.GetData()).astype(float) if points else numpy.zeros((0, 3))


def _cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _turn(right, up, back):
    """The angles by which ParaView turns an actor, in degrees, so that these axes become x, y and z."""
    # Its rotation is R = Rz Rx Ry; the rows of R are the axes.
    x = math.asin(max(-1, min(1, back[1])))
    y = math.atan2(-back[0], back[2])
    z = math.atan2(-right[1], up[1])
    return [math.degrees(angle) for angle in (x, y, z)]


def _unit(vector):
    length = math.hypot(*vector)
    return [c / length for c in vector]


def _deflated(pdf):
    """A PDF as GL2PS writes it, with its streams compressed: a tenth of the size."""
    table = int(re.search(rb"startxref\s+(\d+)", pdf[-64:]).group(1))
    places = [int(entry) for entry in re.findall(rb"(\d{10}) \d{5} n", pdf[table:])]
    ends = dict(zip(sorted(places), [*sorted(places)[1:], table]))
    result, starts = pdf[: min(places)], []
    for place in places:
        starts.append(len(result))
        result += _deflated_object(pdf[place : ends[place]])
    new_table = len(result)
    entries = b"".join(b"%010d 00000 n \n" % start for start in starts)
    header = re.match(rb"xref\n0 \d+\n.{20}", pdf[table:], re.S).group(0)
    trailer = pdf[pdf.index(b"trailer", table) : pdf.rindex(b"startxref")]
    return result + header + entries + trailer + b"startxref\n%d\n%%%%EOF\n" % new_table


def _deflated_object(text):
    """An object of a PDF; its stream, if it has one, compressed."""
    head, stream, rest = text.partition(b"stream\n")
    if not stream:
        return text
    length = re.search(rb"/Length (\d+)( 0 R)?", head)
    size = rest.rindex(b"endstream") if length.group(2) else int(length.group(1))
    data = rest[:size]
    if length.group(2):  # the page, where GL2PS writes transparency that it has not declared
        data = re.sub(rb"/GS\d+ gs\n|[\d.]+ ca\n", b"", data)
    data = zlib.compress(data, 6)
    head = head.replace(length.group(0), b"/Filter /FlateDecode /Length %d" % len(data))
    return head + stream + data + b"\n" + rest[rest.rindex(b"endstream") :]
