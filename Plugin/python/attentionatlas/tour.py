"""The tour: every figure of small attention-only transformers, of recorded ones and of the circuits of language
models, and a page of them.

    attention-atlas figures MODEL.safetensors ... -o DIR [--only NAME,...]
        [--width-mm MM] [--font-size PT] [--dark] [--format png|pdf|svg] [--width PIXELS]
        [--recording FILE [--sequence S] [--layer L] [--head H]] [--transformer CONFIG [--text TEXT]]
"""

from __future__ import annotations

import argparse
import html
import pathlib
import urllib.parse
from collections.abc import Callable, Iterator, Sequence as Listed
from typing import Any

from attentionatlas import circuits, embedding, focus, heads
from attentionatlas._internal import host, movies
from attentionatlas._internal.arguments import MEAN, Head, PathLike, number
from attentionatlas._internal.catalogue import FIGURES
from attentionatlas._internal.files import complete, gathered
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.names import own
from attentionatlas._internal.problems import NoDisplay
from attentionatlas._internal.readers import Missing, label
from attentionatlas._internal.recording import first_head
from attentionatlas.output import Output, add_options, options

__dir__ = own(__name__)


#: The files of figures by name.
Files = dict[str, list[pathlib.Path]]
#: A layer, head and sequence; by default the head with most to see, of a layer the first.
Place = tuple[int | None, Head | None, int]
Progress = Callable[[str], None]


def _names(names: Listed[str] | None) -> list[str]:
    """The names of the figures to draw; raises ValueError for an unknown one."""
    names = list(FIGURES if names is None else names)
    for name in names:
        if name not in FIGURES:
            raise ValueError(f"figure: expected one of {', '.join(FIGURES)}; found '{name}'.")
    return names


def _files(model: SmallModel, figure: Any, folder: pathlib.Path, output: Output) -> Iterator[pathlib.Path]:
    """Draws the pages and the movie of a figure; yields the path of each file."""
    for suffix, draw, arguments in figure.pages(model):
        page = draw(model, **arguments, **output.options)
        yield output.write(page, folder, f"{model.name}-{suffix}")
    if figure.movie:
        suffix, draw = figure.movie
        pixels = min(output.pixels, movies.WIDTH)
        yield draw(model, folder / f"{model.name}-{suffix}.ogv", **output.options_for(pixels))


def _draw(
    path: PathLike, folder: pathlib.Path, names: list[str], output: Output, progress: Progress
) -> Files:
    """Draws figures of one model; returns {name: paths} in the order of the names. Without a display those of surfaces are
    omitted, unless there are no others."""
    drawn, refused = {}, None
    with SmallModel.opened(path) as model:
        for number, name in enumerate(names, 1):
            progress(f"{model.name}: figure {number} of {len(names)}, {name}")
            try:
                with model.scope():
                    drawn[name] = list(_files(model, FIGURES[name], folder, output))
            except Missing as reason:
                progress(f"  omitted: {reason}.")
            except NoDisplay as reason:
                refused = reason
                progress(f"  omitted: {reason}")
    if refused and not drawn:
        raise refused
    return drawn


def _single(head: Head | None) -> int:
    """The head of figures of one head: the first where the mean is asked for."""
    found = number("head", head or 0, ("mean",))
    return 0 if found is MEAN else found


def _draw_recording(
    path: PathLike, folder: pathlib.Path, place: Place, output: Output, progress: Progress, of_focus: dict[str, Any]
) -> tuple[Files, str]:
    """Draws the figures of a recording; returns {name: paths}, and why they show this head. of_focus: options of focus."""
    stem = pathlib.Path(path).stem
    progress(f"{stem}: its heads")
    layer, head, sequence = place
    why = ""
    if layer is None and head is None:
        layer, head, why = first_head(path, sequence)
        progress(f"  {why}")
    head = head or 0
    files = heads.render_named(path, folder, layer, head, sequence, output)
    try:
        progress(f"{stem}: its queries and keys")
        files.update(embedding.render_named(path, folder, layer, _single(head), output=output))
    except Missing as reason:
        progress(f"  omitted: {reason}.")
    progress(f"{stem}: where they look and what they write")
    reasons: list[str] = []
    files.update(focus.render_named(path, folder, layer, head, sequence, output, reasons, **of_focus))
    for line in reasons:
        progress(f"  omitted: {line}.")
    return {name: [file] for name, file in files.items()}, why


def _draw_circuits(
    config: PathLike, folder: pathlib.Path, place: Place, text: str | None, output: Output, progress: Progress
) -> Files:
    """Draws the circuits of a language model; returns {name: paths}."""
    progress(f"{config}: its circuits")
    reasons: list[str] = []
    layer, head = place[0] or 0, _single(place[1])
    files = circuits.render_named(config, folder, output, reasons, text=text, layer=layer, head=head)
    for reason in reasons:
        progress(f"  omitted: {reason}.")
    return {name: [file] for name, file in files.items()}


def stems_of(paths: Listed[PathLike]) -> list[str]:
    """The file names without endings, from which those of the figures follow; they have to differ."""
    stems = [label(path) for path in paths]
    for stem in stems:
        if stems.count(stem) > 1:
            raise ValueError(f"two files are named {stem}: their figures would have the same names.")
    return stems


def render_all(
    paths: Listed[PathLike],
    folder: PathLike,
    names: Listed[str] | None = None,
    width: int = 2400,
    format: str = "png",
    progress: Progress = lambda line: None,
    recordings: Listed[PathLike] = (),
    place: Place = (None, None, 0),
    transformers: Listed[PathLike] = (),
    text: str | None = None,
    of_focus: dict[str, Any] | None = None,
    **style: Any,
) -> list[pathlib.Path]:
    """Renders figures of several models and index.html, which shows them; returns the figures' paths.

    As render; raises ValueError for two models of the same file name. recordings: files of recorded
    transformers, with figures of their heads. place: the layer, head (without both that with most to see) and
    sequence that their large figures show. transformers: each the config.json of a language model, with figures of its
    circuits; text: for those of what they do on it. of_focus: model, ranks and quantity, as focus.render has them.
    """
    names = _names(names)
    output = Output(format, width, **style)
    stems = stems_of([*paths, *recordings, *transformers])
    folder = pathlib.Path(folder)
    models: dict[str, Files] = {}
    reasons: dict[str, str] = {}
    with gathered(folder) as temporary, output.beside():
        host.load()
        for stem, path in zip(stems, paths):
            models[stem] = _draw(path, temporary, names, output, progress)
        for stem, path in zip(stems[len(paths) :], recordings):
            models[stem], reasons[stem] = _draw_recording(path, temporary, place, output, progress, of_focus or {})
        for stem, config in zip(stems[len(paths) + len(recordings) :], transformers):
            models[stem] = _draw_circuits(config, temporary, place, text, output, progress)
        write_index(temporary, models, reasons)
    return [folder / file.name for figures in models.values() for files in figures.values() for file in files]


def render(
    path: PathLike, folder: PathLike, names: Listed[str] | None = None, width: int = 2400, format: str = "png",
    progress: Progress = lambda line: None, **style: Any,
) -> list[pathlib.Path]:
    """Renders figures of the model in a file, and index.html, which shows them; returns the figures' paths.

    names: some of figures.FIGURES, all by default; those that the model or the plugin has no data for are
    omitted. width: of a PNG, in pixels. format: png, pdf or svg; movies are always Ogg Theora. progress: a
    function that is called with a line of text before each figure. style: width_mm (180), font_size in
    points (7), dark (False). Raises ValueError for an unknown name, an option out of range or a file that
    holds no model, FileNotFoundError for a missing file.
    """
    return render_all([path], folder, names, width, format, progress, **style)


_STYLE = """
  body { font: 16px/1.5 "DejaVu Sans", Verdana, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
    padding: 0 1rem; }
  h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; border-bottom: 1px solid #aaa; }
  nav { columns: 3; font-size: 0.9rem; } nav a { display: block; }
  figure { margin: 2rem 0; break-inside: avoid; } figcaption { margin-bottom: 0.5rem; }
  figcaption b { display: block; font-size: 1.1rem; }
  img, video, object { width: 100%; } object { height: 30rem; }
  @media print { body { margin: 0; max-width: none; font-size: 10pt; } nav, .screen { display: none; }
    h2 { break-before: page; margin-top: 0; } h2:first-of-type { break-before: auto; }
    img { max-height: 20cm; width: auto; max-width: 100%; } }
"""


def _shown(file: pathlib.Path) -> str:
    """The HTML that shows a file beside the page."""
    name = html.escape(file.name, quote=True)
    link = urllib.parse.quote(file.name)
    if file.suffix in (".ogv", ".avi"):
        return f'<video class="screen" controls loop muted src="{link}"><a href="{link}">{name}</a></video>'
    if file.suffix == ".pdf":
        return f'<object type="application/pdf" data="{link}"><a href="{link}">{name}</a></object>'
    return f'<a href="{link}"><img src="{link}" alt="{html.escape(file.stem, quote=True)}"></a>'


def write_index(folder: pathlib.Path, models: dict[str, Files], reasons: dict[str, str]) -> None:
    """Writes index.html: the figures of each model, {model: {name: paths}}, with what they show. reasons: why those of a
    recording show their head."""
    known: dict[str, Any] = {**FIGURES, **heads.FIGURES, **embedding.FIGURES, **focus.FIGURES, **circuits.FIGURES}
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Attention Atlas: the tour</title>',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Attention Atlas: the tour of transformers</h1>",
    ]
    for number, (model, figures) in enumerate(models.items()):
        place = f"model-{number}"
        lines.append(f'<h2 id="{place}">{html.escape(model)}</h2>')
        lines.append(f"<p>{html.escape(reasons.get(model, ''))}</p>")
        links = (f'<a href="#{place}-{name}">{known[name].title}</a>' for name in figures)
        lines.append(f"<nav>{''.join(links)}</nav>")
        for name, files in figures.items():
            figure = known[name]
            caption = f"<b>{html.escape(figure.title)}</b>{html.escape(figure.sentence)}"
            lines.append(f'<figure id="{place}-{name}"><figcaption>{caption}</figcaption>')
            lines += [_shown(file) for file in files]
            lines.append("</figure>")
    lines.append("</body></html>\n")
    with complete(folder / "index.html") as temporary:
        temporary.write_text("\n".join(lines), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders the figures of attention-only transformers and a page that shows them.",
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a .safetensors file")
    add_options(parser)
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(FIGURES)} (default: all)")
    parser.add_argument(
        "--recording",
        action="append",
        default=[],
        metavar="FILE",
        help="a recorded transformer, whose heads are shown",
    )
    heads.add_place_options(parser)
    parser.set_defaults(head=None)
    parser.add_argument(
        "--transformer",
        action="append",
        default=[],
        metavar="CONFIG",
        help="the config.json of a language model, whose circuits are shown",
    )
    parser.add_argument("--text", help="that these language models run, for figures of what they do on it")
    return parser


def main(arguments: Listed[str] | None = None, of_focus: dict[str, Any] | None = None) -> None:
    """of_focus: as render_all has it."""
    parser = _parser()
    found = parser.parse_args(arguments)
    if not found.models and not found.recording and not found.transformer:
        parser.error("expected a model or a recording, found none")
    try:
        written = render_all(
            found.models,
            found.output,
            found.only.split(",") if found.only else None,
            progress=lambda line: print(line, flush=True),
            recordings=found.recording,
            place=(found.layer, found.head, found.sequence),
            transformers=found.transformer,
            text=found.text,
            of_focus=of_focus,
            **options(found),
        )
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(f"\n{len(written)} file{'s' * (len(written) != 1)} written:")
    for file in written:
        print(file)
    print(pathlib.Path(found.output, "index.html"))


if __name__ == "__main__":
    main()
