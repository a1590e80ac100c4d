"""The live article: attention on a torus, as a page whose pictures are computed while its reader moves them.

    attention-atlas article [MODEL.safetensors] [-o ARTICLE.html] [--transformer FOLDER] [--text TEXT] [--steps N]
        [--seed S] [--no-pdf] [--no-states] [--theme system|light|dark]

MODEL is a small attention-only model with next tokens, three to eight heads and at most 24 tokens; without one, a model
is trained. TRANSFORMER is a folder with config.json and, for the play of its training, checkpoint-* folders. The page
is one HTML file and needs no network. Beside it are ARTICLE.pdf, its twin for print, which a Chromium browser
makes, and a folder ARTICLE of ParaView states, one for each chapter, with the data that they show.

    from attentionatlas import article
    article.write("article.html")
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import html
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence as Listed
from typing import Any

import numpy
from attentionatlas import web
from attentionatlas._internal import data, host
from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.checks import check
from attentionatlas._internal.files import complete, gathered, scratch
from attentionatlas._internal.livemodel import Parameters, Run, Training
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.names import own
from attentionatlas._internal.plugin import plugin_path
from attentionatlas._internal.readers import Missing, kind_of
from attentionatlas._internal.recording import Recording, Transformer
from attentionatlas._internal.webpage import ASSETS, THEMES, Block, Page, Scene, checked, filled, hash_of, json_text

__dir__ = own(__name__)

__all__ = ["TEXT", "TITLE", "write"]

TITLE = "Attention on a torus"
#: What the trained transformer reads: a phrase twice.
TEXT = "The LORD is my shepherd; I shall not want. The LORD is my shepherd; I shall not want."
#: Heads and tokens that the page has room for.
_HEADS, _TOKENS = (3, 8), (2, 24)
#: Programs that print a page to a file.
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
#: The program of ParaView that makes states.
_PARAVIEW = "pvpython"
#: For how long one may print, in seconds.
_PATIENCE = 300
#: The largest transformer that is copied beside the page, for the state of its composition.
_MODEL_BYTES = 64 << 20


def _check_model(model: SmallModel) -> None:
    for name, found, (least, most) in (("heads", model.head_count, _HEADS), ("tokens", model.token_count, _TOKENS)):
        if not least <= found <= most:
            raise ValueError(f"{model.name}: expected a model with {least} to {most} {name}, found {found}.")
    if model.pair_points()[1] is None:
        raise ValueError(f"{model.name}: expected a model with next_token, found none.")


def _picture(figure: Any, scratch: pathlib.Path) -> str:
    """A figure as the address of an image in the page."""
    from attentionatlas.output import save

    path = save(figure, scratch / "figure.png", 160)
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


class _Scenes:
    """Scenes of a trained transformer: pages in frames, each with a figure for print and until it is there."""

    def __init__(
        self, transformer: pathlib.Path, recording: Recording, place: tuple[int, int], scratch: pathlib.Path
    ) -> None:
        from attentionatlas import circuits, embedding, sentence

        layer, head = place
        at: dict[str, Any] = {"layer": layer, "head": head}
        rows = sum(recording.lengths)
        perplexity = {"perplexity": min(30.0, rows / 4)}
        points: dict[str, Any] = {**at, **perplexity}
        words: dict[str, Any] = {**at, "sequence": min(2, recording.sequences - 1)}
        self.made = {
            "embedding": (
                web.head_embedding(recording, **points),
                embedding.one_head(recording, **points, width_mm=150),
            ),
            "sentence": (web.sentence(recording, **words), sentence.lines(recording, **words, width_mm=120)),
        }
        with Transformer(transformer) as model:
            if model.layer_count > 1:
                graph = circuits.composition(model, kind="K", width_mm=150)
                self.made["composition"] = (web.composition(model), graph)
        self.pictures = {name: _picture(figure, scratch) for name, (_, figure) in self.made.items()}

    def pages(self, script: str, style: str) -> dict[str, str]:
        """The pages without what they share, which the article has once."""
        return {
            name: self._page(made).replace(script, "@@page-script@@").replace(style, "@@page-style@@")
            for name, (made, _) in self.made.items()
        }

    @staticmethod
    def _page(made: Scene) -> str:
        return Page([made], made.title).html()

    def place(self, name: str) -> str:
        """The element of a scene; nothing without one."""
        if name not in self.made:
            return ""
        title = html.escape(self.made[name][0].title, quote=True)
        caption = html.escape(self.made[name][0].caption)
        return (
            f'<figure class="scene" data-scene="{name}" data-title="{title}"><img alt="{title}" src="{self.pictures[name]}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )


def _browser() -> str | None:
    return next((path for name in _BROWSERS if (path := shutil.which(name))), None)


def print_page(page: pathlib.Path, path: pathlib.Path) -> None:
    """Prints a page to a PDF file with a Chromium browser, which appears complete or not at all.

    Raises Missing without such a browser, OSError where it fails.
    """
    browser = _browser()
    if browser is None:
        raise Missing("no Chromium browser found; print the page from a browser")
    with complete(path) as temporary, scratch() as profile:
        command = [
            browser,
            "--headless=new",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # which Chromium has none of for root
            "--use-gl=angle",
            "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--no-pdf-header-footer",
            "--virtual-time-budget=20000",
            f"--user-data-dir={profile}",
            f"--print-to-pdf={temporary}",
            page.resolve().as_uri(),
        ]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise OSError(f"{path}: {browser} printed no PDF in {_PATIENCE} seconds.") from error
        if ran.returncode or not temporary.is_file() or temporary.read_bytes()[:5] != b"%PDF-":
            raise OSError(f"{path}: {browser} printed no PDF: {ran.stderr.strip()[-400:]}")


def _of_trained(run: Run, scenes: _Scenes, known: dict[str, str]) -> str:
    """The chapter about the trained transformer."""
    text = (ASSETS / "article-trained.html").read_text(encoding="utf-8")
    _, layers, heads = run.weights.shape[:3]
    values = known | {
        "run-layers": str(layers), "run-heads": str(heads), "run-middle": str(run.forming()),
        "run-best": ".".join(map(str, run.best())),
    }
    return filled(
        text, values | {f"scene:{name}": scenes.place(name) for name in ("embedding", "sentence", "composition")}
    )


def _state_link(folder: str, name: str, states: Mapping[str, Listed[str]]) -> str:
    """How a reader opens a chapter in ParaView: its state, and the files that it shows."""

    def link(file: str) -> str:
        return f'<a href="{html.escape(f"{folder}/{file}", quote=True)}" download>{html.escape(file)}</a>'

    if name not in states:
        return ""
    return (
        f'<p class="state screen">Open this scene in ParaView: download {link(f"{name}.pvsm")} and '
        f"{', '.join(map(link, states[name]))}, load the state, and choose <i>Search files under specified directory</i>.</p>"
    )


def _missing_for_states() -> str | None:
    """What states need and is not there."""
    if shutil.which(_PARAVIEW) is None:
        return f"ParaView's program {_PARAVIEW}"
    try:
        plugin_path()
    except FileNotFoundError:
        return "the plugin of ParaView"
    return None


def _write_states(folder: pathlib.Path, shown: Mapping[str, Listed[str]], training: Mapping[str, Any]) -> None:
    """Writes states into a folder of files that they show, by another process.

    shown: of each chapter, the files, relative to the folder; a model's config.json stands for it. training: options of
    the training of the small model. Raises RuntimeError with what went wrong.
    """
    described = {"folder": str(folder.resolve()), "shown": shown, "training": training}
    package = str(pathlib.Path(__file__).resolve().parents[1])
    others = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        "ATLAS_HOST": "ParaView",
        "ATLAS_PLUGIN": str(plugin_path()),
        "PYTHONPATH": package if not others else f"{package}{os.pathsep}{others}",
    }
    done = subprocess.run(
        [_PARAVIEW, "-m", "attentionatlas._internal.article_states"], input=json.dumps(described), env=environment, text=True, capture_output=True
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(f"the states of the article could not be made: {lines[-1] if lines else done.returncode}")


def _shipped(*parts: str) -> pathlib.Path | None:
    """A file or folder of the data that come along; None without it."""
    from attentionatlas.findings import models_folder

    folder = models_folder()
    path = None if folder is None else folder.parent.joinpath(*parts)
    return path if path is not None and path.exists() else None


class _Article:
    """What the page shows; write makes the files."""

    def __init__(
        self,
        model: pathlib.Path | None,
        transformer: pathlib.Path | None,
        text: str,
        steps: int,
        seed: int,
        scratch: pathlib.Path,
    ) -> None:
        #: The files that the states show.
        self.model = scratch / "model.safetensors"
        with self._task(model) as task:
            if task is not None:
                _check_model(task)
            training = Training(task, steps, seed)
            try:
                self.training = training
                if model is None:
                    training.save(self.model)
                else:
                    shutil.copyfile(model, self.model)
                self.options = {
                    "steps": steps,
                    "seed": seed,
                    "checkpoint_every": max(1, steps // 350),
                    "heads": training.frames[0].heads,
                    "model_file": str(self.model),
                }
                with SmallModel(self.model) as shown:
                    self.colors = shown.colors()
                    self.accuracies = {
                        "accuracy": self._accuracy(shown),
                        "without-residual": self._accuracy(shown, Residual="None"),
                        "hardmax": self._accuracy(shown, Pattern="Hardmax"),
                        **self._alone(shown),
                    }
                    self.parameters = Parameters(shown.reader)
                    self.options["head_dimension"] = shown.dimension
            finally:
                training.close()
        self.transformer = transformer
        self.run = None if transformer is None else Run(transformer, text)
        self.recording: pathlib.Path | None = None
        self.scenes: _Scenes | None = None
        if self.run is not None and transformer is not None:
            self.recording = scratch / "recording.safetensors"
            self._record(transformer, text, self.recording)
            with Recording(self.recording) as recording:
                self.scenes = _Scenes(transformer, recording, self.run.best(), scratch)

    @staticmethod
    def _accuracy(model: SmallModel, **properties: Any) -> str:
        """The share of the token pairs that a model predicts right, for a text."""
        return _percent(model.pair_points(**properties)[1] or 0.0)

    @staticmethod
    def _alone(model: SmallModel) -> dict[str, str]:
        """What each head predicts without the others, and what at least one of them does."""
        heads = range(model.head_count)
        weights = [[float(other == head) for other in heads] for head in heads]
        pairs = [model.pair_points(HeadWeights=chosen)[0] for chosen in weights]
        correct = numpy.array([data.point_array(points, "Correct") for points in pairs], bool)
        shares = [_percent(share) for share in correct.mean(axis=1)]
        return {"alone": f"{', '.join(shares[:-1])} and {shares[-1]}", "union": _percent(correct.any(axis=0).mean())}

    @staticmethod
    def _task(model: pathlib.Path | None) -> Any:
        path = model or _shipped("trained-n5-h3.safetensors")
        return contextlib.nullcontext(None) if path is None else SmallModel(path)

    @staticmethod
    def _record(transformer: pathlib.Path, text: str, path: pathlib.Path) -> None:
        shipped = _shipped("recordings", f"{transformer.name}.safetensors")
        if shipped is not None and transformer == _shipped("models", transformer.name) and text == TEXT:
            shutil.copyfile(shipped, path)
            return
        with Transformer(transformer) as model, model.record(text, record=["QueriesAndKeys"]) as recording:
            recording.save(path)

    def write_states(self, folder: pathlib.Path) -> dict[str, list[str]]:
        """Writes a state for each chapter, and the files that they show, into a folder.

        Returns the names of the files of each chapter's state. Another process makes them, since ParaView saves a whole
        session, and that of the caller stays as it is.
        """
        copies = {path: folder / path.name for path in (self.model, self.recording) if path is not None}
        if self.transformer is not None and self.scenes is not None and "composition" in self.scenes.made:
            own = [path for path in sorted(self.transformer.iterdir()) if path.is_file()]
            if sum(path.stat().st_size for path in own) <= _MODEL_BYTES:
                copies |= {path: folder / self.transformer.name / path.name for path in own}
        for source, target in copies.items():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, target)
        shown = {name: [self.model.name] for name in _OF_MODEL}
        if self.recording is not None:
            shown["trained"] = [self.recording.name]
        composed = [str(path.relative_to(folder)) for path in copies.values() if path.parent != folder]
        if composed:
            shown["composition"] = composed
        _write_states(folder, shown, self.options)
        return shown

    def html(self, title: str, theme: str, address: str, states: Mapping[str, Listed[str]]) -> str:
        """The text of the page. address: of the folder of states, as seen from the page."""
        block = Block()
        training = self.training
        frames = numpy.array([frame.numbers for frame in training.frames])
        described: dict[str, Any] = {
            "model": {
                **self.parameters.described(self.colors),
                "numbers": block.add(self.parameters.numbers[None, :]),
                "frames": block.add(frames),
                "steps": training.steps,
                "losses": training.losses,
                "accuracies": training.accuracies,
            }
        }
        texts = {
            name: (ASSETS / name).read_text(encoding="utf-8")
            for name in ("article.min.js", "article.css", "page.min.js", "page.css")
        }
        script, style = texts["page.min.js"], texts["page.css"]
        if self.run is not None and self.scenes is not None:
            described["run"] = self.run.described(block)
        pages = self.scenes.pages(script, style) if self.scenes else {}
        described["frames"] = {"pages": pages, "script": script if pages else "", "style": style if pages else ""}
        tokens = self.parameters.tokens
        values = {
            "title": html.escape(title, quote=True),
            "theme": theme,
            "script-hash": hash_of(texts["article.min.js"]),
            "style-hash": hash_of(texts["article.css"]),
            "page-script-hash": hash_of(script),
            "page-style-hash": hash_of(style),
            "style": texts["article.css"],
            "script": texts["article.min.js"],
            "heads": str(self.parameters.heads),
            "tokens": str(tokens),
            "pairs": str(tokens**2),
            "parameters": str(self.parameters.numbers.size),
            "moved": str(2 * tokens - 1),
            "moved-angle": f"{float(self.parameters.numbers[0]) + 0.7:.4f}",
            "guess": _percent(max(numpy.bincount(self.parameters.next)) / tokens**2),
            "done": f"{training.steps[_done(training.accuracies)]:,}",
            "trained-accuracy": _percent(training.accuracies[-1]),
            **self.accuracies,
            "middle": str(_middle(training.accuracies)),
            "first-alone": " ".join(f"weight{head}={int(head == 0)}" for head in range(self.parameters.heads)),
        }
        values |= {f"state:{name}": _state_link(address, name, states) for name in _CHAPTERS}
        trained = "" if self.run is None or self.scenes is None else _of_trained(self.run, self.scenes, values)
        text = (ASSETS / "article.html").read_text(encoding="utf-8")
        return filled(text, {**values, "trained": trained, "article": json_text(described), "data": block.text()})


#: The chapters that may have a state, those on the small model first.
_OF_MODEL = ("two-tokens", "circle", "torus", "harmonics", "sphere", "heads", "training")
_CHAPTERS = (*_OF_MODEL, "trained", "composition")


def _percent(share: float) -> str:
    return f"{100 * share:.0f}&nbsp;%"


def _done(accuracies: list[float]) -> int:
    """The first step shown from which the accuracy stays what it is in the end."""
    others = [i for i, accuracy in enumerate(accuracies) if accuracy != accuracies[-1]]
    return others[-1] + 1 if others else 0


def _middle(accuracies: list[float]) -> int:
    """The first step shown at which half of the pairs are right."""
    return next((i for i, accuracy in enumerate(accuracies) if accuracy >= 0.5), len(accuracies) // 2)


def write(
    path: PathLike = "article.html",
    model: PathLike | None = None,
    transformer: PathLike | None = None,
    *,
    text: str = TEXT,
    steps: int = 3500,
    seed: int = 0,
    title: str = TITLE,
    theme: str = "system",
    pdf: bool = True,
    states: bool = True,
) -> list[pathlib.Path]:
    """Writes the article; returns the paths of its files, of which the page is the first.

    path: the .html file. model: the file of a small model, which must have next tokens, 3 to 8 heads and at most 24
    tokens; by default one is trained. transformer: a folder with config.json and perhaps checkpoint-* folders; by default
    language-2 of the data that come along. text: what it reads, at most 64 tokens. steps: of the training, from 100 to
    100,000. seed: of the training. theme: system, light or dark. pdf: also prints the page, if a Chromium browser is
    there. states: also writes a folder of ParaView states and their data beside the page, by another process; the present
    session stays as it is. The states name their data without a folder, so that they open wherever the folder is. Files
    appear complete or not at all. Raises FileNotFoundError for a missing file, ValueError for one that is something else,
    or a value out of range, RuntimeError if the states cannot be made.
    """
    path = checked(path)
    check("steps", steps, 100, 100_000)
    if theme not in THEMES:
        raise ValueError(f"theme: expected {', '.join(THEMES)}, found '{theme}'.")
    missing = _missing_for_states() if states else None
    if missing is not None:
        raise RuntimeError(f"the states of the article need {missing}, which was not found.")
    host.load()
    chosen = None if model is None else _expected(model, "model", "a small attention-only model")
    folder = (
        _shipped("models", "language-2")
        if transformer is None
        else _expected(transformer, "transformer", "a transformer")
    )
    if folder is not None and folder.name == "config.json":
        folder = folder.parent
    made = [path]
    beside = path.with_suffix("")
    with scratch() as temporary:
        article = _Article(chosen, folder, text, steps, seed, temporary)
        with contextlib.ExitStack() as after:
            written = article.write_states(after.enter_context(gathered(beside))) if states else {}
            with complete(path) as file:
                file.write_text(article.html(title, theme, beside.name, written), encoding="utf-8")
        made += [beside / f"{name}.pvsm" for name in written]
    if pdf:
        print_page(path, path.with_suffix(".pdf"))
        made.insert(1, path.with_suffix(".pdf"))
    return made


def _expected(path: PathLike, kind: str, what: str) -> pathlib.Path:
    """A file that holds what it should."""
    path = pathlib.Path(path).resolve()
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file.")
    if kind_of(path) != kind:
        raise ValueError(f"{path}: expected {what}, found a {kind_of(path)}.")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas article",
        description="Writes the live article: attention on a torus, as one HTML file whose pictures are computed while "
        "they are moved. It needs no network. Beside it: a PDF file for print, and ParaView states of its scenes.",
    )
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="a small attention-only model (default: one is trained)"
    )
    parser.add_argument("-o", "--output", default="article.html", help="the page (default: article.html)")
    parser.add_argument(
        "--transformer",
        metavar="FOLDER",
        help="a trained transformer, with its checkpoints if it has some (default: language-2 of the data that come along)",
    )
    parser.add_argument(
        "--text", default=TEXT, help="what the transformer reads, with a phrase twice (default: of Psalm 23)"
    )
    parser.add_argument("--steps", type=int, default=3500, help="of the training (default: 3500)")
    parser.add_argument("--seed", type=int, default=0, help="of the training (default: 0)")
    parser.add_argument("--title", default=TITLE, help=f"of the page (default: {TITLE})")
    parser.add_argument("--theme", choices=THEMES, default="system", help="of the page (default: system, the reader's)")
    parser.add_argument("--no-pdf", action="store_true", help="prints no PDF file")
    parser.add_argument("--no-states", action="store_true", help="writes no ParaView states")
    return parser


def main(arguments: Listed[str] | None = None) -> None:
    found = _parser().parse_args(arguments)
    pdf = not found.no_pdf
    if pdf and _browser() is None:
        print("left out: the PDF file: no Chromium browser found; print the page from a browser", file=sys.stderr)
        pdf = False
    states = not found.no_states
    missing = _missing_for_states() if states else None
    if missing is not None:
        print(f"left out: the states of the article: they need {missing}, which was not found", file=sys.stderr)
        states = False
    options = {name: getattr(found, name) for name in ("text", "steps", "seed", "title", "theme")}
    try:
        made = write(found.output, found.model, found.transformer, pdf=pdf, states=states, **options)
    except (OSError, RuntimeError, ValueError) as error:
        raise SystemExit(str(error)) from error
    for path in made:
        print(path)


if __name__ == "__main__":
    main()
