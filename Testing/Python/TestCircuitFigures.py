"""Figures of circuits: their numbers are those of the oracle."""

import csv
import unittest.mock

import atlastest
import attentionatlas as atlas
import figuretest
import numpy
from atlastest import simple
from attentionatlas import attribution, circuits, output, web
from figuretest import OracleFigures
from matplotlib.collections import LineCollection

ORACLE = atlastest.ORACLE.parent
CONFIG = ORACLE / "transformers" / "gpt2" / "config.json"
#: What the figures show: layer 1, head 2.
LAYER, HEAD = 1, 2
PLACE = {"layer": LAYER, "head": HEAD}


def expected(kind, name):
    tensors, _ = atlastest.read_safetensors(ORACLE / "analysis" / f"gpt2.{kind}.safetensors")
    return tensors[name]


def matrix_of(figure, rows, columns):
    """The values of the image of a figure, of so many cells."""
    values = figure.axes[0].images[0].get_array()
    assert values.shape == (rows, columns), values.shape
    return values


class CircuitFigures(OracleFigures):
    NAME = "gpt2"

    def test_files(self):
        folder, reasons = atlastest.OUTPUT / "figures", []

        def render(output, only=None):
            texts = {"prompt": "5 7 9 11", "patch_from": "5 8 9 11"}
            return circuits.render_named(CONFIG, folder, output, reasons, self.path, only=only, **texts, **PLACE)

        expected = {name: f"gpt2-{name}" for name in circuits.FIGURES}
        with unittest.mock.patch.object(output, "PRINT_DPI", 100):
            written = render(circuits.Output("pdf", width_mm=180))
        figuretest.check_files(self, circuits, written, expected, render)
        self.assertEqual(reasons, [])

    def test_what_is_missing_is_left_out(self):
        reasons = []
        with figuretest.unwritten(circuits):
            named = circuits.render_named(CONFIG, atlastest.OUTPUT / "less", None, reasons)
        weights = ("composition", "copying", "spectra", "qk", "ov", "skip-trigrams", "bigrams")
        self.assertEqual(list(named), [f"circuits-{name}" for name in weights])
        self.assertEqual(len(reasons), 3)  # figures of a text, of two texts, and of a later layer

    def test_attribution(self):
        """A line for each of the strongest edges, as wide as its effect; and the circuit of a file."""
        pair = {"prompt": "5 7 9 11", "patch_from": "5 8 9 11"}
        with atlas.open(CONFIG) as model:
            edges = model.attribution(*pair.values(), edges=True, target="#5", against="#9")
            figure = circuits.attribution(model, **pair, target="#5", against="#9", top=6, dpi=60)
            (lines,) = (c for c in figure.axes[0].collections if isinstance(c, LineCollection))
            effects = abs(numpy.asarray(edges["Effect"])[:6])
            self.assert_close(lines.get_linewidths()[::-1], 0.4 + 2.1 * effects / effects.max())
            ends = {"embed": -1, "logits": 2}
            for segment, start, end in zip(lines.get_segments()[::-1], edges["From"], edges["To"]):
                for (_, y), name in zip(segment, (start, end)):
                    layer = ends.get(name, int(name.split()[-1].split(".")[0]) if " " in name else None)
                    self.assertEqual(y, layer + 0.5 * name.startswith("mlp"))
            self.assertIn("5 minus 9", figure.axes[0].get_title(loc="left"))
            found = model.find_circuit(*pair.values(), top=4)
            shown = circuits.attribution(model, **pair, file=found, dpi=60).axes[0].collections[0]
            self.assertEqual(len(shown.get_segments()), 4)
            loss = circuits.attribution(model, **pair, measure="Loss", top=3, dpi=60)
            self.assertIn("the loss", loss.axes[0].get_title(loc="left"))
            curves = model.circuit_faithfulness(*pair.values(), "Edges", target="#5", against="#9")
            figure = circuits.faithfulness(model, **pair, target="#5", against="#9", dpi=60)
            drawn = {line.get_label(): line for line in figure.axes[0].lines}
            for label, column in (("the circuit alone", "Faithfulness"), ("incompleteness", "Incompleteness")):
                numpy.testing.assert_array_equal(drawn[label].get_xydata().T, [curves["Size"], curves[column]])
            self.assert_raise((lambda: circuits.attribution(model, prompt="5 7"), "patch_from: expected a text of as many tokens"))

    def test_command_of_attribution(self):
        folder = atlastest.OUTPUT / "attribution"
        texts = ["--clean", "5 7 9 11", "5 7 9 12", "--corrupted", "5 8 9 11", "5 8 9 12"]
        output = ["-o", str(folder), "--format", "svg", "--target", "#5", "--against", "#9", "--top", "5"]
        with unittest.mock.patch("builtins.print") as printed:
            attribution.main([str(CONFIG), *texts, *output])
        names = [call.args[0].name for call in printed.call_args_list]
        ends = (".circuit", "-nodes.csv", "-edges.csv", "-curves.csv", "-graph.svg", "-curves.svg", ".html")
        self.assertEqual(names, [f"gpt2{end}" for end in ends])
        with atlas.open(CONFIG) as model:
            pairs = (["5 7 9 11", "5 7 9 12"], ["5 8 9 11", "5 8 9 12"])
            edges = model.attribution(*pairs, edges=True, target="#5", against="#9")
            with open(folder / "gpt2-edges.csv", encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            self.assertEqual([float(row["Effect"]) for row in rows], list(edges["Effect"]))
            self.assertEqual([row["From"] for row in rows], list(edges["From"]))
            circuit = atlas.Circuit(folder / "gpt2.circuit")
            self.assertEqual(list(circuit.edges["Effect"]), list(edges["Effect"])[:5])
        page = (folder / "gpt2.html").read_text(encoding="utf-8")
        self.assertIn("Attribution of edges", page)
        self.assertIn("changes the difference of the logits", page)
        loss = web.attribution(CONFIG, "5 7 9 11", "5 8 9 11", measure="Loss")
        self.assertIn("changes the loss.", loss.caption)
        run = [str(CONFIG), *texts, "-o", str(atlastest.OUTPUT / "given"), "--circuit", str(folder / "gpt2.circuit")]
        self.assert_raise(
            (lambda: attribution.main([str(CONFIG), "--clean", "5", "--corrupted", "5 7", "-o", "none"]), "as many tokens"),
            (lambda: attribution.main([*run, "--of", "Edges"]), "of: expected none for a given circuit, found Edges"),
            (lambda: attribution.main([*run, "--top", "60"]), "top: expected none for a given circuit, found 60"),
            kind=SystemExit,
        )

    def test_composition(self):
        corrected = expected("spectra", "composition.q.corrected")[0, :, 1, :]
        figure = circuits.composition(CONFIG, kind="Q", top=5, threshold=-1, dpi=60)
        (lines,) = (c for c in figure.axes[0].collections if isinstance(c, LineCollection))
        found = {(int(a[0]), int(b[0])): score for (a, b), score in zip(lines.get_segments(), lines.get_array())}
        self.assertEqual([(int(a[1]), int(b[1])) for a, b in lines.get_segments()], [(0, 1)] * 5)
        strongest = numpy.argsort(corrected, axis=None)[-5:]
        self.assertEqual(sorted(found), sorted(map(tuple, zip(*numpy.unravel_index(strongest, corrected.shape)))))
        self.assert_close([found[pair] for pair in found], [corrected[pair] for pair in found])

    def test_copying(self):
        for full, name in ((False, "ov.copying"), (True, "ov.full.copying")):
            figure = circuits.copying(CONFIG, full=full, dpi=60)
            self.assert_close(matrix_of(figure, 2, 4), expected("spectra", name))

    def test_spectra(self):
        figure = circuits.spectra(CONFIG, layer=LAYER, dpi=60)
        for axes, values in zip(figure.axes, expected("spectra", "ov.eigenvalues")[LAYER]):
            numpy.testing.assert_allclose(
                numpy.asarray(axes.collections[0].get_offsets()), values, atol=2 * self.TOLERANCE * abs(values).max()
            )

    def test_circuits_of_tokens(self):
        tokens = [f"#{token}" for token in expected("tables", "table.tokens")]
        for name, kind in (("qk.rows", "QK"), ("ov.rows", "OV")):
            figure = circuits.circuit(CONFIG, tokens=tokens, circuit=kind, dpi=60, **PLACE)
            self.assert_close(matrix_of(figure, 8, 8), expected("tables", name)[LAYER, HEAD])

    def test_skip_trigrams(self):
        bars = circuits.skip_trigrams(CONFIG, top=20, dpi=60, **PLACE).axes[0].patches
        self.assert_close([bar.get_width() for bar in bars], expected("tables", "skip.score")[LAYER, HEAD, :20])

    def test_bigrams(self):
        tokens = expected("tables", "table.tokens")
        figure = circuits.bigrams(CONFIG, tokens=[f"#{token}" for token in tokens], top=6, dpi=60)
        self.assert_close(matrix_of(figure, 8, 6), expected("tables", "bigram.folded.top.values")[tokens, :6])

    def test_virtual_weights(self):
        first, second = expected("spectra", "virtual.pair").reshape(2, 2).tolist()
        weights = expected("spectra", "virtual.k")
        figure = circuits.virtual_weights(CONFIG, *second, source=tuple(first), dpi=60)
        self.assert_close(matrix_of(figure, 8, 8), weights)
        self.assert_close(figure.axes[1].lines[0].get_ydata(), numpy.linalg.svd(weights, compute_uv=False))

    def test_logits(self):
        values = expected("logits", "dla.values")[0]
        with self.opened() as opened:
            figure = circuits.logits(opened, grouping="Heads", dpi=60)
        found = matrix_of(figure, values.shape[1] + 1, values.shape[0])  # and b_U
        self.assert_close(found[:-1].T, values)

    def test_lens(self):
        logits = expected("logits", "lens.logits")[:, 0].astype(float)
        shares = numpy.exp(logits - logits.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        with self.opened() as opened:
            figure = circuits.lens(opened, dpi=60)
        self.assert_close(matrix_of(figure, *logits.shape[:2])[::-1], shares.max(axis=-1))

    def test_score(self):
        """The pairs add up to the score that Attention Map shows."""
        with self.opened() as opened:
            figure = circuits.score(opened, query=9, key=4, grouping="Heads", dpi=60, **PLACE)
            rows, columns = len(figure.axes[0].get_yticklabels()), len(figure.axes[0].get_xticklabels())
            scores = simple.AttentionMap(Input=opened.reader, Quantity="Scores", Layer=LAYER, Head=HEAD)
            score = atlastest.point_arrays(scores)["Scores"].reshape(17, 17)[::-1][9, 4]
            simple.Delete(scores)
        self.assertAlmostEqual(matrix_of(figure, rows, columns).sum(), score, delta=1e-5 * abs(score))

    def test_contrast(self):
        with self.opened() as opened:
            figure = circuits.contrast(opened, dpi=60, by="Previous Token", **PLACE)
        bars = [bar.get_height() for bar in figure.axes[1].patches]
        self.assertAlmostEqual(sum(bars), 1, delta=1e-6)
        self.assertEqual(bars, sorted(bars, reverse=True))
        self.assertEqual([len(points.get_offsets()) for points in figure.axes[0].collections], [17, 17])

    def test_bad_input(self):
        self.assert_raise(
            (lambda: circuits.composition("none.json"), "none.json: no such file", FileNotFoundError),
            (lambda: circuits.composition(CONFIG, kind="X"), "kind: expected one of Q, K, V; found .X."),
            (lambda: circuits.circuit(CONFIG, layer=2), "layer: expected 0 to 1, found 2"),
            (lambda: circuits.skip_trigrams(CONFIG, head=4), "head: expected 0 to 3, found 4"),
            (lambda: circuits.virtual_weights(CONFIG, 1, source=(1, 0)), "source: expected a layer before 1, found 1"),
            (lambda: circuits.patching(CONFIG, site="Somewhere"), "site: expected .* found .Somewhere."),
            (lambda: circuits.circuit(CONFIG, tokens=["#999"]), "999"),
            (lambda: circuits.lens(CONFIG), "expected a recording, found a model"),
        )
