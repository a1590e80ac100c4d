"""The figures of a small attention-only transformer, each by its name: what the tour shows.

Each has a title, one sentence that says what to see, and a function that draws it on sheets. What a
model or this plugin has nothing for, a figure says with Missing.
"""

import collections
import math
import pathlib

from paraview import simple

from attentionatlas.sheet import BLACK, Scene, Sheet


class Missing(Exception):
    """A model has nothing to show in a figure, and why."""


def _field(proxy, name):
    """A number of the field data of a proxy's output, or None if it has no such one."""
    fields = proxy.GetDataInformation().DataInformation.GetFieldDataInformation()
    array = fields.GetArrayInformation(name)
    return None if array is None else array.GetComponentRange(0)[0]


class Tour:
    """An opened model, and how and where to its figures are written.

    path: of a .safetensors file. width: of each figure, in pixels. format: of sheet.FORMATS.
    Raises FileNotFoundError or ValueError for a file that is not there or no model.
    """

    def __init__(self, path, folder, width, format):
        path = pathlib.Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file.")
        self.name, self.width, self.format = path.stem, width, format
        self.folder = pathlib.Path(folder)
        self._proxies = []
        self.reader = self.own(
            simple.AttentionOnlyModelReader(registrationName=self.name, FileNames=[str(path)])
        )
        self.reader.UpdatePipeline()
        heads = _field(self.reader, "Heads")
        if heads is None:
            self.close()
            raise ValueError(f"{path}: cannot be read; the message above says why.")
        self.heads, self.tokens = int(heads), int(_field(self.reader, "VocabularySize"))

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
        return _field(pairs, "Accuracy")

    def sheet(self, title, **layout):
        return Sheet(title, width=self.width, **layout)

    def save(self, sheet, name):
        """Writes a sheet as the figure of a name; returns the path."""
        return sheet.save(self.folder / f"{self.name}-{name}.{self.format}")


def class_map(tour):
    pairs = tour.pairs()
    accuracy = tour.accuracy(pairs)
    title = "Predicted next token"
    if accuracy is not None:
        title += f" (accuracy {100 * accuracy:.3g} %)"
    with tour.sheet(title, bar=True, titles=False) as sheet:
        panel = sheet.panel(0)
        panel.map(tour.torus(Quantities=["ClassColor"]), "ClassColor")
        panel.pairs(pairs)
        sheet.color_bar(simple.GetColorTransferFunction("ClassColor"), "Next token")
        yield tour.save(sheet, "class-map")


SHARES = [0, 0.2, 0.4, 0.6, 0.8, 1]
#: Of these heads one row of a sheet shows this many.
COLUMNS = 3


def _rows(heads):
    """The heads, at most COLUMNS at a time."""
    return [range(first, min(first + COLUMNS, heads)) for first in range(0, heads, COLUMNS)]


def _part(name, heads, count):
    """The name of a sheet: with the first of its heads, if one sheet does not show them all."""
    return name if len(heads) == count else f"{name}-heads-{heads[0]}-{heads[-1]}"


def attention(tour):
    scores = tour.scores()
    for heads in _rows(tour.heads):
        columns = len(heads)
        title = "Attention of token 2 to token 1" if columns > 1 else "Attention to token 1"
        with tour.sheet(title, columns=columns, rows=2, bar=True) as sheet:
            for row, pattern in enumerate(("Softmax", "Hardmax")):
                torus = tour.torus(columns, Pattern=pattern, Quantities=["Attention"])
                for column, head in enumerate(heads):
                    panel = sheet.panel(row * columns + column, f"Head {head}, {pattern[:4].lower()}")
                    array = f"Attention {head}"
                    panel.map(torus, array)
                    table = simple.GetColorTransferFunction(array)
                    panel.level(scores, f"Score {head}")
            sheet.color_bar(table, "Attention", SHARES)
            yield tour.save(sheet, _part("attention", heads, tour.heads))


def mixes(tour):
    parts = (("Word Mix", "Words"), ("Position Mix", "Positions"), ("Mix", "Both"))
    scores = tour.scores()
    for head in range(tour.heads):
        with tour.sheet(f"What head {head} mixes", columns=3, rows=2) as sheet:
            arrays = [f"{part} {head}" for part, _ in parts]
            for row, pattern in enumerate(("Softmax", "Hardmax")):
                torus = tour.torus(3, Pattern=pattern, Quantities=arrays)
                colors = tour.filter("SummableColors", Input=torus, Vectors=arrays, Scale="SharedRange")
                for column, (array, (_, name)) in enumerate(zip(arrays, parts)):
                    panel = sheet.panel(3 * row + column, f"{name}, {pattern[:4].lower()}")
                    panel.map(colors, f"{array} Color")
                    panel.level(scores, f"Score {head}", color=BLACK, width=0.8)
            yield tour.save(sheet, f"mixes-head-{head}")


def outputs(tour):
    heads = [f"Head Output {head}" for head in range(tour.heads)]
    torus = tour.torus(3, Quantities=["Head Output", "Output"])
    total = tour.filter(
        "Calculator", Input=torus, ResultArrayName="Sum", Function="+".join(f'"{head}"' for head in heads)
    )
    panels = [(head, f"Head {number}") for number, head in enumerate(heads)]
    panels += [("Sum", "Sum of heads"), ("Output", "With residual")]
    columns = min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    for scale, name in (("Additive", "outputs"), ("SharedRange", "outputs-shared-range")):
        arrays = [array for array, _ in panels]
        colors = tour.filter("SummableColors", Input=total, Vectors=arrays, Scale=scale)
        title = "Head outputs: colors add up" if scale == "Additive" else "Head outputs, one range of colors"
        with tour.sheet(title, columns=columns, rows=rows) as sheet:
            for number, (array, text) in enumerate(panels):
                sheet.panel(number, text).map(colors, f"{array} Color")
            yield tour.save(sheet, name)


def _angle_table(name, colors):
    """A table of colours over [-pi, pi]: darker with the angle."""
    table = simple.GetColorTransferFunction(name)
    steps = len(colors) - 1
    table.RGBPoints = [
        value
        for step, color in enumerate(colors)
        for value in (-math.pi + 2 * math.pi * step / steps, *color)
    ]
    table.ColorSpace = "Lab"
    table.AutomaticRescaleRangeMode = "Never"
    table.ScalarRangeInitialized = 1
    return table


#: Of ColorBrewer's Reds and Blues (Cynthia Brewer, colorbrewer2.org), from pale to dark.
REDS = [[1, 0.91, 0.85], [0.99, 0.62, 0.49], [0.94, 0.23, 0.17], [0.65, 0.06, 0.08], [0.33, 0, 0.04]]
BLUES = [[0.91, 0.95, 1], [0.62, 0.79, 0.88], [0.26, 0.57, 0.78], [0.03, 0.32, 0.61], [0.03, 0.15, 0.36]]
VIEWPOINT = (1.0, 0.75, 0.55)


def deformed_torus(tour):
    torus = tour.filter("AttentionTorus", Resolution=[401, 401], Quantities=["Output"])
    shapes = (("None", "Raw"), ("Whitened", "Whitened"), ("UnitSphere", "Unit sphere"))
    hues = (("Theta1", "\u03b8\u2081", REDS), ("Theta2", "\u03b8\u2082", BLUES))
    with tour.sheet("Output as a deformed torus", columns=3, rows=2, axes=False, bar=True) as sheet:
        for row, (array, symbol, colors) in enumerate(hues):
            for column, (normalization, name) in enumerate(shapes):
                surface = tour.filter(
                    "TorusDeformation",
                    Input=torus,
                    Shape="Vectors",
                    Vectors=["POINTS", "Output"],
                    Normalization=normalization,
                )
                table = _angle_table(array, colors)
                panel = sheet.panel(row * 3 + column, f"{name}, by {symbol}", frame=False)
                with Scene(sheet, VIEWPOINT) as scene:
                    scene.show(surface, array, table=table, Specular=0.3, Opacity=0.7, InterpolateScalarsBeforeMapping=0)
                    if normalization == "UnitSphere":
                        pass
                    scene.look()
                    panel.picture(scene)
        yield tour.save(sheet, "deformed-torus")


def heads_alone(tour):
    heads = [[1 if h == head else 0 for h in range(tour.heads)] for head in range(tour.heads)]
    names = [f"Head {head} alone" for head in range(tour.heads)]
    panels = [*zip(names, heads, ["None"] * tour.heads), ("All heads", [], "EmbeddingPosition")]
    columns = 2 if len(panels) < 5 else COLUMNS
    rows = math.ceil(len(panels) / columns)
    with tour.sheet("Predicted next token", columns=columns, rows=rows, bar=True) as sheet:
        for number, (name, weights, residual) in enumerate(panels):
            options = {"HeadWeights": weights, "Residual": residual}
            pairs = tour.pairs(**options)
            accuracy = tour.accuracy(pairs)
            panel = sheet.panel(number, name if accuracy is None else f"{name}: {100 * accuracy:.3g} %")
            panel.map(tour.torus(columns, Quantities=["ClassColor"], **options), "ClassColor")
            panel.pairs(pairs)
        sheet.color_bar(simple.GetColorTransferFunction("ClassColor"), "Next token")
        yield tour.save(sheet, "heads-alone")


#: What a figure is: its title and a sentence for the reader of the index, and draw(tour), which yields
#: the path of each file as it is written.
Figure = collections.namedtuple("Figure", "title sentence draw")

FIGURES = {
    "class-map": Figure(
        "The transformer as a map of the torus",
        "The colour of each point is the next token that the transformer predicts for that pair of word "
        "embeddings, paler where it is less sure; the discs are the pairs of the vocabulary in the colour "
        "of their true next token.",
        class_map,
    ),
    "attention": Figure(
        "Attention pattern of each head",
        "How much token 2 attends to token 1, from white (not at all) to black (to it alone), by softmax "
        "above and hardmax below; the line is the frontier, where the score of the head is zero.",
        attention,
    ),
    "mixes": Figure(
        "What each head mixes: words, positions, and both",
        "The vectors that the attention mixes as colours (their three components are red, green and blue, "
        "on one scale): the word part, the position part and their sum, by softmax above and hardmax "
        "below; the edges are those of the attention pattern, whose frontier is the black line.",
        mixes,
    ),
    "outputs": Figure(
        "What the heads write, and their sum",
        "The output of each head as colours, their sum, and the sum with the residual: first on a scale "
        "under which colours add up as the vectors do (dark is negative), then over their common range; "
        "the edges of the sum are the edges of the heads.",
        outputs,
    ),
    "deformed-torus": Figure(
        "The attention layer as a deformed torus",
        "The torus at the outputs of the attention layer: as they are, whitened, and pushed to the unit "
        "sphere with the borders of the unembedding; darker with the first angle in red, with the second in "
        "blue.",
        deformed_torus,
    ),
    "heads-alone": Figure(
        "Each head alone",
        "The class map of each head by itself, without the residual, beside that of all heads, with the "
        "share of token pairs predicted right: the accuracies of the heads do not add up to the whole.",
        heads_alone,
    ),
}
