"""An attention-only transformer, opened from its file, and the plugin's filters on it."""

import pathlib

import numpy
from paraview import simple

from attentionatlas._internal import data
from attentionatlas._internal.checks import check
from attentionatlas._internal.readers import Missing, Proxies, open_model

#: Filters that have no model as input.
_SOURCES = ("HarmonicHead", "AttentionOnlyTraining")


class Model(Proxies):
    """The model in a .safetensors file.

    Raises FileNotFoundError for a missing file, ValueError for one that holds no model.
    """

    def __init__(self, path):
        super().__init__()
        self.path = pathlib.Path(path).resolve()
        self.name = self.path.stem
        self.reader = self.own(open_model(path))
        sizes = ("Heads", "VocabularySize", "HeadDimension")
        self.heads, self.tokens, self.dimension = (
            int(data.field_number(self.reader, name)) for name in sizes
        )
        self._colors = None

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
