"""A small attention-only model, opened from its file or just trained: what it predicts, as arrays and tables."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Sequence as Listed
from typing import Any

import numpy
from numpy.typing import NDArray
from attentionatlas._internal.host import filters, table

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike, index
from attentionatlas._internal.circuit_tables import Model
from attentionatlas._internal.readers import Missing, Renamed, file_or_filter, open_model, write_data
from attentionatlas._internal.tables import Table

#: Filters that have no model as input.
_SOURCES = ("HarmonicHead", "AttentionOnlyTraining")
#: Arrays of a torus: less the colors, which are for pictures.
QUANTITIES = ("Class", "Probability", "Attention", "Output")


class SmallModel(Model):
    """A small attention-only model: one layer, two tokens, embeddings of dimension 3.

    source: a .safetensors file. Raises FileNotFoundError for a missing file, ValueError for one that holds no model.

    head_count, token_count: heads, and tokens of the vocabulary. dimension: of a head. path, name: of the file.
    """

    heads = Renamed("head_count")
    tokens = Renamed("token_count")

    def __init__(self, source: PathLike | Any) -> None:
        super().__init__()
        is_file = isinstance(file_or_filter(source, "a small model"), (str, os.PathLike))
        self.path = pathlib.Path(source).resolve() if is_file else None
        self.name = self.path.stem if self.path else "trained"
        self._reader = self.own(open_model(source) if is_file else source)
        #: The numbers of heads and of tokens of the vocabulary, and the dimension of a head.
        sizes = ("Heads", "VocabularySize", "HeadDimension")
        self.head_count, self.token_count, self.dimension = (
            int(data.field_number(self._reader, name)) for name in sizes
        )
        self._colors: NDArray[numpy.uint8] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def _summary(self) -> dict[str, str]:
        return {"Tokens": str(self.token_count), "Heads": str(self.head_count), "Head dimension": str(self.dimension)}

    def torus(self, size: int = 512, quantities: Listed[str] = QUANTITIES, **options: Any) -> dict[str, NDArray[Any]]:
        """What the model computes at each point of the torus of two angles: {name: [size, size]}, or [size, size, 3] for
        vectors.

        Rows are angles of token 2 and columns those of token 1, both from -pi to pi. quantities: arrays of the filter
        AttentionTorus, such as Class, Probability (0 to 1), Attention (of token 2 to token 1, 0 to 1, an array per head),
        Score, Output. options: its other properties, such as head_weights=[1, 0, 1], pattern="Hardmax",
        residual="None".
        """
        with self.scope():
            chart = self.made("AttentionTorus", resolution=(size, size), quantities=list(quantities), **options)
            return {name: data.image(chart, name) for name in data.point_names(chart)}

    def pairs(self, **options: Any) -> Table:
        """What the model predicts for each pair of tokens: a row per pair, with its angles and what was predicted.

        options: of the filter TokenPairs, such as head_weights=[1, 0, 1] or residual="None".
        """
        return self.table("TokenPairs", **options)

    def accuracy(self, residual: str = "EmbeddingPosition") -> Table:
        """How many pairs of tokens the heads predict correctly: a row per head, and rows of all heads together.

        residual: what is added to the heads: EmbeddingPosition, Embedding, None or RawEmbedding.
        """
        return self._of("HeadAccuracy", 0, locals())

    def harmonics(self) -> Table:
        """The coefficients of each head's score as a trigonometric polynomial: a row per harmonic, a column per head."""
        return self._of("ScoreHarmonics", 0, locals())

    def save(self, path: PathLike) -> pathlib.Path:
        """Writes the model to a .safetensors file, which appears complete or not at all; returns its path."""
        return write_data(self.reader, path)

    def file(self) -> pathlib.Path:
        """The file of the model; of one that was just trained a temporary one, which is there until the model is closed."""
        if self.path is not None:
            return self.path
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="attention-atlas-")
            self.save(pathlib.Path(self._folder.name) / "trained.safetensors")
        return pathlib.Path(self._folder.name) / "trained.safetensors"

    def close(self) -> None:
        """Closes the file and frees what was computed from it; a second time does nothing."""
        super().close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def head(self, head: int) -> int:
        """A head as filters take it, a negative one from the last; raises ValueError if there is no such head."""
        return index("head", head, range(self.head_count))

    def filter(self, name: str, **properties: Any) -> Any:
        """A filter of the plugin on the model; raises Missing if the plugin has none of that name."""
        if name not in table():
            raise Missing(f"the plugin has no {name}")
        if name not in _SOURCES:
            properties.setdefault("Input", self.reader)
        return self.own(getattr(filters, name)(registrationName=name, **properties))

    def chart(self, size: int, **properties: Any) -> Any:
        """The proxy of a chart of the torus of size x size points."""
        return self.filter("AttentionTorus", Resolution=[size, size], **properties)

    def pair_points(self, **properties: Any) -> tuple[Any, float | None]:
        """The token pairs as points, and the share of them predicted correctly, or None without next_token."""
        pairs = self.filter("TokenPairs", **properties)
        return data.fetch(pairs), data.field_number(pairs, "Accuracy")

    def deformed(self, source: Any, normalization: str) -> Any:
        """A chart, lines or pairs moved to the outputs of the attention layer."""
        vectors = {"Shape": "Vectors", "Vectors": ["POINTS", "Output"]}
        return self.filter("TorusDeformation", Input=source, Normalization=normalization, **vectors)

    def colors(self) -> NDArray[numpy.uint8]:
        """The color of each class, a row of RGB from 0 to 255."""
        if self._colors is None:
            with self.scope():
                centres = data.fetch(self.filter("UnembeddingSphere", Resolution=8), port=1)
                classes, colors = (data.point_array(centres, name) for name in ("Class", "ClassColor"))
                self._colors = colors[numpy.argsort(classes)].copy()
        return self._colors
