#include "ArchitectureConfigs.h"

#include "ActivationNames.h"
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

using nlohmann::json;

TransformerConfig ParseGpt2(const Settings& settings)
{
  settings.RefuseVariants({ "add_cross_attention" });
  TransformerConfig config = ParseSizes(settings, { "n_layer", "num_hidden_layers" },
    { "n_head", "num_attention_heads" }, { "n_embd", "hidden_size" }, { "n_inner" });
  config.vocabulary = settings.Size({ "vocab_size" });
  config.positions = settings.Size({ "n_positions", "n_ctx", "max_position_embeddings" }, 1024);
  config.epsilon = settings.Number({ "layer_norm_epsilon" }, 1e-5, true);
  config.activation = settings.Choice({ "activation_function" }, "gelu_new", ActivationNames);
  config.lastResidualIsNormed = true;
  config.scaleByLayer = settings.Flag({ "scale_attn_by_inverse_layer_idx" }, false);
  config.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, true);
  if (!settings.Flag({ "scale_attn_weights" }, true))
  {
    config.attentionScale = 1;
  }
  return config;
}

/// nanoGPT: GPT-2 with or without biases, and by default with the exact GELU.
TransformerConfig ParseNanoGpt(const Settings& settings)
{
  TransformerConfig config = ParseSizes(settings, { "n_layer" }, { "n_head" }, { "n_embd" });
  config.vocabulary = settings.Size({ "vocab_size" });
  config.positions = settings.Size({ "block_size" });
  config.activation = settings.Choice({ "activation_function" }, "gelu", ActivationNames);
  config.lastResidualIsNormed = true;
  config.inputBias = config.outputBias = config.mlpBias = settings.Flag({ "bias" }, true);
  return config;
}

/// GPT-J: attention and MLP in parallel behind one normalization; neighbors are rotated.
TransformerConfig ParseGptJ(const Settings& settings)
{
  TransformerConfig config = ParseGpt2(settings);
  SplitHeads(config, settings); // scores are scaled as in GPT-2 by default
  config.scaleByLayer = false;
  config.positions = settings.Size({ "n_positions" }, 2048);
  config.order = SublayerOrder::ParallelOfOneNorm;
  config.inputBias = config.outputBias = false;
  config.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, false);
  config.position = PositionKind::Rotary;
  config.rotaryDimension = settings.Size({ "rotary_dim" }, 64);
  config.rotatesNeighbors = true;
  CheckRotatedPart(config, settings);
  return config;
}

/// The kinds of attention of GPT-Neo's layers: attention_layers, or attention_types, a list of
/// pairs [[kinds], repetitions].
std::vector<std::string> NeoLayers(const Settings& settings, std::int64_t layers)
{
  std::vector<std::string> kinds = settings.Texts({ "attention_layers" }, layers);
  const json* types = settings.Value({ "attention_types" });
  if (!kinds.empty())
  {
    return kinds;
  }
  if (types == nullptr)
  {
    for (std::int64_t l = 0; l < layers; ++l)
    {
      kinds.emplace_back(l % 2 == 0 ? "global" : "local");
    }
    return kinds;
  }
  const auto refuse = [&]
  {
    settings.Fail(
      "expected 'attention_types' to be a list of [[kinds], repetitions] for ", layers, " layers.");
  };
  for (const json& item : types->is_array() ? *types : json::array())
  {
    if (!item.is_array() || item.size() != 2 || !item[0].is_array() || item[0].empty() ||
        !item[1].is_number_unsigned() || item[1].get<std::uint64_t>() > ToIndex(layers))
    {
      refuse();
    }
    for (std::uint64_t i = 0; i < item[1].get<std::uint64_t>(); ++i)
    {
      for (const json& kind : item[0])
      {
        kinds.push_back(kind.is_string() ? kind.get<std::string>() : std::string());
        if (kinds.size() > ToIndex(layers))
        {
          refuse();
        }
      }
    }
  }
  if (kinds.size() != ToIndex(layers))
  {
    refuse();
  }
  return kinds;
}

/// GPT-Neo: scores are not scaled, and every second layer has a window.
TransformerConfig ParseGptNeo(const Settings& settings)
{
  TransformerConfig config = ParseSizes(
    settings, { "num_layers" }, { "num_heads" }, { "hidden_size" }, { "intermediate_size" });
  config.vocabulary = settings.Size({ "vocab_size" });
  config.positions = settings.Size({ "max_position_embeddings" }, 2048);
  config.epsilon = settings.Number({ "layer_norm_epsilon" }, 1e-5, true);
  config.activation = settings.Choice({ "activation_function" }, "gelu_new", ActivationNames);
  config.lastResidualIsNormed = true;
  config.inputBias = false;
  config.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, true);
  config.attentionScale = 1;
  RequireFewLayers(config, settings);
  const std::int64_t window = settings.Size({ "window_size" }, 256);
  for (const std::string& kind : NeoLayers(settings, config.layers))
  {
    settings.FailIf(kind != "local" && kind != "global", "unknown kind of attention '",
      kind.substr(0, 80), "' of a layer, expected global or local.");
    config.windows.push_back(kind == "local" ? window : 0);
  }
  return config;
}

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
  config.positionSide = config.PatchRows() == config.PatchColumns() ? config.PatchRows() : 0;
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

TransformerConfig ParseBloom(const Settings& settings)
{
  settings.RefuseVariants({ "apply_residual_connection_post_layernorm" });
  TransformerConfig config = ParseSizes(settings, { "n_layer", "num_hidden_layers" },
    { "n_head", "num_attention_heads" }, { "n_embed", "hidden_size" });
  config.vocabulary = settings.Size({ "vocab_size" });
  config.epsilon = settings.Number({ "layer_norm_epsilon" }, 1e-5, true);
  config.activation = Activation::GeluTanh;
  config.position = PositionKind::Alibi;
  config.embeddingNorm = true;
  config.lastResidualIsNormed = true;
  config.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, true);
  return config;
}

/// OPT: positions begin in row 2; the small ones may project their embeddings, or normalize after
/// the sublayers.
TransformerConfig ParseOpt(const Settings& settings)
{
  TransformerConfig config = ParseSizes(
    settings, { "num_hidden_layers" }, { "num_attention_heads" }, { "hidden_size" }, { "ffn_dim" });
  config.vocabulary = settings.Size({ "vocab_size" });
  config.positions = settings.Size({ "max_position_embeddings" }, 2048);
  config.firstPosition = 2;
  const std::int64_t embedding = settings.Size({ "word_embed_proj_dim" }, config.modelDimension);
  config.embeddingDimension = embedding == config.modelDimension ? 0 : embedding;
  config.activation = settings.Choice({ "activation_function" }, "relu", ActivationNames);
  const bool isBefore = settings.Flag({ "do_layer_norm_before" }, true);
  config.normPlace = isBefore ? NormPlace::BeforeSublayer : NormPlace::AfterSublayer;
  const bool removesLast = settings.Flag({ "_remove_final_layer_norm" }, false);
  config.finalNorm = isBefore && !removesLast;
  config.lastResidualIsNormed = true;
  config.normsHaveWeights = settings.Flag({ "layer_norm_elementwise_affine" }, true);
  config.inputBias = config.outputBias = config.mlpBias = settings.Flag({ "enable_bias" }, true);
  config.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, true);
  return config;
}

/// A LayerNorm in place of RMSNorm.
void UseLayerNorm(TransformerConfig& config, const Settings& settings)
{
  config.norm = NormKind::LayerNorm;
  config.epsilon = settings.Number({ "layer_norm_eps" }, 1e-5, true);
}

TransformerConfig ParseLlamaFamily(const Settings& settings, const DecoderDefaults& defaults)
{
  settings.RefuseVariants({ "sliding_window", "attn_logit_softcapping", "num_local_experts" });
  TransformerConfig config = ParseDecoder(settings, defaults);
  config.inputBias = config.outputBias = settings.Flag({ "attention_bias" }, false);
  config.mlpBias = settings.Flag({ "mlp_bias" }, false);
  return config;
}

TransformerConfig ParseLlama(const Settings& settings)
{
  return ParseLlamaFamily(settings, {});
}

/// The width of the MLP in Meta's code, which its files do not hold: 2/3 of 4 d_model, perhaps
/// times a factor, as the next multiple.
std::int64_t MetaMlpDimension(const Settings& settings, std::int64_t modelDimension)
{
  const double factor = settings.Number({ "ffn_dim_multiplier" }, 1);
  const std::int64_t multiple = settings.Size({ "multiple_of" }, 256);
  const std::int64_t twoThirds = 8 * modelDimension / 3; // of 4 d_model, rounded down there too
  const auto hidden = static_cast<std::int64_t>(factor * static_cast<double>(twoThirds));
  return (hidden + multiple - 1) / multiple * multiple;
}

/// Llama with the settings of Meta's params.json, or of llama2.c's model_args.
TransformerConfig ParseMetaLlama(const Settings& settings)
{
  settings.RefuseVariants(
    { "moe", "moe_args", "lora_args", "quantization_args", "vision_chunk_size", "vision_args" },
    "a variant of Llama");
  TransformerConfig config;
  config.layers = settings.Size({ "n_layers" });
  config.heads = settings.Size({ "n_heads" });
  config.modelDimension = settings.Size({ "dim" });
  config.vocabulary = settings.Size({ "vocab_size" });
  config.positions = settings.Size({ "max_seq_len" }, 2048);
  config.norm = NormKind::RmsNorm;
  config.epsilon = settings.Number({ "norm_eps" }, 1e-5, true);
  config.activation = Activation::Silu;
  config.gated = true;
  config.lastResidualIsNormed = true;
  config.inputBias = config.outputBias = config.mlpBias = false;
  SplitHeads(config, settings);
  config.keyHeads = settings.Size({ "n_kv_heads" }, config.heads);
  config.mlpDimension =
    settings.Size({ "hidden_dim" }, MetaMlpDimension(settings, config.modelDimension));
  config.position = PositionKind::Rotary;
  config.rotaryBase = settings.Number({ "rope_theta" }, 10000);
  config.rotatesNeighbors = true;
  CheckRotatedPart(config, settings);
  if (settings.Flag({ "use_scaled_rope" }, false))
  {
    RotaryScaling& scaling = config.rotaryScaling;
    scaling.kind = RotaryScaling::Kind::Llama3;
    scaling.factor = settings.Number({ "rope_scaling_factor" }, 8);
    scaling.lowFactor = 1;
    scaling.highFactor = settings.Number({ "rope_high_freq_factor" }, 4);
    scaling.originalPositions = 8192;
  }
  return config;
}

TransformerConfig ParseMistralFamily(const Settings& settings, const DecoderDefaults& defaults)
{
  TransformerConfig config = ParseDecoder(settings, defaults);
  ParseWindows(config, settings, 4096);
  return config;
}

TransformerConfig ParseMistral(const Settings& settings)
{
  return ParseMistralFamily(settings, { 131072 });
}

/// Windows of Qwen2 and Qwen3: of the layers from max_window_layers on, if they are switched on.
void ParseQwenWindows(TransformerConfig& config, const Settings& settings)
{
  if (settings.Flag({ "use_sliding_window" }, false))
  {
    const std::int64_t first = settings.Signed({ "max_window_layers" }, 28);
    ParseWindows(config, settings, 4096, [first](std::int64_t l) { return l >= first; });
  }
  settings.Ignore({ "sliding_window", "max_window_layers" });
}

TransformerConfig ParseQwen2Family(const Settings& settings, const DecoderDefaults& defaults)
{
  TransformerConfig config = ParseDecoder(settings, defaults);
  config.inputBias = true;
  ParseQwenWindows(config, settings);
  return config;
}

TransformerConfig ParseQwen2(const Settings& settings)
{
  return ParseQwen2Family(settings, { 32768 });
}

TransformerConfig ParseQwen3Family(const Settings& settings, const DecoderDefaults& defaults)
{
  TransformerConfig config = ParseDecoder(settings, defaults);
  config.inputBias = config.outputBias = settings.Flag({ "attention_bias" }, false);
  config.queryKeyNorm = QueryKeyNorm::OfAllHeads;
  ParseQwenWindows(config, settings);
  return config;
}

TransformerConfig ParseQwen3(const Settings& settings)
{
  return ParseQwen3Family(settings, { 32768 });
}

/// What all Gemmas share: gains are stored less 1, and embeddings are scaled.
TransformerConfig ParseGemmas(const Settings& settings, DecoderDefaults defaults)
{
  defaults.activation = nullptr;
  settings.RefuseVariants({ "use_bidirectional_attention" });
  TransformerConfig config = ParseDecoder(settings, defaults);
  config.activation =
    settings.Choice({ "hidden_activation" }, "gelu_pytorch_tanh", ActivationNames);
  config.gainOffset = 1;
  config.embeddingScale = std::sqrt(static_cast<double>(config.modelDimension));
  config.inputBias = config.outputBias = settings.Flag({ "attention_bias" }, false);
  return config;
}

TransformerConfig ParseGemma(const Settings& settings)
{
  TransformerConfig config = ParseGemmas(settings, { 8192, 1e-6, true, 256 });
  // It was published with hidden_act gelu, but always had its approximation.
  if (!settings.Has({ "hidden_activation" }) && settings.Text({ "hidden_act" }, "gelu") != "gelu")
  {
    config.activation = settings.Choice({ "hidden_act" }, "", ActivationNames);
  }
  return config;
}

/// A cap of scores or logits; null: none.
double ParseCap(const Settings& settings, const char* key, double otherwise)
{
  return settings.IsNull(key) ? 0 : settings.Number({ key }, otherwise, true);
}

/// What Gemma 2 and 3 share.
TransformerConfig ParseLaterGemma(const Settings& settings, const DecoderDefaults& defaults)
{
  TransformerConfig config = ParseGemmas(settings, defaults);
  config.normPlace = NormPlace::BeforeAndAfter;
  config.attentionScale = std::sqrt(settings.Number({ "query_pre_attn_scalar" }, 256));
  return config;
}

TransformerConfig ParseGemma2(const Settings& settings)
{
  TransformerConfig config = ParseLaterGemma(settings, { 8192, 1e-6, true, 256 });
  config.scoreCap = ParseCap(settings, "attn_logit_softcapping", 50);
  config.logitCap = ParseCap(settings, "final_logit_softcapping", 30);
  ParseWindows(config, settings, 4096, [](std::int64_t l) { return l % 2 == 0; });
  return config;
}

/// The sizes are those that files of the multimodal models leave out.
TransformerConfig ParseGemma3(const Settings& all)
{
  const Settings settings = PartOf(all, "text_config"); // pictures are not run
  DecoderDefaults defaults = { 131072, 1e-6, true, 256, 26, 8, 4, 2304, 9216, 262208 };
  defaults.rotary.base = 1'000'000;
  defaults.rotary.windowBase = 10'000;
  TransformerConfig config = ParseLaterGemma(settings, defaults);
  config.queryKeyNorm = QueryKeyNorm::OfAllHeads;
  config.scoreCap = ParseCap(settings, "attn_logit_softcapping", 0);
  config.logitCap = ParseCap(settings, "final_logit_softcapping", 0);
  const std::int64_t pattern =
    settings.Size({ "sliding_window_pattern", "_sliding_window_pattern" }, 6);
  ParseWindows(
    config, settings, 4096, [pattern](std::int64_t l) { return (l + 1) % pattern != 0; });
  return config;
}

TransformerConfig ParseGptNeoX(const Settings& settings)
{
  DecoderDefaults defaults;
  defaults.rotary = { 10000, true, 0.25 };
  defaults.activation = "gelu";
  defaults.splitsHeads = true;
  defaults.sharesKeys = false;
  TransformerConfig config = ParseDecoder(settings, defaults);
  UseLayerNorm(config, settings);
  config.gated = false;
  config.inputBias = config.outputBias = settings.Flag({ "attention_bias" }, true);
  config.mlpBias = true;
  const bool isParallel = settings.Flag({ "use_parallel_residual" }, true);
  config.order = isParallel ? SublayerOrder::Parallel : SublayerOrder::Sequential;
  return config;
}

TransformerConfig ParsePhi(const Settings& settings)
{
  DecoderDefaults defaults;
  defaults.rotary = { 10000, true, 0.5 };
  defaults.activation = "gelu_new";
  TransformerConfig config = ParseDecoder(settings, defaults);
  UseLayerNorm(config, settings);
  config.gated = false;
  config.inputBias = config.outputBias = config.mlpBias = true;
  config.order = SublayerOrder::ParallelOfOneNorm;
  config.queryKeyNorm =
    settings.Flag({ "qk_layernorm" }, false) ? QueryKeyNorm::OfAllHeads : QueryKeyNorm::None;
  return config;
}

TransformerConfig ParsePhi3(const Settings& settings)
{
  DecoderDefaults defaults = { 4096, 1e-5 };
  defaults.rotary.isPartial = true;
  defaults.rotary.originalPositions = 4096;
  TransformerConfig config = ParseDecoder(settings, defaults);
  ParseWindows(config, settings, 0);
  return config;
}

TransformerConfig ParseStableLm(const Settings& settings)
{
  DecoderDefaults defaults = { 4096 };
  defaults.rotary = { 10000, true, 0.25 };
  defaults.splitsHeads = true;
  settings.Ignore({ "norm_eps", "rotary_scaling_factor" });
  TransformerConfig config = ParseDecoder(settings, defaults);
  UseLayerNorm(config, settings);
  config.inputBias = settings.Flag({ "use_qkv_bias" }, false);
  const bool isParallel = settings.Flag({ "use_parallel_residual" }, false);
  config.order = isParallel ? SublayerOrder::ParallelOfOneNorm : SublayerOrder::Sequential;
  config.queryKeyNorm =
    settings.Flag({ "qk_layernorm" }, false) ? QueryKeyNorm::OfEachHead : QueryKeyNorm::None;
  return config;
}

TransformerConfig ParseOlmo(const Settings& settings)
{
  TransformerConfig config = ParseDecoder(settings);
  config.norm = NormKind::LayerNorm;
  config.epsilon = 1e-5;
  config.normsHaveWeights = false;
  config.inputBias = config.outputBias = settings.Flag({ "attention_bias" }, false);
  config.projectionClip = settings.Number({ "clip_qkv" }, 0, true);
  return config;
}

using Parse = TransformerConfig (*)(const Settings&);

constexpr std::array<Named<Parse>, 54> Architectures = { {
  { "bart", ParseBart },
  { "bert", ParseBert },
  { "bloom", ParseBloom },
  { "camembert", ParseRoberta },
  { "clip", RefuseClip },
  { "clip_text_model", ParseClipText },
  { "clip_vision_model", ParseClipVision },
  { "deepseek_v2", ParseDeepSeekV2 },
  { "deit", ParseDeit },
  { "dinov2", ParseDinoV2 },
  { "dinov2_with_registers", ParseDinoV2 },
  { "distilbert", ParseDistilBert },
  { "gemma", ParseGemma },
  { "gemma2", ParseGemma2 },
  { "gemma3", ParseGemma3 },
  { "gemma3_text", ParseGemma3 },
  { "gpt2", ParseGpt2 },
  { "gpt_neo", ParseGptNeo },
  { "gpt_neox", ParseGptNeoX },
  { "gpt_oss", ParseGptOss },
  { "gptj", ParseGptJ },
  { "idefics3", ParseSmolVlm },
  { "internvl", ParseInternVl },
  { "llama", ParseLlama },
  { "llava", ParseLlava },
  { "marian", ParseMarian },
  { "mbart", ParseMBart },
  { "meta_llama", ParseMetaLlama },
  { "mistral", ParseMistral },
  { "mixtral", ParseMixtral },
  { "mt5", ParseMT5 },
  { "nanogpt", ParseNanoGpt },
  { "olmo", ParseOlmo },
  { "olmoe", ParseOlmoe },
  { "opt", ParseOpt },
  { "pegasus", ParsePegasus },
  { "phi", ParsePhi },
  { "phi3", ParsePhi3 },
  { "qwen2", ParseQwen2 },
  { "qwen2_5_vl", ParseQwen2Vl },
  { "qwen2_moe", ParseQwen2Moe },
  { "qwen2_vl", ParseQwen2Vl },
  { "qwen3", ParseQwen3 },
  { "qwen3_moe", ParseQwen3Moe },
  { "roberta", ParseRoberta },
  { "siglip", RefuseSiglip },
  { "siglip_vision_model", ParseSiglipVision },
  { "smolvlm", ParseSmolVlm },
  { "stablelm", ParseStableLm },
  { "t5", ParseT5 },
  { "transformer_lens", ParseTransformerLens },
  { "vit", ParseVit },
  { "whisper", ParseWhisper },
  { "xlm-roberta", ParseRoberta },
} };

/// Model types that are not run, and why.
struct RefusedTypes
{
  std::string_view reason;
  std::vector<std::string_view> names;
};
const RefusedTypes* FindRefused(const std::string& name)
{
  static const std::array<RefusedTypes, 4> all = { {
    { "a mixture of experts", { "dbrx", "deepseek", "ernie4_5_moe", "glm4_moe", "granitemoe",
                                "llama4", "llama4_text", "phimoe", "switch_transformers" } },
    { "a mixture of experts with latent attention", { "deepseek_v3", "kimi_k2" } },
    { "a model with linear attention or a recurrent state",
      { "bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "lfm2", "mamba",
        "mamba2", "minimax", "nemotron_h", "qwen3_next", "recurrent_gemma", "rwkv", "zamba2" } },
    { "a pair of encoder and decoder", { "umt5" } },
  } };
  const auto found = std::find_if(all.begin(), all.end(), [&](const RefusedTypes& types)
    { return std::find(types.names.begin(), types.names.end(), name) != types.names.end(); });
  return found == all.end() ? nullptr : &*found;
}

/// Texts of models of pictures among words, with the sizes that their files may leave out.
struct TextPart
{
  std::string_view name;
  TransformerConfig (*parse)(const Settings&, const DecoderDefaults&);
  DecoderDefaults defaults;
};
constexpr DecoderDefaults QwenOfPictures = { 32768, 1e-5, false, 0, 80, 64, 8, 8192, 29568, 152064,
  { 1e6 } };
constexpr std::array<TextPart, 8> TextParts = { {
  { "llama", ParseLlamaFamily, { 2048, 1e-6, false, 0, 32, 32, 0, 4096, 11008, 32000 } },
  { "mistral", ParseMistralFamily, { 131072, 1e-6, false, 0, 32, 32, 8, 4096, 14336, 32000 } },
  { "qwen2", ParseQwen2Family, { 32768, 1e-6, false, 0, 32, 32, 0, 4096, 22016, 151936 } },
  { "qwen2_5_vl", ParseQwen2Family, QwenOfPictures }, // of files without a text_config
  { "qwen2_5_vl_text", ParseQwen2Family, QwenOfPictures },
  { "qwen2_vl", ParseQwen2Family, QwenOfPictures },
  { "qwen2_vl_text", ParseQwen2Family, QwenOfPictures },
  { "qwen3", ParseQwen3Family, { 32768, 1e-6, false, 128, 32, 32, 32, 4096, 22016, 151936 } },
} };

}

TransformerConfig ParseTextPart(
  const Settings& all, const Settings& settings, const std::string& name)
{
  const auto* part = FindNamed(TextParts, name);
  if (part == nullptr)
  {
    settings.Fail("unknown model_type '", name.substr(0, 80), "' of the text, expected one of ",
      NamesOf(TextParts), ".");
  }
  TransformerConfig config = part->parse(settings, part->defaults);
  config.tiedUnembedding = config.tiedUnembedding || all.Flag({ "tie_word_embeddings" }, false);
  return config;
}

std::string KnownArchitectures()
{
  return NamesOf(Architectures);
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
  const std::string name = settings.Text({ "model_type" }, "");
  if (const RefusedTypes* refused = FindRefused(name))
  {
    settings.Fail("the model_type '", name, "' is ", refused->reason,
      ", which is not run here; recordings of it that were made elsewhere can be "
      "read. Expected one of ",
      KnownArchitectures(), ".");
  }
  const Parse parse = settings.Choice({ "model_type" }, "", Architectures);
  const bool isText = parse != ParseQwen2Vl && FindNamed(TextParts, name) != nullptr;
  return isText && settings.IsNested({ "text_config" })
           ? ParseTextPart(settings, PartOf(settings, "text_config"), name)
           : parse(settings);
}

}
