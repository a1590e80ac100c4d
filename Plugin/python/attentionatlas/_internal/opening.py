"""Files by what they are, and trainings."""

from __future__ import annotations

import pathlib
from typing import Any

from paraview import simple

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.corpus import Corpus
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.plugin import load_plugin
from attentionatlas._internal.readers import kind_of, make_filter
from attentionatlas._internal.recording import Model, Recording, Transformer

_EXPECTED = "expected a recording, a small model, or the config.json, folder or .gguf file of a transformer"


def open_file(path: PathLike, model: Transformer | PathLike | None = None) -> Model | Recording | Corpus:
    """What attentionatlas.open does."""
    path, kind = pathlib.Path(path), kind_of(path)
    if path.is_dir() and not (path / "config.json").is_file():
        raise ValueError(f"{path}: {_EXPECTED}; found a folder without config.json.")
    try:
        if kind == "transformer":
            return Transformer(path)
        if kind == "corpus":
            return Corpus(path)
        return SmallModel(path) if kind == "model" else Recording(path, model)
    except ValueError as error:
        if "see the error" not in str(error):
            raise
        raise ValueError(f"{path}: {_EXPECTED}; see the error reported above.") from error


def train(task: str, **options: Any) -> Model:
    """What attentionatlas.train does."""
    load_plugin()
    small = task == "TokenPairs"
    chosen = options if small else {"task": task, **options}
    training = make_filter("AttentionOnlyTraining" if small else "TransformerTraining", {}, chosen)
    training.UpdatePipeline()
    if data.field_number(training, "Heads") is None:
        simple.Delete(training)
        raise ValueError(f"{task}: no model; see the error reported above.")
    return SmallModel(training) if small else Transformer(training)


def corpus(model: Transformer | PathLike, files: Any, **options: Any) -> Corpus:
    """What attentionatlas.corpus does. A model that is opened for it is closed with it."""
    if isinstance(model, Transformer):
        return model.corpus(files, **options)
    opened = Transformer(model)
    try:
        measured = opened.corpus(files, **options)
    except BaseException:
        opened.close()
        raise
    measured._owned = opened
    return measured
