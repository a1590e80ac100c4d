"""Many bad inputs: each gets one error message that names the cause, and ParaView continues.

The documentation has a table of all inputs and their messages. The test writes it to the output folder as bad-input.md,
from where it is copied when messages change.
"""

import json
import math
import os
import shutil
import unittest

import atlastest
import numpy
import randomrecording
from atlastest import TRANSFORMERS, AtlasTest, read_transformer
from badinputs import (
    EMBEDDINGS, FILES_OF_MODELS, MAPS, MATRICES, ON_CHARTS, ON_MODELS, PAGE, PATCHES, PATCHING, RECORDINGS, SENTENCES,
    SOURCES, WORDS_ON_PICTURES, filled, npy, of_any_machine, page, patched, polydata, trained,
)
from hostiletransformers import TransformerInputs
from paraview import simple
from vtkmodules.util.numpy_support import numpy_to_vtk


def read_written(tensors, metadata):
    """A reader of a damaged recording."""
    path = atlastest.OUTPUT / "damaged.safetensors"
    atlastest.write_safetensors(path, tensors, metadata)
    return atlastest.read_recording(path)


class HostileInput(TransformerInputs, AtlasTest):
    rows = []

    def setUp(self):
        super().setUp()
        simple.AttentionOnlyModelReader(registrationName="Good", FileNames=[str(atlastest.TRAINED)])

    def check(self, kind, what, source, message):
        """Updates, expects a single message and empty outputs, and that the source can be deleted."""
        with self.subTest(f"{kind}: {what}"):
            source.UpdatePipeline()
            for port in range(source.SMProxy.GetNumberOfOutputPorts()):
                data = source.GetDataInformation(port)
                size = max(data.GetNumberOfPoints(), data.DataInformation.GetNumberOfRows())
                self.assertTrue(size == 0 or "diverged" in message, port)  # which keeps what was reached
            errors = self.take_errors()
            self.assertEqual(len(errors), 1, errors)
            said = errors[0].split("): ", 1)[-1]
            row = (kind, what, said)
            for folder in (atlastest.OUTPUT, TRANSFORMERS, atlastest.SOURCE):
                row = tuple(cell.replace(f"{folder}/", "") for cell in row)
            self.rows.append((kind, row[1][:80], row[2]))
            self.assertIn(message, said)
        self.take_errors()
        simple.Delete(source)

    def check_each(self, name, rows, **given):
        """Checks a filter that is told something bad: rows of (properties, message)."""
        for properties, message in rows:
            self.check(name, str(properties), getattr(simple, name)(**{**given, **properties}), message)

    def check_named(self, rows, **given):
        """Checks rows of (filter, what is bad, properties, message)."""
        for name, what, properties, message in rows:
            made = getattr(simple, name)(**{**given, **properties})
            if properties.get("Model", made) is None:
                made.Model = None  # which was chosen
            self.check(name, what, made, message)

    def reader(self, name, **properties):
        """A transformer of the oracle, which has told of tensors that it does not use."""
        model = read_transformer(name, **properties)
        model.UpdatePipeline()
        self.take_errors()
        return model

    def record(self, model, ids="5 7 9 11", *record, **properties):
        """A recorder of token ids, of these quantities or those by default."""
        if record:
            properties["Record"] = [entry for name in record for entry in (name, "1")]
        return simple.TransformerRecorder(Input=model, TokenIds=ids, **properties)

    def tearDown(self):
        good = simple.AttentionTorus(Input=simple.FindSource("Good"), Resolution=[9, 9])
        self.assertEqual(len(atlastest.point_arrays(good)["Class"]), 81, "ParaView goes on")

    @classmethod
    def tearDownClass(cls):
        PAGE.write_text(page(cls.rows), encoding="utf-8")

    def test_models(self):
        path = atlastest.OUTPUT / "bad.safetensors"
        for what, (data, message) in FILES_OF_MODELS.items():
            path.write_bytes(data)
            self.check("model", what, simple.AttentionOnlyModelReader(FileNames=[str(path)]), message)

    def test_no_files(self):
        folder = atlastest.OUTPUT / "folder.safetensors"
        folder.mkdir(exist_ok=True)
        pipe = atlastest.OUTPUT / "pipe.safetensors"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        for what, path in (("a folder", folder), ("a pipe", pipe), ("a device", "/dev/zero")):
            for kind, reader, message in (
                ("model", lambda p: simple.AttentionOnlyModelReader(FileNames=[p]), "regular file"),
                ("recording", lambda p: simple.RecordingReader(FileName=p), "regular file"),
#A transformer's weights are looked into behind the config.json beside them.
                ("transformer", lambda p: simple.TransformerReader(FileName=p), "config.json: cannot"),
            ):
                self.check(kind, what, reader(str(path)), message)

    def test_recordings(self):
        for what, (suffix, data, message) in RECORDINGS.items():
            path = atlastest.OUTPUT / f"bad{suffix}"
            path.write_bytes(data)
            self.check("recording", what, atlastest.read_recording(path), message)

    def test_filters_of_models(self):
        for rows, given in (
            (ON_MODELS, simple.FindSource("Good")),
            (ON_CHARTS, simple.AttentionTorus(Input=simple.FindSource("Good"), Resolution=[9, 9])),
        ):
            self.check_named([(name, str(told), told, message) for name, told, message in rows], Input=given)

    def test_filters_of_bad_files_report_nothing(self):
        path = str(atlastest.OUTPUT / "nothing" / "none.safetensors")
        source = atlastest.torus(simple.AttentionOnlyModelReader(FileNames=[path]))
        source.UpdatePipeline()
        view = atlastest.chart_view()
        simple.Show(source, view)
        simple.Render(view)
        self.assertTrue(all(path in error for error in self.take_errors()))
        source.Input = simple.FindSource("Good")
        self.assertGreater(len(atlastest.point_arrays(source)["Class"]), 0)

    def test_a_corrected_property_is_shown(self):
        source = atlastest.torus(simple.FindSource("Good"), Resolution=[0, 7])
        source.UpdatePipeline()
        self.assert_one_error("found 0 x 7")
        view = atlastest.chart_view()
        simple.Show(source, view)
        simple.Render(view)
        self.assertTrue(all("found 0 x 7" in error for error in self.take_errors()))
        source.Resolution = [8, 8]
        self.assertEqual(len(atlastest.point_arrays(source)["Class"]), 64)

    def test_values_that_no_property_takes(self):
        with self.assertRaises(ValueError):
            atlastest.torus(simple.FindSource("Good"), Residual="RawEmbedding")

    def test_sub_heads(self):
        path = atlastest.ORACLE / "trained-n5-h3.state_dict.safetensors"
        model = simple.AttentionOnlyModelReader(FileNames=[str(path)], SubHeads=2)
        self.check("model", "two sub-heads of dimension 3", model, "must divide the embedding dimension 3")
        model = simple.AttentionOnlyModelReader(FileNames=[str(path)], SubHeads=3)
        self.assertEqual(atlastest.fetch(model).GetNumberOfBlocks(), 4 * 9 + 4)

    def test_models_without_targets(self):
        path = atlastest.OUTPUT / "no-targets.safetensors"
        path.write_bytes(trained(next_token=None))
        model = simple.AttentionOnlyModelReader(FileNames=[str(path)])
        for name in ("HeadAccuracySimplex", "HeadAccuracy"):
            self.check(name, "no next_token", getattr(simple, name)(Input=model), "next_token")

    def test_points(self):
        for what, angles, message in (
            ("an angle that is no number", [[0, math.nan]], "finite"),
            ("an angle that is no number, after another", [[0, 1], [2, math.nan]], "(2.0"),
            ("an infinite angle", [[math.inf, 0]], "finite"),
        ):
            torus = simple.AttentionTorus(Input=simple.FindSource("Good"), Points=polydata(angles))
            self.check("AttentionTorus", what, torus, message)
            bent = simple.TorusDeformation(Input=polydata(angles))
            self.check("TorusDeformation", what, bent, message)

    def test_sources(self):
        for name, properties, message in SOURCES:
            self.check(name, str(properties), getattr(simple, name)(**properties), message)

    def test_maps(self):
        recording = atlastest.read_recording()
        for name, rows in (("AttentionMap", MAPS), ("AttentionSentence", SENTENCES), ("AttentionMatrix", MATRICES)):
            self.check_each(name, rows, Input=recording)

    def test_scores_of_heads(self):
        recording = atlastest.read_recording()
        good = simple.HeadScores(Input=recording)
        self.check_named((
            ("HeadScores", "no repetition", {"Measure": "Stripe"}, "Measure Stripe"),
            ("HeadScores", "another model", {"Model": self.reader("llama")}, "Copying needs"),
            ("AttentionMatrix", "no such column", {"Scores": good, "SortBy": "Copying"}, "Copying"),
        ), Input=recording)

    def test_patching(self):
        self.check_each("ActivationPatching", PATCHING, Input=self.reader("llama"))
        for name, properties, message in (
            ("attn-only", {"Prompt": "1 2", "PatchFrom": "3 4", "Site": "MlpOutput"}, "no MLPs"),
            ("vit", {}, "of texts"),
        ):
            patching = simple.ActivationPatching(Input=self.reader(name), **properties)
            self.check("ActivationPatching", f"{name}: {properties}", patching, message)

    def test_attribution_patching(self):
        rows = [row for row in PATCHING if row[1] != "expected one prompt, found 2 lines"]
        rows.append(({"Prompt": "1 2\n3 4", "PatchFrom": "3 4"}, "expected as many prompts as Prompt has, 2, found 1"))
        self.check_each("AttributionPatching", rows, Input=self.reader("llama"))
        for name, properties, message in (
            ("bert", {"Prompt": "1 2", "PatchFrom": "3 4"}, "causal attention"),
            ("vit", {}, "of texts"),
        ):
            patching = simple.AttributionPatching(Input=self.reader(name), **properties)
            self.check("AttributionPatching", f"{name}: {properties}", patching, message)

    def test_circuits(self):
        circuit = (
            '{"format": "attention-atlas.circuit", "version": 1, "model": {"architecture": "llama", "layers": 2, "heads": 4, '
            '"mlps": "after heads"}, "nodes": ["mlp 0"], "edges": [{"from": "embed", "to": "head 0.1", "input": "V", '
            '"effect": 1}]}'
        )
        deep = "[" * 10**6 + "]" * 10**6
        folder = atlastest.OUTPUT / "circuits"  # where nothing else is written: a change would call for another try
        folder.mkdir(exist_ok=True)
        written = folder / "bad.circuit"
        for what, text, message in (
            ("an empty file", "", "not JSON"),
            ("a circuit cut off", circuit[:150], "not JSON"),
            ("another format", circuit.replace("atlas.circuit", "atlas.corpus"), "expected a circuit"),
            ("a node beyond the model", circuit.replace('"mlp 0"', '"mlp 2"'), "nodes[0]: expected a node of llama"),
            ("an edge back", circuit.replace('"embed"', '"head 1.0"'), "a node that head 0.1 reads"),
            ("10^9 layers", circuit.replace('"layers": 2', f'"layers": {10**9}'), "at most 100000 heads and MLPs"),
            ("an endless list", "[" * 10**6, "not JSON"),
            ("a deep format", circuit.replace('"attention-atlas.circuit"', deep), "found format array"),
            ("a deep end of an edge", circuit.replace('"embed"', deep), "edges[0].from: expected a node"),
        ):
            written.write_text(text, encoding="utf-8")
            self.check("CircuitReader", what, simple.CircuitReader(FileName=str(written)), message)
        written.write_text(circuit, encoding="utf-8")
        other = folder / "other.circuit"
        other.write_text(circuit.replace('"heads": 4', '"heads": 3'), encoding="utf-8")
        both = {"FileName": str(written), "CompareWith": str(other)}
        self.check("CircuitReader", "circuits of two models", simple.CircuitReader(**both), "expected two of one model")
        nodes = folder / "nodes.circuit"
        nodes.write_text(circuit[: circuit.index('"edges"')] + '"edges": []}', encoding="utf-8")
        both["CompareWith"] = str(nodes)
        self.check("CircuitReader", "edges beside nodes", simple.CircuitReader(**both), "expected two of edges or two of nodes")
        prompts = {"Prompt": "1 2", "PatchFrom": "3 4", "Circuit": "FromFile"}
        self.check_named((
            ("AttributionPatching", "no CircuitFile", prompts, "expected the file of a circuit, found none"),
            ("AttributionPatching", "CircuitFile no file", {**prompts, "CircuitFile": "/no/such"}, "/no/such"),
            ("AttributionPatching", "a circuit of another model", {**prompts, "CircuitFile": str(other)}, "of 3 heads"),
            ("TransformerRecorder", "a circuit of another model", {"TokenIds": "1 2", "CircuitFile": str(other)}, "of 3 heads"),
        ), Input=self.reader("llama"))

    def test_embeddings(self):
        reader = atlastest.read_recording()
        self.check("HeadEmbedding", "a recording of attention", simple.HeadEmbedding(Input=reader), "no queries")
        model = self.reader("llama")
        for ids, message in (("5", "found 1"), ("5\n5", "expected at least two")):
            embedding = simple.HeadEmbedding(Input=self.record(model, ids), Method="PCA")
            self.check("HeadEmbedding", f"tokens {ids}".replace("\n", " and "), embedding, message)
        self.check_each("HeadEmbedding", EMBEDDINGS, Input=self.record(model, "1 2 3 4 5 6\n7 8 9 10 11 12"))

    def test_patches(self):
        reader = atlastest.read_recording()
        self.check("PatchAttention", "a recording of text", simple.PatchAttention(Input=reader), "of images")
        self.check_each("PatchAttention", PATCHES, Input=self.record_images())
        pictured = atlastest.read_recording(atlastest.DATA / "recordings" / "words-and-pictures.safetensors")
        rows = [("PatchAttention", f"words, {told}", told, message) for told, message in WORDS_ON_PICTURES]
        self.check_named(rows, Input=pictured)

    def test_geometry(self):
        recording = simple.RecordingReader(FileName=str(randomrecording.write_recording(atlastest.OUTPUT / "r.safetensors")))
        mesh = polydata([[x, y] for y in (-0.5, 0.5) for x in (-0.5, 0, 0.5)])
        for name, values in (
            ("good", [0, 1, 2, 3, -1, 5]), ("far", [0, 1, 2, 10, -1, 5]), ("half", [0.5] * 6), ("below", [-2] * 6),
            ("wide", filled((6, 12))), ("nan", filled((6, 2), math.nan)), ("pair", filled((6, 2), 0)),
        ):
            array = numpy_to_vtk(numpy.array(values), deep=True)
            array.SetName(name)
            mesh.GetClientSideObject().GetOutputDataObject(0).GetPointData().AddArray(array)
        nowhere = polydata([[0, math.nan], [1, 0]])
        both = simple.GroupDatasets(Input=[simple.Plane(), simple.Line()])
        many = simple.Line(Resolution=20)
        self.check_named([("BindTokens", *row) for row in (
            ("no array", {"TokenArray": "none"}, "expected a point array 'none'"),
            ("a token out of range", {"TokenArray": "far"}, "found 10 at place 3"),
            ("a token that is no integer", {"TokenArray": "half"}, "found 0.5"),
            ("a token below -1", {"TokenArray": "below"}, "found -2"),
            ("two tokens for a place", {"TokenArray": "pair"}, "found 2"),
            ("FirstToken -1", {"TokenArray": "good", "FirstToken": -1}, "found -1"),
            ("weights of 12 slices", {"Method": "Weights", "WeightArray": "wide"}, "at most 10 slices"),
            ("weights that are no numbers", {"Method": "Weights", "WeightArray": "nan"}, "finite weights"),
            ("no positions of tokens", {"Method": "Nearest"}, "found none"),
            ("positions that are no numbers", {"Method": "Nearest", "TokenPositions": nowhere}, "nan at place 0"),
            ("two meshes of tokens", {"Method": "Nearest", "TokenPositions": both}, "expected one mesh"),
            ("21 positions of 10 tokens", {"Method": "Nearest", "TokenPositions": many}, "found 21"),
            ("a mesh that is nowhere", {"Input": nowhere, "Method": "Grid"}, "nan at place 0"),
            ("a patch of size 0", {"Method": "Grid", "PatchSize": [1, 0, 1]}, "PatchSize"),
            ("11 patches", {"Method": "Grid", "PatchCounts": [11, 1, 1]}, "at most 10 patches"),
            ("no residues", {"Method": "Residues"}, "'residue', which ResidueArray names"),
        )], Input=mesh, Recording=recording)
        good = simple.BindTokens(Input=mesh, Recording=recording, TokenArray="good")
        self.check_named([("SpatialAttention", *row) for row in (
            ("a mesh that is not bound", {"Input": mesh}, "apply Bind Tokens first"),
            ("Token 10", {"Token": 10}, "from 0 to 9, found 10"),
            ("Layer 2", {"Layer": 2}, "layer 2"),
            ("Head 3", {"Head": 3}, "head"),
            ("Sequence 3", {"Sequence": 3}, "sequence"),
            ("a probe at a place without a token", {"QueryBy": "Probe", "Probe": [0, 0.5, 0]}, "found none"),
            ("a probe that is nowhere", {"QueryBy": "Probe", "Probe": [math.nan, 0, 0]}, "Probe"),
            ("no norms", {"Quantity": "NormWeighted"}, "value norms"),
            ("Bend nan", {"Bend": math.nan}, "Bend"),
        )], Input=good, Recording=recording)

    def test_proteins(self):
        folder = atlastest.DATA / "models" / "protein"
        recording = simple.RecordingReader(FileName=str(atlastest.DATA / "geometry" / "protein.safetensors"))
        chain = simple.MmcifReader(FileName=str(folder / "chain.pdb"))
        path = atlastest.OUTPUT / "other.pdb"
        atoms = (folder / "chain.pdb").read_text(encoding="ascii")
        path.write_text(atoms.replace("GLY", "TRP").replace("PRO", "TRP"), encoding="ascii")
        other = simple.MmcifReader(FileName=str(path))
        self.check_named([("ContactMap", *row) for row in (
            ("the structure of another protein", {"Structure": other, "ContactAtom": "CAlpha"}, "the same protein"),
            ("a chain of C-alpha alone", {"Structure": chain}, "choose CAlpha"),
            ("Chain Q", {"Structure": chain, "Chain": "Q", "ContactAtom": "CAlpha"}, "found 'Q'"),
            ("a structure that is no protein", {"Structure": simple.Sphere()}, "'atom_types'"),
            ("Layer 4", {"Layer": 4}, "layer 4"),
            ("Head -2", {"Head": -2}, "found -2"),
            ("Sequence 3", {"Sequence": 3}, "sequence"),
            ("ContactDistance 0", {"ContactDistance": 0}, "found 0"),
            ("Threshold nan", {"Threshold": math.nan}, "found nan"),
        )], Input=recording)
        model = simple.TransformerReader(FileName=str(folder / "config.json"))
        texts = simple.TransformerReader(FileName=str(atlastest.DATA / "models" / "bert" / "config.json"))
        bound = simple.BindTokens(Input=other, Recording=recording, Method="Residues")
        bound.UpdatePipeline()
        self.take_errors()  # other residues
        protein = "GFGPGCLCSSGSGIGCGTTQTPGKWPDPMMGPMPMP"
        self.check_named([("MutationScan", *row) for row in (
            ("a stop", {"Protein": "GFGPG*"}, "a stop"),
            ("a lower-case letter", {"Protein": "GFgPG"}, "a lower-case letter"),
            ("a residue that is no token", {"Protein": "GFX"}, "found 'X'"),
            ("two proteins", {"Protein": ">a\nGF\n>b\nGF"}, "found 2"),
            ("a record without residues", {"Protein": ">a"}, "'a': expected residues"),
            ("a protein that is too long", {"Protein": 37 * "G"}, "37"),
            ("a structure that is not bound", {"Protein": "GF", "Structure": chain}, "'Bound Token'"),
            ("the structure of another protein", {"Protein": protein, "Structure": bound}, "the same protein"),
            ("a model of texts", {"Input": texts, "Protein": "GF"}, "found one of bert"),
        )], Input=model)

    def test_focus(self):
        model, other = self.reader("llama"), self.reader("gpt2")
        attention = atlastest.read_recording()
        plain = simple.TransformerRecorder(Input=model, TokenIds="1 2 3 4", Record=["QueriesAndKeys"])
        single = self.record(model, "5")
        self.check_named((
            ("AttentionFocus", "SinkThreshold nan", {"Input": plain, "SinkThreshold": math.nan}, "found nan"),
            ("AttentionFocus", "a token", {"Input": single, "ExcludeFirst": 1}, "at least 2 tokens"),
            ("AttentionFocus", "stored attention", {"Input": attention, "Quantity": "NormWeighted"}, "norms"),
            ("ScoreBreakdown", "no model", {"Input": plain, "Model": None}, "found none"),
            ("ScoreBreakdown", "another model", {"Input": plain, "Model": other}, "model that was recorded"),
            ("ScoreBreakdown", "stored attention", {"Input": attention, "Model": other}, "model that was"),
            ("ScoreBreakdown", "Sequence -1", {"Input": plain, "Model": model, "Sequence": -1}, "found -1, all"),
            ("ScoreBreakdown", "Query 4", {"Input": plain, "Model": model, "Query": 4}, "found 4"),
            ("ScoreBreakdown", "Top -1", {"Input": plain, "Model": model, "Top": -1}, "found -1"),
            ("HeadUpdates", "queries and keys alone", {"Input": plain}, "record HeadOutputs"),
            ("HeadUpdates", "another model", {"Input": plain, "Model": other}, "model that was recorded"),
        ))

    def test_routing(self):
        plain = self.reader("gpt2")
        recorder = self.record(plain, "5 7 9 11", "Routing")
        self.check("TransformerRecorder", "routing without experts", recorder, "the model has no experts")
        routed = self.record(self.reader("qwen2_moe"), "5 7 9 11", "Routing")
        self.check_named((
            ("ExpertRouting", "no routing", {"Input": self.record(plain)}, "recording with Routing"),
            ("ExpertRouting", "Sequence 1", {"Sequence": 1}, "found 1"),
            ("ExpertRouting", "a layer without experts", {"Show": "Experts", "Layer": 1}, "one of 0 2, found 1"),
            ("ExpertRouting", "Top 0", {"Top": 0}, "found 0"),
        ), Input=routed)
        file = atlastest.OUTPUT / "routed.safetensors"
        simple.SaveData(str(file), routed)
        tensors, metadata = atlastest.read_safetensors(file)
        name = "layers.2.experts"
        for value, message in ((6, "numbers of its 6 experts, from 0, found 6 at token 1"), (numpy.nan, "nan")):
            experts = tensors[name].copy()
            experts[1, 0] = value
            self.check("recording", f"expert {value}", read_written({**tensors, name: experts}, metadata), message)

    def test_encoder_and_decoder(self):
        bart, whisper, plain = map(self.reader, ("bart", "whisper", "gpt2"))
        noise = atlastest.OUTPUT / "noise.wav"
        noise.write_bytes(b"no sound")
        for model, properties, message in (
            (plain, {"TokenIds": "5 7", "Targets": "9"}, "a model with an encoder and a decoder, found one of"),
            (plain, {"Sounds": [str(noise)]}, "expected a model that reads sound, found one of"),
            (bart, {"TokenIds": "5 7\n9", "Targets": "4"}, "expected one of each of the 2 sequences, found 1"),
            (bart, {"TokenIds": "5 7", "Targets": "400"}, "found 400"),
            (bart, {"TokenIds": "5 700"}, "found 700"),
            (whisper, {"TokenIds": "5 7"}, "expected Sounds for a model that reads sound"),
            (whisper, {"Sounds": [str(noise)]}, "noise.wav: expected a sound"),
            (whisper, {"Sounds": [str(noise), "b.npy"]}, "of which b.npy is no sound"),
        ):
            self.check("TransformerRecorder", str(properties), simple.TransformerRecorder(Input=model, **properties), message)
        alone = simple.TransformerReader(
            FileName=str(atlastest.ORACLE.parent / "v5" / "sound" / "wav2vec2-a" / "config.json"))
        short = atlastest.OUTPUT / "short.npy"
        numpy.save(short, numpy.zeros((1, 20), "float32"))
        for properties, message in (
            ({"TokenIds": "5 7"}, "expected sounds for a model of architecture wav2vec2, found token ids"),
            ({"Sounds": [str(noise)]}, "noise.wav: expected a sound"),
            ({"Sounds": [str(short)]}, "reduce to at least one token, of up to 268435456 samples, found 20"),
            ({"Sounds": [str(short)], "Targets": "9"}, "a model with an encoder and a decoder, found one of architecture wav2vec2"),
        ):
            self.check("TransformerRecorder", str(properties), simple.TransformerRecorder(Input=alone, **properties), message)
        both, single = self.record(bart, "5 7 9", Targets="8 6"), self.record(plain, "5 7 9")
        for name, given, properties, message in (
            ("AttentionMap", single, {"AttentionKind": "Cross"}, "for the attention 'cross', found one of gpt2"),
            ("AttentionMap", both, {"AttentionKind": "Encoder", "Layer": 7}, "layer 7 is not in the recording"),
            ("AttentionMap", both, {"AttentionKind": "Cross", "Sequence": -1}, "found all"),
            ("AttentionSentence", both, {"AttentionKind": "Cross", "Quantity": "Rollout"}, "another quantity than Rollout"),
            ("HeadScores", both, {"AttentionKind": "Cross", "Measure": "Stripe"}, "expected Mul or Abs of cross attention"),
            ("QueryKeyContrast", both, {"AttentionKind": "Cross", "By": 1}, "found those at a distance"),
            ("HeadEmbedding", both, {"AttentionKind": "Cross", "Sample": 1}, "at least 2 tokens of each text, found 1 of"),
        ):
            self.check(name, str(properties), getattr(simple, name)(Input=given, **properties), message)
        file = atlastest.OUTPUT / "translated.safetensors"
        simple.SaveData(str(file), both)
        tensors, metadata = atlastest.read_safetensors(file)
        for lengths, message in (([9], "expected a source of 0 to 6 tokens, found 9"), ([2], "found 2 of 6"), ([], "found 0")):
            changed = {**tensors, "cross.source_lengths": numpy.array(lengths, "int64")}
            self.check("recording", f"sources of {lengths} tokens", read_written(changed, metadata), message)

    def test_dictionaries(self):
        model = self.reader("gpt2")
        run = self.record(model, "5 7 9 11", "QueriesAndKeys", "Values", "HeadOutputs", "Residual")
        bare = simple.TransformerRecorder(Input=model, TokenIds="5 7 9 11", Record=["QueriesAndKeys"])
        hook, settings = "blocks.1.attn.hook_z", {"Input": run, "Model": model}

        def dictionary(name, *of, **changed):
            return {"DictionaryFile": atlastest.write_dictionary(*(of or (hook, 32)), folder=name, **changed)}

        wide = numpy.full((24, 31), 1, "float32")
        self.check_named([("DictionaryFeatures", name, settings | changed, message) for name, changed, message in (
            ("no model", dictionary("plain") | {"Model": None}, "found none"),
            ("no values", dictionary("plain") | {"Input": bare}, "record Values"),
            ("no file", {"DictionaryFile": str(atlastest.OUTPUT / "nothing" / "none.safetensors")}, "none.safetensors"),
            ("a model's file", {"DictionaryFile": str(atlastest.TRAINED)}, "cfg.json"),
            ("a transcoder", dictionary("kind", architecture="transcoder"), "unknown architecture 'transcoder'"),
            ("an unknown place", dictionary("place", "blocks.0.hook_mlp_out", 32), "found 'blocks.0.hook_mlp_out'"),
            ("layer 2", dictionary("layer", "blocks.2.hook_resid_pre", 32), "expected a layer from 0 to 1"),
            ("33 inputs", dictionary("inputs", hook, 33), "expected 32 inputs as in the model, found 33"),
            ("a factor that is missing", dictionary("factor", normalize_activations="expected_average_only_in"), "expected_average"),
            ("a decoder of another shape", dictionary("shape", tensors={"W_dec": wide}), "W_dec: expected floating-point numbers of shape"),
            ("a bias that is nan", dictionary("nan", tensors={"b_dec": numpy.full(32, numpy.nan, "float32")}), "found NaN"),
            ("an unknown tensor", dictionary("more", tensors={"W_skip": wide}), "found W_skip"),
            ("Feature 24", dictionary("plain") | {"Feature": 24}, "found 24"),
            ("Top 0", dictionary("plain") | {"Top": 0}, "found 0"),
            ("Sequence 1", dictionary("plain") | {"Sequence": 1}, "found 1"),
        )])

    def test_attribution(self):
        record = ("QueriesAndKeys", "HeadOutputs", "Residual")
        model, other, bert = map(self.reader, ("gpt2", "llama", "bert"))
        processed = self.reader("gpt2", Processing="TransformerLens")
        plain = simple.TransformerRecorder(Input=model, TokenIds="5 7 9 11", Record=["QueriesAndKeys"])
        whole, patched, last, ablated = (
            self.record(model, "5 7 9 11", *record, **changes)
            for changes in (
                {},
                {"PatchFrom": "5 8 9 11", "PatchSites": "r1"},
                {"PatchFrom": "5 8 9 11", "PatchSites": "m1"},
                {"Ablate": "0.1"},
            )
        )
        full = {"Input": whole, "Model": model}
        single, after = self.record(model, "5", *record), self.record(bert, "5 7 9", *record)
        attention = atlastest.read_recording()
        self.check_named((
            ("ScoreAttribution", "Sequence -1", full | {"Sequence": -1}, "found -1, all"),
            ("LogitAttribution", "no model", {"Input": plain, "Model": None}, "found none"),
            ("LogitAttribution", "another model", {"Input": plain, "Model": other}, "model that was recorded"),
            ("LogitAttribution", "queries and keys alone", {"Input": plain, "Model": model}, "HeadOutputs and Residual"),
            ("LogitAttribution", "BERT", {"Input": after, "Model": bert}, "is no sum"),
            ("LogitAttribution", "a token", {"Input": single, "Model": model}, "at least 2 tokens"),
            ("LogitAttribution", "Position 3", full | {"Position": 3}, "found 3"),
            ("LogitAttribution", "Position 4", full | {"Position": 4, "Target": "Predicted"}, "found 4"),
            ("LogitAttribution", "no token", full | {"Target": "Token"}, "TargetToken: expected one token"),
            ("LogitAttribution", "token #211", full | {"Target": "Token", "TargetToken": "#211"}, "211"),
            ("LogitAttribution", "Against a word", full | {"Against": "word"}, "Against"),
            ("LogitAttribution", "Sequence 1", full | {"Sequence": 1}, "found 1"),
            ("LogitAttribution", "other weights", full | {"Model": processed}, "unprocessed ones, found processed"),
            ("LogitAttribution", "a replaced stream", full | {"Input": patched}, "r1 replaced"),
            ("LogitAttribution", "a replaced MLP", full | {"Input": last}, "m1 replaced"),
            ("LogitAttribution", "a head of zeros", full | {"Input": ablated}, "choose Processing None"),
            ("LogitLens", "no model", {"Input": plain, "Model": None}, "found none"),
            ("LogitLens", "another model", {"Input": plain, "Model": other}, "model that was recorded"),
            ("LogitLens", "queries and keys alone", {"Input": plain, "Model": model}, "recording with Residual"),
            ("LogitLens", "BERT", {"Input": after, "Model": bert}, "bert"),
            ("LogitLens", "Top 0", full | {"Top": 0}, "found 0"),
            ("LogitLens", "Sequence 1", full | {"Sequence": 1}, "found 1"),
            ("ScoreAttribution", "no model", {"Input": plain, "Model": None}, "found none"),
            ("ScoreAttribution", "another model", {"Input": plain, "Model": other}, "model that was recorded"),
            ("ScoreAttribution", "queries and keys alone", {"Input": plain, "Model": model}, "HeadOutputs and Residual"),
            ("ScoreAttribution", "stored attention", {"Input": attention, "Model": model}, "model that was"),
            ("ScoreAttribution", "BERT", {"Input": after, "Model": bert}, "is no sum"),
            ("ScoreAttribution", "Layer 2", full | {"Layer": 2}, "found 2"),
            ("ScoreAttribution", "Head 4", full | {"Head": 4}, "found 4"),
            ("ScoreAttribution", "Query 4", full | {"Query": 4}, "found 4"),
            ("ScoreAttribution", "Key 2 of query 1", full | {"Query": 1, "Key": 2}, "found 2"),
            ("ScoreAttribution", "Top 0", full | {"Top": 0}, "found 0"),
        ))

    def test_attention_tokens(self):
        model, llama = self.reader("gpt2"), self.reader("llama")
        plain = {"Input": self.record(model), "Model": model}
        attention = atlastest.read_recording()
        rotated = {"Input": self.record(llama), "Model": llama, "Reading": "Refactored"}
        self.check_named([("AttentionTokens", *row) for row in (
            ("no model", {"Model": None}, "Model: expected the transformer"),
            ("another model", {"Model": self.reader("bloom")}, "model that was recorded"),
            ("stored attention", {"Input": attention}, "no queries"),
            ("DotProduct", {"Vectors": "DotProduct"}, "PublishedCode"),
            ("no vectors", {"Vectors": []}, "Vectors: expected at least one"),
            ("Layer 2", {"Layer": 2}, "layer 2"),
            ("Head 4", {"Head": 4}, "found 4"),
            ("Sequence 1", {"Sequence": 1}, "found 1"),
            ("Top 0", {"Top": 0}, "found 0"),
            ("MaximumTokens -1", {"MaximumTokens": -1}, "found -1"),
            ("rotated heads", rotated, "not rotated"),
        )], **plain)
        tokens = simple.AttentionTokens(**plain, Vectors="Query")
        self.check("SharedTokens", "other vectors", simple.SharedTokens(Input=tokens), "Vector: expected one of")
        embedding = simple.AttentionTokenLayout(Input=tokens, Model=model, Vector="Query", Perplexity=0)
        self.check("AttentionTokenLayout", "Perplexity 0", embedding, "perplexity")

    def test_tables_of_circuits(self):
        model = self.reader("gpt2")
        self.check_named((
            ("BigramTable", "a word without a tokenizer", {"Tokens": ["the"]}, "no tokenizer, found 'the'"),
            ("BigramTable", "token 211", {"Tokens": ["#211"]}, "from 0 to 210, found 211"),
            ("BigramTable", "Top 0", {"Top": 0}, "found 0"),
            ("BigramTable", "BERT", {"Input": self.reader("bert")}, "found bert"),
            ("BigramTable", "a vision transformer", {"Input": self.reader("vit")}, "found vit"),
            ("HeadCircuit", "Layer 2", {"Layer": 2}, "found 2"),
            ("HeadCircuit", "Head -1", {"Head": -1}, "found -1"),
            ("HeadCircuit", "token 211", {"Tokens": ["0", "211"]}, "found 211"),
            ("HeadCircuit", "no positions", {"Input": self.reader("bloom"), "Circuit": "PositionQK"}, "found bloom"),
            ("SkipTrigrams", "Head 4", {"Head": 4}, "found 4"),
            ("SkipTrigrams", "Top -1", {"Top": -1}, "found -1"),
            ("SkipTrigrams", "SourceLimit -1", {"SourceLimit": -1}, "found -1"),
            ("SkipTrigrams", "a word without a tokenizer", {"Tokens": ["the"]}, "no tokenizer"),
        ), Input=model)
        self.check("BigramTable", "weights of NaN", simple.BigramTable(Input=self.broken_model()), "NaN")
        self.check("SkipTrigrams", "weights of NaN", simple.SkipTrigrams(Input=self.broken_model()), "NaN")

    def test_spectra_of_heads(self):
        model = self.reader("gpt2")
        attention, recording = atlastest.read_recording(), self.record(model)
        self.check_named((
            ("HeadSpectra", "Layer 2", {"Layer": 2}, "found 2"),
            ("HeadSpectra", "Head -2", {"Head": -2}, "found -2"),
            ("HeadSpectra", "BERT", {"Input": self.reader("bert")}, "found bert"),
            ("HeadSpectra", "Full of a vision transformer", {"Input": self.reader("vit"), "Full": 1}, "found vit"),
            ("HeadComposition", "Threshold nan", {"Threshold": math.nan}, "found nan"),
            ("HeadComposition", "BERT", {"Input": self.reader("bert")}, "found bert"),
            ("VirtualWeights", "an earlier layer", {"FromLayer": 1, "ToLayer": 0}, "after FromLayer 1"),
            ("VirtualWeights", "the same layer", {"FromLayer": 1}, "after FromLayer 1"),
            ("VirtualWeights", "FromHead 4", {"FromHead": 4}, "found 4"),
            ("VirtualWeights", "ToLayer 2", {"ToLayer": 2}, "found 2"),
            ("QueryKeyContrast", "stored attention", {"Input": attention}, "which were not recorded"),
            ("QueryKeyContrast", "no token twice", {"Input": recording}, "in the set"),
            ("QueryKeyContrast", "no column", {"Input": recording, "By": "Column"}, "found 'Segment'"),
            ("QueryKeyContrast", "Distance 4", {"Input": recording, "By": 1, "Distance": 4}, "in the set"),
            ("QueryKeyContrast", "Layer 2", {"Input": recording, "By": 1, "Layer": 2}, "layer 2"),
            ("QueryKeyContrast", "Sequence 1", {"Input": recording, "By": 1, "Sequence": 1}, "found 1"),
        ), Input=model)
        spectra = simple.HeadSpectra(Input=self.broken_model(), Full=1)
        self.check("HeadSpectra", "Full with weights of NaN", spectra, "NaN")

    def test_corpus(self):
        def written(name, data):
            path = atlastest.OUTPUT / name
            path.write_bytes(data)
            return [str(path)]

        language = atlastest.data_model("language-2", Checkpoints=0)
        text = written("text.txt", b"In the beginning\nGod created the heaven and the earth.\n")
        good = simple.CorpusStatistics(Input=language, Files=text, TokenLimit=1, BatchTokens=1, Contexts=1, Samples=8)
        part = str(atlastest.OUTPUT / "part.safetensors")
        simple.SaveData(part, proxy=good)
        other = written("other.txt", b"On the beginning\nGod created the heaven and the earth.\n")  # as many bytes
        same = {"ContinueFrom": part, "Contexts": 1, "Samples": 8, "BatchTokens": 1}
        tensors, metadata = atlastest.read_safetensors(part)
        older = str(atlastest.OUTPUT / "older.safetensors")
        atlastest.write_safetensors(older, tensors, {
k: v for k, v in metadata.items() if k != "fingerprints"})
        checkpoint = {"Input": atlastest.data_model("language-2/checkpoint-2297", Checkpoints=0), **same}
        dictionary = atlastest.write_dictionary("blocks.1.attn.hook_z", 128, folder="of-corpus")
        narrow = atlastest.write_dictionary("blocks.1.attn.hook_z", 32, folder="narrow")
        ids = written("ids.jsonl", b'{"tokens": [1, 2]}\n{"tokens": [1, 99999]}\n')
        self.check_named([("CorpusStatistics", *row) for row in (
            ("no file", {"Files": ["/no/such/text.txt"]}, "/no/such/text.txt"),
            ("an empty text", {"Files": written("empty.txt", b"")}, "expected documents with tokens, found none"),
            ("empty lines", {"Files": written("lines.txt", b"\n\n\n")}, "expected documents with tokens, found none"),
            ("a zero byte", {"Files": written("zero.txt", b"ab\na\0b\n")}, "line 2: expected UTF-8 text, found a zero byte"),
            ("a binary file", {"Files": written("binary.txt", bytes(range(128, 256)))}, "found the byte 0x80"),
            ("token 99999", {"Files": ids}, "99999"),
            ("an object without a text", {"Files": written("a.jsonl", b'{"title": "a"}')}, "line 1"),
            ("a line that is no JSON", {"Files": written("b.jsonl", b'{"text": "a"}\n{"text')}, "line 2"),
            ("an npy of floats", {"Files": written("floats.npy", npy(filled((2, 3))))}, "floats.npy"),
            ("an npy cut off", {"Files": written("cut.npy", npy(numpy.ones((2, 3), "i8"))[:-9])}, "cut.npy"),
            ("a model of images", {"Input": self.reader("vit")}, "expected one that reads text, found one of images"),
            ("Window 1", {"Window": 1}, "found 1"),
            ("Window 129", {"Window": 129}, "expected 2 to 128 tokens"),
            ("Overlap 64", {"Overlap": 64}, "found 64"),
            ("Layer 2", {"Layers": [2]}, "found 2"),
            ("a dictionary of another layer", {"Layers": [0], "DictionaryFile": dictionary}, "expected layer 1 of the dictionary"),
            ("a dictionary of another model", {"DictionaryFile": narrow}, "expected 128 inputs as in the model, found 32"),
            ("no dictionary", {"DictionaryFile": "/no/such.safetensors"}, "/no/such.safetensors"),
            ("ContinueFrom no file", {"ContinueFrom": "/no/such.safetensors"}, "/no/such.safetensors"),
            ("ContinueFrom a text", {"ContinueFrom": text[0]}, "expected a safetensors file, found a text"),
            ("ContinueFrom a recording", {"ContinueFrom": str(atlastest.RECORDING)}, "attention-atlas.corpus"),
            ("ContinueFrom with other options", {"ContinueFrom": part}, "Contexts 1, Samples 8"),
            ("ContinueFrom statistics of other weights", checkpoint, "found those of one with other weights"),
            ("ContinueFrom statistics of another text", {"Files": other, **same}, "other.txt had other tokens"),
            ("ContinueFrom statistics of an older version", {**same, "ContinueFrom": older}, "but not continued"),
        )], Input=language, Files=text)
        for what, data, message in (
            ("an empty file", b"", "0 bytes"),
            ("a recording", atlastest.RECORDING.read_bytes(), "attention-atlas.corpus"),
            ("statistics cut off", (atlastest.OUTPUT / "part.safetensors").read_bytes()[:-1], "data_offsets"),
            ("a text that goes on at token -1", patched(part, "totals", 9, -1), "where no window can begin"),
            ("heads of dimension 0", patched(part, "totals", 0, 0), "the dimension of heads is out of range"),
            ("a head twice", patched(part, "places", 3, 0), "all heads of each of the layers"),
            ("an unknown token", patched(part, "context_tokens", 0, 99999), "expected tokens of ids"),
            ("a query beyond its window", patched(part, "contexts", 5, 1 << 40), "contexts: expected numbers from"),
            ("-1 queries", patched(part, "counts", 0, -1), "counts: expected numbers from 0"),
        ):
            (path,) = written("bad.safetensors", data)
            self.check("CorpusReader", what, simple.CorpusReader(FileName=path), message)
        for name, properties, message in (
            ("HeadScatter", {"XColumn": "Love"}, "found 'Love'"),
            ("HeadScatter", {"YColumn": ""}, "YColumn"),
            ("HeadScatter", {"SizeColumn": "Love"}, "found 'Love'"),
            ("TopContexts", {"Layer": 2}, "found layer 2"),
            ("TopContexts", {"Head": 8}, "layer 0, head 8"),
            ("TopContexts", {"Feature": 3}, "statistics without a dictionary, found 3"),
            ("HeadHistogram", {"Layer": 2}, "found layer 2"),
            ("HeadTokenTable", {"Head": -1}, "layer 0, head -1"),
            ("ScoreParts", {"Layer": 9}, "found layer 9"),
            ("ScoreParts", {"Circuit": "Outputs (OV)"}, "expected the Model of the statistics"),
        ):
            self.check(name, str(properties), getattr(simple, name)(Input=good, **properties), message)
        outputs = {"Circuit": "Outputs (OV)", "Model": language}
        self.check("ScoreParts", "Outputs without values", simple.ScoreParts(Input=good, **outputs), "Sample Values")
        featured = simple.CorpusStatistics(Input=language, Files=text, DictionaryFile=dictionary)
        self.check("TopContexts", "Feature 24", simple.TopContexts(Input=featured, Feature=24), "expected one from 0 to 23")
        apart = simple.CorpusStatistics(Input=language, Files=text, Agreement=0)
        alike = simple.HeadScatter(Input=apart, ClusterBy="Agreement")
        self.check("HeadScatter", "ClusterBy Agreement without it", alike, "Agreement")

    def broken_model(self):
        """A small GPT-2 with an embedding that is not a number."""
        folder = atlastest.OUTPUT / "broken"
        folder.mkdir(exist_ok=True)
        shutil.copy(TRANSFORMERS / "gpt2" / "config.json", folder)
        tensors, _ = atlastest.read_safetensors(TRANSFORMERS / "gpt2" / "model.safetensors")
        embedding = next(name for name in tensors if name.endswith("wte.weight"))
        tensors[embedding] = tensors[embedding].copy()
        tensors[embedding][0, 0] = math.nan
        atlastest.write_safetensors(folder / "model.safetensors", tensors, {})
        return simple.TransformerReader(FileName=str(folder / "config.json"))


class WrittenPage(unittest.TestCase):
    """Runs behind HostileInput, whose rows it compares."""

    maxDiff = None

    def test_is_the_documentation(self):
        shipped = atlastest.SOURCE / "Plugin" / "Documentation" / "bad-input.md"
        self.assertEqual(
            of_any_machine(PAGE.read_text(encoding="utf-8")),
            of_any_machine(shipped.read_text(encoding="utf-8")),
            f"if the messages are as they should be, copy {PAGE} to {shipped}",
        )
