"""How trainings of many seeds end: a table of modes and penalties, as CSV and in Markdown.

    python3 -m attentionatlas.training_table attention-atlas -o training-100-seeds.csv

runs the program of that path (built into bin/) for each of SETTINGS on 100 seeds, N = 5 tokens, H = 3
heads of dimension 3, writes a row per training and prints a row per setting. It needs no ParaView.
"""

from __future__ import annotations

import argparse
import csv
import os
import pathlib
import statistics
import subprocess
import tempfile
from collections.abc import Sequence

RUNS = 100

_MODES = ("Joint", "Boosting", "BoostingOutputOnly")
#: The options of the program, as columns of the table.
_COLUMNS = {
    "Mode": "mode",
    "Steps": "steps",
    "Learning Rate": "rate",
    "Batch Size": "batch-size",
    "Specialization": "specialization",
}


def _setting(
    mode: str = "Joint", steps: str = "3500", rate: str = "0.01", pairs: str = "0", penalty: str = "0"
) -> dict[str, str]:
    return dict(zip(_COLUMNS, (mode, steps, rate, pairs, penalty)))


#: Modes with exact gradients and as published, then penalties.
SETTINGS = [
    *[_setting(mode, steps) for mode in _MODES for steps in ("3500", "10500")],
    *[_setting(mode, steps, "0.001", "256") for mode in _MODES for steps in ("3500", "10500")],
    *[_setting(penalty=weight) for weight in ("0.03", "0.1", "0.3", "1", "3")],
]


def run(program: str, setting: dict[str, str]) -> list[dict[str, str]]:
    """The rows of one setting, as text by column. Raises CalledProcessError if the program fails."""
    options = [part for column, value in setting.items() for part in ("--" + _COLUMNS[column], value)]
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder, "table.csv")
        command = [program, "learn", "--task", "TokenPairs", "--seeds", str(RUNS), "--table", str(table), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(table, encoding="utf-8", newline="") as file:
            return [{**setting, **row} for row in csv.DictReader(file)]


def summary(rows: list[dict[str, str]]) -> dict[str, str]:
    """What the trainings of one setting have in common, and their means, as the cells of a table."""
    first = rows[0]
    numbers = {name: [float(row[name]) for row in rows] for name in first if name != "Mode"}
    heads = [values for name, values in numbers.items() if name.startswith("Accuracy Head")]
    learned = [steps for steps in numbers["Steps to Learn"] if steps >= 0]
    return {
        "mode": first["Mode"],
        "steps": first["Steps"],
        "rate": f"{float(first['Learning Rate']):g}",
        "pairs a step": "all" if first["Batch Size"] == "0" else first["Batch Size"],
        "\u03bb": f"{float(first['Specialization']):g}",
        "accuracy 1": f"{sum(accuracy == 1 for accuracy in numbers['Accuracy'])} of {len(rows)}",
        "mean accuracy": f"{statistics.mean(numbers['Accuracy']):.3f}",
        "median loss": f"{statistics.median(numbers['Loss']):.1e}",
        "median steps to learn": f"{statistics.median(learned):.0f}" if learned else "\u2013",
        "sum of heads alone": f"{statistics.mean(map(sum, zip(*heads))):.2f}",
        "union of heads": f"{statistics.mean(numbers['Union']):.3f}",
    }


def markdown(table: list[dict[str, str]]) -> str:
    """A table of dictionaries with the same keys, in Markdown."""
    lines = [list(table[0]), ["---"] * len(table[0]), *[list(row.values()) for row in table]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python3 -m attentionatlas.training_table")
    parser.add_argument("program", help="attention-atlas")
    parser.add_argument("-o", "--output", required=True, help="the CSV file to write")
    options = parser.parse_args(arguments)
    settings = [run(options.program, setting) for setting in SETTINGS]
    path = pathlib.Path(options.output)
    temporary = path.with_name(path.name + ".part")
    with open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, settings[0][0].keys(), lineterminator="\n")
        writer.writeheader()
        for rows in settings:
            writer.writerows(rows)
    os.replace(temporary, path)
    print(markdown([summary(rows) for rows in settings]))


if __name__ == "__main__":
    main()
