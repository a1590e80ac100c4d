"""Writes the small random models of this folder that later releases added, and what transformers computes with them.

Weights are rounded to BF16, in which they are stored; values are computed with the rounded weights in single precision.

    python make.py FOLDER [NAME ...]
"""

import json
import pathlib
import shutil
import sys

import numpy
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

SOURCE = f"transformers {transformers.__version__} eager, torch {torch.__version__}"
DECODERS = {
    "lfm2_moe-a": dict(
        hidden_size=32, intermediate_size=48, moe_intermediate_size=24, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=61, max_position_embeddings=128, num_dense_layers=1, num_experts=6,
        num_experts_per_tok=2, layer_types=["conv", "full_attention", "conv", "full_attention"]),
    "lfm2_moe-b": dict(
        hidden_size=32, intermediate_size=40, moe_intermediate_size=24, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=1, vocab_size=61, max_position_embeddings=128, num_dense_layers=0, num_experts=5,
        num_experts_per_tok=3, layer_types=["conv", "conv", "full_attention"], conv_bias=True, conv_L_cache=4,
        use_expert_bias=False, norm_topk_prob=False, routed_scaling_factor=1.5, tie_word_embeddings=False),
    "granitemoehybrid-a": dict(
        hidden_size=32, intermediate_size=24, shared_intermediate_size=40, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=61, max_position_embeddings=128, num_local_experts=6, num_experts_per_tok=2,
        layer_types=["mamba", "mamba", "attention", "mamba"], position_embedding_type="nope", mamba_n_heads=8,
        mamba_d_state=12, mamba_expand=2, embedding_multiplier=3, logits_scaling=2, residual_multiplier=0.5,
        attention_multiplier=0.3, tie_word_embeddings=True),
    "granitemoehybrid-b": dict(
        hidden_size=32, intermediate_size=24, shared_intermediate_size=40, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=4, vocab_size=61, max_position_embeddings=128, num_local_experts=0, num_experts_per_tok=0,
        layer_types=["mamba", "attention", "mamba"], position_embedding_type="rope", attention_bias=True,
        mamba_n_heads=6, mamba_n_groups=2, mamba_d_state=8, mamba_d_head=16, mamba_expand=3, mamba_d_conv=3,
        mamba_chunk_size=8, mamba_conv_bias=False, mamba_proj_bias=True, time_step_limit=(0.05, 0.7),
        attention_multiplier=0.35),
    "granitemoehybrid-c": dict(
        hidden_size=32, intermediate_size=24, shared_intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=61, max_position_embeddings=128, num_local_experts=0, num_experts_per_tok=0,
        layer_types=["attention", "attention"], position_embedding_type="rope", mamba_n_heads=8, mamba_d_head=8,
        attention_multiplier=0.3, residual_multiplier=0.7),
    "bamba-a": dict(
        hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, vocab_size=61,
        max_position_embeddings=128, attn_layer_indices=[1], mamba_n_heads=4, mamba_d_state=8),
    "bamba-b": dict(
        hidden_size=24, intermediate_size=40, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, vocab_size=61,
        max_position_embeddings=128, attn_layer_indices=[0, 3], mamba_n_heads=6, mamba_d_state=8, mamba_expand=1,
        mamba_d_conv=2, mamba_proj_bias=True, mlp_bias=True, attention_bias=True, tie_word_embeddings=True),
    "gemma4_text-b": dict(
        hidden_size=32, intermediate_size=40, moe_intermediate_size=16, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, global_head_dim=16, num_global_key_value_heads=1, attention_k_eq_v=True,
        vocab_size=61, max_position_embeddings=128, sliding_window=6, hidden_size_per_layer_input=0,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"], enable_moe_block=True, num_experts=5,
        top_k_experts=2, final_logit_softcapping=30.0),
    "gemma4_text-c": dict(
        hidden_size=24, intermediate_size=32, moe_intermediate_size=16, num_hidden_layers=4, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, global_head_dim=12, vocab_size=61, vocab_size_per_layer_input=61,
        max_position_embeddings=128, sliding_window=6, hidden_size_per_layer_input=6, num_kv_shared_layers=2,
        layer_types=["sliding_attention", "full_attention"] * 2, enable_moe_block=True, num_experts=4, top_k_experts=3),
}
QWEN_VISION = dict(
    depth=2, hidden_size=32, intermediate_size=48, num_heads=4, num_position_embeddings=16, out_hidden_size=32, patch_size=8,
    spatial_merge_size=2, temporal_patch_size=2)
QWEN_HYBRID = dict(
    hidden_size=32, num_attention_heads=2, num_key_value_heads=1, head_dim=16, vocab_size=75, max_position_embeddings=256,
    linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=8,
    rope_parameters=dict(
        rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5, mrope_section=[2, 1, 1], mrope_interleaved=True))
QWEN = dict(
    base="qwen3_vl", prompt="See <|vision_start|><|image_pad|><|vision_end|>What?", sizes=[(60, 44)],
    image_processor=dict(patch_size=8, size=dict(shortest_edge=1024, longest_edge=2048)), video="Qwen3VLVideoProcessor")
QWEN_TOKENS = dict(image_token_id=6, video_token_id=7, vision_start_token_id=4, vision_end_token_id=5, tie_word_embeddings=False)
PALI = dict(
    base="llava_onevision", prompt="<image>What?", sizes=[(30, 26)],
    edit={"tokenizer_config.json": lambda text: text.replace('"<image>",', "").replace('"model_max', '"image_token": "<image>",\n  "model_max')},
    replace=dict(processor_class="PaliGemmaProcessor", image_processor=dict(
        image_processor_type="SiglipImageProcessor", size=dict(height=24, width=24), image_seq_length=9, resample=3,
        image_mean=[0.5] * 3, image_std=[0.5] * 3, do_resize=True, do_rescale=True, do_normalize=True,
        rescale_factor=0.00392156862745098)))
PALI_SIZES = dict(
    image_token_index=4, projection_dim=32, hidden_size=32, vision_config=dict(
        model_type="siglip_vision_model", hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        image_size=24, patch_size=8))
PICTURES = {
    "qwen3_5": QWEN | dict(type="qwen3_5", config=QWEN_TOKENS | dict(
        vision_config=QWEN_VISION, text_config=QWEN_HYBRID | dict(
            intermediate_size=48, num_hidden_layers=3, layer_types=["linear_attention", "full_attention", "linear_attention"]))),
    "qwen3_5_moe": QWEN | dict(
        type="qwen3_5_moe", sizes=[(60, 44), (34, 50)],
        prompt="<|vision_start|><|image_pad|><|vision_end|>or <|vision_start|><|image_pad|><|vision_end|>?",
        config=QWEN_TOKENS | dict(
            vision_config=QWEN_VISION | dict(depth=1), text_config=QWEN_HYBRID | dict(
                num_hidden_layers=3, layer_types=["full_attention", "linear_attention", "full_attention"], num_experts=4,
                num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=24))),
    "qwen3_vl_moe": QWEN | dict(type="qwen3_vl_moe", config=QWEN_TOKENS | dict(
        vision_config=QWEN_VISION | dict(deepstack_visual_indexes=[0]), text_config=dict(
            hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, head_dim=12, vocab_size=75,
            max_position_embeddings=256, num_hidden_layers=3, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
            mlp_only_layers=[1], rope_parameters=dict(
                rope_type="default", rope_theta=10000.0, mrope_section=[2, 2, 2], mrope_interleaved=True)))),
    "paligemma": PALI | dict(type="paligemma", config=PALI_SIZES | dict(
        text_config=dict(
            model_type="gemma", hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, head_dim=16, vocab_size=75, max_position_embeddings=256))),
    "paligemma2": PALI | dict(
        type="paligemma", sizes=[(30, 26), (40, 28)], prompt="<image><image>or?", config=PALI_SIZES | dict(
            text_config=dict(
                model_type="gemma2", hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, head_dim=8, vocab_size=75, max_position_embeddings=256, sliding_window=24,
                query_pre_attn_scalar=8))),
}


def fill(model):
    """Random weights, as numbers of BF16."""
    with torch.no_grad():
        for name, values in [*model.named_parameters(), *model.named_buffers()]:
            if not values.is_floating_point() or "inv_freq" in name or "embed_scale" in name:
                continue
            own = torch.randn(values.shape)
            if values.dim() > 1 and "conv" not in name:
                own *= 1.4 / values.shape[-1] ** 0.5
            elif values.dim() > 1:
                own *= 0.5
            elif name.endswith("router.scale"):
                own = 6 + own  # it is divided by the root of the size
            elif ("norm" in name or "scal" in name) and "bias" not in name:
                own = 1 + 0.2 * own
            else:
                own *= 0.4
            values.copy_(own.to(torch.bfloat16).float())


def store(model, folder):
    model.save_pretrained(folder)
    path = folder / "model.safetensors"
    tensors = {name: tensor.to(torch.bfloat16) for name, tensor in load_file(path).items()}
    save_file(tensors, path, {"format": "pt"})
    (folder / "generation_config.json").unlink(missing_ok=True)


def decoder(name, settings, folder):
    torch.manual_seed(sum(map(ord, name)))
    kind = name.rsplit("-", 1)[0]
    config = transformers.CONFIG_MAPPING[kind](**settings)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
    fill(model)
    values = {}
    for i, length in enumerate((23, 11)):
        ids = torch.randint(config.get_text_config().vocab_size, (1, length))
        with torch.no_grad():
            out = model(ids, output_attentions=True, output_hidden_states=True, use_cache=False)
        values[f"{i}.input_ids"] = ids[0]
        own = [a for a in out.attentions if a is not None]
        values |= {f"{i}.attention.{l}": a[0].clone() for l, a in enumerate(own)}
        values[f"{i}.hidden"] = torch.cat(out.hidden_states)
        values[f"{i}.logits"] = out.logits[0]
    store(model, folder)
    save_file({k: v.contiguous() for k, v in values.items()}, folder / "expected.safetensors", {"source": SOURCE, "kind": "decoder"})
    print(name, len(own), out.hidden_states[-1].abs().max().item(), out.logits.std().item(), [round(a.max(-1).values.mean().item(), 2) for a in own],
          sum(f.stat().st_size for f in folder.iterdir()))


def picture(path, width, height, seed):
    """Smooth colors with a little noise."""
    numbers = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width]
    waves = [numpy.sin(x / a + y / b + c) for a, b, c in numbers.uniform(4, 20, (3, 3))]
    values = 128 + 100 * numpy.stack(waves, axis=2) + numbers.normal(0, 4, (height, width, 3))
    Image.fromarray(numpy.clip(values, 0, 255).astype("uint8")).save(path)


def vlm(name, one, root, folder):
    torch.manual_seed(sum(map(ord, name)))
    kind, config, prompt, sizes, base = (one[key] for key in ("type", "config", "prompt", "sizes", "base"))
    config = transformers.CONFIG_MAPPING[kind](**config)
    model = transformers.AutoModelForImageTextToText.from_config(config, attn_implementation="eager").eval().float()
    fill(model)
    for file in ("tokenizer.json", "tokenizer_config.json", "processor_config.json"):
        shutil.copy(root / "vlm" / base / file, folder / file)
    for file, edit in one.get("edit", {}).items():
        (folder / file).write_text(edit((folder / file).read_text()))
    path = folder / "processor_config.json"
    settings = json.loads(path.read_text())
    settings.pop("video_processor", None)
    settings["image_processor"] |= one.get("image_processor", {})
    settings = one.get("replace", settings)
    path.write_text(json.dumps(settings, indent=2) + "\n")
    images = []
    for i, (width, height) in enumerate(sizes):
        file = folder / ("picture.png" if i == 0 else f"picture-{i}.png")
        picture(file, width, height, len(name) + i)
        images.append(Image.open(file))
    values = {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for backend in ("torchvision", "pil"):
        own = transformers.AutoImageProcessor.from_pretrained(folder, backend=backend)
        video = getattr(transformers, one["video"])() if "video" in one else None
        more = dict(video_processor=video) if video else {}
        processor = getattr(transformers, settings["processor_class"])(image_processor=own, tokenizer=tokenizer, **more)
        given = dict(processor(text=[prompt], images=images, return_tensors="pt"))
        pixels = given["pixel_values"]
        values["pixel_values" if backend == "pil" else "pixels.torchvision"] = pixels.contiguous()
    with torch.no_grad():
        out = model(**{key: v for key, v in given.items() if key != "labels"}, output_attentions=True, use_cache=False)
    own = [a for a in out.attentions if a is not None]
    values |= {f"attention.{l}": a[0].contiguous() for l, a in enumerate(own)}
    values |= {f"given.{key}": v.contiguous() for key, v in given.items() if key not in ("input_ids", "pixel_values", "attention_mask", "labels")}
    values |= {"input_ids": given["input_ids"][0], "logits": out.logits[0].contiguous()}
    store(model, folder)
    save_file(values, folder / "expected.safetensors", {"source": SOURCE, "prompt": prompt})
    print(name, given["input_ids"].tolist(), {k: list(v.shape) for k, v in given.items()}, len(own), out.logits.std().item(),
          sum(f.stat().st_size for f in folder.iterdir()))


def main():
    root = pathlib.Path(sys.argv[1])
    for name, one in PICTURES.items():
        if len(sys.argv) == 2 or name in sys.argv[2:]:
            folder = root / "vlm" / name
            folder.mkdir(parents=True, exist_ok=True)
            vlm(name, one, root, folder)
    for name, settings in DECODERS.items():
        if len(sys.argv) == 2 or name in sys.argv[2:]:
            folder = root / "decoder" / name
            folder.mkdir(parents=True, exist_ok=True)
            decoder(name, settings, folder)


main()
