"""Maps, matrices and scores of heads on several MPI ranks are as on one, to the byte.

On the first of its numbers of ranks this test leaves its arrays for the others.
"""

import atlastest
from atlastest import AtlasTest
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy

TRANSFORMERS = atlastest.ORACLE.parent / "transformers"


class HeadViews(AtlasTest):
    def setUp(self):
        super().setUp()
        self.model = simple.TransformerReader(FileName=str(TRANSFORMERS / "gpt2" / "config.json"))
        prompts = simple.RandomPrompts(Kind="RepeatedBlock", Length=60, Block=15, Count=2, IdRange=[0, 199])
        self.recording = simple.TransformerRecorder(Input=self.model, Tokens=prompts)

    def table(self, source):
        source.UpdatePipeline()
        table = source.GetClientSideObject().GetOutputDataObject(0)  # of the first rank
        columns = [table.GetColumn(c) for c in range(table.GetNumberOfColumns())]
        return {c.GetName(): vtk_to_numpy(c).copy() for c in columns if c.IsNumeric()}

    def assert_image(self, name, source, port=0, arrays=("Sink", "Induction", "Copying", "Layer", "Head")):
        output = simple.OutputPort(source, port)
        if port > 0:  # arrays of a port are those of a filter that passes it on
            output = simple.PassArrays(Input=output)
            output.PointDataArrays = list(arrays)
        self.assert_as_on_one_rank(name, self.image_arrays(output if port > 0 else source))

    def test_maps(self):
        for quantity in ("NormWeighted", "Rollout"):
            for sequence in (-1, 1):
                attention = simple.AttentionMap(
                    Input=self.recording, Sequence=sequence, Layer=1, Head=-1, Quantity=quantity
                )
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

    def test_scores(self):
        scores = simple.HeadScores(Input=self.recording, Model=self.model)
        table = self.table(scores)
        self.assertEqual(len(table), 8)
        self.assert_as_on_one_rank("scores", table)
        self.assert_image("scores-image", scores, 1)
        scores.Measure = "Stripe"
        self.assert_as_on_one_rank("scores-stripe", self.table(scores))

    def test_kinds_of_attention(self):
        model = atlastest.ORACLE.parent / "models" / "transformers" / "bart" / "config.json"
        recording = simple.TransformerRecorder(
            Input=simple.TransformerReader(FileName=str(model)),
            TokenIds="5 7 9 11\n8 6 4\n3 12 15 20 22", Targets="9 8\n7\n6 5 4",
        )
        for kind in ("Decoder", "Encoder", "Cross"):
            shown = {"Input": recording, "AttentionKind": kind}
            self.assert_image(f"map-{kind}", simple.AttentionMap(Sequence=2, Layer=1, **shown))
            self.assert_image(f"matrix-{kind}", simple.AttentionMatrix(Sequence=2, **shown))
            focus = self.table(simple.AttentionFocus(Per="Query", **shown))
            self.assertTrue(focus)
            self.assert_as_on_one_rank(f"focus-{kind}", focus)
            scores = simple.HeadScores(**shown)
            self.assertTrue(self.table(scores))
            self.assert_as_on_one_rank(f"scores-{kind}", self.table(scores))
            self.assert_image(f"scores-{kind}-image", scores, 1)

    def test_patching(self):
        patching = simple.ActivationPatching(
            Input=self.model, Prompt="1 2 3 4 5 6 7", PatchFrom="7 9 3 2 8 6 7", Target="#3", Against="#8"
        )
        for site in ("HeadOutput", "Residual", "MlpOutput"):
            patching.Site = site
            column = "Head" if site == "HeadOutput" else "Position"
            arrays = ("Layer", column, "Logit Difference", "Effect")
            self.assertEqual(set(self.table(patching)), set(arrays))
            self.assert_as_on_one_rank(f"patching-{site}", self.table(patching))
            self.assert_image(f"patching-{site}-image", patching, 1, arrays)
        patching.Target = "#999"
        patching.UpdatePipeline()
        self.assert_one_error("999")

    def test_an_error_is_told_once(self):
        matrix = simple.AttentionMatrix(Input=self.recording, Layer=7)
        matrix.UpdatePipeline()
        self.assert_one_error("layer 7 is not in the recording")
        matrix.Layer = -1
        self.assert_image("mended", matrix)


if __name__ == "__main__":
    atlastest.main()
