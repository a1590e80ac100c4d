"""Tokens as labels of figures: in fonts of this machine that have their letters, else as escape sequences."""

from __future__ import annotations

import contextlib
import functools
import unicodedata
import warnings
from collections.abc import Iterable
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from attentionatlas._internal.data import visible

#: Debian's packages with fonts, by the beginning of the Unicode names of letters.
_PACKAGES = {
    name: "fonts-noto-cjk" for name in ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "IDEOGRAPHIC", "FULLWIDTH")
}


@functools.lru_cache(maxsize=None)
def _letters_of(path: str) -> frozenset[int]:
    return frozenset(FT2Font(path).get_charmap())


@functools.lru_cache(maxsize=None)
def _fonts() -> list[Any]:
    """All fonts of this machine; matplotlib remembers those that there were when it was first used."""
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        with contextlib.suppress(RuntimeError, OSError):
            font_manager.fontManager.addfont(path)
    return list(font_manager.fontManager.ttflist)


@functools.lru_cache(maxsize=None)
def _font_with(letter: str) -> Any:
    """The family of a font that has a letter, or None; TrueType first, since PDF embeds it as text."""
    entries = _fonts()
    upright = [entry for entry in entries if entry.style == "normal" and entry.weight in (400, "normal")]
    for entry in sorted(upright, key=lambda entry: (not entry.fname.endswith(".ttf"), entry.name)):
        if "LastResort" in entry.name:
            continue
        with contextlib.suppress(RuntimeError, OSError):
            if ord(letter) in _letters_of(entry.fname):
                return entry.name
    return None


def _package_of(letter: str) -> str:
    name = unicodedata.name(letter, "")
    if "EMOJI" in name or ord(letter) >= 0x1F000:
        return "fonts-symbola"
    return _PACKAGES.get(name.split(" ")[0].split("-")[0], "fonts-noto-core")


def readable(labels: list[str]) -> tuple[list[str], list[Any]]:
    """The labels with escape sequences for letters that no font has, and the fonts that they need."""
    base = font_manager.findfont(font_manager.FontProperties(family=matplotlib.rcParams["font.family"]))
    known = _letters_of(base) | _letters_of(font_manager.findfont("DejaVu Sans"))
    families: list[Any] = []
    missing: dict[str, str] = {}
    for letter in sorted(set("".join(labels))):
        if ord(letter) in known:
            continue
        family = _font_with(letter)
        if family is None:
            missing[letter] = f"\\u{{{ord(letter):04X}}}"
        elif family not in families:
            families.append(family)
    if missing:
        packages = sorted({_package_of(letter) for letter in missing})
        warnings.warn(
            "no font has some letters of the tokens, which are shown as \\u{...}; install one, such as "
            f"Debian's {' and '.join(packages)}.",
            stacklevel=2,
        )
    table = str.maketrans(missing)
    return [label.translate(table) for label in labels], families


def with_fonts(labels: list[str]) -> list[str]:
    """Labels as figures can write them. Figures that are drawn next in the same style have the fonts that they need."""
    labels, families = readable(labels)
    known = matplotlib.rcParams["font.family"]
    matplotlib.rcParams["font.family"] = [*known, *(family for family in families if family not in known)]
    return labels


def legible(tokens: Iterable[str]) -> list[str]:
    """Tokens as figures write them, by with_fonts."""
    return with_fonts(list(map(visible, tokens)))
