"""Readers of files as the plugin has them, and proxies that are deleted together."""

import contextlib
import json
import pathlib
import struct

from paraview import simple

from attentionatlas._internal import data
from attentionatlas._internal.plugin import load_plugin


class Missing(Exception):
    """A model or the plugin has nothing to show in a figure; the message gives the reason."""


def open_model(path):
    """A reader of a model's file, up to date.

    Raises FileNotFoundError for a missing file, ValueError for one that holds no model.
    """
    path = pathlib.Path(path)
    return _open(path, "Heads", "AttentionOnlyModelReader", registrationName=path.stem, FileNames=[str(path)])


def open_recording(path):
    """A reader of a recording's file, up to date; raises as open_model."""
    path = pathlib.Path(path)
    return _open(path, "Rotated", "RecordingReader", registrationName=path.stem, FileName=str(path))


def open_transformer(path, field="Layers", **properties):
    """A reader of a language model, given by its config.json or the folder of that, up to date; raises as open_model.

    field: a number that it must have. properties: of the proxy.
    """
    path = pathlib.Path(path)
    path = path / "config.json" if path.is_dir() else path
    return _open(path, field, "TransformerReader", "no model", FileName=str(path), **properties)


def _open(path, field, name, wrong="cannot be read", **properties):
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


def holds_queries(reader):
    """Whether a recording, given by its reader, has the queries of a head."""
    layers = data.blocks(data.first_part(reader)).values()
    return any(data.has_column(head, "Query") for layer in layers for head in data.blocks(layer).values())


def has_images(reader):
    """Whether a recording is one of images."""
    fields = reader.GetDataInformation().DataInformation.GetFieldDataInformation()
    return fields.GetArrayInformation("Patch Grid") is not None


def is_model(path):
    """Whether a file has the tensors of an attention-only transformer, by their names."""
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            names = json.loads(file.read(min(length, 1 << 26)))
    except (struct.error, ValueError):
        return False
    return isinstance(names, dict) and any(name in names for name in ("word_embedding", "word_emb.weight"))


class Proxies:
    """Proxies that are deleted together. Each `with` deletes those made within it."""

    def __init__(self):
        self._proxies = []
        self._marks = []

    @classmethod
    @contextlib.contextmanager
    def opened(cls, source, *arguments, **properties):
        """What is open already, or what is opened by arguments, or a tuple of them, and closed at the end of `with`."""
        if isinstance(source, cls):
            with source:
                yield source
            return
        made = cls(*source, **properties) if isinstance(source, tuple) else cls(source, *arguments, **properties)
        try:
            yield made
        finally:
            made.close()

    def own(self, proxy):
        """A proxy that is deleted with the others."""
        self._proxies.append(proxy)
        return proxy

    def close(self, kept=0):
        """Deletes all proxies, or those after the first ones that are kept."""
        while len(self._proxies) > kept:  # consumers before producers
            simple.Delete(self._proxies.pop())

    def __enter__(self):
        self._marks.append(len(self._proxies))
        return self

    def __exit__(self, *error):
        self.close(self._marks.pop())
