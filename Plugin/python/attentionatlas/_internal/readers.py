"""Readers of files as the plugin has them, its filters with options, and proxies that are deleted together."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy
from paraview import simple
from vtkmodules.util.misc import calldata_type
from vtkmodules.util.vtkConstants import VTK_STRING

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike, number
from attentionatlas._internal.plugin import load_plugin


class Missing(ValueError):
    """Something that a figure or table needs is missing from the file or the plugin; the message says what."""


def open_model(path: PathLike) -> Any:
    """A reader of a small model's file, up to date.

    Raises FileNotFoundError for a missing file, ValueError for one that holds no model.
    """
    path = pathlib.Path(path)
    return _open(path, "Heads", "AttentionOnlyModelReader", registrationName=path.stem, FileNames=[str(path)])


def open_recording(path: PathLike) -> Any:
    """A reader of a recording's file, up to date; raises as open_model."""
    path = pathlib.Path(path)
    if path.is_dir() or path.is_file() and path.suffix in (".json", ".gguf") and not is_sharded_recording(path):
        raise ValueError(f"{path}: expected a recording, found a model; run it on a text first: Transformer.record.")
    return _open(path, "Rotated", "RecordingReader", registrationName=path.stem, FileName=str(path))


def open_transformer(path: PathLike, **properties: Any) -> Any:
    """A reader of a transformer, given by its config.json, its folder or a .gguf file, up to date; raises as open_model.

    properties: of the proxy.
    """
    path = pathlib.Path(path)
    path = path / "config.json" if path.is_dir() else path
    return _open(path, "Layers", "TransformerReader", "no model", FileName=str(path), **properties)


def open_corpus(path: PathLike) -> Any:
    """A reader of a file of statistics of a corpus, up to date; raises as open_model."""
    path = pathlib.Path(path)
    return _open(path, "Documents", "CorpusReader", registrationName=path.stem, FileName=str(path))


def _open(path: pathlib.Path, field: str, name: str, wrong: str = "cannot be read", **properties: Any) -> Any:
    """A reader of the plugin, whose data must have a field. wrong: what is said of others."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    load_plugin()
    reader = getattr(simple, name)(**properties)
    reader.UpdatePipeline()
    if data.field_number(reader, field) is None:
        simple.Delete(reader)
        raise ValueError(f"{path}: {wrong}; see the error reported above.")
    return reader


def holds_queries(reader: Any) -> bool:
    """Whether a recording, given by its reader, has the queries of a head."""
    layers = data.blocks(data.first_part(reader)).values()
    return any(data.has_column(head, "Query") for layer in layers for head in data.blocks(layer).values())


def has_images(reader: Any) -> bool:
    """Whether a recording is one of images."""
    fields = reader.GetDataInformation().DataInformation.GetFieldDataInformation()
    return fields.GetArrayInformation("Patch Grid") is not None


def has_pictures(reader: Any) -> bool:
    """Whether a recording is one of pictures among words."""
    fields = reader.GetDataInformation().DataInformation.GetFieldDataInformation()
    return not has_images(reader) and fields.GetArrayInformation("Picture Contents") is not None


def _header(path: PathLike) -> dict[str, Any]:
    """What a .safetensors file says of its tensors, by their names; empty for others."""
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, 1 << 26)))
    except (struct.error, ValueError):
        return {}
    return header if isinstance(header, dict) else {}


def is_model(path: PathLike) -> bool:
    """Whether a file has the tensors of a small attention-only model, by their names."""
    return any(name in _header(path) for name in ("word_embedding", "word_emb.weight"))


def is_corpus(path: PathLike) -> bool:
    """Whether a file holds statistics of a corpus, by the format that it names."""
    about = _header(path).get("__metadata__")
    return isinstance(about, dict) and about.get("format") == "attention-atlas.corpus"


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


#: Files that only transformers have, but for indices of recordings; small models and recordings are .safetensors.
OF_TRANSFORMERS = (".json", ".gguf", ".pt", ".pth", ".ckpt", ".bin")


def kind_of(path: PathLike) -> str:
    """What a file is, by its name and what is in it: model (a small one), corpus (its statistics), recording or
    transformer.

    Raises FileNotFoundError for a missing file.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file.")
    if is_sharded_recording(path):
        return "recording"
    if path.is_dir() or path.suffix in OF_TRANSFORMERS:
        return "transformer"
    return "model" if is_model(path) else "corpus" if is_corpus(path) else "recording"


def label(path: PathLike) -> str:
    """The name of a file without its ending, or of the folder of a model, which config.json stands for."""
    path = pathlib.Path(path)
    folder = path.resolve().parent if path.name == "config.json" else path.resolve()
    return folder.name if folder.is_dir() else path.stem


def write_data(source: Any, path: PathLike) -> pathlib.Path:
    """Writes what a source has to a .safetensors file, which appears complete or not at all; returns its path."""
    path = pathlib.Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"{path}: expected a name that ends with .safetensors.")
    _write(path, path, proxy=source)
    return path


def write_training(training: Any, folder: PathLike, checkpoints: bool) -> pathlib.Path:
    """Writes what TransformerTraining has trained to a folder; returns its path."""
    folder = pathlib.Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder, found a file.")
    model, curves = (simple.OutputPort(training, port) for port in (0, 1))
    _write(folder, folder / "config.json", proxy=model, Curves=curves, Checkpoints=int(checkpoints))
    return folder


def _write(place: pathlib.Path, file: pathlib.Path, **written: Any) -> None:
    """Lets ParaView write a place, which is a file or a folder with it; raises an error if nothing was written."""
    if not place.resolve().parent.is_dir():
        raise FileNotFoundError(f"{place}: expected a place in a folder that exists, found no folder {place.parent}.")
    before = file.stat() if file.exists() else None
    simple.SaveData(str(file), **written)
    if not file.exists() or file.stat() == before:
        raise OSError(f"{place}: cannot be written; see the error reported above.")


def _property(option: str) -> str:
    """The property of an option: exclude_first is ExcludeFirst."""
    return option if option[:1].isupper() else "".join(map(str.capitalize, option.split("_")))


def _known(proxy: Any) -> str:
    names = [name for name in proxy.ListProperties() if name not in ("Input", "Model") and not name.endswith("Info")]
    return ", ".join(names)


def _set(proxy: Any, name: str, option: str, value: Any) -> None:
    """Gives a property of a filter a value as Python has it; raises TypeError or ValueError."""
    key = _property(option)
    if key not in proxy.ListProperties():
        raise TypeError(f"{name}: expected an option among {_known(proxy)}; found '{option}'.")
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, (bool, numpy.generic)):
        value = int(value) if isinstance(value, bool) else value.item()
    elif isinstance(value, (tuple, numpy.ndarray)):
        value = list(value)
    vector = proxy.GetProperty(key)
    choices = list(getattr(vector, "Available", None) or [])
    for word in (value if isinstance(value, list) else [value]) if choices else ():
        if isinstance(word, str) and word not in choices:
            raise ValueError(f"{option}: expected one of {', '.join(choices)}; found '{word}'.")
    if isinstance(value, str) and not choices and vector.SMProperty.IsA("vtkSMIntVectorProperty"):
        value = number(option, value)
    try:
        setattr(proxy, key, value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{option}: cannot be {value!r}: {error}") from error


class FilterErrors:
    """What filters that are made within `with` say when they fail: it is kept here instead of reported, and named by the
    exception that follows."""

    #: Those that are kept now; None where filters report.
    current: FilterErrors | None = None

    def __init__(self) -> None:
        self.messages: list[str] = []

    def __enter__(self) -> FilterErrors:
        self._before, FilterErrors.current = FilterErrors.current, self
        return self

    def __exit__(self, *error: object) -> None:
        FilterErrors.current = self._before

    def watch(self, proxy: Any) -> None:
        """Keeps the errors of a proxy in this process."""
        made = proxy.SMProxy.GetClientSideObject()
        if made is None:
            return

        @calldata_type(VTK_STRING)  # type: ignore[misc]
        def keep(_object: Any, _event: str, text: str) -> None:
            self.messages.append(text.split("): ", 1)[-1].strip())

        made.AddObserver("ErrorEvent", keep)


def why(text: str) -> str:
    """A text of what is missing, with the message of the filter that failed, or where it is to be read."""
    kept = FilterErrors.current
    return kept.messages.pop() if kept is not None and kept.messages else f"{text}; see the error reported above."


def make_filter(name: str, inputs: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """A filter of the plugin with inputs and with options, such as exclude_first=True for the property ExcludeFirst.
    Options of None keep the default.

    Raises Missing if the plugin has no such filter, TypeError for an unknown option, ValueError for a bad value.
    """
    make = getattr(simple, name, None)
    if make is None:
        raise Missing(f"the plugin has no {name}")
    made = make(registrationName=name, **inputs)
    if FilterErrors.current is not None:
        FilterErrors.current.watch(made)
    try:
        for option, value in options.items():
            if value is not None:
                _set(made, name, option, value)
    except (TypeError, ValueError):
        simple.Delete(made)
        raise
    return made


class Proxies:
    """Proxies that are deleted together, at the end of `with` or by close()."""

    #: What messages call it.
    name = "model"

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
            raise ValueError(f"{self.name}: expected an open file, found that it was closed.")

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
            simple.Delete(self._proxies.pop())

    def close(self) -> None:
        """Closes the file and frees what was computed from it; a second time does nothing."""
        self._closed = True
        self._delete()

    def __enter__(self) -> Self:
        self.check_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
