"""Findings about a vision transformer: heads of hue and of brightness, rows and columns."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy
from matplotlib.colors import hsv_to_rgb
from matplotlib.image import imsave
from numpy.typing import NDArray

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.charts import Page, color_bar
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.style import ORANGES, SIGNED
from attentionatlas.embedding import Embedding
from attentionatlas.findings.base import Drawn, Place, Result, highest, name_of, number, row, show_heads
from attentionatlas.findings.study import Attention, Study

#: Pictures of each kind, the directions of gradients.
PICTURES, DIRECTIONS = 12, 8
#: Heads of the ViT that the claims are about.
HEADS = 144
#: By how much the patches that a head attends to are more alike than others.
LEAST = 0.4


class Pictures:
    """Pictures of the size that a model sees, written as PNG, with the hue and brightness of their patches."""

    def __init__(self, study: Study) -> None:
        config = json.loads(study.config.read_text(encoding="utf-8"))
        if "image_size" not in config:
            raise Missing(f"{study.name} sees no images")
        self.side, self.patch = int(config["image_size"]), int(config["patch_size"])
        self.grid = self.side // self.patch
        self.folder = study.scratch / f"{study.name}-pictures"
        self.folder.mkdir(exist_ok=True)

    def write(self, name: str, hues: NDArray[Any], brightness: NDArray[Any], saturation: float) -> list[str]:
        """Writes one picture per entry of arrays [pictures, rows, columns] of patches; returns the files."""
        files = []
        for i, (hue, value) in enumerate(zip(hues, brightness)):
            colors = hsv_to_rgb(numpy.stack([hue, numpy.full_like(hue, saturation), value], axis=-1))
            pixels = colors.repeat(self.patch, axis=0).repeat(self.patch, axis=1)
            files.append(str(self.folder / f"{name}-{i}.png"))
            imsave(files[-1], pixels)
        return files

    def patches(self, kind: str) -> NDArray[Any]:
        """Values from 0 to 1 of patches: "random", or "gradient" in several directions."""
        if kind == "random":
            return numpy.random.default_rng(0).random((PICTURES, self.grid, self.grid))
        place = numpy.linspace(-1, 1, self.grid)
        angles = 2 * numpy.pi * numpy.arange(DIRECTIONS) / DIRECTIONS
        found = numpy.array([numpy.cos(a) * place[None] + numpy.sin(a) * place[:, None] for a in angles])
        low, high = (extreme(found, axis=(1, 2), keepdims=True) for extreme in (numpy.min, numpy.max))
        return (found - low) / (high - low)


def _recorded(
    study: Study, quantity: str, kind: str, config: PathLike | None = None
) -> tuple[pathlib.Path, NDArray[Any]]:
    """The recording, by the trained model or by that of another config.json, of pictures whose patches differ in one
    quantity, and the values of the patches."""
    pictures = Pictures(study)
    values = pictures.patches(kind)
    if quantity == "hue":
        values = values * 0.999  # red at one end alone
        files = pictures.write(f"{quantity}-{kind}", values, numpy.ones_like(values), 1)
    else:
        files = pictures.write(f"{quantity}-{kind}", numpy.zeros_like(values), values, 0)
    name = f"{quantity}-{kind}" + ("-untrained" if config else "")
    path = study.recording(name, lambda: {"Images": files}, ["QueriesAndKeys"], config)
    return path, values.reshape(len(values), -1)


def _patches(attention: Attention) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The tokens of an image that are patches, their rows and columns."""
    columns = attention.block("tokens")
    first = attention.sequence_of() == 0
    rows, places = columns["Row"][first].astype(int), columns["Column"][first].astype(int)
    kept = numpy.flatnonzero(rows >= 0)
    return kept, rows[kept], places[kept]


def alikeness(weights: NDArray[Any], values: NDArray[Any], circular: bool) -> float:
    """How much more alike the patches that a head attends to are: 1 minus the mean difference of a patch and what it
    attends to over that of all pairs. Patches do not count for themselves."""
    difference = abs(values[:, :, None] - values[:, None])
    if circular:
        difference = numpy.minimum(difference, 1 - difference)
    others = ~numpy.eye(values.shape[1], dtype=bool)
    weights = weights * others
    weights = weights / weights.sum(axis=2, keepdims=True)
    return float(1 - (weights * difference).sum(axis=2).mean() / difference[:, others].mean())


def _alikeness(study: Study, quantity: str, config: PathLike | None = None) -> NDArray[Any]:
    """The alikeness of all heads, in pictures of random patches."""
    path, values = _recorded(study, quantity, "random", config)
    with Attention.opened(path) as attention:
        kept, _, _ = _patches(attention)
        found = numpy.zeros((len(attention.layer_numbers), attention.head_count))
        for layer, head in attention.places():
            weights = attention.stack(layer, head)[:, kept[:, None], kept]
            found[layer, head] = alikeness(weights, values, quantity == "hue")
    return found


def _show_layout(axes: Any, study: Study, quantity: str, place: Place) -> None:
    """The t-SNE of a head on gradients in all directions, each patch in its own color."""
    path, values = _recorded(study, quantity, "gradient")
    with Attention.opened(path) as attention:
        kept, _, _ = _patches(attention)
        count = len(attention.sequence_of()) // len(values)
    properties = {"Layer": place[0], "Head": place[1], "Arrangement": "Overlaid", "Perplexity": 20}
    with Embedding.opened(path, **properties) as embedding:
        token = data.point_array(data.fetch(embedding.points), "Token Index").astype(int)
        places = embedding.places.copy()
    image, within = numpy.divmod(token, count)
    patch = numpy.full(count, -1)
    patch[kept] = numpy.arange(len(kept))
    shown = patch[within] >= 0
    value = values[image[shown], patch[within[shown]]]
    white = numpy.stack([value, numpy.ones_like(value), numpy.ones_like(value)], axis=-1)
    colors = hsv_to_rgb(white) if quantity == "hue" else numpy.repeat(value[:, None], 3, axis=1)
    axes.scatter(*places[shown].T, s=4, c=colors, linewidths=0.1, edgecolors="#808080")
    axes.set(xticks=[], yticks=[], title=f"Head {name_of(place)}: t-SNE of {quantity} gradients, patches in their colors")
    axes.set_aspect("equal", adjustable="datalim")


def _small(study: Study) -> str:
    """Why claims about a few heads of a large model cannot be tested on this one; empty if they can."""
    heads = study.layer_count * study.head_count
    if heads >= HEADS:
        return ""
    return f"The claim is about a few of the {HEADS} heads of a ViT that was trained on photographs. This model has {heads} heads."


def colors(study: Study, page: Page) -> Drawn:
    """Whether heads attend to patches of the same hue, and of the same brightness."""
    names = ("hue", "brightness")
    found = {name: _alikeness(study, name) for name in names}
    best = {name: highest(found[name]) for name in names}
    try:
        config = next(iter(study.checkpoints().values()))
        before = {name: float(_alikeness(study, name, config).max()) for name in names}
    except Missing:
        before = {}
    figure, axes = row(page, 4, f"{study.name}: which heads attend to patches of the same hue or brightness", 66, 2)
    for panel, name in zip(axes, names):
        shown = show_heads(panel, found[name], page, colors=SIGNED, limits=(-1, 1))
        panel.set_title(f"Alike in {name}: pictures of random patches")
    color_bar(figure, axes[:2], shown, "Alikeness", [-1, 0, 1])
    for panel, name in zip(axes[2:], names):
        _show_layout(panel, study, name, best[name])
    words = ", ".join(
        f"{name} {number(found[name][best[name]])} (head {name_of(best[name])}"
        + (f"; untrained at most {number(before[name])}" if before else "")
        + f"; least {number(found[name].min())}, head {name_of(highest(-found[name]))})"
        for name in names
    )
    reason = _small(study)
    holds = all(found[name][best[name]] >= max(LEAST, before.get(name, 0)) for name in names)
    return figure, Result(
        holds or (None if reason else False),
        words,
        {**found, "untrained": before},
        "Alikeness: 1 minus the mean difference in hue (or brightness) of a patch and the other patches that it "
        "attends to, over that of all pairs; in pictures whose patches have random hues (or grays), so that "
        "positions carry no information. 1: it attends to equal patches alone; 0: as by chance; below 0: to different "
        "ones.",
        f"Holds if for both quantities a head has at least {LEAST} and more than any head of the untrained model.",
        "" if holds else reason,
    )


def columns(study: Study, page: Page) -> Drawn:
    """Whether heads attend to patches of the same row or column, whatever they show."""
    path, _ = _recorded(study, "hue", "random")
    with Attention.opened(path) as attention:
        kept, rows, places = _patches(attention)
        shape = len(attention.layer_numbers), attention.head_count
        found = {"row": numpy.zeros(shape), "column": numpy.zeros(shape)}
        means = {}
        others = ~numpy.eye(len(kept), dtype=bool)
        for layer, head in attention.places():
            weights = attention.stack(layer, head)[:, kept[:, None], kept].mean(axis=0) * others
            weights = means[layer, head] = weights / weights.sum(axis=1, keepdims=True)
            for name, line in (("row", rows), ("column", places)):
                same = (line[:, None] == line[None]) & others
                even = (same.sum(axis=1) / others.sum(axis=1)).mean()
                found[name][layer, head] = (weights * same).sum(axis=1).mean() / even
    best = {name: highest(found[name]) for name in found}
    figure, axes = row(page, 4, f"{study.name}: attention to the same row and column", 66, 2)
    top = max(2.0, *(values.max() for values in found.values()))
    for panel, name in zip(axes, found):
        shown = show_heads(panel, found[name], page, colors=ORANGES, limits=(0, top), digits=1)
        panel.set_title(f"Weight on the same {name} / that of even attention")
    color_bar(figure, axes[:2], shown, "Times even attention", [0, 1, top], ["0", "1", number(top, 1)])
    middle = int(numpy.argmin(abs(rows - rows.max() / 2) + abs(places - places.max() / 2)))
    for panel, (name, place) in zip(axes[2:], best.items()):
        heat = numpy.full((rows.max() + 1, places.max() + 1), numpy.nan)
        heat[rows, places] = means[place][middle]
        heat[rows[middle], places[middle]] = numpy.nan
        shown = panel.imshow(heat, cmap=ORANGES, vmin=0)
        panel.set(xticks=[], yticks=[], title=f"Head {name_of(place)} from the gray patch: mean")
        color_bar(figure, panel, shown, "Weight", [0, shown.get_clim()[1]], ["0", number(shown.get_clim()[1], 3)])
    words = ", ".join(
        f"{name} {number(found[name][place], 1)} times even (head {name_of(place)})" for name, place in best.items()
    )
    reason = _small(study)
    holds = bool(found["column"][best["column"]] >= 2)
    return figure, Result(
        holds or (None if reason else False),
        words,
        found,
        "The attention of a patch to the other patches of its row (or column), over that of even attention; the "
        "mean over pictures of random patches.",
        "Holds if a head gives its column at least twice even attention.",
        "" if holds else reason,
    )
