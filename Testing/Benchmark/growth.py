#!/usr/bin/env python3
"""How the time of views grows, from the results of BenchmarkGrowth: exponents, and a figure.

    growth.py BenchmarkGrowth.json FIGURE.png
"""

import dataclasses
import json
import math
import sys

from results import seconds, take_apart

#: The stated laws, as the benchmark labels them.
LAWS = {
    "n": lambda n: n,
    "n log n": lambda n: n * math.log(n),
    "n^1.5": lambda n: n**1.5,
    "n^2": lambda n: n * n,
}
#: A measured exponent that is larger by more than this is above the law.
TOLERANCE = 0.1
VIEWS = {
    "HeadEmbedding/Principal": "HeadEmbedding, PCA",
    "HeadEmbedding/TSne": "HeadEmbedding, t-SNE",
    "HeadEmbedding/Umap": "HeadEmbedding, UMAP",
}


def exponent(sizes, values):
    """The slope of the least-squares line through the logarithms."""
    x, y = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


@dataclasses.dataclass
class Growth:
    """The times of a view. Sizes ascend."""

    view: str
    unit: str  #: what it grows with
    law: str
    sizes: list
    processor: list  #: seconds of all threads
    clock: float  #: seconds at the largest size

    def upper(self):
        """The index from which on the exponents are fitted: the upper half of the sizes, at least three of them."""
        return max(0, min(len(self.sizes) // 2, len(self.sizes) - 3))

    def measured(self):
        return exponent(self.sizes[self.upper() :], self.processor[self.upper() :])

    def stated(self):
        """The exponent that the same fit finds for the law itself, at the same sizes."""
        sizes = self.sizes[self.upper() :]
        return exponent(sizes, [LAWS[self.law](size) for size in sizes])

    def is_above(self):
        return self.measured() > self.stated() + TOLERANCE


def growths(results):
    """The views of the results, in their order."""
    found = {}
    for result in results:
        family, arguments = take_apart(result["name"])
        if "error_message" in result or "cpu_s" not in result:
            continue
        unit, size = next(iter(arguments.items()))
        growth = found.setdefault(family, Growth(VIEWS.get(family, family), unit, result["label"], [], [], 0))
        growth.sizes.append(int(size))
        growth.processor.append(result["cpu_s"])
        growth.clock = seconds(result)
    return [growth for growth in found.values() if len(growth.sizes) > 1]


def draw(listed, path):
    """A panel per view: processor time, and the line of its law through the largest size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from PIL import Image

    columns = 4
    rows = -(-len(listed) // columns)
    pyplot.rcParams.update({"font.family": "DejaVu Sans", "font.size": 8})
    figure, panels = pyplot.subplots(rows, columns, figsize=(10, 1.9 * rows), squeeze=False)
    for growth, axes in zip(listed, panels.flat):
        start = growth.sizes[growth.upper()]
        law = LAWS[growth.law]
        axes.loglog(
            growth.sizes,
            [growth.processor[-1] * law(size) / law(growth.sizes[-1]) for size in growth.sizes],
            color="#999999",
            linewidth=1,
        )
        axes.loglog(growth.sizes, growth.processor, "o", color="#0072b2", markersize=3)
        axes.axvline(start, color="#dddddd", linewidth=0.8, zorder=0)
        axes.set_title(growth.view, fontsize=8)
        axes.set_xlabel(growth.unit, labelpad=1)
        axes.set_xscale("log", base=2)
        axes.text(0.05, 0.86, f"{growth.law.replace('n^2', 'n²').replace('n^1.5', 'n¹·⁵')}", transform=axes.transAxes)
        axes.minorticks_off()
    for axes in panels.flat[len(listed) :]:
        axes.set_visible(False)
    for row in panels:
        row[0].set_ylabel("processor time, s")
    figure.tight_layout(pad=0.6)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
    with Image.open(path) as image: # a few colors: a small file
        image.convert("RGB").quantize(16).save(path, optimize=True)


def main(path, figure):
    with open(path, encoding="utf-8") as file:
        draw(growths(json.load(file)["benchmarks"]), figure)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
