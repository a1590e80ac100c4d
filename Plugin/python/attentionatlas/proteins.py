"""Figures of what the attention of a protein language model says of contacts, beside a structure.

    attention-atlas figures RECORDING --structure FILE [--chain C] [--sites "12 45-48"] [--model CONFIG] -o DIR
        [--contact-atom CBeta|CAlpha] [--contact-distance D] [--minimum-separation N] [--sequence S] [--layer L] [--head H]

The evidence of contacts with those of the structure, and how much of each head's attention is in contacts and goes to
sites, such as a binding site. Each is also a function that returns a matplotlib Figure:
contacts("run.safetensors", structure="1ubq.cif").
"""

from __future__ import annotations

import argparse
import math
import pathlib
from collections.abc import Callable, Sequence as Listed
from typing import Any, NamedTuple

import numpy
from matplotlib.ticker import MaxNLocator

from attentionatlas._internal import data
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.charts import Page, color_bar, drawn_from, label_heads, label_tokens, show_matrix
from attentionatlas._internal.names import own
from attentionatlas._internal.proteins import MEASURED, add_contact_options, contact_filter, of_heads
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.recording import Recording, Transformer
from attentionatlas._internal.style import HEAD_COLORS, HIDDEN, WEIGHTS
from attentionatlas.output import Output, add_options, options

__dir__ = own(__name__)

#: The shares of attention that the figure of heads shows, if they are known, and how it calls them.
_SHARES = {
    "Attention Share": "Attention in contacts",
    "Contact Share": "Attended pairs in contact",
    "Precision L/5": "Precision of L/5 pairs",
    "Site Attention Share": "Attention to sites",
    "Site Share": "Attended pairs to sites",
}
#: Of these options of the command line one is needed.
NEEDS = ("--structure", "--sites")
#: Where the panel of a matrix ends, as a share of the page's width.
_SIDE = 0.82


def _strongest(axes: Any, made: Any, numbers: dict[int, int], side: float) -> tuple[int, int]:
    """Draws the strongest pairs of resolved residues below the diagonal; returns how many of them are in contact, and how
    many there are. numbers: of residues by their positions. side: of a cell, in points."""
    pairs = data.table(made, 1)
    rows, columns = (numpy.array([numbers[int(at)] for at in pairs[name]]) for name in ("Key", "Query"))
    contact = numpy.asarray(pairs["Contact"])
    for is_hit, color in enumerate(HEAD_COLORS[1::-1]):
        chosen = contact == is_hit
        label = "strongest, in contact" if is_hit else "strongest, not in contact"
        if chosen.any():
            axes.scatter(columns[chosen], rows[chosen], s=(0.5 * side) ** 2, color=color, linewidths=0, label=label)
    return int((contact == 1).sum()), int((contact >= 0).sum())


@drawn_from(Recording)
def contacts(
    recording: Recording, page: Page, layer: int | str = "all", head: int | str = "all", sequence: int = 0,
    structure: PathLike | None = None, **measured: Any,
) -> Any:
    """What the attention says of contacts: above the diagonal the evidence, or the prediction of the model's contact
    head; below it, with a structure, the contacts and the strongest pairs, as many as there are residues.

    layer, head: a number, whose evidence is shown; by default the prediction if the model is known and has a contact
    head, else the mean over all. structure: a .cif or .pdb file of the protein. measured: options of Recording.contacts,
    such as chain or contact_distance. Raises ValueError for the structure of another protein.
    """
    with recording.scope():
        is_of_all = (layer, head) == ("all", "all")
        chosen = {"layer": layer, "head": head, "sequence": sequence, **measured}
        made = contact_filter(recording, structure, chosen, predicts=is_of_all)
        names = data.point_names(made)
        quantity = "Prediction" if "Prediction" in names else "Contact Evidence"
        shown = data.image(made, quantity)[::-1]
        positions = [int(at) for at in data.image(made, "Key")[0]]
        figure, (axes,) = page.panels(1)
        matrix = numpy.where(numpy.triu(numpy.ones(shown.shape, bool), 1), shown, numpy.nan)
        highest = 1 if quantity == "Prediction" else float(numpy.nanmax(matrix, initial=0)) or 1
        colors = page.colors(WEIGHTS).with_extremes(bad=(0, 0, 0, 0))
        image = show_matrix(axes, matrix, page.pixels(1), cmap=colors, vmin=0, vmax=highest)
        title = "Contacts that the model predicts"
        if quantity != "Prediction":
            title = f"Evidence of contacts by {of_heads(layer, head)}"
        if "Contact" in names:
            contact = data.image(made, "Contact")[::-1]
            room_mm = _SIDE * min(page.width_mm, page.height_mm or math.inf)
            side = 72 / 25.4 * room_mm / len(positions)
            rows, columns = numpy.nonzero(numpy.tril(contact == 1, -1))
            axes.scatter(columns, rows, s=(0.9 * side) ** 2, marker="s", color=HIDDEN, linewidths=0, label="contact")
            hits, count = _strongest(axes, made, {position: number for number, position in enumerate(positions)}, side)
            title += f": {hits} of the {count} strongest pairs are in contact"
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), borderpad=0, handletextpad=0.2, ncol=3)
        axes.set_title(title, pad=14 if "Contact" in names else 3)
        axes.plot([-0.5, len(positions) - 0.5], [-0.5, len(positions) - 0.5], color=HIDDEN, linewidth=0.5)
        words = recording.tokens(sequence)
        for axis in (axes.xaxis, axes.yaxis):
            has_tokens = label_tokens(axis, [words[at] for at in positions], _SIDE * page.width_mm)
            axis.set_label_text("Residue" if has_tokens else "Residue, from 0")
        ticks = [tick for tick in MaxNLocator(5).tick_values(0, highest) if tick <= highest]
        color_bar(figure, axes, image, quantity, ticks, [f"{tick:g}" for tick in ticks])
        return page.fit(figure)


@drawn_from(Recording)
def contact_heads(
    recording: Recording, page: Page, sequence: int = 0, structure: PathLike | None = None, **measured: Any
) -> Any:
    """How much of each head's attention is in contacts of a structure, and goes to sites, by layer (rows) and head.

    structure, measured: as of contacts; with sites, residues as "12 45-48" or a list of numbers from 1, also their
    shares. Raises Missing without a structure and sites.
    """
    with recording.scope():
        made = contact_filter(recording, structure, {"sequence": sequence, **measured})
        arrays = data.fetch(made, 5).GetPointData()
        known = [name for name in _SHARES if arrays.HasArray(name)]
        if not known:
            raise Missing(f"{recording.name}: expected structure= or sites= for shares of attention")
        across = min(3, len(known))
        figure, axes = page.panels(len(known), across, title="Contacts in the attention of heads")
        for panel, name in zip(axes, known):
            matrix = data.image(made, name, 5)[::-1]
            shown = show_matrix(panel, matrix, page.pixels(across), cmap=page.colors(WEIGHTS), vmin=0, vmax=1)
            step = max(1, math.ceil(max(matrix.shape) / 12))
            rows = {layer: row for row, layer in enumerate(recording.layer_numbers) if row % step == 0}
            label_heads(panel, {head: head for head in range(0, matrix.shape[1], step)}, rows)
            panel.set_title(_SHARES[name])
        color_bar(figure, axes, shown, "Share", numpy.linspace(0, 1, 6))
        return page.fit(figure)


class Figure(NamedTuple):
    """A figure for render: its title, what it shows, and its function."""

    title: str
    sentence: str
    draw: Callable[..., Any]


FIGURES = {
    "contacts": Figure(
        "Contacts of residues",
        "Above the diagonal what the attention says of contacts: attention and its transpose less the average product, or "
        "the prediction of the model's contact head. Below it the contacts of the structure (grey), and the strongest "
        "pairs, as many as there are residues.",
        contacts,
    ),
    "contact-heads": Figure(
        "Heads that know contacts",
        "By layer (rows) and head (columns): the share of attention that is in contacts, the share of strongly attended "
        "pairs that are (Vig et al. 2021), how precise the strongest pairs are, and the same shares of attention to sites.",
        contact_heads,
    ),
}


def render_named(
    path: PathLike, folder: PathLike, output: Output | None = None, model: Transformer | PathLike | None = None,
    only: Listed[str] | None = None, **measured: Any,
) -> dict[str, pathlib.Path]:
    """Renders the figures of a recorded protein; returns {name in FIGURES: path}.

    model: the transformer that was recorded, for the prediction of its contact head. only: names of FIGURES, all by
    default. measured: layer and head of the evidence, sequence, structure, sites, and other options of Recording.contacts.
    """
    output = output or Output()
    folder, stem, written = pathlib.Path(folder), pathlib.Path(path).stem, {}
    with Recording.opened(path, model=model) as recording:
        folder.mkdir(parents=True, exist_ok=True)
        for name in only or FIGURES:
            left_out = ("layer", "head") if name == "contact-heads" else ("sites",)
            given = {key: value for key, value in measured.items() if key not in left_out}
            drawn = FIGURES[name].draw(recording, **given, **output.options)
            written[name] = output.write(drawn, folder, f"{stem}-{name}")
    return written


def _place(text: str) -> int | str:
    """A layer or a head of the command line."""
    return text if text == "all" else int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders what the attention of a protein language model says of contacts.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="safetensors, npy or npz")
    add_options(parser)
    parser.add_argument("--sequence", type=int, default=0, help="of the recordings (default: 0)")
    parser.add_argument("--layer", default="all", type=_place, help="whose evidence is shown: a number, or all (default: all)")
    parser.add_argument("--head", default="all", type=_place, help="of the layer: a number, or all (default: all)")
    add_contact_options(parser)
    parser.add_argument("--model", metavar="CONFIG", help="the config.json of the model, for its contact head")
    return parser


def main(arguments: Listed[str] | None = None, only: Listed[str] | None = None) -> None:
    """only: as render_named."""
    found = _parser().parse_args(arguments)
    measured = {name: getattr(found, name) for name in ("layer", "head", "sequence", *MEASURED)}
    try:
        output = Output(**options(found))
        for path in found.recordings:
            for file in render_named(path, found.output, output, found.model, only, **measured).values():
                print(file, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
