"""The interface in Python: arrays and tables are those of the files and of the oracle, with pandas and without, figures
are drawn where the user wants them, and bad input is named."""

import html.parser
import inspect
import os
import pathlib
import shutil
import subprocess
import sys
import unittest.mock

import atlastest
import attentionatlas as atlas
import numpy
from atlastest import AtlasTest, simple
from attentionatlas._internal import data
from figuretest import Expected
from matplotlib import pyplot
from matplotlib.figure import Figure
from vtkmodules.util.numpy_support import vtk_to_numpy
from randomrecording import write_recording

ORACLE = atlastest.ORACLE.parent
GPT2 = atlastest.TRANSFORMERS / "gpt2"
CHECKPOINT = ORACLE / "models" / "files" / "pt" / "checkpoints" / "nanogpt" / "ckpt.pt"
EXPECTED, _ = atlastest.read_safetensors(GPT2 / "expected.safetensors")
IDS = atlastest.token_lines(EXPECTED["input_ids"])
LENGTH = len(IDS.splitlines()[0].split())
LAYER, HEAD, SEQUENCE = 1, 2, 1
PLACE = (LAYER, HEAD, SEQUENCE)
#: The tables of a recording and of a transformer, whose defaults are those of their filters.
TABLES = {
    "scores": "HeadScores",
    "focus": "AttentionFocus",
    "expert_tokens": "ExpertRouting",
    "score_parts": "ScoreBreakdown",
    "attention_tokens": "AttentionTokens",
    "embedding": "HeadEmbedding",
    "logit_attribution": "LogitAttribution",
    "features": "DictionaryFeatures",
    "logit_lens": "LogitLens",
    "score_attribution": "ScoreAttribution",
    "contacts": "ContactMap",
    "composition": "HeadComposition",
    "spectra": "HeadSpectra",
    "circuit": "HeadCircuit",
    "skip_trigrams": "SkipTrigrams",
    "bigrams": "BigramTable",
    "patching": "ActivationPatching",
    "attribution": "AttributionPatching",
    "find_circuit": "AttributionPatching",
    "accuracy": "HeadAccuracy",
}
#: What methods choose otherwise, since a table has no grid and lists are of one sequence; and which of two tables.
OTHERWISE = {
    ("embedding", "arrangement"), ("contacts", "show"), ("features", "show"), ("attribution", "edges"), ("find_circuit", "of"),
}


def analysis(kind, name):
    tensors, _ = atlastest.read_safetensors(ORACLE / "analysis" / f"gpt2.{kind}.safetensors")
    return tensors[name]


def words(text):
    """The texts of HTML, as a parser reads them."""
    found = []

    class Words(html.parser.HTMLParser):
        def handle_data(self, data):
            found.append(data)

    Words().feed(text)
    return found


class Interface(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = atlas.open(GPT2)
        cls.recording = cls.model.record(token_ids=IDS)

    @classmethod
    def tearDownClass(cls):
        cls.recording.close()
        cls.model.close()

    def test_kinds_of_files(self):
        self.assertIsInstance(self.model, atlas.Transformer)
        self.assertEqual((self.model.layers, self.model.heads, self.model.vocabulary), (2, 4, 211))
        with atlas.open(atlastest.TRAINED) as model:
            self.assertIsInstance(model, atlas.SmallModel)
            self.assertEqual((model.heads, model.tokens, model.dimension), (3, 5, 3))
        with atlas.open(atlastest.RECORDING) as recording:
            self.assertIsInstance(recording, atlas.Recording)
            self.assertEqual(recording.layers, list(range(12)))
            self.assertEqual((recording.heads, recording.sequences, recording.lengths), (12, 1, [6]))
        with atlas.open(str(GPT2 / "config.json")) as model:
            self.assertEqual(model.name, "gpt2")
        with atlas.open(CHECKPOINT) as model:
            expected, _ = atlastest.read_safetensors(CHECKPOINT.with_suffix(".forward.safetensors"))
            self.assertEqual(model.layers, sum(name.startswith("layer.") for name in expected))
            self.assertEqual(model.heads, expected["layer.0.attention"].shape[1])

    def test_arrays_are_those_of_the_file(self):
        tensors, _ = atlastest.read_safetensors(atlastest.RECORDING)
        with atlas.open(atlastest.RECORDING) as recording:
            numpy.testing.assert_array_equal(recording.attention(4, 11), tensors["attention"][4, 11])
            mean = tensors["attention"][4].astype(float).mean(axis=0)
            numpy.testing.assert_allclose(recording.attention(4, "mean"), mean, atol=1e-6)
            self.assertEqual(recording.tokens()[0], "Data")
            self.assert_raise((lambda: recording.queries(4, 11), "holds no Query; record QueriesAndKeys", atlas.Missing))
        path = write_recording(atlastest.OUTPUT / "random.safetensors")
        tensors, _ = atlastest.read_safetensors(path)
        with atlas.open(path) as recording:
            rows = slice(*tensors["sequence_offsets"][SEQUENCE : SEQUENCE + 2])
            numpy.testing.assert_array_equal(recording.queries(*PLACE), tensors["layers.1.heads.2.query"][rows])
            numpy.testing.assert_array_equal(recording.keys(*PLACE), tensors["layers.1.heads.2.key"][rows])

    def test_equal_heads_stay_in_their_order(self):
        path = atlastest.OUTPUT / "equal.npy"
        numpy.save(path, numpy.tile(numpy.eye(3, dtype="f4"), (2, 2, 1, 1)))
        with atlas.open(path) as recording:
            self.assertEqual(recording.striking_heads()[0], [(0, 0), (0, 1), (1, 0), (1, 1)])

    def test_last_residual_is_that_of_the_last_layer(self):
        path = write_recording(atlastest.OUTPUT / "deep.safetensors")
        tensors, metadata = atlastest.read_safetensors(path)
        for layer in (2, 9, 10, 11):
            tensors[f"residual.{layer}"] = numpy.full((30, 4), layer, dtype=numpy.float32)
        atlastest.write_safetensors(path, tensors, {**metadata, "layer_count": "11"})
        with atlas.open(path) as recording:
            self.assertEqual([recording.residual(layer)[0, 0] for layer in (2, -1, -2, -4)], [2, 11, 10, 2])

    def test_tokens_without_texts_are_positions_in_their_sequence(self):
        path = atlastest.OUTPUT / "two.npy"
        numpy.save(path, numpy.tile(numpy.eye(3, dtype="f4"), (1, 2, 2, 1, 1)))
        with atlas.open(path) as recording:
            self.assertEqual((recording.tokens(0), recording.tokens(1)), (["0", "1", "2"], ["0", "1", "2"]))

    def test_arrays_are_those_of_the_oracle(self):
        """Of the second sequence, so that the order of arguments counts."""
        for name, found in (
            ("attention", self.recording.attention(*PLACE)),
            ("scores", numpy.tril(self.recording.attention(*PLACE, quantity="Scores"))),
            ("query", self.recording.queries(*PLACE)),
            ("key", self.recording.keys(*PLACE)),
            ("value", self.recording.values(*PLACE)),
            ("head_output", self.recording.outputs(*PLACE)),
        ):
            values = EXPECTED[f"layer.{LAYER}.{name}"][SEQUENCE, HEAD]
            self.assert_close(found, numpy.tril(values) if name == "scores" else values)
        self.assert_close(self.recording.residual(1, SEQUENCE), EXPECTED["hidden.1"][SEQUENCE])
        self.assertEqual(self.recording.tokens(SEQUENCE), [str(i) for i in EXPECTED["input_ids"][SEQUENCE]])
        means = EXPECTED[f"layer.{LAYER}.attention"][:, HEAD].astype(float).mean(axis=0)
        self.assert_close(self.recording.attention(LAYER, HEAD, "mean"), means)

    def test_numbers_count_from_the_end(self):
        """As in a list, wherever Python takes a layer, head, sequence or position."""
        recording, model = self.recording, self.model
        for found, expected in (
            (recording.queries(-1, -2, -2), recording.queries(1, 2, 0)),
            (recording.residual(-1, -1), EXPECTED["hidden.2"][1]),
            (recording.tokens(-1), recording.tokens(1)),
            (recording.score_attribution(1, 2, key=-17), recording.score_attribution(1, 2, key=0)),
            (recording.logit_lens(-1), recording.logit_lens(1)),
            (model.circuit(-1, -2), model.circuit(1, 2)),
            (model.virtual_weights(0, -1, -1, 0), model.virtual_weights(0, 3, 1, 0)),
        ):
            found, expected = map(numpy.asarray, (found, expected))
            if expected.dtype.kind == "f":
                self.assert_close(found, expected)
            else:
                numpy.testing.assert_array_equal(found, expected)
        figure = atlas.heads.weights(recording, -2, 3, -2, dpi=60)
        self.assertIn("Layer 0, head 3", figure.axes[0].get_title(loc="left"))
        with atlas.open(atlastest.TRAINED) as small:
            titles = [axes.get_title(loc="left") for axes in atlas.figures.attention(small, heads=[-1], dpi=60).axes]
        self.assertIn("Head 2", titles)

    def test_minus_one_no_longer_stands_for_a_word(self):
        """It was the mean, or all, in version 1.0: the last one now, with a warning; properties of filters keep theirs."""
        recording = self.recording
        for use, expected, word in (
            (lambda: recording.attention(0, -1), recording.attention(0, 3), "head: .*mean"),
            (lambda: recording.attention(0, 1, -1), recording.attention(0, 1, 1), "sequence: .*mean"),
            (lambda: recording.embedding(1, -1, 0)["x"], recording.embedding(1, 3, 0)["x"], "head: .*all"),
        ):
            with self.assertWarnsRegex(FutureWarning, f"^{word}"):
                numpy.testing.assert_array_equal(use(), expected)
        mean = vtk_to_numpy(recording.dataset("AttentionMap", layer=0, head=-1).GetPointData().GetArray("Weights"))
        self.assert_close(mean.reshape(LENGTH, LENGTH)[::-1], recording.attention(0, "mean"))
        figure = atlas.heads.weights(recording, 0, "mean", "mean", dpi=60)
        self.assertIn("mean of all heads", figure.axes[0].get_title(loc="left"))

    def test_color_maps(self):
        cells = numpy.asarray(EXPECTED["layer.1.attention"][0, 2])
        for cmap in ("magma", pyplot.get_cmap("magma")):
            image = atlas.heads.weights(self.recording, 1, 2, cmap=cmap, dpi=60).axes[0].images[0]
            numpy.testing.assert_allclose(image.to_rgba(image.get_array()), pyplot.get_cmap("magma")(cells), atol=5e-3)
        signed = atlas.heads.scores(self.recording, 1, 2, cmap="coolwarm", dpi=60).axes[0].images[0]
        self.assertEqual((signed.get_cmap().name, sum(signed.get_clim())), ("coolwarm", 0))
        self.assert_raise(
            (lambda: atlas.heads.weights(self.recording, cmap="plaid"), "cmap: expected a color map .*; found 'plaid'"),
            (lambda: atlas.sentence.lines(self.recording, cmap="magma"), "cmap: lines has no color map of values"),
        )

    def test_all_heads_of_a_layer_at_once(self):
        last = self.recording.layer_numbers[-1]
        heads = self.recording.attention(-1, "all", quantity="scores")
        self.assertEqual(heads.shape, (self.recording.head_count, LENGTH, LENGTH))
        for head, matrix in enumerate(heads):
            numpy.testing.assert_array_equal(matrix, self.recording.attention(last, head, quantity="Scores"))
        with self.assertRaisesRegex(ValueError, "layer: expected one of"):
            self.recording.attention(-1 - len(self.recording.layer_numbers), 0)

    def test_logits_add_up_to_those_of_attribution(self):
        with self.model.record(token_ids=IDS, record=["Logits", "HeadOutputs", "Residual", "QueriesAndKeys"]) as recording:
            logits = recording.logits()
            self.assertEqual(len(logits), LENGTH)
            lens = recording.logit_lens(top=1)
            last = numpy.asarray(lens["Layer"]) == numpy.max(lens["Layer"])
            numpy.testing.assert_array_equal(logits.argmax(axis=1), numpy.asarray(lens["TokenId"])[last])
        with self.assertRaisesRegex(atlas.Missing, "logits holds no Logits; record Logits"):
            self.recording.logits()

    def test_a_dataset_stays_when_its_recording_is_closed(self):
        with self.model.record(token_ids=IDS) as recording:
            weights = recording.attention(1, 0)
            dataset = recording.dataset("AttentionMap", layer=1, head=0)
        values = vtk_to_numpy(dataset.GetPointData().GetArray("Weights")).reshape(LENGTH, LENGTH)
        numpy.testing.assert_array_equal(values[::-1], weights)

    def test_names_are_those_for_users(self):
        self.assertLessEqual({"attention", "queries", "record", "open", "heads"}, {*dir(self.recording), *dir(self.model), *dir(atlas)})
        self.assertFalse({"own", "made", "kept", "scope", "shown_by", "pathlib"} & {*dir(self.recording), *dir(atlas)})
        for name in set(dir(atlas)) - {"scene"}:
            shown = getattr(atlas, name)
            if inspect.ismodule(shown):
                self.assertFalse({"Any", "annotations", "numpy", "own", "pathlib"} & {*dir(shown)}, name)
        self.assertLessEqual({"all_heads", "weights"}, {*dir(atlas.heads)})

    def test_tables_are_those_of_the_oracle(self):
        table = self.recording.focus(per="Query")
        chosen = (table["Layer"] == LAYER) & (table["Head"] == HEAD) & (table["Sequence"] == SEQUENCE)
        first = EXPECTED[f"layer.{LAYER}.attention"][SEQUENCE, HEAD, :, 0]
        self.assert_close(table["First Weight"][chosen], first)
        strongest = self.recording.strongest_keys(*PLACE)
        keys = EXPECTED[f"layer.{LAYER}.attention"][SEQUENCE, HEAD].argmax(axis=1)
        self.assertEqual(list(strongest["Key"]), keys.tolist())
        self.assert_close(self.model.spectra()["Copying"], analysis("spectra", "ov.copying").ravel())
        table = self.model.skip_trigrams(LAYER, HEAD)
        self.assert_close(table["Score"], analysis("tables", "skip.score")[LAYER, HEAD])
        tokens = [f"#{token}" for token in analysis("tables", "table.tokens")]
        self.assert_close(self.model.circuit_matrix(LAYER, HEAD, "OV", tokens), analysis("tables", "ov.rows")[LAYER, HEAD])
        pair = analysis("spectra", "virtual.pair").tolist()
        self.assert_close(self.model.virtual_weights(*pair), analysis("spectra", "virtual.k"))
        top = self.model.bigrams(["#3", "#7"], top=6)
        self.assert_close(top["Logit"], analysis("tables", "bigram.folded.top.values")[[3, 7], :6].ravel())

    def test_pandas_or_not(self):
        """The same columns and values in a DataFrame and in a structured array."""
        with unittest.mock.patch.dict(sys.modules, {"pandas": None}):
            plain = self.model.spectra(LAYER)
        self.assertIsInstance(plain, numpy.ndarray)
        self.assertEqual(len(plain), 4)
        self.assert_close(plain["Eigenvalue 0:1"], analysis("spectra", "ov.eigenvalues")[LAYER, :, 0, 1])
        with unittest.mock.patch.dict(sys.modules, {"pandas": None}):
            texts = self.model.bigrams(["#3"], top=2)
        self.assertEqual(texts["Token"].tolist(), ["3", "3"])
        self.assertLess({"Token", "3", "2 rows, "}, {*words(texts._repr_html_()), words(texts._repr_html_())[-1][:8]})
        self.assertIsNone(texts["Logit"]._repr_html_())
        try:
            import pandas
        except ImportError:
            self.skipTest("there is no pandas")
        frame = self.model.spectra(LAYER)
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame.columns), list(plain.dtype.names))
        for name in plain.dtype.names:
            numpy.testing.assert_array_equal(frame[name].to_numpy(), plain[name])

    def test_every_table(self):
        for made, names in (
            (self.recording, ("scores", "focus", "updates", "attention_tokens", "logit_lens", "score_attribution")),
            (self.recording, ("logit_attribution", "strongest_keys")),
            (self.model, ("composition", "spectra", "circuit", "skip_trigrams", "bigrams")),
        ):
            for name in names:
                self.assertGreater(len(getattr(made, name)()), 0, name)
        table = self.recording.embedding(LAYER, HEAD, SEQUENCE, method="PCA")
        self.assertEqual(len(table), 2 * 17)
        self.assertEqual(len(self.model.patching("1 2 3", "1 4 3")), 8)
        nodes = self.model.attribution("1 2 3", "1 4 3", exact=True)
        self.assertEqual((len(nodes), nodes["Node"][2]), (11, "head 0.1"))
        edges = self.model.attribution("1 2 3", "1 4 3", edges=True)
        # The heads of exact patching have the same effects as activation patching, which measures parts of the whole.
        whole = nodes["Exact Effect"][0]
        heads = numpy.array([name.startswith("head") for name in nodes["Node"]])
        parts = self.model.patching("1 2 3", "1 4 3")["Effect"]
        numpy.testing.assert_allclose(nodes["Exact Effect"][heads] / whole, parts, atol=1e-4)
        leaving = [edges["Effect"][numpy.array(edges["From"]) == name].sum() for name in nodes["Node"]]
        numpy.testing.assert_allclose(leaving, nodes["Effect"], atol=1e-9)
        exact = self.model.attribution("1 2 3", "1 4 3", edges=True, exact_edges=len(edges))
        self.assertTrue(numpy.isfinite(exact["Exact Effect"]).all())
        first = self.model.attribution("1 2 3", "1 4 3", edges=True, exact_edges=2)["Exact Effect"]
        self.assertEqual(list(numpy.isfinite(first)), 2 * [True] + (len(edges) - 2) * [False])
        circuit = self.model.circuit_faithfulness("1 2 3", "1 4 3", "Edges", steps=3)
        numpy.testing.assert_allclose(numpy.array(circuit["Faithfulness"])[[0, -1]], [0, 1], atol=1e-9)
        self.assertEqual(len(self.recording.table("HeadUpdates", 1)), 2 * 4 * 50)

    def test_attribution_of_pairs(self):
        pairs = (["1 2 3", "7 8 9 2"], ["1 4 3", "7 8 5 2"])
        both = self.model.attribution(*pairs)["Effect"]
        alone = [self.model.attribution(prompt, other)["Effect"] for prompt, other in zip(*pairs)]
        numpy.testing.assert_allclose(both, numpy.mean(alone, axis=0), atol=1e-12)
        curve = self.model.circuit_faithfulness(*pairs)
        numpy.testing.assert_allclose(numpy.array(curve["Faithfulness"])[[0, -1]], [0, 1], atol=1e-9)
        self.assertEqual(len(self.model.find_circuit(*pairs, top=4).edges), 4)

    def test_circuits(self):
        """A circuit that is saved is the one that was found; the recorder runs it as attribution does."""
        pair = ("1 2 3", "1 4 3")
        options = {"steps": 3, "target": "#5", "against": "#9"}
        circuit = self.model.find_circuit(*pair, top=20, **options)
        strongest = self.model.attribution(*pair, edges=True, **options)[:20]
        for column in ("From", "To", "Input", "Effect"):
            self.assertEqual(list(circuit.edges[column]), list(strongest[column]))
        ends = {*circuit.edges["From"], *circuit.edges["To"]} - {"logits"}
        self.assertEqual(set(circuit.nodes), ends)
        path = circuit.save(atlastest.OUTPUT / "interface.circuit")
        saved = atlas.Circuit(path)
        self.assertEqual((saved.nodes, list(saved.edges["Effect"])), (circuit.nodes, list(circuit.edges["Effect"])))
        self.assertEqual(atlas.Circuit(os.path.relpath(path)).path, path.resolve(), "which another working directory does not change")
        smaller = self.model.find_circuit(*pair, top=5, **options)
        self.assertEqual(list(circuit.compare(smaller)["In"]), 5 * ["both"] + 15 * ["file"])
        self.assertEqual(list(smaller.compare(path)["In"]), 5 * ["both"] + 15 * ["other"])
        in_both = {node for node, kind in zip(*(circuit.compare(smaller, nodes=True)[name] for name in ("Node", "In"))) if kind == "both"}
        self.assertEqual(in_both, set(smaller.nodes))
        # A circuit of nodes alone, by two programs: attribution's, in double precision, and the recorder.
        nodes = self.model.find_circuit(*pair, of="Nodes", top=6, **options)
        self.assertEqual((len(nodes.nodes), len(nodes.edges)), (6, 0))
        curve = self.model.circuit_faithfulness(*pair, nodes, **options)
        self.assertEqual(list(curve["Size"]), [6])
        by_size = self.model.circuit_faithfulness(*pair, **options)
        self.assertAlmostEqual(curve["Faithfulness"][0], by_size["Faithfulness"][6], 12)

        def difference(tokens, **changed):
            with self.model.record(token_ids=tokens, record=["Logits"], **changed) as recording:
                logits = recording.logits()[-1]
                return float(logits[5]) - float(logits[9])

        whole, none = difference(pair[0]), difference(pair[1])
        alone = difference(pair[0], patch_from=pair[1], circuit_file=nodes)
        self.assertAlmostEqual((alone - none) / (whole - none), curve["Faithfulness"][0], 3)
        for call, message in (
            (lambda: circuit.save("x.txt"), "ends with .circuit"),
            (lambda: circuit.save("/no/folder/x.circuit"), "folder"),
            (lambda: atlas.Circuit(atlastest.TRAINED), "not JSON"),
            (lambda: self.model.find_circuit(*pair, of="Heads"), "of: expected one of Nodes, Edges"),
        ):
            with self.assertRaisesRegex((ValueError, OSError), message):
                call()

    def test_defaults_are_those_of_the_filters(self):
        small = atlas.open(atlastest.TRAINED)
        for method, proxy in TABLES.items():
            source = next(made for made in (self.recording, self.model, small) if hasattr(made, method))
            function, made = getattr(source, method), getattr(simple, proxy)(Input=source.reader)
            for option, parameter in inspect.signature(function).parameters.items():
                if parameter.default in (None, parameter.empty) or (method, option) in OTHERWISE:
                    continue
                found = getattr(made, "".join(map(str.capitalize, option.split("_"))))
                found = found.GetData() if hasattr(found, "GetData") else found
                default = -1 if parameter.default in ("all", "last", "strongest") else parameter.default
                default = int(default) if isinstance(default, bool) else default
                found = tuple(found or ()) if isinstance(default, tuple) else found
                self.assertEqual(str(found).strip("'"), str(default), f"{method}: {option}")
            simple.Delete(made)
        small.close()

    def test_small_model(self):
        values, path = self.oracle()
        with atlas.open(path) as model:
            size = 9
            found = model.torus(size, ["Attention", "Class", "Probability"])
            angles = numpy.linspace(-numpy.pi, numpy.pi, size)
            theta = numpy.stack(numpy.meshgrid(angles, angles), axis=-1).reshape(-1, 2)
            expected = Expected(path, theta)
            self.assert_close(found["Attention 1"].ravel(), expected.attention(1), 1e-4)
            classes, probability = expected.classes()
            self.assert_close(found["Probability"].ravel(), probability, 1e-4)
            self.assertGreater((found["Class"].ravel() == classes).mean(), 0.95)
            accuracy = model.accuracy()
            tensors, _ = atlastest.read_safetensors(path)
            self.assertEqual(list(accuracy["Pairs"]), [tensors["next_token"].size] * len(accuracy))
            self.assertEqual(len(model.pairs()), tensors["next_token"].size)
            harmonics = model.harmonics()
            numpy.testing.assert_allclose([harmonics[f"Head {head}"] for head in range(3)], values["harmonics"], atol=1e-4)
            saved = model.save(atlastest.OUTPUT / "saved.safetensors")
        again, _ = atlastest.read_safetensors(saved)
        numpy.testing.assert_allclose(again["word_embedding"], tensors["word_embedding"], atol=1e-6)

    def test_record_and_save(self):
        path = self.recording.save(atlastest.OUTPUT / "run.safetensors")
        with atlas.open(path, model=self.model) as recording:
            numpy.testing.assert_array_equal(recording.attention(*PLACE), self.recording.attention(*PLACE))
            self.assertGreater(len(recording.logit_lens()), 0)
        self.assertFalse(self.model.closed, "it is the caller's")
        with self.model.record_random("RepeatedBlock", length=8, block=4) as recording:
            tokens = recording.tokens()
            self.assertEqual(tokens[:4], tokens[4:])
        folder = atlastest.OUTPUT
        self.assert_raise(
            (lambda: self.recording.save(folder / "run.npz"), "run.npz: expected a name that ends with .safetensors"),
            (lambda: self.recording.save(folder / "none" / "run.safetensors"), "found no folder", FileNotFoundError),
        )

    def test_all_heads_in_subplots_of_the_user(self):
        figure, axes = pyplot.subplots(2, 2, layout="constrained")
        for panel, draw in zip(
            axes.ravel(), (atlas.heads.all_heads, atlas.heads.weights, atlas.sentence.lines, atlas.focus.heads_by_layer)
        ):
            title = panel.get_title()
            self.assertIs(draw(self.recording, ax=panel), figure)
            self.assertTrue(panel.has_data() or panel.texts, title)
        shown = axes[0, 0].images[0].get_array()
        count = 17
        # A tile of a head in the image of all, without its border.
        side = shown.shape[0] // 2
        tile = numpy.asarray(shown[side:, 2 * side : 3 * side])
        step = (side - 2 * (side // 24)) / count
        places = (side // 24 + (numpy.arange(count) + 0.5) * step).astype(int)
        numpy.testing.assert_allclose(tile[numpy.ix_(places, places)], EXPECTED["layer.1.attention"][0, 2], atol=1e-5)
        self.assertEqual(figure.get_size_inches().tolist(), pyplot.rcParams["figure.figsize"])
        pyplot.close(figure)

    def test_figures_of_the_user(self):
        whole = Figure(layout="constrained")
        left, right = whole.subfigures(1, 2)
        self.assertIs(atlas.heads.layer_weights(self.recording, LAYER, figure=left), whole)
        self.assertEqual(len([axes for axes in left.axes if axes.get_title().startswith("Head")]), 4)
        self.assertIs(atlas.figures.attention(atlastest.TRAINED, figure=right, dpi=60), whole)
        panel = whole.add_subplot()

        def draw(**options):
            return lambda: atlas.heads.layer_weights(self.recording, **options)

        self.assert_raise(
            (draw(ax=panel), "ax: this figure has 4 panels; give figure="),
            (draw(ax=panel, figure=whole), "ax, figure: expected one of them"),
            (draw(figure=whole, width_mm=89), "width_mm: not with ax= or figure="),
            (draw(figure=whole, dark=True), "dark: not with ax= or figure="),
            (draw(colour=1), "unexpected keyword argument 'colour'", TypeError),
            (lambda: atlas.sentence.pages(self.recording, ax=panel), "takes neither ax nor figure", TypeError),
        )

    def test_every_figure_takes_figure_and_order(self):
        """layer, head, sequence in this order, wherever a function has them."""
        for name in ("heads", "sentence", "patches", "embedding", "focus", "tokens", "proteins", "circuits", "texts"):
            module = getattr(atlas, name)
            functions = [f for f in vars(module).values() if getattr(f, "__module__", "") == module.__name__]
            functions = [f for f in functions if inspect.isfunction(f) and hasattr(f, "__wrapped__")]
            drawn = [f for f in functions if "dpi" in inspect.signature(f).parameters]
            self.assertGreater(len(drawn), 1, module.__name__)
            for function in drawn:
                names = list(inspect.signature(function).parameters)
                places = [name for name in names[1:] if name in ("layer", "head", "sequence")]
                self.assertEqual(names[1 : 1 + len(places)], places, f"{function.__name__}: {names}")
                self.assertEqual(places, sorted(places, key=["layer", "head", "sequence"].index), function.__name__)
                self.assertTrue(function.__doc__, function.__name__)
                self.assertEqual("ax" in names, "figure" in names)

    def test_all_is_what_the_model_has(self):
        """An encoder of images alone has no logits, and no model here has experts."""
        vit = GPT2.parent / "vit"
        options = ({"images": [str(vit / "expected.safetensors")]}, {"token_ids": "1 2 3"})
        for folder, chosen in zip((vit, GPT2), options):
            with atlas.open(folder) as model, model.record(record="all", **chosen) as recording:
                self.assertEqual(recording.outputs(0, 0).ndim, 2, folder)
        self.assert_one_error("which are not used: 'pooler.dense.bias', 'pooler.dense.weight'")

    def test_closed(self):
        recording = self.model.record(token_ids="1 2 3")
        recording.close()
        recording.close()
        self.assertIn("closed", repr(recording))
        uses = (recording.attention, recording.scores, lambda: atlas.heads.weights(recording))
        self.assert_raise(*((use, "recording is closed") for use in uses))
        with self.assertRaisesRegex(ValueError, "closed"), recording:
            pass

    def test_summary(self):
        with atlas.open(atlastest.RECORDING) as recording:
            found = words(recording._repr_html_())
            self.assertIn("0 to 11", found)
            self.assertTrue(any("Data" in word and "powers" in word for word in found))
        tokens = ["<b>", "&amp;"] * 15
        with atlas.open(write_recording(atlastest.OUTPUT / "markup.safetensors", tokens)) as recording:
            text = recording._repr_html_()
            self.assertNotIn("<b>", text)
            self.assertTrue(any("<b>" in word and "&amp;" in word for word in words(text)))
        self.assertIn("211", words(self.model._repr_html_()))
        with atlas.open(atlastest.TRAINED) as model:
            self.assertIn("5", words(model._repr_html_()))

    def test_train(self):
        with atlas.train("TokenPairs", steps=200, checkpoint_every=100) as model:
            curves, accuracy = model.curves(), model.accuracy()
            whole = [value for name, value in zip(accuracy["Name"], accuracy["Accuracy"]) if name == "All Heads"]
            self.assertEqual(whole, [list(curves["Accuracy"])[-1]], "the model of the last step")
        folder = atlastest.OUTPUT / "trained"
        shutil.rmtree(folder, ignore_errors=True)
        sizes = {"vocabulary": 16, "context": 32, "heads": 2, "model_dimension": 32, "batch_size": 4}
        with atlas.train("RepeatedTokens", steps=4, checkpoint_every=2, **sizes) as model:
            self.assertEqual(model.save(folder), folder)
            with model.record(token_ids="1 2 3 1 2 3") as recording:
                weights = recording.attention(1, 1)
            self.assert_raise(
                (lambda: model.save(folder / "none" / "here"), "found no folder", FileNotFoundError),
                (lambda: model.save(folder / "config.json"), "config.json: expected a folder, found a file"),
            )
        with atlas.open(folder) as model, model.record(token_ids="1 2 3 1 2 3") as recording:
            numpy.testing.assert_array_equal(recording.attention(1, 1), weights)
            with self.assertRaisesRegex(atlas.Missing, "trained: expected a model that was just trained, found one from a file"):
                model.save(folder)
        self.assertEqual(sorted(path.name for path in folder.glob("checkpoint-*")), [f"checkpoint-{n}" for n in (0, 2, 4)])
        with self.assertRaisesRegex(ValueError, "task: expected one of RepeatedTokens, .*; found 'Chess'"):
            atlas.train("Chess")

    def test_bad_input(self):
        """TestErrors.test_arguments_of_record has those of record."""
        recording = self.recording
        attention, table = recording.attention, recording.table
        with atlas.open(atlastest.RECORDING) as of_attention_alone:
            self.assert_raise(
                (lambda: atlas.open("none.safetensors"), "none.safetensors: no such file", FileNotFoundError),
                (lambda: atlas.open(atlastest.SOURCE / "LICENSE"), "expected a recording, a small model, .* or the config.json"),
                (lambda: atlas.open(atlastest.DATA), "found a folder without config.json"),
                (lambda: attention(2), "layer: expected one of 0 to 1, found 2"),
                (lambda: attention(0, 4), "head: expected 0 to 3, found 4"),
                (lambda: attention(0, "average"), "head: expected a number or mean, found 'average'"),
                (lambda: attention(0, "last"), "head: expected a number or mean, found 'last'"),
                (lambda: attention("mean", 0), "layer: expected a number, found 'mean'"),
                (lambda: attention(0, 1.5), "head: expected a whole number, found 1.5"),
                (lambda: attention(0, 0, 2), "sequence: expected 0 to 1, found 2"),
                (lambda: attention(0, 0, 0, "Heat"), "quantity: expected one of Weights, .*; found 'Heat'"),
                (lambda: recording.queries(0, 0, "mean"), "sequence: expected a number, found 'mean'"),
                (lambda: recording.queries(0, "mean"), "head: expected a number, found 'mean'"),
                (lambda: attention(0, -5), "head: expected 0 to 3, found -5"),
                (lambda: self.model.circuit(0, -5), "head: expected 0 to 3, found -5"),
                (lambda: self.model.patching("1 2", "1 3", position=-1), "position: expected a number from 0 or .all., found -1"),
                (lambda: self.model.attribution("1 2", "1 3", position=-1), "position: expected a number from 0 or .last., found -1"),
                (lambda: recording.focus(quantity="Heat"), "quantity: expected one of Weights, .*; found 'Heat'"),
                (lambda: atlas.heads.weights(recording, 0, 0, model=GPT2), "model: expected with a file"),
                (lambda: table("AttentionFocus", 7), "port: AttentionFocus has 2 outputs, found 7"),
                (lambda: table("AttentionFocus", colour=1), "expected an option among .*; found 'colour'", TypeError),
                (lambda: table("Focus"), "the plugin has no Focus; similar names are .*AttentionFocus"),
                (lambda: self.model.skip_trigrams(2), "layer: expected 0 to 1, found 2"),
                (of_attention_alone.logit_lens, "this needs the model that was recorded: model=", atlas.Missing),
            )

    def test_prompts_have_line_breaks(self):
        """The tokens are the letters of each prompt, of which a line break is one."""
        folder = atlastest.OUTPUT / "letters"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(GPT2, folder)
        (folder / "vocab.json").write_text('{"a": 0, "b": 1, "\u010a": 2, "\u010d": 3}', encoding="utf-8")
        (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")

        def ids(recording, sequence=0):
            tokens = data.blocks(data.first_part(recording.reader))["tokens"]
            numbers, of = (vtk_to_numpy(tokens.GetColumnByName(name)) for name in ("TokenId", "Sequence"))
            return numbers[of == sequence].tolist()

        with atlas.open(folder) as model:
            with model.record("a\nb\n") as recording:
                self.assertEqual((recording.sequences, ids(recording)), (1, [0, 2, 1, 2]))
            with model.record(("a\r\n", "b", "\n")) as recording:
                self.assertEqual([ids(recording, i) for i in range(3)], [[0, 3, 2], [1], [2]])
            with model.record("a\nb", patch_from="b\na", patch_sites="r0") as patched, model.record("b\na") as other:
                numpy.testing.assert_array_equal(patched.residual(1), other.residual(1))
            effects = model.patching("a\nb", "b\na", site="Residual")
            self.assertEqual(len(effects["Position"]), 6, "two layers of three tokens")
            means = [
                model.patching("a\nb", "b\na", mode="MeanOverPrompts", target="#5", against="#6", reference_prompts=texts)
                for texts in ("ab\nba\n", ["ab", "ba"], ["ab\nba"])
            ]
            numpy.testing.assert_array_equal(means[0]["Effect"], means[1]["Effect"])
            self.assertTrue((means[0]["Effect"] != means[2]["Effect"]).any(), "one prompt of five tokens")
            for prompts in ("", ["a", ""]):
                with self.assertRaises(ValueError):
                    model.record(prompts)
            for number, error in enumerate(self.take_errors(), 1):
                self.assertIn(f"Prompts, prompt {number}: expected a text, found no tokens.", error)

    def test_without_paraview(self):
        """A Python without VTK says what it needs, and opens nothing else."""
        package = str(pathlib.Path(atlas.__file__).parent.parent)
        python = shutil.which("python3")
        for use in ("import attentionatlas as atlas; atlas.open('x')", "from attentionatlas import heads",
                    "from attentionatlas import web", "import attentionatlas; attentionatlas.load_plugin()"):
            code = f"import sys; sys.path.insert(0, {package!r}); {use}"
            done = subprocess.run([python, "-I", "-S", "-c", code], check=False, capture_output=True, text=True)
            self.assertIn("has no module 'vtkmodules': expected the Python of VTK", done.stderr, use)

    def test_all_names_are_there(self):
        """Also those that are imported when they are used."""
        for name in atlas.__all__:
            self.assertIsNotNone(getattr(atlas, name), name)

    def test_import_is_cheap(self):
        python = shutil.which("python3")
        code = (
            "import sys, attentionatlas; found = {'numpy', 'matplotlib', 'paraview', 'pandas'} & set(sys.modules);"
            "assert not found, found; assert 'heads' in dir(attentionatlas)"
        )
        subprocess.run([python, "-c", code], check=True)
        self.assertTrue((pathlib.Path(atlas.__file__).parent / "py.typed").is_file())
