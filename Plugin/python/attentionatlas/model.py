"""An attention-only transformer, opened from its file, and the plugin's filters on it."""

import contextlib
import json
import pathlib
import struct

import numpy
from paraview import simple

from attentionatlas import data, load_plugin
from attentionatlas.charts import check

#: Filters that have no model as input.
_SOURCES = ("HarmonicAttention", "AttentionOnlyTraining")


class Missing(Exception):
    """A model or the plugin has nothing to show in a figure; the message gives the reason."""


def open_model(path):
    """A reader of a model's file, up to date.

    Raises FileNotFoundError for a missing file, ValueError for one that holds no model.
    """

    def read(name):
        return simple.AttentionOnlyModelReader(registrationName=name, FileNames=[str(path)])

    return _open(path, read, "Heads")


def open_recording(path):
    """A reader of a recording's file, up to date; raises as open_model."""

    def read(name):
        return simple.RecordingReader(registrationName=name, FileName=str(path))

    return _open(path, read, "Rotated")


def holds_queries(reader):
    """Whether a recording, given by its reader, has the queries of a head."""
    blocks = data.first_part(reader)
    layers = [blocks.GetBlock(i) for i in range(blocks.GetNumberOfBlocks())]
    heads = [
        layer.GetBlock(i)
        for layer in layers
        if layer is not None and layer.IsA("vtkMultiBlockDataSet")
        for i in range(layer.GetNumberOfBlocks())
    ]
    return any(head and head.IsA("vtkTable") and head.GetColumnByName("Query") for head in heads)


def is_model(path):
    """Whether a file has the tensors of an attention-only transformer, by their names."""
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            names = json.loads(file.read(min(length, 1 << 26)))
    except (struct.error, ValueError):
        return False
    return isinstance(names, dict) and any(name in names for name in ("word_embedding", "word_emb.weight"))


def _open(path, read, field):
    """The reader that `read` makes; its data have a field."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    load_plugin()
    reader = read(path.stem)
    reader.UpdatePipeline()
    if data.field_number(reader, field) is None:
        simple.Delete(reader)
        raise ValueError(f"{path}: cannot be read; see the error reported above.")
    return reader


class Proxies:
    """Proxies that are deleted together. Each `with` deletes those made within it."""

    def __init__(self):
        self._proxies = []
        self._marks = []

    def own(self, proxy):
        """A proxy that is deleted with the others."""
        self._proxies.append(proxy)
        return proxy

    def __enter__(self):
        self._marks.append(len(self._proxies))
        return self

    def __exit__(self, *error):
        mark = self._marks.pop()
        while len(self._proxies) > mark:  # consumers before producers
            simple.Delete(self._proxies.pop())


class Model(Proxies):
    """The model in a .safetensors file.

    Raises FileNotFoundError for a missing file, ValueError for one that holds no model.
    """

    def __init__(self, path):
        super().__init__()
        load_plugin()
        self.path = pathlib.Path(path).resolve()
        self.name = self.path.stem
        self.reader = open_model(path)
        sizes = ("Heads", "VocabularySize", "HeadDimension")
        self.heads, self.tokens, self.dimension = (
            int(data.field_number(self.reader, name)) for name in sizes
        )
        self._colors = None

    @classmethod
    @contextlib.contextmanager
    def opened(cls, model):
        """The model itself, or that in a file, which is closed at the end of `with`."""
        if isinstance(model, cls):
            with model:
                yield model
            return
        model = cls(model)
        try:
            with model:
                yield model
        finally:
            simple.Delete(model.reader)

    def check_head(self, *heads):
        """Raises ValueError if the model has no such head."""
        for head in heads:
            check("head", head, 0, self.heads - 1)

    def filter(self, name, **properties):
        """A filter of the plugin on the model; raises Missing if the plugin has none of that name."""
        make = getattr(simple, name, None)
        if make is None:
            raise Missing(f"the plugin has no {name}")
        if name not in _SOURCES:
            properties.setdefault("Input", self.reader)
        return self.own(make(registrationName=name, **properties))

    def torus(self, size, **properties):
        """A chart of the torus of size x size points."""
        return self.filter("AttentionTorus", Resolution=[size, size], **properties)

    def pairs(self, **properties):
        """The token pairs, and the share of them predicted correctly, or None without next_token."""
        pairs = self.filter("TokenPairs", **properties)
        return data.fetch(pairs), data.field_number(pairs, "Accuracy")

    def deformed(self, source, normalization):
        """A chart, lines or pairs moved to the outputs of the attention layer."""
        vectors = {"Shape": "Vectors", "Vectors": ["POINTS", "Output"]}
        return self.filter("TorusDeformation", Input=source, Normalization=normalization, **vectors)

    def colors(self):
        """The colour of each class, a row of RGB from 0 to 255."""
        if self._colors is None:
            with self:
                centres = data.fetch(self.filter("UnembeddingSphere", Resolution=8), port=1)
                classes, colors = (data.point_array(centres, name) for name in ("Class", "ClassColor"))
                self._colors = colors[numpy.argsort(classes)].copy()
        return self._colors
