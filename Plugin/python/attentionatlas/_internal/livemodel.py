"""Models as the live article has them: the parameters of a small one and of its training, and the attention of a
trained transformer at steps of its training."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy
from numpy.typing import NDArray
from attentionatlas._internal.host import at_time, delete
from vtkmodules.util.numpy_support import vtk_to_numpy

from attentionatlas._internal import data
from attentionatlas._internal.errors import Error, update
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.readers import Missing, make_filter, model_file, write_data
from attentionatlas._internal.circuit_tables import Floats
from attentionatlas._internal.recording import Transformer
from attentionatlas._internal.webpage import Block

#: Steps of a training that the page has, at most.
FRAMES = 120
#: Steps of the trained transformer's training, at most, tokens of its text and heads.
CHECKPOINTS, LENGTH, HEADS = 13, 64, 128


class Parameters:
    """The parameters of a small model as the page has them: angles of the words, positions, W_QK / sqrt(d_h) and W_O W_V
    of each head, unembedding."""

    def __init__(self, source: Any) -> None:
        arrays = {name: self._array(block) for name, block in data.blocks(data.first_part(source)).items()}
        words = arrays["word_embedding"]
        words = words - words.mean(axis=1, keepdims=True)
        u, v = numpy.array([1, 0, -1]) / 2**0.5, numpy.array([-1, 2, -1]) / 6**0.5
        self.heads = sum(name.endswith(".query") for name in arrays)
        self.tokens = len(words)
        parts = [numpy.arctan2(words @ v, words @ u), arrays["position_embedding"][:2]]
        for head in range(self.heads):
            query, key, value, output = (arrays[f"heads.{head}.{name}"] for name in ("query", "key", "value", "output"))
            parts += [query.T @ key / len(query) ** 0.5, output @ value]
        self.numbers: Floats = numpy.concatenate([part.ravel() for part in [*parts, arrays["unembedding"]]])
        self.next = arrays["next_token"].astype(int).ravel().tolist() if "next_token" in arrays else None

    @staticmethod
    def _array(block: Any) -> Floats:
        return numpy.asarray(vtk_to_numpy(block.GetRowData().GetArray(0)), dtype=float)

    def described(self, colors: Any) -> dict[str, Any]:
        return {"heads": self.heads, "tokens": self.tokens, "next": self.next, "colors": colors.tolist()}


def _shown_steps(steps: Floats) -> list[int]:
    """Numbers of steps to show: closer at the beginning, where a transformer learns the most."""
    shares = numpy.linspace(0, 1, FRAMES) ** 2
    return sorted({round(share * (len(steps) - 1)) for share in shares})


class Training:
    """A training of a small model: its parameters at steps that the page shows."""

    def __init__(self, model: SmallModel | None, steps: int, seed: int) -> None:
        options: dict[str, Any] = {"steps": steps, "seed": seed, "checkpoint_every": max(1, steps // 350)}
        if model is not None:
            options |= {"heads": model.head_count, "head_dimension": model.dimension, "model_file": str(model.path)}
        self.proxy = make_filter("AttentionOnlyTraining", {}, options)
        try:
            curves = data.table(self.proxy, port=1)
        except Error:
            delete(self.proxy)
            raise
        chosen = _shown_steps(curves["Step"])
        self.steps = [int(curves["Step"][i]) for i in chosen]
        self.losses = [float(curves["Loss"][i]) for i in chosen]
        self.accuracies = [float(curves["Accuracy"][i]) for i in chosen]
        self.frames = []
        for step in self.steps:
            learner = at_time(self.proxy, step)
            try:
                self.frames.append(Parameters(learner))
            finally:
                delete(learner)

    def save(self, path: pathlib.Path) -> None:
        """Writes the model of the last step."""
        update(self.proxy, self.steps[-1])
        write_data(self.proxy, path)

    def close(self) -> None:
        delete(self.proxy)


class Run:
    """The attention of a trained transformer on a text, at steps of its training."""

    def __init__(self, folder: pathlib.Path, text: str) -> None:
        found = sorted((int(path.name.split("-")[1]), path) for path in folder.glob("checkpoint-*") if _is_step(path))
        places = numpy.linspace(0, len(found) - 1, min(len(found), CHECKPOINTS)).round().astype(int)
        chosen = [found[i] for i in sorted(set(places.tolist()))] or [(0, folder)]
        weights = []
        for _, path in chosen:
            with Transformer(path) as model:
                if model.layer_count * model.head_count > HEADS:
                    raise Missing(f"{model.name} has more than {HEADS} heads")
                with model.record(text, record=["QueriesAndKeys"], maximum_length=LENGTH) as recording:
                    self.tokens = [token.strip() or token for token in recording.tokens()]
                    layers = range(model.layer_count)
                    weights.append(
                        [[recording.attention(layer, head) for head in range(model.head_count)] for layer in layers]
                    )
        self.weights = numpy.asarray(weights)
        self.steps = [step for step, _ in chosen]

    def _scores(self) -> Floats:
        """The mean weight of each head on what came after the same token before: [steps, layers, heads]."""
        pairs = []
        for query, token in enumerate(self.tokens):
            before = [key for key in range(query - 1) if self.tokens[key] == token]
            if before:
                pairs.append((query, before[-1] + 1))
        if not pairs:
            return numpy.zeros(self.weights.shape[:3])
        rows, columns = zip(*pairs)
        return self.weights[:, :, :, list(rows), list(columns)].mean(axis=-1)

    def best(self) -> tuple[int, int]:
        """The head that does this most at the last step."""
        scores = self._scores()[-1]
        layer, head = numpy.unravel_index(int(scores.argmax()), scores.shape)
        return int(layer), int(head)

    def forming(self) -> int:
        """The first step shown at which that head gives its target a weight of 0.3."""
        layer, head = self.best()
        found = numpy.flatnonzero(self._scores()[:, layer, head] >= 0.3)
        return int(found[0]) if len(found) else len(self.steps) - 1

    def described(self, block: Block) -> dict[str, Any]:
        shades = numpy.round(255 * self.weights).astype(numpy.uint8)
        _, layers, heads = shades.shape[:3]
        values = {"tokens": self.tokens, "layers": layers, "heads": heads, "steps": self.steps}
        return {**values, "weights": block.add(shades.reshape(-1, 1))}


def _is_step(path: pathlib.Path) -> bool:
    return path.name.split("-")[-1].isdigit() and model_file(path) != path
