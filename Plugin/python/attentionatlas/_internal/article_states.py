"""The ParaView states beside the live article, a chapter each, made by a process of their own.

    pvpython -m attentionatlas._internal.article_states < DESCRIPTION.json
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence as Listed
from typing import Any
from xml.sax.saxutils import escape

from paraview import simple

from attentionatlas._internal import circuit_scene, model_scene, recording_scene
from attentionatlas._internal.plugin import load_plugin
from attentionatlas._internal.readers import make_filter, open_model
from attentionatlas._internal.views import PLAIN, flat_view, render_view

def _views_of_model(model: pathlib.Path, training: Mapping[str, Any]) -> dict[str, Callable[[], Any]]:
    """What shows each chapter about the small model in ParaView."""

    def shown(*sources: Any, other: Any = None) -> None:
        """Shows sources in a flat view, and has another view beside it."""
        view, layout = flat_view(), simple.CreateLayout(name="Attention Atlas")
        simple.AssignViewToLayout(view=view, layout=layout, hint=0)
        if other is not None:
            right = layout.SplitHorizontal(0, 0.5)
            simple.AssignViewToLayout(view=other, layout=layout, hint=right + 1)
        for source in sources:
            simple.Show(source, view)
        simple.ResetCamera(view)

    def attention() -> None:
        reader = open_model(model)
        shown(simple.AttentionTorus(Input=reader, Quantities=["Attention"]), simple.TokenPairs(Input=reader))

    def circle() -> None:
        reader = open_model(model)
        view = render_view(**PLAIN)
        shown(simple.AttentionTorus(Input=reader), simple.TokenPairs(Input=reader), other=view)
        words = simple.WordCircle(Input=reader)
        for port in range(2):
            simple.Show(simple.OutputPort(words, port), view)
        simple.ResetCamera(view)

    def harmonics() -> None:
        reader = open_model(model)
        table = simple.CreateView("SpreadSheetView")
        shown(simple.AttentionTorus(Input=reader, Quantities=["Score"]), other=table)
        simple.Show(simple.ScoreHarmonics(Input=reader), table)

    def heads() -> None:
        reader = open_model(model)
        shown(simple.HeadAccuracySimplex(Input=reader))

    def learning() -> None:
        proxy = make_filter("AttentionOnlyTraining", {}, training)
        shown(simple.AttentionTorus(Input=proxy), simple.TokenPairs(Input=proxy))

    def linked() -> None:
        model_scene.build(model)

    return {
        "two-tokens": attention,
        "circle": circle,
        "torus": linked,
        "harmonics": harmonics,
        "sphere": linked,
        "heads": heads,
        "training": learning,
    }


def _write(folder: pathlib.Path, shown: Mapping[str, Listed[str]], training: Mapping[str, Any]) -> None:
    builders: dict[str, Callable[[], Any]] = {}
    for name, files in shown.items():
        first = folder / files[0]
        of_model = _views_of_model(first, {**training, "model_file": str(first)})
        if name in of_model:
            builders[name] = of_model[name]
        elif name == "trained":
            builders[name] = lambda path=first: recording_scene.build(path)  # type: ignore[misc]
        else:
            builders[name] = lambda path=first.parent: circuit_scene.build(path)  # type: ignore[misc]
    for name, build in builders.items():
        path = folder / f"{name}.pvsm"
        model_scene.save_session(build, path)
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(escape(f"{folder}{os.sep}", {'"': "&quot;"}), ""), encoding="utf-8")


def main() -> None:
    with open(0, encoding="utf-8") as given:  # pvpython's sys.stdin has no read()
        described = json.load(given)
    load_plugin()
    _write(pathlib.Path(described["folder"]), described["shown"], described["training"])


if __name__ == "__main__":
    main()
