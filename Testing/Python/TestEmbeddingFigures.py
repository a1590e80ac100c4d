"""Figures of joint embeddings: their points are those of the filter, their colors those of the tokens."""

import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import Missing, embedding
from matplotlib.backends.backend_agg import FigureCanvasAgg
from randomrecording import HEADS, LAYERS, TOKENS, write_recording

#: What the figures need: few iterations, and a perplexity that 60 points allow.
SETTINGS = {"perplexity": 10, "iterations": 100}


def dots(axes):
    """The places of all points that are drawn, in ascending order."""
    places = numpy.concatenate([numpy.asarray(drawn.get_offsets()) for drawn in axes.collections])
    return places[numpy.lexsort(places.T)]


class EmbeddingFigures(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = write_recording(atlastest.OUTPUT / "random.safetensors")

    def test_files(self):
        paths = embedding.render(self.path, atlastest.OUTPUT / "figures", text="the", width=400, **SETTINGS)
        expected = ["", "-norms", "-head", "-correlation", "-search"]
        self.assertEqual([path.stem for path in paths], [f"random-embedding{name}" for name in expected])
        self.assertEqual({atlastest.read_picture(path).shape[1] for path in paths}, {400})

    def test_points_and_words(self):
        with embedding.Embedding.opened(self.path, **SETTINGS) as opened:
            self.assertEqual(len(opened.places), 2 * len(TOKENS) * LAYERS * HEADS)
            figure = embedding.all_heads(opened, dpi=60)
            drawn = dots(figure.axes[0])
            numpy.testing.assert_allclose(drawn, opened.places[numpy.lexsort(opened.places.T)])
            labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
            self.assertEqual(labels, ["0", "1", "2"])
            # Heads go rightward and layers downward.
            self.assertTrue((numpy.diff(figure.axes[0].get_xticks()) > 0).all())
            self.assertTrue((numpy.diff(figure.axes[0].get_yticks()) < 0).all())
            axes = embedding.one_head(opened, layer=1, head=2, dpi=60).axes[0]
            self.assertEqual(len(dots(axes)), 2 * len(TOKENS))
            words = {text.get_text() for text in axes.texts}
            self.assertTrue(words and words <= {token.strip() for token in TOKENS}, words)

    def test_words_do_not_overlap(self):
        figure = embedding.one_head(self.path, width_mm=89, dpi=100)
        renderer = FigureCanvasAgg(figure).get_renderer()
        boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
        self.assertGreater(len(boxes), 5)
        for i, box in enumerate(boxes):
            for other in boxes[:i]:
                self.assertFalse(box.overlaps(other), (box, other))

    def test_colors(self):
        """Lightness is the position: the last token of a sequence has the full color of its kind."""
        with embedding.Embedding.opened(self.path, **SETTINGS) as opened:
            colors, ramps = opened.colored("Position")
            last = opened.token % 10 == 9
            for kind, full in ((0, [0, 114, 178]), (1, [213, 94, 0])):  # Okabe and Ito: blue, vermilion
                found = colors[last & (opened.kind == kind)] * 255
                numpy.testing.assert_allclose(found, numpy.tile(full, (len(found), 1)))
                numpy.testing.assert_allclose(numpy.array(ramps[kind](1.0))[:3] * 255, full, atol=0.5)

    def test_search(self):
        with embedding.Embedding.opened(self.path, **SETTINGS) as opened:
            found = opened.matching("the")
            expected = [TOKENS[token].strip().lower() == "the" for token in opened.token]
            self.assertEqual(found.tolist(), expected)
            figure = embedding.search(opened, text="the", dpi=60)
            self.assertIn("10 tokens", figure.axes[0].get_title(loc="left"))

    def test_correlation(self):
        """The numbers of the figure, computed anew from queries and keys."""
        with embedding.Embedding.opened(self.path, key_scaling="None", **SETTINGS) as opened:
            figure = embedding.correlation(opened, dpi=60)
        tensors, _ = atlastest.read_safetensors(self.path)
        texts = iter(text.get_text().replace("\u2212", "-") for text in figure.axes[0].texts)
        for layer in range(LAYERS):
            for head in range(HEADS):
                query, key = (tensors[f"layers.{layer}.heads.{head}.{name}"].astype(float) for name in ("query", "key"))
                key = key + query.mean(axis=0) - key.mean(axis=0)
                pairs = [(i, j) for i in range(30) for j in range(i // 10 * 10, i + 1)]
                dot = [query[i] @ key[j] for i, j in pairs]
                distance = [numpy.linalg.norm(query[i] - key[j]) for i, j in pairs]
                expected = numpy.corrcoef(dot, distance)[0, 1]
                self.assertAlmostEqual(float(next(texts)), expected, delta=0.0051)

    def test_bad_input(self):
        folder = atlastest.OUTPUT
        with embedding.Embedding.opened(self.path, **SETTINGS) as opened:
            self.assert_raise(
                (lambda: embedding.render(atlastest.RECORDING, folder), "holds no queries and keys", Missing),
                (lambda: embedding.render("none.npy", folder), "none.npy: no such file", FileNotFoundError),
                (lambda: embedding.one_head(opened, layer=7), "layer: expected one of 0 to 1, found 7"),
                (lambda: embedding.all_heads(opened, by="Size"), "by: expected .* found 'Size'"),
                (lambda: opened.matching("(", "Regular Expression"), r"\("),
            )
