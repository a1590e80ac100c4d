"""Findings about what heads would do with every token: copying, skip-trigrams, composition, attention tokens."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from attentionatlas._internal.charts import Page, color_bar, show_matrix
from attentionatlas._internal.letters import legible
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.style import GREY, HEAD_COLORS, ORANGES, SIGNED
from attentionatlas.findings.base import (
    Drawn, Place, Result, highest, name_of, name_points, number, row, show_heads, threshold_line,
)
from attentionatlas.findings.study import Study, ids, log_softmax, read_tensors
from attentionatlas.tokens import VECTORS, Tokens

#: From which induction score on a head counts as an induction head.
INDUCTIVE = 0.3
#: Skip-trigrams of each head that are tested, fillings of each, tokens of each filling, place of the source.
TRIGRAMS, FILLINGS, LENGTH, PLACE = 25, 4, 8, 3


#: What the copying of a head is.
_COPYING = (
    "Copying: the sum of the real parts of the eigenvalues of W_E W_V W_O W_U over the sum of their moduli, from \u22121 to "
    "1; random matrices are near 0."
)


def _spectra(study: Study) -> tuple[NDArray[Any], dict[Place, NDArray[Any]]]:
    """The copying of each head, [layers, heads], and the eigenvalues of its OV circuit, {(layer, head): [k, 2]}."""
    table = study.table("HeadSpectra", Full=1)
    values = numpy.zeros((study.layer_count, study.head_count))
    values[table["Layer"], table["Head"]] = table["Copying"]
    eigenvalues = numpy.array([table[name] for name in table if name.startswith("Eigenvalue ")])  # [k, heads, 2]
    places = zip(table["Layer"].tolist(), table["Head"].tolist())
    return values, {place: eigenvalues[:, i] for i, place in enumerate(places)}


def _show_eigenvalues(axes: Any, eigenvalues: NDArray[Any], place: Place) -> None:
    axes.scatter(*eigenvalues[place].T, s=7, color=HEAD_COLORS[0], linewidths=0, zorder=3)
    for line in (axes.axhline, axes.axvline):
        line(0, color=GREY, linewidth=0.4)
    axes.set(title=f"Eigenvalues of head {name_of(place)}", xlabel="Re \u03bb", ylabel="Im \u03bb")
    axes.set_aspect("equal", adjustable="datalim")


def copying(study: Study, page: Page) -> Drawn:
    """Whether most heads copy, by the eigenvalues of their OV circuits."""
    values, eigenvalues = _spectra(study)
    figure, axes = row(page, 2, f"{study.name}: OV circuits over the vocabulary", 66)
    shown = show_heads(axes[0], values, page, colors=SIGNED, limits=(-1, 1))
    axes[0].set_title("Copying: \u03a3 Re \u03bb / \u03a3 |\u03bb|")
    color_bar(figure, axes[0], shown, "Copying", [-1, 0, 1])
    _show_eigenvalues(axes[1], eigenvalues, highest(values))
    copies = values > 0.5
    return figure, Result(
        bool(copies.mean() > 0.5),
        f"{int(copies.sum())} of {values.size} heads above 0.5; mean {number(values.mean())}",
        {"copying": values},
        _COPYING,
        "Holds if more than half of the heads are above 0.5.",
    )


def induction_copies(study: Study, page: Page) -> Drawn:
    """Whether induction heads copy, by the eigenvalues of their OV circuits."""
    inductive = study.head_scores()["Induction"]
    values, eigenvalues = _spectra(study)
    best, chosen = highest(inductive), inductive > INDUCTIVE
    figure, axes = row(page, 2, f"{study.name}: induction and copying", 66)
    axes[0].scatter(inductive.ravel(), values.ravel(), s=9, color=HEAD_COLORS[0], linewidths=0)
    threshold_line(axes[0], 0.5)
    threshold_line(axes[0], INDUCTIVE, across=True)
    axes[0].set(title="Every head, by its scores", xlabel="Induction", ylabel="Copying", ylim=(-1.1, 1.1))
    axes[0].set_xlim(-0.03, 1.15 * max(inductive[best], INDUCTIVE))
    name_points(axes[0], [(inductive[best], values[best])], [name_of(best)])
    _show_eigenvalues(axes[1], eigenvalues, best)
    copies = int((values[chosen] > 0.5).sum())
    return figure, Result(
        bool(chosen.any() and 2 * copies > chosen.sum()),
        f"{copies} of {int(chosen.sum())} heads of induction above {INDUCTIVE} copy; the strongest one, {name_of(best)}, has "
        f"{number(values[best])}, the mean of the other heads is {number(values[~chosen].mean())}",
        {"induction": inductive, "copying": values},
        f"{_COPYING} Induction: as above, on repeated random tokens.",
        f"Holds if more than half of the heads with induction above {INDUCTIVE} have copying above 0.5.",
    )


def _trigrams(study: Study) -> list[Any]:
    """The strongest skip-trigrams of every head: ids [n, 3], heads, scores and texts."""
    found = []
    for layer in range(study.layer_count):
        for head in range(study.head_count):
            table = study.table("SkipTrigrams", Layer=layer, Head=head, Top=TRIGRAMS, SourceLimit=0)
            names = ("Source", "Destination", "Output")
            for i in range(len(table["Score"])):
                entry = [int(table[f"{name} TokenId"][i]) for name in names]
                found.append((entry, (layer, head), float(table["Score"][i]), [table[name][i] for name in names]))
    if not found:
        raise Missing(f"{study.name} has no skip-trigrams")
    return found


def _effects(study: Study, trigrams: Any) -> NDArray[Any]:
    """By how much the source raises the log probability of the output after the destination: mean over fillings."""
    words = numpy.random.default_rng(0)
    low = study.first_word()
    rows = words.integers(low, study.vocabulary, (len(trigrams), FILLINGS, 2, LENGTH))
    rows[:, :, 1] = rows[:, :, 0]  # but for the place of the source
    rows[:, :, 1, PLACE] = words.integers(low, study.vocabulary, rows.shape[:2])
    entries = numpy.array([entry for entry, _, _, _ in trigrams])
    rows[:, :, 0, PLACE] = entries[:, :1]
    rows[:, :, :, -1] = entries[:, 1, None, None]
    logits, _ = study.logits(TokenIds=ids(rows.reshape(-1, LENGTH)))
    last = log_softmax(logits.reshape(len(trigrams), FILLINGS, 2, LENGTH, -1)[:, :, :, -1])
    outputs = numpy.take_along_axis(last, entries[:, 2, None, None, None], axis=-1)[..., 0]
    return (outputs[:, :, 0] - outputs[:, :, 1]).mean(axis=1)


def skip_trigrams(study: Study, page: Page) -> Drawn:
    """Whether skip-trigrams read from the weights are what the model predicts."""
    trigrams = _trigrams(study)
    effects = _effects(study, trigrams)
    order = numpy.argsort([-score for _, _, score, _ in trigrams])
    shown, seen = [], set()
    for i in order:
        entry = tuple(trigrams[i][0])
        if entry not in seen and trigrams[i][3][0].strip() and trigrams[i][3][2].strip():
            seen.add(entry)
            shown.append(i)
    shown = shown[:20]
    figure, axes = row(page, 2, f"{study.name}: skip-trigrams \u201csource \u2026 destination \u2192 output\u201d", 84)
    texts = [legible(trigrams[i][3]) for i in shown]
    labels = [f"{s} \u2026 {d} \u2192 {o}  ({name_of(trigrams[i][1])})" for i, (s, d, o) in zip(shown, texts)]
    axes[0].barh(range(len(shown)), effects[shown], color=HEAD_COLORS[0], height=0.7)
    axes[0].set_yticks(range(len(shown)), labels)
    axes[0].tick_params(axis="y", length=0)
    axes[0].invert_yaxis()
    axes[0].axvline(0, color=GREY, linewidth=0.4)
    axes[0].set(title="The strongest of the weights", xlabel="Gain in log probability of the output, nats")
    axes[1].hist(effects, 30, color=HEAD_COLORS[0])
    axes[1].axvline(0, color=GREY, linewidth=0.6)
    axes[1].set(title="All that were tested", xlabel="Gain in log probability of the output, nats", ylabel="Skip-trigrams")
    axes[1].yaxis.set_major_locator(MaxNLocator(integer=True))
    share = float((effects > 0).mean())
    copies = float(numpy.mean([entry[0] == entry[2] for entry, _, _, _ in trigrams]))
    return figure, Result(
        share >= 0.9,
        f"{100 * share:.0f} % of {len(trigrams)} raise the output, by {number(numpy.median(effects))} nats in the median; "
        f"{100 * copies:.0f} % copy (the output is the source)",
        {"share": share, "median gain": float(numpy.median(effects)), "copies": copies},
        f"The {TRIGRAMS} strongest skip-trigrams of each head, read from the weights alone, are tested by running the "
        "model: the gain in log probability of the output after the destination if the source stands before it among "
        "random tokens, over another random token at its place.",
        "Holds if at least 90 % of the gains are positive.",
    )


def composition(study: Study, page: Page) -> Drawn:
    """Whether the keys of the induction head read what the head of the previous token writes."""
    scores = study.head_scores()
    inductive, previous = scores["Induction"].copy(), scores["Previous Token"].copy()
    inductive[0] = -1
    to = highest(inductive)
    previous[to[0] :] = -1
    source = highest(previous)
    pairs = {kind: study.table("HeadComposition", 1, Kind=kind, Top=0) for kind in "QKV"}
    baseline = 1 / numpy.sqrt(study.width)
    figure, axes = row(page, 2, f"{study.name}: composition of heads", 66)
    rng = numpy.random.default_rng(0)
    for i, (kind, table) in enumerate(pairs.items()):
        spread = i + rng.uniform(-0.25, 0.25, len(table["Score"]))
        axes[0].scatter(spread, table["Score"], s=5, color=GREY, linewidths=0)
    table = pairs["K"]
    ends = list(zip(table["From Layer"], table["From Head"], table["To Layer"], table["To Head"]))
    score = float(table["Score"][ends.index((*source, *to))])
    deviation = float(table["Score"].std())
    axes[0].scatter([1], [score], s=24, color=HEAD_COLORS[4], linewidths=0, zorder=3)
    axes[0].annotate(f"{name_of(source)} \u2192 {name_of(to)}", (1, score), (14, 5), textcoords="offset points", color=HEAD_COLORS[4])
    threshold_line(axes[0], baseline, "chance, 1 / \u221ad")
    level = baseline + 3 * deviation
    axes[0].axhline(level, color=HEAD_COLORS[4], linestyle=":", linewidth=0.6, label="3 standard deviations above")
    axes[0].set(title="All pairs of heads", ylabel="Composition score", ylim=(0, None))
    axes[0].set_xticks(range(3), ["Q", "K", "V"])
    axes[0].legend(loc="best", fontsize="small")
    first, last = sorted(set(table["From Layer"])), sorted(set(table["To Layer"]))
    matrix = numpy.full((len(first) * study.head_count, len(last) * study.head_count), numpy.nan)
    for (l1, h1, l2, h2), value in zip(ends, table["Score"]):
        matrix[first.index(l1) * study.head_count + h1, last.index(l2) * study.head_count + h2] = value
    shown = show_matrix(axes[1], matrix, page.pixels(2), cmap=ORANGES, vmin=0)
    axes[1].set_aspect("auto")
    axes[1].set(title="K-composition", ylabel="Head that writes", xlabel="Head that reads with its keys")
    axes[1].set_xticks(range(matrix.shape[1]), [f"{l}.{h}" for l in last for h in range(study.head_count)])
    axes[1].set_yticks(range(matrix.shape[0]), [f"{l}.{h}" for l in first for h in range(study.head_count)])
    axes[1].tick_params(length=0)
    top = shown.get_clim()[1]
    color_bar(figure, axes[1], shown, "Score", [0, top / 2, top], [number(t) for t in (0, top / 2, top)])
    above = (score - baseline) / deviation
    return figure, Result(
        bool(above > 3),
        f"{number(score, 3)} from head {name_of(source)} to head {name_of(to)}; chance {number(baseline, 3)}; "
        f"{number(above, 1)} standard deviations above",
        {"score": score, "baseline": float(baseline), "standard deviation": deviation, "above": float(above)},
        "The K-composition score of the head with the largest previous-token score and the later head with the largest "
        "induction score, minus 1/\u221ad, over the standard deviation of the scores of all pairs.",
        "Holds if it is more than 3 standard deviations above 1/\u221ad.",
    )


def shared_tokens(study: Study, page: Page) -> Drawn:
    """Whether heads share attention tokens, and use few."""
    with Tokens.opened(study.text(), model=study.config, maximum_tokens=32) as tokens:
        shared = tokens.shared("QueryKey")
        rows = tokens.rows
        kinds = numpy.array(rows["Vector"])
        distinct = {name: len(set(rows["TokenId"][kinds == name].tolist())) for name in VECTORS}
        places = tokens.places
    count = numpy.diag(shared).copy()
    pairs = numpy.triu_indices(len(shared), 1)
    chance = numpy.outer(count, count)[pairs] / study.vocabulary
    figure, axes = row(page, 2, f"{study.name}: attention tokens", 70)
    numpy.fill_diagonal(shared, numpy.nan)
    shown = show_matrix(axes[0], shared, page.pixels(2), cmap=ORANGES, vmin=0)
    axes[0].set(title="Tokens of query \u00d7 key that two heads share", xlabel="Head, by layer", ylabel="Head, by layer")
    starts = [i for i, (_, head) in enumerate(places) if head == 0]
    for set_ticks in (axes[0].set_xticks, axes[0].set_yticks):
        set_ticks(starts, [name_of(places[i]) for i in starts])
    top = shown.get_clim()[1]
    color_bar(figure, axes[0], shown, "Shared tokens", [0, round(top / 2), round(top)])
    axes[1].bar(range(len(distinct)), distinct.values(), color=HEAD_COLORS[0], width=0.6)
    threshold_line(axes[1], study.vocabulary)
    axes[1].set_xticks(range(len(distinct)), [VECTORS[name] for name in distinct])
    axes[1].set(title=f"Different tokens of all heads, of {study.vocabulary:,}", ylabel="Tokens")
    axes[1].yaxis.set_major_locator(MaxNLocator(6, integer=True))
    values = shared[pairs]
    some, above = float((values >= 1).mean()), float((values > chance).mean())
    return figure, Result(
        bool(some == 1 and distinct["QueryKey"] < distinct["Value"]),
        f"{100 * some:.0f} % of the pairs of heads share a token (median {numpy.median(values):.0f}, by chance "
        f"{number(numpy.median(chance), 1)}); different tokens: query \u00d7 key {distinct['QueryKey']:,}, query "
        f"{distinct['Query']:,}, key {distinct['Key']:,}, value {distinct['Value']:,} of {study.vocabulary:,}",
        {"share of pairs": some, "median shared": float(numpy.median(values)),
         "median by chance": float(numpy.median(chance)), "share of pairs above chance": above, "different tokens": distinct},
        "Attention token: the token with the largest logit if a vector of a head is multiplied with its W_O W_U. "
        "Shared: attention tokens of the products query \u00d7 key that two heads both have; by chance as many as "
        "if each head drew its tokens from the whole vocabulary.",
        "Holds if every pair of heads shares at least one token and the products use fewer different tokens than "
        "the values.",
    )


def energy(embedding: NDArray[Any]) -> NDArray[Any]:
    """The share of the energy of an embedding [p, d] at the frequencies 1, 2, ... around the circle of numbers mod p,
    without its mean."""
    waves = numpy.fft.fft(embedding, axis=0)[1 : len(embedding) // 2 + 1]
    powers = (abs(waves) ** 2).sum(axis=1)
    return powers / powers.sum()


def circle(embedding: NDArray[Any], frequency: int) -> NDArray[Any]:
    """The embedding [p, d] on the plane of a frequency: [p, 2]."""
    turns = 2 * numpy.pi * frequency * numpy.arange(len(embedding)) / len(embedding)
    directions = numpy.stack([numpy.cos(turns), numpy.sin(turns)]) @ embedding
    plane, _ = numpy.linalg.qr(directions.T)
    return (embedding - embedding.mean(axis=0)) @ (plane * numpy.sign((plane * directions.T).sum(axis=0)))


def modulus(study: Study) -> int:
    """The p of modular addition: of the recipe, or all tokens but the equals sign."""
    return int(study.recipe.get("vocabulary") or study.vocabulary - 1)


def embedding_of(tensors: dict[str, NDArray[Any]], p: int) -> NDArray[Any]:
    """The embeddings of the numbers 0 to p - 1."""
    name = next((n for n in ("embed.W_E", "W_E", "transformer.wte.weight") if n in tensors), None)
    if name is None:
        raise Missing("the model has no embedding by a known name")
    return tensors[name][:p]


def fourier(study: Study, page: Page) -> Drawn:
    """Whether the embedding of modular addition is a few circles."""
    p = modulus(study)
    numbers = embedding_of(study.weights(), p)
    shares = energy(numbers)
    strongest = numpy.argsort(-shares)[:5] + 1
    five = float(shares[strongest - 1].sum())
    try:
        first = study.checkpoints()
        before = energy(embedding_of(read_tensors(next(iter(first.values())).parent / "model.safetensors"), p))
    except Missing:
        before = None
    figure, axes = row(page, 6, f"{study.name}: the embedding of the numbers 0 to {p - 1}", 58, 3)
    axes[0].bar(numpy.arange(len(shares)) + 1, shares, color=HEAD_COLORS[0], width=0.8, label="trained")
    if before is not None:
        axes[0].plot(numpy.arange(len(shares)) + 1, before, color=HEAD_COLORS[1], label="untrained")
        axes[0].legend()
    axes[0].set(title="Energy", xlabel="Frequency k", ylabel="Share")
    for panel, k in zip(axes[1:], strongest):
        places = circle(numbers, k)
        step = pow(int(k), -1, p) if numpy.gcd(int(k), p) == 1 else 1
        path = places[(numpy.arange(p + 1) * step) % p]
        panel.plot(*path.T, color=GREY, linewidth=0.4, zorder=1)
        panel.scatter(*places.T, s=7, c=numpy.arange(p), cmap="viridis", linewidths=0, zorder=2)
        for token in range(0, p, max(1, p // 9)):
            panel.annotate(str(token), places[token], (2, 2), textcoords="offset points", size="x-small")
        panel.set(title=f"k = {k}: {100 * shares[k - 1]:.0f} % of the energy", xticks=[], yticks=[])
        panel.set_aspect("equal", adjustable="datalim")
    best = None if before is None else float(numpy.sort(before)[-5:].sum())
    return figure, Result(
        five > 0.8,
        f"{number(five)} of the energy in the frequencies {', '.join(map(str, sorted(strongest)))}"
        + ("" if best is None else f"; {number(best)} in the five strongest before training"),
        {"five frequencies": five, "frequencies": sorted(map(int, strongest)), "untrained": best, "shares": shares},
        "The energy of the embedding, without its mean, at the five strongest of its discrete Fourier frequencies "
        "around "
        f"the circle of numbers modulo {p}.",
        "Holds if five frequencies have more than 0.8 of the energy.",
    )
