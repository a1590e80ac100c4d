"""Recordings and maps on several MPI ranks are as on one, to the byte.

On the first of its numbers of ranks this test leaves its arrays for the others.
"""

import atlastest
from atlastest import RANKS, AtlasTest
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy

ORACLE = atlastest.ORACLE.parent / "transformers"


def heads_of(recording):
    """The arrays of the first layer of a recording."""
    layer = recording.GetBlock(1)
    arrays = {}
    for i in range(layer.GetNumberOfBlocks()):
        table = layer.GetBlock(i)
        for c in range(table.GetNumberOfColumns()):
            arrays[f"{i} {table.GetColumnName(c)}"] = vtk_to_numpy(table.GetColumn(c)).copy()
    return arrays


class Ranks(AtlasTest):
    def recorder(self):
        if not ORACLE.is_dir():
            self.skipTest(f"no expected values: {ORACLE} is absent")
        model = simple.TransformerReader(FileName=str(ORACLE / "llama" / "config.json"))
        prompts = simple.RandomPrompts(Length=60, Count=2, IdRange=[0, 228])
        return simple.TransformerRecorder(Input=model, Tokens=prompts)

    def test_every_rank_has_the_recording(self):
        recorder = self.recorder()
        recorder.UpdatePipeline()
        for rank in range(RANKS):
            heads = heads_of(servermanager.Fetch(recorder, rank))
            self.assertEqual(len(heads), 4 * 3)
            self.assert_as_on_one_rank("heads", heads)

    def test_map(self):
        attention = simple.AttentionMap(Input=self.recorder(), Sequence=1, Layer=1, Head=2)
        arrays = self.image_arrays(attention)
        self.assertEqual(arrays["Weights"].shape, (60, 60, 1))
        self.assert_as_on_one_rank("map", arrays)

    def test_save_data(self):
        recorder = self.recorder()
        path = atlastest.OUTPUT / "saved.safetensors"
        simple.SaveData(str(path), proxy=recorder)
        tensors, _ = atlastest.read_safetensors(path)
        self.assert_as_on_one_rank("saved", tensors)


if __name__ == "__main__":
    atlastest.main()
