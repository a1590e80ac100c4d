"""Figures of where the heads of a recorded transformer look and what they write ("Attention Focus Plots").

    pvpython -m attentionatlas.focus RECORDING ... -o DIR [--model CONFIG] [--sequence S] [--layer L] [--head H]
        [--quantity Weights|NormWeighted] [--ranks K] [--width-mm MM] [--font-size PT] [--dark]
        [--format png|pdf|svg] [--width PIXELS]

The scores of one head with the strongest key of each query; its scores as ALiBi + bias + attention, and the
bias against ALiBi (with --model, the config.json of the transformer that was recorded); the heads of every
layer, sorted by how often they look at themselves or the first token, and by how concentrated they are; and
how much each head changes the residual stream (of recordings with head outputs and residual). Each is also a
function that returns a matplotlib Figure: heads_by_layer("run.safetensors", measure="Concentration").
"""

import argparse
import pathlib
import sys

import matplotlib
import numpy
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, PowerNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from paraview import simple

from attentionatlas import heads
from attentionatlas._internal import data
from attentionatlas._internal.charts import MILLIMETRE, color_bar, drawn_from, fit, foreground, show_matrix
from attentionatlas._internal.checks import check
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.recording import Recording
from attentionatlas._internal.style import BLUES, GREY, HEAD_COLORS, WEIGHTS
from attentionatlas.heads import Figure
from attentionatlas.output import Output, add_options, options

#: What sorts the heads of a layer: values of the property Measure of AttentionFocus, and axis labels.
MEASURES = {
    "StrongestIsSelf": "Share of queries whose strongest key is their own",
    "StrongestIsFirst": "Share of queries whose strongest key is the first",
    "Concentration": "Largest \u2212 second largest weight",
    "SelfWeight": "Weight of the own key",
    "FirstWeight": "Weight of the first key",
    "Entropy": "Entropy / ln(keys)",
    "SinkRate": "Share of queries with a sink",
}
QUANTITIES = ("Weights", "NormWeighted")
#: Kinds of strongest keys: the value of the array Kind, its color, its name.
_KINDS = ((1, "#009e73", "the query itself"), (2, "#cc79a7", "first token"), (0, "#e69f00", "another"))
#: The parts of a score, with their colors.
_PARTS = dict(zip(("ALiBi", "Bias", "Attention"), HEAD_COLORS))
#: More labels than these cannot be read.
_LABELS = 40
#: Points that a scatter plot draws as vectors; of more it makes an image.
_VECTORS = 5000


class Focus(Recording):
    """A recording with the tables of where its heads look and what they write.

    Raises FileNotFoundError for a missing file, ValueError for one that holds no recording.
    """

    def __init__(self, path, sequence=0):
        super().__init__(path, sequence)
        self.sequence = sequence
        self.name = pathlib.Path(path).name

    def table(self, proxy, port=0, **properties):
        """A table of a filter on the recording; raises ValueError if the filter reports an error."""
        with self:
            table = data.table(self.own(getattr(simple, proxy)(Input=self.reader, **properties)), port)
        if not table:
            raise ValueError(f"{self.name}: no {proxy}; see the error reported above.")
        return table

    def breakdown(self, config, port=0, **properties):
        """A table of ScoreBreakdown; raises Missing without a model."""
        if config is None:
            raise Missing("the parts of scores need the model: --model CONFIG")
        if not pathlib.Path(config).exists():
            raise FileNotFoundError(f"{config}: no such file.")
        with self:
            reader = self.own(simple.TransformerReader(FileName=str(config)))
            return self.table("ScoreBreakdown", port, Model=reader, Sequence=self.sequence, **properties)

    def updates(self, port=0):
        """A table of HeadUpdates; raises Missing without head outputs and residual."""
        if not self._has_updates():
            raise Missing(f"{self.name} holds no head outputs and residual")
        return self.table("HeadUpdates", port)

    def strongest(self, layer, head):
        """The strongest key of each query, and its kind."""
        with self:
            place = {"Sequence": self.sequence, "Layer": layer, "Head": head}
            frames = data.fetch(self.own(simple.AttentionMap(Input=self.reader, **place)), 1)
            arrays = frames.GetCellData()
            return [
                [int(arrays.GetArray(name).GetTuple1(row)) for row in range(frames.GetNumberOfCells())]
                for name in ("Query", "Key", "Kind")
            ]

    def _has_updates(self):
        for layer in map(data.blocks, data.blocks(data.first_part(self.reader)).values()):
            if layer and data.has_column(next(iter(layer.values())), "Output"):
                return "residual" in layer
        return False

    def place(self, layer, head):
        """The layer, the first one by default, and the head; raises ValueError if there are none."""
        layer = self.layers[0] if layer is None else layer
        self.check_place(layer, head)
        return layer, head


def _label_positions(axes, recording, count):
    """Writes the tokens, or positions if they are many, below an axis of positions."""
    if count <= _LABELS:
        texts = [token.strip() or repr(token) for token in recording.tokens[:count]]
        axes.set_xticks(range(count), texts, rotation=90)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0.02)


@drawn_from(Focus.opened)
def scores(recording, page, layer=None, head=0):
    """The scores of a head before the softmax; frames mark the strongest key of each query."""
    layer, head = recording.place(layer, head)
    figure = heads.draw_head(recording, page, layer, head, "Scores", cmap=BLUES)
    axes = figure.axes[0]
    colors = {kind: color for kind, color, _ in _KINDS}
    side = axes.get_window_extent().width / figure.dpi * 72 / len(recording.tokens)  # of a cell, in points
    width = min(2, max(0.4, 0.15 * side))
    inner = 0.5 - min(0.3, 0.5 * width / side)
    for query, key, kind in zip(*recording.strongest(layer, head)):
        corner = (key - inner, query - inner)
        frame = Rectangle(corner, 2 * inner, 2 * inner, fill=False, linewidth=width, edgecolor=colors[kind])
        axes.add_patch(frame)
    handles = [Line2D([], [], color=color, label=name) for _, color, name in _KINDS]
    if numpy.triu(recording.matrix(layer, head), 1).any():  # nowhere to write
        axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), borderpad=0, ncol=3)
    else:
        legend = axes.legend(handles=handles, title="Strongest key of a query", loc="upper right", labelcolor="black")
        legend.get_title().set_color("black")  # on light grey, on dark pages too
    return fit(figure)


@drawn_from(Focus.opened)
def breakdown(recording, page, config=None, layer=None, head=0, ranks=4):
    """The largest scores of each query as ALiBi + bias + attention, a panel per rank."""
    check("ranks", ranks, 1, 16)
    layer, head = recording.place(layer, head)
    table = recording.breakdown(config, Layer=layer, Head=head, Top=ranks)
    recording.matrix(layer, head)  # knows the tokens
    ranks = int(table["Rank"].max()) + 1
    columns = 2 if page.width_mm >= 120 and ranks > 1 else 1
    title = f"Layer {layer}, head {head}: parts of the k-th largest scores"
    figure, panels = page.panels(ranks, columns, title, square=False)
    figure.set_figheight(55 * MILLIMETRE * (-(-ranks // columns)) + 12 * MILLIMETRE)
    values = numpy.concatenate([table[name] for name in (*_PARTS, "Score")])
    low, high = values.min(), values.max()
    for rank, axes in enumerate(panels):
        rows = table["Rank"] == rank
        query = table["Query"][rows]
        for name, color in _PARTS.items():
            axes.plot(query, table[name][rows], color=color, marker=".", markersize=3, label=name)
        axes.plot(query, table["Score"][rows], color=foreground(), linestyle=":", label="Score")
        axes.set(title=f"k = {rank + 1}", ylim=(low - 0.05 * (high - low), high + 0.05 * (high - low)))
        axes.set_ylabel("Score" if rank % columns == 0 else "")
        axes.set_xlabel("Query" if rank + columns >= ranks else "")
        axes.set_xlim(-0.5, len(recording.tokens) - 0.5)
        _label_positions(axes, recording, len(recording.tokens))
    panels[columns - 1].legend(loc="lower right", bbox_to_anchor=(1, 1), borderpad=0, ncol=4)
    return figure


@drawn_from(Focus.opened)
def key_parts(recording, page, config=None, layer=None, head=0):
    """The parts of a head's scores that depend on the key alone, bias and ALiBi, without their means."""
    layer, head = recording.place(layer, head)
    table = recording.breakdown(config, 1, Layer=layer, Head=head)
    recording.matrix(layer, head)
    figure, (axes,) = page.panels(1, square=False)
    figure.set_figheight(70 * MILLIMETRE)
    for name in ("ALiBi", "Bias"):
        axes.plot(table["Position"], table[name], color=_PARTS[name], marker=".", markersize=3, label=name)
    axes.axhline(0, color=GREY, linewidth=0.4, zorder=0)
    axes.set(title=f"Layer {layer}, head {head}: what a key adds to every score", xlabel="Key")
    axes.set_ylabel("Score \u2212 mean over keys")
    axes.legend()
    _label_positions(axes, recording, len(table["Position"]))
    return figure


def _numbers(numbers, shown):
    """The first numbers in words, and how many are left."""
    rest = [f"+{len(numbers) - shown}"] if shown < len(numbers) else []
    return " ".join([*numbers[:shown], *rest])


def _label_lines(axes, layer, ranked, width):
    """Writes the numbers of heads beside their points; those of points that are too near share a place.

    ranked: (value, head) from the largest value on. width: the letters that fit.
    """
    low, high = axes.get_ylim()
    points = axes.get_window_extent().height / axes.figure.dpi * 72
    height = 1.1 * matplotlib.rcParams["font.size"] / points
    groups = []
    for value, head in ranked:
        if groups and groups[-1][0] - value < height * (high - low):
            groups[-1][1].append(str(head))
        else:
            groups.append((value, [str(head)]))
    for value, numbers in groups:
        shown = len(numbers)
        while shown > 0 and len(_numbers(numbers, shown)) > width:
            shown -= 1
        if shown == 0:
            continue
        box = {"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 0.2}
        axes.annotate(
            _numbers(numbers, shown), (layer, value), (2.5, 0), textcoords="offset points", va="center", size="small", bbox=box
        )


@drawn_from(Focus.opened)
def heads_by_layer(recording, page, measure="StrongestIsSelf", quantity="Weights", exclude_first=False):
    """A measure of all heads against the layer, as lines that do not cross: the largest of each layer, the
    second largest, ... Numbers are those of the heads."""
    if measure not in MEASURES:
        raise ValueError(f"measure: expected {', '.join(MEASURES)}, found '{measure}'.")
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity: expected {', '.join(QUANTITIES)}, found '{quantity}'.")
    table = recording.table(
        "AttentionFocus", 1, Measure=measure, Quantity=quantity, ExcludeFirst=int(exclude_first)
    )
    layers = sorted({int(layer) for layer in table["Layer"]})
    figure, (axes,) = page.panels(1, square=False)
    figure.set_figheight(min(120, 0.6 * page.width_mm) * MILLIMETRE)
    weighted = ", norm-weighted" if quantity == "NormWeighted" else ""
    axes.set(title=MEASURES[measure] + weighted, xlabel="Layer")
    for rank in range(int(table["Rank"].max()) + 1):
        rows = table["Rank"] == rank
        axes.plot(table["Layer"][rows], table["Value"][rows], color=GREY, linewidth=0.6, zorder=1)
    axes.scatter(table["Layer"], table["Value"], s=5, color=HEAD_COLORS[0], linewidths=0, zorder=2)
    axes.set_xticks(layers)
    span, top = max(1, layers[-1] - layers[0]), max(0.1, table["Value"].max())
    axes.set(ylim=(-0.03 * top, 1.05 * top), xlim=(layers[0] - 0.02 * span, layers[-1] + 0.12 * span))
    figure.draw_without_rendering()
    letter = 0.55 * matplotlib.rcParams["font.size"]
    points = axes.get_window_extent().width / figure.dpi * 72 / (1.14 * span)  # of a layer
    for layer, after in zip(layers, [*layers[1:], layers[-1] + 0.12 * span]):
        rows = table["Layer"] == layer
        ranked = zip(table["Value"][rows], table["Head"][rows])
        _label_lines(axes, layer, list(ranked), max(2, int((after - layer) * points / letter)))
    return figure


def _histograms(recording, page, name, label):
    table = recording.updates(port=1)
    layers = recording.layers
    columns = page.columns(len(layers))
    title = f"{label}: a row per head"
    figure, panels = page.panels(len(layers), columns, title, square=False)
    figure.set_figheight((34 * -(-len(layers) // columns) + 14) * MILLIMETRE)
    most = table[f"{name} Count"].max()
    for layer, axes in zip(layers, panels):
        rows = table["Layer"] == layer
        counts = table[f"{name} Count"][rows].reshape(-1, 50).astype(float)
        shown = show_matrix(axes, counts, page.pixels(columns), cmap=WEIGHTS, norm=PowerNorm(0.5, 0, most))
        axes.set_aspect("auto")
        low, high = table[f"{name} Low"][rows][0], table[f"{name} High"][rows][-1]
        ends = (low, (low + high) / 2, high)
        axes.set_xticks([-0.5, 24.5, 49.5], [f"{value:.2g}".replace("-", "\u2212") for value in ends])
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set(title=f"Layer {layer}")
    panels[0].set_ylabel("Head")
    color_bar(figure, panels, shown, "Tokens", sorted({0, round(most / 4), most}))
    return figure


@drawn_from(Focus.opened)
def magnitudes(recording, page):
    """How much each head changes the residual stream: a histogram of its update over the tokens."""
    return _histograms(recording, page, "Magnitude", "Update magnitude |u| / |x|")


@drawn_from(Focus.opened)
def orientations(recording, page):
    """The cosine of each head's update with the residual stream: a histogram over the tokens."""
    return _histograms(recording, page, "Orientation", "Update orientation cos(u, x)")


def _layer_colors(recording):
    """A color for each layer, from dark blue to orange."""
    return ListedColormap(matplotlib.cm.plasma(numpy.linspace(0, 0.82, len(recording.layers))))


def _layer_bar(figure, axes, recording):
    count = len(recording.layers)
    norm = BoundaryNorm(numpy.arange(count + 1) - 0.5, count)
    step = -(-count // 16)
    places = range(0, count, step)
    labels = [recording.layers[place] for place in places]
    color_bar(figure, axes, ScalarMappable(norm, _layer_colors(recording)), "Layer", places, labels)


@drawn_from(Focus.opened)
def orientation_and_magnitude(recording, page):
    """The orientation of each update against its magnitude: all heads and tokens, colored by layer."""
    table = recording.updates()
    figure, (axes,) = page.panels(1, square=False)
    figure.set_figheight(min(120, 0.7 * page.width_mm) * MILLIMETRE)
    order = numpy.random.default_rng(0).permutation(len(table["Layer"]))  # hides no layer
    colors = _layer_colors(recording)(numpy.searchsorted(recording.layers, table["Layer"][order]))
    axes.scatter(
        table["Orientation"][order], table["Magnitude"][order], s=3, c=colors, linewidths=0, alpha=0.7,
        rasterized=len(order) > _VECTORS,
    )
    axes.axvline(0, color=GREY, linewidth=0.4, zorder=0)
    axes.set(title="What each head writes at each token", ylim=(0, None))
    axes.set(xlabel="Orientation cos(u, x)", ylabel="Magnitude |u| / |x|")
    _layer_bar(figure, axes, recording)
    return figure


@drawn_from(Focus.opened)
def position_and_magnitude(recording, page):
    """The magnitude of each update against its position; lines are the means of layers."""
    table, means = recording.updates(), recording.updates(port=2)
    figure, (axes,) = page.panels(1, square=False)
    figure.set_figheight(min(110, 0.6 * page.width_mm) * MILLIMETRE)
    axes.scatter(
        table["Position"], table["Magnitude"], s=2, color=GREY, alpha=0.35, linewidths=0, zorder=1,
        rasterized=len(table["Position"]) > _VECTORS,
    )
    for layer, color in zip(recording.layers, _layer_colors(recording).colors):
        rows = means["Layer"] == layer
        axes.plot(means["Position"][rows], means["Magnitude"][rows], color=color, zorder=2)
    axes.set(title="Magnitude by position: all heads, and the means of layers", xlabel="Position", ylim=(0, None))
    axes.set_ylabel("Magnitude |u| / |x|")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _layer_bar(figure, axes, recording)
    return figure


FIGURES = {
    "focus-scores": Figure(
        "Where the queries of a head look",
        "The scores of one head before the softmax. Frames mark the strongest key of each query: green where that "
        "is its own position, purple where it is the first token, orange elsewhere.",
        scores,
        {"layer": None, "head": 0},
    ),
    "focus-breakdown": Figure(
        "What makes a score large",
        "The largest scores of each query of one head as the sum of ALiBi, a bias that depends on the key alone, and "
        "attention.",
        breakdown,
        {"config": None, "layer": None, "head": 0, "ranks": 4},
    ),
    "focus-bias": Figure(
        "Bias against ALiBi",
        "The parts of the scores of one head that depend on the key alone, without their means, which the softmax "
        "does not see.",
        key_parts,
        {"config": None, "layer": None, "head": 0},
    ),
    "focus-self": Figure(
        "Heads that look at themselves",
        "The share of queries whose strongest key is their own. The heads of each layer are sorted, so lines do not "
        "cross; numbers are heads.",
        heads_by_layer,
        {"measure": "StrongestIsSelf", "quantity": "Weights"},
    ),
    "focus-first": Figure(
        "Heads that look at the first token",
        "The share of queries whose strongest key is the first token, likewise.",
        heads_by_layer,
        {"measure": "StrongestIsFirst", "quantity": "Weights"},
    ),
    "focus-concentration": Figure(
        "How concentrated heads are",
        "The mean difference between the largest and the second largest weight of a query, likewise. 1: all "
        "attention goes to one key.",
        heads_by_layer,
        {"measure": "Concentration", "quantity": "Weights"},
    ),
    "focus-magnitudes": Figure(
        "How much heads write",
        "The length of what each head adds to the residual stream, as a share of its length: histograms over the "
        "tokens, a row per head.",
        magnitudes,
        {},
    ),
    "focus-orientations": Figure(
        "Where to heads write",
        "The cosine of what each head adds with the residual stream, likewise.",
        orientations,
        {},
    ),
    "focus-scatter": Figure(
        "Orientation and magnitude",
        "Each point is what one head adds to the residual stream at one token.",
        orientation_and_magnitude,
        {},
    ),
    "focus-positions": Figure(
        "Position and magnitude",
        "The magnitude of what heads add against the position of the token; lines are the means of layers.",
        position_and_magnitude,
        {},
    ),
}


def render_named(path, folder, sequence=0, output=None, reasons=None, **place):
    """Renders the figures of a recording; returns {name in FIGURES: path}.

    As render. Figures for which the recording or the model is missing are left out; the reasons are
    appended to the list `reasons`, each once.
    """
    output = output or Output()
    folder, stem, written = pathlib.Path(folder), pathlib.Path(path).stem, {}
    with Focus.opened(path, sequence) as recording:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in FIGURES.items():
            if name == "focus-scores" and not recording.has_scores:
                continue
            arguments = {key: place.get(key, value) for key, value in figure.arguments.items()}
            arguments.update({key: figure.arguments[key] for key in ("measure",) if key in figure.arguments})
            try:
                drawn = figure.draw(recording, **arguments, **output.options)
            except (Missing, ValueError) as reason:
                # Not every model has scores that can be split.
                if isinstance(reason, ValueError) and "config" not in arguments:
                    raise
                if reasons is not None and str(reason) not in reasons:
                    reasons.append(str(reason))
                continue
            written[name] = output.write(drawn, folder, f"{stem}-{name}")
    return written


def render(path, folder, sequence=0, width=2400, format="png", style=None, **place):
    """Renders the figures of a recording; returns their paths.

    sequence, layer (the first by default), head: what to show of single heads. config: the config.json of the
    transformer that was recorded, for the parts of scores. ranks: the largest scores of a query (4). quantity:
    Weights or NormWeighted. width: of a PNG, in pixels. format: png, pdf or svg. style: {"width_mm": 180,
    "font_size": 7, "dark": False}. Raises FileNotFoundError or ValueError.
    """
    output = Output(format, width, **(style or {}))
    return list(render_named(path, folder, sequence, output, **place).values())


def _parser():
    parser = argparse.ArgumentParser(
        prog="pvpython -m attentionatlas.focus",
        description="Renders where the heads of a recorded transformer look and what they write.",
    )
    parser.add_argument("recordings", nargs="+", metavar="RECORDING", help="safetensors, npy or npz")
    add_options(parser)
    heads.add_place_options(parser)
    parser.add_argument("--model", metavar="CONFIG", help="the config.json of the model, for the parts of scores")
    parser.add_argument("--ranks", type=int, default=4, help="largest scores of a query to split (default: 4)")
    parser.add_argument("--quantity", default="Weights", help="Weights or NormWeighted (default: Weights)")
    return parser


def main(arguments=None):
    found = _parser().parse_args(arguments)
    place = {name: getattr(found, name) for name in ("layer", "head", "ranks", "quantity")}
    place["config"] = found.model
    reasons = []
    try:
        output = Output(**options(found))
        for path in found.recordings:
            for file in render_named(path, found.output, found.sequence, output, reasons, **place).values():
                print(file, flush=True)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    for reason in reasons:
        print(f"left out: {reason}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
