"""Findings: their numbers are those of closed forms and of other programs, and the page is whole."""

import collections
import itertools
import json
import math
import re

import atlastest
import numpy
import smallmodels
from atlastest import AtlasTest
from attentionatlas import findings
from attentionatlas.findings import attention, study, training, weights
from webpages import Document

MODELS = atlastest.OUTPUT / "models"
#: Numbers of modular addition, and the frequencies with their shares of energy in the test's model.
P, SHARES = 13, {1: 0.1, 2: 0.4, 3: 0.2, 5: 0.15, 6: 0.15}
#: Elements of HTML without an end.
_VOID = ("meta", "img", "br", "link")


class Page(Document):
    """Checks that elements are closed in order."""

    def __init__(self, text):
        self.open = []
        super().__init__(text)

    def handle_starttag(self, tag, attributes):
        super().handle_starttag(tag, attributes)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        super().handle_endtag(tag)
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> at {self.getpos()} closes another element")


def circles(tensors):
    """An embedding of numbers that lies on circles, of known energy."""
    embedding = tensors["embed.W_E"]
    turns = 2 * numpy.pi * numpy.arange(P)[:, None] / P
    embedding[:P] = 0.5  # a mean, which does not count
    for i, (frequency, share) in enumerate(SHARES.items()):
        wave = numpy.hstack([numpy.cos(frequency * turns), numpy.sin(frequency * turns)])
        embedding[:P, 2 * i : 2 * i + 2] += math.sqrt(share) * wave


def without_output(tensors):
    """All logits are 0, so all tokens are as likely."""
    tensors["unembed.W_U"][:] = 0


class Findings(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ("language-2", "induction"):
            smallmodels.make(MODELS, name)
        smallmodels.make(MODELS, "language-1", layers=1)
        smallmodels.make(MODELS, "markov", vocabulary=3, positions=24, change=without_output)
        smallmodels.make(MODELS, "mess3", vocabulary=3, positions=6)
        modular = smallmodels.make(MODELS, "modular", layers=1, vocabulary=P + 1, positions=3, change=circles)
        nan = math.nan
        smallmodels.write_curves(
            modular,
            {"Step": [0, 10, 20, 50, 100], "Loss": [3, 2, 1, 0.5, nan], "Accuracy": [0, 0.1, 0.2, 0.995, 1],
             "Train Accuracy": [0, 0.995, 1, 1, 1]},
        )
        smallmodels.copy_oracle(MODELS, "language-alibi", "bloom")
        cls.names = [finding.name for finding in findings.FINDINGS if not finding.name.startswith("spirals")]
        #: The page of all of them, of which each test looks at some.
        cls.folder = atlastest.OUTPUT / "page"
        cls.results = findings.render(cls.folder, MODELS, atlastest.RECORDING, cls.names)

    def rendered(self, *names):
        return findings.render(atlastest.OUTPUT / "some", MODELS, atlastest.RECORDING, names)

    def test_page(self):
        """Every finding is on the page, with its image or, without its model, with the reason."""
        folder, names, results = self.folder, self.names, self.results
        self.assertEqual(list(results), names)
        text = (folder / "index.html").read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual(page.open, [])
        drawn = [name for name, result in results.items() if not isinstance(result, str)]
        self.assertEqual(page.given("src"), [f"{name}.png" for name in drawn])
        ids = page.given("id")
        for link in page.given("href"):
            if link.startswith("#"):
                self.assertIn(link[1:], ids)
            else:
                self.assertTrue((folder / link).is_file(), link)
        for name in drawn:
            self.assertEqual(atlastest.read_picture(folder / f"{name}.png").shape[1], findings.WIDTH)
        self.assertEqual(ids, names)
        missing = {f.name for f in findings.FINDINGS if f.model in ("bert", "vit", "language-4")} & set(names)
        self.assertEqual({name for name, result in results.items() if isinstance(result, str)}, missing)
        for name in missing:
            self.assertEqual(results[name], "model not found")
        self.assert_numbers(folder, results)

    def assert_numbers(self, folder, results):
        numbers = json.loads((folder / "findings.json").read_text(encoding="utf-8"), parse_constant=self.fail)
        self.assertEqual(list(numbers), list(results))
        for name, result in results.items():
            verdict, reason = (numbers[name][key] for key in ("verdict", "reason"))
            if isinstance(result, str):
                self.assertEqual((verdict, reason), ("not tested", result))
                continue
            self.assertTrue(numbers[name]["numbers"])
            verdicts = {True: "holds", False: "does not hold", None: "cannot be tested on models of this size"}
            self.assertEqual(verdict, verdicts[result.holds])
            self.assertEqual(bool(reason), result.holds is None, name)

    def test_the_page_of_some_findings_has_their_models(self):
        self.rendered("grokking", "copying")
        text = (atlastest.OUTPUT / "some" / "index.html").read_text(encoding="utf-8")
        table = text[text.index("<h2>The models</h2>") : text.index("<h2>All findings</h2>")]
        self.assertEqual(re.findall("<tr><td><b>([^<]+)</b>", table), ["language-1", "modular"])
        self.assertNotIn("not found", table)

    def test_unknown_name(self):
        with self.assertRaisesRegex(ValueError, "finding: expected one of .*grokking.*; found 'groking'"):
            self.rendered("groking")

    def test_without_any_model(self):
        results = findings.render(atlastest.OUTPUT / "none", atlastest.OUTPUT / "nowhere", "nothing", ["fourier", "sinks-gpt2"])
        self.assertEqual(results, {"fourier": "model not found", "sinks-gpt2": "recording not found"})

    def test_previous_token_of_gpt2(self):
        found = self.results["previous-gpt2"]
        self.assertTrue(found.holds)
        tensors, _ = atlastest.read_safetensors(atlastest.RECORDING)
        matrices = tensors["attention"].reshape(12, 12, 6, 6).astype(float)
        expected = numpy.trace(matrices, -1, 2, 3) / matrices[:, :, 1:].sum(axis=(2, 3))
        numpy.testing.assert_allclose(found.numbers["previous token"], expected, atol=1e-6)

    def test_later_layers(self):
        """Two layers are too few for a claim about later ones, four are not."""
        name = "sinks-language-2"
        shallow = self.results[name]
        self.assertIsNone(shallow.holds)
        self.assertIn("at least 4 layers, and the model has 2", shallow.reason)
        smallmodels.make(atlastest.OUTPUT / "deep", "language-2", layers=4)
        deep = findings.render(atlastest.OUTPUT / "some", atlastest.OUTPUT / "deep", names=[name])[name]
        self.assertEqual((deep.holds, deep.reason), (False, ""))

    def test_copying_of_induction_heads(self):
        """By the eigenvalues of a dense matrix over the vocabulary."""
        found = self.results["induction-copies-language-2"]
        tensors = study.read_tensors(MODELS / "language-2" / "model.safetensors")
        centered, outputs = numpy.eye(16) - 1 / 16, tensors["unembed.W_U"] @ (numpy.eye(30) - 1 / 30)
        for layer, head in numpy.ndindex(2, 2):
            value, output = (tensors[f"blocks.{layer}.attn.W_{name}"][head] for name in "VO")
            circuit = tensors["embed.W_E"] @ centered @ value @ output @ centered @ outputs
            eigenvalues = numpy.linalg.eigvals(circuit)
            expected = eigenvalues.real.sum() / abs(eigenvalues).sum()
            self.assertAlmostEqual(found.numbers["copying"][layer, head], expected, places=4)

    def test_fourier(self):
        found = self.results["fourier"]
        self.assertTrue(found.holds)
        self.assertAlmostEqual(found.numbers["five frequencies"], 1, places=6)
        self.assertEqual(found.numbers["frequencies"], sorted(SHARES))
        numpy.testing.assert_allclose(found.numbers["shares"], [SHARES.get(k, 0) for k in range(1, 7)], atol=1e-6)
        tensors = study.read_tensors(MODELS / "modular" / "model.safetensors")
        radius = numpy.linalg.norm(weights.circle(tensors["embed.W_E"][:P], 2), axis=1)
        numpy.testing.assert_allclose(radius, math.sqrt(SHARES[2]), rtol=1e-6)

    def test_grokking(self):
        found = self.results["grokking"]
        self.assertTrue(found.holds)
        self.assertEqual((found.numbers["train"], found.numbers["test"]), (10, 50))

    def test_composition(self):
        """The score from the weights, without the directions that layer normalization takes out."""
        found = self.results["composition-language-2"]
        tensors = study.read_tensors(MODELS / "language-2" / "model.safetensors")
        heads = re.findall(r"head (\d)\.(\d)", found.measured)
        (l1, h1), (l2, h2) = (map(int, head) for head in heads)
        centered = numpy.eye(16) - 1 / 16
        value, output = (tensors[f"blocks.{l1}.attn.W_{name}"][h1] for name in "VO")
        query, key = (tensors[f"blocks.{l2}.attn.W_{name}"][h2] for name in "QK")
        circuit = centered @ value @ output @ centered
        reading = centered @ key @ query.T @ centered
        norm = numpy.linalg.norm
        self.assertAlmostEqual(found.numbers["score"], norm(circuit @ reading) / norm(circuit) / norm(reading), places=5)
        self.assertEqual(found.numbers["baseline"], 0.25)

    def test_even_model_of_chains(self):
        """A model without output predicts all symbols alike: ln 3 nats, but for the luck of the sequences."""
        found = self.results["two-drops"]
        self.assertFalse(found.holds)
        symbols = training.draw_chains(3, 200, 24)
        luck = training.counting_losses(symbols, 3)[1] - found.numbers["bigram"]
        self.assertAlmostEqual(found.numbers["excess"], math.log(3) - luck - found.numbers["bigram"], places=5)

    def test_counting_losses(self):
        """By the probability of a whole sequence, a product of Dirichlet integrals."""
        symbols = numpy.array([[0, 0, 1, 2, 0, 1, 1, 1, 2, 0], [2, 1, 2, 1, 2, 1, 0, 0, 0, 2]])

        def log_chance(counts):
            total = sum(counts.values())
            return math.lgamma(3) - math.lgamma(total + 3) + sum(math.lgamma(n + 1) for n in counts.values())

        expected = numpy.zeros(2)
        for row in symbols.tolist():
            alone = collections.Counter(row)
            expected[0] -= log_chance(alone) - log_chance(collections.Counter(row[:1]))
            pairs = collections.Counter(zip(row, row[1:]))
            for state in range(3):
                expected[1] -= log_chance({b: n for (a, b), n in pairs.items() if a == state})
        numpy.testing.assert_allclose(training.counting_losses(symbols, 3), expected / 18, rtol=1e-12)

    def test_beliefs(self):
        """By summing over all paths of hidden states; the published matrices of Mess3."""
        a, b, x, y = 0.85, 0.075, 0.05, 0.9
        published = numpy.array([
            [[a * y, b * x, b * x], [a * x, b * y, b * x], [a * x, b * x, b * y]],
            [[b * y, a * x, b * x], [b * x, a * y, b * x], [b * x, a * x, b * y]],
            [[b * y, b * x, a * x], [b * x, b * y, a * x], [b * x, b * x, a * y]],
        ])
        matrices = training.mess3()
        numpy.testing.assert_allclose(matrices, published, rtol=1e-12)
        symbols = training.draw_process(matrices, 4, 5)
        found = training.beliefs_of(matrices, symbols)
        for row, beliefs in zip(symbols.tolist(), found):
            for end in range(1, 6):
                ends = numpy.zeros(3)
                for path in itertools.product(range(3), repeat=end + 1):
                    ends[path[-1]] += math.prod(published[s][i][j] for s, i, j in zip(row, path, path[1:]))
                numpy.testing.assert_allclose(beliefs[end - 1], ends / ends.sum(), rtol=1e-10)

    def test_symbols_of_the_process(self):
        """Pairs of symbols are as frequent as the matrices say."""
        matrices = training.mess3()
        symbols = training.draw_process(matrices, 200000, 2, seed=5)
        found = numpy.histogram2d(*symbols.T, bins=3)[0] / len(symbols)
        expected = numpy.einsum("i,aij,bjk->ab", numpy.full(3, 1 / 3), matrices, matrices)
        numpy.testing.assert_allclose(found, expected, atol=5e-3)

    def test_position_share(self):
        random = numpy.random.default_rng(0)
        same = numpy.tile(random.random((1, 6, 6)), (8, 1, 1))
        self.assertAlmostEqual(attention.position_share(same), 1, places=12)
        self.assertLess(abs(attention.position_share(random.random((400, 6, 6)))), 0.02)
        mixed = same + numpy.sqrt(same[0].var() / same.var(axis=(1, 2)).mean()) * random.permutation(same.ravel()).reshape(same.shape)
        self.assertGreater(attention.position_share(mixed), 0.3)
        self.assertLess(attention.position_share(mixed), 0.7)

    def test_order_of_a_layout(self):
        random = numpy.random.default_rng(0)
        position = numpy.tile(numpy.arange(40.0), 12)
        sequence = numpy.repeat(numpy.arange(12), 40)
        line = numpy.stack([position, 0.01 * random.random(480)], axis=1)
        self.assertGreater(attention.layout_order(line, position, sequence), 0.95)
        self.assertLess(abs(attention.layout_order(random.random((480, 2)), position, sequence)), 0.1)

    def test_lines(self):
        slope, quality = attention.line_through(3 - 0.25 * numpy.arange(20))
        self.assertAlmostEqual(slope, -0.25)
        self.assertAlmostEqual(quality, 1)
        numpy.testing.assert_allclose(attention.alibi_slopes(8), 2.0 ** -numpy.arange(1, 9))
        scores = numpy.fromfunction(lambda s, i, j: s - 0.5 * (i - j), (3, 12, 12))
        numpy.testing.assert_allclose(attention.decay_of(scores), 1 - 0.5 * numpy.arange(7))

    def test_birth_in_the_curves(self):
        """The steepest fall and rise, where a step function has them."""
        steps = numpy.arange(0, 700, 5)
        rise = 1 / (1 + numpy.exp(-(steps - 203) / 8))
        self.assertLess(abs(training._steepest(steps, rise) - 203), 5)
        self.assertEqual(training._steepest(numpy.array([0, 10, 100]), numpy.array([0, 1, 50])), 55)
