"""Maps, matrices, scores, circuits, tokens, patches and what heads write on several MPI ranks are as on one, to the byte."""

import atlastest
import numpy
import picturedrecording
from atlastest import RANKS, RECORD, read_transformer
from attentionatlas._internal import data
from paraview import servermanager, simple
from ranktest import RankTest

OF_SCORES = ("Sink", "Induction", "Copying", "Layer", "Head")


class HeadViews(RankTest):
    def setUp(self):
        super().setUp()
        self.model = read_transformer("gpt2")
        prompts = simple.RandomPrompts(Kind="RepeatedBlock", Length=60, Block=15, Count=2, IdRange=[0, 199])
        self.recording = simple.TransformerRecorder(Input=self.model, Tokens=prompts)

    def test_maps(self):
        for quantity in ("NormWeighted", "Rollout"):
            for sequence in (-1, 1):
                attention = simple.AttentionMap(Input=self.recording, Sequence=sequence, Layer=1, Head=-1, Quantity=quantity)
                self.assert_image(f"map-{quantity}-{sequence}", attention)

    def test_what_the_pointer_says(self):
        """Of squares of any rank, and of the label of a row."""
        attention = simple.AttentionMap(Input=self.recording, Sequence=1, Layer=1, Head=0)
        weights = self.image_arrays(attention)["Weights"].reshape(60, 60)[::-1]  # from above
        text = servermanager._getPyProxy(servermanager.ProxyManager().NewProxy("internal_filters", "PointedText"))
        text.Input, text.Quantities = attention, "Weights"

        def said(key, query):
            text.Place = [key, -query]
            text.UpdatePipeline()
            return text.GetDataInformation().GetFieldDataInformation().GetArrayInformation("Text").GetStringValue(0)

        for query, key in ((2, 1), (31, 7), (57, 57)):
            lines = said(key, query).split("\n")
            self.assertEqual(lines[0], "Layer 1, head 0")
            self.assertRegex(lines[1], f'^Query {query}: "')
            self.assertRegex(lines[2], f'^Key {key}: "')
            self.assertEqual(lines[3:], [f"Weights: {weights[query, key]:.4g}"])
            self.assertEqual(said(-9, query), lines[1])

    def test_pooled_maps(self):
        attention = simple.AttentionMap(Input=self.recording, MaximumSize=30, Resolution=20, Head=1)
        self.assert_image("map-pooled", attention)
        attention.QueryWindow, attention.Pooling = (30, 47), "Mean"
        self.assert_image("map-window", attention)
        matrix = simple.AttentionMatrix(Input=self.recording, MaximumSize=12, KeyWindow=(10, 33))
        self.assert_image("matrix-window", matrix)

    def test_matrix(self):
        matrix = simple.AttentionMatrix(Input=self.recording, MaximumSize=25)
        self.assert_image("matrix", matrix)
        matrix.Pooling = "Mean"
        self.assert_image("matrix-mean", matrix)
        matrix.Scores, matrix.SortBy = simple.HeadScores(Input=self.recording), "Induction"
        self.assert_image("matrix-sorted", matrix)
        matrix.Quantity = "Rollout"
        self.assert_image("matrix-rollout", matrix)
        matrix.Layer = 7
        matrix.UpdatePipeline()
        self.assert_one_error("layer 7 is not in the recording")
        matrix.Layer = -1
        self.assert_image("mended", matrix)

    def test_scores(self):
        scores = simple.HeadScores(Input=self.recording, Model=self.model)
        self.assert_tables("scores", scores)
        self.assert_image("scores-image", scores, 1, OF_SCORES)
        scores.Measure = "Stripe"
        self.assert_tables("scores-stripe", scores)

    def test_kinds_of_attention(self):
        recording = simple.TransformerRecorder(
            Input=read_transformer("bart"), TokenIds="5 7 9 11\n8 6 4\n3 12 15 20 22", Targets="9 8\n7\n6 5 4"
        )
        for kind in ("Decoder", "Encoder", "Cross"):
            shown = {"Input": recording, "AttentionKind": kind}
            self.assert_image(f"map-{kind}", simple.AttentionMap(Sequence=2, Layer=1, **shown))
            self.assert_image(f"matrix-{kind}", simple.AttentionMatrix(Sequence=2, **shown))
            self.assert_tables(f"focus-{kind}", simple.AttentionFocus(Per="Query", **shown))
            scores = simple.HeadScores(**shown)
            self.assert_tables(f"scores-{kind}", scores)
            self.assert_image(f"scores-{kind}-image", scores, 1, OF_SCORES)

    def test_patching(self):
        patching = simple.ActivationPatching(
            Input=self.model, Prompt="1 2 3 4 5 6 7", PatchFrom="7 9 3 2 8 6 7", Target="#3", Against="#8"
        )
        for site, column in (("HeadOutput", "Head"), ("Residual", "Position"), ("MlpOutput", "Position")):
            patching.Site = site
            self.assert_tables(f"patching-{site}", patching)
            self.assert_image(f"patching-{site}-image", patching, 1, ("Layer", column, "Logit Difference", "Effect"))
        patching.Target = "#999"
        self.assert_told_once((patching, "999"))


class Analyses(RankTest):
    def setUp(self):
        super().setUp()
        self.model = read_transformer("gpt2")
        lines = "\n".join(" ".join(str(7 * i * k % 200) for i in range(1, 18)) for k in range(1, 5))
        self.recording = simple.TransformerRecorder(Input=self.model, TokenIds=lines, Record=RECORD)
        self.inputs = {"Input": self.recording, "Model": self.model}

    def test_where_heads_look_and_what_they_write(self):
        for per in ("Head", "Query"):
            self.assert_tables(per, simple.AttentionFocus(Input=self.recording, Per=per), 0, 1)
        self.assert_tables("updates", simple.HeadUpdates(**self.inputs), 0, 1, 2, 3)
        self.assert_tables("breakdown", simple.ScoreBreakdown(**self.inputs), 0, 1)

    def test_attribution(self):
        for name, source, table, image, arrays in (
            ("logits", simple.LogitAttribution(**self.inputs), 0, 1, ["Contribution", "Layer", "Head", "Position"]),
            ("lens", simple.LogitLens(**self.inputs), 1, 0, ["Probability", "TokenId", "Next Rank", "Layer"]),
            ("pairs", simple.ScoreAttribution(Layer=1, **self.inputs), 1, 0, ["ScoreContribution", "Query Head", "Key Head"]),
        ):
            self.assert_tables(name, source, table)
            shown = simple.PassArrays(Input=simple.OutputPort(source, image), PointDataArrays=arrays)
            self.assert_as_on_one_rank(f"{name}-image", self.image_arrays(shown))

    def test_circuits(self):
        """Ranks share the sources of skip-trigrams."""
        self.assert_first("bigrams", simple.BigramTable(Input=self.model))
        self.assert_first("trigrams", simple.SkipTrigrams(Input=self.model, Layer=1, Head=2))
        self.assert_first("sources", simple.SkipTrigrams(Input=self.model, Tokens=["5", "7"]))
        circuit = simple.HeadCircuit(Input=self.model, Layer=1, Head=2)
        self.assert_first("circuit", circuit)
        self.assert_image("entries", circuit, 1, ["QK"])

    def test_attention_tokens(self):
        """Ranks share the vocabulary."""
        tokens = simple.AttentionTokens(**self.inputs, Layer=-1, Sequence=-1, Top=3)
        self.assert_first("tokens", tokens, 0, 1, 2, 3)
        self.assert_first("shared", simple.SharedTokens(Input=tokens))
        self.assert_first("layout", simple.AttentionTokenLayout(Input=tokens, Model=self.model, Iterations=50))

    def test_errors_come_once(self):
        bare = simple.TransformerRecorder(Input=self.model, TokenIds="1 2 3", Record=["QueriesAndKeys"])
        inputs = {"Input": bare, "Model": self.model}
        self.assert_told_once(
            (simple.AttentionFocus(Input=bare, SinkThreshold=2), "SinkThreshold"),
            (simple.HeadUpdates(Input=bare), "record HeadOutputs"),
            (simple.ScoreBreakdown(Query=3, **inputs), "Query: expected"),
            (simple.AttentionMap(Input=bare, Head=9), "expected a head"),
            (simple.LogitAttribution(**inputs), "HeadOutputs and Residual"),
            (simple.LogitLens(**inputs), "recording with Residual"),
            (simple.ScoreAttribution(**inputs), "HeadOutputs and Residual"),
            (simple.AttentionTokens(Head=9, **inputs), "Head: expected -1 for all, or 0 to 3, found 9"),
            *(
                (proxy(Input=self.model, Tokens=["the"]), "Tokens: expected an id from 0 to 210")
                for proxy in (simple.BigramTable, simple.HeadCircuit, simple.SkipTrigrams)
            ),
        )


class Patches(RankTest):
    """The first rank has all cells; each has a part of the picture."""

    def test_images(self):
        recorder = self.record_images()
        patches = simple.PatchAttention(Input=recorder, Sequence=1, Layer=1, Head=2)
        images = atlastest.read_safetensors(recorder.Images[0])[0]["pixel_values"]
        pixels = numpy.clip(numpy.floor((images[1].astype(float) / 2 + 0.5) * 255 + 0.5), 0, 255).transpose(1, 2, 0)
        for _ in range(2):  # asked for first, and after the others
            numpy.testing.assert_array_equal(data.image(patches, "PictureColor", port=3)[::-1], pixels)
            count = sum(part.GetNumberOfPoints() for part in self.parts(patches, 3))
            self.assertLess(count, 32 * 32 + 33 * RANKS)  # parts share their borders
            self.assert_first("cells", patches, 0, 1, 4)
        patches.Selection = simple.IDSelectionSource(IDs=[0, 5], FieldType="CELL")
        chosen = self.first(patches, 4).GetCellData().GetArray("Token Index")
        self.assertEqual([chosen.GetValue(i) for i in range(chosen.GetNumberOfTuples())], [17 + 5])
        self.assert_told_once((simple.PatchAttention(Input=recorder, Patch=[4, 0]), "found 4 0"))

    def test_words_on_pictures(self):
        path = picturedrecording.write_recording(atlastest.OUTPUT / "pictured.safetensors")
        recording = atlastest.read_recording(path)
        patches = simple.PatchAttention(Input=recording, Token=picturedrecording.DISC)
        self.assert_first("words", patches, 0, 1, 2)
        whole = data.image(patches, "PictureColor", port=3)[::-1]
        for left, picture in zip((0, 5 * picturedrecording.TOKEN), picturedrecording.pictures()):
            height, width = picture.shape[:2]
            numpy.testing.assert_array_equal(whole[:height, left : left + width], picture)
