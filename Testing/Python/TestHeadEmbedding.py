"""Queries and keys of heads in one space: the proxy in a pipeline, its picture, and its errors."""

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import simple
from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
from vtkmodules.vtkCommonCore import VTK_ID_TYPE
from vtkmodules.vtkCommonDataModel import vtkSelection, vtkSelectionNode
from vtkmodules.vtkFiltersExtraction import vtkExtractSelection

EMBEDDING = atlastest.ORACLE.parent / "embedding"


def coordinates(embedding):
    return vtk_to_numpy(atlastest.fetch(embedding).GetPoints().GetData()).copy()


class HeadEmbedding(AtlasTest):
    def setUp(self):
        super().setUp()
        self.expected, _ = atlastest.read_safetensors(EMBEDDING / "gpt2.safetensors")
        lines = atlastest.token_lines(self.expected["token.id"].reshape(2, -1))
        self.recording = simple.TransformerRecorder(Input=atlastest.read_transformer("gpt2"), TokenIds=lines)

    def test_principal_components_of_a_run_are_those_of_the_oracle(self):
        embedding = simple.HeadEmbedding(
            Input=self.recording, Method="PCA", Dimensions=3, KeyScaling="None", Arrangement="Overlaid"
        )
        found = coordinates(embedding).reshape(8, 68, 3)
        for head in range(8):
            expected = self.expected[f"layer.{head // 4}.head.{head % 4}.pca.scores"]
            # The run has its own rounding, which neighboring components magnify.
            self.assert_close(found[head], expected, 1e-3)

    def test_points_of_a_token_have_one_id_in_all_heads(self):
        embedding = simple.HeadEmbedding(Input=self.recording, Method="PCA")
        points = atlastest.fetch(embedding)
        self.assertEqual(points.GetPointData().GetPedigreeIds().GetName(), "Token Index")
        node = vtkSelectionNode()
        node.SetContentType(vtkSelectionNode.PEDIGREEIDS)
        node.SetFieldType(vtkSelectionNode.POINT)
        tokens = numpy.array([4, 20])
        node.SetSelectionList(numpy_to_vtk(tokens, array_type=VTK_ID_TYPE))
        selection = vtkSelection()
        selection.AddNode(node)
        extract = vtkExtractSelection()
        extract.SetInputData(0, points)
        extract.SetInputData(1, selection)
        extract.Update()
        self.assertEqual(extract.GetOutput().GetNumberOfPoints(), 2 * 2 * 8)

    def test_it_is_shown_in_two_colors(self):
        embedding = simple.HeadEmbedding(Input=self.recording, Method="PCA")
        view = simple.CreateRenderView(ViewSize=[400, 300])
        shown = simple.Show(embedding, view)
        self.assertEqual(shown.Representation, "Points")
        self.assertEqual(list(shown.ColorArrayName), ["POINTS", "TokenColor"])
        simple.ColorBy(shown, ("POINTS", "Kind"))
        simple.ResetCamera(view)
        pixels = atlastest.picture(view, "embedding").reshape(-1, 3)
        for color in atlastest.PALETTE[:2]:  # Kind 0 and 1 of the class palette
            self.assertGreater((numpy.abs(pixels - color).max(axis=1) < 8).sum(), 50)

    def test_iterations_can_be_played(self):
        embedding = simple.HeadEmbedding(
            Input=self.recording, Method="TSNE", Perplexity=20, Iterations=35, IterationsAsTime=1, Layer=0, Head=0
        )
        embedding.UpdatePipelineInformation()
        self.assertEqual(list(embedding.TimestepValues), [0, 10, 20, 30, 35])

    def test_a_recording_of_images(self):
        arrays = atlastest.point_arrays(simple.HeadEmbedding(Input=self.record_images(), Method="PCA"))
        expected, _ = atlastest.read_safetensors(EMBEDDING / "vit.safetensors")
        for name in ("Row", "Column"):
            self.assertEqual(list(arrays[name][:34]), list(expected[f"token.{name.lower()}"]))
