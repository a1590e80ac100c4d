"""Arguments that many functions take, in words, and as the plugin's filters take them."""

from __future__ import annotations

import argparse
import operator
import os
from collections.abc import Sequence as Listed
from typing import Any

#: The name of a file.
PathLike = str | os.PathLike[str]
#: A number of a head, or "mean".
Head = int | str
#: A number of a sequence, or "mean".
Sequence = int | str

#: What stands for -1, by which filters mean all heads, their mean, the last token or the strongest key.
_WORDS = ("all", "last", "mean", "strongest")


def number(name: str, value: Any, words: Listed[str] = _WORDS) -> int:
    """A layer, head, sequence or position as filters take it: -1 for one of these words."""
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f"{name}: expected a number{''.join(f' or {word}' for word in words)}, found '{value}'.")
        return -1
    try:
        return operator.index(value)
    except TypeError as error:
        raise ValueError(f"{name}: expected a whole number, found {value!r}.") from error


def head_option(text: str) -> Head:
    """A head on a command line: a number, or mean. Raises argparse.ArgumentTypeError."""
    if text != "mean" and not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number or mean, found '{text}'.")
    return text if text == "mean" else int(text)


def head_name(head: Head) -> str:
    """A head in words, as titles have it."""
    return "mean of all heads" if number("head", head, ("mean",)) == -1 else f"head {head}"


def listed(numbers: list[int]) -> str:
    """Numbers of layers in words: 0 to 11, or 3, 7, 9."""
    if len(numbers) > 1 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
