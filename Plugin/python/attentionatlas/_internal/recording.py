"""A transformer, which runs, and its recordings, opened from files or just made, as arrays and tables."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence as Listed
from typing import Any

import numpy
from attentionatlas._internal.host import delete, filters, words
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal import data
from attentionatlas._internal.arguments import (
    MEAN, Head, PathLike, Sequence, head_beside, index, listed, number, some, text_lines, word, written_prompts,
)
from attentionatlas._internal.circuit_tables import Circuits, Floats
from attentionatlas._internal.corpus import Corpus, measure
from attentionatlas._internal.errors import Error, update
from attentionatlas._internal.proteins import contact_filter, unrecorded_layers
from attentionatlas._internal.readers import (
    MODEL_FILES, Missing, Renamed, file_or_filter, has_pictures, make_filter, open_recording, open_transformer, write_data,
    write_training,
)
from attentionatlas._internal.tables import Table, Tables, as_table

#: All that can be recorded; a model records what it has of them.
ALL = ("QueriesAndKeys", "Values", "HeadOutputs", "Residual", "Logits", "Routing")
#: The option of AttentionMap by which an array has each query and key, or the filter says that there is no room.
_EVERY_PAIR = {"MaximumSize": 2**31 - 1}
KINDS = {"Q": "queries", "K": "keys", "V": "values"}
#: Filters whose second input is the model that was recorded.
_OF_MODEL = (
    "AttentionTokens", "DictionaryFeatures", "LogitAttribution", "LogitLens", "ScoreAttribution", "ScoreBreakdown",
)
#: Filters that show one kind of attention of a transformer with an encoder and a decoder.
_OF_KIND = (
    "AttentionFocus", "AttentionMap", "AttentionMatrix", "AttentionSentence", "ContactMap", "HeadEmbedding", "HeadScores",
    "PatchAttention", "QueryKeyContrast", "ScoreBreakdown",
)
#: What pages and figures begin with: the first of these scores that a head has at least so much of, and else the largest.
_STRIKING = {
    "Prefix Matching": "what came after earlier copies of the same token",
    "Previous Token": "the token before",
    "Sink": "the first token",
}
_ENOUGH = 0.4
#: Pairs of queries and keys whose weights are compared for it, of all heads, at most.
_PAIRS = 1e9
#: Tokens of a sequence that a summary shows.
_SHOWN = 24


def _holds_heads(layer: Any) -> bool:
    """Whether a block of a recording is a layer with heads; that after the last has the residual alone."""
    return any(name.startswith("head ") for name in data.blocks(layer))


def _holds_scores(layer: Any) -> bool:
    """Whether a block of a recording holds the queries of a head or blocks of its scores."""
    blocks = data.blocks(layer).items()
    return any(name.endswith(" scores") or data.has_column(block, "Query") for name, block in blocks)


class Recording(Tables):
    """What the heads of a transformer computed on some sequences.

    source: a file (safetensors, npy, npz, pt or pth). model: the transformer that was recorded, which some tables need:
    opened, or its config.json, folder or .gguf file. Raises FileNotFoundError for a missing file, ValueError for one
    that holds no recording. Sequences, layers and heads are counted from 0. That of a transformer with an encoder and a
    decoder is the decoder's; part() gives the others.

    layer_numbers: the layers that were recorded. head_count: heads of each layer. has_scores: whether it holds what
    goes into the softmax. has_images: whether sequences are images. has_pictures: whether pictures are among its words.
    path, name: of the file.
    """

    layers = Renamed("layer_numbers")
    heads = Renamed("head_count")

    def __init__(
        self, source: PathLike | Any, model: Transformer | PathLike | None = None, _kind: str = "Decoder"
    ) -> None:
        super().__init__()
        is_file = isinstance(file_or_filter(source, "a recording"), (str, os.PathLike))
        #: The file; None if the recording was made by Transformer.record.
        self.path: pathlib.Path | None = pathlib.Path(source) if is_file else None
        self.name = self.path.name if self.path else "recording"
        self._model = model
        self._owned: Transformer | None = None
        self._kind = _kind
        #: What this is a part of, and the parts of this.
        self._whole: Recording | None = None
        self._opened: list[Recording] = []
        #: The circuit that was run, whose file may be as temporary as it.
        self._circuit: Any = None
        is_part = _kind != "Decoder"
        self._reader = source if is_part else self.own(open_recording(source) if is_file else source)
        parts = data.first_part(self._reader)
        if is_part:
            parts = data.blocks(parts)[_kind.lower()]
        blocks = data.blocks(parts)
        #: The numbers of the layers that were recorded.
        self.layer_numbers: list[int] = [int(name.split()[1]) for name, block in blocks.items() if _holds_heads(block)]
        #: The number of heads of each layer.
        self.head_count = int(parts.GetFieldData().GetArray("Heads").GetValue(0))
        offsets = parts.GetFieldData().GetArray("Sequence Offsets")
        self._offsets: list[int] = vtk_to_numpy(offsets).tolist()
        sources = parts.GetFieldData().GetArray("Source Lengths")
        self._sources: list[int] = [] if sources is None else vtk_to_numpy(sources).tolist()
        mask = parts.GetFieldData().GetAbstractArray("Mask").GetValue(0)
        #: Whether each token attends to itself and those before it, and to no others, as those of a picture may.
        self.is_causal = mask == "causal" and blocks["tokens"].GetColumnByName("Key End") is None
        #: Whether it holds what goes into the softmax: queries and keys, or the scores themselves.
        self.has_scores = any(map(_holds_scores, blocks.values()))
        #: Whether the sequences are images.
        self.has_images = parts.GetFieldData().HasArray("Patch Grid") == 1
        #: Whether there are pictures among the words of its texts.
        self.has_pictures = not is_part and has_pictures(self._reader)
        self._kept: dict[type, tuple[Any, Any]] = {}

    @property
    def sequences(self) -> int:
        """The number of sequences or images."""
        return len(self._offsets) - 1

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of each sequence."""
        return [int(count) for count in numpy.diff(self._offsets)]

    @property
    def model(self) -> Transformer:
        """The transformer that was recorded; raises Missing if it is not known."""
        if self._model is None:
            raise Missing(f'{self.name}: this needs the model that was recorded: model= in Python, --model on the command line')
        if isinstance(self._model, Transformer):
            return self._model
        if self._owned is None:
            self._owned = Transformer(self._model)
        return self._owned

    @property
    def has_model(self) -> bool:
        """Whether the transformer that was recorded is known."""
        return self._model is not None

    def part(self, kind: str) -> Recording:
        """The part of the recording of a transformer with an encoder and a decoder, which lasts as long as the whole.

        kind: Decoder, the attention of the target's tokens to each other, which the whole has; Encoder, that of the
        source's tokens to each other; or Cross, that of the target's tokens to those of the source. The tokens of Cross
        are the source's, then the target's; its attention() has a row per token of the target and a column per token of
        the source. Raises Missing if there is no such part.
        """
        kind = word("kind", kind, ("Decoder", "Encoder", "Cross"))
        self.check_open()
        if kind == self._kind:
            return self
        if self._whole is not None:
            return self._whole.part(kind)
        if kind.lower() not in data.blocks(data.first_part(self.reader)):
            raise Missing(f"{self.name}: expected a transformer with an encoder and a decoder, which has {kind} attention")
        part = Recording(self.reader, self._model, kind)
        part.name, part._whole = f"{self.name}, {kind}", self
        self._opened.append(part)
        return part

    def close(self) -> None:
        """Closes the file and frees what was computed from it; a second time does nothing."""
        while self._opened:
            self._opened.pop().close()
        for view, _ in self._kept.values():
            view.close()
        self._kept.clear()
        super().close()
        if self._owned is not None:
            self._owned.close()

    def kept(self, view: type, **options: Any) -> Any:
        """What figures compute of the recording, which is kept until other options are asked for."""
        self.check_open()
        found = self._kept.get(view)
        if found is None or found[1] != options:
            if found is not None:
                del self._kept[view]
                found[0].close()
            self._kept[view] = view(self, **options), options
        return self._kept[view][0]

    def _inputs(self, name: str) -> dict[str, Any]:
        inputs = self.shown_by(name)
        return {**inputs, "Model": self.model.reader} if name in _OF_MODEL else inputs

    def shown_by(self, name: str) -> dict[str, Any]:
        """The properties of a filter that show this recording."""
        inputs = {"Input": self.reader}
        return {**inputs, "AttentionKind": self._kind} if name in _OF_KIND else inputs

    def place(self, layer: int | None = None, head: Head | None = 0, sequence: Sequence = 0) -> tuple[int, int, int]:
        """Layer, head and sequence as filters take them; raises ValueError if there is no such head or sequence.

        layer: by default the first recorded one. head: None is 0, where no layer is given either. Negative ones count from
        the last, -1. head, sequence: "mean" is MEAN.
        """
        return self._places(layer, head, sequence, ("mean",))

    def _places(
        self, layer: int | None, head: Head | None, sequence: Sequence, words: Listed[str] = ()
    ) -> tuple[int, int, int]:
        """Layer, head and sequence, of which the last two may be one of these words."""
        numbers = self.layer_numbers
        return (
            numbers[0] if layer is None else index("layer", layer, numbers),
            index("head", head_beside(layer, head), range(self.head_count), words),
            index("sequence", sequence, range(self.sequences), words),
        )

    def _some(self, layer: Head, head: Head, sequence: Sequence) -> tuple[int | str, int | str, int | str]:
        """Layer, head and sequence, which may be words, such as "all"."""
        rest = zip(("head", "sequence"), (head, sequence), (self.head_count, self.sequences))
        first = some("layer", layer, self.layer_numbers, "all")
        return (first, *(some(name, value, range(count), "all") for name, value, count in rest))  # type: ignore[return-value]

    def some_heads(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options of a filter, of which layer, head and sequence, where they are given, are numbers from 0 or words."""
        names = ("layer", "head", "sequence")
        given = {name: value for name, value in options.items() if name in names and value is not None}
        places = dict(zip(names, self._some(*(given.get(name, "all") for name in names))))
        return {**options, **{name: places[name] for name in given}}

    def _position(self, name: str, value: Head, sequence: int, *words: str) -> int | str:
        """A position in a sequence, or a word."""
        return some(name, value, range(self.lengths[sequence]), *words)

    def pair(self, sequence: int, query: Head, key: Head) -> tuple[int | str, int | str]:
        """The positions of a query, or "last", and a key, or "strongest", as filters take them."""
        return self._position("query", query, sequence), self._position("key", key, sequence, "strongest")

    def attention(
        self, layer: int | None = None, head: Head | None = None, sequence: Sequence = 0, quantity: str = "Weights"
    ) -> Floats:
        """What a head attends to: an array [queries, keys]; of all heads of a layer an array [heads, queries, keys].

        layer, head: of the first head of the first recorded layer by default; a head, if a layer is given, too. layer: -1
        is the last one. head: a number, "mean" for the mean over the layer's heads, or "all".
        sequence: a number, or "mean" for the mean over sequences. quantity: Weights, 0 to 1, of which each row adds up
        to 1; Scores, before the softmax; Content and Bias, the parts of a score; NormWeighted, the weight times the
        norm of value W_O; or Rollout, from the first recorded layer to this one. Raises ValueError if there is no such
        head, or the recording does not hold what the quantity needs.
        """
        is_all = isinstance(head, str) and head.casefold() == "all"
        places = dict(zip(("Layer", "Head", "Sequence"), self.place(layer, 0 if is_all else head, sequence)))
        with self.scope():
            made = self.own(filters.AttentionMap(**self.shown_by("AttentionMap"), **places, **_EVERY_PAIR))
            made.Quantity = quantity = word("quantity", quantity, words("AttentionMap", "Quantity"))
            matrices = []
            for one in range(self.head_count) if is_all else (places["Head"],):
                made.Head = one
                matrices.append(data.image(made, quantity)[::-1].copy())
        return numpy.stack(matrices) if is_all else matrices[0]

    def _parts(self) -> Any:
        """The data of this kind of attention."""
        parts = data.first_part(self.reader)
        return parts if self._kind == "Decoder" else data.blocks(parts)[self._kind.lower()]

    def _rows(self, sequence: int) -> slice:
        chosen = index("sequence", sequence, range(self.sequences))
        return slice(self._offsets[chosen], self._offsets[chosen + 1])

    def _vectors(self, blocks: tuple[str, ...], column: str, record: str, sequence: int) -> Floats:
        """The rows of a column of a block of the recording that are of one sequence."""
        rows, block = self._rows(sequence), self._parts()
        for name in blocks:
            block = data.blocks(block).get(name)
        if not data.has_column(block, column):
            raise Missing(f"{self.name}: {', '.join(blocks)} holds no {column}; record {record}.")
        values: Floats = vtk_to_numpy(block.GetColumnByName(column))[rows].copy()
        return values

    def _of_head(self, column: str, record: str, layer: int | None, head: int | None, sequence: int) -> Floats:
        layer, head, sequence = self._places(layer, head, sequence)
        return self._vectors((f"layer {layer}", f"head {head}"), column, record, sequence)

    def queries(self, layer: int | None = None, head: int | None = None, sequence: int = 0) -> Floats:
        """The queries of a head, after any rotation: an array [tokens, head dimension]. Raises Missing for a recording
        without them."""
        return self._of_head("Query", "QueriesAndKeys", layer, head, sequence)

    def keys(self, layer: int | None = None, head: int | None = None, sequence: int = 0) -> Floats:
        """The keys of a head, as queries."""
        return self._of_head("Key", "QueriesAndKeys", layer, head, sequence)

    def values(self, layer: int | None = None, head: int | None = None, sequence: int = 0) -> Floats:
        """The values of a head, as queries."""
        return self._of_head("Value", "Values", layer, head, sequence)

    def outputs(self, layer: int | None = None, head: int | None = None, sequence: int = 0) -> Floats:
        """What a head adds to the residual stream: an array [tokens, model dimension]. Raises Missing without it."""
        return self._of_head("Output", "HeadOutputs", layer, head, sequence)

    def residual(self, layer: int = 0, sequence: int = 0) -> Floats:
        """The residual stream before a layer, or after the last, which is -1: an array [tokens, model dimension]. Raises
        Missing without it."""
        if number("layer", layer) < 0:
            blocks = data.blocks(self._parts())
            known = sorted(int(name.split()[1]) for name in blocks if name.startswith("layer ") and "residual" in data.blocks(blocks[name]))
            layer = index("layer", layer, known) if known else 0
        return self._vectors((f"layer {layer}", "residual"), "Residual", "Residual", sequence)

    def logits(self, sequence: int = 0) -> Floats:
        """What the model predicts to follow each token: an array [tokens, vocabulary]. Raises Missing without it."""
        return self._vectors(("logits",), "Logits", "Logits", sequence)

    def tokens(self, sequence: int = 0) -> list[str]:
        """The tokens of a sequence as texts; as ids, or else positions, where their texts are not known."""
        table = data.blocks(self._parts()).get("tokens")
        rows = range(*self._rows(sequence).indices(self._offsets[-1]))
        column = table and next(filter(None, map(table.GetColumnByName, ("Token", "TokenId"))), None)
        return [str(column.GetValue(row)) if column else str(row - rows.start) for row in rows]

    def panels(self, size: int, sequence: Sequence = 0) -> Floats:
        """The weights of all heads: [layers, heads, rows, columns], of which at most `size` rows and columns."""
        shown = {"Sequence": self.place(None, 0, sequence)[2], "MaximumSize": min(size, 1024)}
        with self.scope():
            matrix = self.own(filters.AttentionMatrix(**self.shown_by("AttentionMatrix"), **shown))
            image = data.image(matrix, "Weights")[::-1]
            names = ("Panel Size", "Panel Height", "Row Step", "Column Step")
            width, height, down, right = (int(data.field_number(matrix, name)) for name in names)
        return numpy.array([
            [image[row * down :, column * right :][:height, :width] for column in range(self.head_count)]
            for row in range(len(self.layer_numbers))
        ])

    def head_scores(self) -> dict[str, Floats]:
        """The scores of all heads, as scores(): {name: [layers, heads]}."""
        columns = self.columns("HeadScores")
        shape = len(self.layer_numbers), self.head_count
        return {name: values.reshape(shape) for name, values in columns.items() if name not in ("Layer", "Head")}

    def striking_heads(self, sequence: Sequence = 0) -> tuple[list[tuple[int, int]], str]:
        """All heads, as (layer, head), those with most to see first, and why the first one is: the head with the largest
        Prefix Matching in a text that repeats a token, or else Previous Token, or else Sink, as head_scores() has them.
        """
        places = [(layer, head) for layer in self.layer_numbers for head in range(self.head_count)]
        if sum(length**2 for length in self.lengths) * len(places) > _PAIRS:
            return places, "The text is too long to compare all heads here."
        scores = {name: numpy.nan_to_num(values) for name, values in self.head_scores().items() if name in _STRIKING}
        chosen = index("sequence", sequence, range(self.sequences), ("mean",))
        tokens = [] if chosen == MEAN else self.tokens(chosen)
        if tokens and len(set(tokens)) == len(tokens):
            scores.pop("Prefix Matching", None)
        most = {name: float(scores[name].max()) for name in _STRIKING if name in scores}
        name = next((name for name, value in most.items() if value >= _ENOUGH), max(most, key=lambda name: most[name]))
        values = scores[name].ravel()
        ranked = [places[i] for i in numpy.argsort(-values, kind="stable")]
        first = ".".join(map(str, ranked[0]))
        return ranked, f"Head {first} is shown first: of all heads it attends most to {_STRIKING[name]} ({values.max():.2f})."

    def save(self, path: PathLike) -> pathlib.Path:
        """Writes the recording to a .safetensors file, which appears complete or not at all; returns its path."""
        return write_data(self.reader, path)

    # The arguments of these methods are options of filters; None keeps the filter's own default.

    def scores(self, measure: str = "Mul", exclude_first: bool = False, exclude_current: bool = False) -> Table:
        """What each head is known for: a row per layer and head, with the share of its attention on the token before
        and on earlier copies of the same token, induction, prefix matching and sink, each 0 to 1. Cross attention has
        the share on the same tokens of the source, and the sink.

        measure: Mul, Abs or Stripe, how attention is compared with a pattern. exclude_first, exclude_current: without
        attention to the first token, or to the query itself.
        """
        return self._of("HeadScores", 0, locals())

    def focus(
        self, per: str = "Head", quantity: str = "Weights", exclude_first: bool = False, sink_threshold: float = 0.3
    ) -> Table:
        """Where heads look: a row per head, or per query, with the weight of its own and of the first key, the strongest
        key, concentration (largest minus second largest weight), entropy (0 to 1) and sink rate.

        per: Head or Query. quantity: Weights or NormWeighted. exclude_first: without the first query of each sequence.
        sink_threshold: the mean weight that makes a key a sink, 0 to 1.
        """
        return self._of("AttentionFocus", 0, locals())

    def expert_loads(self) -> Table:
        """How a model with experts uses them: a row per layer and expert with Count, the tokens that it was chosen for,
        their Share of all tokens, and the Mean Weight; of routers with a bias also the Mean Score without it, and the Expert
        Bias. Needs Routing."""
        return self._of("ExpertRouting", 1, locals())

    def expert_tokens(self, top: int = 10) -> Table:
        """The tokens that go to each expert most often: a row per layer, expert and rank with Token, Count, Share (of all
        places where the token is) and Mean Weight; of routers with a bias also the Mean Score. Needs Routing. top: tokens
        of each."""
        return self._of("ExpertRouting", 2, locals())

    def strongest_keys(self, layer: int | None = None, head: Head | None = None, sequence: Sequence = 0) -> Table:
        """The strongest key of each query of a head: a row per query with Key, Weight, Score and Kind (1: the query
        itself, 2: the first token, 0: another)."""
        layer, head, sequence = self.place(layer, head, sequence)
        return self.table("AttentionMap", 1, layer=layer, head=head, sequence=sequence, **_EVERY_PAIR)

    def score_parts(
        self, layer: int | None = None, head: int | None = None, sequence: int = 0, query: Head = "all", top: int = 0
    ) -> Table:
        """The scores of a head as the sum of ALiBi, a bias that depends on the key alone, and attention: a row per query
        and key. Needs the model.

        query: a position, or "all". top: the number of largest scores of each query; 0: all.
        """
        layer, head, sequence = self._places(layer, head, sequence)
        query = self._position("query", query, sequence, "all")
        return self._of("ScoreBreakdown", 0, locals())

    def updates(self) -> Table:
        """What each head adds to the residual stream: a row per head and token with the length of the update as a share
        of the stream's (Magnitude) and their cosine (Orientation). Needs HeadOutputs and Residual."""
        return self._of("HeadUpdates", 0, locals())

    def attention_tokens(
        self,
        layer: Head = 0,
        head: Head = "all",
        sequence: Sequence = 0,
        vectors: Listed[str] = ("Query", "Key", "Value", "QueryKey"),
        reading: str = "Plain",
        processing: str = "TransformerLens",
        top: int = 1,
        maximum_tokens: int = 32,
    ) -> Table:
        """The tokens of the vocabulary that vectors of heads stand for: a row per vector and rank, with the Logit. Needs
        the model, queries, keys and values.

        vectors: some of Query, Key, Value, Output, QueryKey and DotProduct. reading: Plain, Refactored or PublishedCode.
        processing: of the weights, None or TransformerLens. top: tokens of each vector. maximum_tokens: of a sequence
        that are read; 0: all.
        """
        layer, head, sequence = self._some(layer, head, sequence)
        return self._of("AttentionTokens", 0, locals())

    def embedding(
        self,
        layer: Head = "all",
        head: Head = "all",
        sequence: Sequence = "all",
        method: str = "PCA",
        dimensions: int = 2,
        perplexity: float | None = None,
        iterations: int = 750,
        neighbors: int = 15,
        seed: int = 0,
        arrangement: str = "Overlaid",
        **options: Any,
    ) -> Table:
        """The queries and keys of heads as points, near each other where a head attends: a row per query (Kind 0) and
        key (Kind 1), with its place x, y and z. Needs queries and keys.

        method: PCA, TSNE or UMAP. dimensions: 2 or 3. perplexity (by default 50, or less for few tokens), iterations: of
        t-SNE. neighbors: of UMAP. arrangement: Overlaid, each head around 0, or Grid. options: others of the filter HeadEmbedding.
        """
        layer, head, sequence = self._some(layer, head, sequence)
        found = {**locals(), **options}
        return self._of("HeadEmbedding", 0, {key: value for key, value in found.items() if key != "options"})

    def logit_attribution(
        self,
        sequence: int = 0,
        position: Head = "all",
        target: str = "NextToken",
        target_token: str = "",
        against: str = "",
        grouping: str = "Automatic",
        processing: str = "TransformerLens",
    ) -> Table:
        """What each component of the model adds to the logit of a token: a row per position and component with its
        Contribution. Needs the model, HeadOutputs and Residual.

        position: a number, or "all". target: NextToken, Predicted, or Token, that of target_token. against: a token whose
        logit is subtracted. grouping: Heads, Layers or Automatic. processing: of the weights, None or TransformerLens.
        """
        sequence = index("sequence", sequence, range(self.sequences))
        position = self._position("position", position, sequence, "all")
        return self._of("LogitAttribution", 0, locals())

    def logit_lens(self, sequence: int = 0, top: int = 5) -> Table:
        """What the model would predict before each of its layers: a row per layer, position and rank with Token, Logit
        and Probability. Needs the model and Residual. top: tokens of each."""
        sequence = index("sequence", sequence, range(self.sequences))
        return self._of("LogitLens", 1, locals())

    def score_attribution(
        self,
        layer: int | None = None,
        head: int | None = None,
        sequence: int = 0,
        query: Head = "last",
        key: Head = "strongest",
        grouping: str = "Automatic",
        top: int = 20,
        processing: str = "TransformerLens",
    ) -> Table:
        """Why a head attends: the score of a query and a key as the sum over pairs of components, a row per pair, the
        largest first. Needs the model, HeadOutputs and Residual.

        query: a position, or "last". key: a position, or "strongest". grouping: Heads, Layers or Automatic. top: pairs.
        """
        layer, head, sequence = self._places(layer, head, sequence)
        query, key = self.pair(sequence, query, key)
        return self._of("ScoreAttribution", 1, locals())

    def features(
        self,
        dictionary: PathLike,
        show: str = "Activations",
        sequence: Head = 0,
        feature: Head = "strongest",
        top: int = 10,
        processing: str = "FromFile",
    ) -> Table:
        """The features of a sparse dictionary (sparse autoencoder): which are active where, and which heads write and read
        one of them. Needs the model, and what the dictionary reads: QueriesAndKeys and Values, or HeadOutputs, and Residual.

        dictionary: a file of SAELens, beside its cfg.json, or the folder of both. show: Activations, a row per token and
        active feature; or of one feature Heads, a row per head with its Contribution and by how much its queries, keys and
        values read the feature's direction, Logits, the tokens that it raises and lowers most, or Contexts, where it is
        strongest. sequence: a number, or "all". feature: a number, or "strongest". top: features of a token, tokens at either
        end, or contexts. processing: of the activations that it was trained on, FromFile, None or TransformerLens. Raises
        ValueError for a dictionary of another model or of an unknown kind.
        """
        ports = {"Activations": 0, "Heads": 2, "Logits": 3, "Contexts": 4}
        chosen = {"feature": feature, "top": top, "processing": processing}
        chosen["sequence"] = some("sequence", sequence, range(self.sequences), "all")
        path = str(pathlib.Path(dictionary).resolve())
        return self._of("DictionaryFeatures", ports[word("show", show, ports)], {**chosen, "dictionary_file": path})

    def contacts(
        self,
        layer: Head = "all",
        head: Head = "all",
        sequence: int = 0,
        show: str = "Pairs",
        structure: PathLike | None = None,
        chain: str = "",
        contact_atom: str = "CBeta",
        contact_distance: float = 8.0,
        minimum_separation: int = 6,
        pair_count: int = 0,
        **options: Any,
    ) -> Table:
        """Which residues of a protein touch, by the attention of a head or the mean of several, less its average product,
        and by the contact head of the model, if that is known and has one (ESM-2): its Prediction, a probability.

        show: Pairs, a row for each of the strongest, as many as there are residues, or pair_count; Heads, a row per head,
        or Precision, by range of separation, which needs a structure. layer, head: a number, or "all". structure: a .cif or
        .pdb file of the protein, by which contacts are known. chain: its chain; by default the first. contact_atom: CBeta or
        CAlpha. contact_distance: of contacts, less than this. minimum_separation: in the sequence. options: others of the
        filter ContactMap, such as threshold=0.3, or sites, residues of a binding site as "12 45-48" or a list of numbers
        from 1, to which the attention of each head is measured. There is a Prediction only if all layers of the model were recorded. Raises
        ValueError for the structure of another protein, TypeError for unknown options.
        """
        found = {name: value for name, value in locals().items() if name not in ("self", "show", "structure", "options")}
        found.update(options)
        shown = ("Pairs", "Heads", "Precision")
        port = shown.index(word("show", show, shown)) + 1
        if port == 3 and structure is None:
            raise Missing(f"{self.name}: expected structure= for Precision")
        with self.scope():
            return as_table(data.table(contact_filter(self, structure, found, (layer, head) == ("all", "all")), port))

    def contact_map(
        self, quantity: str = "Contact Evidence", sequence: int = 0, structure: PathLike | None = None, **options: Any
    ) -> Floats:
        """The same for all pairs of residues: an array [residues, residues].

        quantity: Contact Evidence, the attention less its average product; Prediction, for which all layers of a model with
        a contact head must have been recorded; or with a structure Distance or Contact (1, 0, or -1 where it is not known).
        structure, options: as those of contacts. Raises Missing where the quantity is not known.
        """
        quantity = word("quantity", quantity, ("Contact Evidence", "Prediction", "Distance", "Contact"))
        with self.scope():
            predicts = quantity == "Prediction" or not {"layer", "head"} & options.keys()
            made = contact_filter(self, structure, {"sequence": sequence, **options}, predicts)
            if quantity not in data.point_names(made):
                what = "a model with a contact head" if quantity == "Prediction" else "structure="
                if quantity == "Prediction" and (layers := unrecorded_layers(self)):
                    what = f"a recording of all layers of the model, also of {listed(layers)},"
                raise Missing(f"{self.name}: expected {what} for {quantity}")
            matrix: Floats = data.image(made, quantity)[::-1]
            return matrix.copy()

    def sides(self, sequence: int = 0) -> tuple[list[str], list[str]]:
        """The tokens of the rows and of the columns of a map, the same list where they are the same; positions of the
        mean over sequences, -1. Raises ValueError without tokens."""
        if sequence == MEAN:
            texts = [str(position) for position in range(max(self.lengths, default=0))]
        else:
            texts = self.tokens(sequence)
        source = self._sources[max(sequence, 0)] if self._sources else 0
        sides = (texts[source:], texts[:source]) if self._sources else (texts, texts)
        if not all(sides):
            raise ValueError(f"sequence: expected one with tokens, found that {sequence} has none.")
        return sides

    def _line(self) -> str:
        return f"{len(self.layer_numbers)} layers, {self.head_count} heads, {self.sequences} sequence{'s' * (self.sequences != 1)}"

    def _summary(self) -> dict[str, str]:
        rows = {"Layers": listed(self.layer_numbers), "Heads": str(self.head_count), "Tokens": ", ".join(map(str, self.lengths))}
        for sequence in range(min(self.sequences, 8)):
            words = self.tokens(sequence)
            rest = " \u2026" if len(words) > _SHOWN else ""
            rows[f"{'Image' if self.has_images else 'Sequence'} {sequence}"] = "\u00a0|\u00a0".join(words[:_SHOWN]) + rest
        return rows


def _quantities(record: str | Listed[str] | None) -> str | Listed[str] | None:
    return ALL if record == "all" else record


def first_head(source: PathLike, sequence: Sequence = 0) -> tuple[int, int, str]:
    """The layer and head of a recording with most to see, and why."""
    with Recording.opened(source) as recording:
        places, reason = recording.striking_heads(sequence)
        return *places[0], reason


class Transformer(Circuits):
    """A transformer with its weights.

    source: its config.json, the folder of that, or a .gguf file. Raises FileNotFoundError for a missing file,
    ValueError for one that holds no model.

    layer_count: the number of layers. head_count: heads of each layer. vocabulary: the number of tokens. dimension: of the residual
    stream. path, name: of the file or its folder.
    """

    layers = Renamed("layer_count")
    heads = Renamed("head_count")

    def __init__(self, source: PathLike | Any) -> None:
        super().__init__()
        is_file = isinstance(file_or_filter(source, "a transformer"), (str, os.PathLike))
        # The trained model alone: with its checkpoints, a reader would have time.
        self._reader = self.own(open_transformer(source, Checkpoints=0) if is_file else source)
        self.path = pathlib.Path(self._reader.FileName).resolve() if is_file else None
        self.name = "transformer" if self.path is None else self.path.stem
        if self.path is not None and self.path.name in MODEL_FILES:
            self.name = self.path.parent.name
        #: The numbers of layers and of heads of each, of tokens of the vocabulary, and the model's dimension.
        names = ("Layers", "Heads", "VocabularySize", "EmbeddingDimension")
        self.layer_count, self.head_count, self.vocabulary, self.dimension = (
            int(data.field_number(self._reader, name) or 0) for name in names
        )

    def _summary(self) -> dict[str, str]:
        sizes = (self.layer_count, self.head_count, self.dimension, self.vocabulary)
        return dict(zip(("Layers", "Heads", "Dimension", "Vocabulary"), map(str, sizes)))

    def record(
        self, prompts: str | Listed[str] | None = None, *, record: str | Listed[str] | None = None, **options: Any
    ) -> Recording:
        """Runs the model and records its heads.

        prompts: a text, or several; line breaks belong to a text. record: some of QueriesAndKeys, Values, HeadOutputs,
        Residual, Logits and, of models with experts, Routing; or "all", what the model has of these; by default the first
        four, which tables and figures need. options: others of the filter TransformerRecorder, such as maximum_length=64,
        generate_tokens=20, layers=[0, 5], token_ids="5 7 9" or images=["cat.png"] instead of prompts, ablate="2.5",
        circuit_file=circuit, a Circuit that runs alone, with all else as for patch_from or ablated, and
        targets=["Das Haus"], one for each prompt, or a text with a line for each, of a model with an encoder, which reads
        the prompts; see part(). Proteins are prompts, or a prompt_file="proteins.fasta", with prompt_format="Fasta", or "A3m"
        for rows of an alignment, or as letters with spaces between them; Lines, OneText and JsonLines are other formats. Of a
        model of pictures among words, images are those that <image> in the prompts stands
        for, and frames_per_film=8 makes videos of them, for <video>. Their pixels are made as by Pillow, or with
        pixels="Torchvision" as by the processors that transformers 5 takes by default.
        Raises ValueError for what the model cannot run.
        """
        targets, patch_from = text_lines(options.get("targets")), options.get("patch_from") or None
        texts = {"prompts": prompts, "targets": targets, "patch_from": patch_from}
        options.update(written_prompts(texts, options.get("prompt_format")))
        chosen = {"record": _quantities(record), **options}
        made = self._recorded(make_filter("TransformerRecorder", {"Input": self.reader}, chosen))
        made._circuit = options.get("circuit_file")
        return made

    def record_random(
        self, kind: str = "Random", length: int = 64, count: int = 1, block: int = 16, seed: int = 0,
        record: str | Listed[str] | None = None,
    ) -> Recording:
        """Runs the model on random tokens and records its heads.

        kind: OneToken, one that is repeated; Random; or RepeatedBlock, a block of tokens that is repeated. length: of a
        sequence. count: of sequences. block: the length of a block. seed: of the random numbers. record: as record().
        """
        chosen = {"kind": kind, "length": length, "count": count, "block": block, "seed": seed}
        prompts = make_filter("RandomPrompts", {}, {**chosen, "id_range": (0, self.vocabulary - 1)})
        try:
            made = self._recorded(
                make_filter(
                    "TransformerRecorder", {"Input": self.reader, "Tokens": prompts}, {"record": _quantities(record)}
                )
            )
        except BaseException:
            delete(prompts)
            raise
        made._proxies.insert(0, prompts)  # deleted last
        return made

    def corpus(
        self, files: PathLike | Listed[PathLike], *, documents: str = "Lines", tokens: int | None = 100_000,
        window: int | None = None, overlap: int = 0, layers: Listed[int] = (), continue_from: PathLike | None = None,
        **options: Any,
    ) -> Corpus:
        """Runs the model on a text of any length and keeps what its heads do: as attentionatlas.corpus."""
        chosen = {"documents": documents, "window": window, "overlap": overlap, "layers": list(layers) or None}
        return measure(self.reader, files, tokens, continue_from, {**chosen, **options})

    def _recorded(self, recorder: Any) -> Recording:
        try:
            update(recorder, what=f"record {self.name}")
            if data.field_number(recorder, "Rotated") is None:
                raise Error(f"{self.name}: expected prompts, token_ids, images or sounds to record, found none.")
        except BaseException:
            delete(recorder)
            raise
        return Recording(recorder, self)

    def save(self, path: PathLike, checkpoints: bool = True) -> pathlib.Path:
        """Writes a model that was just trained to a folder, which open reads; returns its path.

        The files are those of attention-atlas learn: config.json, model.safetensors, recipe.json, curves.csv and what
        the task has, such as tokenizer.json. checkpoints: also checkpoint-N, the model after N steps. The training can
        be continued: train(task, continue_from=path, steps=2000), or attention-atlas learn --continue. Raises Missing
        for a model from a file, OSError for a folder that cannot be written or has another training.
        """
        self._check_trained()
        return write_training(self.reader, path, checkpoints)
