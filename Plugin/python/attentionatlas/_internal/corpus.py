"""What the heads of a transformer do over texts of any length: statistics from a file or just measured, as tables."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence as Listed
from typing import Any

from attentionatlas._internal.host import delete

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike, head_beside, index, listed, word
from attentionatlas._internal.checks import check
from attentionatlas._internal.errors import update
from attentionatlas._internal.readers import Proxies, Renamed, file_or_filter, make_filter, open_corpus, open_transformer, write_data
from attentionatlas._internal.tables import Table, Tables, as_table

#: What ScoreParts splits.
_CIRCUITS = {"QK": "Scores (QK)", "OV": "Outputs (OV)"}


class Corpus(Tables):
    """What the heads of a transformer do over a large text: statistics of all of its tokens.

    source: a file that save or attention-atlas corpus wrote. Raises FileNotFoundError for a missing file, ValueError for
    one that holds no such statistics. Layers and heads are counted from 0.

    layer_numbers: the layers that were measured. head_count: heads of each layer. token_count, document_count: how
    much was measured. is_complete: whether that is all of the text. columns_of_heads: what is known of each head. path,
    name: of the file.
    """

    layers = Renamed("layer_numbers")
    heads = Renamed("head_table")
    tokens = Renamed("token_table")

    def __init__(self, source: PathLike | Any) -> None:
        super().__init__()
        is_file = isinstance(file_or_filter(source, "statistics of a corpus"), (str, os.PathLike))
        #: The file; None if it was just measured.
        self.path: pathlib.Path | None = pathlib.Path(source) if is_file else None
        self.name = self.path.name if self.path else "corpus"
        self._owned: Proxies | None = None
        self._reader = self.own(open_corpus(source) if is_file else source)
        fields = ("Tokens", "Documents", "Complete")
        #: How many tokens and documents were measured, and whether these are all of the text.
        self.token_count, self.document_count, complete = (
            int(data.field_number(self._reader, name)) for name in fields
        )
        self.is_complete = bool(complete)
        columns = data.table(self._reader)
        #: The numbers of the layers that were measured, and of the heads of each of them.
        self.layer_numbers: list[int] = sorted(set(columns["Layer"].tolist()))
        self.head_count = int(columns["Head"].max()) + 1
        #: What is known of each head, the columns of head_table().
        self.columns_of_heads: list[str] = [name for name in columns if name not in ("Layer", "Head", "Queries")]

    def close(self) -> None:
        """Closes the file and frees what was computed from it; a second time does nothing."""
        super().close()
        if self._owned is not None:
            self._owned.close()

    def _inputs(self, name: str) -> dict[str, Any]:
        return {"Input": self.reader}

    def place(self, layer: int | None = None, head: int | None = 0) -> tuple[int, int]:
        """A layer, the first that was measured by default, and head; raises ValueError if there is no such head."""
        chosen = self.layer_numbers[0] if layer is None else index("layer", layer, self.layer_numbers)
        return chosen, index("head", head_beside(layer, head), range(self.head_count))

    def head_table(self) -> Table:
        """What each head does, a row per layer and head: Entropy, Concentration, Self Weight, First Weight, Sink,
        Previous Token, Duplicate Token, Induction, Prefix Matching, Copying, Written Norm, Next Token Effect, Mean
        Distance and others, as the filter CorpusStatistics has them. Median Entropy, Entropy P5 and Entropy P95, and those
        of Concentration, Written Norm and Next Token Effect, are quantiles over queries, within 1 % of the value."""
        return as_table(data.table(self.reader))

    def histogram(self, layer: int | None = None, head: int | None = None, quantity: str = "Entropy") -> Table:
        """How a quantity of a head is distributed over the text: a row per bin with the Value of its middle, the Count,
        its Share of all and the Cumulative share.

        quantity: Entropy or StrongestWeight of queries, in 20 bins from 0 to 1; or Distance of attention in tokens.
        """
        layer, head = self.place(layer, head)
        return self._of("HeadHistogram", 0, locals())

    def quantiles(self, layer: int | None = None, head: int | None = None) -> Table:
        """The Entropy, Concentration, Written Norm and Next Token Effect of a head below which a part of the queries is: a
        row for each Quantile from 0 to 1 in steps of 0.01. Values are within 1 %."""
        layer, head = self.place(layer, head)
        return self._of("HeadHistogram", 1, locals())

    def token_table(
        self, layer: int | None = None, head: int | None = None, sort_by: str = "ToTotal", minimum_occurrences: int = 1,
        top: int = 0,
    ) -> Table:
        """From which tokens a head attends, and to which: a row per kind of token with its Occurrences, To and From, the
        attention per occurrence, their sums and distances.

        sort_by: ToTotal, FromTotal, To, From or Occurrences. minimum_occurrences: of the tokens that are listed. top: the
        number of rows; 0: all.
        """
        layer, head = self.place(layer, head)
        return self._of("HeadTokenTable", 0, locals())

    def contexts(
        self, layer: int | None = None, head: int | None = None, measure: str = "Attention", top: int = 10, around: int = 5,
        feature: int | None = None,
    ) -> Table:
        """The strongest contexts of a head or a feature: a row each with the Value, its Document and Position, the tokens of query
        and key, and the Text, with [ ] around the query and ( ) around the key.

        measure: Score, in which the bias of ALiBi counts by distance, Attention, WrittenNorm or NextTokenEffect. top: the
        number of texts, at most those that were kept.
        around: tokens on either side of both. feature: a number, in place of a head, of statistics with a dictionary_file:
        the texts where it is strongest, at the token in [ ], with its activation there.
        """
        layer, head = self.place(layer, head)
        feature = -1 if feature is None else feature
        return self._of("TopContexts", 0, locals())

    def _parts(
        self, port: int, layer: int | None, head: int | None, circuit: str, model: Any, options: dict[str, int]
    ) -> Table:
        circuit = word("circuit", circuit, _CIRCUITS)
        layer, head = self.place(layer, head)
        chosen = {"layer": layer, "head": head, "circuit": _CIRCUITS[circuit], **options}
        if model is None:
            return self.table("ScoreParts", port, **chosen)
        with self.scope():
            is_open = hasattr(model, "reader")
            reader = model.reader if is_open else self.own(open_transformer(model, Checkpoints=0))
            return self.table("ScoreParts", port, model=reader, **chosen)

    def parts(
        self, layer: int | None = None, head: int | None = None, parts: int = 8, circuit: str = "QK",
        model: Any = None,
    ) -> Table:
        """The parts of a head's scores, each the product of a feature of the query and one of the key: a row each with
        the Share that it has of the variance of scores.

        parts: their largest number. circuit: QK; or OV, the parts of what the head writes, by their share of its
        variance. These need the model that was measured, open or its file, and statistics with sample_values=True.
        """
        return self._parts(0, layer, head, circuit, model, {"parts": parts})

    def ends(
        self, layer: int | None = None, head: int | None = None, parts: int = 8, ends: int = 10, circuit: str = "QK",
        model: Any = None,
    ) -> Table:
        """The tokens at the ends of these parts: a row per part, Kind, End (Highest, Lowest) and Rank.

        Kind: 0 query, 1 key; of OV 2, tokens whose embedding the head reads most; 3, whose logit the part raises most;
        4, values of the text. parts, circuit, model: as above. ends: tokens at each end.
        """
        return self._parts(1, layer, head, circuit, model, {"parts": parts, "ends": ends})

    def clusters(self, count: int = 4, by: str = "Statistics") -> Table:
        """Groups of heads that are alike: a row per layer and head with its Cluster, by average linkage.

        count: of groups. by: Statistics, the columns of head_table(), each divided by its standard deviation; or Agreement,
        of the attention of heads on the same text.
        """
        columns = self.columns("HeadScatter", clusters=count, cluster_by=by)
        return as_table({name: columns[name] for name in ("Layer", "Head", "Cluster")})

    def save(self, path: PathLike) -> pathlib.Path:
        """Writes all statistics to a .safetensors file, which appears complete or not at all; returns its path.

        attentionatlas.open reads it, and a run can go on from it: corpus(..., continue_from=path).
        """
        return write_data(self.reader, path)

    def _size(self) -> str:
        rest = "" if self.is_complete else ", not all of the text"
        return f"{self.token_count} tokens of {self.document_count} documents{rest}"

    def _line(self) -> str:
        return f"{len(self.layer_numbers)} layers, {self.head_count} heads, {self._size()}"

    def _summary(self) -> dict[str, str]:
        rows = {"Layers": listed(self.layer_numbers), "Heads": str(self.head_count), "Text": self._size()}
        columns = data.table(self.reader)
        for name in ("Previous Token", "Prefix Matching", "Sink", "Duplicate Token"):
            best = int(columns[name].argmax())
            rows[f"Highest {name}"] = f"{columns['Layer'][best]}.{columns['Head'][best]}: {columns[name][best]:.3f}"
        return rows


def measure(
    model: Any, files: PathLike | Listed[PathLike], tokens: int | None, continue_from: PathLike | None,
    options: dict[str, Any],
) -> Corpus:
    """What attentionatlas.corpus does, with the reader of a model."""
    if not isinstance(files, (str, os.PathLike, Listed)):
        raise ValueError(f"files: expected a file or a list of files, found {files!r}.")
    paths = [pathlib.Path(file) for file in ([files] if isinstance(files, (str, os.PathLike)) else files)]
    if not paths:
        raise ValueError("files: expected at least one file of text, found none.")
    if tokens is not None:
        check("tokens", tokens, 1, (1 << 31) - 1)
    for path in [*paths, *([] if continue_from is None else [pathlib.Path(continue_from)])]:
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file.")
    chosen = {"files": list(map(str, paths)), "token_limit": tokens or 0, "continue_from": continue_from, **options}
    measured = make_filter("CorpusStatistics", {"Input": model}, chosen)
    try:
        update(measured, what="corpus")
    except BaseException:
        delete(measured)
        raise
    return Corpus(measured)
