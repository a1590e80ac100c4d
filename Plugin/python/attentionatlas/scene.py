"""A ParaView state of linked views on a small attention-only transformer, a recording, or a language model, which its
config.json names, on prompts or by its weights alone.

    attention-atlas scene MODEL.safetensors|RECORDING.safetensors|CONFIG.json [PROMPT...] -o SCENE.pvsm

Of an attention-only transformer four views: the class map with its token pairs, the pairs on the sphere of the
unembedding, the deformed torus, and the pairs as a spreadsheet. Token pairs that are selected in one view are
selected in all; the two views in space turn together. Of the others: see recording_scene and circuit_scene.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence as Listed
from typing import Any

from attentionatlas._internal.host import need_paraview

need_paraview("A scene")

from attentionatlas._internal import circuit_scene, recording_scene
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.model_scene import (
    LINKS as LINKS,
    build as build_model,
    clear as clear,
    save_session as save_session,
)
from attentionatlas._internal.names import own
from attentionatlas._internal.plugin import load_plugin
from attentionatlas._internal.readers import kind_of

__dir__ = own(__name__)

__all__ = ["LINKS", "build", "clear", "main", "save", "save_session"]


def build(path: PathLike, prompts: Listed[str] = ()) -> Any:
    """Builds the views of a file in the present session, those of a language model on prompts if there are some; returns
    their layout.

    Raises FileNotFoundError or ValueError for a file that is not there or neither, OSError where ParaView
    cannot render.
    """
    load_plugin()
    kind = kind_of(path)
    if kind == "transformer":
        return circuit_scene.build(path, prompts)
    if prompts:
        raise ValueError(f"{path}: expected a language model, which runs on prompts, found a {kind}.")
    if kind == "corpus":
        raise ValueError(f"{path}: expected a model or a recording, found statistics of a corpus, which have no scene.")
    return build_model(path) if kind == "model" else recording_scene.build(path)


def save(path: PathLike, state: PathLike, prompts: Listed[str] = ()) -> pathlib.Path:
    """Writes the scene of a file as a ParaView state, first under a temporary name.

    As build; the state names the file by its absolute path. Replaces what the session has.
    """
    state = pathlib.Path(state)
    if state.suffix != ".pvsm":
        raise ValueError(f"{state}: expected a name that ends with .pvsm.")
    file = pathlib.Path(path).resolve()
    return save_session(lambda: build(file, prompts), state)


def main(arguments: Listed[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="attention-atlas scene",
        description="Writes a ParaView state of linked views on a small model, a recording or a language model.",
    )
    parser.add_argument("file", metavar="FILE", help="a model, a recording, or the config.json of a language model")
    parser.add_argument("prompts", metavar="PROMPT", nargs="*", help="texts that the language model runs on")
    parser.add_argument("-o", "--output", default="scene.pvsm", help="default: scene.pvsm")
    options = parser.parse_args(arguments)
    try:
        print(save(options.file, options.output, options.prompts))
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
