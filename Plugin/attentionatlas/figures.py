"""The figures of a small attention-only transformer, from its file to PNGs for print.

    pvpython -m attentionatlas.figures MODEL.safetensors ... -o DIR [--width PIXELS] [--only NAME,...]
"""

import argparse
import pathlib
import sys

from paraview import simple

from attentionatlas import load_plugin
from attentionatlas.chart import Chart


def _field(proxy, name):
    """A number of the field data of a proxy's output, or None if it has no such one."""
    fields = proxy.GetDataInformation().DataInformation.GetFieldDataInformation()
    array = fields.GetArrayInformation(name)
    return None if array is None else array.GetComponentRange(0)[0]


class Model:
    """An opened model and the filters that the figures of it share."""

    def __init__(self, path, resolution):
        path = pathlib.Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file.")
        self.name = path.stem
        self.reader = simple.AttentionOnlyModelReader(
            registrationName=self.name, FileNames=[str(path)]
        )
        self.reader.UpdatePipeline()
        heads = _field(self.reader, "Heads")
        if heads is None:
            simple.Delete(self.reader)
            raise ValueError(f"{path}: cannot be read; the message above says why.")
        self.heads = int(heads)
        self.torus = simple.AttentionTorus(
            registrationName="Torus",
            Input=self.reader,
            Resolution=[resolution, resolution],
            Quantities=["Class", "Probability", "ClassColor", "Attention"],
        )
        self.pairs = simple.TokenPairs(registrationName="Pairs", Input=self.reader)

    def accuracy(self):
        """The share of token pairs whose next token is predicted right, or None if unknown."""
        self.pairs.UpdatePipeline()
        return _field(self.pairs, "Accuracy")

    def close(self):
        for proxy in (self.pairs, self.torus, self.reader):
            simple.Delete(proxy)


def class_map(model, folder, width):
    """The predicted next token as a colour, paler where it is less probable, and the token pairs."""
    accuracy = model.accuracy()
    title = "Predicted next token"
    if accuracy is not None:
        title += f" (accuracy {100 * accuracy:.3g} %)"
    with Chart(title, width) as chart:
        chart.map(model.torus, "ClassColor")
        chart.pairs(model.pairs)
        chart.color_bar(simple.GetColorTransferFunction("ClassColor"), "Next token")
        yield chart.save(folder / f"{model.name}-class-map.png")


def attention(model, folder, width):
    """The attention of token 2 to token 1, head by head, soft and hard."""
    for pattern in ("Softmax", "Hardmax"):
        model.torus.Pattern = pattern
        for head in range(model.heads):
            array = f"Attention {head}"
            title = f"Attention to token 1, head {head}, {pattern.lower()}"
            with Chart(title, width) as chart:
                chart.map(model.torus, array)
                table = simple.GetColorTransferFunction(array)
                chart.color_bar(table, "Attention", labels=[0, 0.2, 0.4, 0.6, 0.8, 1])
                yield chart.save(
                    folder / f"{model.name}-attention-head-{head}-{pattern.lower()}.png"
                )
    model.torus.Pattern = "Softmax"


#: Every figure by its name: a function of a model, a folder and a width in pixels that yields the
#: path of each file as it is written.
FIGURES = {"class-map": class_map, "attention": attention}


def render(path, folder, names=None, width=2400, progress=None):
    """Renders figures of the model in a file; returns the paths of the files written.

    names: some of FIGURES, all by default. width: of each picture, 200 to 16384 pixels. progress: is
    called with the path of each file as it is written. Raises ValueError for an unknown name, another
    width or a file that is no model, FileNotFoundError for one that is not there.
    """
    names = list(FIGURES if names is None else names)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise ValueError(f"unknown figure '{unknown[0]}'; known are {', '.join(FIGURES)}.")
    if not 200 <= width <= 16384:
        raise ValueError(f"width: expected 200 to 16384 pixels, found {width}.")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    load_plugin()
    model = Model(path, resolution=min(width, 2048))
    written = []
    try:
        for name in names:
            for file in FIGURES[name](model, folder, width):
                written.append(file)
                if progress is not None:
                    progress(file)
    finally:
        model.close()
    return written


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="pvpython -m attentionatlas.figures",
        description="Renders the figures of attention-only transformers.",
    )
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a .safetensors file")
    parser.add_argument("-o", "--output", default=".", help="folder to write to (default: .)")
    parser.add_argument("--width", type=int, default=2400, help="in pixels (default: 2400)")
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(FIGURES)} (default: all)")
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else None
    written = []
    stems = [pathlib.Path(path).stem for path in options.models]
    for stem in stems:
        if stems.count(stem) > 1:
            parser.error(f"two models are named {stem}: their figures would have the same names")
    try:
        for path in options.models:
            written += render(
                path, options.output, names, options.width, lambda file: print(f"  {file}", flush=True)
            )
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(f"\n{len(written)} figures written:")
    for file in written:
        print(file)


if __name__ == "__main__":
    sys.exit(main())
