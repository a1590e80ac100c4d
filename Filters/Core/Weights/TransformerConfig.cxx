#include "TransformerConfig.h"

#include "Error.h"
#include "JsonSettings.h"
#include "MappedFile.h"
#include "Pi.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace atlas
{
namespace
{

using nlohmann::json;

constexpr std::array<Named<Activation>, 8> Activations = { {
  { "gelu", Activation::Gelu },
  { "gelu_fast", Activation::GeluTanh },
  { "gelu_new", Activation::GeluTanh },
  { "gelu_pytorch_tanh", Activation::GeluTanh },
  { "gelu_python", Activation::Gelu },
  { "relu", Activation::Relu },
  { "silu", Activation::Silu },
  { "swish", Activation::Silu },
} };

/// Sets d_head = d_model / H, and the divisor of scores to its square root.
void SplitHeads(TransformerConfig& config, const Settings& settings)
{
  if (config.modelDimension % config.heads != 0)
  {
    settings.Fail("the number of heads, " + std::to_string(config.heads) +
                  ", does not divide the dimension of the model, " +
                  std::to_string(config.modelDimension) + ".");
  }
  config.keyHeads = config.heads;
  config.headDimension = config.modelDimension / config.heads;
  config.attentionScale = std::sqrt(static_cast<double>(config.headDimension));
}

TransformerConfig ParseGpt2(const Settings& settings)
{
  settings.RefuseVariants({ "add_cross_attention" });
  TransformerConfig config;
  config.layers = settings.Size({ "n_layer", "num_hidden_layers" });
  config.heads = settings.Size({ "n_head", "num_attention_heads" });
  config.modelDimension = settings.Size({ "n_embd", "hidden_size" });
  config.mlpDimension = settings.Size({ "n_inner" }, 4 * config.modelDimension);
  config.vocabulary = settings.Size({ "vocab_size" });
  config.positions = settings.Size({ "n_positions", "n_ctx", "max_position_embeddings" }, 1024);
  config.epsilon = settings.Number({ "layer_norm_epsilon" }, 1e-5, true);
  config.activation =
    settings.Choice({ "activation_function", "hidden_act" }, "gelu_new", Activations);
  config.lastResidualIsNormed = true;
  config.scaleByLayer = settings.Flag({ "scale_attn_by_inverse_layer_idx" }, false);
  config.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, true);
  SplitHeads(config, settings);
  if (!settings.Flag({ "scale_attn_weights" }, true))
  {
    config.attentionScale = 1;
  }
  return config;
}

/// Parses the settings that BERT and ViT share.
TransformerConfig ParseEncoder(const Settings& settings)
{
  settings.RefuseVariants({ "is_decoder", "add_cross_attention" });
  TransformerConfig config;
  config.layers = settings.Size({ "num_hidden_layers" });
  config.heads = settings.Size({ "num_attention_heads" });
  config.modelDimension = settings.Size({ "hidden_size" });
  config.mlpDimension = settings.Size({ "intermediate_size" }, 4 * config.modelDimension);
  config.epsilon = settings.Number({ "layer_norm_eps" }, 1e-12, true);
  config.activation = settings.Choice({ "hidden_act" }, "gelu", Activations);
  config.mask = AttentionMask::Bidirectional;
  SplitHeads(config, settings);
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

TransformerConfig ParseVit(const Settings& settings)
{
  TransformerConfig config = ParseEncoder(settings);
  config.input = InputKind::Images;
  std::tie(config.imageHeight, config.imageWidth) = settings.Extent({ "image_size" }, 224);
  std::tie(config.patchHeight, config.patchWidth) = settings.Extent({ "patch_size" }, 16);
  config.channels = settings.Size({ "num_channels" }, 3);
  if (config.imageHeight % config.patchHeight != 0 || config.imageWidth % config.patchWidth != 0)
  {
    settings.Fail("the patches of " + std::to_string(config.patchHeight) + " x " +
                  std::to_string(config.patchWidth) + " pixels do not fill an image of " +
                  std::to_string(config.imageHeight) + " x " + std::to_string(config.imageWidth) +
                  ".");
  }
  config.positions = config.PatchRows() * config.PatchColumns() + 1;
  if (const auto labels = settings.Nested({ "id2label" }))
  {
    config.outputVocabulary = labels->Count();
  }
  config.inputBias = settings.Flag({ "qkv_bias" }, true);
  config.tiedUnembedding = false;
  return config;
}

TransformerConfig ParseBloom(const Settings& settings)
{
  settings.RefuseVariants({ "apply_residual_connection_post_layernorm" });
  TransformerConfig config;
  config.layers = settings.Size({ "n_layer", "num_hidden_layers" });
  config.heads = settings.Size({ "n_head", "num_attention_heads" });
  config.modelDimension = settings.Size({ "n_embed", "hidden_size" });
  config.mlpDimension = 4 * config.modelDimension;
  config.vocabulary = settings.Size({ "vocab_size" });
  config.epsilon = settings.Number({ "layer_norm_epsilon" }, 1e-5, true);
  config.activation = Activation::GeluTanh;
  config.position = PositionKind::Alibi;
  config.embeddingNorm = true;
  config.lastResidualIsNormed = true;
  config.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, true);
  SplitHeads(config, settings);
  return config;
}

void ParseRotaryScaling(TransformerConfig& config, const Settings& settings)
{
  using Kind = RotaryScaling::Kind;
  constexpr std::array<Named<Kind>, 3> kinds = { {
    { "default", Kind::None },
    { "linear", Kind::Linear },
    { "llama3", Kind::Llama3 },
  } };
  RotaryScaling& scaling = config.rotaryScaling;
  scaling.kind = settings.Choice({ "rope_type", "type" }, "default", kinds);
  scaling.factor = settings.Number({ "factor" }, 1);
  scaling.lowFactor = settings.Number({ "low_freq_factor" }, 1);
  scaling.highFactor = settings.Number({ "high_freq_factor" }, 4);
  scaling.originalPositions =
    settings.Number({ "original_max_position_embeddings" }, static_cast<double>(config.positions));
  if (scaling.kind == Kind::Llama3 && scaling.highFactor <= scaling.lowFactor)
  {
    settings.Fail("expected 'high_freq_factor' to be above 'low_freq_factor', found " +
                  std::to_string(scaling.highFactor) + " and " + std::to_string(scaling.lowFactor) +
                  ".");
  }
}

TransformerConfig ParseLlama(const Settings& settings)
{
  settings.RefuseVariants({ "sliding_window", "attn_logit_softcapping", "num_local_experts" });
  TransformerConfig config;
  config.layers = settings.Size({ "num_hidden_layers" });
  config.heads = settings.Size({ "num_attention_heads" });
  config.modelDimension = settings.Size({ "hidden_size" });
  config.mlpDimension = settings.Size({ "intermediate_size" });
  config.vocabulary = settings.Size({ "vocab_size" });
  config.positions = settings.Size({ "max_position_embeddings" }, 2048);
  config.norm = NormKind::RmsNorm;
  config.epsilon = settings.Number({ "rms_norm_eps" }, 1e-6, true);
  config.activation = settings.Choice({ "hidden_act" }, "silu", Activations);
  config.gated = true;
  config.position = PositionKind::Rotary;
  config.lastResidualIsNormed = true;
  config.inputBias = settings.Flag({ "attention_bias" }, false);
  config.outputBias = config.inputBias;
  config.mlpBias = settings.Flag({ "mlp_bias" }, false);
  config.tiedUnembedding = settings.Flag({ "tie_word_embeddings" }, false);
  if (settings.Has({ "head_dim" }))
  {
    config.headDimension = settings.Size({ "head_dim" });
    config.attentionScale = std::sqrt(static_cast<double>(config.headDimension));
  }
  else
  {
    SplitHeads(config, settings);
  }
  config.keyHeads = settings.Size({ "num_key_value_heads" }, config.heads);
  config.rotaryBase = settings.Number({ "rope_theta" }, 10000);
  // Newer files have both in rope_parameters.
  if (const auto scaling = settings.Nested({ "rope_scaling", "rope_parameters" }))
  {
    config.rotaryBase = scaling->Number({ "rope_theta" }, config.rotaryBase);
    ParseRotaryScaling(config, *scaling);
  }
  const double partial = settings.Number({ "partial_rotary_factor" }, 1);
  if (config.headDimension % 2 != 0 || partial != 1)
  {
    settings.Fail("expected a rotary embedding of all components of a head, and an even head "
                  "dimension, found the head dimension " +
                  std::to_string(config.headDimension) + " and the partial_rotary_factor " +
                  std::to_string(partial) + ".");
  }
  return config;
}

/// Parses the values of normalization_type in TransformerLens.
void ParseLensNorm(TransformerConfig& config, const Settings& settings)
{
  struct Norm
  {
    NormKind kind;
    bool folded;
  };
  constexpr std::array<Named<Norm>, 5> kinds = { {
    { "LN", { NormKind::LayerNorm, false } },
    { "LNPre", { NormKind::LayerNorm, true } },
    { "RMS", { NormKind::RmsNorm, false } },
    { "RMSPre", { NormKind::RmsNorm, true } },
    { "null", { NormKind::None, false } },
  } };
  const Norm norm = settings.Choice({ "normalization_type" }, "null", kinds);
  config.norm = norm.kind;
  config.normsAreFolded = norm.folded;
  config.finalNorm = norm.kind != NormKind::None;
  config.epsilon = settings.Number({ "eps" }, 1e-5, true);
  config.embeddingNorm = settings.Flag({ "post_embedding_ln" }, false);
  if (config.embeddingNorm && norm.kind != NormKind::LayerNorm)
  {
    settings.Fail("'post_embedding_ln' is true, expected 'normalization_type' LN or LNPre then.");
  }
}

/// Rotations of the halves of a whole head, as llama has them.
void ParseLensRotation(TransformerConfig& config, const Settings& settings)
{
  if (settings.Flag({ "rotary_adjacent_pairs" }, false))
  {
    settings.Fail("'rotary_adjacent_pairs' is true, expected rotations of a head's first half with "
                  "its second half.");
  }
  const std::int64_t rotated = settings.Size({ "rotary_dim" }, config.headDimension);
  if (rotated != config.headDimension || rotated % 2 != 0)
  {
    settings.Fail("expected 'rotary_dim' to be 'd_head' and even, found " +
                  std::to_string(rotated) + " of " + std::to_string(config.headDimension) + ".");
  }
  config.rotaryBase = settings.Number({ "rotary_base" }, 10000);
}

/// Parses what depends on positional_embedding_type in TransformerLens.
void ParseLensPositions(TransformerConfig& config, const Settings& settings)
{
  constexpr std::array<Named<PositionKind>, 4> positions = { {
    { "alibi", PositionKind::Alibi },
    { "rotary", PositionKind::Rotary },
    { "shortformer", PositionKind::Shortformer },
    { "standard", PositionKind::Learned },
  } };
  config.position = settings.Choice({ "positional_embedding_type" }, "standard", positions);
  if (config.position == PositionKind::Rotary)
  {
    ParseLensRotation(config, settings);
  }
  if (config.position == PositionKind::Alibi && config.mask != AttentionMask::Causal)
  {
    settings.Fail("'attention_dir' is bidirectional, expected causal with ALiBi positions.");
  }
}

TransformerConfig ParseTransformerLens(const Settings& settings)
{
  settings.RefuseVariants({ "use_local_attn", "window_size", "attn_scores_soft_cap",
    "parallel_attn_mlp", "use_qk_norm", "final_rms", "num_experts",
    "relative_attention_num_buckets", "use_normalization_before_and_after",
    "output_logits_soft_cap", "use_NTK_by_parts_rope", "use_yarn_rope" });
  TransformerConfig config;
  config.layers = settings.Size({ "n_layers" });
  config.modelDimension = settings.Size({ "d_model" });
  config.headDimension = settings.Size({ "d_head" });
  if (!settings.Has({ "n_heads" }) && config.headDimension > config.modelDimension)
  {
    settings.Fail("'n_heads' is missing, and 'd_head', " + std::to_string(config.headDimension) +
                  ", is larger than 'd_model', " + std::to_string(config.modelDimension) + ".");
  }
  config.heads = settings.Size({ "n_heads" }, config.modelDimension / config.headDimension);
  config.keyHeads = settings.Size({ "n_key_value_heads" }, config.heads);
  config.vocabulary = settings.Size({ "d_vocab" });
  config.outputVocabulary = settings.Size({ "d_vocab_out" }, config.vocabulary);
  config.positions = settings.Size({ "n_ctx" });
  if (!settings.Flag({ "attn_only" }, false))
  {
    config.mlpDimension = settings.Size({ "d_mlp" }, 4 * config.modelDimension);
    config.activation = settings.Choice({ "act_fn" }, "", Activations);
    config.gated = settings.Flag({ "gated_mlp" }, false);
  }
  config.mask = settings.Choice({ "attention_dir" }, "causal", AttentionMasks);
  ParseLensPositions(config, settings);
  ParseLensNorm(config, settings);
  config.scaleByLayer = settings.Flag({ "scale_attn_by_inverse_layer_idx" }, false);
  config.attentionScale =
    settings.Flag({ "use_attn_scale" }, true)
      ? settings.Number({ "attn_scale" }, std::sqrt(static_cast<double>(config.headDimension)))
      : 1;
  config.tiedUnembedding = false;
  return config;
}

using Parse = TransformerConfig (*)(const Settings&);

constexpr std::array<Named<Parse>, 6> Architectures = { {
  { "bert", ParseBert },
  { "bloom", ParseBloom },
  { "gpt2", ParseGpt2 },
  { "llama", ParseLlama },
  { "transformer_lens", ParseTransformerLens },
  { "vit", ParseVit },
} };

}

double TransformerConfig::ScoreScale(std::int64_t layer) const
{
  return 1 / (this->attentionScale * (this->scaleByLayer ? static_cast<double>(layer + 1) : 1));
}

std::string KnownArchitectures()
{
  return NamesOf(Architectures);
}

TransformerConfig ParseTransformerConfig(
  std::string_view text, const std::string& source, const std::string& architecture)
{
  json object;
  try
  {
    object = json::parse(text);
  }
  catch (const json::exception& e)
  {
    throw FormatError(source + ": the configuration is not JSON: " + e.what() + ".");
  }
  if (!object.is_object())
  {
    throw FormatError(source + ": expected the configuration to be a JSON object, found " +
                      object.type_name() + ".");
  }
  if (!architecture.empty())
  {
    object["model_type"] = architecture;
  }
  const Settings settings(object, source);
  if (!settings.Has({ "model_type" }))
  {
    settings.Fail("'model_type' is missing, expected one of " + KnownArchitectures() + ".");
  }
  TransformerConfig config = settings.Choice({ "model_type" }, "", Architectures)(settings);
  config.architecture = settings.Text({ "model_type" }, "");
  if (config.heads % config.keyHeads != 0)
  {
    settings.Fail("the number of heads of keys, " + std::to_string(config.keyHeads) +
                  ", does not divide that of queries, " + std::to_string(config.heads) + ".");
  }
  if (config.outputVocabulary == 0)
  {
    config.outputVocabulary = config.vocabulary;
  }
  return config;
}

TransformerConfig ReadTransformerConfig(
  const std::filesystem::path& path, const std::string& architecture)
{
  return ParseTransformerConfig(ReadFile(path), path.string(), architecture);
}

std::vector<double> AlibiSlopes(std::int64_t heads)
{
  std::int64_t power = 1;
  while (2 * power <= heads)
  {
    power *= 2;
  }
  std::vector<double> slopes;
  const auto p = static_cast<double>(power);
  for (std::int64_t k = 1; k <= power; ++k)
  {
    slopes.push_back(std::exp2(-8 * static_cast<double>(k) / p));
  }
  for (std::int64_t k = 1; k <= heads - power; ++k)
  {
    slopes.push_back(std::exp2(-4 * static_cast<double>(2 * k - 1) / p));
  }
  return slopes;
}

std::vector<float> RotaryFrequencies(const TransformerConfig& config)
{
  const RotaryScaling& scaling = config.rotaryScaling;
  const auto dimension = static_cast<double>(config.headDimension);
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < config.headDimension / 2; ++i)
  {
    double frequency = std::pow(config.rotaryBase, -2 * static_cast<double>(i) / dimension);
    // The fraction of the frequency that is unchanged; the rest is divided by the factor.
    double kept = 0;
    if (scaling.kind == RotaryScaling::Kind::Llama3)
    {
      const double waves = scaling.originalPositions * frequency / (2 * Pi);
      kept = (waves - scaling.lowFactor) / (scaling.highFactor - scaling.lowFactor);
      kept = std::min(std::max(kept, 0.0), 1.0);
    }
    if (scaling.kind != RotaryScaling::Kind::None)
    {
      frequency *= kept + (1 - kept) / scaling.factor;
    }
    frequencies.push_back(static_cast<float>(frequency));
  }
  return frequencies;
}

}
