"""Models with experts: their routing in recordings and files, and the view of it.

Expected values are those of the original code, in Testing/Oracle.
"""

import attentionatlas as atlas
import atlastest
import numpy
from atlastest import MODELS, AtlasTest, point_arrays, read_recording, read_transformer, token_lines, simple
from attentionatlas._internal import data
from vtkmodules.util.numpy_support import vtk_to_numpy


class Experts(AtlasTest):
    def open(self, name):
        """The recorded routing of a model, and what the original code computed."""
        expected, _ = atlastest.read_safetensors(MODELS / name / "expected.safetensors")
        self.mask = expected["attention_mask"] != 0
        self.ids = [row[kept] for row, kept in zip(expected["input_ids"], self.mask)]
        recorder = simple.TransformerRecorder(Input=read_transformer(name), TokenIds=token_lines(self.ids), Record=["Routing", "1"])
        return recorder, expected

    def expected(self, values, layer):
        """The experts and weights of all tokens of a layer that are no padding."""
        return [values[f"layer.{layer}.{name}"][self.mask] for name in ("experts", "expert_weights")]

    def check_tables(self, recording, values, layers):
        blocks = data.first_part(recording)
        names = data.blocks(blocks)
        for layer in layers:
            block = names[f"layer {layer}"]
            table = block.GetBlock(block.GetNumberOfBlocks() - 1)
            experts, weights = self.expected(values, layer)
            numpy.testing.assert_array_equal(vtk_to_numpy(table.GetColumnByName("Expert")), experts)
            self.assert_close(vtk_to_numpy(table.GetColumnByName("Expert Weight")), weights)
        counted = vtk_to_numpy(blocks.GetFieldData().GetArray("Experts"))
        self.assertEqual(counted[:, 0].tolist(), layers)

    def test_recordings_have_the_routing_of_the_original(self):
        for name, layers in (("mixtral", [0, 1]), ("qwen2_moe", [0, 2]), ("qwen3_moe", [1]), ("olmoe", [0, 1])):
            with self.subTest(model=name):
                recording, values = self.open(name)
                self.check_tables(recording, values, layers)
                file = str(atlastest.OUTPUT / f"{name}.safetensors")
                simple.SaveData(file, recording)
                self.check_tables(read_recording(file), values, layers)

    def test_the_grid_of_layers_and_tokens(self):
        recording, values = self.open("qwen2_moe")
        shown = simple.ExpertRouting(Input=recording, Sequence=1)
        arrays = point_arrays(shown)
        length, first = len(self.ids[1]), len(self.ids[0])
        for row, layer in enumerate((0, 2)):
            experts, weights = self.expected(values, layer)
            part = slice(row * length, (row + 1) * length)
            self.assertEqual(set(arrays["Layer"][part]), {layer})
            numpy.testing.assert_array_equal(arrays["Expert"][part], experts[first:, 0])
            self.assert_close(arrays["Expert Weight"][part], weights[first:, 0])
        view = simple.CreateRenderView()
        display = simple.Show(shown, view)
        self.assertEqual(display.Representation, "Squares")
        self.assertEqual(display.ColorArrayName[1], "Expert Weight")
        self.assertEqual(simple.Show(simple.OutputPort(shown, 3), view).Representation, "Token Labels")
        shown.Show = "Load"
        shown.UpdatePipeline()
        simple.Render(view)
        self.assertEqual(display.ColorArrayName[1], "Share")

    def test_the_grid_of_experts_and_tokens(self):
        recording, values = self.open("mixtral")
        arrays = point_arrays(simple.ExpertRouting(Input=recording, Show="Experts", Layer=1))
        experts, weights = self.expected(values, 1)
        length = len(self.ids[0])
        dense = numpy.zeros((5, length), dtype="float32")
        for token in range(length):
            dense[experts[token], token] = weights[token]
        self.assert_close(arrays["Expert Weight"].reshape(5, length)[::-1], dense)

    def test_loads_and_tokens_from_python(self):
        _, values = self.open("olmoe")
        with atlas.open(MODELS / "olmoe") as model:
            with model.record(record=["Routing"], token_ids=token_lines(self.ids)) as recording:
                loads, tokens = recording.expert_loads(), recording.expert_tokens(top=3)
        ids = numpy.concatenate(self.ids)
        for layer in (0, 1):
            experts, weights = self.expected(values, layer)
            counts = numpy.bincount(experts.ravel(), minlength=6)
            of_layer = loads[loads["Layer"] == layer]
            self.assertEqual(list(of_layer["Count"]), counts.tolist())
            self.assert_close(numpy.array(of_layer["Share"]), counts / len(experts))
            sums = numpy.bincount(experts.ravel(), weights.ravel(), 6)
            self.assert_close(numpy.array(of_layer["Mean Weight"]), sums / numpy.maximum(counts, 1))
            for expert in range(6):
                rows = tokens[(tokens["Layer"] == layer) & (tokens["Expert"] == expert)]
                taken = ids[(experts == expert).any(axis=1)]
                most = sorted(numpy.unique(taken, return_counts=True)[1], reverse=True)[:3]
                self.assertEqual(list(rows["Count"]), most)
                for token, count, share in zip(rows["Token"], rows["Count"], rows["Share"]):
                    self.assertEqual(count, (taken == int(token)).sum())
                    self.assertAlmostEqual(share, count / (ids == int(token)).sum())
