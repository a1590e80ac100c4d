"""ParaView's Save Data with models."""

import json

import atlastest
import numpy
from atlastest import AtlasTest, torus
from paraview import simple


class SaveData(AtlasTest):
    def expect_same_tensors(self, path, original):
        found, found_metadata = atlastest.read_safetensors(path)
        expected, metadata = atlastest.read_safetensors(original)
        self.assertEqual(found_metadata, metadata)
        self.assert_same_arrays(found, expected)

    def test_model(self):
        path = atlastest.OUTPUT / "copy.safetensors"
        simple.SaveData(str(path), proxy=atlastest.read_model())
        self.expect_same_tensors(path, atlastest.TRAINED)
        numpy.testing.assert_equal(
            atlastest.model_blocks(atlastest.read_model(path)),
            atlastest.model_blocks(atlastest.read_model()),
        )

    def test_model_without_a_format(self):
        """A Programmable Filter may lose it, and users who make a model need not know of it."""
        model = simple.ProgrammableFilter(Input=atlastest.read_model())
        model.CopyArrays = 0
        model.Script = """
blocks = self.GetInputDataObject(0, 0)
output.VTKObject.ShallowCopy(blocks)
output.VTKObject.GetFieldData().RemoveArray("Format")
"""
        model.UpdatePipeline()
        self.assertIsNone(atlastest.fetch(model).GetFieldData().GetAbstractArray("Format"))
        self.assertTrue(atlastest.takes("filters", "AttentionTorus", model))
        path = atlastest.OUTPUT / "made.safetensors"
        simple.SaveData(str(path), proxy=model)
        self.expect_same_tensors(path, atlastest.TRAINED)

    def test_published_model(self):
        self.oracle()
        published = atlastest.ORACLE / "trained-n5-h3.state_dict.safetensors"
        path = atlastest.OUTPUT / "native.safetensors"
        simple.SaveData(str(path), proxy=atlastest.read_model(published))
        found, metadata = atlastest.read_safetensors(path)
        expected, _ = atlastest.read_safetensors(atlastest.TRAINED)
        self.assert_same_arrays(found, expected)
        self.assertEqual(metadata["format"], "attention-atlas.attention-only")

    def test_series(self):
        files = atlastest.checkpoints(atlastest.OUTPUT)
        model = simple.AttentionOnlyModelReader(FileNames=files)
        simple.GetAnimationScene().UpdateAnimationUsingDataTimeSteps()
        path = atlastest.OUTPUT / "series.safetensors"
        simple.SaveData(str(path), proxy=model, Writetimestepsasfileseries=1)
        written = [atlastest.OUTPUT / f"series_{i}.safetensors" for i in range(2)]
        for copy, original in zip(written, files):
            self.expect_same_tensors(copy, original)
        again = simple.AttentionOnlyModelReader(FileNames=[str(file) for file in written])
        self.assertEqual(list(again.TimestepValues), [100, 250])

    def test_corpus(self):
        """Every statistic comes back: a file that is read and written again has the same bytes."""
        config = atlastest.DATA / "models" / "language-2" / "config.json"
        model = simple.TransformerReader(FileName=str(config), Checkpoints=0)
        corpus = simple.CorpusStatistics(Input=model, Files=[atlastest.write_prose()])
        first, again = atlastest.OUTPUT / "corpus.safetensors", atlastest.OUTPUT / "again.safetensors"
        simple.SaveData(str(first), proxy=corpus)
        simple.SaveData(str(again), proxy=simple.CorpusReader(FileName=str(first)))
        self.assertEqual(again.read_bytes(), first.read_bytes())
        _, metadata = atlastest.read_safetensors(first)
        self.assertEqual((metadata["format"], metadata["model"]), ("attention-atlas.corpus", str(config)))
        for unwritable in (corpus, atlastest.read_model()):
            simple.SaveData("/no such folder/x.safetensors", proxy=unwritable)
            self.assert_one_error("/no such folder/x.safetensors: cannot write file")

    def test_circuit(self):
        """What is read and written again has the same bytes; ParaView offers the format for such graphs alone."""
        config = atlastest.DATA / "models" / "language-2" / "config.json"
        model = simple.TransformerReader(FileName=str(config), Checkpoints=0)
        found = simple.AttributionPatching(
            Input=model, Prompt="the king of Egypt", PatchFrom="the king of Judah", Steps=1, Top=12
        )
        first, again = atlastest.OUTPUT / "found.circuit", atlastest.OUTPUT / "again.circuit"
        simple.SaveData(str(first), proxy=found)
        read = simple.OpenDataFile(str(first))
        self.assertEqual(read.GetXMLName(), "CircuitReader")
        simple.SaveData(str(again), proxy=read)
        self.assertEqual(again.read_bytes(), first.read_bytes())
        written = json.loads(first.read_text(encoding="utf-8"))
        self.assertEqual(len(written["edges"]), 12)
        self.assertEqual(written["model"], {"architecture": "transformer_lens", "layers": 2, "heads": 8, "mlps": "none"})
        simple.SaveData("/no such folder/x.circuit", proxy=read)
        self.assert_one_error("/no such folder/x.circuit: cannot write file")
        with self.assertRaises(AttributeError):
            simple.SaveData(str(atlastest.OUTPUT / "x.circuit"), proxy=torus(atlastest.read_model()))
        self.assert_one_error("No matching writer found for extension: circuit")

    def test_is_for_models_only(self):
        path = str(atlastest.OUTPUT / "x.safetensors")
        with self.assertRaises(AttributeError):  # ParaView's way to say that there is no writer
            simple.SaveData(path, proxy=torus(atlastest.read_model()))
        self.assert_one_error("No matching writer found for extension: safetensors")
