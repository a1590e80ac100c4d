"""Findings about training: the birth of induction, grokking, the fractal of beliefs, and the two drops of statistical
induction."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.charts import Page
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.style import GREY, HEAD_COLORS
from attentionatlas.findings.base import Drawn, Result, highest, name_of, number, row, step_axis, threshold_line
from attentionatlas.findings.study import Study, ids, log_softmax

#: The Mess3 process (Marzen and Crutchfield 2017; as in Shai et al. 2024).
ALPHA, X = 0.85, 0.05
#: Sequences on which beliefs are regressed, half of them to fit.
SEQUENCES = 3000


def mess3(alpha: float = ALPHA, x: float = X) -> NDArray[Any]:
    """The matrices of Mess3: [symbol, state, next state], the probabilities of symbol and next state."""
    beta, y = (1 - alpha) / 2, 1 - 2 * x
    move = numpy.full((3, 3), x)
    numpy.fill_diagonal(move, y)
    say = numpy.full((3, 3), beta)
    numpy.fill_diagonal(say, alpha)
    return say[:, None, :] * move[None]


def draw_process(matrices: NDArray[Any], count: int, length: int, seed: int = 0) -> NDArray[Any]:
    """Symbols of a hidden Markov process, started in its stationary distribution, which is uniform: [count, length]."""
    rng = numpy.random.default_rng(seed)
    state = rng.integers(0, matrices.shape[1], count)
    symbols = numpy.empty((count, length), int)
    joint = matrices.transpose(1, 0, 2).reshape(matrices.shape[1], -1).cumsum(axis=1)
    for t in range(length):
        choice = (rng.random(count)[:, None] > joint[state]).sum(axis=1).clip(0, joint.shape[1] - 1)
        symbols[:, t], state = numpy.divmod(choice, matrices.shape[2])
    return symbols


def beliefs_of(matrices: NDArray[Any], symbols: NDArray[Any]) -> NDArray[Any]:
    """The probabilities of the states after each symbol, by Bayes' rule: [sequences, positions, states]."""
    count, length = symbols.shape
    belief = numpy.full((count, matrices.shape[1]), 1 / matrices.shape[1])
    found = numpy.empty((count, length, matrices.shape[2]))
    for t in range(length):
        belief = numpy.einsum("ns,nst->nt", belief, matrices[symbols[:, t]])
        belief /= belief.sum(axis=1, keepdims=True)
        found[:, t] = belief
    return found


def regress(inputs: NDArray[Any], targets: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """A linear regression with intercept on the first half of the rows; the predictions and R2 of the second half."""
    inputs = numpy.column_stack([inputs, numpy.ones(len(inputs))])
    half = len(inputs) // 2
    weights, *_ = numpy.linalg.lstsq(inputs[:half], targets[:half], rcond=None)
    predicted, exact = inputs[half:] @ weights, targets[half:]
    rest = ((predicted - exact) ** 2).sum()
    return predicted, float(1 - rest / ((exact - exact.mean(axis=0)) ** 2).sum())


_CORNERS = numpy.array([[0, 0], [1, 0], [0.5, 3**0.5 / 2]])


def _simplex(axes: Any, beliefs: NDArray[Any], colors: NDArray[Any], title: str) -> None:
    axes.plot(*_CORNERS[[0, 1, 2, 0]].T, color=GREY, linewidth=0.5)
    axes.scatter(*(beliefs @ _CORNERS).T, s=1.2, c=colors, linewidths=0, rasterized=True)
    axes.set(title=title, xlim=(-0.2, 1.2), ylim=(-0.2, 1.05), aspect="equal")
    axes.set_axis_off()


def belief_fractal(study: Study, page: Page) -> Drawn:
    """Whether the residual stream holds the beliefs of an ideal observer, linearly."""
    matrices = mess3()
    symbols = draw_process(matrices, SEQUENCES, study.positions or 10)
    exact = beliefs_of(matrices, symbols).reshape(-1, 3)
    runs: dict[str, PathLike | None] = {"trained": None}
    try:
        runs["untrained"] = next(iter(study.checkpoints().values()))
    except Missing:
        pass
    fits = {name: regress(study.last_residual(config, TokenIds=ids(symbols)), exact) for name, config in runs.items()}
    half = len(exact) // 2
    shades = numpy.array([to_rgb(color) for color in (HEAD_COLORS[4], HEAD_COLORS[2], HEAD_COLORS[0])])
    colors = (exact[half:] @ shades).clip(0, 1)
    figure, axes = row(page, 1 + len(fits), f"{study.name}: beliefs about the three hidden states", 62)
    _simplex(axes[0], exact[half:], colors, "Exact, by Bayes\u2019 rule")
    for panel, (name, (predicted, share)) in zip(axes[1:], fits.items()):
        _simplex(panel, predicted, colors, f"Residual stream, {name}: R\u00b2 {number(share, 3)}")
    quality = {name: fit[1] for name, fit in fits.items()}
    words = "; ".join(f"{name} R\u00b2 {number(value, 4)}" for name, value in quality.items())
    return figure, Result(
        quality["trained"] > 0.99 and quality["trained"] > quality.get("untrained", 0),
        words,
        {"R2": quality},
        "R\u00b2 of a linear regression of the exact beliefs (three probabilities) on the last residual stream, "
        "fitted on "
        f"half of {SEQUENCES:,} sequences and measured on the other half.",
        "Holds if it is above 0.99 and above that of the untrained model.",
    )


def _steepest(steps: NDArray[Any], values: NDArray[Any]) -> float:
    """The step of the fastest rise of values: in the middle of two measurements, of means over three of them where there
    are many."""
    if len(values) >= 60:
        values = numpy.convolve(numpy.pad(values, 1, mode="edge"), numpy.full(3, 1 / 3), mode="valid")
    rates = numpy.diff(values) / numpy.diff(steps)
    at = int(numpy.nanargmax(rates))
    return float(steps[at] + steps[at + 1]) / 2


def _copy_losses(study: Study, config: PathLike) -> tuple[float, float]:
    """The mean loss of the first and of the second block of repeated random tokens, in nats."""
    logits, columns = study.logits(config, **study.repeats(seed=3))
    chances = log_softmax(logits)[:-1]
    same = columns["Sequence"][1:] == columns["Sequence"][:-1]
    losses = -chances[numpy.arange(len(chances)), columns["TokenId"][1:]]
    position = columns["Position"][1:]
    return losses[same & (position < study.block)].mean(), losses[same & (position > study.block)].mean()


def _measured_birth(study: Study, steps: Any, losses: NDArray[Any], inductive: NDArray[Any]) -> NDArray[Any]:
    """Steps, the loss that falls and the score that rises: of the curves where they have both, else of checkpoints."""
    try:
        curves = study.curves()
        names = ("Step", "Repeat Loss", "Induction")
        columns = numpy.array([curves[name] for name in names])
    except (Missing, KeyError):
        return steps, losses[:, 1] - losses[:, 0], inductive
    return columns[:, numpy.isfinite(columns).all(axis=0)]


def _draw_losses(axes: Any, steps: NDArray[Any], losses: NDArray[Any]) -> None:
    axes.plot(steps, losses[:, 0], color=GREY, label="first block: nothing to copy")
    axes.plot(steps, losses[:, 1], color=HEAD_COLORS[4], label="second block: a copy", marker=".", markersize=3)
    axes.set(title="Loss on repeated random tokens, at the checkpoints", ylabel="Loss, nats")


def _draw_scores(axes: Any, steps: Any, inductive: NDArray[Any], previous: NDArray[Any]) -> NDArray[Any]:
    """The induction scores of all heads, and the previous-token score of the strongest one; returns the former's."""
    best, before = highest(inductive[-1]), highest(previous[-1])
    for place in numpy.ndindex(*inductive.shape[1:]):
        style, width = ("-", 1.2) if place == best else (":", 0.6)
        axes.plot(steps, inductive[(slice(None), *place)], color=HEAD_COLORS[0], linestyle=style, linewidth=width)
    axes.plot(steps, previous[(slice(None), *before)], color=HEAD_COLORS[1], label=f"previous token, head {name_of(before)}")
    axes.plot([], [], color=HEAD_COLORS[0], label=f"induction, head {name_of(best)} (dotted: the others)")
    axes.set(title="Scores of the heads, at the checkpoints", ylabel="Mean weight", ylim=(-0.03, 1.03))
    return best


def birth(study: Study, page: Page) -> Drawn:
    """Whether the loss on repetitions falls when the scores of induction heads rise."""
    checkpoints = study.checkpoints()
    steps = numpy.array(list(checkpoints))
    scores = [study.head_scores(config) for config in checkpoints.values()]
    with study.scope():
        losses = numpy.array([_copy_losses(study, config) for config in checkpoints.values()])
    inductive = numpy.array([score["Induction"] for score in scores])
    figure, (above, below) = row(page, 2, f"{study.name}: the birth of induction heads", 52, 1)
    _draw_losses(above, steps, losses)
    best = _draw_scores(below, steps, inductive, numpy.array([score["Previous Token"] for score in scores]))
    measured, falling, rising = _measured_birth(study, steps, losses, inductive[(slice(None), *best)])
    fall, rise = _steepest(measured, -falling), _steepest(measured, rising)
    for axes in (above, below):
        step_axis(axes, steps)
        axes.axvline(fall, color=HEAD_COLORS[4], linestyle="--", linewidth=0.6)
        axes.axvline(rise, color=HEAD_COLORS[0], linestyle="--", linewidth=0.6)
        axes.legend(fontsize="small")
    at = numpy.clip(numpy.searchsorted(measured, rise) - 1, 0, len(measured) - 2)
    apart, spacing, last = abs(fall - rise), float(numpy.diff(measured)[at]), float(inductive[(-1, *best)])
    return figure, Result(
        bool(last > 0.3 and apart <= max(50, spacing)),
        f"steepest fall at step {fall:.0f}, steepest rise at step {rise:.0f}: {apart:.0f} steps apart (measured every "
        f"{spacing:.0f} steps there)",
        {"fall": float(fall), "rise": float(rise), "apart": float(apart), "spacing": spacing, "steps": steps,
         "loss of first block": losses[:, 0], "loss of second block": losses[:, 1], "induction": inductive},
        "The steps at which the loss on the copied block falls fastest and the largest induction score rises "
        "fastest; of the curves of the training, means over three measurements, or else of the checkpoints.",
        "Holds if they are at most 50 steps, or one measurement, apart and the score ends above 0.3.",
    )


def _column(curves: dict[str, NDArray[Any]], *names: str) -> NDArray[Any]:
    """The first column of one of these names, whatever its case; raises Missing."""
    known = {name.lower().replace("-", " "): values for name, values in curves.items()}
    for name in names:
        if name in known:
            return known[name]
    raise Missing(f"curves.csv has no {names[0]}; it has {', '.join(curves)}")


def _first_above(steps: NDArray[Any], values: NDArray[Any], level: float) -> float | None:
    above = numpy.flatnonzero(values > level)
    return float(steps[above[0]]) if len(above) else None


def grokking(study: Study, page: Page) -> Drawn:
    """Whether the model generalizes long after it has learned its training pairs by heart."""
    curves = study.curves()
    steps = _column(curves, "step")
    train = _column(curves, "train accuracy", "training accuracy")
    test = _column(curves, "test accuracy", "accuracy")
    known = numpy.isfinite(train) & numpy.isfinite(test)
    learned, general = (_first_above(steps[known], values[known], 0.99) for values in (train, test))
    figure, (axes,) = row(page, 1, None, 62)
    axes.plot(steps[known], train[known], color=HEAD_COLORS[1], label="pairs that are trained on")
    axes.plot(steps[known], test[known], color=HEAD_COLORS[0], label="pairs that are not")
    step_axis(axes, steps[known])
    axes.set(title=f"{study.name}: accuracy", ylabel="Accuracy", ylim=(-0.03, 1.05))
    threshold_line(axes, 0.99)
    axes.legend()
    words = f"train > 99 % at step {learned:,.0f}" if learned is not None else "train never > 99 %"
    best = f"; test at most {100 * test[known].max():.1f} %"
    words += f", test > 99 % at step {general:,.0f}" if general is not None else best
    return figure, Result(
        bool(learned and general and general > 3 * learned),
        words,
        {"train": learned, "test": general, "last test accuracy": float(test[known][-1])},
        "The first measured step with an accuracy above 0.99 on the pairs that are trained on, and on the others.",
        "Holds if both are reached and the second is more than 3 times as late.",
    )


def draw_chains(states: int, count: int, length: int, seed: int = 0) -> NDArray[Any]:
    """Sequences of random Markov chains, each with rows of its own from Dirichlet(1, ..., 1), started in its stationary
    distribution: [count, length]."""
    rng = numpy.random.default_rng(seed)
    chains = rng.dirichlet(numpy.ones(states), (count, states))
    stationary = numpy.linalg.matrix_power(chains, 256)[:, 0]
    symbols = numpy.empty((count, length), int)
    odds = stationary
    for t in range(length):
        symbols[:, t] = (rng.random(count)[:, None] > odds.cumsum(axis=1)).sum(axis=1).clip(0, states - 1)
        odds = chains[numpy.arange(count), symbols[:, t]]
    return symbols


def counting_losses(symbols: NDArray[Any], states: int) -> NDArray[Any]:
    """The mean losses of predicting each symbol but the first, in nats: by the counts of symbols so far (unigram) and by
    those after the last symbol, which is Bayes' rule for Dirichlet(1, ..., 1) rows (bigram)."""
    count, length = symbols.shape
    rows = numpy.arange(count)
    single, double = numpy.ones((count, states)), numpy.ones((count, states, states))
    losses = numpy.zeros(2)
    for t in range(length - 1):
        now, following = symbols[:, t], symbols[:, t + 1]
        single[rows, now] += 1
        for i, counts in enumerate((single, double[rows, now])):
            losses[i] -= numpy.log(counts[rows, following] / counts.sum(axis=1)).mean()
        double[rows, now, following] += 1
    return losses / (length - 1)


def two_drops(study: Study, page: Page) -> Drawn:
    """Whether the loss of statistical induction falls to the unigram loss first and to the bigram loss later."""
    states, length = study.vocabulary, study.positions or 100
    symbols = draw_chains(states, 200, length)
    many = draw_chains(states, 20000, length, seed=1)
    unigram, bigram = counting_losses(many, states)
    checkpoints = study.checkpoints()
    steps, measured = numpy.array(list(checkpoints)), []
    for config in checkpoints.values():
        logits, _ = study.logits(config, TokenIds=ids(symbols))
        chances = log_softmax(logits[:, :states]).reshape(*symbols.shape, states)[:, :-1]
        measured.append(-numpy.take_along_axis(chances, symbols[:, 1:, None], axis=2).mean())
    losses = numpy.array(measured) - counting_losses(symbols, states)[1] + bigram  # the luck of these sequences
    figure, (axes,) = row(page, 1, None, 66)
    axes.plot(steps, losses, color=HEAD_COLORS[0], marker=".", markersize=4, label="the model")
    for level, name, color in (
        (numpy.log(states), "even", GREY),
        (unigram, "counts of symbols", HEAD_COLORS[1]),
        (bigram, "counts of pairs: Bayes", HEAD_COLORS[2]),
    ):
        axes.axhline(level, color=color, linestyle="--", linewidth=0.7, label=f"{name}: {number(level, 3)}")
    step_axis(axes, steps)
    axes.set(title=f"{study.name}: loss on new random Markov chains", ylabel="Loss, nats")
    axes.set_ylim(bigram - 0.05, min(losses.max(), numpy.log(states) + 0.3) + 0.02)
    axes.legend()
    plateau = steps[abs(losses - unigram) < 0.02]
    excess = float(losses[-1] - bigram)
    rest = "no stop at the unigram loss"
    if len(plateau):
        rest = f"within 0.02 of the unigram loss from step {plateau[0]} to {plateau[-1]}"
    return figure, Result(
        bool(len(plateau) and excess < 0.02),
        f"{rest}; ends {number(excess, 4)} nats above Bayes ({number(bigram, 4)}; unigram {number(unigram, 4)})",
        {"unigram": float(unigram), "bigram": float(bigram), "excess": excess, "steps": steps, "loss": losses,
         "plateau": plateau},
        "The mean loss of each checkpoint on 200 new sequences, beside the losses of exact predictors: by the "
        "counts of symbols so far, and by the counts of pairs, which is Bayes\u2019 rule here.",
        "Holds if a checkpoint is within 0.02 nats of the unigram loss and the last one within 0.02 nats of Bayes.",
    )
