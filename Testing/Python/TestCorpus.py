"""Statistics of heads over a text from Python: they are those of recordings of the same text, by NumPy, and those that
the command writes; figures show them; and bad input is named."""

import contextlib
import inspect
import os
import resource
import signal
import subprocess

import atlastest
import attentionatlas as atlas
import numpy
from atlastest import AtlasTest, simple
from attentionatlas import texts
from figuretest import overlaps
from matplotlib import pyplot
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

MODEL = atlastest.DATA / "models" / "language-2"
#: Prose with words that come again, a document a line.
LINES = [
    "In the beginning God created the heaven and the earth.",
    "And the earth was without form, and void; and darkness was upon the face of the deep.",
    "And God said, Let there be light: and there was light.",
    "And God saw the light, that it was good: and God divided the light from the darkness.",
]
LAYER, HEAD = 1, 5
PROGRAM = os.environ["ATLAS_PROGRAM"]


@contextlib.contextmanager
def full_disk(size):
    """No file can be larger than this, as on a disk that is full; writes then fail."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def column(table, name):
    return numpy.asarray(table[name])


class Corpus(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = atlastest.OUTPUT / "text.txt"
        cls.text.write_text("\n".join(LINES) + "\n", encoding="utf-8")
        cls.model = atlas.open(MODEL)
        cls.corpus, cls.recording = cls.model.corpus(cls.text), cls.model.record(LINES)
        for opened in (cls.model, cls.corpus, cls.recording):
            cls.addClassCleanup(opened.close)

    def attention(self, layer, head):
        """The weights of the recording: an array for each line, and the tokens of each."""
        for line in range(len(LINES)):
            yield self.recording.attention(layer, head, line).astype(float), self.recording.tokens(line)

    def test_heads_are_those_of_recordings(self):
        table = self.corpus.head_table()
        self.assertEqual(len(table), 16)
        tokens = sum(self.recording.lengths)
        self.assertEqual((self.corpus.token_count, self.corpus.document_count), (tokens, len(LINES)))
        self.assertTrue(self.corpus.is_complete)
        numpy.testing.assert_array_equal(column(table, "Queries"), tokens)
        for row, (layer, head) in enumerate(zip(table["Layer"], table["Head"])):
            weights = [matrix for matrix, _ in self.attention(int(layer), int(head))]
            distance = [numpy.subtract.outer(range(len(matrix)), range(len(matrix))) for matrix in weights]
            expected = {
                "First Weight": sum(matrix[:, 0].sum() for matrix in weights) / tokens,
                "Self Weight": sum(matrix.trace() for matrix in weights) / tokens,
                "Strongest Weight": sum(matrix.max(axis=1).sum() for matrix in weights) / tokens,
                "Previous Token": sum(matrix.trace(-1) for matrix in weights)
                / sum(matrix.sum() - matrix[0, 0] for matrix in weights),
                "Sink": sum(matrix[1:, 0].sum() for matrix in weights) / (tokens - len(LINES)),
                "Mean Distance": sum((m * d).sum() for m, d in zip(weights, distance)) / tokens,
            }
            for name, value in expected.items():
                self.assertAlmostEqual(column(table, name)[row], value, delta=2e-6, msg=f"{name} of {layer}.{head}")

    def test_histograms_are_those_of_recordings(self):
        """Counts of bins, and numbers of each rank, by NumPy. A weight at the edge of two bins may be in either."""
        distances, strongest, entropy, second = numpy.zeros(128), [], [], []
        for weights, _ in self.attention(LAYER, HEAD):
            rows = numpy.arange(len(weights))
            numpy.add.at(distances, numpy.abs(numpy.subtract.outer(rows, rows)), weights)
            ordered = numpy.sort(numpy.pad(weights, ((0, 0), (1, 0))), axis=1)
            strongest += ordered[:, -1].tolist()
            second += ordered[:, -2].tolist()
            bits = -(weights * numpy.log(numpy.where(weights > 0, weights, 1))).sum(axis=1)
            entropy += (bits / numpy.log(numpy.maximum(rows + 1, 2))).tolist()
        tokens = len(entropy)
        for quantity, values in (("Entropy", entropy), ("StrongestWeight", strongest)):
            table = self.corpus.histogram(LAYER, HEAD, quantity)
            numpy.testing.assert_allclose(column(table, "Value"), (numpy.arange(20) + 0.5) / 20)
            counts = numpy.histogram(values, 20, (0, 1))[0]
            self.assertLessEqual(numpy.abs(column(table, "Count") - counts).sum(), 2, quantity)
            self.assertEqual(column(table, "Count").sum(), tokens)
        table = self.corpus.histogram(LAYER, HEAD, "Distance")
        numpy.testing.assert_allclose(column(table, "Count"), distances, atol=1e-4)
        numpy.testing.assert_allclose(column(table, "Cumulative"), distances.cumsum() / distances.sum(), atol=1e-5)
        table = self.corpus.quantiles(LAYER, HEAD)
        numpy.testing.assert_allclose(column(table, "Quantile"), numpy.arange(101) / 100)
        ranks = numpy.floor(numpy.arange(101) / 100 * (tokens - 1)).astype(int)
        heads = self.corpus.head_table()
        for name, values in (("Entropy", entropy), ("Concentration", numpy.subtract(strongest, second))):
            expected = numpy.sort(values)[ranks]
            numpy.testing.assert_allclose(column(table, name), expected, rtol=0.0101, atol=2e-6)
            for quantile, of_head in ((5, f"{name} P5"), (50, f"Median {name}"), (95, f"{name} P95")):
                self.assertEqual(column(heads, of_head)[8 * LAYER + HEAD], column(table, name)[quantile])

    def test_tokens_are_those_of_recordings(self):
        to, from_, occurrences = {}, {}, {}
        for weights, tokens in self.attention(LAYER, HEAD):
            numpy.fill_diagonal(weights, 0)
            weights[:, 0] = 0
            for position, token in enumerate(tokens):
                occurrences[token] = occurrences.get(token, 0) + 1
                to[token] = to.get(token, 0) + weights[:, position].sum()
                from_[token] = from_.get(token, 0) + weights[position].sum()
        table = self.corpus.token_table(LAYER, HEAD)
        self.assertEqual(set(table["Token"]), set(to))
        for name, expected in (("To Total", to), ("From Total", from_), ("Occurrences", occurrences)):
            found = dict(zip(table["Token"], column(table, name)))
            for token, value in expected.items():
                self.assertAlmostEqual(found[token], value, delta=1e-5, msg=f"{name} of {token!r}")
        totals = column(table, "To Total")
        self.assertTrue((numpy.diff(totals) <= 0).all(), "the largest first")
        few = self.corpus.token_table(LAYER, HEAD, sort_by="Occurrences", minimum_occurrences=2, top=3)
        self.assertEqual(len(few), 3)
        self.assertEqual(column(few, "Occurrences").tolist(), sorted(occurrences.values())[-3:][::-1])

    def test_output_parts_are_those_of_recordings(self):
        """The variances of what a head writes along its principal directions, by NumPy from recorded values; and the
        tokens at their ends."""
        corpus = self.model.corpus(self.text, sample_values=True)
        self.addCleanup(corpus.close)
        values = numpy.concatenate([self.recording.values(LAYER, HEAD, line) for line in range(len(LINES))]).astype(float)
        tensors, _ = atlastest.read_safetensors(MODEL / "model.safetensors")
        writing = tensors[f"blocks.{LAYER}.attn.W_O"][HEAD].astype(float)
        written = (values - values.mean(axis=0)) @ (writing - writing.mean(axis=1, keepdims=True))
        expected = numpy.linalg.svd(written / len(values) ** 0.5, compute_uv=False)[:4]
        table = corpus.parts(LAYER, HEAD, 4, circuit="OV", model=MODEL)
        numpy.testing.assert_allclose(column(table, "Strength"), expected, rtol=1e-4)
        shares = expected**2 / (written**2).mean(axis=0).sum()
        numpy.testing.assert_allclose(column(table, "Share"), shares, rtol=1e-4)
        # The coordinates of values are those of the text, in the order of principal components.
        ends = corpus.ends(LAYER, HEAD, 1, ends=3, circuit="OV", model=self.model)
        self.assertEqual(column(ends, "Kind").tolist(), [2] * 6 + [3] * 6 + [4] * 6)
        first = written @ numpy.linalg.svd(written, full_matrices=False)[2][0] / expected[0]
        first *= numpy.sign(first[numpy.abs(first).argmax()])
        found = column(ends, "Coordinate")[12:]
        found = found * numpy.sign(found[numpy.abs(found).argmax()])
        highest, lowest = (set(numpy.round(order[:3], 3)) for order in (numpy.sort(first)[::-1], numpy.sort(first)))
        halves = [set(numpy.round(found[:3], 3)), set(numpy.round(found[3:], 3))]
        self.assertIn(highest, halves)
        self.assertIn(lowest, halves)
        self.assertEqual(set(column(ends, "Document")[:12].tolist()), {-1})
        other = atlastest.DATA / "models" / "induction"
        self.assert_raise(
            (lambda: corpus.parts(circuit="KQ"), "circuit: expected one of QK, OV; found 'KQ'", ValueError),
            (lambda: corpus.parts(circuit="OV"), "expected the Model of the statistics"),
            (lambda: self.corpus.parts(circuit="OV", model=MODEL), "with Sample Values"),
            (lambda: corpus.parts(circuit="OV", model=other), "expected that of the statistics"),
            kind=atlas.Error,
        )

    def test_contexts_are_those_of_recordings(self):
        best = []
        for line, (weights, tokens) in enumerate(self.attention(LAYER, HEAD)):
            numpy.fill_diagonal(weights, 0)
            weights[:, 0] = 0
            query, key = numpy.unravel_index(weights.argmax(), weights.shape)
            best.append((weights.max(), line, int(query), tokens[query], tokens[key]))
        best.sort(reverse=True)
        table = self.corpus.contexts(LAYER, HEAD, around=64)
        self.assertEqual(len(table), len(LINES))
        numpy.testing.assert_allclose(column(table, "Value"), [row[0] for row in best], atol=1e-6)
        for name, place in (("Document", 1), ("Position", 2), ("Query Token", 3), ("Key Token", 4)):
            self.assertEqual(list(table[name]), [row[place] for row in best], name)
        for text, (_, line, _, query, key) in zip(table["Text"], best):
            self.assertIn(f"[{query}]", text)
            self.assertIn(f"({key})", text)
            plain = text.replace(f"[{query}]", query).replace(f"({key})", key)
            self.assertEqual(plain, LINES[line])
        self.assertEqual(len(self.corpus.contexts(LAYER, HEAD, measure="WrittenNorm", top=2)), 2)

    def test_parts_are_singular_values(self):
        """The variance of q . (k - mean) for independent queries and keys, split by its singular values."""
        queries, keys = (
            numpy.concatenate([kind(LAYER, HEAD, line) for line in range(len(LINES))]).astype(float)
            for kind in (self.recording.queries, self.recording.keys)
        )
        keys -= keys.mean(axis=0)
        count, dimension = queries.shape
        products = queries @ keys.T / dimension**0.5 / count
        expected = numpy.linalg.svd(products, compute_uv=False)[:dimension]
        table = self.corpus.parts(LAYER, HEAD, parts=dimension)
        numpy.testing.assert_allclose(column(table, "Strength"), expected, rtol=2e-4, atol=1e-5)
        numpy.testing.assert_allclose(column(table, "Share"), expected**2 / (expected**2).sum(), rtol=5e-4, atol=1e-6)
        self.assertAlmostEqual(column(table, "Cumulative")[-1], 1, delta=1e-6)
        ends = self.corpus.ends(LAYER, HEAD, parts=2, ends=3)
        self.assertEqual(len(ends), 2 * 2 * 2 * 3)
        vocabulary = {token for line in range(len(LINES)) for token in self.recording.tokens(line)}
        self.assertLessEqual(set(ends["Token"]), vocabulary)

    def test_clusters(self):
        for by in ("Statistics", "Agreement"):
            for count in (1, 3, 16):
                found = column(self.corpus.clusters(count, by), "Cluster")
                self.assertEqual(len(found), 16)
                self.assertEqual(set(found.tolist()), set(range(count)), by)

    def test_command_writes_the_same_bytes(self):
        written = atlastest.OUTPUT / "command.safetensors"
        # The folder as Python knows it: its path is in the file.
        command = (PROGRAM, "corpus", MODEL, self.text, "--window", "20", "--overlap", "4", "-o", written)
        subprocess.run(command, check=True, capture_output=True)
        with self.model.corpus([self.text], window=20, overlap=4) as corpus:
            saved = corpus.save(atlastest.OUTPUT / "saved.safetensors")
        self.assertEqual(saved.read_bytes(), written.read_bytes())

    def test_files(self):
        path = self.corpus.save(atlastest.OUTPUT / "corpus.safetensors")
        with atlas.open(path) as corpus:
            self.assertIsInstance(corpus, atlas.Corpus)
            self.assertEqual((corpus.name, corpus.layer_numbers, corpus.head_count), ("corpus.safetensors", [0, 1], 8))
            for name in self.corpus.columns_of_heads:
                numpy.testing.assert_array_equal(column(corpus.head_table(), name), column(self.corpus.head_table(), name))
            again = corpus.save(atlastest.OUTPUT / "again.safetensors")
            self.assertEqual(again.read_bytes(), path.read_bytes())
        with self.assertRaisesRegex(ValueError, "expected a name that ends with .safetensors"):
            self.corpus.save(atlastest.OUTPUT / "corpus.txt")

    def test_old_names(self):
        """They work, and warn where they are used."""
        recording = self.model.record("And God said")
        with atlas.open(atlastest.TRAINED) as small:
            for thing, old, new in (
                (self.corpus, "layers", "layer_numbers"), (self.corpus, "heads", "head_table"),
                (self.corpus, "tokens", "token_table"), (recording, "layers", "layer_numbers"),
                (recording, "heads", "head_count"), (self.model, "layers", "layer_count"),
                (self.model, "heads", "head_count"), (small, "heads", "head_count"), (small, "tokens", "token_count"),
            ):
                with self.subTest(type(thing).__name__ + "." + old), self.assertWarnsRegex(DeprecationWarning, new) as caught:
                    self.assertEqual(getattr(thing, old), getattr(thing, new))
                self.assertEqual(caught.filename, __file__)

    def test_full_disk(self):
        """One error, the file that was there stays, and nothing half-written is left: from the filter and by the command."""
        folder = atlastest.OUTPUT / "full"
        folder.mkdir(exist_ok=True)
        path = folder / "corpus.safetensors"
        path.write_bytes(b"earlier")
        command = (PROGRAM, "corpus", MODEL, self.text, "-o", path)
        with full_disk(4096):
            simple.SaveData(str(path), proxy=self.corpus.reader)
            self.assert_one_error(f"{path}: ")
            done = subprocess.run(command, capture_output=True, text=True, restore_signals=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{path}: ", done.stderr.splitlines()[-1])
        self.assertEqual([file.read_bytes() for file in folder.iterdir()], [b"earlier"])

    def test_goes_on(self):
        part, options = atlastest.OUTPUT / "part.safetensors", {"batch_tokens": 1}
        with atlas.corpus(MODEL, self.text, tokens=1, **options) as corpus:
            self.assertEqual((corpus.document_count, corpus.is_complete), (1, False))
            self.assertIn("1 documents, not all of the text", repr(corpus))
            corpus.save(part)
        with atlas.corpus(MODEL, self.text, tokens=None, continue_from=part, **options) as corpus:
            continued = corpus.save(atlastest.OUTPUT / "continued.safetensors").read_bytes()
        with atlas.corpus(MODEL, self.text, **options) as corpus:
            self.assertEqual(corpus.save(part).read_bytes(), continued)

    def test_options(self):
        paragraphs = atlastest.OUTPUT / "paragraphs.txt"
        paragraphs.write_text("\n".join(LINES[:2]) + "\n\n" + LINES[2], encoding="utf-8")
        with self.model.corpus(paragraphs, documents="Paragraphs", layers=[1], contexts=1, agreement=False) as corpus:
            self.assertEqual((corpus.document_count, corpus.layer_numbers), (2, [1]))
            self.assertEqual(len(corpus.contexts(1, 0)), 1)
            self.assertEqual(corpus.place(), (1, 0))
        ids = atlastest.OUTPUT / "ids.npy"
        numpy.save(ids, numpy.array([[5, 6, 7], [8, 9, 10]]))
        with self.model.corpus(ids) as corpus:
            self.assertEqual((corpus.token_count, corpus.document_count), (6, 2))

    def test_defaults_are_those_of_the_filters(self):
        for function, made, renamed in (
            (self.corpus.histogram, simple.HeadHistogram(Input=self.corpus.reader), {}),
            (self.corpus.token_table, simple.HeadTokenTable(Input=self.corpus.reader), {}),
            (self.corpus.contexts, simple.TopContexts(Input=self.corpus.reader), {}),
            (self.corpus.ends, simple.ScoreParts(Input=self.corpus.reader), {"circuit": None}),
            (self.corpus.clusters, simple.HeadScatter(Input=self.corpus.reader), {"count": "Clusters", "by": "ClusterBy"}),
            (atlas.corpus, simple.CorpusStatistics(Input=self.model.reader), {"tokens": "TokenLimit"}),
        ):
            for option, parameter in inspect.signature(function).parameters.items():
                name = renamed.get(option, "".join(map(str.capitalize, option.split("_"))))
                if name is not None and parameter.default not in (None, (), parameter.empty):
                    self.assertEqual(str(getattr(made, name)).strip("'"), str(parameter.default), option)
            simple.Delete(made)
        parts = [column(part, "Strength").tolist() for part in (self.corpus.parts(), self.corpus.table("ScoreParts"))]
        self.assertEqual(*parts)

    def test_summary(self):
        self.assertEqual(
            repr(self.corpus), f"<Corpus corpus: 2 layers, 8 heads, {self.corpus.token_count} tokens of 4 documents>"
        )
        previous = column(self.corpus.head_table(), "Previous Token")
        best = int(previous.argmax())
        self.assertIn(f"{best // 8}.{best % 8}: {previous[best]:.3f}", self.corpus._repr_html_())
        corpus = self.model.corpus(self.text)
        corpus.close()
        corpus.close()
        self.assertEqual(repr(corpus), "<Corpus corpus: closed>")
        uses = (corpus.head_table, corpus.token_table, lambda: texts.scatter(corpus))
        self.assert_raise(*((use, "corpus is closed|safetensors is closed") for use in uses))

    def test_bad_input(self):
        self.assert_raise(
            (lambda: atlas.corpus(MODEL, []), "files: expected at least one file of text, found none"),
            (lambda: atlas.corpus(MODEL, "none.txt"), "none.txt: no such file", FileNotFoundError),
            (lambda: atlas.corpus(MODEL, self.text, tokens=0), "tokens: expected 1 to"),
            (lambda: atlas.corpus(MODEL, self.text, documents="Words"), "documents: expected one of Lines"),
            (lambda: atlas.corpus(MODEL, self.text, colour=1), "CorpusStatistics: expected an option among", TypeError),
            (lambda: atlas.corpus(MODEL, self.text, continue_from="none"), "none: no such file", FileNotFoundError),
            (lambda: self.corpus.token_table(2), "layer: expected one of 0, 1, found 2|0 to 1, found 2"),
            (lambda: self.corpus.histogram(quantity="Love"), "quantity: expected one of Entropy, Strongest"),
            (lambda: self.corpus.parts(0, 8), "head: expected 0 to 7, found 8"),
            (lambda: self.corpus.parts(0, "mean"), "head: expected a number, found 'mean'"),
            (lambda: self.corpus.contexts(measure="Love"), "measure: expected one of Score, Attention"),
            (lambda: self.corpus.clusters(by="Love"), "cluster_by: expected one of Statistics, Agreement"),
            (lambda: texts.scatter(self.corpus, x="Love"), "x: expected one of Entropy, .*; found 'Love'"),
            (lambda: texts.scatter(self.corpus, clusters=0), "clusters: expected 1 to 20, found 0"),
            (lambda: texts.contexts(self.corpus, top=0), "top: expected 1 to 50, found 0"),
            (lambda: texts.contexts(self.corpus, measure="Love"), "measure: expected one of Score, "),
            (lambda: atlas.Corpus(MODEL / "tokenizer.json"), "tokenizer.json: "),
            (lambda: atlas.corpus(MODEL, self.text, window=1), "Window: expected 2 to 128 tokens, .* found 1", atlas.Error),
        )


class TextFigures(AtlasTest):
    """Figures of a larger text."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = atlastest.OUTPUT / "prose.safetensors"
        text = atlastest.write_prose()
        command = (PROGRAM, "corpus", MODEL, text, "--documents", "Paragraphs", "--tokens", "3000", "-o", cls.path)
        subprocess.run(command, check=True, capture_output=True)

        cls.corpus = atlas.open(cls.path)
        cls.addClassCleanup(cls.corpus.close)

    def test_scatter(self):
        figure = texts.scatter(self.corpus, x="Entropy", y="Sink", size="Written Norm", clusters=3)
        axes = figure.axes[0]
        heads, (points,) = self.corpus.head_table(), axes.collections
        places = numpy.stack([column(heads, "Entropy"), column(heads, "Sink")], axis=1)
        numpy.testing.assert_allclose(points.get_offsets(), places)
        norm = column(heads, "Written Norm")
        share = (norm - norm.min()) / (norm.max() - norm.min())
        numpy.testing.assert_allclose(points.get_sizes(), 6 + 64 * share)
        self.assertEqual((axes.get_xlabel(), axes.get_ylabel()), ("Entropy", "Sink"))
        cluster = column(self.corpus.clusters(3), "Cluster")
        colors = [to_hex(color) for color in points.get_facecolors()]
        self.assertEqual(len({(group, color) for group, color in zip(cluster, colors)}), 3)
        names = {text.get_text(): text.xy for text in axes.texts}
        self.assertGreater(len(names), 8)
        for name, place in names.items():
            layer, head = map(int, name.split("."))
            numpy.testing.assert_allclose(place, places[8 * layer + head])
        colored = texts.scatter(self.corpus, color="Copying").axes
        numpy.testing.assert_allclose(colored[0].collections[0].get_array(), column(heads, "Copying"))
        self.assertEqual(colored[1].get_ylabel(), "Copying")

    def test_contexts(self):
        table = self.corpus.contexts(LAYER, HEAD, top=6)
        axes = texts.contexts(self.corpus, LAYER, HEAD, top=6).axes[0]
        rectangles = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        marks = {texts.QUERY: [], texts.KEY: [], texts.BOTH: []}
        for rectangle in rectangles[2:]:  # after the legend
            x, y = rectangle.get_xy()
            (text,) = (
                text for text in axes.texts
                if x < text.get_position()[0] < x + rectangle.get_width() - 1e-9
                and y < text.get_position()[1] < y + rectangle.get_height()
            )
            self.assertEqual(text.get_color(), "black")
            marks[to_hex(rectangle.get_facecolor())].append(text.get_text())

        def shown(name):
            return [token.replace("\n", "\u21b5") for token in table[name]]

        self.assertEqual(marks[texts.QUERY], shown("Query Token"))
        self.assertEqual(marks[texts.KEY], shown("Key Token"))
        numbers = [text.get_text() for text in axes.texts if text.get_ha() == "right"]
        self.assertEqual(numbers, [f"{value:.3g}" for value in table["Value"]])

    def test_token_table(self):
        figure = texts.token_table(self.corpus, LAYER, HEAD, top=7)
        for axes, order, name in zip(figure.axes, ("ToTotal", "FromTotal"), ("To Total", "From Total")):
            table = self.corpus.token_table(LAYER, HEAD, sort_by=order, top=7)
            widths = [bar.get_width() for bar in axes.containers[0]]
            numpy.testing.assert_allclose(widths, column(table, name))
            self.assertEqual([text.get_text() for text in axes.texts], [f"{n}\u00d7" for n in table["Occurrences"]])

    def test_parts(self):
        left, right = texts.parts(self.corpus, LAYER, HEAD, count=5).axes
        table = self.corpus.parts(LAYER, HEAD, parts=5)
        numpy.testing.assert_allclose([bar.get_height() for bar in left.containers[0]], column(table, "Share"))
        numpy.testing.assert_allclose(left.lines[0].get_ydata(), column(table, "Cumulative"))
        ends = self.corpus.ends(LAYER, HEAD, parts=1, ends=1)
        first = column(ends, "Token")[(column(ends, "Kind") == 0) & (column(ends, "End") == "Highest")][0]
        written = [text.get_text() for text in right.texts]
        row = written.index("1+")
        self.assertEqual(written[row + 1], "query")
        self.assertTrue(written[row + 2].startswith(first.replace(" ", "\u00b7")), written[row + 2])

    def test_what_was_not_kept(self):
        text = atlastest.OUTPUT / "short.txt"
        text.write_text("In the beginning", encoding="utf-8")
        with atlas.corpus(MODEL, text, contexts=0, samples=0) as corpus:
            self.assertEqual(len(corpus.contexts()), 0)
            self.assertIn("none was kept", [text.get_text() for text in texts.contexts(corpus).axes[0].texts])
            self.assertEqual(len(corpus.ends()), 0)
            self.assertEqual(len(texts.parts(corpus).axes), 2)

    def test_text_has_its_place(self):
        """No word leaves the page, meets another, or is smaller than 5 points."""
        for options in ({}, {"width_mm": 89}, {"font_size": 9}):
            for draw, own in (
                (texts.scatter, {}), (texts.scatter, {"x": "Mean Distance", "size": "Sink", "color": "Entropy"}),
                (texts.contexts, {"layer": LAYER, "head": HEAD}), (texts.contexts, {"measure": "Score", "around": 64}),
                (texts.token_table, {"layer": LAYER, "head": HEAD}), (texts.parts, {"layer": LAYER, "head": HEAD}),
            ):
                figure = draw(self.corpus, **own, **options)
                self.assertEqual(overlaps(figure), [], f"{draw.__name__} {own} {options}")
                sizes = [text.get_fontsize() for axes in figure.axes for text in axes.texts]
                self.assertGreaterEqual(min(sizes), 5)

    def test_places_of_the_user(self):
        whole, panels = pyplot.subplots(1, 2, figsize=(8, 4))
        self.addCleanup(pyplot.close, whole)
        self.assertIs(texts.scatter(self.corpus, ax=panels[0]), whole)
        self.assertIs(texts.contexts(self.corpus, LAYER, HEAD, ax=panels[1]), whole)
        self.assertTrue(panels[0].collections and panels[1].patches)
        with self.assertRaisesRegex(ValueError, "ax: this figure has 2 panels; give figure="):
            texts.parts(self.corpus, ax=panels[0])

    def test_rendered_files(self):
        folder = atlastest.OUTPUT / "figures"
        command = (PROGRAM, "figures", self.path, "--layer", str(LAYER), "--head", str(HEAD), "--width", "600", "-o", folder)
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        names = [f"prose-{name}.png" for name in texts.FIGURES]
        self.assertEqual(done.stdout.splitlines(), [str(folder / name) for name in names])
        for name in names:
            self.assertEqual(atlastest.read_picture(folder / name).shape[1], 600)
        failed = subprocess.run((PROGRAM, "figures", self.path, "--x", "Love"), capture_output=True, text=True)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("x: expected one of Entropy, ", failed.stderr)

    def test_view_data_of_all_filters(self):
        """table() makes those of any filter of a corpus."""
        table = self.corpus.table("HeadScatter", layout="SimilarAttention")
        self.assertEqual(len(table), 16)
