"""What all figures are drawn with: the model and its filters, colours, and pieces that several share."""

import collections
import math
import pathlib

from paraview import servermanager, simple

from attentionatlas.sheet import SIDE, Sheet


class Missing(Exception):
    """A model has nothing to show in a figure, and why."""


def field_number(proxy, name):
    """A number of the field data of a proxy's output, or None if it has no such one."""
    fields = proxy.GetDataInformation().DataInformation.GetFieldDataInformation()
    array = fields.GetArrayInformation(name)
    return None if array is None else array.GetComponentRange(0)[0]


def open_model(path):
    """A reader of a model's file, up to date.

    Raises FileNotFoundError or ValueError for a file that is not there or no model.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    reader = simple.AttentionOnlyModelReader(registrationName=path.stem, FileNames=[str(path)])
    reader.UpdatePipeline()
    if field_number(reader, "Heads") is None:
        simple.Delete(reader)
        raise ValueError(f"{path}: cannot be read; the message above says why.")
    return reader


class Tour:
    """An opened model, and how and where to its figures are written.

    path: of a .safetensors file. width: of each figure, in pixels. format: of sheet.FORMATS.
    Raises FileNotFoundError or ValueError for a file that is not there or no model.
    """

    def __init__(self, path, folder, width, format):
        self._proxies = []
        self.reader = self.own(open_model(path))
        self.name, self.folder = pathlib.Path(path).stem, pathlib.Path(folder)
        self.width, self.format = width, format
        self.path = pathlib.Path(path).resolve()
        sizes = (field_number(self.reader, name) for name in ("Heads", "VocabularySize", "HeadDimension"))
        self.heads, self.tokens, self.dimension = map(int, sizes)

    def own(self, proxy):
        """A proxy that is deleted with the figure that made it."""
        self._proxies.append(proxy)
        return proxy

    def close(self, keep=0):
        """Deletes all proxies but the first ones, consumers before producers."""
        while len(self._proxies) > keep:
            simple.Delete(self._proxies.pop())

    def filter(self, name, **properties):
        """A filter of the plugin on the model, or Missing if the plugin has none of that name."""
        make = getattr(simple, name, None)
        if make is None:
            raise Missing(f"the plugin has no {name}")
        if name not in ("HarmonicAttention", "AttentionOnlyTraining"):  # which are sources
            properties.setdefault("Input", self.reader)
        return self.own(make(registrationName=name, **properties))

    def torus(self, columns=1, **properties):
        """An AttentionTorus as fine as the pixels of one of so many panels side by side."""
        size = min(2048, max(64, self.width // columns))
        return self.filter("AttentionTorus", Resolution=[size, size], **properties)

    def scores(self, **properties):
        """The scores of all heads, for level lines: they break up where they are finer than pixels."""
        return self.filter(
            "AttentionTorus", Resolution=[241, 241], Quantities=["Score"], **properties
        )

    def pairs(self, **properties):
        return self.filter("TokenPairs", **properties)

    def accuracy(self, pairs):
        """The share of token pairs whose next token is predicted right, or None if unknown."""
        pairs.UpdatePipeline()
        return field_number(pairs, "Accuracy")

    def sheet(self, title, **layout):
        return Sheet(title, width=self.width, **layout)

    def save(self, sheet, name):
        """Writes a sheet as the figure of a name; returns the path."""
        return sheet.save(self.folder / f"{self.name}-{name}.{self.format}")


def color_scale(name, colors, low, high):
    """Gives an array evenly spaced colours from its value `low` to its value `high`."""
    table = simple.GetColorTransferFunction(name)
    step = (high - low) / (len(colors) - 1)
    points = [(low + step * number, *color) for number, color in enumerate(colors)]
    table.RGBPoints = [c for point in points for c in point]
    table.ColorSpace = "RGB"
    table.AutomaticRescaleRangeMode = "Never"
    table.ScalarRangeInitialized = 1  # or the first display would fit it to its data
    return table


def color_stripes(colors, count=64):
    """The colours of color_scale, at so many places."""
    stripes = []
    for stripe in range(count):
        place = stripe / (count - 1) * (len(colors) - 1)
        first = min(int(place), len(colors) - 2)
        share = place - first
        stripes.append([a + share * (b - a) for a, b in zip(colors[first], colors[first + 1])])
    return stripes


#: Of ColorBrewer's Reds, Blues and Oranges (Cynthia Brewer, colorbrewer2.org), from pale to dark.
REDS = [[1, 0.91, 0.85], [0.99, 0.62, 0.49], [0.94, 0.23, 0.17], [0.65, 0.06, 0.08], [0.33, 0, 0.04]]
BLUES = [[0.91, 0.95, 1], [0.62, 0.79, 0.88], [0.26, 0.57, 0.78], [0.03, 0.32, 0.61], [0.03, 0.15, 0.36]]
ORANGES = [[1, 0.96, 0.92], [0.99, 0.82, 0.64], [0.99, 0.55, 0.24], [0.85, 0.28, 0], [0.5, 0.15, 0.02]]
VIEWPOINT = (1.0, 0.75, 0.55)


SHARES = [0, 0.2, 0.4, 0.6, 0.8, 1]
#: Of these heads one row of a sheet shows this many.
COLUMNS = 3

#: Of Okabe and Ito (2008): told apart with every kind of colour vision.
HEAD_COLORS = [[0, 0.45, 0.7], [0.9, 0.62, 0], [0, 0.62, 0.45], [0.8, 0.47, 0.65], [0.84, 0.37, 0]]

#: Of movies: frames per second, and how many.
RATE, FRAMES = 15, 75


def table_columns(table):
    """The columns of a table proxy, by name."""
    table.UpdatePipeline()
    data = servermanager.Fetch(table)
    return {
        data.GetColumnName(c): [data.GetValue(r, c).ToString() for r in range(data.GetNumberOfRows())]
        for c in range(data.GetNumberOfColumns())
    }


def nice_step(largest):
    """A round step for an axis that reaches from -largest to largest."""
    power = 10 ** math.floor(math.log10(largest))
    return next(step * power for step in (0.2, 0.5, 1, 2, 5) if largest / (step * power) < 5)


def deformed(tour, source, normalization):
    return tour.filter(
        "TorusDeformation",
        Input=source,
        Shape="Vectors",
        Vectors=["POINTS", "Output"],
        Normalization=normalization,
    )


def draw_simplex(panel, triangle, array):
    """Draws an array of HeadAccuracySimplex, an accuracy, as a triangle with its heads at the corners."""
    unit = panel.sheet.unit
    side = SIDE - 2.2 * unit
    low = -math.pi + 1.4 * unit
    high = low + side * math.sqrt(3) / 2
    panel.surface(triangle, array, color_scale(array, ORANGES, 0, 1), side, -side / 2, low)
    corners = [(-side / 2, low), (side / 2, low), (0, high)]
    panel.line([*corners, corners[0]])
    gap = 0.35 * unit
    panel.text("Head 2", -math.pi, low - gap, horizontal=0, vertical=1)
    panel.text("Head 0", math.pi, low - gap, horizontal=1, vertical=1)
    panel.text("Head 1", 0, high + gap / 2, vertical=0)
    middle = low + side * math.sqrt(3) / 6  # the model itself
    panel.line([(-gap, middle), (gap, middle)])
    panel.line([(0, middle - gap), (0, middle + gap)])


#: What a figure is: its title and a sentence for the reader of the index, and draw(tour), which yields
#: the path of each file as it is written.
Figure = collections.namedtuple("Figure", "title sentence draw")
