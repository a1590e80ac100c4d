"""The filters as VTK classes, without ParaView: each gives what its proxy gives, to the byte."""

import os
import subprocess
import sys
import unittest

import numpy
from atlastest import DATA, MODELS, OUTPUT, SOURCE
from attentionatlas import load_plugin
from attentionatlas._internal import host, vtkhost
from paraview import servermanager, simple
from PIL import Image

TEXT = "And Moses spake unto the king of Egypt, and Aaron spake unto the king of Egypt."
MODEL, LANGUAGE = DATA / "trained-n5-h3.safetensors", DATA / "models" / "language-2" / "config.json"
#: Properties without which a filter has nothing to show, or takes long.
OPTIONS = {
    "ActivationPatching": {"Prompt": "the king of Egypt", "PatchFrom": "the king of Israel"},
    "AttributionPatching": {"Prompt": "the king of Egypt", "PatchFrom": "the king of Israel", "Circuit": "Nodes"},
    "AttentionOnlyTraining": {"Steps": 20, "Seed": 3},
    "CircuitReader": {"FileName": str(OUTPUT / "written.circuit"), "CompareWith": str(OUTPUT / "other.circuit")},
    "CorpusReader": {"FileName": str(DATA / "corpus" / "language-2.safetensors")},
    "AttentionOnlyModelReader": {"FileNames": [str(MODEL)]},
    "RecordingReader": {"FileName": str(DATA / "recordings" / "gpt2-data-visualization.safetensors")},
    "TransformerReader": {"FileName": str(LANGUAGE)},
    "VocabularyReader": {"FileName": str(LANGUAGE)},
    "TransformerRecorder": {"Prompts": TEXT},
    "CorpusStatistics": {"Files": [str(DATA / "README.md")], "TokenLimit": 1000},
    "TransformerTraining": {"Task": "RepeatedTokens", "Steps": 3, "Layers": 1, "Heads": 1},
    "AttentionTorus": {"Resolution": [40, 30], "Quantities": ["Class", "Attention", "Output"], "HeadWeights": [1, 0.5, -1]},
    "UnembeddingSphere": {"Resolution": 16},
    "TorusDeformation": {"Shape": "Vectors", "Vectors": ["POINTS", "Output"]},
    "SummableColors": {"Vectors": ["Output"]},
    "HeadEmbedding": {"Layer": 1, "Head": 5},
    "TokenSearch": {"Text": "Egypt"},
    "MmcifReader": {"FileName": str(OUTPUT / "atoms.cif")},
    "BindTokens": {"Method": "Array", "TokenArray": "Token"},
    "SpatialAttention": {"Head": 0, "Token": 3},
    "MutationScan": {"Protein": "GFGPGCLC"},
}
#: Others that are made for these: their filters, inputs and properties.
OTHERS = {
    "vit": ("TransformerReader", {}, {"FileName": str(DATA / "models" / "vit" / "config.json")}),
    "images": ("TransformerRecorder", {"Input": "vit"}, {"Images": [str(OUTPUT / "patches.png")]}),
    "mixtral": ("TransformerReader", {}, {"FileName": str(MODELS / "mixtral" / "config.json")}),
    "experts": ("TransformerRecorder", {"Input": "mixtral"}, {"TokenIds": "1 2 3 4 5", "Record": ["Routing"]}),
    "places": ("RecordingReader", {}, {"FileName": str(DATA / "geometry" / "points.safetensors")}),
    "protein": ("TransformerReader", {}, {"FileName": str(DATA / "models" / "protein" / "config.json")}),
}
#: Inputs that are not those of their formats.
GIVEN = {
    "PatchAttention": {"Input": "images"}, "ExpertRouting": {"Input": "experts"},
    "MutationScan": {"Input": "protein"},
    "BindTokens": {"Input": "mesh", "Recording": "places"}, "SpatialAttention": {"Input": "BindTokens", "Recording": "places"},
}
#: Filters whose input is the output of another one: its name, and the number of that output.
AFTER = {
    "AttentionTokenLayout": ("AttentionTokens", 0), "SharedTokens": ("AttentionTokens", 0),
    "TorusDeformation": ("AttentionTorus", 0), "SummableColors": ("AttentionTorus", 0),
    "TokenColors": ("HeadEmbedding", 0), "TokenSearch": ("HeadEmbedding", 0), "AttentionLines": ("HeadEmbedding", 0),
}
#: A molecule in the format PDBx/mmCIF.
ATOMS = """data_two
loop_
_atom_site.group_PDB
_atom_site.id
_atom_site.type_symbol
_atom_site.label_atom_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.label_seq_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
ATOM 1 N N GLY A 1 0.0 0.5 1.0
ATOM 2 C CA GLY A 1 1.5 0.5 1.0
"""
#: A circuit of a small model; and another one, without the node.
CIRCUIT = """{"format": "attention-atlas.circuit", "version": 1,
"model": {"architecture": "gpt2", "layers": 1, "heads": 2, "mlps": "none"},
"nodes": ["head 0.1"], "edges": [{"from": "embed", "to": "head 0.0", "input": "K", "effect": -0.5}]}"""
#: What each format is an output of.
SOURCES = {
    "attention-atlas.attention-only": "AttentionOnlyModelReader", "attention-atlas.recording": "TransformerRecorder",
    "attention-atlas.transformer": "TransformerReader", "attention-atlas.corpus": "CorpusReader",
}


def values(array):
    """The values of an array, to the bit."""
    if array.IsA("vtkStringArray"):
        return [array.GetValue(i) for i in range(array.GetNumberOfValues())]
    return array.GetNumberOfComponents(), bytes(memoryview(array)) if array.GetNumberOfValues() else b""


def contents(data):
    """All that a dataset has, by name."""
    found = {"class": data.GetClassName()}
    if data.IsA("vtkMultiBlockDataSet"):
        for number in range(data.GetNumberOfBlocks()):
            name = data.GetMetaData(number).Get(data.NAME())
            found[number, name] = contents(data.GetBlock(number)) if data.GetBlock(number) is not None else None
    for kind in ("FieldData", "PointData", "CellData", "RowData"):
        attributes = getattr(data, f"Get{kind}", lambda: None)()
        for number in range(attributes.GetNumberOfArrays() if attributes is not None else 0):
            array = attributes.GetAbstractArray(number)
            found[kind, array.GetName()] = values(array)
    if data.IsA("vtkImageData"):
        found["image"] = data.GetExtent(), data.GetOrigin(), data.GetSpacing()
    elif data.IsA("vtkPointSet") and data.GetPoints() is not None:
        found["points"] = values(data.GetPoints().GetData())
    if data.IsA("vtkPolyData"):
        for kind in ("Verts", "Lines", "Polys"):
            cells = getattr(data, f"Get{kind}")()
            found[kind] = values(cells.GetConnectivityArray()), values(cells.GetOffsetsArray())
    return found


class Chain:
    """Filters of one host, each made once with the inputs that it needs."""

    def __init__(self, make, port, mesh):
        self.make, self.port, self.made = make, port, {"mesh": mesh}

    def __getitem__(self, name):
        if name not in self.made:
            kind, inputs, options = OTHERS.get(name, (name, {}, OPTIONS.get(name, {})))
            given = {key: self[one] for key, one in (inputs or GIVEN.get(name, {})).items()}
            self.made[name] = self.make(kind, **{**self.inputs(name), **given}, **options)
        return self.made[name]

    def inputs(self, name):
        found = {}
        if name in OTHERS:
            return found
        for row in host.table()[name]["inputs"]:
            formats = row.get("formats") or []
            if row["name"] == "Input" and name in AFTER:
                found["Input"] = self.port(self[AFTER[name][0]], AFTER[name][1])
            elif formats and formats[0] in SOURCES:
                found[row["name"]] = self[SOURCES[formats[0]]]
        return found


class VtkHostTest(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        load_plugin()

    def test_every_filter_gives_what_its_proxy_gives(self):
        Image.fromarray(numpy.arange(16 * 16 * 3, dtype=numpy.uint8).reshape(16, 16, 3)).save(OUTPUT / "patches.png")
        (OUTPUT / "atoms.cif").write_text(ATOMS, encoding="utf-8")
        (OUTPUT / "written.circuit").write_text(CIRCUIT, encoding="utf-8")
        (OUTPUT / "other.circuit").write_text(CIRCUIT.replace('"head 0.1"', ""), encoding="utf-8")
        mesh = simple.XMLPolyDataReader(FileName=[str(DATA / "geometry" / "points.vtp")])
        proxies = Chain(lambda name, **options: getattr(simple, name)(**options), simple.OutputPort, mesh)
        classes = Chain(vtkhost.Filter, vtkhost.Port, servermanager.Fetch(mesh))
        compared = 0
        for name, row in host.table().items():
            if row.get("writes"):
                continue
            with self.subTest(name):
                proxies[name].UpdatePipeline()
                with vtkhost.raised(classes[name]):
                    classes[name].UpdatePipeline()
                for port in range(row["outputs"]):
                    expected = contents(servermanager.Fetch(proxies[name], 0, idx=port))
                    self.assertEqual(contents(classes[name].output(port)), expected, f"output {port}")
                    compared += len(expected) > 1
        self.assertGreater(compared, 100)

    def test_the_first_recorded_layer_is_the_default(self):
        model = vtkhost.Filter("TransformerReader", FileName=str(LANGUAGE))
        recorder = vtkhost.Filter("TransformerRecorder", Input=model, Prompts=TEXT, Layers=[1])
        shown = vtkhost.Filter("AttentionMap", Input=recorder)
        with vtkhost.raised(shown):
            shown.UpdatePipeline()
        self.assertEqual(shown.output(0).GetFieldData().GetArray("Layer").GetValue(0), 1)

    def test_a_training_goes_on_with_the_time(self):
        training = vtkhost.Filter("AttentionOnlyTraining", Steps=20, Seed=3, CheckpointEvery=10)
        learner = vtkhost.Kept(training, 0)
        areas = vtkhost.Filter("TokenPairs", Input=learner)
        found = []
        for step in (0, 10, 20):
            learner.ForcedTime = step
            areas.UpdatePipeline()
            proxy = simple.AttentionOnlyTraining(Steps=20, Seed=3, CheckpointEvery=10)
            expected = simple.TokenPairs(Input=simple.ForceTime(Input=proxy, IgnorePipelineTime=1, ForcedTime=step))
            found.append(contents(areas.output(0)))
            self.assertEqual(found[-1], contents(servermanager.Fetch(expected, 0)), step)
        self.assertNotEqual(found[0], found[2])

    def test_a_time_reaches_all_outputs(self):
        made = vtkhost.Filter("HeadComposition", Input=vtkhost.Filter("TransformerReader", FileName=str(LANGUAGE)))
        proxy = simple.HeadComposition(Input=simple.TransformerReader(FileName=str(LANGUAGE)))
        found = []
        for step in (0.0, 463.0):
            made.UpdatePipeline(step)
            proxy.UpdatePipeline(step)
            for port in range(2):
                found.append(contents(made.output(port)))
                self.assertEqual(found[-1], contents(servermanager.Fetch(proxy, 0, idx=port)), f"{step}, output {port}")
        self.assertNotEqual(found[1], found[3])

    def test_bad_values_are_refused_by_name(self):
        model = vtkhost.Filter("TransformerReader", FileName=str(LANGUAGE))
        shown = vtkhost.Filter("AttentionMap", Input=vtkhost.Filter("TransformerRecorder", Input=model, Prompts=TEXT))
        for name, value, message in (
            ("Layer", "first", "Layer: expected a number, found 'first'"),
            ("Layer", 1.5, "Layer: expected a number, found 1.5"),
            ("Quantity", "Weight", "Quantity: expected one of Weights, Scores"),
            ("QueryWindow", [1], "QueryWindow: expected 2 values, found 1"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                setattr(shown, name, value)
        with self.assertRaisesRegex(AttributeError, "AttentionMap: expected one of .*; found Colour"):
            shown.Colour = 1

    def test_defaults_and_words_are_those_of_proxies(self):
        for name, row in host.table().items():
            if row.get("writes"):
                continue
            proxy, made = getattr(simple, name)(), vtkhost.Filter(name)
            for one in row["properties"]:
                if one.get("range") or one["type"] == "call" or row.get("series"):
                    continue
                with self.subTest(f"{name}.{one['name']}"):
                    shown = proxy.GetPropertyValue(one["name"])
                    found = getattr(made, one["name"])
                    if isinstance(found, str) or isinstance(found, list) and found and isinstance(found[0], str):
                        found, shown = str(found).replace("'", ""), str(shown).replace("'", "")
                    self.assertEqual(found, shown)
            simple.Delete(proxy)


class PlainPythonTest(unittest.TestCase):
    """Python without ParaView and without a display."""

    def run_script(self, script):
        environment = {**os.environ, "ATLAS_HOST": "VTK"}
        environment.pop("DISPLAY", None)
        done = subprocess.run(
            ["/usr/bin/python3", "-c", script], env=environment, capture_output=True, text=True, timeout=300, cwd=SOURCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout.strip()

    def test_it_opens_runs_and_writes(self):
        script = f"""
import sys, tempfile, attentionatlas as atlas
with atlas.open({str(LANGUAGE)!r}) as model, model.record({TEXT!r}) as recording, tempfile.TemporaryDirectory() as folder:
    weights = recording.attention(1, 5)
    recording.save(folder + "/run.safetensors")
    with atlas.open(folder + "/run.safetensors") as again:
        assert (again.attention(1, 5) == weights).all()
    print(abs(weights.sum(axis=1) - 1).max() < 1e-6, "paraview" in sys.modules)
"""
        self.assertEqual(self.run_script(script), "True False")

    def test_meshes_of_pyvista(self):
        """With a stand-in for PyVista, which Debian 12 does not have. A point of slices has the sum of its shares in them times
        the attention of the query to them."""
        script = f"""
import sys, types, numpy
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonDataModel import vtkDataSet, vtkFieldData
from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridReader

class MultiBlock(list):
    def __init__(self):
        self.names, self.field = [], vtkFieldData()
    def append(self, block, name):
        super().append(block)
        self.names.append(name)
    def GetFieldData(self):
        return self.field

sys.modules["pyvista"] = types.SimpleNamespace(
    DataSet=vtkDataSet, MultiBlock=MultiBlock, wrap=lambda data: data, register_dataset_accessor=lambda name, data: lambda made: made)
import attentionatlas as atlas
from attentionatlas.pyvista import MeshAttention, read
source = vtkXMLUnstructuredGridReader()
source.SetFileName({str(DATA / "geometry" / "heat.vtu")!r})
source.Update()
mesh = source.GetOutput()
with atlas.open({str(DATA / "geometry" / "heat.safetensors")!r}) as recording:
    bound = MeshAttention(mesh).bind(recording, method="weights", weight_array="Slices")
    shown = MeshAttention(bound).of(recording, token=-2, layer=1, head=2)
    expected = vtk_to_numpy(mesh.GetPointData().GetArray("Slices")) @ recording.attention(1, 2)[-2]
    numpy.testing.assert_allclose(vtk_to_numpy(shown.GetPointData().GetArray("Attention")), expected, rtol=1e-5)
    assert mesh.GetPointData().GetArray("Attention") is None
    for made in (lambda: MeshAttention(mesh).bind(recording, method="Weight"), lambda: MeshAttention(bound).of(recording, token=24)):
        try:
            made()
        except ValueError as error:
            print(error)
print(read({str(DATA / "recordings" / "language-2.safetensors")!r}).names)
"""
        said = self.run_script(script).splitlines()
        self.assertEqual(said[0], "method: expected one of Array, Nearest, Grid, Weights, Residues; found 'Weight'.")
        self.assertEqual(said[1:], ["token: expected 0 to 23, found 24.", "['tokens', 'layer 0', 'layer 1', 'layer 2']"])

    def test_errors_name_the_file(self):
        script = f"""
import attentionatlas as atlas
try:
    atlas.open({str(DATA / "README.md")!r})
except atlas.Error as error:
    print(error)
"""
        self.assertIn("README.md: expected", self.run_script(script))


if __name__ == "__main__":
    sys.exit(unittest.main())
