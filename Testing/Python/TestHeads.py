"""Figures of a recording: their colors are those of its attention, and bad input is named."""

import json

import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import focus, heads
from attentionatlas._internal import style
from attentionatlas.output import save
from figuretest import overlaps, pixel_colors, unwritten, without_layout
from randomrecording import write_text

LAYER, HEAD = 4, 11


class Heads(AtlasTest):
    def test_figures(self):
        """TestTour.test_recording has their files."""
        folder = atlastest.OUTPUT / "figures"
        with unwritten(heads):
            written = heads.render(atlastest.RECORDING, folder, layer=LAYER, head=HEAD)
        names = [name.removeprefix(atlastest.RECORDING.stem + "-") for name in written]
        self.assertEqual(names, ["scores", "weights", "sentence", "layer", "all-heads", "head-scores"])
        (path,) = heads.render_named(atlastest.RECORDING, folder, output=heads.Output(width=400), only=["weights"]).values()
        self.assertEqual(atlastest.read_picture(path).shape[1], 400)

    def colors(self, figure, axes, rows, columns):
        """The colours of the cells of a matrix in the file of a figure."""
        path = save(figure, atlastest.OUTPUT / "cells.png", dpi=100)
        places = [(column, row) for row in range(rows) for column in range(columns)]
        return pixel_colors(figure, axes, path, places).reshape(rows, columns, 3)

    def test_colors_of_weights(self):
        figure = heads.weights(atlastest.RECORDING, LAYER, HEAD, dpi=60)
        tensors, _ = atlastest.read_safetensors(atlastest.RECORDING)
        expected = tensors["attention"][LAYER, HEAD]
        found = self.colors(figure, figure.axes[0], *expected.shape)
        numpy.testing.assert_allclose(found, 255 * style.WEIGHTS(expected)[..., :3], atol=3)
        labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        self.assertEqual(labels, ["Data", "visualization", "em", "powers", "users", "to"])

    @without_layout()
    def test_scores_give_the_weights(self):
        """What is shown before the softmax, in the softmax, is what is shown after it."""
        image = heads.scores(atlastest.RECORDING, LAYER, HEAD, dpi=60).axes[0].images[0]
        scores = image.get_array()
        self.assertTrue((scores.mask == numpy.triu(numpy.ones((6, 6)), 1)).all(), "grey where masked")
        odds = numpy.exp(scores - scores.max(axis=1, keepdims=True)).filled(0)
        tensors, _ = atlastest.read_safetensors(atlastest.RECORDING)
        weights = odds / odds.sum(axis=1, keepdims=True)
        numpy.testing.assert_allclose(weights, tensors["attention"][LAYER, HEAD], atol=2e-3)

    def test_all_heads(self):
        figure = heads.all_heads(atlastest.RECORDING, dpi=60)
        axes = figure.axes[0]
        path = save(figure, atlastest.OUTPUT / "all.png", dpi=200)
        tensors, _ = atlastest.read_safetensors(atlastest.RECORDING)
        layers, columns, tokens, _ = tensors["attention"].shape
        ticks = [axes.get_xticks(), axes.get_yticks()]
        side = ticks[0][1] - ticks[0][0]
        cell = side / (tokens + 2 * tokens / 24)
        places, expected = [], []
        for (layer, head, query, key), weight in numpy.ndenumerate(tensors["attention"]):
            middle = (tokens - 1) / 2
            places.append((ticks[0][head] + (key - middle) * cell, ticks[1][layer] + (query - middle) * cell))
            expected.append(style.WEIGHTS(weight)[:3])
        found = pixel_colors(figure, axes, path, places)
        self.assertLess(numpy.abs(found - 255 * numpy.array(expected)).max(), 4)

    def test_endings_of_names_may_be_capitals(self):
        path = save(heads.weights(atlastest.RECORDING, LAYER, HEAD, dpi=60), atlastest.OUTPUT / "weights.SVG")
        self.assertIn("@font-face", path.read_text(encoding="utf-8"), "letters are embedded")

    @without_layout()
    def test_rows_have_the_numbers_of_the_recorded_layers(self):
        path = atlastest.OUTPUT / "later.safetensors"
        write_text(path, ["a", "b", "c"])
        tensors, metadata = atlastest.read_safetensors(path)
        later = {name.replace("layers.0.", f"layers.{layer}."): values for layer in (3, 7) for name, values in tensors.items()}
        scales = {str(layer): json.loads(metadata["score_scales"])["0"] for layer in (3, 7)}
        atlastest.write_safetensors(path, later, {**metadata, "layer_count": "9", "score_scales": json.dumps(scales)})
        for draw in (heads.all_heads, heads.head_scores):
            labels = [label.get_text() for label in draw(path, dpi=60).axes[0].get_yticklabels()]
            self.assertEqual(labels, ["3", "7"])

    @without_layout()
    def test_means_and_rollout(self):
        tensors, _ = atlastest.read_safetensors(atlastest.RECORDING)
        attention = tensors["attention"].astype(float)
        figure = heads.weights(atlastest.RECORDING, LAYER, "mean", dpi=60)
        self.assertIn("mean of all heads", figure.axes[0].get_title(loc="left"))
        found = figure.axes[0].images[0].get_array()
        numpy.testing.assert_allclose(found, attention[LAYER].mean(axis=0), atol=1e-6)
        expected = numpy.eye(6)
        for layer in attention[: LAYER + 1]:
            expected = (layer.mean(axis=0) + numpy.eye(6)) / 2 @ expected
        figure = heads.weights(atlastest.RECORDING, LAYER, quantity="Rollout", dpi=60)
        self.assertEqual(figure.axes[0].get_title(loc="left"), "Layers 0 to 4: rollout")
        numpy.testing.assert_allclose(figure.axes[0].images[0].get_array(), expected, atol=1e-6)

    @without_layout()
    def test_head_scores(self):
        tensors, _ = atlastest.read_safetensors(atlastest.RECORDING)
        attention = tensors["attention"].astype(float)
        figure = heads.head_scores(atlastest.RECORDING, dpi=60)
        axes = {panel.get_title(loc="left"): panel for panel in figure.axes}
        expected = numpy.trace(attention, offset=-1, axis1=2, axis2=3) / 5  # the first query has no token before it
        found = axes["Previous Token"].images[0].get_array()
        numpy.testing.assert_allclose(found, expected, atol=1e-6)
        found = axes["Sink"].images[0].get_array()
        numpy.testing.assert_allclose(found, attention[:, :, 1:, 0].mean(axis=2), atol=1e-6)
        self.assertNotIn("Induction", axes, "no token is repeated")

    def test_attention_alone(self):
        """What record.py keeps of a Hugging Face model, here even without its tokens."""
        path = atlastest.OUTPUT / "alone.npy"
        numpy.save(path, numpy.tile(numpy.eye(3, dtype="f4"), (1, 2, 1, 1)))
        with unwritten(heads):
            paths = heads.render_named(path, atlastest.OUTPUT)
        self.assertEqual(list(paths), ["weights", "sentence", "layer", "all-heads", "head-scores"])
        figure = heads.weights(path, dpi=60)
        found = self.colors(figure, figure.axes[0], 3, 3)
        numpy.testing.assert_allclose(found, 255 * style.WEIGHTS(numpy.eye(3))[..., :3], atol=3)

    def test_tokens_of_long_texts(self):
        """Smaller letters, which do not meet, as long as they can be read; then positions, which the axes are called."""
        words = [f"w{number}" for number in range(200)]
        for count, size, name in ((20, 7, "Key"), (75, 4, "Key"), (200, 7, "Key position")):
            path = atlastest.OUTPUT / f"long-{count}.safetensors"
            write_text(path, words[:count])
            figure = heads.weights(path, dpi=60)
            axes = figure.axes[0]
            self.assertEqual((axes.get_xlabel(), axes.get_ylabel()), (name, name.replace("Key", "Query")))
            self.assertEqual(overlaps(figure), [])
            ticks = axes.xaxis.get_major_ticks()
            self.assertGreaterEqual(min(tick.label1.get_fontsize() for tick in ticks), size)
            if count < 200:
                self.assertEqual([tick.label1.get_text() for tick in ticks], words[:count])
            else:
                shown = {tick.get_loc(): tick.label1.get_text() for tick in ticks if 0 <= tick.get_loc() < count}
                self.assertGreater(len(shown), 3)
                self.assertEqual([str(int(place)) for place in shown], list(shown.values()))

    def test_scores_have_a_sign(self):
        """White is 0; both figures of scores have the same colors."""
        path = atlastest.OUTPUT / "signed.safetensors"
        write_text(path, list("abcdefgh"))
        tensors, _ = atlastest.read_safetensors(path)
        query, key = (tensors[f"layers.0.heads.0.{name}"].astype(float) for name in ("query", "key"))
        scores = numpy.tril(query @ key.T / 8**0.5)
        most = numpy.abs(scores).max()
        self.assertLess(scores.min(), -0.1)
        expected = 255 * style.SIGNED((scores / most + 1) / 2)[..., :3]
        below = numpy.tri(8, dtype=bool)
        figure = heads.scores(path, dpi=60)
        found = self.colors(figure, figure.axes[0], 8, 8)
        numpy.testing.assert_allclose(found[below], expected[below], atol=3)
        for drawn in (figure, focus.scores(path, dpi=60)):
            self.assertEqual(drawn.axes[0].images[0].get_cmap().name, style.SIGNED.name)
            numpy.testing.assert_allclose(drawn.axes[0].images[0].get_clim(), (-most, most), rtol=1e-5)

    def test_bad_input(self):
        path, folder = atlastest.RECORDING, atlastest.OUTPUT
        self.assert_raise(
            (lambda: heads.render("none.npy", folder), "none.npy: no such file", FileNotFoundError),
            (lambda: heads.render(path, folder, format="gif"), "format: expected png, pdf or svg, found 'gif'"),
            (lambda: heads.render(path, folder, head=12, width=400), "head: expected 0 to 11, found 12"),
            (lambda: heads.weights(path, layer=12), "layer: expected one of 0 to 11, found 12"),
            (lambda: heads.render(atlastest.SOURCE / "LICENSE", folder), "LICENSE: "),
            (lambda: heads.weights(path, quantity="Bias"), "quantity: expected one of .*; found 'Bias'"),
            (lambda: heads.weights(path, LAYER, quantity="NormWeighted"), "no value norms"),
        )
