"""A self-contained page of scenes in HTML: its data, its script and its style are in the one file.

The script is assets/page.min.js, made from Plugin/web with vtk.js. The page forbids itself any network: its
policy allows the one script and the one style in it, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import pathlib
import zlib
from collections.abc import Iterable
from typing import Any

import numpy

from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.files import complete

ASSETS = pathlib.Path(__file__).parents[1] / "assets"
#: How the script calls the types of arrays.
_TYPES = {f"{sign}int{8 * size}": f"{short}{size}" for size in (1, 2, 4) for sign, short in (("", "i"), ("u", "u"))}
_TYPES.update(float32="f4", float64="f8")
#: The colors of a page.
THEMES = ("system", "light", "dark")
#: The height of the frame in a notebook, in pixels.
_FRAME = 640


class Texts:
    """A text per item: the different texts, and the number of each item's."""

    def __init__(self, values: Iterable[str]) -> None:
        numbers: dict[str, int] = {}
        self.indices = numpy.array([numbers.setdefault(value, len(numbers)) for value in values], numpy.uint32)
        self.texts = list(numbers)

    def __len__(self) -> int:
        return len(self.indices)


class Block:
    """Arrays one after the other, each described by where it begins and what it holds."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._known: dict[bytes, int] = {}
        self.size = 0

    def add(self, values: Any, differences: bool = False) -> dict[str, Any]:
        """Adds an array [items, components]; returns its description. differences: each less the one before it,
        which takes less room."""
        values = numpy.ascontiguousarray(values)
        if values.ndim == 1:
            values = values[:, None]
        count, width = values.shape
        described = {"type": _TYPES[values.dtype.name], "count": count, "width": width}
        if differences:
            values = numpy.diff(values.ravel(), prepend=values.dtype.type(0))
            described["differences"] = True
        data = values.astype(values.dtype.newbyteorder("<")).tobytes()
        data += bytes(-len(data) % 8)
        # Heads share much: the places of their words, and the words.
        described["at"] = self._known.setdefault(hashlib.sha256(data).digest(), self.size)
        if described["at"] == self.size:
            self._parts.append(data)
            self.size += len(data)
        return described

    def text(self) -> str:
        """All arrays, compressed, as text."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 6)).decode()


def _described(value: Any, block: Block, key: str = "") -> Any:
    """A value of a part for JSON, its arrays being in the block."""
    if isinstance(value, Texts):
        return {**block.add(value.indices), "texts": value.texts}
    if isinstance(value, numpy.ndarray):
        return block.add(value, differences=value.dtype == numpy.int32 and key in ("points", "offsets"))
    if isinstance(value, dict):
        return {name: _described(part, block, name) for name, part in value.items()}
    return value


def json_text(value: Any) -> str:
    """JSON that cannot end the element it is in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def hash_of(text: str) -> str:
    """The hash of a script or a style, as the policy of a page names it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def filled(text: str, values: dict[str, str]) -> str:
    """A text with the values of the names between pairs of @@."""
    pieces = text.split("@@")
    pieces[1::2] = [values[name] for name in pieces[1::2]]
    return "".join(pieces)


def checked(path: PathLike) -> pathlib.Path:
    """The path of a page to write; raises ValueError for another name, FileNotFoundError without its folder."""
    path = pathlib.Path(path)
    if path.suffix not in (".html", ".htm"):
        raise ValueError(f"{path}: expected a name that ends with .html.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: expected a file in a folder that exists, found no folder {path.parent}.")
    return path


class Scene:
    """What a page shows at a time.

    title, caption: texts about it. camera: position, focalPoint, viewUp, parallelScale, isParallel, viewAngle and,
    of scenes in the plane, extent: half of what has to be seen, rightward and upward. parts, legends: as
    dictionaries whose arrays are NumPy's. tables: columns by name, by the name of the table, beside those of the parts.
    heads: what the scene is of other heads, by layer and head, its own head being one of them.
    """

    def __init__(
        self, title: str, caption: str, is_flat: bool, camera: dict[str, Any], parts: list[Any], legends: list[Any]
    ) -> None:
        self.title, self.caption, self.is_flat = title, caption, is_flat
        self.camera, self.parts, self.legends = camera, parts, legends
        self.tables: dict[str, dict[str, Any]] = {}
        self.heads: dict[tuple[int, int], Scene] = {}

    def rename(self, prefix: str) -> None:
        """Begins the title with a text, for all heads."""
        self.title = f"{prefix}{self.title}"
        for other in self.heads.values():
            if other is not self:
                other.title = f"{prefix}{other.title}"

    def described(self, block: Block) -> dict[str, Any]:
        """The scene for JSON, its arrays being in the block."""
        found: dict[str, Any] = {
            "title": self.title,
            "caption": self.caption,
            "isFlat": self.is_flat,
            "camera": self.camera,
            "legends": self.legends,
            "parts": [_described(part, block) for part in self.parts],
        }
        if self.tables:
            found["tables"] = [
                {"name": name, "count": len(next(iter(arrays.values()))), "arrays": _described(arrays, block)}
                for name, arrays in self.tables.items()
            ]
        if self.heads:
            found["heads"] = [
                {"layer": layer, "head": head, **({} if other is self else other.described(block))}
                for (layer, head), other in self.heads.items()
            ]
        return found

    def _repr_html_(self) -> str:
        """The page of this scene in a frame, as Jupyter shows it."""
        return Page([self])._repr_html_()


class Page:
    """A page of scenes. Jupyter shows it in a frame.

    scenes: each with a tab of its own. title: of the page. theme: system, light or dark, which the page lets its
    reader change; system follows the reader's settings. Raises ValueError without scenes or for another theme.
    """

    def __init__(self, scenes: Iterable[Scene], title: str = "Attention Atlas", theme: str = "system") -> None:
        self.scenes = list(scenes)
        if not self.scenes:
            raise ValueError("page: expected at least one scene, found none.")
        if theme not in THEMES:
            raise ValueError(f"theme: expected {', '.join(THEMES)}, found '{theme}'.")
        self.title, self.theme = title, theme

    def html(self) -> str:
        """The text of the page."""
        block = Block()
        scenes = [scene.described(block) for scene in self.scenes]
        script, style, body = (
            (ASSETS / name).read_text(encoding="utf-8") for name in ("page.min.js", "page.css", "page.html")
        )
        values = {
            "title": html.escape(self.title, quote=True),
            "theme": self.theme,
            "script-hash": hash_of(script),
            "style-hash": hash_of(style),
            "style": style,
            "scenes": json_text(scenes),
            "data": block.text(),
            "script": script,
        }
        return filled(body, values)

    def save(self, path: PathLike) -> pathlib.Path:
        """Writes the page to a file, which appears complete or not at all; returns its path."""
        path = checked(path)
        with complete(path) as temporary:
            temporary.write_text(self.html(), encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        """The page in a frame of its own, as Jupyter shows it."""
        return (
            f'<iframe title="{html.escape(self.title, quote=True)}" width="100%" height="{_FRAME}" '
            f'sandbox="allow-scripts allow-downloads" style="border: 0" srcdoc="{html.escape(self.html(), quote=True)}"></iframe>'
        )
