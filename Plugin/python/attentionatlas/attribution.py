"""The circuit of a prediction: found by attribution patching, measured, and written with its tables, figures and a page.

    attention-atlas attribution MODEL --clean TEXT ... --corrupted TEXT ... -o DIR [--of Edges|Nodes] [--top N]
        [--target TOKEN] [--against TOKEN] [--position N] [--steps N] [--exact-edges N] [--measure LogitDifference|Loss]
        [--circuit FILE]
        [--format pdf|svg|png] [--width PIXELS] [--width-mm MM] [--font-size PT] [--dark]

MODEL is the config.json of a language model, its folder or a .gguf file; clean and corrupted are one or more texts of as
many tokens each. DIR gets NAME.circuit, which other commands and filters read, NAME-nodes.csv and NAME-edges.csv with
their effects, NAME-curves.csv with the faithfulness of circuits of growing size, figures of the graph and of the curves,
and NAME.html, the graph as a page for a browser.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
from collections.abc import Sequence as Listed
from typing import Any

import numpy

from attentionatlas import circuits, web
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.circuitfile import Circuit
from attentionatlas._internal.files import complete, gathered
from attentionatlas._internal.names import own
from attentionatlas._internal.recording import Transformer
from attentionatlas.output import Output, add_options, options

__dir__ = own(__name__)


def _write(path: pathlib.Path, table: Any) -> None:
    """Writes a table to a CSV file."""
    names = table.dtype.names if isinstance(table, numpy.ndarray) else list(table)
    with complete(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*(numpy.asarray(table[name]).tolist() for name in names)))


def render(
    model: Transformer | PathLike, clean: str | Listed[str], corrupted: str | Listed[str], folder: PathLike, *,
    of: str | None = None, top: int | None = None, target: str = "", against: str = "", position: int | None = None, steps: int = 10,
    exact_edges: int = 0, measure: str = "LogitDifference", circuit: Circuit | PathLike | None = None, output: Output | None = None,
) -> list[pathlib.Path]:
    """Writes the circuit of a prediction into a folder, which is complete or unchanged; returns the paths of the files.

    clean, corrupted: texts of as many tokens, or lists of them. of: Edges or Nodes, what the circuit is of, by default
    Edges. top: how many, the strongest, by default 60; 0: all. circuit: one that is measured and drawn instead, with
    neither of nor top. position: of the logits, by default the
    last. The others: as Transformer.attribution. Raises ValueError for what the model cannot run.
    """
    for name, value in (("of", of), ("top", top)):
        if circuit is not None and value is not None:
            raise ValueError(f"{name}: expected none for a given circuit, found {value}.")
    of, top = "Edges" if of is None else of, 60 if top is None else top
    output = output or Output("pdf")
    with Transformer.opened(model) as opened, gathered(pathlib.Path(folder)) as place:
        at: dict[str, Any] = {"target": target, "against": against, "steps": steps, "measure": measure}
        at["position"] = "last" if position is None else position
        found = circuit if circuit is not None else opened.find_circuit(clean, corrupted, of, top, **at)
        found = found if isinstance(found, Circuit) else Circuit(found)
        name = opened.name
        written = [found.save(place / f"{name}.circuit")]
        for what, table in (
            ("nodes", opened.attribution(clean, corrupted, **at)),
            ("edges", opened.attribution(clean, corrupted, edges=True, exact_edges=exact_edges, **at)),
            ("curves", opened.circuit_faithfulness(clean, corrupted, found if circuit is not None else of, **at)),
        ):
            written.append(place / f"{name}-{what}.csv")
            _write(written[-1], table)
        figure: dict[str, Any] = {**at, **output.options}
        written.append(output.write(circuits.attribution(opened, clean, corrupted, file=found, **figure), place, f"{name}-graph"))
        if circuit is None:
            curves = circuits.faithfulness(opened, clean, corrupted, of=of, **figure)
            written.append(output.write(curves, place, f"{name}-curves"))
        written.append(place / f"{name}.html")
        web.page(web.attribution(opened, clean, corrupted, file=found, **at), written[-1], title=f"Circuit of {name}")
        names = [path.name for path in written]
    return [pathlib.Path(folder, name) for name in names]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas attribution",
        description="Finds the circuit of a prediction by attribution patching, and writes it with its tables, figures of "
        "the graph and of how well circuits do alone, and a page.",
    )
    parser.add_argument("model", metavar="MODEL", help="the config.json of a language model, its folder, or a .gguf file")
    parser.add_argument("--clean", nargs="+", required=True, metavar="TEXT", help="a text that the model continues, or several")
    parser.add_argument("--corrupted", nargs="+", required=True, metavar="TEXT", help="as many texts, of as many tokens each")
    parser.add_argument("--of", choices=("Edges", "Nodes"), help="what the circuit is of (default: Edges)")
    parser.add_argument("--top", type=int, metavar="N", help="of them, the strongest; 0: all (default: 60)")
    parser.add_argument("--measure", choices=("LogitDifference", "Loss"), default="LogitDifference",
                        help="that effects are of; Loss: on the clean text (default: LogitDifference)")
    parser.add_argument("--target", default="", metavar="TOKEN", help="whose logit (default: the prediction on the clean text)")
    parser.add_argument("--against", default="", metavar="TOKEN", help="whose logit is subtracted (default: that on the other)")
    parser.add_argument("--position", type=int, metavar="N", help="of the logits, from 0 (default: the last)")
    parser.add_argument("--steps", type=int, default=10, metavar="N", help="gradients that are averaged (default: 10)")
    parser.add_argument("--exact-edges", type=int, default=0, metavar="N", help="of so many edges also the exact effect (default: 0)")
    parser.add_argument("--circuit", metavar="FILE", help="a circuit that is measured and drawn instead, without --of and --top")
    add_options(parser, "pdf")
    return parser


def main(arguments: Listed[str] | None = None) -> None:
    found = _parser().parse_args(arguments)
    names = ("of", "top", "target", "against", "position", "steps", "exact_edges", "measure", "circuit")
    try:
        chosen = {name: getattr(found, name) for name in names}
        for path in render(found.model, found.clean, found.corrupted, found.output, output=Output(**options(found)), **chosen):
            print(path, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
