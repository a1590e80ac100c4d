"""Arguments that many functions take, in words, and as the plugin's filters take them."""

from __future__ import annotations

import argparse
import json
import operator
import os
import warnings
from collections.abc import Iterable, Sequence as Listed
from typing import Any

from attentionatlas._internal.checks import check

#: The name of a file.
PathLike = str | os.PathLike[str]
#: A number of a head, or "mean".
Head = int | str
#: A number of a sequence, or "mean".
Sequence = int | str


def plain(text: str) -> str:
    """A word without regard to case and hyphens: t-SNE is TSNE, and token_pairs is TokenPairs."""
    return text.replace("-", "").replace("_", "").replace(" ", "").casefold()


def word(name: str, value: Any, words: Iterable[str]) -> str:
    """The one of these words that a value is, in whatever case, as plain has it. Raises ValueError for any other value."""
    known = list(words)
    if isinstance(value, str):
        if value in known:
            return value
        found = [one for one in known if plain(one) == plain(value)]
        if len(found) == 1:
            return found[0]
    raise ValueError(f"{name}: expected one of {', '.join(known)}; found {value!r}.")


class _Special(int):
    """A number that stands for a word, as filters take it."""


#: The mean over heads or sequences: -1 to filters, which -1 of a user is not.
MEAN = _Special(-1)


def number(name: str, value: Any, words: Listed[str] = ()) -> int:
    """A layer, head, sequence or position as a user gives it: MEAN for one of these words, or for itself."""
    if isinstance(value, _Special):
        if words:
            return value
        value = "mean"
    if isinstance(value, str):
        if value.casefold() not in words:
            raise ValueError(f"{name}: expected a number{''.join(f' or {one}' for one in words)}, found '{value}'.")
        return MEAN
    try:
        return int(operator.index(value))
    except TypeError as error:
        raise ValueError(f"{name}: expected a whole number, found {value!r}.") from error


def index(name: str, value: Any, numbers: Listed[int], words: Listed[str] = ()) -> int:
    """One of the numbers of layers, heads, sequences or positions; a negative one counts from their end. MEAN for a word.

    Raises ValueError for any other. Where there are words, -1 stood for the first of them until version 1.0: it is the last
    one now, and a warning says so.
    """
    found = number(name, value, words)
    if isinstance(found, _Special):
        return found
    if found == -1 and words:
        text = f"{name}: -1 is the last one now; what it stood for is \"{words[0]}\"."
        warnings.warn(text, FutureWarning, stacklevel=4)
    if -len(numbers) <= found < 0:
        return numbers[found]
    if isinstance(numbers, range):
        check(name, found, 0, len(numbers) - 1)
    elif found not in numbers:
        raise ValueError(f"{name}: expected one of {listed(list(numbers))}, found {found}.")
    return found


def some(name: str, value: Any, numbers: Listed[int], *words: str) -> int | str:
    """As index, but a text stays what it is: a word that filters know."""
    return value if isinstance(value, str) else index(name, value, numbers, words)


def text_lines(texts: str | Listed[str] | None) -> Listed[str] | None:
    """Several texts: a list of them, or the lines of a text as filters split it; None if there are none."""
    if not isinstance(texts, str) or not texts:
        return texts or None
    return texts.replace("\r\n", "\n").removesuffix("\n").split("\n")


def json_lines(name: str, prompts: str | Listed[str]) -> str:
    """A text or several with all of their line breaks, as filters take them by prompt_format="JsonLines"; raises
    ValueError for anything else."""
    expected = f"{name}: expected a text or a list of texts, found"
    texts = [prompts] if isinstance(prompts, str) else prompts
    if not isinstance(texts, Listed):
        raise ValueError(f"{expected} {prompts!r}.")
    if not texts:
        raise ValueError(f"{expected} none.")
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{expected} {text!r} in it.")
    return "\n".join(json.dumps(text, ensure_ascii=False) for text in texts)


def written_prompts(texts: dict[str, Any], prompt_format: str | None = None) -> dict[str, Any]:
    """Texts as options of a filter that reads prompts, without those that are None.

    prompt_format: what they are as they stand, or their lines; None: texts with all of their line breaks. Raises ValueError
    for anything but a text or a list of texts.
    """
    given = {name: text for name, text in texts.items() if text is not None}
    if prompt_format is not None:
        return {name: text if isinstance(text, str) else "\n".join(text) for name, text in given.items()}
    written = {name: json_lines(name, text) for name, text in given.items()}
    return {**written, "prompt_format": "JsonLines"} if written else {}


def head_option(text: str) -> Head:
    """A head or sequence on a command line: a number, or mean. Raises argparse.ArgumentTypeError."""
    if text != "mean" and not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number or mean, found '{text}'.")
    return text if text == "mean" else int(text)


def head_beside(layer: int | None, head: Head | None) -> Head:
    """The head of a layer: the first one, if neither is given. Raises ValueError for a layer without a head."""
    if head is None and layer is not None:
        raise ValueError(f"head: expected one of layer {layer}, found none.")
    return 0 if head is None else head


def head_name(head: int) -> str:
    """A head as filters take it in words, as titles have it."""
    return "mean of all heads" if head == MEAN else f"head {head}"


def listed(numbers: list[int]) -> str:
    """Numbers of layers in words: 0 to 11, or 3, 7, 9."""
    if len(numbers) > 1 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
