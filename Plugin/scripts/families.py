#!/usr/bin/env python3
"""Writes the table of model types in Models.md: one row for each that opens.

Which types there are, what GGUF files call them, and which settings are refused follows from the rows of
Filters/Core/Weights/Architectures and the names in ArchitectureConfigs.cxx. Which models have a type is written by hand
in the table, and stays.

    python3 Plugin/scripts/families.py Plugin/Documentation/Models.md
    python3 Plugin/scripts/families.py --check ...    fails if the table is not what it would be
"""

import argparse
import json
import pathlib
import re
import sys

WEIGHTS = pathlib.Path(__file__).resolve().parents[2] / "Filters/Core/Weights"
BEGIN = "| model_type | models | .gguf | refused by name |\n|---|---|---|---|\n"
COUNT = re.compile(r"\b\d+ values of `model_type` open\b")


def rows_of_files():
    """The rows as they stand in their files, by name."""
    rows = {}
    for path in sorted((WEIGHTS / "Architectures").glob("*.json")):
        rows |= json.loads(re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE))
    return rows


def inherited(rows, name, word):
    """What a row and those that it is like say by a word, the nearest first."""
    values = []
    while name:
        row = rows[name]
        if word in row:
            if row[word] is None:
                break
            values.append(row[word])
        name = row.get("like")
    return values


def has_layers(rows, name):
    return bool(inherited(rows, name, "layers"))


def model_types(rows):
    """The types that open: whole rows, and those that are parsed in C++."""
    types = {name for name in rows if not name.startswith("_") and "/" not in name and has_layers(rows, name)}
    source = (WEIGHTS / "Internal/ArchitectureConfigs.cxx").read_text()
    parsed = re.search(r"Architectures = \{ \{(.*?)\} \};", source, re.DOTALL).group(1)
    return sorted(types | set(re.findall(r'\{ "([^"]+)", Parse', parsed)))


def gguf_names(row):
    entries = row.get("gguf", [])
    entries = entries if isinstance(entries, list) else [entries]
    return ", ".join(entry if isinstance(entry, str) else entry["name"] for entry in entries)


def refused(rows, name):
    """Settings that must be off, and those that must have one value."""
    words = " ".join(inherited(rows, name, "refuse")).split()
    required = {}
    for one in inherited(rows, name, "require"):
        required = one | required
    texts = [f"`{word}`" for word in sorted(set(words))]
    texts += [f"`{key}` other than {json.dumps(value)}" for key, value in sorted(required.items()) if value is not None]
    return ", ".join(texts)


def table_of(models):
    rows = rows_of_files()
    lines = []
    for name in model_types(rows):
        row = rows.get(name, {})
        cells = [f"`{name}`", models.get(name, ""), gguf_names(row), refused(rows, name) if name in rows else ""]
        lines.append("| " + " | ".join(cells) + " |\n")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the page; write nothing")
    parser.add_argument("page", type=pathlib.Path, help="Models.md")
    options = parser.parse_args()
    text = options.page.read_text()
    before, begin, after = text.partition(BEGIN)
    if not begin:
        sys.exit(f"{options.page}: expected a table that begins with '{BEGIN.splitlines()[0]}'.")
    old = re.match(r"(?:\|.*\n)*", after).group()
    cells = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in old.splitlines()]
    lines = table_of({row[0].strip("`"): row[1] for row in cells})
    missing = [line for line in lines if line.split(" | ")[1].strip() == ""]
    if missing:
        sys.exit(f"{options.page}: expected the models of each type, found none in\n" + "".join(missing))
    before = COUNT.sub(f"{len(lines)} values of `model_type` open", before)
    page = before + begin + "".join(lines) + after[len(old) :]
    if options.check and page != text:
        sys.exit(f"{options.page}: the table of model types is not that of the rows; run {sys.argv[0]} without --check.")
    if not options.check:
        options.page.write_text(page)


if __name__ == "__main__":
    main()
