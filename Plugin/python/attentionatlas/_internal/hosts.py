"""Which host the filters run in, and what the XML says of them."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

#: The hosts that ATLAS_HOST can name.
_HOSTS = ("ParaView", "VTK")


def is_paraview() -> bool:
    """Whether filters are proxies of ParaView."""
    return _name() == "ParaView"


@functools.cache
def _name() -> str:
    chosen = os.environ.get("ATLAS_HOST", "")
    if chosen and chosen not in _HOSTS:
        raise ValueError(f"ATLAS_HOST: expected one of {', '.join(_HOSTS)}; found '{chosen}'.")
    return chosen or ("ParaView" if importlib.util.find_spec("paraview") is not None else "VTK")


def need_paraview(what: str) -> None:
    """Raises ModuleNotFoundError where ParaView is not the host."""
    if not is_paraview():
        raise ModuleNotFoundError(
            f"{what} needs ParaView: expected its Python, which is pvpython, found VTK alone. See the page Scripting "
            "of the documentation.",
            name="paraview",
        )


@functools.cache
def table() -> Mapping[str, Any]:
    """What the XML of the plugin says of its readers, sources, filters and writers, by name: Plugin/scripts/filter_table.py."""
    text = (pathlib.Path(__file__).parent / "filters.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def words(name: str, option: str) -> list[str]:
    """The words that a property of a filter can be."""
    return next(list(row["words"]) for row in table()[name]["properties"] if row["name"] == option)
