"""The filters, readers, sources and writers as VTK classes, for pipelines of VTK in Python.

    from attentionatlas.vtk import vtkAttentionMap, vtkRecordingReader

    reader = vtkRecordingReader()
    reader.SetFileName("run.safetensors")
    heads = vtkAttentionMap()
    heads.SetInputConnection(reader.GetOutputPort())
    heads.SetHead(5)
    heads.Update()

A class is loaded when it is first named. Reference.md tells what each does, under the name of its proxy.
"""

from __future__ import annotations

import functools
import importlib
import json
import pathlib
from typing import Any


@functools.cache
def _modules() -> dict[str, str]:
    """The modules of the classes, by their names."""
    found: dict[str, str] = json.loads((pathlib.Path(__file__).parent / "classes.json").read_text(encoding="utf-8"))
    return found


def class_of(name: str) -> Any:
    """A class by its name. Raises AttributeError for an unknown one, ImportError where the libraries of VTK are missing."""
    if name not in _modules():
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f"{__name__}.{_modules()[name]}"), name)


def __getattr__(name: str) -> Any:
    if name.startswith("vtk"):
        return class_of(name)
    raise AttributeError(f"module {__name__} has no attribute {name}")


def __dir__() -> list[str]:
    return sorted(_modules())
