"""Bad files of transformers, and bad prompts: a part of TestHostileInput."""

import json
import os
import shutil

import atlastest
from atlastest import MODELS, TRANSFORMERS
from badinputs import CONFIGS, RECORDERS, RECORDERS_OF_PICTURES, SEEN, hostile_torch
from paraview import simple


class TransformerInputs:
    """Tests of a class with `check`, `check_each` and `reader`."""

    def test_recorders(self):
        self.check_each("TransformerRecorder", RECORDERS, Input=self.reader("llama"))

    def test_recorders_of_pictures(self):
        for name, properties, message in RECORDERS_OF_PICTURES:
            recorder = simple.TransformerRecorder(Input=self.reader(name), **properties)
            told = {key: ["a.png"] if value == [SEEN] else value for key, value in properties.items()}
            self.check("TransformerRecorder", f"{name}: {told}", recorder, message)

    def test_processors_of_pictures(self):
        for name, settings, message in (
            ("llava", "[1]", "JSON object"),
            ("llava", '{"image_std": 0}', "image_std"),
            ("internvl", '{"max_patches": -3}', "max_patches"),
            ("smolvlm", '{"size": {"longest_edge": "long"}}', "longest_edge"),
            ("qwen2_vl", '{"max_pixels": 1e99}', "max_pixels"),
            ("qwen2_vl", '{"min_pixels": NaN}', "not JSON"),
        ):
            folder = self.folder(MODELS / name)
            (folder / "preprocessor_config.json").write_text(settings)
            model = simple.TransformerReader(FileName=str(folder / "config.json"))
            recorder = simple.TransformerRecorder(Input=model, TokenIds="60", Images=[SEEN])
            self.check("preprocessor_config.json", f"{name}: {settings}", recorder, message)

    def folder(self, source=TRANSFORMERS / "llama"):
        """A new copy of a transformer's."""
        folder = atlastest.OUTPUT / "transformer"
        shutil.rmtree(folder, ignore_errors=True)
        return shutil.copytree(source, folder)

    def test_tokenizers(self):
        folder = self.folder()
        whole = (MODELS.parent / "tokenizers" / "spm-llama" / "tokenizer.model").read_bytes()
        (folder / "tokenizer.model").write_bytes(whole[:4000])
        model = simple.TransformerReader(FileName=str(folder / "config.json"))
        recorder = simple.TransformerRecorder(Input=model, Prompts="Hello")
        self.check("TransformerRecorder", "a tokenizer.model cut off", recorder, "more bytes")

    def test_folders(self):
        for what, (change, message) in CONFIGS.items():
            config = self.folder() / "config.json"
            config.write_text(change(config.read_text()))
            self.check("transformer", what, simple.TransformerReader(FileName=str(config)), message)

    def test_gguf(self):
        hostile = MODELS.parent / "files" / "gguf-hostile"
        for what, name, message in (
            ("a GGUF file cut off", "truncated-data", "may be incomplete"),
            ("a GGUF file of arrays in arrays", "array-nested", "array of arrays"),
        ):
            path = atlastest.OUTPUT / "model.gguf"
            shutil.copyfile(hostile / f"{name}.gguf", path)
            self.check("transformer", what, simple.TransformerReader(FileName=str(path)), message)

    def test_adapters(self):
        oracle = MODELS.parent / "adapters" / "llama-lora"
        folder = atlastest.OUTPUT / "adapted"
        settings, weights = folder / "adapter_config.json", folder / "adapter_model.safetensors"

        def setting(**changes):
            settings.write_text(json.dumps({**json.loads(settings.read_text()), **changes}))

        def elsewhere():
            (folder / "config.json").unlink()
            setting(base_model_name_or_path="meta-llama/Llama-2-7b-hf")

        def other_module():
            tensors, metadata = atlastest.read_safetensors(weights)
            renamed = {name.replace("layers.2", "layers.3"): values for name, values in tensors.items()}
            atlastest.write_safetensors(weights, renamed, metadata)

        for what, change, message in (
            ("an adapter without its base", elsewhere, "'meta-llama/Llama-2-7b-hf', found none. Copy"),
            ("an adapter that is not LoRA", lambda: setting(peft_type="IA3"), "found 'IA3'"),
            ("an adapter of rank 0", lambda: setting(r=0), "expected 'r' to be an integer from 1"),
            ("an adapter of another rank", lambda: setting(r=8), "expected the shape [8, 80], found [4, 80]"),
            ("an adapter that is off for some tokens", lambda: setting(alora_invocation_tokens=[5]), "alora_invocation_tokens"),
            ("an adapter of more layers", other_module, "has no such module"),
            ("an adapter cut off", lambda: os.truncate(weights, 3000), "adapter_model.safetensors"),
            ("settings of an adapter alone", weights.unlink, "found the settings alone"),
        ):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for path in (*(oracle / "base").iterdir(), *(oracle / "adapter").iterdir()):
                shutil.copyfile(path, folder / path.name)
            change()
            self.check("transformer", what, simple.TransformerReader(FileName=str(settings)), message)

    def test_weights(self):
        def call_system(path):
            path.unlink()
            (path.parent / "pytorch_model.bin").write_bytes(hostile_torch("os-system.pt"))

        def two_checkpoints(path):
            path.rename(path.parent / "a.pt")
            (path.parent / "b.pt").write_bytes(b"")

        for what, change, message in (
            ("no weights", lambda path: path.unlink(), "model.safetensors"),
            ("empty weights", lambda path: path.write_bytes(b""), "0 bytes"),
            ("weights cut off", lambda path: os.truncate(path, 70000), "data_offsets"),
            ("weights that call os.system", call_system, "os.system"),
            ("two checkpoints", two_checkpoints, "expected one file of weights, found a.pt, b.pt"),
        ):
            folder = self.folder()
            change(folder / "model.safetensors")
            reader = simple.TransformerReader(FileName=str(folder / "config.json"))
            self.check("transformer", what, reader, message)
