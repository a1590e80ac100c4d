"""The page of the findings, and the file of their numbers."""

from __future__ import annotations

import collections
import html
import json
import pathlib
import urllib.parse
from collections.abc import Iterator
from typing import Any

import numpy

from attentionatlas._internal.files import complete
from attentionatlas.findings.base import Finding, Result
from attentionatlas.findings.claims import FINDINGS, MODELS
from attentionatlas.findings.study import Study

VERDICTS = {True: "holds", False: "does not hold", None: "cannot be tested on models of this size"}
#: The verdict where a model is missing.
NOT_TESTED = "not tested"
#: The settings of a recipe that the page names, beside task, steps and sizes of batches.
_SHOWN = (
    "rate", "schedule", "weight_decay", "positions", "normalization", "mlp_dimension", "repeats", "train_share", "seed",
    "data_seed",
)
_NAMES = {"rate": "learning rate", "seed": "seed of the weights", "data_seed": "seed of the data"}
#: What has no recipe.
_ELSEWHERE = {"gpt2": "by its authors", "torus": "see Plugin/Documentation/Training.md"}
_CLASSES = {VERDICTS[True]: "holds", VERDICTS[False]: "fails"}
#: By the name of a finding, what was measured or why nothing could be.
Results = dict[str, Result | str]
#: By the name of a model, the model and the recipe of its training.
Facts = dict[str, tuple[Study, dict[str, Any]]]
_STYLE = """
  body { font: 17px/1.55 Georgia, "DejaVu Serif", serif; color: #222; background: #fff; max-width: 52rem; margin: 2rem auto;
    padding: 0 1rem; }
  h1, h2, h3, table, nav, dl, .verdict { font-family: "DejaVu Sans", Verdana, sans-serif; }
  h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.3rem; margin-top: 3rem; border-bottom: 1px solid #aaa; }
  h3 { font-size: 1.05rem; margin: 3.2rem 0 0.4rem; }
  blockquote { margin: 0.4rem 0 0.8rem; padding-left: 0.9rem; border-left: 3px solid #0072b2; font-style: italic; }
  blockquote cite { display: block; font-size: 0.85rem; font-style: normal; color: #555; }
  table { border-collapse: collapse; font-size: 0.8rem; width: 100%; } td, th { text-align: left; padding: 0.25rem 0.5rem;
    border-bottom: 1px solid #ddd; vertical-align: top; }
  dl { font-size: 0.85rem; } dt { font-weight: bold; margin-top: 0.4rem; } dd { margin: 0 0 0 1rem; }
  figure { margin: 1rem 0; } img { width: 100%; height: auto; } figcaption { font-size: 0.8rem; color: #555; }
  .verdict { font-weight: bold; }
  .holds { color: #00704f; } .fails { color: #b24700; } .open { color: #666; }
  @media print { body { margin: 0; max-width: none; font-size: 10pt; } section { break-inside: avoid; } }
"""


def _plain(value: Any) -> Any:
    """A value as JSON knows it: without NaN, arrays as lists."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if numpy.isfinite(value) else None
    return value


def verdict(result: Result | str) -> str:
    """The verdict on a Result, or on the reason why there is none, in words."""
    return VERDICTS[result.holds] if isinstance(result, Result) else NOT_TESTED


def write_numbers(path: pathlib.Path, results: Results) -> None:
    """Writes findings.json: the claim, verdict and all numbers of each finding."""
    entries = {}
    for finding in FINDINGS:
        if finding.name not in results:
            continue
        result = results[finding.name]
        entry = {name: getattr(finding, name) for name in ("title", "claim", "source", "model")}
        entry["verdict"] = verdict(result)
        if isinstance(result, Result):
            names = ("measured", "definition", "threshold", "reason", "numbers")
            entry.update({name: _plain(getattr(result, name)) for name in names})
        else:
            entry["reason"] = result
        entries[finding.name] = entry
    with complete(path) as temporary:
        temporary.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _text(value: object) -> str:
    return html.escape(str(value))


def _mark(result: Result | str) -> str:
    words = verdict(result)
    return f'<span class="verdict {_CLASSES.get(words, "open")}">{words}</span>'


def _training(recipe: dict[str, Any]) -> str:
    """How a model was trained, in words, by its recipe."""
    if not recipe:
        return "no recipe.json"
    known = {name: value for name, value in recipe.items() if not isinstance(value, (dict, list))}
    words = [f"Task {known.pop('task', 'unknown')}, {known.pop('steps', 0):,} steps"]
    if known.get("batch_size"):
        words.append(f"of {known['batch_size']} sequences of {known.get('context', 0)} tokens")
    if "curriculum" in known and known["curriculum"]:
        words.append(f"(the first {known['curriculum']:,} on repeated random tokens)")
    rest = {name: known[name] for name in _SHOWN if known.get(name) not in (None, "")}
    settings = (f"{_NAMES.get(name, name.replace('_', ' '))} {_value(value)}" for name, value in rest.items())
    return " ".join(words) + "; " + ", ".join(settings)


def _models(facts: Facts, results: Results) -> Iterator[str]:
    """What the models of these findings are, how large, and how they were trained."""
    used = {finding.model for finding in FINDINGS if finding.name in results}
    yield "<table><tr><th>Model</th><th>What it is</th><th>Size</th><th>How it was trained (recipe.json)</th></tr>"
    for name, what in ((name, what) for name, what in MODELS.items() if name in used):
        size, training = "\u2013", _ELSEWHERE.get(name, "not found")
        if name in facts:
            study, recipe = facts[name]
            size = f"{study.layer_count} layer{'s' * (study.layer_count > 1)}, {study.head_count} heads, d {study.width}"
            size += f", {study.vocabulary:,} tokens" if study.vocabulary else ""
            training = _training(recipe)
        yield (
            f"<tr><td><b>{_text(name)}</b></td><td>{_text(what)}</td><td>{_text(size)}</td>"
            f"<td>{_text(training)}</td></tr>"
        )
    yield "</table>"


def _value(value: Any) -> Any:
    return f"{value:g}" if isinstance(value, float) else value


def _summary(results: Results) -> Iterator[str]:
    yield "<table><tr><th>Finding</th><th>Source</th><th>Verdict</th><th>Measured</th></tr>"
    for finding in FINDINGS:
        if finding.name not in results:
            continue
        result = results[finding.name]
        measured = result.measured if isinstance(result, Result) else result
        yield (
            f'<tr><td><a href="#{finding.name}">{_text(finding.title)}</a></td><td>{_text(finding.source)}</td>'
            f"<td>{_mark(result)}</td><td>{_text(measured)}</td></tr>"
        )
    yield "</table>"


def _section(finding: Finding, result: Result | str) -> Iterator[str]:
    yield f'<section id="{finding.name}"><h3>{_text(finding.title)}</h3>'
    yield f"<blockquote>{_text(finding.claim)}<cite>{_text(finding.source)}</cite></blockquote>"
    if not isinstance(result, Result):
        yield f"<p>{_mark(result)}: {_text(result)} (<code>{_text(finding.model)}</code>).</p></section>"
        return
    link = urllib.parse.quote(finding.name)
    yield (
        f'<figure><a href="{link}.png"><img src="{link}.png" alt="{_text(finding.title)}: {_text(result.measured)}"></a>'
        f'<figcaption><a href="{link}.pdf">PDF</a> for print.</figcaption></figure>'
    )
    yield f"<p>{_text(finding.seen)}</p>"
    yield f"<p><b>In ParaView:</b> {_text(finding.look)}</p><dl>"
    yield f"<dt>Measured</dt><dd>{_text(result.measured)}. {_text(result.definition)}</dd>"
    yield f"<dt>Verdict</dt><dd>{_mark(result)}. {_text(f'{result.reason} {result.threshold}'.strip())}</dd></dl></section>"


def write_page(path: pathlib.Path, results: Results, facts: Facts) -> None:
    """Writes index.html. results: by name, Results or reasons; facts: the Study and recipe of each model."""
    counts = collections.Counter(map(verdict, results.values()))
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><title>What attention heads do</title>',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>What attention heads do: findings of the literature, tested on small models</h1>",
        "<p>Researchers have found that the heads of transformers do recognizable things: attend to the previous "
        "token, continue what they have seen, rest on the first token. This page tests such claims, one figure "
        "each, on models that are small enough to be trained on a laptop. All of them ship with Attention Atlas, "
        "so every figure can be made again, and every model opened in ParaView.</p>",
        "<p>Each finding says what was claimed and by whom, what was measured, and by which threshold it holds. "
        "The thresholds are ours. Where a claim needs what our models do not have, such as later layers, the verdict says "
        "so. A small model that does not show a phenomenon does not refute it in large ones.</p>",
        "<h2>The models</h2>", *_models(facts, results),
        "<h2>All findings</h2>",
        f"<p>{'; '.join(f'{counts[name]} {name}' for name in (*VERDICTS.values(), NOT_TESTED) if counts[name])}.</p>",
        *_summary(results),
        "<h2>One by one</h2>",
    ]
    for finding in FINDINGS:
        if finding.name in results:
            lines += _section(finding, results[finding.name])
    lines.append("</body></html>\n")
    with complete(path) as temporary:
        temporary.write_text("\n".join(lines), encoding="utf-8")
