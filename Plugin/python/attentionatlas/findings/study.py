"""A trained model with its history, as findings read it: weights, curves, checkpoints, recordings of what it does."""

from __future__ import annotations

import csv
import json
import pathlib
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy
from numpy.typing import NDArray
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.errors import Error, update
from attentionatlas._internal.host import filters
from attentionatlas._internal.readers import Missing, Proxies, write_data
from attentionatlas._internal.recording import Recording
from attentionatlas.findings.base import Place
from attentionatlas.findings.texts import PASSAGES

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.txt", "vocab.json")
#: Where recordings of texts end, in tokens: findings compare positions, so all sequences are as long.
LENGTH = 48


def read_tensors(path: PathLike) -> dict[str, NDArray[Any]]:
    """The tensors of a safetensors file, by name, in double precision. Raises FileNotFoundError."""
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, tensor in header.items():
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        values = numpy.frombuffer(content[begin:end], _DTYPES[tensor["dtype"]])
        tensors[name] = values.reshape(tensor["shape"]).astype(float)
    return tensors


def read_curves(path: PathLike) -> dict[str, NDArray[Any]]:
    """The columns of curves.csv, by name; empty cells are NaN. Raises Missing if there is no such file."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise Missing(f"{path.parent.name} has no {path.name}")
    with open(path, encoding="utf-8", newline="") as file:
        names, *rows = list(csv.reader(file))
    values = [[float(cell) if cell.strip() else numpy.nan for cell in row] for row in rows if row]
    return dict(zip(names, numpy.array(values).reshape(-1, len(names)).T))


class Attention(Recording):
    """The attention of a recording's heads on all of its sequences, cut to the shortest."""

    def stack(self, layer: int, head: int, quantity: str = "Weights") -> NDArray[Any]:
        """The matrices of a head: [sequences, queries, keys]."""
        matrices = []
        for sequence in range(self.sequences):
            matrices.append(self.attention(layer, head, sequence, quantity))
        length = min(map(len, matrices))
        return numpy.array([matrix[:length, :length] for matrix in matrices])

    def mean(self, layer: int, head: int) -> NDArray[Any]:
        """The mean over the sequences of the weights of a head: [queries, keys]."""
        return self.attention(layer, head, "mean")

    def places(self) -> list[Place]:
        """Every head, as (layer, head)."""
        return [(layer, head) for layer in self.layer_numbers for head in range(self.head_count)]

    def sequence_of(self) -> NDArray[Any]:
        """The sequence or image of each token."""
        columns = self.block("tokens")
        return columns["Image"] if "Image" in columns else columns["Sequence"]

    def block(self, *names: str) -> dict[str, NDArray[Any]]:
        """The columns of a block of the recording, such as block("layer 0", "residual"), in double precision."""
        block = data.first_part(self.reader)
        for name in names:
            block = data.blocks(block).get(name)
            if block is None:
                raise Missing(f"the recording has no {' / '.join(names)}")
        columns = (block.GetColumn(i) for i in range(block.GetNumberOfColumns()))
        return {c.GetName(): vtk_to_numpy(c).astype(float) for c in columns if not c.IsA("vtkStringArray")}


class Study(Proxies):
    """A folder with config.json and model.safetensors and, from its training, checkpoint-N, curves.csv and
    recipe.json.

    scratch: a folder for recordings of the model. Raises FileNotFoundError without a model, ValueError for one that
    cannot be read.
    """

    def __init__(self, folder: PathLike, scratch: PathLike) -> None:
        super().__init__()
        self.folder, self.scratch = pathlib.Path(folder), pathlib.Path(scratch)
        self.name = self.folder.resolve().name
        if not (self.folder / "config.json").is_file():
            raise FileNotFoundError(f"{self.folder / 'config.json'}: no such file.")
        self.config = self._last()
        reader = self.own(filters.TransformerReader(FileName=str(self.config)))
        try:
            update(reader)
        except Error:
            self.close()
            raise
        names = ("Layers", "Heads", "VocabularySize", "Positions", "EmbeddingDimension")
        numbers = [data.field_number(reader, name) for name in names]
        self.layer_count, self.head_count, self.vocabulary, self.positions, self.width = (int(n or 0) for n in numbers)
        self.reader = reader

    def _last(self) -> pathlib.Path:
        """The config.json of the model after its training, without the steps before it, over which a reader would have
        time: links to its files."""
        folder = self.scratch / self.name
        folder.mkdir(parents=True, exist_ok=True)
        for file in self.folder.iterdir():
            link = folder / file.name
            if file.is_file() and not link.exists():
                link.symlink_to(file.resolve())
        return folder / "config.json"

    @property
    def recipe(self) -> dict[str, Any]:
        """The settings of the training; empty if they are not known."""
        path = self.folder / "recipe.json"
        recipe: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return recipe

    def curves(self) -> dict[str, NDArray[Any]]:
        """The curves of the training; raises Missing."""
        return read_curves(self.folder / "curves.csv")

    def checkpoints(self) -> dict[int, pathlib.Path]:
        """The config.json of each step that was kept, by step; raises Missing if there are fewer than two."""
        found = {}
        for path in self.folder.glob("checkpoint-*/config.json"):
            number = path.parent.name.partition("-")[2]
            if number.isdigit():
                found[int(number)] = path
        if len(found) < 2:
            raise Missing(f"{self.name} has no checkpoints")
        return dict(sorted(found.items()))

    def weights(self) -> dict[str, NDArray[Any]]:
        """The tensors of the model after its training."""
        return read_tensors(self.folder / "model.safetensors")

    def has_tokenizer(self) -> bool:
        """Whether texts can be run."""
        return any((self.folder / name).is_file() for name in _TOKENIZERS)

    def _special(self) -> dict[str, int]:
        """The ids of special tokens, by their text."""
        path = self.folder / "tokenizer.json"
        added = json.loads(path.read_text(encoding="utf-8")).get("added_tokens", []) if path.is_file() else []
        return {token["content"]: token["id"] for token in added if token.get("special")}

    def special(self, text: str) -> int:
        """The id of a special token; raises Missing."""
        known = self._special()
        if text not in known:
            raise Missing(f"{self.name} has no token {text}")
        return known[text]

    def first_word(self) -> int:
        """The smallest token id that is no special token."""
        special = self._special().values()
        return next(number for number in range(self.vocabulary + 1) if number not in special)

    def random_tokens(self, **properties: Any) -> Any:
        """A proxy of random prompts of the model's words; properties: of RandomPrompts."""
        words = [self.first_word(), self.vocabulary - 1]
        return self.own(filters.RandomPrompts(**{"IdRange": words, **properties}))

    @property
    def block(self) -> int:
        """The tokens of a block that is written twice: at most 32."""
        return min(self.positions or 64, 64) // 2

    def repeats(self, seed: int = 0, count: int = 16) -> dict[str, Any]:
        """Properties of TransformerRecorder for random blocks of tokens, each written twice. The tokens of a block are
        different, if there are as many, so that only one place can be copied from."""
        random = numpy.random.default_rng(seed)
        words = numpy.arange(self.first_word(), self.vocabulary)
        again = len(words) < self.block
        blocks = [random.choice(words, self.block, replace=again) for _ in range(count)]
        return {"TokenIds": ids([[*block, *block] for block in blocks])}

    def prompts(self, length: int = LENGTH) -> dict[str, Any]:
        """Properties of TransformerRecorder for texts that are cut to one length; for a model without a tokenizer,
        random tokens."""
        length = min(length, self.positions or length)
        if self.has_tokenizer():
            return {"Prompts": "\n".join(PASSAGES), "MaximumLength": length}
        return {"Tokens": self.random_tokens(Kind="Random", Length=length, Count=len(PASSAGES))}

    def recorder(self, config: PathLike | None = None, record: Iterable[str] = (), **properties: Any) -> Any:
        """A run of the model, or of that of another config.json. record: by default what most findings need."""
        reader = self.reader if config is None else self.own(filters.TransformerReader(FileName=str(config)))
        chosen = {"Record": list(record)} if record else {}
        return self.own(filters.TransformerRecorder(Input=reader, **chosen, **properties))

    def recording(
        self, name: str, make: Callable[[], dict[str, Any]], record: Iterable[str] = (),
        config: PathLike | None = None,
    ) -> pathlib.Path:
        """The file of a recording, which is made when it is first asked for. make: returns the properties of
        TransformerRecorder. config: of another model, such as a checkpoint."""
        path = self.scratch / f"{self.name}-{name}.safetensors"
        if not path.is_file():
            with self.scope():
                write_data(self.recorder(config, record, **make()), path)
        return path

    def text(self) -> pathlib.Path:
        """The recording of texts."""
        return self.recording("text", self.prompts)

    def repeated(self) -> pathlib.Path:
        """The recording of repeated random tokens."""
        return self.recording("repeated", self.repeats)

    def table(self, proxy: str, port: int = 0, **properties: Any) -> dict[str, NDArray[Any]]:
        """A table of a filter on the model."""
        with self.scope():
            made = self.own(getattr(filters, proxy)(Input=self.reader, **properties))
            table: dict[str, NDArray[Any]] = data.table(made, port)
            return table

    def head_scores(self, config: PathLike | None = None) -> dict[str, NDArray[Any]]:
        """The scores of all heads by HeadScores on repeated random tokens: {name: [layers, heads]}."""
        with self.scope():
            recorder = self.recorder(config, ["QueriesAndKeys"], **self.repeats(seed=1))
            scores = self.own(filters.HeadScores(Input=recorder, Measure="Stripe"))
            columns = data.table(scores)
        shape = self.layer_count, self.head_count
        return {name: column.reshape(shape) for name, column in columns.items() if name not in ("Layer", "Head")}

    def logits(self, config: PathLike | None = None, **properties: Any) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
        """The logits of a run of the model or of another config.json, and the columns of its tokens."""
        with self.scope():
            tables = data.blocks(data.first_part(self.recorder(config, ["Logits"], **properties)))
            tokens = {n: vtk_to_numpy(tables["tokens"].GetColumnByName(n)) for n in ("Sequence", "Position", "TokenId")}
            return vtk_to_numpy(tables["logits"].GetColumn(0)).astype(float), tokens

    def last_residual(self, config: PathLike | None = None, **properties: Any) -> NDArray[Any]:
        """The residual stream after the last layer of a run of the model or of another config.json: a row per token."""
        with self.scope():
            block = data.first_part(self.recorder(config, ["Residual"], **properties))
            for name in (f"layer {self.layer_count}", "residual"):
                block = data.blocks(block)[name]
            return vtk_to_numpy(block.GetColumnByName("Residual")).astype(float)


def ids(rows: Any) -> str:
    """Rows of token ids as the property TokenIds takes them."""
    return "\n".join(" ".join(map(str, row)) for row in numpy.asarray(rows).tolist())


def log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """The logarithms of the probabilities, in nats."""
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - numpy.log(numpy.exp(logits).sum(axis=-1, keepdims=True))
