"""The figures of a small attention-only transformer, from its file to PNGs for print.

    pvpython -m attentionatlas.figures MODEL.safetensors ... -o DIR [--width PIXELS] [--only NAME,...]
"""

import argparse
import pathlib
import sys

from paraview import servermanager, simple

from attentionatlas import load_plugin
from attentionatlas.chart import Chart


class Model:
    """An opened model and the filters that the figures of it share."""

    def __init__(self, path, resolution):
        path = pathlib.Path(path)
        if not path.is_file():
            raise SystemExit(f"{path}: no such file.")
        self.name = path.stem
        self.reader = simple.AttentionOnlyModelReader(
            registrationName=self.name, FileNames=[str(path)]
        )
        self.reader.UpdatePipeline()
        fields = self.reader.GetDataInformation().DataInformation.GetFieldDataInformation()
        heads = fields.GetArrayInformation("Heads")
        if heads is None:
            raise SystemExit(f"{path}: cannot be read; the message above says why.")
        self.heads = int(heads.GetComponentRange(0)[0])
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
        field = servermanager.Fetch(self.pairs).GetFieldData().GetArray("Accuracy")
        return None if field is None else field.GetValue(0)

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


def render(path, folder, names=None, width=2400):
    """Renders figures of the model in a file; yields the path of each file as it is written.

    names: some of FIGURES, all by default; an unknown one raises SystemExit with the known ones.
    width: of each picture, in pixels.
    """
    names = list(FIGURES if names is None else names)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise SystemExit(f"unknown figure '{unknown[0]}'; known are {', '.join(FIGURES)}.")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    load_plugin()
    model = Model(path, resolution=min(width, 2048))
    try:
        for name in names:
            yield from FIGURES[name](model, folder, width)
    finally:
        model.close()


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
    if not 200 <= options.width <= 16384:
        parser.error(f"--width: expected 200 to 16384 pixels, found {options.width}")
    names = options.only.split(",") if options.only else None
    written = []
    for path in options.models:
        for file in render(path, options.output, names, options.width):
            print(f"  {file}", flush=True)
            written.append(file)
    print(f"\n{len(written)} figures written:")
    for file in written:
        print(file)


if __name__ == "__main__":
    sys.exit(main())
