"""The figures of training: a transformer of a model's size learns the model's task anew."""

import math

from paraview import servermanager, simple

from attentionatlas import drawing
from attentionatlas.drawing import HEAD_COLORS, ORANGES, SHARES, VIEWPOINT, Figure, Missing
from attentionatlas.sheet import BLACK, GREY, SIDE, Scene, Sheet

#: Of each head, or of all together.
STEPS = 3500
#: Pairs of tokens times heads: more would train for minutes.
LARGEST = 40000
#: The weight of the penalty in the figure of it.
SPECIALIZATION = 0.3
SEEDS = 3


def _training(tour, **properties):
    """A training of the task of the tour's model, or Missing."""
    if tour.accuracy(tour.pairs()) is None:
        raise Missing(f"{tour.name} has no next_token")
    if tour.tokens**2 * tour.heads > LARGEST:
        raise Missing(f"to train {tour.tokens} tokens and {tour.heads} heads takes too long")
    sizes = {"Heads": tour.heads, "HeadDimension": tour.dimension, "ModelFile": str(tour.path)}
    return tour.filter("AttentionOnlyTraining", **sizes, **properties)


def _numbers(source, port):
    """The columns of numbers of a table, by name."""
    simple.OutputPort(source, port).UpdatePipeline()
    table = servermanager.Fetch(source, idx=port)
    return {
        table.GetColumnName(c): [table.GetValue(r, c).ToDouble() for r in range(table.GetNumberOfRows())]
        for c in range(table.GetNumberOfColumns())
    }


class _Chart:
    """A rectangle of a panel in which lines are drawn: x from 0 to `steps`, y from `low` to `high`."""

    def __init__(self, panel, bottom, top, steps, low, high):
        self._panel, self._steps, self._low, self._high = panel, steps, low, high
        self._bottom, self._top = bottom, top
        pi = math.pi
        panel.line([(-pi, bottom), (pi, bottom), (pi, top), (-pi, top), (-pi, bottom)])

    def place(self, step, value):
        share = min(max((value - self._low) / (self._high - self._low), 0), 1)
        return (-math.pi + SIDE * step / self._steps, self._bottom + share * (self._top - self._bottom))

    def curve(self, steps, values, **style):
        self._panel.line([self.place(*point) for point in zip(steps, values)], **style)

    def upright(self, step):
        self._panel.line([self.place(step, self._low), self.place(step, self._high)], color=GREY, width=0.5)

    def label(self, value, text):
        """A tick at the left."""
        unit = self._panel.sheet.unit
        x, y = self.place(0, value)
        self._panel.line([(x - 0.3 * unit, y), (x, y)])
        self._panel.text(text, x - 0.6 * unit, y, horizontal=1)

    def title(self, text):
        unit = self._panel.sheet.unit
        middle = (self._bottom + self._top) / 2
        self._panel.text(text, -math.pi - 5.2 * unit, middle, horizontal=0, upright=True)


MODES = (
    ("Joint", "All heads at once", HEAD_COLORS[0]),
    ("Boosting", "Head by head", HEAD_COLORS[1]),
    ("BoostingOutputOnly", "Head by head, outputs alone", HEAD_COLORS[2]),
)


def curves(tour):
    steps = STEPS * tour.heads
    with tour.sheet("Learning jointly and head by head", axes=False, below=8, left=5.6) as sheet:
        panel, unit = sheet.panel(0, frame=False), sheet.unit
        losses = _Chart(panel, 0.6 * unit, math.pi, steps, -8, 0.5)
        shares = _Chart(panel, -math.pi, -0.6 * unit, steps, 0, 1.05)
        for chart in (losses, shares):
            for head in range(1, tour.heads):
                chart.upright(head * STEPS)
        for row, (mode, text, color) in enumerate(MODES):
            table = _numbers(_training(tour, Mode=mode, Steps=steps, CheckpointEvery=10), 1)
            logarithms = [math.log10(max(loss, 1e-9)) for loss in table["Loss"]]
            losses.curve(table["Step"], logarithms, color=color, width=1.6)
            shares.curve(table["Step"], table["Accuracy"], color=color, width=1.6)
            x, y = -math.pi, -math.pi - (3.6 + 1.5 * row) * unit
            panel.rectangle(x, y - 0.1 * unit, x + 1.4 * unit, y + 0.1 * unit, color)
            accuracy = f"{100 * table['Accuracy'][-1]:.0f} %"
            panel.text(f"{text}: {accuracy}", x + 1.8 * unit, y, horizontal=0)
        for power in range(-8, 1, 2):
            losses.label(power, "1" if power == 0 else f"1e\u2212{-power}")
        for share in SHARES:
            shares.label(share, f"{share:g}")
        losses.title("Loss")
        shares.title("Accuracy")
        for head in range(tour.heads + 1):
            x = shares.place(head * STEPS, 0)[0]
            panel.line([(x, -math.pi), (x, -math.pi - 0.3 * unit)])
            edge = 0.5 if head < tour.heads else 1
            panel.text(f"{head * STEPS}", x, -math.pi - 0.5 * unit, horizontal=edge, vertical=1)
        panel.text("Step", 0, -math.pi - 1.8 * unit, vertical=1)
        yield tour.save(sheet, "training-curves")


def _at(tour, training, step):
    """The model at a step of a training."""
    return tour.own(simple.ForceTime(Input=training, IgnorePipelineTime=1, ForcedTime=step))


def maps(tour):
    training = _training(tour, Steps=STEPS, CheckpointEvery=10)
    table = _numbers(training, 1)
    layout = {"panels": 6, "columns": 3, "axes": False}
    with tour.sheet("A transformer learns its map", **layout) as sheet:
        for column, step in enumerate((0, 100, STEPS)):
            model = _at(tour, training, step)
            torus = tour.torus(3, Input=model, Quantities=["ClassColor", "Output"])
            accuracy = table["Accuracy"][table["Step"].index(step)]
            panel = sheet.panel(column, f"Step {step}: {100 * accuracy:.0f} %")
            panel.map(torus, "ClassColor")
            panel.pairs(tour.pairs(Input=model))
            panel = sheet.panel(3 + column, frame=False)
            with Scene(sheet, VIEWPOINT) as scene:
                scene.show(drawing.deformed(tour, torus, "Whitened"), "ClassColor")
                scene.look()
                panel.picture(scene)
        yield tour.save(sheet, "training-maps")
    yield _movie(tour, training, table["Step"])


def _movie(tour, training, steps):
    """The class map and the deformed torus through the training: slower where it learns the most."""
    model = _at(tour, training, steps[-1])
    quantities = ["ClassColor", "Output"]
    torus = tour.filter("AttentionTorus", Input=model, Resolution=[241, 241], Quantities=quantities)
    surface = drawing.deformed(tour, torus, "Whitened")  # so that its size stays about the same
    surface.UpdatePipeline()
    size = max(map(abs, surface.GetDataInformation().GetBounds()))
    width = min(tour.width, 960) // 2 * 2
    with Sheet(f"Step {STEPS}", width=width, panels=2, columns=2, axes=False) as sheet:
        maps, bent = sheet.panel(0, "Class map"), sheet.panel(1, "Output, whitened", frame=False)
        maps.map(torus, "ClassColor")
        maps.pairs(tour.pairs(Input=model))
        bent.solid(surface, "ClassColor", 0.95 * math.pi / size, VIEWPOINT)
        path = tour.folder / f"{tour.name}-training.ogv"
        with sheet.movie(path, drawing.RATE) as movie:
            for frame in range(drawing.FRAMES):
                share = (frame / max(drawing.FRAMES - 1, 1)) ** 2.5
                step = steps[round(share * (len(steps) - 1))]
                model.ForcedTime = step
                sheet.rewrite(f"Step {step:.0f}")
                movie.add_frame()
    return path


def simplexes(tour):
    if tour.heads < 3:
        raise Missing(f"a simplex has three heads, {tour.name} has {tour.heads}")
    layout = {"panels": 2 * SEEDS, "columns": SEEDS, "axes": False, "bar": True, "below": 2}
    with tour.sheet("Heads that share the work", **layout) as sheet:
        for row, weight in enumerate((0, SPECIALIZATION)):
            for seed in range(SEEDS):
                training = _training(
                    tour, Steps=STEPS, CheckpointEvery=STEPS, Seed=seed, Specialization=weight, Runs=1
                )
                union = _numbers(training, 2)["Union"][0]
                last = _at(tour, training, STEPS)
                triangle = tour.filter("HeadAccuracySimplex", Input=last, Resolution=256)
                panel = sheet.panel(
                    row * SEEDS + seed, f"\u03bb {weight:g}: any {100 * union:.0f} %", frame=False
                )
                drawing.draw_simplex(panel, triangle, "Accuracy")
        labels = [(share, f"{share:.1f}") for share in SHARES]
        sheet.ramp(drawing.color_stripes(ORANGES), "Accuracy", labels)
        yield tour.save(sheet, "training-simplexes")


FIGURES = {
    "training-curves": Figure(
        "Learning jointly and head by head",
        "Loss and accuracy of a transformer of the same size that learns the same task from the beginning: "
        "all heads at once, one head after the other with what was learned frozen (grey lines), and the same "
        "with queries, keys and values as they began, as in the published experiment.",
        curves,
    ),
    "training-maps": Figure(
        "A transformer learns its map",
        "The map of predicted next tokens and, below, the torus at the outputs of the attention layer in the "
        "same colours, step by step, and as a movie: the borders move until each disc lies in its colour.",
        maps,
    ),
    "training-simplexes": Figure(
        "Heads that share the work",
        "Accuracy of mixtures of three heads without residual, for four trainings each: trained as usual "
        "(above) and with a penalty of weight \u03bb under which each pair asks for one head that predicts it "
        "alone (below); any: the share of pairs that at least one head has right by itself.",
        simplexes,
    ),
}
