"""Models with an encoder and a decoder: their three kinds of attention in recordings, files, views and tables.

Expected values are those of the original code, in Testing/Oracle.
"""

import attentionatlas as atlas
import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas._internal import data
from paraview import simple

MODELS = atlastest.ORACLE.parent / "models" / "transformers"
KINDS = ("Decoder", "Encoder", "Cross")


def lines(rows):
    return "\n".join(" ".join(map(str, row)) for row in rows)


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
        reader = simple.TransformerReader(FileName=str(MODELS / name / "config.json"))
        given = {"TokenIds": lines(self.sources), "Targets": lines(row[1:] for row in self.targets)}
        return simple.TransformerRecorder(Input=reader, **{**given, **options})

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
                self.check_maps(simple.RecordingReader(FileName=file))

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
            with model.record(token_ids=lines(self.sources), targets=lines(row[1:] for row in self.targets)) as whole:
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
            with model.record(token_ids=lines(self.sources), targets=lines(row[1:] for row in self.targets)) as whole:
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
                with self.assertRaisesRegex(ValueError, "kind: expected Decoder, Encoder or Cross, found Self."):
                    whole.part("Self")
                focus = whole.part("Cross").focus(per="Query")
                weights = self.attention("Cross", 0, 0, 0)
                entropy = -(weights * numpy.log(weights)).sum(axis=1) / numpy.log(weights.shape[1])
                self.assert_close(numpy.array(focus["Entropy"])[: len(entropy)], entropy)

    def test_sounds(self):
        self.expected("whisper")
        folder = MODELS / "whisper"
        reader = simple.TransformerReader(FileName=str(folder / "config.json"))
        sounds = [str(folder / f"sound-{i}.wav") for i in range(2)]
        targets = lines(row[1:] for row in self.targets)
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


if __name__ == "__main__":
    atlastest.main()
