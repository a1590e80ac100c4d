"""Figures of circuits: what every head of a transformer would do with every token, and why it did.

    attention-atlas figures CONFIG -o DIR [--text TEXT] [--patch-from TEXT] [--recording FILE]
        [--layer L] [--head H] [--from L.H] [--tokens TOKEN ...] [--kind Q|K|V] [--against TOKEN] [--full]
        [--width-mm MM] [--font-size PT] [--dark] [--format png|pdf|svg] [--width PIXELS]

CONFIG is the config.json of a language model. From its weights alone ("A mathematical framework for
transformer circuits", Elhage et al. 2021): which heads read what earlier ones write, which copy, the eigenvalues
of the heads of a layer, the circuits of one head on some words, its strongest skip-trigrams, the words that
follow each other without any layer, and the virtual weights between two heads. With a text, which is recorded,
or a recording with HeadOutputs and Residual: what each component adds to the logits, what the model would
predict before each layer, why the head attends where it does, and the directions in which it tells the same
token from others. With a second text of as many tokens: which heads, positions and edges carry what the two differ in.
Each is also a function that returns a matplotlib Figure: composition("gpt2/config.json", kind="K"),
lens("run.safetensors", model="gpt2/config.json").
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import pathlib
import sys
from collections.abc import Sequence as Listed
from typing import Any

import numpy
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle

from attentionatlas._internal import data
from attentionatlas._internal.arguments import Head, PathLike, word
from attentionatlas._internal.charts import Page, color_bar, drawn_from, foreground, label_heads, show_matrix
from attentionatlas._internal.checks import check
from attentionatlas._internal.host import words
from attentionatlas._internal.letters import legible
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.circuit_tables import measures_loss, patching_texts
from attentionatlas._internal.names import own
from attentionatlas._internal.recording import KINDS, Recording, Transformer
from attentionatlas._internal.style import BLUES, GREY, HEAD_COLORS, SIGNED
from attentionatlas.heads import Figure
from attentionatlas.output import Output, add_options, options

__dir__ = own(__name__)

SITES = {"HeadOutput": "heads", "Residual": "residual stream", "AttentionOutput": "attention", "MlpOutput": "MLPs"}
#: What reads an edge.
INPUTS = {"Q": "queries", "K": "keys", "V": "values", "Stream": "an MLP or the logits"}
#: More labels than these cannot be read.
_LABELS = 64


class _Matrix:
    """An image of a filter, the first row on top, with the names of its rows and columns.

    words: whether rows and columns are tokens.
    """

    def __init__(self, source: Any, array: str, port: int = 0, words: tuple[bool, bool] = (False, False)) -> None:
        self.values = data.image(source, array, port)[::-1].astype(float)
        fields = data.fetch(source, port).GetFieldData()
        names = ("Query Token", "Key Token", "Query Title", "Key Title")
        rows, columns, row, column = (data.texts(fields.GetAbstractArray(name)) for name in names)
        self.rows, self.columns = (
            legible(texts) if are_words else texts for texts, are_words in zip((rows, columns), words)
        )
        self.titles = row[:1] or ["Query"], column[:1] or ["Key"]

    def label(self, axes: Any) -> None:
        """Writes the names, or numbers of many, beside the rows and below the columns."""
        (rows,), (columns,) = self.titles
        if len(self.columns) <= _LABELS:
            turned = 90 if max(map(len, self.columns)) > 2 else 0
            axes.set_xticks(range(len(self.columns)), self.columns, rotation=turned)
        if len(self.rows) <= _LABELS:
            axes.set_yticks(range(len(self.rows)), self.rows)
        axes.tick_params(length=0)
        axes.set(xlabel=columns, ylabel=rows)


def _field(source: Any, name: str, port: int = 0) -> Any:
    """The first text or number of a field array."""
    return data.fetch(source, port).GetFieldData().GetAbstractArray(name).GetValue(0)


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "\u2212")


def _show_signed(
    figure: Any, axes: Any, page: Page, values: Any, label: str, columns: int = 1, shrink: float = 1
) -> Any:
    """Shows values below 0 in blue and above in red, with white at 0, and their color bar."""
    most = float(numpy.nanmax(numpy.abs(values), initial=0)) or 1
    shown = show_matrix(axes, values, page.pixels(columns), cmap=page.colors(SIGNED), vmin=-most, vmax=most)
    ticks = numpy.linspace(-most, most, 5)
    return color_bar(figure, axes, shown, label, ticks, list(map(_number, ticks)), shrink)


def _show_matrix(page: Page, matrix: _Matrix, title: str, label: str) -> Any:
    """A figure of one signed matrix with its names."""
    figure, (axes,) = page.panels(1)
    axes.set_title(title)
    rows, columns = matrix.values.shape
    if columns < rows / 2:  # as wide as the names of its columns need
        axes.set_aspect("auto")
    _show_signed(figure, axes, page, matrix.values, label)
    matrix.label(axes)
    return page.fit(figure)


@drawn_from(Transformer)
def composition(model: Transformer, page: Page, kind: str = "K", top: int = 60, threshold: float = 0) -> Any:
    """Which heads read what heads of earlier layers write, as a graph; the strongest lines are the widest and darkest.

    kind: Q, K or V, what of the later head reads. top: the largest number of lines; 0: all. threshold: the least
    score above chance, 1 / sqrt(d_model).
    """
    kind = word("kind", kind, KINDS)
    graph = model.made("HeadComposition", kind=kind, top=top, threshold=threshold)
    pairs = data.table(graph, 1)
    order = numpy.argsort(pairs["Corrected"])
    order = order[pairs["Corrected"][order] >= threshold][-top if top else 0 :]
    names = ("From Head", "From Layer", "To Head", "To Layer")
    ends = numpy.stack([pairs[name][order] for name in names], axis=1).reshape(-1, 2, 2)
    score = pairs["Corrected"][order]
    low, high = (score.min(), score.max()) if len(score) else (0, 1)
    share = (score - low) / ((high - low) or 1)
    height = min(1.2, 0.3 + 0.06 * model.layer_count) * page.width_mm
    figure, (axes,) = page.panels(1, square=False, height_mm=height)
    axes.set_title(f"{kind}-composition: {KINDS[kind]} of later heads that read what earlier ones write")
    lines = LineCollection(ends, linewidths=0.4 + 2.1 * share, zorder=1)
    if len(score):
        lines.set(cmap=page.colors(BLUES), array=score, clim=(min(0, low), high), alpha=0.25 + 0.7 * share)
        axes.add_collection(lines)
    heads, layers = numpy.meshgrid(range(model.head_count), range(model.layer_count))
    axes.scatter(heads, layers, s=9, color=foreground(), linewidths=0, zorder=2)
    used = {tuple(end) for line in ends.astype(int).tolist() for end in line}
    for head, layer in used:
        # Below layer 0 and above the last one there are no lines.
        place = {0: ((0, -4), "center", "top"), model.layer_count - 1: ((0, 3), "center", "bottom")}
        offset, across, up = place.get(layer, ((2.5, 2), "left", "bottom"))
        axes.annotate(f"{layer}.{head}", (head, layer), offset, textcoords="offset points", size="small",
                      horizontalalignment=across, verticalalignment=up)
    axes.set(xlabel="Head", ylabel="Layer", xlim=(-0.5, model.head_count - 0.3), ylim=(-0.4, model.layer_count - 0.6))
    axes.set_xticks(range(0, model.head_count, max(1, model.head_count // 16)))
    axes.set_yticks(range(0, model.layer_count, max(1, model.layer_count // 16)))
    if len(score):
        least, most = lines.get_clim()
        ticks = numpy.linspace(least, most, 5)
        color_bar(figure, axes, lines, "Score \u2212 chance (color, width)", ticks, list(map(_number, ticks)))
    return figure


@drawn_from(Transformer)
def copying(model: Transformer, page: Page, circuit: str = "OV", full: bool = False) -> Any:
    """Which heads copy: the sum of the real parts of the eigenvalues of their OV circuit over that of their
    moduli, from -1 to 1; or, of the QK circuit, which attend to what is like the query. full: over the vocabulary.
    """
    circuit = word("circuit", circuit, words("HeadSpectra", "Circuit"))
    table = model.columns("HeadSpectra", circuit=circuit, full=full)
    values = numpy.full((model.layer_count, model.head_count), numpy.nan)
    values[table["Layer"], table["Head"]] = table["Copying"]
    figure, (axes,) = page.panels(1)
    what = "copies" if circuit == "OV" else "matches"
    axes.set_title(f"How much the {circuit} circuit of each head {what}" + (", over the vocabulary" if full else ""))
    shown = show_matrix(axes, values, page.pixels(1), cmap=page.colors(SIGNED), vmin=-1, vmax=1)
    label_heads(axes, *({number: number for number in range(count)} for count in (model.head_count, model.layer_count)))
    color_bar(figure, axes, shown, "\u03a3 Re \u03bb / \u03a3 |\u03bb|", numpy.linspace(-1, 1, 5))
    return page.fit(figure)


@drawn_from(Transformer)
def spectra(model: Transformer, page: Page, layer: int = 0, circuit: str = "OV", full: bool = False) -> Any:
    """The eigenvalues of a circuit of all heads of a layer, in the complex plane; the circle has the largest
    modulus."""
    layer, _ = model.place(layer, 0)
    circuit = word("circuit", circuit, words("HeadSpectra", "Circuit"))
    table = model.columns("HeadSpectra", circuit=circuit, full=full, layer=layer)
    names = [name for name in table if name.startswith("Eigenvalue ")]
    columns = min(6, model.head_count)
    title = f"Layer {layer}: eigenvalues of the {circuit} circuits" + (" over the vocabulary" if full else "")
    figure, panels = page.panels(model.head_count, columns, title)
    for row, axes in enumerate(panels):
        values = numpy.array([table[name][row] for name in names])
        most = 1.1 * (numpy.hypot(*values.T).max() or 1)
        axes.add_patch(Circle((0, 0), most / 1.1, fill=False, color=GREY, linewidth=0.4))
        axes.axhline(0, color=GREY, linewidth=0.4)
        axes.axvline(0, color=GREY, linewidth=0.4)
        axes.scatter(*values.T, s=5, linewidths=0, color=HEAD_COLORS[0], zorder=3)
        axes.set(xlim=(-most, most), ylim=(-most, most), aspect="equal")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(f"Head {table['Head'][row]}: {_number(table['Copying'][row])}")
        axes.set_xlabel(f"|\u03bb| \u2264 {_number(most / 1.1)}")
    return page.fit(figure)


@drawn_from(Transformer)
def circuit(
    model: Transformer, page: Page, layer: int = 0, head: int = 0, circuit: str = "QK", tokens: Listed[str] = ()
) -> Any:
    """A circuit of one head on some words: QK, to which sources each destination attends; OV, which outputs
    attention to each source raises; or PositionQK, of positions. tokens: texts or #ids; empty: frequent words."""
    layer, head = model.place(layer, head)
    circuit = word("circuit", circuit, words("HeadCircuit", "Circuit"))
    place = f"Layer {layer}, head {head}"
    shown = model.made("HeadCircuit", 1, layer=layer, head=head, circuit=circuit, tokens=list(tokens))
    matrix = _Matrix(shown, circuit, 1, (True, True))
    label = "Logit" if circuit == "OV" else "Score"
    return _show_matrix(page, matrix, f"{place}: {circuit} circuit", label)


def _bars(page: Page, texts: list[str], values: Any, title: str, label: str) -> Any:
    """A figure of horizontal bars with texts, the first on top."""
    figure, (axes,) = page.panels(1, square=False, height_mm=12 + 4.2 * len(texts))
    places = numpy.arange(len(texts))
    axes.barh(places, values, color=HEAD_COLORS[0], height=0.7)
    axes.set_yticks(places, texts)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set(title=title, xlabel=label, ylim=(len(texts) - 0.5, -0.5))
    return figure


@drawn_from(Transformer)
def skip_trigrams(model: Transformer, page: Page, layer: int = 0, head: int = 0, top: int = 25) -> Any:
    """The strongest skip-trigrams "source ... destination -> output" of a head, over the whole vocabulary."""
    layer, head = model.place(layer, head)
    place = f"Layer {layer}, head {head}"
    check("top", top, 1, 100)
    table = model.columns("SkipTrigrams", layer=layer, head=head, top=top, source_limit=0)
    if not len(table["Score"]):
        raise Missing(f"{place} has no skip-trigram with a positive score")
    words = zip(*(legible(table[name]) for name in ("Source", "Destination", "Output")))
    texts = [f"{source} \u2026 {destination} \u2192 {output}" for source, destination, output in words]
    return _bars(page, texts, table["Score"], f"{place}: skip-trigrams", "Score, QK \u00d7 OV")


@drawn_from(Transformer)
def bigrams(model: Transformer, page: Page, tokens: Listed[str] = (), top: int = 8) -> Any:
    """The words that follow others without any layer, by embedding and unembedding alone."""
    check("top", top, 1, 20)
    table = model.columns("BigramTable", tokens=list(tokens), top=top)
    top = int(table["Rank"].max())  # fewer in small vocabularies
    count = len(table["Logit"]) // top
    logits = table["Logit"].reshape(count, top).astype(float)
    names, following = legible(table["Token"][::top]), legible(table["Next Token"])
    figure, (axes,) = page.panels(1, square=False, height_mm=20 + 5 * count)
    axes.set_title("What follows without any layer")
    shown = show_matrix(axes, logits, page.pixels(1), cmap=page.colors(BLUES), aspect="auto")
    low, high = shown.get_clim()
    for i, token in enumerate(following):
        row, column = divmod(i, top)
        color = "white" if logits[row, column] > (low + high) / 2 else "black"
        axes.text(column, row, token, ha="center", va="center", color=color, clip_on=True)
    axes.set_xticks(range(top), range(1, top + 1))
    axes.set_yticks(range(count), names)
    axes.tick_params(length=0)
    axes.set(xlabel="Rank", ylabel="Token")
    ticks = numpy.linspace(low, high, 5)
    color_bar(figure, axes, shown, "Logit", ticks, list(map(_number, ticks)))
    return figure


@drawn_from(Transformer)
def virtual_weights(
    model: Transformer, page: Page, layer: int = 1, head: int = 0, source: tuple[int, int] = (0, 0), kind: str = "K"
) -> Any:
    """The weights through which a head reads what an earlier one, source = (layer, head), writes, and their
    singular values."""
    (layer, head), source = model.place(layer, head), model.place(*source)
    place = f"Layer {layer}, head {head}"
    if source[0] >= layer:
        raise ValueError(f"source: expected a layer before {layer}, found {source[0]}.")
    kind = word("kind", kind, KINDS)
    heads = {"FromLayer": source[0], "FromHead": source[1], "ToLayer": layer, "ToHead": head}
    weights = model.made("VirtualWeights", kind=kind, **heads)
    values = data.image(weights, "Virtual Weights")[::-1].astype(float)
    table = data.table(weights, 1)
    figure, (image, singular) = page.panels(2, 2, f"{place} reads head {source[0]}.{source[1]} with its {KINDS[kind]}")
    _show_signed(figure, image, page, values, "Weight", 2, shrink=0.8)
    image.set(xlabel=f"Component of the {KINDS[kind]}", ylabel="Component of the values")
    singular.plot(table["Singular Value"], ".-", markersize=3, color=HEAD_COLORS[0])
    singular.set(title="Singular values", xlabel="Number", box_aspect=1)
    singular.set_ylim(bottom=0)
    return page.fit(figure)


@drawn_from(Recording)
def logits(
    recording: Recording, page: Page, sequence: int = 0, target: str = "NextToken", token: str = "", against: str = "",
    grouping: str = "Automatic",
) -> Any:
    """What each component of the model adds to the logit of a token at each position of a text. Needs the model.

    target: NextToken, Predicted or Token, that of `token`. against: a token whose logit is subtracted. grouping:
    Heads, Layers or Automatic.
    """
    target = word("target", target, words("LogitAttribution", "Target"))
    properties: dict[str, Any] = {"target": target, "target_token": token, "against": against, "grouping": grouping}
    sequence = recording.place(None, 0, sequence)[2]
    terms = recording.made("LogitAttribution", 1, sequence=sequence, **properties)
    matrix = _Matrix(terms, "Contribution", 1, (False, True))
    of, minus = legible([token, against])
    title = {"NextToken": "the next token", "Predicted": "the predicted token", "Token": of}[target]
    minus = f" minus {minus}" if against else ""
    return _show_matrix(page, matrix, f"Contributions to the logit of {title}{minus}", "Logit")


@drawn_from(Recording)
def lens(recording: Recording, page: Page, sequence: int = 0) -> Any:
    """What the model would predict before each of its layers (logit lens), with the probability. Needs the model."""
    filled = recording.made("LogitLens", sequence=recording.place(None, 0, sequence)[2])
    matrix = _Matrix(filled, "Probability", words=(False, True))
    words = data.table(filled, 1)
    first = words["Rank"] == 1
    tokens = legible([token for token, is_first in zip(words["Token"], first) if is_first])
    rows, columns = matrix.values.shape
    figure, (axes,) = page.panels(1, square=False, height_mm=32 + 4.6 * rows)
    axes.set_title("Logit lens: the token that would be predicted before each layer")
    shown = show_matrix(axes, matrix.values, page.pixels(1), cmap=page.colors(BLUES), vmin=0, vmax=1, aspect="auto")
    matrix.label(axes)
    places = {layer: row for row, layer in enumerate(map(int, matrix.rows))}
    width = page.width_mm / 25.4 * 72 * 0.75 / columns / (0.55 * 5.5)  # letters of a cell
    for layer, position, token in zip(words["Layer"][first], words["Position"][first], tokens):
        row = places[int(layer)]
        color = "white" if matrix.values[row, position] > 0.5 else "black"
        text = token if len(token) <= width else token[: max(1, int(width) - 1)] + "\u2026"
        axes.text(position, row, text, ha="center", va="center", color=color, size=5.5, clip_on=True)
    color_bar(figure, axes, shown, "Probability", numpy.linspace(0, 1, 5))
    return figure


@drawn_from(Recording)
def score(
    recording: Recording, page: Page, layer: int | None = None, head: int = 0, sequence: int = 0, query: Head = "last",
    key: Head = "strongest", grouping: str = "Automatic",
) -> Any:
    """Why a head attends: the score of a query and a key as the sum over pairs of components. Needs the model. query: a
    position, or "last"; key: a position, or "strongest"."""
    layer, head, sequence = recording.place(layer, head, sequence)
    place = f"Layer {layer}, head {head}"
    query, key = recording.pair(sequence, query, key)
    pair: dict[str, Any] = {"query": query, "key": key, "grouping": grouping}
    pairs = recording.made("ScoreAttribution", layer=layer, head=head, sequence=sequence, **pair)
    matrix = _Matrix(pairs, "ScoreContribution")
    matrix.titles = ["Component at the query"], ["Component at the key"]
    query, key = (int(_field(pairs, name)) for name in ("Query", "Key"))
    total = _number(_field(pairs, "Score"))
    return _show_matrix(page, matrix, f"{place}: score {total} of query {query} and key {key}", "Score")


def _repeats(recording: Recording, sequence: int) -> bool:
    """Whether a token of a sequence occurs twice in it."""
    tokens = recording.tokens(sequence)
    return len(set(tokens)) < len(tokens)


@drawn_from(Recording)
def contrast(
    recording: Recording, page: Page, layer: int | None = None, head: int = 0, sequence: int = 0, by: str | None = None,
    column: str = "Segment",
) -> Any:
    """The directions in which a head distinguishes some pairs: queries and keys on the first two, and the
    singular values. by: Same Token, Previous Token or Column, that of `column`; None: Same Token, or Previous Token
    if no token occurs twice."""
    layer, head, sequence = recording.place(layer, head, sequence)
    place = f"Layer {layer}, head {head}"
    if by is None:
        by = "Same Token" if _repeats(recording, sequence) else "Previous Token"
    by = word("by", by, words("QueryKeyContrast", "By"))
    asked: dict[str, Any] = {"layer": layer, "head": head, "sequence": sequence, "by": by, "column": column}
    made = recording.made("QueryKeyContrast", **asked)
    points = data.fetch(made)
    projection, kind = (data.point_array(points, name) for name in ("Projection", "Kind"))
    table = data.table(made, 1)
    title = {"Same Token": "the same token", "Previous Token": "the token before", "Column": f"the same {column}"}[by]
    figure, (axes, singular) = page.panels(2, 2, f"{place}: {title} against others")
    for number, name in enumerate(("Query", "Key")):
        chosen = projection[kind == number]
        axes.scatter(chosen[:, 0], chosen[:, 1], s=6, linewidths=0, color=HEAD_COLORS[4 * number], label=name)
    axes.axhline(0, color=GREY, linewidth=0.4, zorder=0)
    axes.axvline(0, color=GREY, linewidth=0.4, zorder=0)
    axes.set(xlabel="First direction", ylabel="Second direction", box_aspect=1)
    axes.legend()
    singular.bar(table["Index"], table["Share"], color=HEAD_COLORS[0])
    singular.set(xlabel="Direction", ylabel="Share of the sum of squares", box_aspect=1)
    return page.fit(figure)


@drawn_from(Transformer)
def patching(
    model: Transformer, page: Page, prompt: str | None = None, patch_from: str | None = None, site: str = "HeadOutput",
    mode: str = "Patch", target: str = "", against: str = "", reference: str | Listed[str] | None = None,
) -> Any:
    """Which heads or positions make the model predict one token and not another: the effect of replacing their
    activations by those of another prompt, by zero or by their mean over positions or over the prompts of
    `reference`, a list or one per line. prompt, patch_from: by default, if there is neither, those of the filter."""
    site, mode = word("site", site, SITES), word("mode", mode, words("ActivationPatching", "Mode"))
    if prompt is None and (patch_from is not None or reference is not None):
        raise ValueError("prompt: expected a text beside patch_from or reference, found none.")
    if prompt is not None and patch_from is None and mode == "Patch":
        raise ValueError("patch_from: expected a text of as many tokens as prompt, found none.")
    texts = patching_texts(prompt, patch_from, reference) if prompt is not None else {}
    effects = model.made("ActivationPatching", 1, site=site, mode=mode, target=target, against=against, **texts)
    matrix = _Matrix(effects, "Effect", 1, (False, True))
    names = legible([_field(effects, name) for name in ("Target", "Against")])
    what = "Patching" if mode == "Patch" else "Zero ablation of" if mode == "Zero" else "Mean ablation of"
    title = f"{what} {SITES[site]}: effect on {names[0]} against {names[1]}"
    return _show_matrix(page, matrix, title, "Effect" if mode == "Patch" else "Change of the logit difference")


def _attributed(
    model: Transformer, prompt: str | Listed[str] | None, patch_from: str | Listed[str] | None, **options: Any
) -> Any:
    """Attribution patching of two prompts; of neither, those of the filter."""
    if (prompt is None) != (patch_from is None):
        raise ValueError("patch_from: expected a text of as many tokens as prompt, and both or neither, found one.")
    texts = patching_texts(prompt, patch_from, None) if prompt is not None else {}
    return model.made("AttributionPatching", **options, **texts)


def _measured(made: Any) -> str:
    """What a filter of attribution measures, in words."""
    if measures_loss(made):
        return "the loss"
    of, minus = legible([_field(made, name) for name in ("Target", "Against")])
    return f"the logit of {of} minus {minus}"


@drawn_from(Transformer)
def attribution(
    model: Transformer, page: Page, prompt: str | Listed[str] | None = None, patch_from: str | Listed[str] | None = None,
    target: str = "", against: str = "", position: Head = "last", steps: int = 10, top: int = 60,
    file: PathLike | None = None, measure: str = "LogitDifference",
) -> Any:
    """The edges through which a model predicts one token and not another, as a graph: the strongest by attribution, or
    those of a circuit, with their effects here; the wider, the more an edge changes the logit difference, or the loss,
    which is small where that is large, so that effects have the other sign.

    prompt, patch_from: texts of as many tokens, or lists of them; by default those of the filter. target, against:
    tokens; empty: the predictions on both. position: of the logits. steps: gradients that are averaged. top: the largest
    number of lines; 0: all. file: of a circuit, or a Circuit. measure: LogitDifference, or Loss, on the tokens of prompt.
    """
    asked: dict[str, Any] = {"target": target, "against": against, "position": position, "steps": steps, "top": top}
    asked.update({"circuit": "FromFile", "circuit_file": file} if file is not None else {}, measure=measure)
    made = _attributed(model, prompt, patch_from, **asked)
    graph = data.fetch(made)
    places, names = data.points(graph)[:, :2], data.texts(graph.GetPointData().GetAbstractArray("Node"))
    is_in = data.point_array(graph, "In Circuit").astype(bool)
    lines = data.table(made)
    height = min(1.2, 0.35 + 0.07 * model.layer_count) * page.width_mm
    figure, (axes,) = page.panels(1, square=False, height_mm=height)
    axes.set_title(f"Edges by which {_measured(made)} changes most")
    ends = numpy.array([cell for cell in data.cells(graph.GetLines())], int).reshape(-1, 2)
    if len(ends):
        effects = abs(lines["Effect"])
        share = effects / (effects.max() or 1)
        colors = lines["CompositionColor"] / 255
        axes.add_collection(LineCollection(list(places[ends]), linewidths=0.4 + 2.1 * share, colors=colors, zorder=1))
        for kind, meaning in INPUTS.items():
            chosen_lines = [color for color, one in zip(colors, lines["Input"]) if one == kind]
            if chosen_lines:
                axes.plot([], [], color=chosen_lines[-1][:3], linewidth=1.5, label=meaning)
        axes.legend(title="Read by", loc="center left", bbox_to_anchor=(1.01, 0.5))
    for shown, color in ((is_in, foreground()), (~is_in, GREY)):
        axes.scatter(*places[shown].T, s=9, color=color, linewidths=0, zorder=2)
    for (x, y), name in zip(places[is_in], numpy.array(names)[is_in]):
        axes.annotate(name.removeprefix("head "), (x, y), (2.5, 2), textcoords="offset points", size="small")
    axes.annotate("logits", places[-1], (2.5, 2), textcoords="offset points", size="small")
    axes.set(xlabel="Head", ylabel="Layer", xlim=(-0.5, places[:, 0].max() + 0.7), ylim=(-1.4, places[:, 1].max() + 0.5))
    axes.set_xticks(range(0, model.head_count, max(1, model.head_count // 16)))
    axes.set_yticks(range(0, model.layer_count, max(1, model.layer_count // 16)))
    return figure


@drawn_from(Transformer)
def faithfulness(
    model: Transformer, page: Page, prompt: str | Listed[str] | None = None, patch_from: str | Listed[str] | None = None,
    of: str = "Edges", target: str = "", against: str = "", position: Head = "last", steps: int = 10,
    measure: str = "LogitDifference",
) -> Any:
    """How well circuits of growing size do alone: their faithfulness, what the model does without them, and their
    incompleteness (Hanna et al. 2024, Marks et al. 2024, Wang et al. 2022). of: Nodes or Edges. The others: as
    attribution."""
    of = word("of", of, ("Nodes", "Edges"))
    options: dict[str, Any] = {"target": target, "against": against, "position": position, "steps": steps}
    options.update(circuit=of, edges=of == "Edges", measure=measure)
    curves = data.table(_attributed(model, prompt, patch_from, **options), 4)
    figure, (axes,) = page.panels(1, square=False, height_mm=0.45 * page.width_mm)
    axes.set_title(f"Circuits of the strongest {of.lower()}")
    for level in (0, 1):
        axes.axhline(level, color=GREY, linewidth=0.4, zorder=0)
    names = {"Faithfulness": "the circuit alone", "Without Circuit": "the model without it", "Incompleteness": "incompleteness"}
    for number, (name, meaning) in enumerate(names.items()):
        axes.plot(curves["Size"], curves[name], ".-", markersize=3, color=HEAD_COLORS[number], label=meaning)
    most = int(curves["Size"].max())
    if most > 64:
        axes.set_xscale("symlog", linthresh=1)
        ticks = [0, *(10**power for power in range(len(str(most))))]
        axes.set_xticks(ticks, list(map(str, ticks)))
        axes.minorticks_off()
    axes.set(xlabel=f"{of} in the circuit", ylabel="Share of the difference of both texts")
    axes.legend()
    return figure


FIGURES = {
    "circuits-composition": Figure(
        "Which heads read which",
        "A line from each head to those of later layers whose keys read what it writes, more than by chance "
        "(K-composition); the strongest are the widest.",
        composition,
        ("kind",),
    ),
    "circuits-copying": Figure(
        "Which heads copy",
        "The sum of the eigenvalues of each head's OV circuit over that of their moduli: red heads raise the tokens "
        "that they attend to, blue ones lower them.",
        copying,
        ("full",),
    ),
    "circuits-spectra": Figure(
        "Eigenvalues",
        "The eigenvalues of the OV circuit of each head of a layer in the complex plane, and how much the head copies.",
        spectra,
        ("layer", "full"),
    ),
    "circuits-qk": Figure(
        "What a head attends to: its QK circuit",
        "The score that each destination (row) gives to each source (column), of some words.",
        circuit,
        ("layer", "head", "tokens"),
    ),
    "circuits-ov": Figure(
        "What a head writes: its OV circuit",
        "What attention to each source (row) adds to the logit of each output (column), of some words.",
        functools.partial(circuit, circuit="OV"),
        ("layer", "head", "tokens"),
    ),
    "circuits-skip-trigrams": Figure(
        "Skip-trigrams",
        "The strongest of all triples: from the destination the head attends to the source, and so raises the output.",
        skip_trigrams,
        ("layer", "head"),
    ),
    "circuits-bigrams": Figure(
        "The model without layers",
        "The tokens that embedding and unembedding alone let follow each token.",
        bigrams,
        ("tokens",),
    ),
    "circuits-virtual-weights": Figure(
        "Virtual weights",
        "Through which weights the head reads what a head of an earlier layer writes, and their singular values.",
        virtual_weights,
        ("layer", "head", "source", "kind"),
    ),
    "circuits-logits": Figure(
        "Where logits come from",
        "What every component adds to the logit of the next token, at each position of the text.",
        logits,
        ("sequence", "against"),
    ),
    "circuits-lens": Figure(
        "What would be predicted before each layer",
        "The token of the largest logit if the layers above were not there, bluer where it is more probable.",
        lens,
        ("sequence",),
    ),
    "circuits-score": Figure(
        "Why a head attends",
        "The score of the last query and its strongest key, as the sum over pairs of components of the residual "
        "stream at the query (row) and at the key (column).",
        score,
        ("layer", "head", "sequence"),
    ),
    "circuits-contrast": Figure(
        "Directions by contrast",
        "The queries and keys of the head on the first two directions that tell pairs of the same token, or of a token "
        "and the one before, from others.",
        contrast,
        ("layer", "head", "sequence"),
    ),
    "circuits-patching-heads": Figure(
        "Which heads carry the difference",
        "The effect of each head (column) of each layer (row) if its output is replaced by that on the other text: "
        "1 makes up the whole difference.",
        patching,
        ("prompt", "patch_from", "against"),
    ),
    "circuits-patching-residual": Figure(
        "Where the difference is",
        "The effect of the residual stream before each layer (row) at each position (column), likewise.",
        functools.partial(patching, site="Residual"),
        ("prompt", "patch_from", "against"),
    ),
    "circuits-attribution": Figure(
        "Through which edges the difference goes",
        "The strongest edges between heads, MLPs, the embedding and the logits by attribution patching; the wider, the "
        "more an edge changes the prediction.",
        attribution,
        ("prompt", "patch_from"),
    ),
    "circuits-faithfulness": Figure(
        "How well circuits do alone",
        "The share of the difference that circuits of the strongest edges keep alone, the share that is left without "
        "them, and how much circuit and model differ at most without the same part of the circuit.",
        faithfulness,
        ("prompt", "patch_from"),
    ),
}


#: Of a text, not of the weights alone.
_OF_TEXT = ("circuits-logits", "circuits-lens", "circuits-score", "circuits-contrast")
#: Of a text and another one.
_OF_PAIR = tuple(name for name, figure in FIGURES.items() if "patch_from" in figure.arguments)


def _leaves_out(name: str, recording: Recording | None, place: dict[str, Any]) -> str | None:
    """Why a figure is left out, or None."""
    if name in _OF_PAIR and place.get("patch_from") is None:
        return "patching needs a second text: --patch-from TEXT"
    if name == "circuits-virtual-weights" and place["layer"] == 0:
        return "virtual weights need a layer after the first: --layer"
    if name in _OF_TEXT and recording is None:
        return "what a model does on a text needs one: --text TEXT"
    return None


def render_named(
    model: Transformer | PathLike, folder: PathLike, output: Output | None = None, reasons: list[str] | None = None,
    recording: PathLike | None = None, text: str | None = None, only: Listed[str] | None = None, **place: Any,
) -> dict[str, pathlib.Path]:
    """Renders the figures of a model; returns {name in FIGURES: path}.

    recording, text: for figures of what the model does, a file or a text to run. place: layer, head, sequence, source,
    kind, tokens, full, patch_from, against. Figures for which something is missing are left out; the reasons are
    appended to the list `reasons`, each once. only: names of FIGURES, all by default; of these Missing is raised instead.
    """
    output = output or Output()
    defaults = {"layer": 0, "head": 0, "sequence": 0, "source": (0, 0), "kind": "K", "tokens": (), "full": False}
    place = {**defaults, "against": "", "patch_from": None, "prompt": text, **place}
    folder, written = pathlib.Path(folder), {}
    with contextlib.ExitStack() as files:
        opened = files.enter_context(Transformer.opened(model))
        place["layer"], place["head"] = opened.place(place["layer"], place["head"])
        ran = Recording(recording, opened) if recording is not None else opened.record(text) if text is not None else None
        if ran is not None:
            files.enter_context(ran)
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in FIGURES.items():
            if only and name not in only:
                continue
            reason = _leaves_out(name, ran, place)
            if reason is not None:
                if only:
                    raise Missing(f"{name}: {reason}")
                if reasons is not None and reason not in reasons:
                    reasons.append(reason)
                continue
            arguments = {key: place[key] for key in figure.arguments}
            try:
                drawn = figure.draw(ran if name in _OF_TEXT else opened, **arguments, **output.options)
            except ValueError as missing:  # as for models without an unembedding
                if only:
                    raise
                if reasons is not None:
                    reasons.append(f"{name}: {str(missing).removesuffix('.')}")
                continue
            written[name] = output.write(drawn, folder, f"{opened.name}-{name}")
    return written


def _head(text: str) -> tuple[int, int]:
    """A head as LAYER.HEAD."""
    layer, _, head = text.partition(".")
    return int(layer), int(head)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders what the heads of a language model would do with every token, and why they did.",
    )
    parser.add_argument("model", metavar="CONFIG", help="the config.json of a language model")
    add_options(parser)
    parser.add_argument("--text", help="to be run, for figures of what the model does")
    parser.add_argument("--recording", metavar="FILE", help="of the model, with HeadOutputs and Residual, instead of a text")
    parser.add_argument("--sequence", type=int, default=0, help="of the recording (default: 0)")
    parser.add_argument("--patch-from", metavar="TEXT", help="a text of as many tokens, whose activations are patched in")
    parser.add_argument("--against", default="", metavar="TOKEN", help="whose logit is subtracted (default: none)")
    parser.add_argument("--layer", type=int, default=0, help="of the head to show (default: 0)")
    parser.add_argument("--head", type=int, default=0, help="to show (default: 0)")
    parser.add_argument("--from", type=_head, default=(0, 0), metavar="L.H", dest="source",
                        help="the earlier head of the virtual weights (default: 0.0)")
    parser.add_argument("--kind", choices=KINDS, default="K", help="of composition (default: K)")
    parser.add_argument("--tokens", nargs="+", default=(), metavar="TOKEN", help="texts or #ids (default: frequent words)")
    parser.add_argument("--full", action="store_true", help="eigenvalues over the vocabulary")
    return parser


def main(arguments: Listed[str] | None = None, only: Listed[str] | None = None) -> None:
    """only: as render_named."""
    found = _parser().parse_args(arguments)
    names = ("layer", "head", "sequence", "source", "kind", "tokens", "full", "patch_from", "against")
    place = {name: getattr(found, name) for name in (*names, "recording", "text")}
    reasons: list[str] = []
    try:
        output = Output(**options(found))
        for file in render_named(found.model, found.output, output, reasons, only=only, **place).values():
            print(file, flush=True)
    except (OSError, ValueError, Missing) as error:
        raise SystemExit(str(error)) from error
    for reason in reasons:
        print(f"left out: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
