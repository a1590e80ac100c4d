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
    "heads-alone": Figure(
        "Each head alone",
        "The class map of each head by itself, without the residual, beside that of all heads, with the "
        "share of token pairs predicted right: the accuracies of the heads do not add up to the whole.",
        heads_alone,
    ),
}
