"""Arguments that many functions take, in words, and as the plugin's filters take them."""

from __future__ import annotations

import os
from typing import Any

#: The name of a file.
PathLike = str | os.PathLike[str]
#: A number of a head, or "mean".
Head = int | str
#: A number of a sequence, or "mean".
Sequence = int | str

#: What stands for -1, by which filters mean all heads, their mean, the last token or the strongest key.
_WORDS = ("all", "last", "mean", "strongest")


def number(name: str, value: Any) -> int:
    """A layer, head, sequence or position as filters take it: -1 for a word such as "mean"."""
    if not isinstance(value, str):
        return int(value)
    if value not in _WORDS:
        raise ValueError(f"{name}: expected a number or one of {', '.join(_WORDS)}, found '{value}'.")
    return -1


def head_name(head: Head) -> str:
    """A head in words, as titles have it."""
    return "mean of all heads" if number("head", head) == -1 else f"head {head}"
