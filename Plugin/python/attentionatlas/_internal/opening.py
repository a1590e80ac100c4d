"""Files by what they are, and trainings."""

from __future__ import annotations

import pathlib
from typing import Any

from attentionatlas._internal import host

from attentionatlas._internal.arguments import PathLike, plain
from attentionatlas._internal.corpus import Corpus
from attentionatlas._internal.errors import update
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.readers import kind_of, make_filter, model_file
from attentionatlas._internal.circuit_tables import Model
from attentionatlas._internal.recording import Recording, Transformer

def open_file(path: PathLike, model: Transformer | PathLike | None = None) -> Model | Recording | Corpus:
    """What attentionatlas.open does."""
    path, kind = pathlib.Path(path), kind_of(path)
    if path.is_dir() and model_file(path) == path and not any(path.glob("*.gguf")):
        raise ValueError(f"{path}: expected the folder of a transformer; found a folder without config.json.")
    if kind == "recording":
        return Recording(path, model)
    if model is not None:
        raise ValueError(f"model: expected with a recording, found {path}, which is none.")
    if kind == "transformer":
        return Transformer(path)
    return Corpus(path) if kind == "corpus" else SmallModel(path)


def train(task: str, **options: Any) -> Model:
    """What attentionatlas.train does."""
    host.load()
    small = plain(task) == "tokenpairs"
    chosen = options if small else {"task": task, **options}
    training = make_filter("AttentionOnlyTraining" if small else "TransformerTraining", {}, chosen)
    try:
        update(training, what=f"train {task}")
    except BaseException:
        host.delete(training)
        raise
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
