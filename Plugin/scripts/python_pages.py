#!/usr/bin/env python3
"""Writes Python.md, the reference of the package attentionatlas, from its signatures and texts. It needs no ParaView.

    python3 Plugin/scripts/python_pages.py Plugin/Documentation/Python.md
    python3 Plugin/scripts/python_pages.py --check Plugin/Documentation/Python.md    fails if the page is not up to date
"""

import argparse
import ast
import inspect
import pathlib
import sys

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python" / "attentionatlas"
HEAD = """# The package attentionatlas

`import attentionatlas as atlas`, in ParaView's Python: `pvpython script.py`. `Plugin/scripts/python_pages.py` writes this page.

Layers, heads and sequences are counted from 0, negative ones from the end, and come in this order. A head or a sequence is a number or
`"mean"`. Every function of a figure also takes

- `ax`, an Axes to draw into, or `figure`, a Figure or SubFigure, of which the size and the style stay the user's; else
  `width_mm` (180, from 30 to 1000), `font_size` in points (7, from 3 to 72) and `dark` (False);
- `dpi` of the images in it (600);
- `cmap`, the color map of values, or its name; a figure whose colors are no values of a color map refuses it;
- of recordings, `model`, the transformer that was recorded, if the first argument is a file.

It returns the matplotlib Figure. Its first argument is what is open, or a file.
"""
#: The parts of the page: title, files, and the names in them; None: all that are public.
PARTS = [
    ("Files", "__init__.py", None),
    ("Recording", "_internal/recording.py", ["Recording"]),
    ("Corpus", "_internal/corpus.py", ["Corpus"]),
    ("Circuit", "_internal/circuitfile.py", ["Circuit"]),
    ("Models", "_internal/recording.py", ["Transformer"]),
    ("", "_internal/model.py", ["SmallModel"]),
    ("", "_internal/tables.py", ["Tables"]),
    ("Errors", "_internal/readers.py", ["Missing"]),
    ("Figures of small models: atlas.figures", "_internal/maps.py", None),
    ("", "_internal/spheres.py", None),
    ("", "_internal/polynomials.py", None),
    ("", "_internal/mixtures.py", None),
    ("", "_internal/learning.py", None),
    *((f"Figures: atlas.{name}", f"{name}.py", None) for name in (
        "heads", "sentence", "patches", "embedding", "focus", "tokens", "proteins", "circuits", "texts",
    )),
    ("Pages for a browser: atlas.web", "web.py", None),
    ("", "_internal/tiles.py", ["MapSize"]),
    ("The live article: atlas.article", "article.py", ["write"]),
    ("The circuit of a prediction: atlas.attribution", "attribution.py", ["render"]),
    ("Linked views: atlas.scene", "scene.py", ["save", "build"]),
    ("Meshes of PyVista: atlas.pyvista", "pyvista.py", ["read", "MeshAttention"]),
    ("All figures: atlas.tour", "tour.py", ["render", "render_all"]),
    ("Findings: atlas.findings", "findings/__init__.py", ["render"]),
    ("Files of figures: atlas.output", "output.py", ["Output", "save"]),
]
#: Classes whose methods are shown as those of the classes that have them as a base, and their files.
MIXED_IN = {"Circuits": "_internal/circuit_tables.py"}
#: What only our own modules call: what the package says so of, and what tables have in other words.
_INTERNAL = {"head_scores"} | {
    node.value for kept in ast.walk(ast.parse((PACKAGE / "_internal" / "readers.py").read_text(encoding="utf-8")))
    if isinstance(kept, ast.Assign) and getattr(kept.targets[0], "id", "") == "_INTERNAL"
    for node in ast.walk(kept.value) if isinstance(node, ast.Constant)
}


def _draws(function):
    """Whether a function is a figure, by its decorator."""
    return any(getattr(getattr(d, "func", None), "id", "") in ("drawn_from", "made_from") for d in function.decorator_list)


def _shown(function, name, skipped):
    """The call of a function, less its first parameters."""
    arguments = function.args
    first = arguments.args[:1] if _draws(function) else []
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    parts = [argument.arg for argument in first]
    for argument, default in list(zip(arguments.args, defaults))[skipped:]:
        parts.append(_parameter(argument, default))
    if arguments.vararg or arguments.kwonlyargs:
        parts.append(f"*{arguments.vararg.arg}" if arguments.vararg else "*")
    parts += [_parameter(argument, default) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    parts += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    returned = ast.unparse(function.returns) if function.returns else ""
    returned = "" if _draws(function) or returned in ("", "None") else f" -> {returned}"
    return f"{name}({', '.join(parts)}){returned}"


def _parameter(argument, default):
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    return argument.arg + kind + (f" = {ast.unparse(default)}" if default is not None else "")


def _text(node):
    """The text of a function or class, less an indent; raises ValueError if it has none."""
    text = ast.get_docstring(node)
    if not text:
        raise ValueError(f"{node.name}: has no text")
    return inspect.cleandoc(text).replace("*", "\\*").replace("<", "&lt;")


def _classes(path):
    return [node for node in ast.parse((PACKAGE / path).read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]


def _functions(nodes, public):
    return [node for node in nodes if isinstance(node, ast.FunctionDef) and public(node)]


def _is_property(function):
    return any(getattr(decorator, "id", "") == "property" for decorator in function.decorator_list)


def _class(node):
    yield f"### {node.name}\n\n{_text(node)}\n"
    bases = [MIXED_IN[base.id] for base in node.bases if base.id in MIXED_IN]
    more = [other for path in bases for other in _classes(path) if other.name in MIXED_IN]
    for function in _functions([one for part in (node, *more) for one in part.body], lambda f: not f.name.startswith("_") and f.name not in _INTERNAL):
        name = f".{function.name}"
        call = name if _is_property(function) else _shown(function, name, 1)
        yield f"- `{call}`\n\n  " + _text(function).replace("\n", "\n  ").replace("\n  \n", "\n\n") + "\n"


def _part(path, names):
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    figures = any(_draws(node) for node in tree.body if isinstance(node, ast.FunctionDef))
    for node in tree.body:
        chosen = getattr(node, "name", "_") in names if names else not getattr(node, "name", "_").startswith("_")
        if isinstance(node, ast.ClassDef) and names and chosen:
            yield from _class(node)
        elif isinstance(node, ast.FunctionDef) and chosen:
            if figures and not names and not _draws(node):
                continue
            if node.name == "main":
                continue
            skipped = 2 if _draws(node) else 0
            yield f"- `{_shown(node, node.name, skipped)}`\n\n  " + _text(node).replace("\n", "\n  ").replace("\n  \n", "\n\n") + "\n"


def page():
    """The text of the page."""
    lines = [HEAD]
    for title, path, names in PARTS:
        lines += [f"## {title}\n"] if title else []
        lines += _part(path, names)
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=pathlib.Path, help="Python.md")
    parser.add_argument("--check", action="store_true", help="fail if the page is not up to date")
    options = parser.parse_args()
    text = page()
    if not options.check:
        options.page.write_text(text, encoding="utf-8")
    elif not options.page.is_file() or options.page.read_text(encoding="utf-8") != text:
        sys.exit(f"{options.page}: not up to date; write it by {pathlib.Path(__file__).name}")


if __name__ == "__main__":
    main()
