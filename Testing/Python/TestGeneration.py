"""Text that a model writes, token by token, as time."""

import atlastest
import numpy
from atlastest import AtlasTest
from PIL import Image
from paraview import simple


def recorder(**options):
    return simple.TransformerRecorder(Input=atlastest.read_transformer("gpt2"), TokenIds="5 3 9 1", **options)


class Generation(AtlasTest):
    def test_map_grows_by_a_token_per_step(self):
        recorded = recorder(GenerateTokens=4)
        attention = simple.AttentionMap(Input=recorded, Layer=1, Head=2)
        recorded.UpdatePipelineInformation()
        self.assertEqual(list(recorded.TimestepValues), [0, 1, 2, 3, 4])
        last = None
        for step in (4, 0, 1, 2, 3, 4):
            image = atlastest.fetch(attention, step)
            self.assertEqual(image.GetDimensions()[:2], (4 + step, 4 + step))
            weights = atlastest.arrays_of(image)["Weights"].reshape(4 + step, 4 + step)[::-1]
            self.assert_close(weights.sum(axis=1), numpy.ones(4 + step), 1e-5)
            if step > 0 and last is not None and len(last) + 1 == len(weights):
                self.assert_close(weights[:-1, :-1], last, 1e-6)  # earlier tokens stay
            last = weights

    def test_every_view_follows(self):
        recorded = recorder(GenerateTokens=4)
        views = [
            simple.AttentionMatrix(Input=recorded),
            simple.AttentionSentence(Input=recorded),
            simple.HeadEmbedding(Input=recorded),
            simple.HeadEmbedding(Input=recorded, Method="UMAP"),
            simple.AttentionFocus(Input=recorded),
        ]
        for step in (4, 0, 2):
            for source in views:
                source.UpdatePipeline(step)  # an error would fail the test
            heads = views[2].GetDataInformation().GetNumberOfPoints() / (2 * (4 + step))
            self.assertEqual(heads, 8)  # 2 layers of 4 heads, a query and a key per token

    def test_animation(self):
        recorded = recorder(GenerateTokens=3, Temperature=1.5, Seed=2)
        attention = simple.AttentionMap(Input=recorded, Layer=0, Head=0)
        view = simple.CreateRenderView(ViewSize=[300, 300])
        simple.Show(attention, view)
        scene = simple.GetAnimationScene()
        scene.UpdateAnimationUsingDataTimeSteps()
        self.assertEqual(list(scene.TimeKeeper.TimestepValues), [0, 1, 2, 3])
        scene.GoToLast()
        view.ResetCamera()
        simple.SaveAnimation(str(atlastest.OUTPUT / "generation.png"), view)
        drawn = []
        for step in range(4):
            picture = numpy.asarray(Image.open(atlastest.OUTPUT / f"generation.{step:04d}.png").convert("RGB"))
            drawn.append(int((picture != picture[0, 0]).any(axis=2).sum()))
        self.assertEqual(drawn, sorted(set(drawn)))  # each map is larger than the one before

    def test_errors(self):
        recorder(GenerateTokens=4, Ablate="1.0").UpdatePipeline()
        self.assert_one_error("expected GenerateTokens or interventions")
