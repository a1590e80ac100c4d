"""Figures of attention tokens: what they show is what the tables and a computation of their own say."""

import types
import unittest.mock

import atlastest
import matplotlib
import numpy
from atlastest import AtlasTest, simple
from attentionatlas import output, tokens
from attentionatlas._internal import data, host
from figuretest import Pdf, overlaps, poppler, unwritten, without_layout
from matplotlib.figure import Figure

MODEL = atlastest.TRANSFORMERS / "gpt2" / "config.json"
VOCABULARY, LAYERS, HEADS, LENGTH = 211, 2, 4, 12


def record(path):
    """A recording of three sequences of random tokens."""
    host.load()
    model = simple.TransformerReader(FileName=str(MODEL))
    prompts = simple.RandomPrompts(Kind="Random", Length=LENGTH, Count=3, IdRange=[0, VOCABULARY - 1], Seed=3)
    recorder = simple.TransformerRecorder(Input=model, Tokens=prompts)
    simple.SaveData(str(path), proxy=recorder)
    for proxy in (recorder, prompts, model):
        simple.Delete(proxy)
    return path


def head_weights(layer, head):
    """W_O W_U of a head, processed as TransformerLens does, from the tensors of the file."""
    tensors, _ = atlastest.read_safetensors(MODEL.parent / "model.safetensors")
    tensors = {name.split("transformer.", 1)[-1]: values.astype(float) for name, values in tensors.items()}
    unembedding = tensors["wte.weight"].T * tensors["ln_f.weight"][:, None]
    unembedding = unembedding - unembedding.mean(axis=0)
    unembedding = unembedding - unembedding.mean(axis=1, keepdims=True)
    writing = tensors[f"h.{layer}.attn.c_proj.weight"][8 * head : 8 * (head + 1)]
    return (writing - writing.mean(axis=1, keepdims=True)) @ unembedding


class TokenFigures(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = record(atlastest.OUTPUT / "random.safetensors")

    def opened(self, **properties):
        return tokens.Tokens.opened(self.path, model=MODEL, **properties)

    def test_files(self):
        folder = atlastest.OUTPUT / "figures"
        random = {"kind": "Random", "count": 2, "length": LENGTH}
        with unwritten(output):
            written = tokens.render(self.path, folder, model=MODEL, random=random)
        names = [f"random-{name}" for name in tokens.FIGURES]
        names += [f"random-random-tokens-{name}" for name in ("frequencies", "embeddings", "shared")]
        self.assertEqual(written, names)
        (path,) = tokens.render(self.path, folder, model=MODEL, output=output.Output(width=400), only=["tokens-head"])
        self.assertEqual((path.name, atlastest.read_picture(path).shape[1]), ("random-tokens-head.png", 400))

    def test_image_is_that_of_the_weights(self):
        """The order of discovery of the tokens of q * k, computed anew."""
        recording, _ = atlastest.read_safetensors(self.path)
        query, key = (recording[f"layers.1.heads.2.{name}"][:LENGTH].astype(float) for name in ("query", "key"))
        logits = (query[:, None] * key[None]) @ head_weights(1, 2)
        best, known, expected = logits.argmax(axis=-1), {}, numpy.full((LENGTH, LENGTH), numpy.nan)
        for i, j in zip(*numpy.tril_indices(LENGTH)):
            expected[i, j] = known.setdefault(best[i, j], len(known))
        with self.opened() as opened:
            discovery, weights = opened.image(1, 2)
            numpy.testing.assert_array_equal(discovery, expected)
            numpy.testing.assert_allclose(numpy.nansum(weights, axis=1), 1, rtol=1e-5)
            ids = [str(number) for number in recording["tokens.id"][:LENGTH]]
            self.assertEqual(opened.texts(), ids)
            value = recording["layers.1.heads.2.value"]
            self.assertEqual(value.shape, (3 * LENGTH, 8))
            with unittest.mock.patch.object(tokens, "_NAMED", 4):
                bar = tokens.one_head(opened, layer=1, head=2, dpi=60).axes[-1]
            named = [str(list(known)[i]) for i in (0, 3, 6, 10)]
            self.assertEqual([text.get_text() for text in bar.get_yticklabels()], named)
            self.assertTrue(bar.get_ylabel().endswith(f" (4 of {len(known)} are named)"))
            figure = tokens.one_head(opened, layer=1, head=2, dpi=60)
            axes, bar = figure.axes[0], figure.axes[-1]
            self.assertEqual([text.get_text() for text in bar.get_yticklabels()], list(map(str, known)))
            self.assertEqual(bar.get_ylabel(), "Token, in order of appearance")
            # A step of the bar for each token, in the color of its cells.
            figure.draw_without_rendering()
            found = numpy.unique(numpy.round(bar.collections[-1].get_facecolors(), 4), axis=0)
            shares = numpy.arange(len(known)) / (len(known) - 1)
            expected = numpy.unique(numpy.round(matplotlib.colormaps["viridis"](shares), 4), axis=0)
            numpy.testing.assert_array_equal(found, expected)
            self.assertEqual([label.get_text() for label in axes.get_yticklabels()], ids)
            queries = (query @ head_weights(1, 2)).argmax(axis=-1)
            self.assertEqual(opened.words(1, 2, "Query"), [str(number) for number in queries])

    def test_pixels_show_borders(self):
        discovery = numpy.array([[0, numpy.nan], [1, 0]])
        weights = numpy.array([[1, numpy.nan], [0.5, 0.01]])
        picture = tokens._pixels(discovery, weights, 200)
        self.assertEqual(picture.shape, (200, 200, 4))
        white = (picture == 1).all(axis=-1)
        self.assertTrue(white[:35, :100].all() and not white[35:65, 35:65].any())
        self.assertTrue(white[100:117, :100].any() and not white[120:180, 20:80].any())
        self.assertFalse(white[100:, 100:].any())  # too little attention
        numpy.testing.assert_allclose(picture[50, 150, :3], 0xD4 / 255, atol=1e-6)  # beyond the query

    @without_layout()
    def test_numbers(self):
        """Bars and matrices are those of the tables."""
        with self.opened() as opened:
            bars = tokens.frequencies(opened, dpi=60).axes[1].patches
            unique = opened.unique("QueryKey")
            self.assertEqual([bar.get_height() for bar in bars], [unique[place] for place in opened.places])
            table = data.table(opened.filter)
            chosen = numpy.array(table["Vector"]) == "Key"
            sets = {}
            for layer, head, token in zip(*(table[name][chosen] for name in ("Layer", "Head", "TokenId"))):
                sets.setdefault((int(layer), int(head)), set()).add(int(token))
            expected = [[len(sets[a] & sets[b]) for b in opened.places] for a in opened.places]
            numpy.testing.assert_array_equal(opened.shared("Key"), expected)
            places, layers = opened.embedded("Key", Iterations=50)
            self.assertEqual(len(places), sum(map(len, sets.values())))
            self.assertEqual(numpy.count_nonzero(layers == 1), sum(len(sets[1, head]) for head in range(HEADS)))

    def test_counts_are_whole(self):
        """Ticks of few tokens are whole numbers."""
        places = [(0, 0), (0, 1)]
        counts = {"Layer": numpy.zeros(2), "Head": numpy.arange(2), "Count": numpy.array([3, 4])}
        unique = {(0, 0): 9, (0, 1): 7, (0, -1): 9}
        few = types.SimpleNamespace(places=places, layers=[0], counts=lambda _: counts, unique=lambda _: unique)
        axes = Figure((7, 1.5)).subplots(1, 3)
        tokens._draw_counts(axes, few, "Key", {0: "black"})
        for panel in axes[1:]:
            ticks = panel.get_yticks()
            self.assertGreater(len(ticks), 2)
            numpy.testing.assert_array_equal(ticks, numpy.round(ticks))

    @without_layout()
    def test_random_rows(self):
        """Text, and three random inputs below it, for each head of the layer."""
        with self.opened() as opened:
            figure = tokens.random_heads(opened, layer=1, dpi=60)
            self.assertEqual(len(figure.axes), 4 * HEADS)
            labels = [figure.axes[row * HEADS].get_ylabel() for row in range(4)]
            self.assertEqual(labels, ["text", "one random token", "random tokens", "three random tokens"])

    def test_pdf_has_text(self):
        with self.opened(layer=0) as opened:
            for name, figure in tokens.FIGURES.items():
                with self.subTest(name):
                    drawn = figure.draw(opened, dpi=100)
                    self.assertEqual(overlaps(drawn), [])
                    path = output.save(drawn, atlastest.OUTPUT / f"{name}.pdf", 100)
                    self.assertEqual(Pdf(path).type3, 0)
                    text = poppler("pdftotext", path, "-")
                    if text is not None:
                        self.assertRegex(text, "(?i)token|input")

    def test_bad_input(self):
        folder, bloom = atlastest.OUTPUT, MODEL.parent.parent / "bloom"
        with self.opened() as opened:
            self.assert_raise(
                (lambda: tokens.render("none.npy", folder, model=MODEL), "none.npy: no such file", FileNotFoundError),
                (lambda: tokens.render(self.path, folder, model="none.json"), "none.json: no such file", FileNotFoundError),
                (lambda: tokens.render(self.path, folder, model=bloom), "needs the model that was recorded"),
                (lambda: tokens.render(atlastest.RECORDING, folder, model=MODEL), "has no queries of layer 0"),
                (lambda: tokens.one_head(opened, layer=7), "layer: expected one of 0 to 1, found 7"),
                (
                    lambda: tokens.main([str(self.path), "--model", str(MODEL), "--reading", "None"]),
                    "reading: expected one of Plain", SystemExit,
                ),
            )
