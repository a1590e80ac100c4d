"""Figures of where heads look and what they write: their numbers are those of the oracle."""

import atlastest
import figuretest
import numpy
from attentionatlas import Missing, Recording, focus
from figuretest import OracleFigures
from matplotlib.patches import Rectangle

CONFIG = atlastest.TRANSFORMERS / "bloom" / "config.json"
EXPECTED, _ = atlastest.read_safetensors(atlastest.ORACLE.parent / "analysis" / "bloom.focus.safetensors")
#: What the figures show: layer 1, head 2 of sequence 1.
LAYER, HEAD, SEQUENCE = 1, 2, 1
PLACE = {"layer": LAYER, "head": HEAD, "sequence": SEQUENCE}


def expected(name, *place):
    """An array of the oracle, or a part of it."""
    return EXPECTED[name][place]


class FocusFigures(OracleFigures):
    NAME = "bloom"

    def test_files(self):
        """The letters of all of them are text; on a page and in a column none meets another."""
        folder = atlastest.OUTPUT / "figures"
        with self.opened() as recording:
            written = {}
            for name, figure in focus.FIGURES.items():
                arguments = {key: PLACE[key] for key in figure.arguments if key in PLACE}
                for width in (89, 180):
                    drawn = figure.draw(recording, width_mm=width, dpi=100, **arguments)
                    self.assertEqual(figuretest.overlaps(drawn), [], f"{name} at {width} mm")
                written[name] = focus.Output("pdf").write(drawn, atlastest.OUTPUT, f"bloom-{name}")

        def render(output=None, only=None):
            return focus.render_named(self.path, folder, output=output, model=CONFIG, only=only, **PLACE)

        with figuretest.unwritten(focus):
            expected = render()
        self.assertEqual(list(expected), list(focus.FIGURES))
        figuretest.check_files(self, focus, written, expected, render)

    def test_frames(self):
        """Figure 1: a frame around the strongest key of each query."""
        with self.opened() as recording:
            axes = focus.scores(recording, dpi=60, **PLACE).axes[0]
        frames = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        keys = [round(frame.get_x() + frame.get_width() / 2) for frame in frames]
        self.assertEqual(keys, expected("focus.top", LAYER, SEQUENCE, HEAD).tolist())
        colors = [frame.get_edgecolor()[:3] for frame in frames]
        self.assertEqual(len(set(colors)), len({0 if k == i else 1 if k == 0 else 2 for i, k in enumerate(keys)}))

    def test_breakdown(self):
        """Figure 2: the parts of the k-th largest score; none where there are fewer keys."""
        with self.opened() as recording:
            panels = focus.breakdown(recording, dpi=60, ranks=3, **PLACE).axes
        self.assertEqual(len(panels), 3)
        for rank, axes in enumerate(panels):
            lines = {line.get_label(): line for line in axes.lines}
            for label, name in (("ALiBi", "alibi"), ("Bias", "bias"), ("Attention", "attention"), ("Score", "score")):
                values = expected(f"breakdown.sorted.{name}", LAYER, SEQUENCE, HEAD)[rank:, rank]
                self.assert_close(lines[label].get_ydata(), values)
                self.assertEqual(lines[label].get_xdata().tolist(), list(range(rank, 16)))

    def test_key_parts(self):
        """Figure 3."""
        with self.opened() as recording:
            axes = focus.key_parts(recording, dpi=60, **PLACE).axes[0]
        self.assert_close(axes.lines[0].get_ydata(), expected("figure3.alibi", HEAD))
        self.assert_close(axes.lines[1].get_ydata(), expected("figure3.bias", LAYER, SEQUENCE, HEAD))

    def test_parts_that_the_model_has(self):
        path = figuretest.record_oracle("llama", atlastest.OUTPUT / "llama.safetensors")
        with Recording.opened(path, model=atlastest.TRANSFORMERS / "llama" / "config.json") as recording:
            lines = focus.breakdown(recording, dpi=60, ranks=1).axes[0].lines
            self.assertEqual([line.get_label() for line in lines], ["Attention", "Score"])
            with self.assertRaisesRegex(Missing, "neither ALiBi nor a bias of queries"):
                focus.key_parts(recording)

    def test_points_of_heads(self):
        """Figures 4 to 6, and the numbers of the heads."""
        with self.opened() as recording:
            for number, measure in enumerate(("StrongestIsSelf", "StrongestIsFirst", "Concentration"), 4):
                for excludes in (False, True):
                    axes = focus.heads_by_layer(recording, measure=measure, exclude_first=excludes, dpi=60).axes[0]
                    name = f"figure{number}" + (".excluding_first" if excludes else "")
                    self.assertEqual(len(axes.lines), 0)  # the heads of two layers have nothing in common
                    layers, values = axes.collections[0].get_offsets().T
                    for layer in (0, 1):
                        self.assert_close(values[layers == layer], expected(f"{name}.sorted", layer))
                    for layer in (0, 1):
                        texts = [text.get_text() for text in axes.texts if text.xy[0] == layer]
                        heads = [int(head) for text in texts for head in text.split()]
                        self.assertEqual(heads, expected(f"{name}.sorted_heads", layer).tolist())

    def test_crowded_heads_are_counted(self):
        """Many heads at one place: as many numbers as fit, then how many are left."""
        from attentionatlas._internal.charts import Page

        figure, (axes,) = Page(180, 60).panels(1, square=False)
        focus._label_heads(axes, 0, [(0.5, head) for head in range(12)], 8)
        self.assertEqual([text.get_text() for text in axes.texts], ["0 1 2 +9"])
        focus._label_heads(axes, 0, [(0.5, head) for head in range(12, 24)], 2)
        self.assertEqual(axes.texts[-1].get_text(), "+12")
        # Of points that are near, the numbers are between them.
        focus._label_heads(axes, 0, [(0.8, 3), (0.79, 5), (0.6, 1)], 8)
        self.assertEqual([text.get_text() for text in axes.texts[-2:]], ["3 5", "1"])
        numpy.testing.assert_allclose([text.xy[1] for text in axes.texts[-2:]], [0.795, 0.6])

    def test_histograms(self):
        """Figures 7 and 8."""
        with self.opened() as recording:
            for draw, name in ((focus.magnitudes, "magnitude"), (focus.orientations, "orientation")):
                figure = draw(recording, dpi=60)
                for layer, axes in enumerate(figure.axes[:2]):
                    counts = expected(f"histogram.{name}", layer)
                    numpy.testing.assert_array_equal(axes.images[0].get_array(), counts)

    def test_scatter(self):
        """Figures 9 and 10: points of all heads and tokens, and means by position."""
        with self.opened() as recording:
            points = focus.orientation_and_magnitude(recording, dpi=60).axes[0].collections[0].get_offsets()
            axes = focus.position_and_magnitude(recording, dpi=60).axes[0]
        found = numpy.sort(numpy.asarray(points), axis=0)
        for column, name in enumerate(("orientation", "magnitude")):
            self.assert_close(found[:, column], numpy.sort(expected(f"update.{name}").ravel()))
        self.assertEqual(len(axes.collections[0].get_offsets()), len(points))
        self.assert_close([line.get_ydata() for line in axes.lines], expected("figure10.mean"))

    def test_norm_weighted(self):
        with self.opened() as recording:
            axes = focus.heads_by_layer(recording, quantity="NormWeighted", dpi=60).axes[0]
        self.assertIn("norm-weighted", axes.get_title(loc="left"))

    def test_what_is_missing_is_left_out(self):
        reasons = []
        with figuretest.unwritten(focus):
            named = focus.render_named(atlastest.RECORDING, atlastest.OUTPUT / "less", reasons=reasons)
        self.assertEqual(list(named), ["focus-scores", "focus-self", "focus-first", "focus-concentration"])
        self.assertEqual(len(reasons), 2)
        with self.assertRaisesRegex(Missing, "this needs the model that was recorded"):
            focus.breakdown(self.path)

    def test_bad_input(self):
        gpt2 = atlastest.TRANSFORMERS / "gpt2" / "config.json"
        with self.opened() as recording:
            self.assert_raise(
                (lambda: focus.render("none.npy", atlastest.OUTPUT), "none.npy: no such file", FileNotFoundError),
                (lambda: focus.breakdown(self.path, model="none.json"), "none.json: no such file", FileNotFoundError),
                (lambda: focus.scores(recording, layer=7), "layer: expected one of 0 to 1, found 7"),
                (lambda: focus.breakdown(recording, head=4), "head: expected 0 to 3, found 4"),
                (lambda: focus.heads_by_layer(recording, measure="Size"), "measure: expected .* found 'Size'"),
                (lambda: focus.heads_by_layer(recording, quantity="Scores"), "quantity: expected .* found 'Scores'"),
                (lambda: focus.breakdown(self.path, model=gpt2), "Score Breakdown needs the model that was recorded"),
            )
