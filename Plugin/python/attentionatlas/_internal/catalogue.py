"""The figures of the tour, with what each shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from attentionatlas._internal import mixtures
from attentionatlas._internal.charts import HEADS, Drawing
from attentionatlas._internal.learning import training_curves, training_maps, training_movie, training_simplexes
from attentionatlas._internal.maps import attention, class_map, heads_alone, mixes, outputs
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.notebook import MovieFile
from attentionatlas._internal.polynomials import boundary_motion, boundary_movie, harmonics
from attentionatlas._internal.spheres import deformed_torus, layer_norm, unembedding_sphere
from attentionatlas._internal.style import HEAD_COLORS

#: A page of a figure: the end of the file's name, function, arguments.
FigurePage = tuple[str, Drawing, dict[str, Any]]
Pages = Callable[[SmallModel], Iterable[FigurePage]]


class Figure(NamedTuple):
    """A figure of the tour: its title, what it shows, its pages for a model, and the end of a movie's name with its
    function, or None."""

    title: str
    sentence: str
    pages: Pages
    movie: tuple[str, Callable[..., MovieFile]] | None = None


def _one(name: str, draw: Drawing) -> Pages:
    """The pages of a figure that has one."""
    return lambda model: [(name, draw, {})]


def _attention_pages(model: SmallModel) -> Iterator[FigurePage]:
    for first in range(0, model.head_count, HEADS):
        heads = range(first, min(first + HEADS, model.head_count))
        name = "attention" if len(heads) == model.head_count else f"attention-heads-{first}-{heads[-1]}"
        yield name, attention, {"heads": heads}


def _mix_pages(model: SmallModel) -> list[FigurePage]:
    return [(f"mixes-head-{head}", mixes, {"head": head}) for head in range(model.head_count)]


def _output_pages(model: SmallModel) -> Iterator[FigurePage]:
    yield "outputs", outputs, {"scale": "Additive"}
    yield "outputs-shared-range", outputs, {"scale": "SharedRange"}


def _harmonic_pages(model: SmallModel) -> Iterator[FigurePage]:
    for first in range(0, model.head_count, len(HEAD_COLORS)):
        yield "harmonics" if first == 0 else f"harmonics-from-{first}", harmonics, {"first": first}


FIGURES = {
    "layer-norm": Figure(
        "Layer normalization as geometry",
        "Word embeddings (small dots) move along the grey lines to the plane orthogonal to (1, 1, 1) and "
        "there to the circle of radius \u221a3, where a word is an angle; the numbered dots are the tokens.",
        _one("layer-norm", layer_norm),
    ),
    "class-map": Figure(
        "The transformer as a map of the torus",
        "The color of each point is the next token that the transformer predicts for that pair of word "
        "embeddings, paler where it is less certain; the dots are the pairs of the vocabulary in the color "
        "of their true next token.",
        _one("class-map", class_map),
    ),
    "attention": Figure(
        "Attention pattern of each head",
        "How much token 2 attends to token 1, from white (not at all) to black (to it alone), by softmax "
        "above and hardmax below; the line is the decision boundary, where the score of the head is zero.",
        _attention_pages,
    ),
    "frontier-motion": Figure(
        "The decision boundary in motion",
        "As the phases of its harmonics turn, the decision boundary of a head, the zero line of its score, "
        "takes many shapes: six of the last head in print, and a movie of the first three heads; at 0\u00b0 it "
        "is the boundary of the model. The walk keeps the ties of the harmonics, but not those that a head "
        "of dimension 1 or 2 has beyond them.",
        _one("frontier-motion", boundary_motion),
        ("frontier-motion", boundary_movie),
    ),
    "mixes": Figure(
        "What each head mixes: words, positions, and both",
        "The vectors that the attention mixes as colors (their three components are red, green and blue, "
        "on one scale): the word part, the position part and their sum, by softmax above and hardmax "
        "below; the edges are those of the attention pattern, whose decision boundary is the black line.",
        _mix_pages,
    ),
    "outputs": Figure(
        "What the heads write, and their sum",
        "The output of each head as colors, their sum, and the sum with the residual: first on a scale "
        "on which colors add up as the vectors do (dark is negative), then over their common range; "
        "the edges of the sum are the edges of the heads.",
        _output_pages,
    ),
    "deformed-torus": Figure(
        "The attention layer as a deformed torus",
        "The torus at the outputs of the attention layer: as they are, whitened, and pushed to the unit "
        "sphere with the borders of the unembedding; darker with the first angle in red, with the second in "
        "blue.",
        _one("deformed-torus", deformed_torus),
    ),
    "unembedding-sphere": Figure(
        "The unembedding as cells of the sphere",
        "Each direction of the output predicts the token of its cell; white dots are the normalized rows of "
        "the unembedding, black ones the normalized outputs at the token pairs, which no longer form a grid.",
        _one("unembedding-sphere", unembedding_sphere),
    ),
    "heads-alone": Figure(
        "Each head alone",
        "The class map of each head by itself, without the residual, beside that of all heads, with the "
        "share of token pairs predicted correctly: the accuracies of the heads do not add up to the whole.",
        _one("heads-alone", heads_alone),
    ),
    "simplex": Figure(
        "Accuracy of mixtures of three heads",
        "The heads at the corners, their mixtures between them: the accuracy over all token pairs, which is "
        "the model's own at the cross in the centre (without its residual), over the pairs of one true next "
        "token, and whether one pair is predicted correctly.",
        mixtures.pages,
    ),
    "harmonics": Figure(
        "The scores as trigonometric polynomials",
        "The score of a head before softmax has just these eleven harmonics of the two angles, two of "
        "which are tied to others: the coefficients of each head.",
        _harmonic_pages,
    ),
    "training-curves": Figure(
        "Learning jointly and head by head",
        "Loss and accuracy of a transformer of the same size that learns the same task from the beginning: "
        "all heads at once, one head after the other with what was learned frozen (grey lines), and the same "
        "with the initial queries, keys and values, as in the published experiment.",
        _one("training-curves", training_curves),
    ),
    "training-maps": Figure(
        "A transformer learns its map",
        "The map of predicted next tokens and, below, the torus at the outputs of the attention layer in the "
        "same colors, at three steps and as a movie: the borders move until each dot lies in its color.",
        _one("training-maps", training_maps),
        ("training", training_movie),
    ),
    "training-simplexes": Figure(
        "Heads that share the work",
        "Accuracy of mixtures of three heads without residual, for three trainings each: trained as usual "
        "(above) and with a penalty of weight \u03bb under which each pair asks for one head that predicts it "
        "alone (below); any: the share of pairs that at least one head predicts correctly by itself.",
        _one("training-simplexes", training_simplexes),
    ),
}
