"""What dir() shows of a public module, and so what a notebook completes."""

from __future__ import annotations

import sys
from collections.abc import Callable


def own(module: str) -> Callable[[], list[str]]:
    """The __dir__ of a module: what it says it has, or else what it defines, without what it imports."""

    def names() -> list[str]:
        known = vars(sys.modules[module])
        defined = [name for name, value in known.items() if getattr(value, "__module__", None) == module]
        return sorted(known.get("__all__") or (name for name in defined if not name.startswith("_")))

    return names
