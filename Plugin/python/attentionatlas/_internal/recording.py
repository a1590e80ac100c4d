"""The recording of a transformer, opened from its file, and what its heads attend to."""

import contextlib

import numpy
from paraview import simple

from attentionatlas._internal import data
from attentionatlas._internal.checks import check
from attentionatlas._internal.readers import Proxies, has_images, open_recording


def _holds_heads(layer):
    """Whether a block of a recording is a layer with heads; that after the last has the residual alone."""
    return any(name.startswith("head ") for name in data.blocks(layer))


def _holds_scores(layer):
    """Whether a block of a recording holds the queries of a head or blocks of its scores."""
    blocks = data.blocks(layer).items()
    return any(name.endswith(" scores") or data.has_column(block, "Query") for name, block in blocks)


def _listed(layers):
    """Numbers of layers in words: 0 to 11, or 3, 7, 9."""
    if len(layers) > 1 and layers == list(range(layers[0], layers[-1] + 1)):
        return f"{layers[0]} to {layers[-1]}"
    return ", ".join(map(str, layers))


class Recording(Proxies):
    """The attention of a recording's heads on one sequence, as matrices with a row per query.

    Raises FileNotFoundError for a missing file, ValueError for one that holds no recording.
    """

    def __init__(self, path, sequence=0):
        super().__init__()
        self.reader = self.own(open_recording(path))
        self.map = self.own(simple.AttentionMap(Input=self.reader, Sequence=sequence))
        blocks = data.blocks(data.first_part(self.reader))
        self.layers = [int(name.split()[1]) for name, block in blocks.items() if _holds_heads(block)]
        self.heads = int(data.field_number(self.reader, "Heads"))
        #: Whether it holds what goes into the softmax: queries, or the scores themselves.
        self.has_scores = any(map(_holds_scores, blocks.values()))
        self.has_images = has_images(self.reader)
        self.tokens = []

    def check_place(self, layer, head):
        """Raises ValueError if the recording has no such head; -1 is the mean over the layer's."""
        if layer not in self.layers:
            raise ValueError(f"layer: expected one of {_listed(self.layers)}, found {layer}.")
        if head != -1:
            check("head", head, 0, self.heads - 1)

    def matrix(self, layer, head, quantity="Weights"):
        """A quantity of a head, as AttentionMap names it; raises ValueError if the recording has no such head."""
        self.check_place(layer, head)
        self.map.Layer, self.map.Head, self.map.Quantity = layer, head, quantity
        self.map.UpdatePipeline()
        if self.map.GetDataInformation().GetNumberOfPoints() == 0:
            raise ValueError(f"no {quantity} of layer {layer}, head {head}; see the error reported above.")
        self.tokens = data.texts(data.fetch(self.map).GetFieldData().GetAbstractArray("Key Token"))
        return data.image(self.map, quantity)[::-1].copy()

    def panels(self, size):
        """The weights of all heads: [layers, heads, rows, columns], of which at most `size` rows and columns."""
        shown = {"Sequence": self.map.Sequence, "MaximumSize": min(size, 1024)}
        with self:
            matrix = self.own(simple.AttentionMatrix(Input=self.reader, **shown))
            matrix.UpdatePipeline()
            if matrix.GetDataInformation().GetNumberOfPoints() == 0:
                raise ValueError("no weights of all heads; see the error reported above.")
            image = data.image(matrix, "Weights")[::-1]
            names = ("Panel Size", "Row Step", "Column Step")
            side, down, right = (int(data.field_number(matrix, name)) for name in names)
        return numpy.array([
            [image[row * down :, column * right :][:side, :side] for column in range(self.heads)]
            for row in range(len(self.layers))
        ])

    def scores(self):
        """The scores of all heads by HeadScores: {name: [layers, heads]}."""
        with self:
            columns = data.table(self.own(simple.HeadScores(Input=self.reader)))
        if not columns:
            raise ValueError("no scores of heads; see the error reported above.")
        shape = len(self.layers), self.heads
        return {name: values.reshape(shape) for name, values in columns.items() if name not in ("Layer", "Head")}


@contextlib.contextmanager
def opened_sequence(recording):
    """A reader of a recording, and the sequence to show: of a file, which is closed at the end of `with`, or of an
    opened Recording."""
    if isinstance(recording, Recording):
        yield recording.reader, int(recording.map.Sequence)
        return
    reader = open_recording(recording)
    try:
        yield reader, 0
    finally:
        simple.Delete(reader)
