"""A transformer, opened from its config.json, folder or .gguf file or just trained: it runs, and its weights as tables."""

from __future__ import annotations

import html
import os
import pathlib
from collections.abc import Sequence as Listed
from typing import Any

import numpy
from numpy.typing import NDArray
from paraview import simple

from attentionatlas._internal import data
from attentionatlas._internal.arguments import Head, PathLike
from attentionatlas._internal.checks import check
from attentionatlas._internal.readers import Missing, make_filter, open_transformer
from attentionatlas._internal.recording import Recording
from attentionatlas._internal.tables import Table, Tables, as_table, summary

#: What tables and figures of recordings need, all of it.
RECORD = ("QueriesAndKeys", "Values", "HeadOutputs", "Residual")
KINDS = {"Q": "queries", "K": "keys", "V": "values"}


class Model(Tables):
    """A model that is open: a SmallModel or a Transformer, with the number of its heads."""

    heads: int
    #: The file; None if the model was just trained.
    path: pathlib.Path | None
    _reader: Any

    @property
    def reader(self) -> Any:
        """The source in ParaView's pipeline, as paraview.simple takes it."""
        self.check_open()
        return self._reader

    def _inputs(self, name: str) -> dict[str, Any]:
        return {"Input": self.reader}

    def _summary(self) -> dict[str, str]:
        raise NotImplementedError

    def curves(self) -> Table:
        """Loss, accuracy and what else was measured by Step of a training; raises Missing for a model from a file."""
        if self.path is not None:
            raise Missing(f"{self.name}: expected a model that was just trained, found one from a file")
        return as_table(data.table(self.reader, 1))

    def __repr__(self) -> str:
        kind = type(self).__name__
        if self.closed:
            return f"<{kind} {self.name}: closed>"
        return f"<{kind} {self.name}: " + ", ".join(f"{n.lower()} {v}" for n, v in self._summary().items()) + ">"

    def _repr_html_(self) -> str:
        """A summary, as Jupyter shows it."""
        if self.closed:
            return html.escape(repr(self))
        return summary(f"{type(self).__name__} {self.name}", self._summary())


class Transformer(Model):
    """A transformer with its weights.

    source: its config.json, the folder of that, or a .gguf file. Raises FileNotFoundError for a missing file,
    ValueError for one that holds no model.

    layers, heads: their numbers, heads in each layer. vocabulary: the number of tokens. dimension: of the residual
    stream. path, name: of the file or its folder.
    """

    def __init__(self, source: PathLike | Any) -> None:
        super().__init__()
        is_file = isinstance(source, (str, os.PathLike))
        # The trained model alone: with its checkpoints, a reader would have time.
        self._reader = self.own(open_transformer(source, Checkpoints=0) if is_file else source)
        self.path = pathlib.Path(self._reader.FileName).resolve() if is_file else None
        self.name = "transformer" if self.path is None else self.path.stem
        if self.path is not None and self.path.name == "config.json":
            self.name = self.path.parent.name
        #: The numbers of layers and of heads of each, of tokens of the vocabulary, and the model's dimension.
        names = ("Layers", "Heads", "VocabularySize", "EmbeddingDimension")
        self.layers, self.heads, self.vocabulary, self.dimension = (
            int(data.field_number(self._reader, name) or 0) for name in names
        )

    def _summary(self) -> dict[str, str]:
        sizes = (self.layers, self.heads, self.dimension, self.vocabulary)
        return dict(zip(("Layers", "Heads", "Dimension", "Vocabulary"), map(str, sizes)))

    def check_head(self, layer: int, head: int) -> None:
        """Raises ValueError if the model has no such head."""
        check("layer", layer, 0, self.layers - 1)
        check("head", head, 0, self.heads - 1)

    def record(
        self, prompts: str | Listed[str] | None = None, *, record: Listed[str] = RECORD, **options: Any
    ) -> Recording:
        """Runs the model and records its heads.

        prompts: a text, or several. record: some of QueriesAndKeys, Values, HeadOutputs, Residual and Logits. options:
        others of the filter TransformerRecorder, such as maximum_length=64, generate_tokens=20, layers=[0, 5],
        token_ids="5 7 9" or images=["cat.png"] instead of prompts, ablate="2.5". Raises ValueError for what the model
        cannot run.
        """
        texts = [prompts] if isinstance(prompts, str) else prompts
        if texts is not None:
            for text in texts:
                if "\n" in text:
                    raise ValueError("prompts: expected texts without line breaks; give a list of several.")
            options["prompts"] = "\n".join(texts)
        return self._recorded(make_filter("TransformerRecorder", {"Input": self.reader}, {"record": record, **options}))

    def record_random(
        self, kind: str = "Random", length: int = 64, count: int = 1, block: int = 16, seed: int = 0,
        record: Listed[str] = RECORD,
    ) -> Recording:
        """Runs the model on random tokens and records its heads.

        kind: OneToken, one that is repeated; Random; or RepeatedBlock, a block of tokens that is repeated. length: of a
        sequence. count: of sequences. block: the length of a block. seed: of the random numbers.
        """
        chosen = {"kind": kind, "length": length, "count": count, "block": block, "seed": seed}
        prompts = make_filter("RandomPrompts", {}, {**chosen, "id_range": (0, self.vocabulary - 1)})
        made = self._recorded(
            make_filter("TransformerRecorder", {"Input": self.reader, "Tokens": prompts}, {"record": record})
        )
        made._proxies.insert(0, prompts)  # deleted last
        return made

    def _recorded(self, recorder: Any) -> Recording:
        recorder.UpdatePipeline()
        if data.field_number(recorder, "Rotated") is None:
            simple.Delete(recorder)
            raise ValueError(f"{self.name}: cannot be recorded on this; see the error reported above.")
        return Recording(recorder, self)

    def composition(self, kind: str = "K", processing: str = "TransformerLens") -> Table:
        """Which heads read what heads of earlier layers write: a row per pair with its Score, 0 to 1, and Corrected, that
        less the score of random matrices.

        kind: Q, K or V, what of the later head reads. processing: of the weights, None or TransformerLens.
        """
        return self._of("HeadComposition", 1, locals())

    def spectra(
        self, layer: Head = "all", head: Head = "all", circuit: str = "OV", full: bool = False,
        processing: str = "TransformerLens",
    ) -> Table:
        """The eigenvalues and singular values of a circuit, and Copying, the sum of the real parts of the eigenvalues
        over that of their moduli, -1 to 1: a row per head.

        layer, head: a number, or "all". circuit: OV or QK. full: over the vocabulary. processing: as composition.
        """
        return self._of("HeadSpectra", 0, locals())

    def circuit(
        self, layer: int = 0, head: int = 0, circuit: str = "QK", tokens: Listed[str] = (), top: int = 10,
        processing: str = "TransformerLens",
    ) -> Table:
        """What a head attends to and writes: a row per token, direction and rank with the other token and the Value.

        circuit: QK, which sources each destination attends to; OV, which outputs attention to each source raises; or
        PositionQK, of positions. tokens: texts or #ids; empty: frequent words. top: partners of each token.
        """
        self.check_head(layer, head)
        return self._of("HeadCircuit", 0, locals())

    def circuit_matrix(
        self, layer: int = 0, head: int = 0, circuit: str = "QK", tokens: Listed[str] = (),
        processing: str = "TransformerLens",
    ) -> NDArray[numpy.floating[Any]]:
        """The circuit of a head on some words, as circuit(): an array [destinations or sources, sources or outputs]."""
        self.check_head(layer, head)
        options = {key: value for key, value in locals().items() if key != "self"}
        with self.scope():
            matrix: NDArray[numpy.floating[Any]] = data.image(self.made("HeadCircuit", 1, **options), circuit, 1)[::-1]
            return matrix.copy()

    def skip_trigrams(
        self, layer: int = 0, head: int = 0, top: int = 50, tokens: Listed[str] = (), processing: str = "TransformerLens"
    ) -> Table:
        """The strongest skip-trigrams "source ... destination -> output" of a head: a row each with the Score, QK x OV.

        top: the number of rows. tokens: texts or #ids of sources; empty: the whole vocabulary.
        """
        self.check_head(layer, head)
        return self._of("SkipTrigrams", 0, locals())

    def bigrams(self, tokens: Listed[str] = (), top: int = 10, processing: str = "TransformerLens") -> Table:
        """The words that follow others by embedding and unembedding alone: a row per token and rank with the Logit.

        tokens: texts or #ids; empty: frequent words. top: following words of each.
        """
        return self._of("BigramTable", 0, locals())

    def virtual_weights(
        self, from_layer: int, from_head: int, to_layer: int, to_head: int, kind: str = "K",
        processing: str = "TransformerLens",
    ) -> NDArray[numpy.floating[Any]]:
        """The weights through which a head reads what an earlier one writes: an array [values of the earlier head,
        components of the later one's queries, keys or values (kind Q, K or V)]."""
        self.check_head(from_layer, from_head)
        self.check_head(to_layer, to_head)
        options = {key: value for key, value in locals().items() if key != "self"}
        with self.scope():
            weights: NDArray[numpy.floating[Any]] = data.image(self.made("VirtualWeights", **options), "Virtual Weights")
            return weights[::-1].copy()

    def patching(
        self,
        prompt: str,
        patch_from: str,
        site: str = "HeadOutput",
        mode: str = "Patch",
        target: str = "",
        against: str = "",
        position: Head = "all",
        reference_prompts: str | None = None,
    ) -> Table:
        """Which activations make the model predict one token and not another (activation patching): a row per head, or
        layer and position, with the Logit Difference and the Effect, of which 1 makes up the whole difference.

        prompt, patch_from: texts of as many tokens. site: HeadOutput, Residual, AttentionOutput or MlpOutput. mode:
        Patch, Zero, MeanOverPositions or MeanOverPrompts, those of reference_prompts. target, against: tokens; empty:
        the predictions on prompt and on patch_from. position: a number, or "all".
        """
        return self._of("ActivationPatching", 0, locals())
