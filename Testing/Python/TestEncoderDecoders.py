"""Models with an encoder and a decoder: their three kinds of attention in recordings, files, views and tables.

Expected values are those of the original code, in Testing/Oracle.
"""

import attentionatlas as atlas
import atlastest
import numpy
from atlastest import MODELS, AtlasTest, read_recording, read_transformer, token_lines
from attentionatlas._internal import data
from paraview import simple

KINDS = ("Decoder", "Encoder", "Cross")


class EncoderDecoders(AtlasTest):
    def expected(self, name):
        self.values, _ = atlastest.read_safetensors(MODELS / name / "expected.safetensors")
        targets = self.values["decoder_attention_mask"] != 0
        self.targets = [row[kept] for row, kept in zip(self.values["decoder_input_ids"], targets)]
        if "input_ids" in self.values:
            sources = self.values["attention_mask"] != 0
            self.sources = [row[kept] for row, kept in zip(self.values["input_ids"], sources)]

    def record(self, name, **options):
        """A recording of a model on its tokens; the start token comes by itself."""
        given = {"TokenIds": token_lines(self.sources), "Targets": token_lines(row[1:] for row in self.targets)}
        return simple.TransformerRecorder(Input=read_transformer(name), **{**given, **options})

    def attention(self, kind, layer, head, sequence):
        """What the original computed, without padding: [queries, keys]."""
        array = self.values[f"{kind.lower()}.layer.{layer}.attention"][sequence, head]
        source, target = (len(side[sequence]) for side in (self.sources, self.targets))
        return array[: source if kind == "Encoder" else target, : target if kind == "Decoder" else source]

    def check_maps(self, recording):
        for kind in KINDS:
            for sequence in range(2):
                shown = simple.AttentionMap(Input=recording, AttentionKind=kind, Layer=1, Head=1, Sequence=sequence)
                shown.UpdatePipeline()
                found = data.image(shown, "Weights")[::-1]
                self.assert_close(found, self.attention(kind, 1, 1, sequence))
                self.assertEqual(shown.GetProperty("HasKindsInfo").GetData(), 1)

    def test_maps_of_all_kinds_are_those_of_the_original(self):
        for name in ("t5", "t5-v1_1", "bart", "marian"):
            with self.subTest(model=name):
                self.expected(name)
                recording = self.record(name)
                self.check_maps(recording)
                file = str(atlastest.OUTPUT / f"{name}.safetensors")
                simple.SaveData(file, recording)
                self.check_maps(read_recording(file))

    def test_generated_tokens_are_time_of_cross_attention(self):
        self.expected("bart")
        recording = self.record("bart", Targets="", GenerateTokens=8)
        shown = simple.AttentionMap(Input=recording, AttentionKind="Cross")
        scene = simple.GetAnimationScene()
        scene.UpdateAnimationUsingDataTimeSteps()
        heights = []
        for time in (0, 3, 8):
            shown.UpdatePipeline(time)
            heights.append(data.image(shown, "Weights").shape)
        source = len(self.sources[0])
        self.assertEqual(heights, [(1, source), (4, source), (9, source)])
        recording.UpdatePipeline(8)
        tokens = data.blocks(data.first_part(recording))["tokens"].GetColumnByName("TokenId")
        self.assertEqual([tokens.GetValue(i) for i in range(9)], self.values["greedy"][0].tolist())

    def test_the_bias_of_distances_is_a_term_of_scores(self):
        self.expected("t5")
        with atlas.open(MODELS / "t5") as model:
            with model.record(token_ids=token_lines(self.sources), targets=token_lines(row[1:] for row in self.targets)) as whole:
                for kind in KINDS:
                    part = whole.part(kind)
                    with self.subTest(kind=kind):
                        table = part.score_parts(layer=1, head=2, sequence=0)
                        self.assertEqual("Distance Bias" in table, kind != "Cross")
                        name = f"{kind.lower()}.layer.1.scores"
                        scores = self.values[name][0, 2]
                        found = scores[numpy.array(table["Query"]), numpy.array(table["Key"])]
                        self.assert_close(numpy.array(table["Score"]), found)
                        if kind != "Cross":
                            bias = self.values[f"{kind.lower()}.position_bias"][2]
                            found = bias[numpy.array(table["Query"]), numpy.array(table["Key"])]
                            self.assert_close(numpy.array(table["Distance Bias"]), found)

    def test_parts_in_python(self):
        self.expected("marian")
        with atlas.open(MODELS / "marian") as model:
            with model.record(token_ids=token_lines(self.sources), targets=token_lines(row[1:] for row in self.targets)) as whole:
                for kind in KINDS:
                    part = whole.part(kind)
                    for sequence in range(2):
                        found = part.attention(1, 0, sequence)
                        self.assert_close(found, self.attention(kind, 1, 0, sequence))
                        panels = part.panels(1000, sequence)
                        self.assert_close(panels[1, 0], self.attention(kind, 1, 0, sequence))
                lengths = [len(source) + len(target) for source, target in zip(self.sources, self.targets)]
                self.assertEqual(whole.part("Cross").lengths, lengths)
                self.assertIs(whole.part("Decoder"), whole)
                with self.assertRaisesRegex(ValueError, "kind: expected one of Decoder, Encoder, Cross; found .Self."):
                    whole.part("Self")
                focus = whole.part("Cross").focus(per="Query")
                weights = self.attention("Cross", 0, 0, 0)
                entropy = -(weights * numpy.log(weights)).sum(axis=1) / numpy.log(weights.shape[1])
                self.assert_close(numpy.array(focus["Entropy"])[: len(entropy)], entropy)

    def test_figures_of_cross_attention_have_the_words_of_both_sides(self):
        self.expected("marian")
        with atlas.open(MODELS / "marian") as model:
            with model.record(token_ids=token_lines(self.sources), targets=token_lines(row[1:] for row in self.targets)) as whole:
                cross = whole.part("Cross")
                words = [cross.tokens(1)[: len(self.sources[1])], cross.tokens(1)[len(self.sources[1]) :]]
                weights = self.attention("Cross", 1, 0, 1)
                axes = atlas.heads.weights(cross, 1, 0, 1).axes[0]
                shown = [[label.get_text() for label in axis.get_ticklabels()] for axis in (axes.xaxis, axes.yaxis)]
                self.assertEqual(shown, [[word.strip() or repr(word) for word in side] for side in words])
                self.assert_close(numpy.array(axes.images[0].get_array()), weights)
                axes = atlas.sentence.lines(cross, 1, 0, 1, threshold=0.0).axes[0]
                self.assertEqual(len(axes.collections[0].get_segments()), weights.size)
                bars = sorted(bar.get_width() for bar in axes.patches)
                received = numpy.sort(weights.sum(axis=0))
                self.assert_close(numpy.array(bars) / bars[-1], received / received[-1])

    def test_figures_of_the_parts_of_scores_are_of_the_queries(self):
        self.expected("t5")
        with atlas.open(MODELS / "t5") as model:
            with model.record(token_ids=token_lines(self.sources), targets=token_lines(row[1:] for row in self.targets)) as whole:
                axes = atlas.focus.breakdown(whole.part("Cross"), 1, 2, 0, ranks=1).axes[0]
                self.assertEqual(axes.get_xlim(), (-0.5, len(self.targets[0]) - 0.5))

    def cross(self, quantity, layer, head):
        """A quantity of all tokens of the targets, or for key of the sources: [tokens, columns]."""
        sides = self.sources if quantity == "key" else self.targets
        array = self.values[f"cross.layer.{layer}.{quantity}"][:, head]
        return numpy.concatenate([array[s, : len(side)] for s, side in enumerate(sides)]).astype(float)

    def test_scores_of_cross_attention(self):
        for name in ("t5", "bart"):
            self.expected(name)
            table = data.table(simple.HeadScores(Input=self.record(name), AttentionKind="Cross"))
            with self.subTest(model=name):
                self.assertEqual(set(table), {"Layer", "Head", "Duplicate Token", "Sink"})
                copies, sinks = [], []
                for layer, head in zip(table["Layer"], table["Head"]):
                    both = [self.attention("Cross", layer, head, s) for s in range(2)]
                    sinks.append(numpy.concatenate([weights[:, 0] for weights in both]).mean())
                    same = [numpy.equal.outer(self.targets[s], self.sources[s]) for s in range(2)]
                    self.assertTrue(any(pairs.any() for pairs in same))
                    found = sum((weights * pairs).sum() for weights, pairs in zip(both, same))
                    copies.append(found / sum(weights.sum() for weights in both))
                self.assert_close(table["Sink"], numpy.array(sinks))
                self.assert_close(table["Duplicate Token"], numpy.array(copies))

    def test_scores_are_colored_by_one_that_the_kind_has(self):
        self.expected("bart")
        view = simple.CreateRenderView()
        scores = simple.HeadScores(Input=self.record("bart"))
        display = simple.Show(simple.OutputPort(scores, 1), view)
        simple.Render(view)
        self.assertEqual(display.ColorArrayName[1], "Previous Token", "no token is repeated")
        scores.AttentionKind = "Cross"
        simple.Render(view)
        self.assertEqual(display.ColorArrayName[1], "Sink")

    def test_an_embedding_of_cross_attention(self):
        self.expected("bart")
        embedding = simple.HeadEmbedding(
            Input=self.record("bart"), AttentionKind="Cross", Arrangement="Overlaid", KeyScaling="None"
        )
        points, heads = atlastest.point_arrays(embedding), data.table(embedding, 1)
        source, target = sum(map(len, self.sources)), sum(map(len, self.targets))
        places = data.points(data.fetch(embedding))
        for row, (layer, head) in enumerate(zip(heads["Layer"], heads["Head"])):
            query, key = self.cross("query", layer, head), self.cross("key", layer, head)
            first = row * (source + target)
            norms = numpy.linalg.norm(numpy.concatenate([query, key]), axis=1)
            self.assert_close(points["Norm"][first : first + source + target], norms, 1e-4)
            key = key + query.mean(axis=0) - key.mean(axis=0)
            joint = numpy.concatenate([query, key])
            joint -= joint.mean(axis=0)
            values, axes = numpy.linalg.svd(joint, full_matrices=False)[1:]
            self.assertAlmostEqual(heads["Variance Explained"][row], (values[:2] ** 2).sum() / (values**2).sum(), 5)
            found = places[first : first + source + target, :2]
            self.assert_close(abs(found), abs(joint @ axes[:2].T), 1e-3)
            dots, distances = [], []
            starts = [numpy.cumsum([0] + [len(side) for side in sides]) for sides in (self.targets, self.sources)]
            for s in range(2):
                q = query[starts[0][s] : starts[0][s + 1]]
                k = key[starts[1][s] : starts[1][s + 1]]
                dots.append((q @ k.T).ravel())
                distances.append(numpy.linalg.norm(q[:, None] - k[None], axis=2).ravel())
            pearson = numpy.corrcoef(numpy.concatenate(dots), numpy.concatenate(distances))[0, 1]
            self.assertAlmostEqual(heads["Correlation"][row], pearson, 5)

    def test_a_contrast_of_cross_attention(self):
        self.expected("bart")
        contrast = simple.QueryKeyContrast(Input=self.record("bart"), AttentionKind="Cross")
        table = data.table(contrast, 1)
        columns = (table[name] for name in ("Layer", "Head", "Index", "Score Difference"))
        for layer, head, index, value in zip(*columns):
            if index > 0:
                continue
            scores, same = [], []
            for s in range(2):
                shape = len(self.targets[s]), len(self.sources[s])
                scores.append(self.values[f"cross.layer.{layer}.scores"][s, head, : shape[0], : shape[1]].ravel())
                same.append(numpy.equal.outer(self.targets[s], self.sources[s]).ravel())
            scores, same = numpy.concatenate(scores).astype(float), numpy.concatenate(same)
            self.assert_close(value, scores[same].mean() - scores[~same].mean(), 1e-4)

    def test_sounds(self):
        self.expected("whisper")
        reader = read_transformer("whisper")
        sounds = [str(MODELS / "whisper" / f"sound-{i}.wav") for i in range(2)]
        targets = token_lines(row[1:] for row in self.targets)
        recording = simple.TransformerRecorder(Input=reader, Sounds=sounds, Targets=targets)
        for sequence in range(2):
            for kind in KINDS:
                shown = simple.AttentionMap(Input=recording, AttentionKind=kind, Layer=1, Head=3, Sequence=sequence)
                shown.UpdatePipeline()
                array = self.values[f"{kind.lower()}.layer.1.attention"][sequence, 3]
                target = len(self.targets[sequence])
                rows = array.shape[0] if kind == "Encoder" else target
                columns = target if kind == "Decoder" else array.shape[1]
                self.assert_close(data.image(shown, "Weights")[::-1], array[:rows, :columns])

    def test_encoders_of_sound_alone(self):
        for name in ("wav2vec2-a", "audio-spectrogram-transformer-a"):
            with self.subTest(model=name):
                folder = atlastest.ORACLE.parent / "v5" / "sound" / name
                values, _ = atlastest.read_safetensors(folder / "expected.safetensors")
                model = atlas.open(folder)
                recording = model.record(sounds=[str(folder / f"sound-{i}.wav") for i in range(2)])
                cut = [error for error in self.take_errors() if "sound-1.wav: the model reads its first 0." in error]
                self.assertEqual(len(cut), int(name.startswith("audio")), "AST reads sounds of one length")
                for sequence in range(2):
                    for head in range(3):
                        found = recording.attention(1, head, sequence)
                        self.assert_close(found, values[f"{sequence}.attention.1"][head])
                numpy.save(atlastest.OUTPUT / f"{name}.npy", values["0.input_values"][None])
                given = model.record(sounds=[str(atlastest.OUTPUT / f"{name}.npy")])
                self.assert_close(given.attention(1, 2), values["0.attention.1"][2])
                with self.assertRaisesRegex(atlas.Error, "expected sounds for a model of architecture"):
                    model.record(token_ids="1 2")

    def test_a_sentence_has_two_texts(self):
        self.expected("bart")
        view = simple.CreateRenderView()
        sentence = simple.AttentionSentence(Input=self.record("bart"), AttentionKind="Cross", Sequence=0)
        display = simple.Show(simple.OutputPort(sentence, 1), view)
        simple.Render(view)
        self.assertEqual(display.Representation, "Token Labels")
        sides = numpy.array(atlastest.point_arrays(simple.OutputPort(sentence, 1))["Side"])
        self.assertEqual((sides == 0).sum(), len(self.targets[0]))
        self.assertEqual((sides == 1).sum(), len(self.sources[0]))
