"""Figures of what the heads of a recorded transformer attend to in one sequence.

    pvpython -m attentionatlas.heads RECORDING ... -o DIR [--sequence S] [--layer L] [--head H]
        [--width PIXELS] [--format png|pdf|svg]

One head with its tokens, before and after the softmax; a layer; and all layers and heads as a matrix.
"""

import argparse
import math
import pathlib
import sys

import numpy
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
from vtkmodules.vtkCommonDataModel import vtkImageData
from vtkmodules.vtkIOImage import vtkPNGWriter

from attentionatlas import load_plugin
from attentionatlas.drawing import BLUES, ORANGES, SHARES, Figure, color_stripes, field_number
from attentionatlas.sheet import FORMATS, SIDE, WHITE, Sheet

WEIGHTS = [WHITE, *BLUES]
#: Heads side by side in the figure of a layer.
COLUMNS = 4
#: The least width of a picture of one head, in pixels.
PIXELS = 480


def _holds_scores(layer):
    """Whether a block of a recording holds the queries of a head or blocks of its scores."""
    if not layer.IsA("vtkMultiBlockDataSet"):
        return False
    for i in range(layer.GetNumberOfBlocks()):
        block = layer.GetBlock(i)
        is_table = block is not None and block.IsA("vtkTable")
        if layer.GetMetaData(i).Get(layer.NAME()).endswith(" scores"):
            return True
        if is_table and block.GetColumnByName("Query"):
            return True
    return False


class Maps:
    """The maps of a recording's heads on one sequence, as matrices with a row per query."""

    def __init__(self, path, sequence):
        path = pathlib.Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file.")
        self.reader = simple.RecordingReader(registrationName=path.stem, FileName=str(path))
        self.reader.UpdatePipeline()
        if field_number(self.reader, "Rotated") is None:
            simple.Delete(self.reader)
            raise ValueError(f"{path}: cannot be read; the message above says why.")
        self.map = simple.AttentionMap(Input=self.reader, Sequence=sequence)
        blocks = servermanager.Fetch(self.reader)
        names = [blocks.GetMetaData(i).Get(blocks.NAME()) for i in range(blocks.GetNumberOfBlocks())]
        self.layers = [int(name.split()[1]) for name in names if name.startswith("layer ")]
        self.heads = int(field_number(self.reader, "Heads"))
        #: Whether there is what goes into the softmax: queries, or the scores themselves.
        self.has_scores = any(_holds_scores(blocks.GetBlock(i)) for i in range(len(names)))
        self.tokens = []

    def close(self):
        simple.Delete(self.map)
        simple.Delete(self.reader)

    def matrix(self, layer, head, quantity="Weights"):
        """A quantity; raises ValueError if there is no such head."""
        self.map.Layer, self.map.Head, self.map.Quantity = layer, head, quantity
        self.map.UpdatePipeline()
        if self.map.GetDataInformation().GetNumberOfPoints() == 0:
            raise ValueError(f"no {quantity} of layer {layer}, head {head}; the message above says why.")
        image = servermanager.Fetch(self.map)
        array = image.GetPointData().GetArray(quantity)
        labels = image.GetFieldData().GetAbstractArray("Key Token")
        self.tokens = [labels.GetValue(i) for i in range(labels.GetNumberOfValues())]
        width, height, _ = image.GetDimensions()
        return vtk_to_numpy(array).reshape(height, width)[::-1].copy()


def colors_of(matrix, colors, low, high):
    """A matrix as rows of RGB, 0 to 255; grey where it is not finite."""
    known = numpy.isfinite(matrix)
    share = numpy.clip((numpy.where(known, matrix, low) - low) / ((high - low) or 1), 0, 1)
    places = share * (len(colors) - 1)
    table = numpy.array(colors)
    pixels = [numpy.interp(places, range(len(colors)), table[:, c]) for c in range(3)]
    pixels = numpy.where(known[..., None], numpy.stack(pixels, axis=-1), 0.9)
    return numpy.rint(255 * pixels).astype(numpy.uint8)


def _show(sheet, pixels, x, y, side):
    """Shows rows of RGB, the first on top, as a square around a point of the page."""
    fold = -(-PIXELS // len(pixels))  # cells of many pixels, whose edges stay sharp
    pixels = pixels.repeat(fold, axis=0).repeat(fold, axis=1)
    image = vtkImageData()
    image.SetDimensions(pixels.shape[1], pixels.shape[0], 1)
    scalars = numpy_to_vtk(pixels[::-1].reshape(-1, 3), deep=True)
    image.GetPointData().SetScalars(scalars)
    file = sheet.scene_file()
    writer = vtkPNGWriter()
    writer.SetFileName(str(file))
    writer.SetInputData(image)
    writer.Write()
    step = side / (len(pixels) - 1)
    sheet.image(file, [x - side / 2, y - side / 2], [step, step])


def _tile(pixels, least):
    """Rows of RGB, at least so many pixels large, in a white frame."""
    fold = -(-least // len(pixels))
    pixels = pixels.repeat(fold, axis=0).repeat(fold, axis=1)
    margin = max(2, len(pixels) // 24)
    frame = numpy.full((len(pixels) + 2 * margin, len(pixels) + 2 * margin, 3), 255, numpy.uint8)
    frame[margin - 1 : 1 - margin, margin - 1 : 1 - margin] = 150
    frame[margin:-margin, margin:-margin] = pixels
    return frame


def _draw_tokens(panel, tokens):
    """Writes the tokens beside the rows and below the columns of a map."""
    cell = SIDE / len(tokens)
    gap = 0.4 * panel.sheet.unit
    for number, token in enumerate(tokens):
        place = (number + 0.5) * cell
        text = token.strip() or repr(token)
        panel.text(text, -math.pi - gap, math.pi - place, horizontal=1)
        panel.text(text, place - math.pi, -math.pi - gap, vertical=1, upright=True)


def head_figure(maps, layer, head, quantity, width):
    """A sheet of one head: rows are queries, columns are keys."""
    matrix = maps.matrix(layer, head, quantity)
    colors, low, high = WEIGHTS, 0, 1
    if quantity != "Weights":
        if not numpy.triu(maps.matrix(layer, head), 1).any():  # what the mask excludes
            matrix = numpy.where(numpy.tri(len(matrix)) > 0, matrix, numpy.nan)
        colors = ORANGES
        low, high = (float(edge(matrix[numpy.isfinite(matrix)])) for edge in (numpy.min, numpy.max))
    # At most so many labels can be read.
    tokens = maps.tokens if len(maps.tokens) <= 40 else []
    room = 1.5 + max((0.62 * len(token.strip()) for token in tokens), default=0)
    title = f"Layer {layer}, head {head}: {quantity.lower()}"
    sheet = Sheet(title, width=width, axes=False, bar=True, titles=False, below=room, left=room)
    panel = sheet.panel(0)
    _show(sheet, colors_of(matrix, colors, low, high), panel.x, panel.y, SIDE)
    _draw_tokens(panel, tokens)
    labels = [(share, f"{low + share * (high - low):.1f}") for share in SHARES]
    sheet.ramp(color_stripes(colors), quantity, labels)
    return sheet


def layer_figure(maps, layer, width):
    """A sheet of the heads of a layer, after the softmax."""
    title = f"Layer {layer}: weights of its {maps.heads} heads"
    sheet = Sheet(title, panels=maps.heads, columns=COLUMNS, width=width, axes=False, bar=True)
    for head in range(maps.heads):
        panel = sheet.panel(head, f"Head {head}")
        _show(sheet, colors_of(maps.matrix(layer, head), WEIGHTS, 0, 1), panel.x, panel.y, SIDE)
    labels = [(share, f"{share:.1f}") for share in SHARES]
    sheet.ramp(color_stripes(WEIGHTS), "Weights", labels)
    return sheet


def all_figure(maps, width):
    """A sheet of all heads: a row per layer, a column per head."""
    count = max(len(maps.layers), maps.heads)
    title = f"Weights of {len(maps.layers)} layers x {maps.heads} heads"
    sheet = Sheet(title, width=width, axes=False, bar=True, titles=False, below=2.5, left=3.5)
    panel = sheet.panel(0, frame=False)
    cell = SIDE / count
    heads = range(maps.heads)
    tiles = [
        [_tile(colors_of(maps.matrix(layer, head), WEIGHTS, 0, 1), width // count) for head in heads]
        for layer in maps.layers
    ]
    size = len(tiles[0][0])
    mosaic = numpy.full((count * size, count * size, 3), 255, numpy.uint8)
    for row, layer in enumerate(maps.layers):
        mosaic[row * size : (row + 1) * size, : maps.heads * size] = numpy.hstack(tiles[row])
        y = math.pi - (row + 0.5) * cell
        panel.text(str(layer), -math.pi - 0.4 * sheet.unit, y, horizontal=1)
    _show(sheet, mosaic, panel.x, panel.y, SIDE)
    for head in heads:
        x = (head + 0.5) * cell - math.pi
        panel.text(str(head), x, math.pi - len(maps.layers) * cell - 0.3 * sheet.unit, vertical=1)
    panel.text("Layer", -math.pi - 2.6 * sheet.unit, math.pi - len(maps.layers) * cell / 2, upright=True)
    panel.text("Head", maps.heads * cell / 2 - math.pi, math.pi - len(maps.layers) * cell - 1.9 * sheet.unit)
    labels = [(share, f"{share:.1f}") for share in SHARES]
    sheet.ramp(color_stripes(WEIGHTS), "Weights", labels)
    return sheet


FIGURES = {
    "scores": Figure(
        "What a head compares: scores",
        "The scaled products of queries (rows) and keys (columns) of one head, before the softmax; grey "
        "where the mask hides the key.",
        lambda maps, layer, head, width: head_figure(maps, layer, head, "Scores", width),
    ),
    "weights": Figure(
        "What a head attends to: weights",
        "The same head after the softmax: how much each query (row) attends to each key (column), from white "
        "(not at all) to dark blue (to it alone).",
        lambda maps, layer, head, width: head_figure(maps, layer, head, "Weights", width),
    ),
    "layer": Figure(
        "The heads of a layer",
        "The weights of each head of that layer on the same sequence.",
        lambda maps, layer, head, width: layer_figure(maps, layer, width),
    ),
    "all-heads": Figure(
        "All heads",
        "The weights of every recorded layer (rows) and head (columns).",
        lambda maps, layer, head, width: all_figure(maps, width),
    ),
}


def render_named(path, folder, sequence=0, layer=None, head=0, width=2400, format="png"):
    """Renders the figures of a recording; returns {name in FIGURES: path}.

    As render; the scores are left out of a recording that holds attention alone.
    """
    if not 200 <= width <= 16384:
        raise ValueError(f"width: expected 200 to 16384 pixels, found {width}.")
    if format not in FORMATS:
        raise ValueError(f"unknown format '{format}'; known are {', '.join(FORMATS)}.")
    load_plugin()
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    maps = Maps(path, sequence)
    try:
        layer = maps.layers[0] if layer is None else layer
        written = {}
        for name, figure in FIGURES.items():
            if name == "scores" and not maps.has_scores:
                continue
            with figure.draw(maps, layer, head, width) as sheet:
                file = folder / f"{pathlib.Path(path).stem}-{name}.{format}"
                written[name] = sheet.save(file)
        return written
    finally:
        maps.close()


def render(*arguments, **options):
    """Renders the figures of a recording: render(path, folder, ...); returns their paths.

    layer: the first recorded one by default. width: of each picture, 200 to 16384 pixels. format: png,
    pdf or svg. Raises FileNotFoundError or ValueError.
    """
    return list(render_named(*arguments, **options).values())


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="pvpython -m attentionatlas.heads",
        description="Renders figures of what the heads of a recorded transformer attend to.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="safetensors, npy or npz")
    parser.add_argument("-o", "--output", default=".", help="folder to write to (default: .)")
    parser.add_argument("--sequence", type=int, default=0, help="of the recording (default: 0)")
    parser.add_argument("--layer", type=int, help="to show (default: the first)")
    parser.add_argument("--head", type=int, default=0, help="to show large (default: 0)")
    parser.add_argument("--width", type=int, default=2400, help="in pixels (default: 2400)")
    parser.add_argument("--format", default="png", help="png, pdf or svg (default: png)")
    options = parser.parse_args(arguments)
    try:
        for path in options.recordings:
            for file in render(
                path,
                options.output,
                options.sequence,
                options.layer,
                options.head,
                options.width,
                options.format,
            ):
                print(file, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
