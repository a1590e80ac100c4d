"""Findings about the small attention-only transformers whose inputs are a torus: harmonics of scores, and heads that could
share the work."""

from __future__ import annotations

import csv
import pathlib
from typing import Any

import numpy
from matplotlib.colors import LogNorm
from numpy.typing import NDArray

from attentionatlas._internal import data
from attentionatlas._internal.charts import Page, show_matrix
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.style import BLUES, GREY, HEAD_COLORS
from attentionatlas.findings.base import Drawn, Result, number, row

MODEL, TRAININGS = "trained-n5-h3.safetensors", "training-100-seeds.csv"
#: Points of a side of the torus, and how far frequencies are shown.
_SIDE, _SHOWN = 64, 3


def _allowed(k1: int, k2: int) -> bool:
    """Whether frequencies are among those of the 11 harmonics of a score."""
    return (abs(k1) <= 1 and abs(k2) <= 1) or (k1 == 0 and abs(k2) == 2)


def harmonics(folder: pathlib.Path, page: Page) -> Drawn:
    """Whether scores are trigonometric polynomials of 11 harmonics."""
    with SmallModel.opened(folder / MODEL) as model:
        torus = model.chart(_SIDE + 1, Quantities=["Score"])
        images = [data.image(torus, f"Score {head}")[:-1, :-1] for head in range(model.head_count)]
    powers = [abs(numpy.fft.fft2(image) / image.size) ** 2 for image in images]  # [k2, k1]
    numbers = numpy.fft.fftfreq(_SIDE, 1 / _SIDE).round().astype(int)
    inside = numpy.array([[_allowed(k1, k2) for k1 in numbers] for k2 in numbers])
    outside = [float(power[~inside].sum() / power.sum()) for power in powers]
    figure, axes = row(page, len(powers), "Fourier coefficients of the scores over the torus", 62)
    shown = numpy.arange(-_SHOWN, _SHOWN + 1)
    for head, (panel, power) in enumerate(zip(axes, powers)):
        values = numpy.sqrt(power[numpy.ix_(shown, shown)])
        show_matrix(panel, numpy.maximum(values, 1e-9), page.pixels(3), cmap=BLUES, norm=LogNorm(1e-4, values.max()))
        for (i, j), value in numpy.ndenumerate(values):
            if value > 1e-4:
                dark = value > 0.05 * values.max()
                panel.text(j, i, number(value), ha="center", va="center", size="x-small", color="white" if dark else "black")
        panel.set_xticks(range(len(shown)), [str(k).replace("-", "\u2212") for k in shown])
        panel.set_yticks(range(len(shown)), [str(k).replace("-", "\u2212") for k in shown])
        panel.set(title=f"Head {head}: moduli", xlabel="Frequency in \u03b8\u2081")
    axes[0].set_ylabel("Frequency in \u03b8\u2082")
    return figure, Result(
        max(outside) < 1e-10,
        f"at most {max(outside):.0e} of the energy of a head outside of the 11 harmonics".replace("-", "\u2212"),
        {"outside": outside},
        f"The energy of the Fourier coefficients of the score on {_SIDE} x {_SIDE} points of the torus outside of the "
        "harmonics 1, cos and sin of \u03b8\u2081, \u03b8\u2082 and 2\u03b8\u2082, and the four products of those "
        "of \u03b8\u2081 and \u03b8\u2082.",
        "Holds if it is below 1e\u221210, the precision of the numbers.",
    )


def _trainings(folder: pathlib.Path) -> dict[str, dict[str, NDArray[Any]]]:
    """The trainings of 10,500 steps at rate 0.01 with all pairs, without a penalty: columns by mode."""
    path = folder / TRAININGS
    if not path.is_file():
        raise Missing(f"{TRAININGS} not found")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = {"Steps": 10500, "Learning Rate": 0.01, "Batch Size": 0, "Specialization": 0}
    rows = [r for r in rows if all(numpy.isclose(float(r[name]), value) for name, value in wanted.items())]
    modes: dict[str, list[dict[str, float]]] = {}
    for entry in rows:
        modes.setdefault(entry["Mode"], []).append({n: float(v) for n, v in entry.items() if n != "Mode"})
    return {mode: {n: numpy.array([e[n] for e in entries]) for n in entries[0]} for mode, entries in modes.items()}


def boosting(folder: pathlib.Path, page: Page) -> Drawn:
    """Whether heads that are trained one after the other do worse than heads that are trained together."""
    modes = _trainings(folder)
    joint, boosted = modes["Joint"], modes["Boosting"]
    figure, axes = row(page, 2, "100 trainings of three heads, five tokens, 10,500 steps", 62)
    bins = numpy.arange(0.5, 1.08, 0.04) - 0.02
    for values, color, label in ((joint, HEAD_COLORS[0], "together"), (boosted, HEAD_COLORS[1], "one after the other")):
        axes[0].hist(values["Accuracy"], bins, color=color, alpha=0.75, label=label)
        axes[1].plot(numpy.sort(values["Loss"]), numpy.arange(len(values["Loss"])) + 1, color=color, label=label)
    axes[0].set(title="Accuracy at the end", xlabel="Accuracy", ylabel="Seeds")
    axes[1].set(title="Loss at the end, sorted", xlabel="Loss, nats", ylabel="Seeds with less", xscale="log")
    axes[1].xaxis.set_major_formatter(lambda value, _: f"{value:.0e}".replace("e-0", "e\u2212").replace("e+00", ""))
    axes[0].legend(loc="upper left")
    perfect = {name: int((values["Accuracy"] == 1).sum()) for name, values in modes.items()}
    losses = {name: float(numpy.median(values["Loss"])) for name, values in modes.items()}
    return figure, Result(
        perfect["Boosting"] < perfect["Joint"] and losses["Boosting"] > losses["Joint"],
        f"{perfect['Joint']} of {len(joint['Seed'])} seeds learn everything together, {perfect['Boosting']} one after the "
        "other",
        {"perfect": perfect, "median loss": losses},
        "The number of seeds whose accuracy is 1 after as many steps in all.",
        "Holds if fewer seeds learn everything, with a larger median loss, when heads are trained one after the other.",
    )


def shared_work(folder: pathlib.Path, page: Page) -> Drawn:
    """Whether heads share the pairs among them."""
    joint = _trainings(folder)["Joint"]
    alone = numpy.stack([values for name, values in joint.items() if name.startswith("Accuracy Head")])
    total, union = alone.sum(axis=0), joint["Union"]
    figure, axes = row(page, 2, "What single heads predict, 100 trainings", 62)
    axes[0].hist(total, numpy.arange(0.1, 2.2, 0.08), color=HEAD_COLORS[0])
    axes[0].axvline(1, color=GREY, linestyle="--", linewidth=0.6)
    axes[0].set(title="Sum of the accuracies of the heads alone", xlabel="Sum", ylabel="Seeds")
    jitter = numpy.random.default_rng(0).uniform(-0.008, 0.008, (2, len(union)))
    axes[1].scatter(total + jitter[0], union + jitter[1], s=8, color=HEAD_COLORS[0], linewidths=0)
    axes[1].plot([0, 1, 2], [0, 1, 1], color=GREY, linewidth=0.6)
    axes[1].set(title="Pairs that some head alone predicts", xlabel="Sum of the accuracies", ylabel="Share of pairs")
    axes[1].set_ylim(0, 1.05)
    divided = (abs(union - 1) < 1e-9) & (abs(total - 1) < 1e-9)
    return figure, Result(
        bool(divided.mean() < 0.05),
        f"{int(divided.sum())} of {len(union)} seeds divide the pairs among the heads; some head alone predicts "
        f"{100 * union.mean():.0f} % of the pairs in the mean, and the accuracies add up to {number(total.mean())}",
        {"divided": int(divided.sum()), "mean union": float(union.mean()), "mean sum": float(total.mean())},
        "Seeds in which every pair is predicted by exactly one head alone, without the others and the residual stream.",
        "Holds if less than 5 % of the seeds do that.",
    )
