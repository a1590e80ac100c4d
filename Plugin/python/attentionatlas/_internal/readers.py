"""Readers of files as the plugin has them, its filters with options, and proxies that are deleted together."""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import math
import os
import pathlib
import pickletools
import re
import struct
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from typing import IO, Any, Self

import numpy

from attentionatlas._internal import data, host
from attentionatlas._internal.arguments import MEAN, PathLike, number, word
from attentionatlas._internal.errors import Error, Missing, WriteError, raised, update
from attentionatlas._internal.host import delete, filters, output_port

__all__ = ["Error", "Missing"]


def open_model(path: PathLike) -> Any:
    """A reader of a small model's file, up to date.

    Raises FileNotFoundError for a missing file, Error for one that holds no model.
    """
    path = pathlib.Path(path)
    return _open(path, "AttentionOnlyModelReader", registrationName=path.stem, FileNames=[str(path)])


def open_recording(path: PathLike) -> Any:
    """A reader of a recording's file, up to date; raises as open_model."""
    path = pathlib.Path(path)
    if path.is_dir() or path.is_file() and path.suffix in (".json", ".gguf") and not is_sharded_recording(path):
        raise ValueError(f"{path}: expected a recording, found a model; run it on a text first: Transformer.record.")
    return _open(path, "RecordingReader", registrationName=path.stem, FileName=str(path))


def open_transformer(path: PathLike, **properties: Any) -> Any:
    """A reader of a transformer, given by its config.json, its folder or a .gguf file, up to date; raises as open_model.

    An adapter in the folder is applied, but not for model.safetensors, which is its base alone.

    properties: of the proxy.
    """
    path = model_file(path)
    return _open(path, "TransformerReader", FileName=str(path), **properties)


def open_structure(path: PathLike) -> Any:
    """A reader of the structure of a protein, a .cif or .pdb file, up to date; raises as open_model."""
    path = pathlib.Path(path)
    return _open(path, "MmcifReader", registrationName=path.stem, FileName=str(path))


def open_corpus(path: PathLike) -> Any:
    """A reader of a file of statistics of a corpus, up to date; raises as open_model."""
    path = pathlib.Path(path)
    return _open(path, "CorpusReader", registrationName=path.stem, FileName=str(path))


def open_circuit(path: PathLike, **properties: Any) -> Any:
    """A reader of a circuit, up to date; raises as open_model.

    properties: of the proxy.
    """
    path = pathlib.Path(path)
    return _open(path, "CircuitReader", registrationName=path.stem, FileName=str(path), **properties)


def _open(path: pathlib.Path, name: str, **properties: Any) -> Any:
    """A reader of the plugin, up to date."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file.")
    host.load()
    reader = getattr(filters, name)(**properties)
    try:
        update(reader)
    except BaseException:
        delete(reader)
        raise
    return reader


def holds_queries(reader: Any) -> bool:
    """Whether a recording, given by its reader, has the queries of a head."""
    layers = data.blocks(data.first_part(reader)).values()
    return any(data.has_column(head, "Query") for layer in layers for head in data.blocks(layer).values())


def has_images(reader: Any) -> bool:
    """Whether a recording is one of images."""
    return host.field_range(reader, "Patch Grid") is not None


def has_pictures(reader: Any) -> bool:
    """Whether a recording is one of pictures among words."""
    return not has_images(reader) and host.field_range(reader, "Picture Contents") is not None


def _header(path: PathLike) -> dict[str, Any]:
    """What a .safetensors file says of its tensors, by their names; empty for others."""
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, 1 << 26)))
    except (struct.error, ValueError):
        return {}
    return header if isinstance(header, dict) else {}


def _format(header: dict[str, Any]) -> Any:
    """The format that a header names; None if it names none."""
    about = header.get("__metadata__")
    return about.get("format") if isinstance(about, dict) else None


def is_sharded_recording(path: PathLike) -> bool:
    """Whether a file is the index of the shards of a recording, by the format that it names."""
    path = pathlib.Path(path)
    if not path.name.endswith(".index.json"):
        return False
    try:
        about = json.loads(path.read_text(encoding="utf-8")).get("metadata")
    except (ValueError, AttributeError):
        return False
    return isinstance(about, dict) and about.get("format") == "attention-atlas.recording"


#: Names of the arrays of recordings, whatever program made them.
_RECORDED = re.compile(r"blocks\.\d+\.[\w.]*hook_\w+|layer\.\d+\.\w+|attention|scores|array")
#: How files of PyTorch begin that are older than its zip archives, and how many pickles they begin with.
_OLD_TORCH = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
_OLD_PICKLES = 4


def _torch_texts(path: pathlib.Path) -> set[str] | None:
    """The texts in the pickles of a file of PyTorch, of which no code is run; None for any other file."""
    files: list[IO[bytes]] = []
    with open(path, "rb") as old:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as members:
                pickles = [name for name in members.namelist() if name.rpartition("/")[2] == "data.pkl"]
                files = [io.BytesIO(members.read(name)) for name in pickles[:1]]
        elif _begins(path, _OLD_TORCH):
            files = [old] * _OLD_PICKLES
        if not files:
            return None
        with contextlib.suppress(ValueError):  # the reader says what is wrong with a broken file
            return {text for file in files for _, text, _ in pickletools.genops(file) if isinstance(text, str)}
    return set()


def _begins(path: pathlib.Path, magic: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic


def _kind(path: pathlib.Path) -> str | None:
    """What a file is, by what is in it; None if that is none of what the plugin opens."""
    if path.is_dir():
        return "transformer"
    if is_sharded_recording(path) or _begins(path, b"\x93NUMPY"):
        return "recording"
    if path.suffix == ".json" or _begins(path, b"GGUF"):
        return "transformer"
    texts = _torch_texts(path)
    if texts is not None:
        return "recording" if any(map(_RECORDED.fullmatch, texts)) else "transformer"
    if zipfile.is_zipfile(path):  # .npz
        return "recording"
    header = _header(path)
    if "word_embedding" in header or "word_emb.weight" in header:
        return "model"
    if _format(header) == "attention-atlas.corpus":
        return "corpus"
    if not header:  # the reader says what a file of another kind is
        return "recording" if path.suffix == ".safetensors" else None
    is_recording = _format(header) == "attention-atlas.recording" or any(map(_RECORDED.fullmatch, header))
    return "recording" if is_recording or model_file(path.parent) == path.parent else "transformer"


def kind_of(path: PathLike) -> str:
    """What a file is, by what is in it: model (a small one), corpus (its statistics), recording or transformer.

    Raises FileNotFoundError for a missing file, Error for one of another kind.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file.")
    kind = _kind(path)
    if kind is None:
        raise Error(
            f"{path}: expected a recording, a small model, statistics of a corpus, or the config.json, folder or .gguf file "
            "of a transformer; found a file of another kind."
        )
    return kind


#: The files that stand for the model in a folder: its own, or that of an adapter whose base is elsewhere.
MODEL_FILES = ("config.json", "adapter_config.json")


def model_file(path: PathLike) -> pathlib.Path:
    """The file that stands for the model in a folder; the path itself if it is a file, or a folder without one."""
    path = pathlib.Path(path)
    return next((path / name for name in MODEL_FILES if (path / name).is_file()), path)


def label(path: PathLike) -> str:
    """The name of a file without its ending, or of the folder of a model, which config.json stands for."""
    path = pathlib.Path(path)
    folder = path.resolve().parent if path.name in MODEL_FILES else path.resolve()
    return folder.name if folder.is_dir() else path.stem


def write_data(source: Any, path: PathLike, suffix: str = ".safetensors") -> pathlib.Path:
    """Writes what a source has to a file, which appears complete or not at all; returns its path."""
    path = pathlib.Path(path)
    if path.suffix != suffix:
        raise ValueError(f"{path}: expected a name that ends with {suffix}.")
    _write(path, path, source)
    return path


def write_circuit(source: Any, path: PathLike) -> pathlib.Path:
    """Writes the circuit that a graph of a source shows, as write_data."""
    return write_data(output_port(source, 0), path, ".circuit")


def write_training(training: Any, folder: PathLike, checkpoints: bool) -> pathlib.Path:
    """Writes what TransformerTraining has trained to a folder; returns its path."""
    folder = pathlib.Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder, found a file.")
    model, curves = (output_port(training, port) for port in (0, 1))
    _write(folder, folder / "config.json", model, Curves=curves, Checkpoints=int(checkpoints))
    return folder


def _write(place: pathlib.Path, file: pathlib.Path, source: Any, **written: Any) -> None:
    """Lets the plugin write a place, which is a file or a folder with it; raises WriteError if it cannot."""
    if not place.resolve().parent.is_dir():
        raise FileNotFoundError(f"{place}: expected a place in a folder that exists, found no folder {place.parent}.")
    writer = host.writer(str(file), source, written)
    with raised(writer, WriteError):
        writer.UpdatePipeline()


def _property(option: str) -> str:
    """The property of an option: exclude_first is ExcludeFirst."""
    return option if option[:1].isupper() else "".join(map(str.capitalize, option.split("_")))


def _known(name: str) -> dict[str, Any]:
    """The rows of the inputs and properties of a filter, by their names."""
    inputs = host.table()[name]["inputs"]
    return {row["name"]: row for row in (*inputs, *host.table()[name]["properties"])}


#: The words for special numbers that stand for texts which begin with them: All heads, Last token.
_SHORT = ("all", "last", "mean", "strongest")


def _specials(row: dict[str, Any]) -> dict[str, int | float]:
    """The words that stand for a number of a property, as its panel has them, the shortest first."""
    found: dict[str, int | float] = {}
    for text, value in row.get("special", [])[:1]:
        number_of = int(value) if value.is_integer() else value
        found.update({one: number_of for one in (text.split()[0].lower(), text) if one in (*_SHORT, text)})
    return found


def _converted(option: str, value: Any, row: dict[str, Any], choices: list[str]) -> Any:
    """A value of a property as filters take it, also for one of the words or choices that the property has. Raises
    ValueError for other words and kinds of values."""
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    value = value.item() if isinstance(value, numpy.generic) else -1 if value is MEAN else value
    words, is_text = row.get("words", {}), row.get("type") == "text"
    if choices and (is_text or isinstance(value, str) or value not in words.values()):
        return word(option, value, choices)
    if is_text and not isinstance(value, str):
        raise ValueError(f"{option}: expected a text, found {value!r}.")
    if is_text or "type" not in row:
        return value
    if isinstance(value, str):
        specials = _specials(row)
        for text, special in specials.items():
            if value.casefold() == text.casefold():
                return special
        others = "".join(f" or {text}" for text in list(specials)[:1])
        raise ValueError(f"{option}: expected a number{others}, found '{value}'.")
    return value if row["type"] == "float" else number(option, value)


def _set(made: Any, name: str, option: str, value: Any) -> None:
    """Gives a property of a filter a value as Python has it; raises TypeError or ValueError."""
    key, known = _property(option), _known(name)
    if key not in known:
        options = [one for one in known if one not in ("Input", "Model")]
        raise TypeError(f"{name}: expected an option among {', '.join(options)}; found '{option}'.")
    row = known[key]
    choices = list(row.get("words", ())) or row.get("choices") or (host.choices(made, key) if "type" in row else [])
    if isinstance(value, (list, tuple, numpy.ndarray)):
        value = [_converted(option, one, row, choices) for one in value]
    else:
        is_word = isinstance(value, str)
        value = _converted(option, value, row, choices)
        if is_word and not isinstance(value, str) and not row.get("each") and row.get("count", 1) > 1:  # such as no pair
            value = [value] * row["count"]
    try:
        setattr(made, key, value)
    except (OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{option}: cannot be {value!r}: {str(error).removesuffix('.')}.") from error
    held = host.held(made, row)
    if held is not None and not isinstance(value, (str, list)) and not math.isclose(held, value, rel_tol=1e-6):
        raise ValueError(f"{option}: expected {'at least' if held > value else 'at most'} {held:g}, found {value!r}.")


def filter_name(name: str) -> str:
    """The name of a filter of the plugin as it is spelled, of one in any case; raises Missing if there is none."""
    known = {one.casefold(): one for one in host.table()}
    if name.casefold() not in known:
        near = [known[one] for one in difflib.get_close_matches(name.casefold(), known, 3, 0.5)]
        raise Missing(f"the plugin has no {name}" + (f"; similar names are {', '.join(near)}" if near else ""))
    return known[name.casefold()]


def make_filter(name: str, inputs: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """A filter of the plugin with inputs and with options, such as exclude_first=True for the property ExcludeFirst.
    Options of None keep the default.

    Raises Missing if the plugin has no such filter, TypeError for an unknown option, ValueError for a bad value.
    """
    name = filter_name(name)
    host.know_class(name)
    made = getattr(filters, name)(registrationName=name, **inputs)
    try:
        for option, value in options.items():
            if value is not None:
                _set(made, name, option, value)
    except BaseException:
        delete(made)
        raise
    return made


class Renamed:
    """The old name of an attribute, which still works in this version and warns."""

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        warnings.warn(f"{self.old} is called {self.new} now.", DeprecationWarning, stacklevel=2)
        return getattr(instance, self.new)


def file_or_filter(source: Any, what: str) -> Any:
    """What can be opened: a path, or a reader or filter; raises ValueError for anything else, such as what is open as
    something else. what: what is expected, such as a recording."""
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "UpdatePipeline"):
        return source
    raise ValueError(f"expected {what} or its file, found {source!r}.")


class Proxies:
    """Proxies that are deleted together, at the end of `with` or by close()."""

    #: What messages call it.
    name = "model"
    #: What only other modules of the package call.
    _INTERNAL = frozenset({
        "chart", "check_open", "colors", "columns", "deformed", "file", "filter", "head", "kept", "made", "opened", "own",
        "pair", "pair_points", "panels", "place", "scope", "shown_by", "sides", "some_heads",
    })

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in self._INTERNAL]

    def __init__(self) -> None:
        self._proxies: list[Any] = []
        self._closed = False

    @classmethod
    @contextlib.contextmanager
    def opened(cls, source: Any, **options: Any) -> Iterator[Self]:
        """What is open already, or a file, which is closed at the end of `with`. What is made within `with` from what
        is open already is deleted at its end."""
        if isinstance(source, cls):
            if options.get("model") is not None:
                raise ValueError(f"model: expected with a file, found {source.name}, which is open; give it to open().")
            with source.scope():
                yield source
        else:
            make: Any = cls
            with make(source, **options) as made:
                yield made

    def own(self, proxy: Any) -> Any:
        """A proxy that is deleted with the others."""
        self._proxies.append(proxy)
        return proxy

    def check_open(self) -> None:
        """Raises ValueError once it is closed."""
        if self._closed:
            raise ValueError(f"{self.name} is closed.")

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Deletes at the end of `with` the proxies that were made within it."""
        self.check_open()
        kept = len(self._proxies)
        try:
            yield
        finally:
            self._delete(kept)

    def _delete(self, kept: int = 0) -> None:
        while len(self._proxies) > kept:  # consumers before producers
            delete(self._proxies.pop())

    def close(self) -> None:
        """Closes the file and frees what was computed from it; a second time does nothing."""
        self._closed = True
        self._delete()

    def __enter__(self) -> Self:
        self.check_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
