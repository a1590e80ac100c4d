"""The tour: every figure of small attention-only transformers and of recorded ones, and a page of them.

    pvpython -m attentionatlas.tour MODEL.safetensors ... -o DIR [--width PIXELS]
        [--format png|pdf|svg] [--only NAME,...]
        [--recording FILE [--sequence S] [--layer L] [--head H]]
"""

import argparse
import html
import os
import pathlib
import sys
import urllib.parse

from attentionatlas import heads, load_plugin
from attentionatlas.drawing import Missing, Tour
from attentionatlas.figures import FIGURES
from attentionatlas.sheet import FORMATS


def _names(names):
    """The names of the figures to draw; raises ValueError for an unknown one."""
    names = list(FIGURES if names is None else names)
    for name in names:
        if name not in FIGURES:
            raise ValueError(f"unknown figure '{name}'; known are {', '.join(FIGURES)}.")
    return names


def _draw(path, folder, names, width, format, tell):
    """Draws figures of one model; returns {name: paths} in the order of the names."""
    tour = Tour(path, folder, width, format)
    drawn = {}
    try:
        for number, name in enumerate(names, 1):
            tell(f"{tour.name}: figure {number} of {len(names)}, {name}")
            try:
                drawn[name] = list(FIGURES[name].draw(tour))
            except Missing as reason:
                tell(f"  left out: {reason}.")
            finally:
                tour.close(keep=1)
    finally:
        tour.close()
    return drawn


def _draw_recording(path, folder, place, width, format, tell):
    """Draws the figures of a recording; returns {name: paths}."""
    tell(f"{pathlib.Path(path).stem}: its heads")
    files = heads.render_named(path, folder, *place, width=width, format=format)
    return {name: [file] for name, file in files.items()}


def render_all(
    paths,
    folder,
    names=None,
    width=2400,
    format="png",
    progress=lambda line: None,
    recordings=(),
    place=(0, None, 0),
):
    """Renders figures of several models and index.html, which shows them; returns the figures' paths.

    As render; two models of the same file name are refused with a ValueError. recordings: files of
    recorded transformers, with figures of their heads. place: the sequence, layer (None: the first) and
    head that their large pictures show.
    """
    names = _names(names)
    if not 200 <= width <= 16384:
        raise ValueError(f"width: expected 200 to 16384 pixels, found {width}.")
    if format not in FORMATS:
        raise ValueError(f"unknown format '{format}'; known are {', '.join(FORMATS)}.")
    stems = [pathlib.Path(path).stem for path in [*paths, *recordings]]
    for stem in stems:
        if stems.count(stem) > 1:
            raise ValueError(f"two files are named {stem}: their figures would have the same names.")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    load_plugin()
    models = {}
    try:
        for stem, path in zip(stems, paths):
            models[stem] = _draw(path, folder, names, width, format, progress)
        for stem, path in zip(stems[len(paths) :], recordings):
            models[stem] = _draw_recording(path, folder, place, width, format, progress)
    finally:
        if models:
            write_index(folder, models)
    return [file for figures in models.values() for files in figures.values() for file in files]


def render(path, folder, names=None, width=2400, format="png", progress=lambda line: None):
    """Renders figures of the model in a file, and index.html, which shows them; returns the figures' paths.

    names: some of figures.FIGURES, all by default; those that the model or the plugin has nothing for
    are left out. width: of each picture, 200 to 16384 pixels. format: png, pdf or svg; movies are what
    they are. progress: is called with a line of text before each figure. Raises ValueError for an unknown
    name or format, another width or a file that is no model, FileNotFoundError for one that is not
    there.
    """
    return render_all([path], folder, names, width, format, progress)


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


def _shown(file):
    """The HTML that shows a file beside the page."""
    name = html.escape(file.name, quote=True)
    link = urllib.parse.quote(file.name)
    if file.suffix in (".ogv", ".avi"):
        return f'<video class="screen" controls loop muted src="{link}"><a href="{link}">{name}</a></video>'
    if file.suffix == ".pdf":
        return f'<object type="application/pdf" data="{link}"><a href="{link}">{name}</a></object>'
    return f'<a href="{link}"><img src="{link}" alt="{html.escape(file.stem, quote=True)}"></a>'


def write_index(folder, models):
    """Writes index.html: the figures of each model, {model: {name: paths}}, with what they show."""
    known = {**FIGURES, **heads.FIGURES}
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Attention Atlas: the tour</title>',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Attention Atlas: the tour of transformers</h1>",
    ]
    for number, (model, figures) in enumerate(models.items()):
        place = f"model-{number}"
        lines.append(f'<h2 id="{place}">{html.escape(model)}</h2>')
        links = (f'<a href="#{place}-{name}">{known[name].title}</a>' for name in figures)
        lines.append(f"<nav>{''.join(links)}</nav>")
        for name, files in figures.items():
            figure = known[name]
            caption = f"<b>{html.escape(figure.title)}</b>{html.escape(figure.sentence)}"
            lines.append(f'<figure id="{place}-{name}"><figcaption>{caption}</figcaption>')
            lines += [_shown(file) for file in files]
            lines.append("</figure>")
    lines.append("</body></html>\n")
    temporary = folder / "index.html.part"
    temporary.write_text("\n".join(lines), encoding="utf-8")
    os.replace(temporary, folder / "index.html")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="pvpython -m attentionatlas.tour",
        description="Renders the figures of attention-only transformers and a page that shows them.",
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a .safetensors file")
    parser.add_argument("-o", "--output", default=".", help="folder to write to (default: .)")
    parser.add_argument("--width", type=int, default=2400, help="in pixels (default: 2400)")
    parser.add_argument("--format", default="png", help="png, pdf or svg (default: png)")
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(FIGURES)} (default: all)")
    parser.add_argument(
        "--recording",
        action="append",
        default=[],
        metavar="FILE",
        help="of a transformer, with figures of its heads",
    )
    parser.add_argument("--sequence", type=int, default=0, help="of the recordings (default: 0)")
    parser.add_argument("--layer", type=int, help="of theirs to show large (default: the first)")
    parser.add_argument("--head", type=int, default=0, help="of theirs to show large (default: 0)")
    options = parser.parse_args(arguments)
    if not options.models and not options.recording:
        parser.error("expected a model or a recording, found none")
    names = options.only.split(",") if options.only else None
    try:
        written = render_all(
            options.models,
            options.output,
            names,
            options.width,
            options.format,
            lambda line: print(line, flush=True),
            options.recording,
            (options.sequence, options.layer, options.head),
        )
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(f"\n{len(written)} files written:")
    for file in written:
        print(file)
    print(pathlib.Path(options.output, "index.html"))


if __name__ == "__main__":
    sys.exit(main())
