"""The figures of training: a transformer of a model's size learns the model's task anew."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.ticker import FuncFormatter
from attentionatlas._internal.host import at_time

from attentionatlas._internal import data, movies
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.charts import MILLIMETRE, Page, drawn_from, made_from, show_map, torus_axes
from attentionatlas._internal.maps import show_classes, show_pairs
from attentionatlas._internal.mixtures import accuracy_bar, show_simplex, title_above
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.notebook import MovieFile
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.space import Scene
from attentionatlas._internal.style import GREY

#: Of each head, or of all together.
STEPS = 3500
#: Token pairs times heads: more would train for minutes.
LARGEST = 40000
#: The weight of the penalty in the figure of it.
SPECIALIZATION = 0.3
SEEDS = 3

MODES = {
    "Joint": "All heads at once",
    "Boosting": "Head by head",
    "BoostingOutputOnly": "Head by head, outputs alone",
}
_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def _training(model: SmallModel, **properties: Any) -> Any:
    """A training on the task of the model; raises Missing if it has none or is too large."""
    if model.pair_points()[1] is None:
        raise Missing(f"{model.name} has no next_token")
    if model.token_count**2 * model.head_count > LARGEST:
        raise Missing(f"training with {model.token_count} tokens and {model.head_count} heads takes too long")
    sizes = {"Heads": model.head_count, "HeadDimension": model.dimension, "ModelFile": str(model.file())}
    return model.filter("AttentionOnlyTraining", **sizes, **properties)


def _power_of_ten(value: float, _: object) -> str:
    return f"10{str(round(math.log10(value))).translate(_RAISED)}"


@drawn_from(SmallModel)
def training_curves(model: SmallModel, page: Page) -> Any:
    """Loss and accuracy against the step: all heads at once, and one head after the other."""
    columns = 2 if page.width_mm >= 120 else 1
    height, title = 75 if columns == 2 else 120, "Learning jointly and head by head"
    figure, (losses, shares) = page.panels(2, columns, title, square=False, height_mm=height)
    for mode, text in MODES.items():
        training = _training(model, Mode=mode, Steps=STEPS * model.head_count, CheckpointEvery=10)
        table = data.table(training, port=1)
        losses.plot(table["Step"], table["Loss"])
        shares.plot(table["Step"], table["Accuracy"], label=f"{text}: {100 * table['Accuracy'][-1]:.0f} %")
    losses.set(ylabel="Loss", yscale="log")
    losses.yaxis.set_major_formatter(FuncFormatter(_power_of_ten))
    shares.set(ylabel="Accuracy", ylim=(-0.02, 1.02))
    for panel in (losses, shares):
        for head in range(1, model.head_count):
            panel.axvline(head * STEPS, color=GREY, linewidth=0.4, zorder=0)
        panel.set(xlabel="Step", xlim=(0, model.head_count * STEPS))
        panel.set_xticks([head * STEPS for head in range(model.head_count + 1)])
    shares.legend(loc="lower right", frameon=True, framealpha=1, edgecolor="none")
    return figure


def _at(model: SmallModel, training: Any, step: float) -> Any:
    """The model at a step of a training."""
    return model.own(at_time(training, step))


@drawn_from(SmallModel)
def training_maps(model: SmallModel, page: Page) -> Any:
    """The class map and the deformed torus at three steps of a training."""
    training = _training(model, Steps=STEPS, CheckpointEvery=10)
    table = data.table(training, port=1)
    accuracies = dict(zip(table["Step"], table["Accuracy"]))
    figure, axes = page.panels(6, 3, "A transformer learns its map")
    shown = []
    for column, step in enumerate((0, min(100, STEPS), STEPS)):
        learner = _at(model, training, step)
        torus_axes(axes[column], column, 3, 3)
        axes[column].set_title(f"Step {step}: {100 * accuracies[step]:.0f} %")
        shown.append((axes[column], learner))
        torus = model.chart(401, Input=learner, Quantities=["ClassColor", "Output"])
        scene = Scene(page.pixels(3))
        scene.show(model.deformed(torus, "Whitened"), "ClassColor")
        scene.place(axes[3 + column])
    page.fit(figure)
    for panel, learner in shown:
        show_classes(model, panel, model.pair_points(Input=learner)[0], page.pixels(3), Input=learner)
    return figure


@made_from(SmallModel)
def training_movie(model: SmallModel, page: Page, path: PathLike) -> MovieFile:
    """Writes a movie of class map and deformed torus in a training; returns the path.

    Slower where the transformer learns the most.
    """
    training = _training(model, Steps=STEPS, CheckpointEvery=10)
    steps = data.table(training, port=1)["Step"]
    learner = _at(model, training, steps[-1])
    figure, (chart, space) = page.panels(2, 2, f"Step {STEPS}")
    torus_axes(chart, 0, 2, 2)
    torus = model.chart(241, Input=learner, Quantities=["ClassColor", "Output"])
    pairs = model.filter("TokenPairs", Input=learner)
    image = show_map(chart, data.image(torus, "ClassColor"))
    surface = model.deformed(torus, "Whitened")  # so that its size stays about the same
    scene = Scene(round(page.width_mm * MILLIMETRE * page.dpi / 2))
    scene.show(surface, "ClassColor")
    solid = scene.place(space, margin=1.1)
    with movies.Movie(page.fit(figure), path, page.dpi) as movie:
        for frame in range(movies.FRAMES):
            share = (frame / max(movies.FRAMES - 1, 1)) ** 2.5
            learner.ForcedTime = steps[round(share * (len(steps) - 1))]
            figure.suptitle(f"Step {learner.ForcedTime:.0f}", x=0.01, horizontalalignment="left")
            image.set_data(data.image(torus, "ClassColor"))
            solid.set_data(scene.pixels())
            dots = show_pairs(chart, data.fetch(pairs))
            movie.add_frame()
            for dot in dots:
                dot.remove()
    return MovieFile(path)


@drawn_from(SmallModel)
def training_simplexes(model: SmallModel, page: Page) -> Any:
    """The accuracy of mixtures of three heads, trained as usual and with a penalty, for three seeds."""
    if model.head_count < 3:
        raise Missing(f"a simplex needs three heads, {model.name} has {model.head_count}")
    figure, axes = page.panels(2 * SEEDS, SEEDS, "Heads that share the work")
    for number, panel in enumerate(axes):
        weight, seed = (0, SPECIALIZATION)[number // SEEDS], number % SEEDS
        training = _training(
            model, Steps=STEPS, CheckpointEvery=STEPS, Seed=seed, Specialization=weight, Runs=1
        )
        union = data.table(training, port=2)["Union"][0]
        last = _at(model, training, STEPS)
        triangle = data.fetch(model.filter("HeadAccuracySimplex", Input=last, Resolution=256))
        show_simplex(panel, triangle, "Accuracy")
        title_above(panel, f"\u03bb = {weight:g}: any {100 * union:.0f} %")
    accuracy_bar(figure, axes)
    return page.fit(figure)
