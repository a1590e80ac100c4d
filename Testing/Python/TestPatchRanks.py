"""PatchAttention on several MPI ranks: the first has all cells, as on one; each has a part of the picture.

On the first of its numbers of ranks this test leaves its arrays for the others.
"""

import atlastest
import numpy
import picturedrecording
from atlastest import RANKS, AtlasTest
from attentionatlas._internal import data
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy

TRANSFORMERS = atlastest.ORACLE.parent / "transformers"


class PatchRanks(AtlasTest):
    def setUp(self):
        super().setUp()
        vit = TRANSFORMERS / "vit"
        pixels = atlastest.OUTPUT / "images.safetensors"
        tensors, _ = atlastest.read_safetensors(vit / "expected.safetensors")
        images = tensors["pixel_values"]
        atlastest.write_safetensors(pixels, {"pixel_values": images}, {})
        model = simple.TransformerReader(FileName=str(vit / "config.json"))
        recorder = simple.TransformerRecorder(Input=model, Images=[str(pixels)])
        recorder.UpdatePipeline()
        self.take_errors()  # of tensors that the model does not use
        self.patches = simple.PatchAttention(Input=recorder, Sequence=1, Layer=1, Head=2)
        bytes_ = numpy.clip(numpy.floor((images[1].astype(float) / 2 + 0.5) * 255 + 0.5), 0, 255)
        self.picture = bytes_.transpose(1, 2, 0)

    def cells(self, port):
        """The cell arrays of an output, all of which is on the first rank."""
        simple.OutputPort(self.patches, port).UpdatePipeline()
        parts = [servermanager.Fetch(self.patches, rank, idx=port) for rank in range(RANKS)]
        self.assertEqual([part.GetNumberOfCells() for part in parts[1:]], [0] * (RANKS - 1))
        arrays = parts[0].GetCellData()
        cells = [arrays.GetArray(i) for i in range(arrays.GetNumberOfArrays())]
        points = {"Points": vtk_to_numpy(parts[0].GetPoints().GetData()).copy()}
        return {**{cell.GetName(): vtk_to_numpy(cell).copy() for cell in cells}, **points}

    def test_cells(self):
        for port in (0, 1, 4):
            arrays = self.cells(port)
            self.assertGreater(len(arrays["Head"]), 0)
            self.assert_as_on_one_rank(f"cells-{port}", arrays)

    def test_the_picture_is_in_parts(self):
        for _ in range(2):  # asked for first, and after the others
            whole = data.image(self.patches, "PictureColor", port=3)[::-1]
            numpy.testing.assert_array_equal(whole, self.picture)
            parts = [servermanager.Fetch(self.patches, rank, idx=3) for rank in range(RANKS)]
            pixels = sum(part.GetNumberOfPoints() for part in parts)
            self.assertLess(pixels, 32 * 32 + 33 * RANKS)  # parts share their borders
            self.cells(0)

    def test_words_on_pictures(self):
        path = picturedrecording.write_recording(atlastest.OUTPUT / "pictured.safetensors")
        recording = simple.RecordingReader(FileName=str(path))
        self.patches = simple.PatchAttention(Input=recording, Token=picturedrecording.DISC)
        for port in (0, 1, 2):
            arrays = self.cells(port)
            self.assertGreater(len(arrays["Head"]), 0)
            self.assert_as_on_one_rank(f"words-{port}", arrays)
        whole = data.image(self.patches, "PictureColor", port=3)[::-1]
        for left, picture in zip((0, 5 * picturedrecording.TOKEN), picturedrecording.pictures()):
            height, width = picture.shape[:2]
            numpy.testing.assert_array_equal(whole[:height, left : left + width], picture)

    def test_a_selection_holds(self):
        self.patches.Selection = simple.IDSelectionSource(IDs=[0, 5], FieldType="CELL")
        self.assertEqual(list(self.cells(4)["Token Index"]), [17 + 5])

    def test_an_error_is_told_once(self):
        self.patches.Patch = [4, 0]
        self.patches.UpdatePipeline()
        self.assert_one_error("Patch: expected a row from 0 to 3", "found 4 0")


if __name__ == "__main__":
    atlastest.main()
