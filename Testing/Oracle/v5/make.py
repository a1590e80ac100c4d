"""Writes the small random models of this folder that later releases added, and what transformers computes with them.

Weights are rounded to BF16, in which they are stored; values are computed with the rounded weights in single precision.

    python make.py FOLDER [NAME ...]
"""

import json
import pathlib
import shutil
import sys
import wave as wav

import numpy
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers.models.audio_spectrogram_transformer import feature_extraction_audio_spectrogram_transformer as extractors
from transformers.models.mpt import modeling_mpt

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
    "falcon-e": dict(
        hidden_size=48, num_attention_heads=12, num_hidden_layers=2, vocab_size=61, max_position_embeddings=128, alibi=True,
        multi_query=False, new_decoder_architecture=False, parallel_attn=False, bias=True),
    "mpt-b": dict(
        d_model=24, n_heads=3, n_layers=2, vocab_size=61, max_seq_len=128, attn_config=dict(alibi_bias_max=5)),
}
WAVES = dict(
    hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, vocab_size=13, conv_dim=(6, 6, 10),
    conv_stride=(5, 4, 3), conv_kernel=(10, 5, 3), num_conv_pos_embedding_groups=4, num_conv_pos_embeddings=6)
STABLE = WAVES | dict(
    do_stable_layer_norm=True, feat_extract_norm="layer", conv_bias=True, num_conv_pos_embeddings=5, num_conv_pos_embedding_groups=6,
    feat_extract_activation="gelu_new", layer_norm_eps=1e-4)
ENCODERS = {
    "roformer-b": dict(
        hidden_size=24, embedding_size=16, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, vocab_size=61,
        max_position_embeddings=64, rotary_value=True),
}
SOUNDS = {
    "wav2vec2-a": WAVES,
    "wav2vec2-b": STABLE,
    "hubert-a": WAVES | dict(feat_proj_layer_norm=False),
    "hubert-b": STABLE | dict(conv_dim=(8, 6), conv_stride=(20, 3), conv_kernel=(30, 4)),
    "audio-spectrogram-transformer-a": dict(
        hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, patch_size=6, frequency_stride=4,
        time_stride=5, max_length=44, num_mel_bins=16, qkv_bias=False),
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
            if not values.is_floating_point() or any(word in name for word in ("inv_freq", "embed_scale", "encoder.embed_positions")):
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
    auto = transformers.AutoModelForMaskedLM if name in ENCODERS else transformers.AutoModelForCausalLM
    model = auto.from_config(config, attn_implementation="eager").eval().float()
    fill(model)
    if kind == "mpt":  # transformers takes 8, whatever the setting
        alibi = modeling_mpt.build_mpt_alibi_tensor
        model.transformer.build_mpt_alibi_tensor = lambda heads, length, device=None: alibi(
            heads, length, config.attn_config.alibi_bias_max, device)
    if kind == "falcon":  # eager adds the biases twice, sdpa once
        for block in model.transformer.h:
            add = block.self_attention.forward
            block.self_attention.forward = lambda *args, add=add, attention_mask=None, **options: add(
                *args, attention_mask=torch.full(attention_mask.shape[-2:], -1e9).triu(1)[None, None], **options)
    more = {} if name in ENCODERS else {"use_cache": False}
    values = {}
    for i, length in enumerate((23, 11)):
        ids = torch.randint(config.get_text_config().vocab_size, (1, length))
        with torch.no_grad():
            out = model(ids, output_attentions=True, output_hidden_states=True, **more)
        values[f"{i}.input_ids"] = ids[0]
        own = [a for a in out.attentions if a is not None]
        values |= {f"{i}.attention.{l}": a[0].clone() for l, a in enumerate(own)}
        values[f"{i}.hidden"] = torch.cat(out.hidden_states)
        values[f"{i}.logits"] = out.logits[0]
    store(model, folder)
    save_file({k: v.contiguous() for k, v in values.items()}, folder / "expected.safetensors", {"source": SOURCE, "kind": "decoder"})
    print(name, len(own), out.hidden_states[-1].abs().max().item(), out.logits.std().item(), [round(a.max(-1).values.mean().item(), 2) for a in own],
          sum(f.stat().st_size for f in folder.iterdir()))


def wave(path, count, seed):
    """A tone that rises, with noise, in 16 bits."""
    numbers = numpy.random.default_rng(seed)
    time = numpy.arange(count) / 16000
    values = 0.4 * numpy.sin(2 * numpy.pi * (300 + 2000 * time) * time) + 0.1 * numbers.normal(size=count) + 0.05
    values = numpy.clip(32768 * values, -32768, 32767).astype("<i2")
    with wav.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(values.tobytes())
    return values.astype("float32") / 32768


def sound(name, settings, folder):
    torch.manual_seed(sum(map(ord, name)))
    kind = name.rsplit("-", 1)[0]
    is_ast = kind.startswith("audio")
    config = transformers.CONFIG_MAPPING[kind](**settings)
    auto = transformers.AutoModel if is_ast else transformers.AutoModelForCTC
    model = auto.from_config(config, attn_implementation="eager").eval().float()
    fill(model)
    if is_ast:
        extractors.is_speech_available = lambda: False  # NumPy in place of torchaudio
        extractor = transformers.ASTFeatureExtractor(num_mel_bins=config.num_mel_bins, max_length=config.max_length)
    else:
        extractor = transformers.Wav2Vec2FeatureExtractor(do_normalize=name.endswith("b"))
    extractor.save_pretrained(folder)
    values = {}
    for i, count in enumerate((2400, 9000 if is_ast else 1333)):
        given = extractor(wave(folder / f"sound-{i}.wav", count, i), sampling_rate=16000, return_tensors="pt").input_values
        with torch.no_grad():
            out = model(given, output_attentions=True, output_hidden_states=True)
        values[f"{i}.input_values"] = given[0].float()
        values |= {f"{i}.attention.{l}": a[0].clone() for l, a in enumerate(out.attentions)}
        values[f"{i}.hidden"] = torch.cat(out.hidden_states)
        if not is_ast:
            values[f"{i}.logits"] = out.logits[0]
    store(model, folder)
    save_file({k: v.contiguous() for k, v in values.items()}, folder / "expected.safetensors", {"source": SOURCE, "kind": "sound"})
    print(name, [tuple(v.shape) for v in values.values()], values["0.hidden"].abs().max().item(),
          [round(a.max(-1).values.mean().item(), 2) for a in out.attentions], sum(f.stat().st_size for f in folder.iterdir()))


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
    for kind, models, make in (("decoder", DECODERS, decoder), ("encoder", ENCODERS, decoder), ("sound", SOUNDS, sound)):
        for name, settings in models.items():
            if len(sys.argv) == 2 or name in sys.argv[2:]:
                folder = root / kind / name
                folder.mkdir(parents=True, exist_ok=True)
                make(name, settings, folder)


main()
