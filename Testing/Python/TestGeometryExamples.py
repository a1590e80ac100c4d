"""The examples on geometry that are installed: what attention finds, the untrained model beside it."""

import os
import subprocess

import atlastest
import numpy
from atlastest import AtlasTest, arrays_of
from paraview import servermanager, simple
from randomrecording import attention_of
from vtkmodules.util.numpy_support import vtk_to_numpy

MODELS, GEOMETRY = atlastest.DATA / "models", atlastest.DATA / "geometry"


def attention(path):
    """The mean attention of the heads of the last layer, from queries and keys by NumPy [queries, keys]."""
    tensors, _ = atlastest.read_safetensors(path)
    layer = max(int(name.split(".")[1]) for name in tensors if name.startswith("layers."))
    heads = sum(name.startswith(f"layers.{layer}.") and name.endswith(".key") for name in tensors)
    return numpy.mean([attention_of(path, layer, head, causal=False) for head in range(heads)], axis=0)


def untrained(name, *arguments):
    """The attention of the model of an example before its first step, on the same input."""
    path = atlastest.OUTPUT / f"{name}.safetensors"
    model = MODELS / name / "checkpoint-0"
    command = [os.environ["ATLAS_PROGRAM"], "record", model, *arguments, "-o", path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return attention(path)


def information(weights, region):
    """The mutual information of slice and region of a point, in bits."""
    joint = numpy.array([weights[region == name].sum(0) for name in numpy.unique(region)]) / len(weights)
    own = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    used = joint > 0
    return (joint[used] * numpy.log2(joint[used] / own[used])).sum()


def found_keys(weights, keys):
    """The share of queries whose strongest key is theirs, and the mean weight on it; keys of -1 do not count."""
    queries = numpy.flatnonzero(keys >= 0)
    rows = weights[queries]
    return (rows.argmax(1) == keys[queries]).mean(), rows[range(len(rows)), keys[queries]].mean()


class GeometryExamples(AtlasTest):
    def shown(self, data, name, kind="PointData", query=20, **binding):
        """The arrays of a dataset with the attention of a query of a recording."""
        recording = atlastest.read_recording(GEOMETRY / f"{name}.safetensors")
        bound = simple.BindTokens(Input=data, Recording=recording, **binding)
        place = simple.SpatialAttention(Input=bound, Recording=recording, Head=-1, Token=query)
        return arrays_of(servermanager.Fetch(place), kind)

    def precision(self, weights, contacts):
        """Of the L/2 pairs at least three apart with the largest attention, the share in contact."""
        both = weights + weights.T
        score = both - both.sum(0) * both.sum(0)[:, None] / both.sum()
        pairs = numpy.transpose(numpy.triu_indices(len(weights), 3))
        order = numpy.argsort(-score[tuple(pairs.T)], kind="stable")[: len(weights) // 2]
        return contacts[tuple(pairs[order].T)].mean()

    def test_attention_finds_contacts(self):
        chain = simple.PDBReader(FileName=str(MODELS / "protein" / "chain.pdb"))
        places = vtk_to_numpy(servermanager.Fetch(chain).GetPoints().GetData()).astype(float)
        self.assertEqual(len(places), 36)
        steps = numpy.linalg.norm(places[:, None] - places, axis=2)
        contacts = numpy.isclose(steps, 3.8, atol=1e-3) & (abs(numpy.subtract.outer(range(36), range(36))) > 1)
        chance = contacts[numpy.triu_indices(36, 3)].mean()
        self.assertAlmostEqual(chance, 40 / 561)
        tensors, _ = atlastest.read_safetensors(GEOMETRY / "protein.safetensors")
        weights = attention(GEOMETRY / "protein.safetensors")
        before = untrained("protein", "--token-ids", " ".join(map(str, tensors["tokens.id"])))
        self.assertGreaterEqual(self.precision(weights, contacts), 0.9)
        self.assertLessEqual(self.precision(before, contacts), 4 * chance)
        arrays = self.shown(chain, "protein", Method="Residues")
        numpy.testing.assert_array_equal(arrays["Bound Token"], range(36))
        numpy.testing.assert_allclose(arrays["Attention"], weights[20], atol=1e-6)

    def test_blocks_look_across_the_center(self):
        volume = simple.XMLImageDataReader(FileName=[str(GEOMETRY / "volume.vti")])
        weights = attention(GEOMETRY / "volume.safetensors")
        keys = numpy.array([-1, *range(64, 0, -1)])
        share, weight = found_keys(weights, keys)
        self.assertEqual(share, 1)
        self.assertGreater(weight, 0.5)
        grid = {"Method": "Grid", "Places": "Cells", "PatchSize": [4] * 3, "PatchCounts": [4] * 3, "FirstToken": 1}
        cells = self.shown(volume, "volume", "CellData", **grid)
        numpy.testing.assert_array_equal(cells["Bound Token"], cells["Token"])
        numpy.testing.assert_allclose(cells["Attention"], weights[20][cells["Token"]], atol=1e-6)
        strongest = numpy.flatnonzero(cells["Attention"] == cells["Attention"].max())
        x, y, z = numpy.unravel_index(numpy.flatnonzero(cells["Token"] == 20), (16, 16, 16))
        across = numpy.ravel_multi_index((15 - x, 15 - y, 15 - z), (16, 16, 16))
        numpy.testing.assert_array_equal(strongest, numpy.sort(across))

    def test_points_look_at_the_nearest_landmark(self):
        cloud = simple.XMLPolyDataReader(FileName=[str(GEOMETRY / "points.vtp")])
        data = servermanager.Fetch(cloud)
        places = vtk_to_numpy(data.GetPoints().GetData()).astype(float)
        landmarks = numpy.flatnonzero(arrays_of(data)["Landmark"])
        distances = numpy.linalg.norm(places[:, None] - places[landmarks], axis=2)
        keys = numpy.array([-1, *(landmarks[distances.argmin(1)] + 1)])
        keys[landmarks + 1] = -1
        weights = attention(GEOMETRY / "points.safetensors")
        share, weight = found_keys(weights, keys)
        self.assertGreater(share, 0.9)
        self.assertGreater(weight, 0.65)
        arrays = self.shown(cloud, "points", Method="Array", TokenArray="Token")
        numpy.testing.assert_allclose(arrays["Attention"], weights[20, 1:], atol=1e-6)

    def test_slices_follow_regions(self):
        mesh = simple.XMLUnstructuredGridReader(FileName=[str(GEOMETRY / "heat.vtu")])
        arrays = arrays_of(servermanager.Fetch(mesh))
        slices, before = (arrays[name].astype(float) for name in ("Slices", "UntrainedSlices"))
        region = arrays["Region"]
        for weights in (slices, before):
            numpy.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
        self.assertGreater(information(slices, region), 0.2)
        self.assertLess(information(before, region), 0.02)
        largest = [numpy.eye(24)[weights.argmax(1)] for weights in (slices, before)]
        self.assertGreater(information(largest[0], region), 0.45)
        self.assertLess(information(largest[1], region), 0.1)
        error = numpy.linalg.norm(arrays["PredictedTemperature"] - arrays["Temperature"])
        self.assertLess(error, 0.25 * numpy.linalg.norm(arrays["Temperature"]))
        point = 700
        mixed = slices[point] @ attention(GEOMETRY / "heat.safetensors")
        recording = atlastest.read_recording(GEOMETRY / "heat.safetensors")
        bound = simple.BindTokens(Input=mesh, Recording=recording, Method="Weights", WeightArray="Slices")
        probe = servermanager.Fetch(mesh).GetPoint(point)
        shown = simple.SpatialAttention(Input=bound, Recording=recording, Layer=1, Head=-1, QueryBy="Probe", Probe=probe)
        found = arrays_of(servermanager.Fetch(shown))["Attention"]
        numpy.testing.assert_allclose(found, slices @ mixed, atol=1e-5)
