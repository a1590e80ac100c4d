"""What tests of figures share: expected values by NumPy, the content of PDF files, and places of text."""

import contextlib
import re
import shutil
import subprocess
import unittest.mock
import zlib

import atlastest
import numpy
from atlastest import simple
from attentionatlas import Recording
from attentionatlas._internal import host
from attentionatlas._internal.charts import Page
from matplotlib.image import imread


class Expected:
    """The formulas of attention-only transformers, from the tensors of a file, at rows of two angles."""

    def __init__(self, path, theta):
        self.model, _ = atlastest.read_safetensors(path)
        self.theta = numpy.asarray(theta)
        u, v = numpy.array([1, 0, -1]) / 2**0.5, numpy.array([-1, 2, -1]) / 6**0.5
        angles = self.theta[..., None]
        words = 3**0.5 * (numpy.cos(angles) * u + numpy.sin(angles) * v)
        self.tokens = words + self.model["position_embedding"][:2]
        self.heads = sum(name.endswith(".query") for name in self.model)

    def score(self, head):
        query, key = (self.model[f"heads.{head}.{name}"] for name in ("query", "key"))
        first, second = self.tokens[:, 0], self.tokens[:, 1]
        return ((second @ query.T) * ((first - second) @ key.T)).sum(axis=1) / len(query) ** 0.5

    def attention(self, head):
        return 1 / (1 + numpy.exp(-self.score(head)))

    def head_output(self, head):
        weight = self.attention(head)[:, None]
        mix = weight * self.tokens[:, 0] + (1 - weight) * self.tokens[:, 1]
        return mix @ self.model[f"heads.{head}.value"].T @ self.model[f"heads.{head}.output"].T

    def classes(self):
        """The predicted class and its probability."""
        output = self.tokens[:, 1] + sum(self.head_output(head) for head in range(self.heads))
        logits = output @ self.model["unembedding"].T
        odds = numpy.exp(logits - logits.max(axis=1, keepdims=True))
        return logits.argmax(axis=1), 1 / odds.sum(axis=1)


@contextlib.contextmanager
def without_layout():
    """Figures whose pages do not get their heights, which takes most of their time: for what does not depend on it."""
    with unittest.mock.patch.object(Page, "fit", lambda page, figure: figure):
        yield


@contextlib.contextmanager
def unwritten(module):
    """Figures are drawn, and no files written: only their names are known."""
    with without_layout(), unittest.mock.patch.object(module.Output, "write", lambda output, figure, folder, name: name):
        yield


def check_files(test, module, written, expected, render):
    """Expects files of PDF with these names, whose letters are text; and a PNG, which render(output, only) writes, as wide
    as is asked for. written: by name in FIGURES."""
    test.assertEqual([(name, path.name) for name, path in written.items()], [(name, f"{stem}.pdf") for name, stem in expected.items()])
    for path in written.values():
        check_pdf(test, path, 180)
    (path,) = render(module.Output(width=400), [next(iter(written))]).values()
    test.assertEqual(atlastest.read_picture(path).shape[1], 400)


def record_oracle(name, path):
    """The sequences of an oracle, run by the recorder with all that figures need."""
    host.load()
    tensors, _ = atlastest.read_safetensors(atlastest.TRANSFORMERS / name / "expected.safetensors")
    recorder = simple.TransformerRecorder(
        Input=atlastest.read_transformer(name), TokenIds=atlastest.token_lines(tensors["input_ids"]), Record=atlastest.RECORD
    )
    simple.SaveData(str(path), proxy=recorder)
    return path


class OracleFigures(atlastest.AtlasTest):
    """Figures of a recording of the model NAME of the oracle."""

    TOLERANCE = 1e-5  # for single precision (Testing/Oracle/analysis/README.md)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = record_oracle(cls.NAME, atlastest.OUTPUT / f"{cls.NAME}.safetensors")

    def opened(self):
        return Recording.opened(self.path, model=atlastest.TRANSFORMERS / self.NAME / "config.json")


def grid(count=24):
    """Rows of two angles, inside of the torus and on no point of symmetry."""
    angles = (numpy.arange(count) + 0.37) / count * 2 * numpy.pi - numpy.pi
    return numpy.stack(numpy.meshgrid(angles, angles), axis=-1).reshape(-1, 2)


def pixel_colors(figure, axes, path, places):
    """The colours of a PNG of a figure, 0 to 255, at places of its axes."""
    pixels = imread(path)[..., :3] * 255
    figure.set_dpi(pixels.shape[1] / figure.get_figwidth())
    figure.draw_without_rendering()
    columns, rows = numpy.floor(axes.transData.transform(places)).astype(int).T
    return pixels[len(pixels) - 1 - rows, columns]


def apart_from_dots(axes, theta):
    """Which of the places lie at a distance from the dots on a chart."""
    dots = axes.collections[-1].get_offsets()
    return numpy.linalg.norm(theta[:, None] - dots, axis=-1).min(axis=1) > 0.25


def overlaps(figure):
    """Texts that leave the page or meet another text, in words."""
    figure.draw_without_rendering()
    page, boxes, found = figure.bbox.padded(0.5), [], []
    for text in [*figure.texts, *(text for axes in figure.axes for text in texts_of(axes))]:
        if not text.get_visible() or not text.get_text().strip():
            continue
        box = text.get_window_extent()
        if not (page.contains(*box.min) and page.contains(*box.max)):
            found.append(f"'{text.get_text()}' leaves the page")
        for other, name in boxes:
            if box.padded(-0.5).overlaps(other.padded(-0.5)):
                found.append(f"'{text.get_text()}' meets '{name}'")
        boxes.append((box, text.get_text()))
    return found


def texts_of(axes):
    """The texts that axes draw."""
    yield from (*axes.texts, axes.title, axes._left_title, axes._right_title)
    if axes.get_legend():
        yield from axes.get_legend().get_texts()
    if axes.axison:
        for axis in (axes.xaxis, axes.yaxis):
            yield axis.label
            yield from (label for tick in axis._update_ticks() for label in (tick.label1, tick.label2))


class Pdf:
    """The fonts, images and size of a PDF as matplotlib writes it, by reading the file itself."""

    def __init__(self, path):
        data = path.read_bytes()
        left, bottom, right, top = map(float, re.search(rb"/MediaBox \[([^]]+)\]", data)[1].split())
        self.size_mm = tuple(25.4 / 72 * side for side in (right - left, top - bottom))
        self.fonts = set(re.findall(rb"/FontName /(?:[A-Z]{6}\+)?(\S+)", data))
        self.embedded = len(re.findall(rb"/FontFile2 ", data))
        self.type3 = len(re.findall(rb"/Subtype /Type3", data))
        self.images = len(re.findall(rb"/Subtype /Image", data))
        streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.S)
        self.streams = [_inflated(stream) for stream in streams]


def check_pdf(test, path, width):
    """Expects letters that are text in an embedded font, on a page as wide as this, in mm."""
    pdf = Pdf(path)
    test.assertEqual(pdf.type3, 0, path)
    test.assertGreater(pdf.embedded, 0, path)
    test.assertAlmostEqual(pdf.size_mm[0], width, delta=0.2)


def _inflated(stream):
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return stream


def poppler(tool, *arguments):
    """What a tool of poppler prints, or None where it is missing."""
    if shutil.which(tool) is None:
        return None
    return subprocess.run([tool, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
