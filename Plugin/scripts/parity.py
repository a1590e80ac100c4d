#!/usr/bin/env python3
"""Writes Parity.md: how far recordings are from what the original code computes.

TestModelParity and TestCoreRun compare each model and leave a row of deviations; this joins the rows into a table.

    python3 Plugin/scripts/parity.py build/dev/bin/TestModelParity build/dev/bin/TestCoreRun Plugin/Documentation/Parity.md
    python3 Plugin/scripts/parity.py --check ...    fails if the page lacks a model that was compared
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

QUANTITIES = ["scores", "attention", "outputs", "experts", "hidden", "logits"]

HEAD = """# Parity

How far recordings are from what the original code of each model computes: the largest absolute deviation over all
layers, heads, tokens and sequences. Allowed are 2e-5 for scores, attention, head outputs and weights of experts, which are
the same experts (for scores that exceed 16, in proportion), and 2e-4 for hidden states and logits (which reach 40; 2e-3 for
hidden states of Qwen3-Next, which reach 320).
`Plugin/scripts/parity.py` writes this page. Digits change with the processor.

The models are small ones with random weights, made and run by the original code (transformers 4.45; Qwen3, Gemma 3 and
gpt-oss: layers of 5.10; other mixtures of experts, models with an encoder and a decoder, and those of pictures among words: 4.57),
in single precision. Models with an encoder and a decoder have a row for each kind of attention, those of pictures among words one
for their encoder of images and one for their text ("decoder"). Rows of GGUF are compared with the
original code on the same weights, dequantized by gguf-py. Rows of "GGUF, converted" are models that llama.cpp's script converted; they are compared with
the original code on the model before the conversion. Rows of "transformers 5" are models that release 5.17 saved and ran; those of
"GGUF, by the rules of conversion" are the same weights under the names, settings and orders of llama.cpp's conversion. "-": the original values have no such quantity. Models whose values
are too large for this repository are compared where `shared/oracle/models` lies beside it.

| model | file | weights | """

TITLES = {
    "scores": "scores",
    "attention": "attention",
    "outputs": "head outputs",
    "experts": "weights of experts",
    "hidden": "hidden states",
    "logits": "logits",
}


BFLOAT16 = "products of BF16"

BFLOAT16_HEAD = """
## Products of BF16

With *Products* of a Transformer Reader at BF16, activations and weights are rounded to 8 significant bits where they are multiplied. How
far attention, head outputs, hidden states and logits of the same models then are from those in single precision: the largest
deviation, in percent of the largest value. A token whose experts change takes another way through the model, so mixtures of experts
can be far off. `attention-atlas record --products bf16` computes the same.

| model | """

BFLOAT16_QUANTITIES = ["attention", "outputs", "hidden", "logits"]


def text_of(value):
    return "-" if value is None else f"{value:.1e}".replace("e-0", "e-")


def key_of(row):
    name = row["model"] + (f" ({row['architecture']})" if row["architecture"] else "")
    return f"| {name} |" if row["file"] == BFLOAT16 else f"| {name} | {row['file']} | {row['dtype']} |"


def percent_of(value):
    return "-" if value is None else f"{100 * value:.2g}"


def table_of(head, keys, quantities, rows, text):
    lines = [head + " | ".join(TITLES[quantity] for quantity in quantities) + " |"]
    lines.append("|" + "---|" * keys + "---:|" * len(quantities))
    lines += [key_of(row) + "".join(f" {text(row.get(quantity))} |" for quantity in quantities) for row in rows]
    return "\n".join(lines) + "\n"


def page_of(rows):
    exact = [row for row in rows if row["file"] != BFLOAT16]
    rounded = [row for row in rows if row["file"] == BFLOAT16]
    return table_of(HEAD, 3, QUANTITIES, exact, text_of) + table_of(
        BFLOAT16_HEAD, 1, BFLOAT16_QUANTITIES, rounded, percent_of
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the rows of the page; write nothing")
    parser.add_argument("tests", type=pathlib.Path, nargs="+", help="the programs TestModelParity and TestCoreRun")
    parser.add_argument("page", type=pathlib.Path, help="Parity.md")
    options = parser.parse_args()
    tests = "*IsThatOfTheOriginalCode*:*ProductsOfBfloat16AreNear*:*Models.ComputeWhatTheOriginalDoes*"
    with tempfile.TemporaryDirectory() as folder:
        for program in options.tests:
            command = [program, f"--gtest_filter={tests}", "--gtest_brief=1"]
            subprocess.run(command, check=True, env={**os.environ, "ATLAS_PARITY_DIR": folder})
        rows = [json.loads(path.read_text()) for path in pathlib.Path(folder).glob("*.json")]
    rows.sort(key=lambda row: (row["file"] != "safetensors", row["file"], row["model"], row["architecture"]))
    if not rows:
        sys.exit(f"{options.tests[0]}: expected a row per model, found none.")
    if options.check:
        exact, _, rounded = options.page.read_text().partition("## Products of BF16")
        missing = [key_of(row) for row in rows if key_of(row) not in (rounded if row["file"] == BFLOAT16 else exact)]
        if missing:
            sys.exit(f"{options.page}: rows are missing, write the page again:\n" + "\n".join(missing))
    else:
        options.page.write_text(page_of(rows))


if __name__ == "__main__":
    main()
