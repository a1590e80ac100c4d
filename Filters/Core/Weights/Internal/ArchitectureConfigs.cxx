#include "ArchitectureConfigs.h"

#include "ActivationNames.h"
#include "ArchitectureRows.h"
#include "Base/Index.h"
#include "ConfigParts.h"
#include "RotaryConfig.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace atlas
{
namespace
{

/// Parses the settings that BERT and ViT share.
TransformerConfig ParseEncoder(const Settings& settings)
{
  settings.RefuseVariants({ "is_decoder", "add_cross_attention" });
  TransformerConfig config = ParseSizes(settings, { "num_hidden_layers" },
    { "num_attention_heads" }, { "hidden_size" }, { "intermediate_size" });
  config.epsilon = settings.Number({ "layer_norm_eps" }, 1e-12, true);
  config.activation = settings.Choice({ "hidden_act" }, "gelu", ActivationNames);
  config.mask = AttentionMask::Bidirectional;
  return config;
}

TransformerConfig ParseBert(const Settings& settings)
{
  TransformerConfig config = ParseEncoder(settings);
  constexpr std::array<Named<PositionKind>, 1> kinds = { {
    { "absolute", PositionKind::Learned },
  } };
  config.position = settings.Choice({ "position_embedding_type" }, "absolute", kinds);
  config.vocabulary = settings.Size({ "vocab_size" });
  config.positions = settings.Size({ "max_position_embeddings" }, 512);
  config.segments = settings.Size({ "type_vocab_size" }, 2);
  config.normPlace = NormPlace::AfterSublayer;
  config.embeddingNorm = true;
  config.finalNorm = false;
  config.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, true);
  return config;
}

/// RoBERTa: BERT whose positions begin after the id of the padding.
TransformerConfig ParseRoberta(const Settings& settings)
{
  TransformerConfig config = ParseBert(settings);
  config.logitsActivation = Activation::Gelu;
  config.paddingToken = settings.Signed({ "pad_token_id" }, 1);
  config.firstPosition = config.paddingToken + 1;
  settings.FailIf(config.firstPosition >= config.positions,
    "expected 'max_position_embeddings' to be above 'pad_token_id' + 1, found ", config.positions,
    " and ", config.paddingToken, ".");
  config.positions -= config.firstPosition;
  return config;
}

TransformerConfig ParseDistilBert(const Settings& settings)
{
  TransformerConfig config =
    ParseSizes(settings, { "n_layers" }, { "n_heads" }, { "dim" }, { "hidden_dim" });
  config.vocabulary = settings.Size({ "vocab_size" });
  config.positions = settings.Size({ "max_position_embeddings" }, 512);
  config.epsilon = 1e-12;
  config.activation = settings.Choice({ "activation" }, "gelu", ActivationNames);
  config.mask = AttentionMask::Bidirectional;
  config.normPlace = NormPlace::AfterSublayer;
  config.embeddingNorm = true;
  config.finalNorm = false;
  config.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, true);
  return config;
}

TransformerConfig ParseVit(const Settings& settings)
{
  TransformerConfig config = ParseEncoder(settings);
  ParseImages(config, settings, 16);
  AllowOtherSizes(config);
  if (const auto labels = settings.Nested({ "id2label" }))
  {
    config.outputVocabulary = labels->Count();
    labels->IgnoreAll();
  }
  config.inputBias = settings.Flag({ "qkv_bias" }, true);
  return config;
}

/// DeiT: ViT with a second token, for distillation.
TransformerConfig ParseDeit(const Settings& settings)
{
  TransformerConfig config = ParseVit(settings);
  config.classTokens = 2;
  ++config.positions;
  return config;
}

TransformerConfig ParseDinoV2(const Settings& settings)
{
  TransformerConfig config = ParseEncoder(settings);
  config.epsilon = settings.Number({ "layer_norm_eps" }, 1e-6, true);
  const bool hasRegisters = settings.Text({ "model_type" }, "") == "dinov2_with_registers";
  config.registers = hasRegisters ? settings.Size({ "num_register_tokens" }, 4) : 0;
  ParseImages(config, settings, hasRegisters ? 16 : 14);
  AllowOtherSizes(config);
  config.inputBias = settings.Flag({ "qkv_bias" }, true);
  config.layerScales = true;
  config.mlpDimension = ScaledWidth(config, settings);
  if (settings.Flag({ "use_swiglu_ffn" }, false))
  {
    // As in the original code: two thirds, rounded up to whole eights.
    config.mlpDimension = (config.mlpDimension * 2 / 3 + 7) / 8 * 8;
    config.gated = true;
    config.activation = Activation::Silu;
  }
  return config;
}

TransformerConfig ParseClipText(const Settings& all)
{
  RequireSame(all, "text_config_dict", "text_config"); // an older name, which counts before it
  const Settings settings = PartOf(all, "text_config");
  TransformerConfig config;
  config.layers = settings.Size({ "num_hidden_layers" }, 12);
  config.heads = settings.Size({ "num_attention_heads" }, 8);
  config.modelDimension = settings.Size({ "hidden_size" }, 512);
  config.mlpDimension = settings.Size({ "intermediate_size" }, 2048);
  config.epsilon = settings.Number({ "layer_norm_eps" }, 1e-5, true);
  config.activation = settings.Choice({ "hidden_act" }, "quick_gelu", ActivationNames);
  config.tiedUnembedding = false;
  SplitHeads(config, settings);
  config.vocabulary = settings.Size({ "vocab_size" }, 49408);
  config.positions = settings.Size({ "max_position_embeddings" }, 77);
  return config;
}

/// A model of two encoders, of which one must be chosen.
TransformerConfig RefuseClip(const Settings& settings)
{
  settings.Fail(
    "the model_type 'clip' has two encoders; choose the architecture clip_text_model or "
    "clip_vision_model.");
}

TransformerConfig RefuseSiglip(const Settings& settings)
{
  settings.Fail(
    "the model_type 'siglip' has two encoders, of which that of pictures is run; choose "
    "the architecture siglip_vision_model.");
}

TransformerConfig RefuseSiglip2(const Settings& settings)
{
  settings.Fail("the model_type 'siglip2' has two encoders, of which that of pictures is run; "
                "choose the architecture siglip2_vision_model.");
}

using Parse = TransformerConfig (*)(const Settings&);

constexpr std::array<Named<Parse>, 41> Architectures = { {
  { "bart", ParseBart },
  { "bert", ParseBert },
  { "blenderbot", ParseBlenderbot },
  { "camembert", ParseRoberta },
  { "clip", RefuseClip },
  { "clip_text_model", ParseClipText },
  { "clip_vision_model", ParseClipVision },
  { "deit", ParseDeit },
  { "dinov2", ParseDinoV2 },
  { "dinov2_with_registers", ParseDinoV2 },
  { "distilbert", ParseDistilBert },
  { "gemma3", ParseGemma3 },
  { "idefics3", ParseSmolVlm },
  { "internvl", ParseInternVl },
  { "llava", ParseLlava },
  { "llava_onevision", ParseLlavaOnevision },
  { "m2m_100", ParseM2M100 },
  { "marian", ParseMarian },
  { "mbart", ParseMBart },
  { "mistral3", ParseMistral3 },
  { "mt5", ParseMT5 },
  { "paligemma", ParsePaliGemma },
  { "pegasus", ParsePegasus },
  { "qwen2_5_vl", ParseQwen2Vl },
  { "qwen2_vl", ParseQwen2Vl },
  { "qwen3_5", ParseQwen3Vl },
  { "qwen3_5_moe", ParseQwen3Vl },
  { "qwen3_vl", ParseQwen3Vl },
  { "qwen3_vl_moe", ParseQwen3Vl },
  { "roberta", ParseRoberta },
  { "siglip", RefuseSiglip },
  { "siglip2", RefuseSiglip2 },
  { "siglip_vision_model", ParseSiglipVision },
  { "smolvlm", ParseSmolVlm },
  { "t5", ParseT5 },
  { "t5gemma", ParseT5Gemma },
  { "transformer_lens", ParseTransformerLens },
  { "umt5", ParseUMT5 },
  { "vit", ParseVit },
  { "whisper", ParseWhisper },
  { "xlm-roberta", ParseRoberta },
} };

/// Model types that are not run, and why.
struct RefusedTypes
{
  std::string_view reason;
  std::vector<std::string_view> names;
  bool hasHeads = true; ///< so that there are recordings of them
};
const RefusedTypes* FindRefused(const std::string& name)
{
  static const std::array<RefusedTypes, 4> all = { {
    { "a mixture of experts", { "dbrx", "deepseek", "switch_transformers" } },
    { "a mixture of experts with latent attention", { "kimi_k2" } },
    { "a model with linear attention or a recurrent state",
      { "falcon_h1", "jamba", "minimax", "nemotron_h", "recurrent_gemma", "zamba2" } },
    { "a model with a recurrent state in all layers, and so without attention and heads",
      { "falcon_mamba", "mamba", "mamba2", "rwkv" }, false },
  } };
  const auto found = std::find_if(all.begin(), all.end(), [&](const RefusedTypes& types)
    { return std::find(types.names.begin(), types.names.end(), name) != types.names.end(); });
  return found == all.end() ? nullptr : &*found;
}

/// Rows of texts of models of pictures among words, and of models that keep the settings of their
/// text in a part.
constexpr const char* TextRow = "/text";

/// The model_types of texts that a model of pictures among words may have: those that its names of
/// tensors in encoders.json fit.
struct TextsOfModel
{
  std::string_view name;
  std::vector<RowName> texts;
};
const std::vector<RowName>* FindTexts(const std::string& name)
{
  static const std::vector<RowName> plain = { { "llama" }, { "mistral" }, { "qwen2" },
    { "qwen3" } };
  static const std::vector<RowName> qwen2 = { { "qwen2_5_vl" }, { "qwen2_5_vl_text" },
    { "qwen2_vl" }, { "qwen2_vl_text" } };
  static const std::array<TextsOfModel, 14> all = { {
    { "gemma3", { { "gemma3_text" } } },
    { "idefics3", plain },
    { "internvl", plain },
    { "llava", plain },
    { "llava_onevision", plain },
    { "mistral3", { { "llama" }, { "ministral3" }, { "mistral" } } },
    { "paligemma", { { "gemma" }, { "gemma2" } } },
    { "qwen2_5_vl", qwen2 },
    { "qwen2_vl", qwen2 },
    { "qwen3_5", { { "qwen3_5_text" } } },
    { "qwen3_5_moe", { { "qwen3_5_moe_text" } } },
    { "qwen3_vl", { { "qwen3_vl_text" } } },
    { "qwen3_vl_moe", { { "qwen3_vl_moe_text" } } },
    { "smolvlm", plain },
  } };
  const auto* found = FindNamed(all, name);
  return found == nullptr ? nullptr : &found->texts;
}

}

TransformerConfig ParseTextPart(
  const Settings& all, const Settings& settings, const std::string& name)
{
  const std::string outer = all.Text({ "model_type" }, "");
  const std::vector<RowName>* texts = FindTexts(outer); // null: the text itself was chosen
  settings.FailIf(texts != nullptr && FindNamed(*texts, name) == nullptr, "unknown model_type '",
    name.substr(0, 80), "' of the text of ", outer, ", expected one of ",
    texts == nullptr ? std::string() : NamesOf(*texts), ".");
  const std::string own = name + "/" + outer;
  TransformerConfig config = ParseByRow(settings, HasRow(own) ? own : name + TextRow);
  config.tiedUnembedding = config.tiedUnembedding || all.Flag({ "tie_word_embeddings" }, false);
  return config;
}

std::string KnownArchitectures()
{
  std::vector<RowName> all = ModelRows();
  for (const Named<Parse>& one : Architectures)
  {
    all.push_back({ std::string(one.name) });
  }
  std::sort(
    all.begin(), all.end(), [](const RowName& a, const RowName& b) { return a.name < b.name; });
  return NamesOf(all);
}

std::string ArchitectureBySettings(const Settings& settings)
{
  const auto hasAll = [&](std::initializer_list<const char*> keys)
  {
    return std::all_of(
      keys.begin(), keys.end(), [&](const char* key) { return settings.Has({ key }); });
  };
  return hasAll({ "n_ctx", "d_head", "d_vocab" }) ? "transformer_lens"
         : hasAll({ "n_layer", "n_head", "n_embd", "block_size", "vocab_size" }) ? "nanogpt"
         : hasAll({ "dim", "n_layers", "n_heads", "vocab_size" })                ? "meta_llama"
                                                                                 : "";
}

TransformerConfig ParseArchitecture(const Settings& settings)
{
  if (const nlohmann::json* own = settings.Value({ OwnRow }))
  {
    return ParseByOwnRow(settings, *own);
  }
  const std::string name = settings.Text({ "model_type" }, "");
  if (const RefusedTypes* refused = FindRefused(name))
  {
    settings.Fail("the model_type '", name, "' is ", refused->reason, ", which is not run here",
      refused->hasHeads ? "; recordings of it that were made elsewhere can be read" : "",
      ". Expected one of ", KnownArchitectures(), ".");
  }
  const auto* parser = FindNamed(Architectures, name);
  if (parser == nullptr && HasRow(name + TextRow) && settings.IsNested({ "text_config" }))
  {
    return ParseTextPart(settings, PartOf(settings, "text_config"), name);
  }
  if (IsModelRow(name))
  {
    return ParseByRow(settings, name);
  }
  settings.FailIf(parser == nullptr, "unknown model_type '", name.substr(0, 80),
    "', expected one of ", KnownArchitectures(), ".");
  return parser->value(settings);
}

}
