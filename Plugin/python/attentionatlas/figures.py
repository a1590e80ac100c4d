"""The figures of a small attention-only transformer, each by its name: what the tour shows.

Each has a title, one sentence that says what to see, and a function that draws it on sheets. What a
model or this plugin has nothing for, a figure says with Missing. attentionatlas.tour renders them; here,
render and the command line are the same.
"""

import math
import sys

from paraview import servermanager, simple

from attentionatlas import drawing, learning
from attentionatlas.drawing import (
    BLUES,
    COLUMNS,
    HEAD_COLORS,
    ORANGES,
    REDS,
    SHARES,
    VIEWPOINT,
    Figure,
    Missing,
    color_scale,
    color_stripes,
    deformed,
    draw_simplex,
    nice_step,
    table_columns,
)
from attentionatlas.sheet import BLACK, GREY, SIDE, WHITE, Scene, Sheet


def class_map(tour):
    pairs = tour.pairs()
    accuracy = tour.accuracy(pairs)
    title = "Predicted next token"
    if accuracy is not None:
        title += f" (accuracy {100 * accuracy:.3g} %)"
    with tour.sheet(title, bar=True, titles=False) as sheet:
        panel = sheet.panel(0)
        panel.map(tour.torus(Quantities=["ClassColor"]), "ClassColor")
        panel.pairs(pairs)
        sheet.color_bar(simple.GetColorTransferFunction("TargetColor"), "Next token")
        yield tour.save(sheet, "class-map")


def _rows(heads):
    """The heads, at most COLUMNS at a time."""
    return [range(first, min(first + COLUMNS, heads)) for first in range(0, heads, COLUMNS)]


def _part(name, heads, count):
    """The name of a sheet: with the first of its heads, if one sheet does not show them all."""
    return name if len(heads) == count else f"{name}-heads-{heads[0]}-{heads[-1]}"


def attention(tour):
    scores = tour.scores()
    for heads in _rows(tour.heads):
        columns = len(heads)
        title = "Attention of token 2 to token 1" if columns > 1 else "Attention to token 1"
        with tour.sheet(title, panels=2 * columns, columns=columns, bar=True) as sheet:
            for row, pattern in enumerate(("Softmax", "Hardmax")):
                torus = tour.torus(columns, Pattern=pattern, Quantities=["Attention"])
                for column, head in enumerate(heads):
                    panel = sheet.panel(row * columns + column, f"Head {head}, {pattern[:4].lower()}")
                    array = f"Attention {head}"
                    table = color_scale(array, [WHITE, BLACK], 0, 1)
                    panel.map(torus, array)
                    panel.level(scores, f"Score {head}")
            sheet.color_bar(table, "Attention", SHARES)
            yield tour.save(sheet, _part("attention", heads, tour.heads))


def mixes(tour):
    parts = (("Word Mix", "Words"), ("Position Mix", "Positions"), ("Mix", "Both"))
    scores = tour.scores()
    for head in range(tour.heads):
        with tour.sheet(f"What head {head} mixes", panels=6, columns=3) as sheet:
            arrays = [f"{part} {head}" for part, _ in parts]
            for row, pattern in enumerate(("Softmax", "Hardmax")):
                torus = tour.torus(3, Pattern=pattern, Quantities=arrays)
                colors = tour.filter("SummableColors", Input=torus, Vectors=arrays, Scale="SharedRange")
                for column, (array, (_, name)) in enumerate(zip(arrays, parts)):
                    panel = sheet.panel(3 * row + column, f"{name}, {pattern[:4].lower()}")
                    panel.map(colors, f"{array} Color")
                    panel.level(scores, f"Score {head}", color=BLACK, width=0.8)
            yield tour.save(sheet, f"mixes-head-{head}")


def outputs(tour):
    heads = [f"Head Output {head}" for head in range(tour.heads)]
    torus = tour.torus(3, Quantities=["Head Output", "Output"])
    total = tour.filter(
        "Calculator", Input=torus, ResultArrayName="Sum", Function="+".join(f'"{head}"' for head in heads)
    )
    panels = [(head, f"Head {number}") for number, head in enumerate(heads)]
    panels += [("Sum", "Sum of heads"), ("Output", "With residual")]
    for scale, name in (("Additive", "outputs"), ("SharedRange", "outputs-shared-range")):
        arrays = [array for array, _ in panels]
        colors = tour.filter("SummableColors", Input=total, Vectors=arrays, Scale=scale)
        title = {"Additive": "Head outputs: colors add up"}.get(scale, "Head outputs on one scale")
        with tour.sheet(title, panels=len(panels), columns=COLUMNS) as sheet:
            for number, (array, text) in enumerate(panels):
                sheet.panel(number, text).map(colors, f"{array} Color")
            yield tour.save(sheet, name)


#: A round ball.
FINE = {"ThetaResolution": 180, "PhiResolution": 90}


def _sphere(tour, scene, pale=False):
    """Shows the cells of the unembedding, the lines between them and their centres; or a ball if the
    plugin has none. pale: for what is drawn on them to stand out."""
    try:
        sphere = tour.filter("UnembeddingSphere")
    except Missing:
        scene.show(scene.own(simple.Sphere(Radius=0.99, **FINE)), color=[0.93, 0.93, 0.93])
        return
    sphere.UpdatePipeline()
    scene.show(sphere, "ClassColor", association="CELLS", Opacity=0.3 if pale else 1)
    if pale:
        scene.show(scene.own(simple.Sphere(Radius=0.985, **FINE)), color=WHITE)
    scene.tubes(simple.OutputPort(sphere, 2), radius=0.006)
    scene.balls(simple.OutputPort(sphere, 1), WHITE, 0.05)


def _angle_lines(tour, number):
    """Lines of the torus along which one angle, 0 or 1, stays the same, with the output of the model."""
    lines = []
    for step in range(24):
        value = -math.pi + 2 * math.pi * step / 24
        ends = [[value, -math.pi, 0], [value, math.pi, 0]]
        if number == 1:
            ends = [[y, x, 0] for x, y, _ in ends]
        line = simple.Line(Point1=ends[0], Point2=ends[1], Resolution=720)
        lines.append(tour.own(line))
    together = tour.own(simple.AppendGeometry(Input=lines))
    return tour.filter("AttentionTorus", Points=together, Quantities=["Output"])


def deformed_torus(tour):
    torus = tour.filter("AttentionTorus", Resolution=[401, 401], Quantities=["Output"])
    hues = (("Theta1", "\u03b8\u2081", REDS), ("Theta2", "\u03b8\u2082", BLUES))
    labels = [(0, "\u2212\u03c0"), (0.5, "0"), (1, "\u03c0")]
    layout = {"panels": 6, "columns": 3, "axes": False, "bar": True}
    with tour.sheet("Output as a deformed torus", **layout) as sheet:
        for row, (array, symbol, colors) in enumerate(hues):
            color_scale(array, colors, -math.pi, math.pi)
            for column, normalization in enumerate(("None", "Whitened")):
                surface = deformed(tour, torus, normalization)
                panel = sheet.panel(row * 3 + column, ("Raw", "Whitened")[column], frame=False)
                with Scene(sheet, VIEWPOINT) as scene:
                    scene.show(surface, array, Opacity=0.75, InterpolateScalarsBeforeMapping=0)
                    scene.look()
                    panel.picture(scene)
            panel = sheet.panel(row * 3 + 2, "Unit sphere", frame=False)
            with Scene(sheet, VIEWPOINT) as scene:
                _sphere(tour, scene, pale=True)
                lines = deformed(tour, _angle_lines(tour, row), "UnitSphere")
                scene.tubes(lines, array=array, radius=0.012, InterpolateScalarsBeforeMapping=0)
                scene.look()
                panel.picture(scene)
            sheet.ramp(color_stripes(colors), symbol, labels, row)
        yield tour.save(sheet, "deformed-torus")


def unembedding_sphere(tour):
    tour.filter("UnembeddingSphere")  # without its cells there is nothing to see
    pairs = deformed(tour, tour.pairs(), "UnitSphere")
    away = tuple(-c for c in VIEWPOINT)
    layout = {"panels": 2, "columns": 2, "axes": False, "bar": True}
    with tour.sheet("Unembedding on the sphere", **layout) as sheet:
        for number, (title, direction) in enumerate((("One side", VIEWPOINT), ("The other", away))):
            panel = sheet.panel(number, title, frame=False)
            with Scene(sheet, direction) as scene:
                _sphere(tour, scene)
                scene.balls(pairs, BLACK, 0.032)
                scene.look()
                panel.picture(scene)
        sheet.color_bar(simple.GetColorTransferFunction("ClassColor"), "Next token")
        yield tour.save(sheet, "unembedding-sphere")


def simplex(tour):
    if tour.heads < 3:
        raise Missing(f"a simplex has three heads, {tour.name} has {tour.heads}")
    triangle = tour.filter("HeadAccuracySimplex", Resolution=256, Pair=[0, 0])
    triangle.UpdatePipeline()
    data = triangle.PointData
    found = [k for k in range(tour.tokens) if data.GetArray(f"Accuracy Target {k}") is not None]
    if not found:
        raise Missing(f"{tour.name} has no next_token")
    panels = [("Accuracy", "All pairs"), (f"Accuracy Target {found[0]}", f"Target {found[0]}")]
    panels += [("Correct Pair", "Pair (0, 0)")]
    yield _simplices(tour, triangle, "Accuracy of mixed heads", panels, "simplex")
    for first in range(0, len(found), 9):
        panels = [(f"Accuracy Target {k}", f"Target {k}") for k in found[first : first + 9]]
        name = "simplex-targets" if first == 0 else f"simplex-targets-from-{found[first]}"
        yield _simplices(tour, triangle, "Accuracy by true next token", panels, name)


def _simplices(tour, triangle, title, panels, name):
    layout = {"panels": len(panels), "columns": COLUMNS, "axes": False, "bar": True, "below": 2}
    with tour.sheet(title, **layout) as sheet:
        for number, (array, text) in enumerate(panels):
            draw_simplex(sheet.panel(number, text, frame=False), triangle, array)
        sheet.ramp(color_stripes(ORANGES), "Accuracy", [(share, f"{share:.1f}") for share in SHARES])
        return tour.save(sheet, name)


def _coefficients(tour):
    """The names of the harmonics, and for each head its coefficients."""
    columns = table_columns(tour.filter("AttentionHarmonics"))
    heads = [[float(value) for value in columns[f"Head {head}"]] for head in range(tour.heads)]
    return columns["Harmonic"], heads


def harmonics(tour):
    names, heads = _coefficients(tour)
    for first in range(0, tour.heads, len(HEAD_COLORS)):
        part = heads[first : first + len(HEAD_COLORS)]
        yield _bars(tour, names, part, first, "harmonics" if first == 0 else f"harmonics-from-{first}")


def _bars(tour, names, heads, first, page):
    """Draws the coefficients of some heads, of which `first` is the first, as bars."""
    largest = max(abs(value) for head in heads for value in head) or 1
    title = "Harmonics of each head's score"
    with tour.sheet(title, axes=False, bar=False, below=7.4, left=3.9) as sheet:
        panel, unit = sheet.panel(0), sheet.unit
        height = 0.95 * math.pi / largest
        slot = SIDE / len(names)
        bar = 0.8 * slot / len(heads)
        step = nice_step(largest)
        for tick in range(-int(largest / step), int(largest / step) + 1):
            y = tick * step * height
            end = math.pi if tick == 0 else -math.pi - 0.3 * unit
            panel.line([(-math.pi, y), (end, y)])
            label = f"{tick * step:g}".replace("-", "\u2212")
            panel.text(label, -math.pi - 0.6 * unit, y, horizontal=1)
        panel.text("Coefficient", -math.pi - 3.4 * unit, 0, horizontal=0, upright=True)
        for number, name in enumerate(names):
            left = -math.pi + (number + 0.1) * slot
            text = name.replace("t1", "\u03b8\u2081").replace("t2", "\u03b8\u2082").replace("-", "\u2212")
            panel.text(text, left + 0.4 * slot, -math.pi - 0.4 * unit, vertical=1, upright=True)
            for head, values in enumerate(heads):
                ends = sorted((0, values[number] * height))
                color = HEAD_COLORS[head]
                panel.rectangle(left + head * bar, ends[0], left + (head + 1) * bar, ends[1], color)
        x = -math.pi
        for head in range(len(heads)):
            text, y = f"Head {first + head}", math.pi + 0.5 * unit
            panel.rectangle(x, y, x + 0.8 * unit, y + 0.8 * unit, HEAD_COLORS[head])
            panel.text(text, x + 1.1 * unit, y, horizontal=0, vertical=0)
            x += 1.9 * unit + sheet.text_width(text)
        return tour.save(sheet, page)


def _turned(coefficients, angle):
    """Coefficients on a closed walk through the free parameters: the phase of each harmonic turns, as
    often as no other's but that of the one it is tied to."""
    turned = list(coefficients)
    turned[0] *= math.cos(angle)
    for first, turns in ((1, 1), (3, 2), (5, -1), (7, -1), (9, 3)):
        a, b = coefficients[first : first + 2]
        c, s = math.cos(turns * angle), math.sin(turns * angle)
        turned[first : first + 2] = [a * c - b * s, a * s + b * c]
    return turned


def frontier_motion(tour):
    _, heads = _coefficients(tour)
    start = heads[-1]
    title = f"Frontier of head {tour.heads - 1} as its phases turn"
    color_scale("Attention", [WHITE, BLACK], 0, 1)
    with tour.sheet(title, panels=6, columns=COLUMNS, bar=True) as sheet:
        for number in range(6):
            angle = 2 * math.pi * number / 6
            size = max(64, tour.width // COLUMNS)
            pattern = tour.filter("HarmonicAttention", Resolution=[size, size])
            pattern.Coefficients = _turned(start, angle)
            level = tour.filter("HarmonicAttention", Resolution=[241, 241])
            level.Coefficients = pattern.Coefficients
            panel = sheet.panel(number, f"{60 * number}\u00b0")
            panel.map(pattern, "Attention")
            panel.level(level, "Score")
        sheet.color_bar(simple.GetColorTransferFunction("Attention"), "Attention", SHARES)
        yield tour.save(sheet, "frontier-motion")
    yield from _movie(tour, heads)


def _movie(tour, heads):
    """The first heads at once, their phases turning once: a movie of five seconds."""
    heads = heads[:COLUMNS]
    layout = {"panels": len(heads), "columns": COLUMNS}
    with Sheet("Frontiers in motion", width=min(tour.width, 960) // 2 * 2, **layout) as sheet:
        patterns = []
        for number in range(len(heads)):
            pattern = tour.filter("HarmonicAttention", Resolution=[241, 241])
            panel = sheet.panel(number, f"Head {number}")
            panel.map(pattern, "Attention")
            panel.level(pattern, "Score")
            patterns.append(pattern)
        path = tour.folder / f"{tour.name}-frontier-motion.ogv"
        with sheet.movie(path, drawing.RATE) as movie:
            for frame in range(drawing.FRAMES):
                for pattern, start in zip(patterns, heads):
                    pattern.Coefficients = _turned(start, 2 * math.pi * frame / drawing.FRAMES)
                movie.add_frame()
        yield path


def _name_angles(panel, scene, tokens):
    """Writes angles outside of the circle seen along (1, 1, 1), and the tokens inside of it."""
    u, v = [c / math.sqrt(2) for c in (1, 0, -1)], [c / math.sqrt(6) for c in (-1, 2, -1)]
    angles = ((0, "0"), (0.5, "\u03c0/2"), (1, "\u03c0"), (-0.5, "\u2212\u03c0/2"))
    for turn, text in angles:
        c, s = math.cos(turn * math.pi), math.sin(turn * math.pi)
        ends = ([math.sqrt(3) * r * (c * a + s * b) for a, b in zip(u, v)] for r in (1, 1.05))
        panel.line([scene.project(end) for end in ends])
        x, y = scene.project([math.sqrt(3) * 1.08 * (c * a + s * b) for a, b in zip(u, v)])
        panel.text(text, x, y, horizontal=(1 - c) / 2, vertical=(1 - s) / 2)
    arrays = tokens.GetPointData()
    for point in range(tokens.GetNumberOfPoints()):
        if arrays.GetArray("Normalized").GetTuple1(point) == 1:
            x, y = (0.88 * c for c in scene.project(tokens.GetPoint(point)))
            panel.text(f"{arrays.GetArray('Token').GetTuple1(point):g}", x, y)


def layer_norm(tour):
    circle = tour.filter("EmbeddingCircle")
    circle.UpdatePipeline()
    tokens = servermanager.Fetch(circle)
    raw, on_circle = (
        tour.own(
            simple.Threshold(
                Input=circle, Scalars=["POINTS", "Normalized"], LowerThreshold=v, UpperThreshold=v
            )
        )
        for v in (0, 1)
    )
    plane = tour.own(
        simple.PassArrays(Input=simple.OutputPort(circle, 1), PointDataArrays=[], CellDataArrays=[])
    )
    views = (("In space", (1, -0.45, 0.55), (0, 0, 1)), ("Along (1, 1, 1)", (1, 1, 1), (-1, 2, -1)))
    layout = {"panels": 2, "columns": 2, "axes": False}
    with tour.sheet("Layer normalization puts words on a circle", **layout) as sheet:
        for number, (title, direction, up) in enumerate(views):
            panel = sheet.panel(number, title, frame=False)
            with Scene(sheet, direction, up) as scene:
                scene.show(plane, color=[0.35, 0.75, 0.85], Opacity=0.3)
                scene.tubes(plane, HEAD_COLORS[0], 0.02)
                scene.tubes(circle, GREY, 0.012)
                scene.balls(raw, BLACK, 0.05)
                scene.balls(on_circle, radius=0.07, array="ClassColor")
                scene.look(1.02)
                panel.picture(scene)
                if number == 1:
                    _name_angles(panel, scene, tokens)
        yield tour.save(sheet, "layer-norm")


def heads_alone(tour):
    heads = [[1 if h == head else 0 for h in range(tour.heads)] for head in range(tour.heads)]
    names = [f"Head {head}" for head in range(tour.heads)]
    panels = [*zip(names, heads, ["None"] * tour.heads), ("All", [], "EmbeddingPosition")]
    columns = 2 if len(panels) < 5 else COLUMNS
    with tour.sheet("Next token by each head alone", panels=len(panels), columns=columns, bar=True) as sheet:
        for number, (name, weights, residual) in enumerate(panels):
            options = {"HeadWeights": weights, "Residual": residual}
            pairs = tour.pairs(**options)
            accuracy = tour.accuracy(pairs)
            panel = sheet.panel(number, name if accuracy is None else f"{name}: {100 * accuracy:.0f} %")
            panel.map(tour.torus(columns, Quantities=["ClassColor"], **options), "ClassColor")
            panel.pairs(pairs)
        sheet.color_bar(simple.GetColorTransferFunction("TargetColor"), "Next token")
        yield tour.save(sheet, "heads-alone")


FIGURES = {
    "layer-norm": Figure(
        "Layer normalization as geometry",
        "Word embeddings (black) move along the grey lines to the plane orthogonal to (1, 1, 1) and there "
        "to the circle of radius \u221a3, where a word is an angle; the numbers inside of the circle name the tokens.",
        layer_norm,
    ),
    "class-map": Figure(
        "The transformer as a map of the torus",
        "The colour of each point is the next token that the transformer predicts for that pair of word "
        "embeddings, paler where it is less sure; the discs are the pairs of the vocabulary in the colour "
        "of their true next token.",
        class_map,
    ),
    "attention": Figure(
        "Attention pattern of each head",
        "How much token 2 attends to token 1, from white (not at all) to black (to it alone), by softmax "
        "above and hardmax below; the line is the frontier, where the score of the head is zero.",
        attention,
    ),
    "frontier-motion": Figure(
        "The frontier in motion",
        "As the phases of its harmonics turn, the frontier of a head, the zero line of its score, takes "
        "many shapes: six of the last head in print, and a movie of the first three heads; at the angle 0 it is "
        "the frontier of the model. The walk keeps the ties of the harmonics, not those that a head of "
        "dimension 1 or 2 has beyond them.",
        frontier_motion,
    ),
    "mixes": Figure(
        "What each head mixes: words, positions, and both",
        "The vectors that the attention mixes as colours (their three components are red, green and blue, "
        "on one scale): the word part, the position part and their sum, by softmax above and hardmax "
        "below; the edges are those of the attention pattern, whose frontier is the black line.",
        mixes,
    ),
    "outputs": Figure(
        "What the heads write, and their sum",
        "The output of each head as colours, their sum, and the sum with the residual: first on a scale "
        "under which colours add up as the vectors do (dark is negative), then over their common range; "
        "the edges of the sum are the edges of the heads.",
        outputs,
    ),
    "deformed-torus": Figure(
        "The attention layer as a deformed torus",
        "The torus at the outputs of the attention layer: as they are, whitened, and pushed to the unit "
        "sphere with the borders of the unembedding; darker with the first angle in red, with the second in "
        "blue.",
        deformed_torus,
    ),
    "unembedding-sphere": Figure(
        "The unembedding as cells of the sphere",
        "Each direction of the output predicts the token whose cell it lies in; white balls are the "
        "normalized rows of the unembedding, black ones the normalized outputs at the token pairs, which "
        "are no grid any more.",
        unembedding_sphere,
    ),
    "heads-alone": Figure(
        "Each head alone",
        "The class map of each head by itself, without the residual, beside that of all heads, with the "
        "share of token pairs predicted right: the accuracies of the heads do not add up to the whole.",
        heads_alone,
    ),
    "simplex": Figure(
        "Accuracy of mixtures of three heads",
        "The heads at the corners, their mixtures between them: the accuracy over all token pairs, which is "
        "the model's own at the cross in the centre (without its residual), over the pairs of one true next "
        "token, and whether one pair is right.",
        simplex,
    ),
    "harmonics": Figure(
        "The scores as trigonometric polynomials",
        "The score of a head before softmax has just these eleven harmonics of the two angles, two of "
        "which are tied to others: their coefficients, head by head.",
        harmonics,
    ),
}


FIGURES.update(learning.FIGURES)


def render(*arguments, **options):
    """Renders figures: attentionatlas.tour.render."""
    from attentionatlas import tour

    return tour.render(*arguments, **options)


if __name__ == "__main__":
    from attentionatlas import tour

    sys.exit(tour.main())
