"""attentionatlas.record: what it makes of libraries that behave as theirs do, the plugin reads. The shipped recording is
what its command makes."""

import contextlib
import io
import os
import shlex
import subprocess
import sys
import types
import unittest.mock

import atlastest
import numpy
from atlastest import AtlasTest, simple
from attentionatlas import record
from faketorch import Tensor
from vtkmodules.util.numpy_support import vtk_to_numpy

LAYERS, HEADS, TOKENS, SIZE = 2, 3, 4, 5
TEXT = ["All", " you", " need", "ü"]


def attentions(scores):
    """The causal softmax of scores [..., T, T]."""
    scores = numpy.where(numpy.tri(TOKENS) > 0, scores, -numpy.inf)
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


class Record(AtlasTest):
    def setUp(self):
        super().setUp()
        random = numpy.random.default_rng(5)
        self.query, self.key = random.normal(size=(2, LAYERS, 1, TOKENS, HEADS, SIZE)).astype("f2")
        scores = numpy.einsum("lbqhd,lbkhd->lbhqk", self.query.astype("f8"), self.key.astype("f8"))
        self.expected = attentions(scores / SIZE**0.5)

        def save_file(tensors, path, metadata):
            atlastest.write_safetensors(path, tensors, metadata)

        module = types.ModuleType("safetensors.numpy")
        module.save_file = save_file
        modules = {"safetensors": types.ModuleType("safetensors"), "safetensors.numpy": module}
        patch = unittest.mock.patch.dict(sys.modules, modules)
        patch.start()
        self.addCleanup(patch.stop)

    def check(self, path, recording, architecture):
        record.save(path, *recording)
        self.assertEqual(list(path.parent.glob("*.part*")), [])
        reader = atlastest.read_recording(path)
        fields = atlastest.fetch(reader).GetFieldData()
        self.assertEqual(fields.GetAbstractArray("Architecture").GetValue(0), architecture)
        for layer in range(LAYERS):
            for head in range(HEADS):
                attention = atlastest.fetch(simple.AttentionMap(Input=reader, Layer=layer, Head=head))
                found = vtk_to_numpy(attention.GetPointData().GetArray("Weights"))
                found = found.reshape(TOKENS, TOKENS)[::-1]
                numpy.testing.assert_allclose(found, self.expected[layer, 0, head], atol=2e-4)
        labels = attention.GetFieldData().GetAbstractArray("Key Token")
        self.assertEqual([labels.GetValue(i) for i in range(labels.GetNumberOfValues())], TEXT)

    def hugging_face(self, attentions, **called):
        """What record makes of a model that gives these weights of its layers."""

        def model(input_ids, output_attentions):
            self.assertTrue(output_attentions)
            called.get("check", lambda ids: None)(input_ids)
            return types.SimpleNamespace(attentions=attentions)

        def tokenizer(text, return_tensors):
            return {"input_ids": Tensor(numpy.arange(TOKENS)[None])}

        model.config = types.SimpleNamespace(model_type="gpt2")
        if "device" in called:
            model.device = called["device"]
        tokenizer.convert_ids_to_tokens = lambda ids: [TEXT[i] for i in ids]
        return record.record_hugging_face(model, tokenizer, "".join(TEXT), **called.get("options", {}))

    def test_hugging_face(self):
        recording = self.hugging_face(tuple(map(Tensor, self.expected.astype("f4"))))
        self.check(atlastest.OUTPUT / "face.safetensors", recording, "gpt2")
        with self.assertRaisesRegex(ValueError, "eager"):
            self.hugging_face((None,))

    def test_hugging_face_on_a_device(self):
        """Inputs move to the device of the model, gradients are not kept, and some layers can be asked for."""
        weights, gradients = tuple(map(Tensor, self.expected.astype("f4"))), []

        @contextlib.contextmanager
        def no_grad():
            gradients.append("off")
            yield
            gradients.clear()

        def run(**options):
            return self.hugging_face(
                weights, device="cuda", options=options,
                check=lambda ids: self.assertEqual((ids.device, gradients), ("cuda", ["off"])),
            )

        with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(no_grad=no_grad)):
            recording = run(layers=[1], dtype="float16")
            self.assert_raise((lambda: run(layers=[2]), r"layers: expected some of \[0, 1\], found 2"))
        path = atlastest.OUTPUT / "some.safetensors"
        record.save(path, *recording)
        reader = atlastest.read_recording(path)
        for head in range(HEADS):
            attention = atlastest.fetch(simple.AttentionMap(Input=reader, Layer=1, Head=head))
            found = vtk_to_numpy(attention.GetPointData().GetArray("Weights")).reshape(TOKENS, TOKENS)[::-1]
            numpy.testing.assert_allclose(found, self.expected[1, 0, head], atol=5e-4)

    def lens(self, cache, **settings):
        """A model of TransformerLens whose run gives this cache."""
        return types.SimpleNamespace(
            to_tokens=lambda text: Tensor(numpy.arange(TOKENS)[None]),
            to_str_tokens=lambda text: TEXT,
            run_with_cache=lambda ids: (None, cache),
            cfg=types.SimpleNamespace(model_name="gpt2", d_head=SIZE, **settings),
        )

    def cache(self, query, key, shape):
        cache = {"hook_embed": Tensor(numpy.zeros((1, TOKENS, 9), "f4"))}
        for layer in range(LAYERS):
            cache[f"blocks.{layer}.attn.{query}"] = Tensor(self.query[layer].reshape(shape))
            cache[f"blocks.{layer}.attn.{key}"] = Tensor(self.key[layer].reshape(shape))
        return cache

    def test_hooked_transformer(self):
        model = self.lens(self.cache("hook_q", "hook_k", (1, TOKENS, HEADS, SIZE)), attn_scale=SIZE**0.5)
        recording = record.record_transformer_lens(model, "".join(TEXT))
        self.assertNotIn("hook_embed", recording[0])
        self.check(atlastest.OUTPUT / "lens.safetensors", recording, "gpt2")

    def test_transformer_bridge(self):
        for query, key in (("q.hook_out", "k.hook_out"), ("qkv.q_hook_out", "qkv.k_hook_out")):
            with self.subTest(query):
                model = self.lens(self.cache(query, key, (1, TOKENS, HEADS, SIZE)))
                recording = record.record_transformer_lens(model, "".join(TEXT))
                self.check(atlastest.OUTPUT / "bridge.safetensors", recording, "gpt2")

    def test_layers_of_transformer_lens(self):
        model = self.lens(self.cache("hook_q", "hook_k", (1, TOKENS, HEADS, SIZE)), attn_scale=SIZE**0.5)
        tensors, _, _ = record.record_transformer_lens(model, "".join(TEXT), layers=[1], dtype="float16")
        self.assertEqual(set(tensors), {"blocks.1.attn.hook_q", "blocks.1.attn.hook_k", "tokens"})
        self.assertEqual(tensors["blocks.1.attn.hook_q"].dtype, "f2")
        cache = self.cache("q.hook_out", "k.hook_out", (1, TOKENS, HEADS, SIZE))
        for other, options, message in (
            (model, {"layers": [2]}, r"layers: expected some of \[0, 1\], found 2"),
            (model, {"dtype": "bfloat16"}, "float32 or float16"),
            (self.lens(cache, positional_embedding_type="rotary"), {}, "hook_rot_q"),
            (self.lens({}), {}, "found none"),
        ):
            self.assert_raise((lambda: record.record_transformer_lens(other, "".join(TEXT), **options), message))

    def test_either_release_is_loaded(self):
        lens = types.ModuleType("transformer_lens")
        lens.HookedTransformer = types.SimpleNamespace(from_pretrained=lambda name: f"hooked {name}")
        with unittest.mock.patch.dict(sys.modules, {"transformer_lens": lens}):
            self.assertEqual(record.load_transformer_lens("gpt2"), "hooked gpt2")
        bridge = types.ModuleType("transformer_lens.model_bridge")
        bridge.TransformerBridge = types.SimpleNamespace(
            boot_transformers=lambda name, device=None: f"bridge {name}" + (f" on {device}" if device else "")
        )
        modules = {"transformer_lens": lens, "transformer_lens.model_bridge": bridge}
        with unittest.mock.patch.dict(sys.modules, modules):
            self.assertEqual(record.load_transformer_lens("gpt2"), "bridge gpt2")
            self.assertEqual(record.load_transformer_lens("gpt2", "cuda"), "bridge gpt2 on cuda")

    def test_names_of_files_are_refused_before_a_model_is_loaded(self):
        for words in (["-o", "run.npz"], ["-o", f"run{record.INDEX}", "--attention"], ["--dtype", "float64"]):
            with self.subTest(words), unittest.mock.patch.object(record, "_load") as load:
                with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
                    record.main(["model", "a text", *words])
                self.assertEqual(end.exception.code, 2)
                self.assertRegex(said.getvalue(), "expected a name that ends with .safetensors|invalid choice: 'float64'")
                load.assert_not_called()
        with self.assertRaisesRegex(ValueError, "run.safetensors.index.json: expected a name that ends with .safetensors"):
            record.save("run.safetensors.index.json", {}, [], {})

    def test_models_are_called_by_their_folders(self):
        names = {
            "gpt2": "gpt2",
            "openai-community/gpt2": "gpt2",
            "/hub/models--openai-community--gpt2/snapshots/607a30d": "gpt2",
            "runs/fine/checkpoint-300": "fine/checkpoint-300",
            "": "",
        }
        self.assertEqual({place: record._model_name(record.pathlib.Path(place)) for place in names}, names)

    def test_shipped_recording(self):
        """The command in Data/README.md makes recordings/language-2.safetensors, but for the rounding of the machine."""
        command = (atlastest.DATA / "README.md").read_text(encoding="utf-8")
        command = command[command.index("attention-atlas record Data/models/language-2") :]
        words = shlex.split(command[: command.index("\n```")].replace("\\\n", " "))
        self.assertEqual(words[-2:], ["-o", "language-2.safetensors"])
        again = atlastest.OUTPUT / "again.safetensors"
        program = os.environ["ATLAS_PROGRAM"]
        subprocess.run([program, *words[1:-1], str(again)], cwd=atlastest.SOURCE, check=True, capture_output=True)
        shipped = atlastest.DATA / "recordings" / words[-1]
        self.assertLess(shipped.stat().st_size, 3e6)
        (expected, described), (found, description) = map(atlastest.read_safetensors, (shipped, again))
        self.assertEqual(description, described)
        self.assertEqual(set(found), set(expected))
        for name, values in expected.items():
            self.assert_close(found[name], values, 1e-4)
