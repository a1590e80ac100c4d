#include "Base/Error.h"
#include "GgufBytes.h"
#include "SeedWriter.h"
#include "SentencePieceBytes.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// The weights that a configuration asks for: what the reader misses is added until it misses
/// nothing. `begun`: those that may be missing, or by which the reader knows the names of others,
/// with their shapes where it takes several.
Tensors WeightsFor(const std::string& config, const std::map<std::string, Shape>& begun)
{
  Tensors tensors;
  for (const auto& [name, shape] : begun)
  {
    tensors[name] = Numbers(shape);
  }
  static const std::regex missing("tensor '(.*)' is missing");
  static const std::regex otherShape("tensor '(.*)': expected shape \\[(.*)\\] by");
  for (int attempt = 0; attempt < 1000; ++attempt)
  {
    try
    {
      Transformer(ParseTransformerConfig(config, "seed"), WeightFiles(ViewsOf(tensors), "seed"));
      return tensors;
    }
    catch (const ModelError& e)
    {
      Shape shape;
      std::cmatch found;
      if (!std::regex_search(e.what(), found, missing))
      {
        if (!std::regex_search(e.what(), found, otherShape))
        {
          throw;
        }
        std::istringstream sizes(found[2]);
        char comma = ' ';
        for (std::uint64_t size = 0; sizes >> size; sizes >> comma)
        {
          shape.push_back(size);
        }
      }
      tensors[found[1]] = Numbers(shape);
    }
  }
  throw ModelError("the seeds: expected weights of " + config);
}

void WriteTransformer(const SeedWriter& seeds, const std::string& name, const std::string& config,
  const std::map<std::string, Shape>& begun = {})
{
  seeds.Write("TransformerConfig", name, config);
  seeds.Write("Transformer", name, config + '\0' + Safetensors(WeightsFor(config, begun)));
}

void WriteTransformers(const SeedWriter& seeds)
{
  WriteTransformer(seeds, "gpt2",
    R"({"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 4, "n_inner": 3, )"
    R"("vocab_size": 3, "n_positions": 2, "layer_norm_epsilon": 1e-5, )"
    R"("activation_function": "gelu_new", "scale_attn_by_inverse_layer_idx": true})");
  WriteTransformer(seeds, "bloom",
    R"({"model_type": "bloom", "n_layer": 1, "n_head": 2, "n_embed": 4, "vocab_size": 3})");
  WriteTransformer(seeds, "llama",
    R"({"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 2, )"
    R"("hidden_size": 4, "intermediate_size": 3, "vocab_size": 3, "num_key_value_heads": 1, )"
    R"("rope_theta": 10000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8, )"
    R"("low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 64}})",
    { { "lm_head.weight", {} } });
  WriteTransformer(seeds, "bert",
    R"({"model_type": "bert", "num_hidden_layers": 1, "num_attention_heads": 2, )"
    R"("hidden_size": 4, "intermediate_size": 3, "vocab_size": 3, "max_position_embeddings": 2, )"
    R"("type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12})");
  WriteTransformer(seeds, "vit",
    R"({"model_type": "vit", "num_hidden_layers": 1, "num_attention_heads": 2, )"
    R"("hidden_size": 4, "intermediate_size": 3, "image_size": [2, 4], "patch_size": 2, )"
    R"("num_channels": 1, "qkv_bias": true})");
  WriteTransformer(seeds, "lens",
    R"({"model_type": "transformer_lens", "n_layers": 1, "d_model": 4, "d_head": 2, )"
    R"("n_heads": 2, "n_key_value_heads": 1, "d_vocab": 3, "n_ctx": 2, "attn_only": true, )"
    R"("positional_embedding_type": "shortformer", "normalization_type": "LNPre", )"
    R"("attention_dir": "causal", "attn_scale": 2})",
    { { "unembed.W_U", {} } });
  // Models whose decoders attend to encoders.
  WriteTransformer(seeds, "t5",
    R"({"model_type": "t5", "num_layers": 1, "num_decoder_layers": 1, "num_heads": 2, )"
    R"("d_model": 4, "d_kv": 3, "d_ff": 3, "vocab_size": 3, "feed_forward_proj": "gated-gelu", )"
    R"("relative_attention_num_buckets": 4, "relative_attention_max_distance": 3, )"
    R"("layer_norm_epsilon": 1e-6, "decoder_start_token_id": 0, "pad_token_id": 0})",
    { { "encoder.block.0.layer.0.layer_norm.weight", {} },
      { "decoder.block.0.layer.0.layer_norm.weight", {} } });
  const std::string sizes =
    R"(, "d_model": 4, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 3, )"
    R"("decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 3, "vocab_size": 3, )"
    R"("activation_function": "gelu", )";
  const std::map<std::string, Shape> begun = { { "final_logits_bias", {} },
    { "encoder.layers.0.fc1.bias", {} }, { "decoder.layers.0.fc1.bias", {} } };
  WriteTransformer(seeds, "bart",
    R"({"model_type": "bart")" + sizes + R"("max_position_embeddings": 2, )" +
      R"("scale_embedding": true, "decoder_start_token_id": 2})",
    begun);
  WriteTransformer(seeds, "marian",
    R"({"model_type": "marian")" + sizes + R"("max_position_embeddings": 2, )" +
      R"("decoder_vocab_size": 3, "share_encoder_decoder_embeddings": true})",
    begun);
  WriteTransformer(seeds, "whisper",
    R"({"model_type": "whisper")" + sizes + R"("num_mel_bins": 2, "max_source_positions": 2, )" +
      R"("max_target_positions": 2})",
    { { "encoder.embed_positions.weight", {} }, { "encoder.layers.0.fc1.bias", {} },
      { "decoder.embed_tokens.weight", {} } });
  // Models of pictures among words: one of images of one size, and one of any size with windows.
  const std::string text =
    R"("num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 3, )"
    R"("vocab_size": 5, "max_position_embeddings": 16)";
  WriteTransformer(seeds, "llava",
    R"({"model_type": "llava", "image_token_index": 3, "vision_feature_layer": -1, )"
    R"("text_config": {"model_type": "llama", "hidden_size": 4, )" +
      text +
      R"(}, "vision_config": {"model_type": "clip_vision_model", "hidden_size": 4, )"
      R"("num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 3, )"
      R"("image_size": 4, "patch_size": 2, "num_channels": 1}})",
    { { "language_model.model.embed_tokens.weight", {} }, { "language_model.lm_head.weight", {} },
      { "vision_tower.vision_model.embeddings.class_embedding", { 4 } },
      { "vision_tower.vision_model.embeddings.patch_embedding.weight", {} },
      { "vision_tower.vision_model.embeddings.position_embedding.weight", { 5, 4 } },
      { "multi_modal_projector.linear_1.weight", {} },
      { "multi_modal_projector.linear_1.bias", {} },
      { "multi_modal_projector.linear_2.bias", {} } });
  WriteTransformer(seeds, "qwen2_5_vl",
    R"({"model_type": "qwen2_5_vl", "image_token_id": 3, "video_token_id": 1, "hidden_size": 8, )"
    R"("num_key_value_heads": 2, )" +
      text +
      R"(, "rope_scaling": {"mrope_section": [1, 1, 0]}, "vision_config": {"depth": 1, )"
      R"("hidden_size": 8, "num_heads": 2, "intermediate_size": 3, "out_hidden_size": 8, )"
      R"("in_channels": 1, "patch_size": 2, "window_size": 4, "fullatt_block_indexes": []}})",
    { { "lm_head.weight", {} }, { "model.embed_tokens.weight", {} },
      { "visual.patch_embed.proj.weight", {} }, { "visual.merger.mlp.0.bias", {} },
      { "visual.merger.mlp.2.bias", {} } });
}

void WriteTokenizers(const SeedWriter& seeds)
{
  const std::string end(1, '\0');
  const std::string vocabulary =
    R"({"a":0,"b":1,"ab":2,"\u0120":3,"\u0120ab":4,"c":5,"\u00c3":6,"\u00a9":7,"<|endoftext|>":8})";
  seeds.Write("Tokenizer", "bytes",
    "B" + vocabulary + end + "#version: 0.2\na b\n\u0120 ab\n" + end +
      "ab abc \u00e9<|endoftext|>");
  seeds.Write("Tokenizer", "words",
    "W[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\n##c\na\n,\n" + end + "Abc, a [MASK]\t\u00c1\u4e2d d");
  seeds.Write("Tokenizer", "json-bytes",
    R"(J{"added_tokens": [{"id": 8, "content": "<|endoftext|>", "special": true, "lstrip": true, )"
    R"("rstrip": true, "single_word": true, "normalized": false}], "normalizer": {"type": "NFC"}, )"
    R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": )"
    R"+({"Regex": "\\p{L}+|\\s+(?!\\S)"}, "behavior": "Isolated", "invert": false}, )+"
    R"({"type": "ByteLevel", "add_prefix_space": true, "use_regex": false}]}, "post_processor": )"
    R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, )"
    R"({"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}], "pair": [{"Sequence": )"
    R"({"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": )"
    R"({"<|endoftext|>": {"id": "<|endoftext|>", "ids": [8], "tokens": ["<|endoftext|>"]}}}, )"
    R"("model": {"type": "BPE", "merges": ["a b", ["\u0120", "ab"]], "ignore_merges": true, )"
    R"("vocab": )" +
      vocabulary + "}}" + end + "ab abc <|endoftext|> d");
  seeds.Write("Tokenizer", "json-words",
    R"(J{"normalizer": {"type": "BertNormalizer", "clean_text": true, "lowercase": true, )"
    R"("handle_chinese_chars": true, "strip_accents": null}, "pre_tokenizer": )"
    R"({"type": "BertPreTokenizer"}, "post_processor": {"type": "BertProcessing", )"
    R"("sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}, "model": {"type": "WordPiece", )"
    R"("unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9, )"
    R"("vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "ab": 3, "##c": 4}}})" +
      end + "Abc ab");
}

/// Tokenizers of characters, not bytes.
void WriteCharacterTokenizers(const SeedWriter& seeds)
{
  const std::string end(1, '\0');
  seeds.Write("Tokenizer", "json-pairs",
    R"(J{"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, )"
    R"({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}, "decoder": )"
    R"({"type": "Strip", "content": " ", "start": 1, "stop": 0}, "model": {"type": "BPE", )"
    R"("unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "merges": ["a b", "\u2581 ab"], )"
    R"("vocab": {"<unk>": 0, "<0x63>": 1, "\u2581": 2, "a": 3, "b": 4, "ab": 5, "\u2581ab": 6}}})" +
      end + "ab abc d");
  seeds.Write("Tokenizer", "json-unigram",
    R"(J{"normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled", )"
    R"("precompiled_charsmap": ""}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, )"
    R"("content": " "}, {"type": "Strip", "strip_left": true, "strip_right": true}]}, )"
    R"("pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", )"
    R"("split": true}, "decoder": {"type": "Metaspace", "replacement": "\u2581"}, "model": )"
    R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["\u2581", -1.5], ["a", -2], )"
    R"(["\u2581ab", -3.25], ["b", -4]]}})" +
      end + "ab  abc d");
}

/// A compiled map of characters that replaces "a" by "x".
std::string CharacterMapBytes()
{
  std::string units(4 * 512, '\0');
  const auto put = [&](std::size_t unit, std::uint32_t value)
  { units.replace(4 * unit, 4, LittleEndian(value, 4)); };
  constexpr std::uint32_t children = 256;
  constexpr std::uint32_t node = children ^ std::uint32_t{ 'a' };
  put(0, children << 10U);
  put(node, std::uint32_t{ 'a' } | 1U << 8U | (node ^ 300U) << 10U);
  put(300, 1U << 31U);
  return LittleEndian(units.size(), 4) + units + std::string("x\0", 2);
}

void WriteTokenizerModels(const SeedWriter& seeds)
{
  seeds.Write("TokenizerModel",
    { { "unigram",
        SentencePieceFile({ { "<unk>", 0, 2 }, { "<s>", 0, 3 }, { "\u2581", -2 }, { "a", -3 },
                            { "\u2581a", -2.5F }, { "b", -4 }, { "ab", 0, 4 }, { "aa", -9, 5 } },
          { 1, CharacterMapBytes(), true, true }) },
      { "pairs", SentencePieceFile({ { "<unk>", 0, 2 }, { "</s>", 0, 3 }, { "<0x31>", 0, 6 },
                                     { "\u2581", -9 }, { "a", -8 }, { "aa", -1 }, { "\u2581a", -2 },
                                     { "aaaa", -3 }, { "the", 0, 4 } },
                   { 2, "", false, false }) },
      { "bytes", SentencePieceFile({ { "<unk>", 0, 2 }, { "a", -1 }, { "<0xEF>", 0, 6 },
                                     { "<0xAC>", 0, 6 }, { "<0x81>", 0, 6 } },
                   { 1, "", true, false }) } });
}

/// GGUF files: a model with a tokenizer of byte pairs, one of pieces, and every type of tensor.
void WriteGgufs(const SeedWriter& seeds)
{
  seeds.Write("Gguf", "llama", TinyGguf().File());
  seeds.Write("Gguf", "qwen2", TinyGguf("qwen2").File(2));
  GgufBytes pieces;
  pieces.AddInteger("general.alignment", 64);
  pieces.AddText("tokenizer.ggml.model", "llama");
  pieces.AddTexts(
    "tokenizer.ggml.tokens", { "<unk>", "<s>", "</s>", "<0x41>", "\xE2\x96\x81", "a", "t", "at" });
  std::string types;
  for (const std::uint64_t type : { 2U, 3U, 3U, 6U, 1U, 1U, 4U, 1U })
  {
    types += LittleEndian(type, 4);
  }
  pieces.AddArray("tokenizer.ggml.token_type", 5, 8, types);
  pieces.AddArray("tokenizer.ggml.scores", 6, 8, FloatBytes({ 0, 0, 0, 0, -1, -2, -3, -4 }));
  pieces.AddArray("tokenizer.ggml.precompiled_charsmap", 0, 4, std::string(4, '\0'));
  seeds.Write("Gguf", "pieces", pieces.File());
  GgufBytes tensors;
  const std::vector<std::pair<std::uint32_t, std::size_t>> blocks = { { 0, 1024 }, { 1, 512 },
    { 2, 144 }, { 3, 160 }, { 6, 176 }, { 7, 192 }, { 8, 272 }, { 12, 144 }, { 14, 210 },
    { 24, 256 }, { 25, 512 }, { 26, 1024 }, { 27, 2048 }, { 28, 2048 }, { 30, 512 } };
  for (const auto& [type, bytes] : blocks)
  {
    tensors.AddTensor(std::to_string(type), { 1, 256 }, type, std::string(bytes, '\x31'));
  }
  seeds.Write("Gguf", "types", tensors.File());
}

}

void atlas::test::WriteModelSeeds(const SeedWriter& seeds)
{
  WriteTransformers(seeds);
  WriteTokenizers(seeds);
  WriteCharacterTokenizers(seeds);
  WriteTokenizerModels(seeds);
  WriteGgufs(seeds);
}
