"""Attention Atlas in Python: models and recordings as arrays and tables, figures, pages and scenes.

    import attentionatlas as atlas

    with atlas.open("gpt2/config.json") as model:                # or a recording, or a small model
        recording = model.record("Data visualization empowers users to")
        weights = recording.attention(4, 11)                     # a NumPy array [queries, keys]
        recording.focus().to_csv("focus.csv")                    # a pandas DataFrame, or a structured array
        figure = atlas.heads.all_heads(recording)                # a matplotlib Figure
        atlas.save(figure, "heads.pdf")
        atlas.heads.weights(recording, 4, 11, ax=ax)             # into your own Axes
        recording.save("run.safetensors")
        corpus = model.corpus("book.txt")                        # every head over a text of any length

Modules have a function per figure: figures (of small models), heads, sentence, patches, embedding, focus, tokens,
proteins, circuits and texts; attribution writes the circuit of a prediction. Layers, heads and sequences, in this order, are counted from 0, negative ones from the end. web writes pages for a browser,
article a live article, scene linked views for ParaView, tour all figures, findings a figure for each claim of the
literature. paraview.simple has the plugin's filters after open or load_plugin.
What a reader, filter or writer says when it fails is the message of an Error, which is a ValueError.

Run scripts by any Python in which pip installed the wheel, or by ParaView's: pvpython script.py, with Debian's ParaView
also /usr/bin/python3.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Sequence

    import matplotlib.figure

    from attentionatlas._internal.arguments import PathLike
    from attentionatlas._internal.circuitfile import Circuit
    from attentionatlas._internal.corpus import Corpus
    from attentionatlas._internal.errors import Error, Missing
    from attentionatlas._internal.model import SmallModel
    from attentionatlas._internal.pictures import Picture
    from attentionatlas._internal.plugin import load_plugin, plugin_path
    from attentionatlas._internal.circuit_tables import Model
    from attentionatlas._internal.recording import Recording, Transformer
    from attentionatlas._internal.webpage import Page

__all__ = [
    "Circuit", "Corpus", "Error", "Missing", "Model", "Recording", "SmallModel", "Transformer", "corpus", "display",
    "load_plugin", "open", "plugin_path", "save", "train", "update", "widget",
]

#: Where names are that are imported when they are first used, as they need ParaView. The module record does not.
_LATER = {
    "Circuit": "_internal.circuitfile",
    "Corpus": "_internal.corpus",
    "Error": "_internal.errors",
    "Missing": "_internal.errors",
    "Model": "_internal.circuit_tables",
    "Recording": "_internal.recording",
    "SmallModel": "_internal.model",
    "Transformer": "_internal.recording",
    "load_plugin": "_internal.plugin",
    "plugin_path": "_internal.plugin",
}
_MODULES = (
    "article", "attribution", "circuits", "embedding", "figures", "findings", "focus", "heads", "output", "patches", "proteins", "scene",
    "sentence", "texts", "tokens", "tour", "web",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        importlib.import_module(f"{__name__}._internal")  # tells where ParaView is missing
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *_LATER})


def open(path: PathLike, model: Transformer | PathLike | None = None) -> Model | Recording | Corpus:
    """Opens a file by what it is, for `with` or until close(): a Recording, a SmallModel, a Transformer or a Corpus.

    path: a recording (safetensors, the index.json of its shards, npy, npz, pt or pth), a small attention-only model
    (safetensors), the config.json, folder or .gguf file of a transformer, or statistics of a corpus (safetensors). An
    adapter in the folder of a transformer is applied; its model.safetensors is the base alone. model: of a recording, the
    transformer that was recorded, which some tables and figures need. Loads the plugin. Raises
    FileNotFoundError for a missing file, Error for any other.
    """
    from attentionatlas._internal.opening import open_file

    return open_file(path, model)


def update(source: Any, time: float | None = None) -> None:
    """Brings a source or filter of paraview.simple up to date, also at a time; raises Error with what it says if it fails.

    UpdatePipeline leaves its output empty then, and raises nothing.
    """
    from attentionatlas._internal import errors

    errors.update(source, time)


def train(task: str, **options: Any) -> Model:
    """Trains a model until its last step: a SmallModel for the task TokenPairs, else a Transformer.

    task: TokenPairs, RepeatedTokens, Text, StatisticalInduction, ModularAddition, BeliefStates,
    ColorPatches, MaskedText or LatticeProtein. options: of the filters AttentionOnlyTraining
    and TransformerTraining, such as steps=500, heads=2, seed=1. The model's curves() are what was measured. Raises
    ValueError for a bad value.
    """
    from attentionatlas._internal.opening import train

    return train(task, **options)


def corpus(
    model: Transformer | PathLike, files: PathLike | Sequence[PathLike], *, documents: str = "Lines",
    tokens: int | None = 100_000, window: int | None = None, overlap: int = 0, layers: Sequence[int] = (),
    continue_from: PathLike | None = None, **options: Any,
) -> Corpus:
    """Runs a transformer on a text of any length and keeps what its heads do, in memory that does not grow with the text.

    model: opened, or its config.json, folder or .gguf file. files: text in UTF-8, .jsonl ("text", "tokens" or "input_ids"
    in each line) or .npy (token ids, a document a row). documents: Lines, Paragraphs or Files. tokens: at which the run
    stops, after a batch; None: at the end. window: the tokens of a sequence; None: 256, or all positions of the model if
    fewer. overlap: tokens that a window repeats of the one before. layers: those that are measured; none: all.
    continue_from: a saved Corpus of this model and these files with the same options, which goes on. options: others of the
    filter CorpusStatistics, such as contexts=50, agreement=False or dictionary_file="dictionary", whose features are measured,
    too. Raises ValueError for what cannot be run.
    """
    from attentionatlas._internal import opening

    chosen = {"documents": documents, "tokens": tokens, "window": window, "overlap": overlap, "layers": layers}
    return opening.corpus(model, files, continue_from=continue_from, **chosen, **options)


def save(figure: matplotlib.figure.Figure, path: PathLike, dpi: float = 600) -> pathlib.Path:
    """Writes a figure in the format that the file's name ends with: png, pdf or svg; the file appears complete or not at
    all. Letters stay text in an embedded font. dpi: of images in it. Returns the path."""
    from attentionatlas import output

    return output.save(figure, path, dpi)


def widget(shown: Any, view: str | None = None, **options: Any) -> Page:
    """A page for a browser, which Jupyter shows in a frame: of a model, a recording, statistics of a corpus or a file; or,
    in ParaView, of a view.

    shown: what is open, a file, a render view, or scenes of the module web. view: torus, deformed-torus or sphere of a
    small model; map, sentence, embedding or embedding-3d of a recording, of a protein also contact-map or structure, which
    needs structure=, a file; composition of a transformer; scatter or
    contexts of a corpus; by default the first. options: of the function of this view in web, such as layer=4, head=11.
    Raises ValueError for an unknown view, Missing for what the recording does not hold.
    """
    from attentionatlas import web

    return web.widget(shown, view, **options)


def display(shown: Any, width: int = 900, height: int = 600) -> Picture:
    """A picture, which Jupyter shows: of a scene of the module web, or of a dataset, a source or an output port, as views
    show it; in ParaView also of a view as it is, and of a source in a view of its own.

    width, height: in pixels. Raises ValueError for anything else, and for a source without points; OSError where ParaView
    cannot render.
    """
    from attentionatlas._internal import pictures

    return pictures.display(shown, width, height)
