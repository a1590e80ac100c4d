"""The findings of the literature, tested on the models that ship with the plugin: a figure and a verdict per claim.

    attention-atlas findings -o DIR [--models FOLDER] [--only NAME,...]

writes DIR/index.html, a page to read from top to bottom, DIR/findings.json with all numbers, and each figure as PNG and
PDF. FOLDER has a folder per model, with config.json, model.safetensors and, from its training, checkpoint-N, curves.csv
and recipe.json. A finding whose model is not there is listed as such. In Python: findings.render("out", "Data/models").
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

from attentionatlas._internal import host, style
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.beside import Begin, beside
from attentionatlas._internal.charts import MILLIMETRE, Page
from attentionatlas._internal.files import gathered, scratch
from attentionatlas._internal.names import own
from attentionatlas._internal.readers import Missing
from attentionatlas.findings import torus
from attentionatlas.findings.base import Finding, Result
from attentionatlas.findings.claims import FINDINGS, MODELS
from attentionatlas.findings.page import write_numbers, write_page
from attentionatlas.findings.study import Study
from attentionatlas.output import save

__dir__ = own(__name__)

__all__ = ["FINDINGS", "MODELS", "models_folder", "render"]

#: Of the page, and of figures in print.
WIDTH, WIDTH_MM = 1800, 180
RECORDING = "gpt2-data-visualization.safetensors"
#: What a finding is about: a model, the name and path of a recording, or the folder Data.
Subject = Study | tuple[str, pathlib.Path] | pathlib.Path


def models_folder() -> pathlib.Path | None:
    """The folder models of the source tree or of the installation that this package is in; None if it is in none."""
    for folder in pathlib.Path(__file__).resolve().parents:
        for data in (folder / "Data", folder / "share" / "attention-atlas"):
            if (data / "recordings" / RECORDING).is_file():
                return data / "models"
    return None


class _Subjects:
    """The models of a folder, each opened when a finding first asks for it, GPT-2's recording, and the folder Data."""

    def __init__(
        self, folder: pathlib.Path, recording: PathLike | None, data: pathlib.Path | None, runs: PathLike
    ) -> None:
        self.folder, self.recording, self.data, self.runs = pathlib.Path(folder), recording, data, runs
        self._studies: dict[str, Study] = {}

    def get(self, name: str) -> Subject:
        """The Study of a model, the name and path of the recording, or the folder Data; raises Missing."""
        if name == "gpt2":
            if self.recording is None or not pathlib.Path(self.recording).is_file():
                raise Missing("recording not found")
            return "GPT-2", pathlib.Path(self.recording)
        if name == "torus":
            if self.data is None or not (self.data / torus.MODEL).is_file():
                raise Missing("model not found")
            return self.data
        if not (self.folder / name / "config.json").is_file():
            raise Missing("model not found")
        if name not in self._studies:
            self._studies[name] = Study(self.folder / name, self.runs)
        return self._studies[name]

    def known(self) -> dict[str, Study]:
        """The studies that were opened, by name."""
        return dict(self._studies)

    def close(self) -> None:
        for study in self._studies.values():
            study.close()


def _draw(finding: Finding, subject: Subject) -> tuple[Any, Result]:
    """Draws a figure; returns it, and what was found."""
    page = Page(WIDTH_MM, WIDTH / (WIDTH_MM * MILLIMETRE))
    with style.applied():
        if isinstance(subject, Study):
            with subject.scope():
                return finding.draw(subject, page)
        return finding.draw(subject, page)


def _write(figure: Any, path: pathlib.Path, begin: Begin) -> None:
    """Writes a figure as PNG and PDF, or begins to."""
    for format, dpi in (("png", WIDTH / (WIDTH_MM * MILLIMETRE) * (1 + 1e-9)), ("pdf", 600)):
        file = path.with_name(f"{path.name}.{format}")
        begin(functools.partial(save, figure, file, dpi))


def _reason(error: Exception) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]


def render(
    folder: PathLike, models: PathLike | None = None, recording: PathLike | None = None,
    names: Iterable[str] | None = None, progress: Callable[[str], object] = lambda line: None,
) -> dict[str, Result | str]:
    """Draws findings and writes index.html and findings.json; returns {name: Result or why there is none}.

    models: the folder of the models; by default models_folder(), else models. recording: GPT-2's; by default that beside
    models_folder(). names: some of FINDINGS; by default all. progress: called with a line of text before each. Raises ValueError for an unknown name.
    """
    known = {finding.name: finding for finding in FINDINGS}
    for name in names or ():
        if name not in known:
            raise ValueError(f"finding: expected one of {', '.join(known)}; found '{name}'.")
    shipped = models_folder()
    models = pathlib.Path(models or shipped or "models")
    if recording is None and shipped is not None:
        recording = shipped.parent / "recordings" / RECORDING
    results: dict[str, Result | str] = {}
    with gathered(pathlib.Path(folder)) as temporary, scratch() as runs, beside() as begin:
        host.load()
        subjects = _Subjects(models, recording, shipped and shipped.parent, runs)
        try:
            chosen = [known[name] for name in names or known]
            for number, finding in enumerate(chosen, 1):
                progress(f"finding {number} of {len(chosen)}, {finding.name}: {finding.title}")
                try:
                    figure, results[finding.name] = _draw(finding, subjects.get(finding.model))
                except (Missing, ValueError, OSError) as error:
                    results[finding.name] = _reason(error)
                    progress(f"  cannot be tested: {results[finding.name]}")
                else:
                    _write(figure, temporary / finding.name, begin)
            facts = {name: (study, study.recipe) for name, study in subjects.known().items()}
            write_numbers(temporary / "findings.json", results)
            write_page(temporary / "index.html", results, facts)
        finally:
            subjects.close()
    return results
