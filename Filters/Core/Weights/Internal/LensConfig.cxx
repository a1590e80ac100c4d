#include "ActivationNames.h"
#include "ArchitectureConfigs.h"

#include <array>
#include <cmath>

namespace atlas
{
namespace
{

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
  settings.FailIf(config.embeddingNorm && norm.kind != NormKind::LayerNorm,
    "'post_embedding_ln' is true, expected 'normalization_type' LN or LNPre then.");
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
    config.rotatesNeighbors = settings.Flag({ "rotary_adjacent_pairs" }, false);
    config.rotaryDimension = settings.Size({ "rotary_dim" }, config.headDimension);
    settings.FailIf(
      config.rotaryDimension > config.headDimension || config.rotaryDimension % 2 != 0,
      "expected 'rotary_dim' to be even and at most 'd_head', found ", config.rotaryDimension,
      " of ", config.headDimension, ".");
    config.rotaryBase = settings.Number({ "rotary_base" }, 10000);
  }
  settings.FailIf(config.position == PositionKind::Alibi && config.mask != AttentionMask::Causal,
    "'attention_dir' is bidirectional, expected causal with ALiBi positions.");
}

}

TransformerConfig ParseTransformerLens(const Settings& settings)
{
  settings.RefuseVariants(
    { "use_local_attn", "window_size", "attn_scores_soft_cap", "use_qk_norm", "final_rms",
      "num_experts", "relative_attention_num_buckets", "use_normalization_before_and_after",
      "output_logits_soft_cap", "use_NTK_by_parts_rope", "use_yarn_rope", "load_in_4bit" });
  // Of variants that are off, and of the library.
  settings.Ignore({ "act_fn", "attn_scale", "attn_types", "d_mlp", "experts_per_token", "gated_mlp",
    "NTK_by_parts_factor", "NTK_by_parts_high_freq_factor", "NTK_by_parts_low_freq_factor",
    "NTK_original_ctx_len", "relative_attention_max_distance", "rotary_adjacent_pairs",
    "rotary_base", "rotary_base_local", "rotary_dim" });
  TransformerConfig config;
  config.layers = settings.Size({ "n_layers" });
  config.modelDimension = settings.Size({ "d_model" });
  config.headDimension = settings.Size({ "d_head" });
  settings.FailIf(!settings.Has({ "n_heads" }) && config.headDimension > config.modelDimension,
    "'n_heads' is missing, and 'd_head', ", config.headDimension, ", is larger than 'd_model', ",
    config.modelDimension, ".");
  config.heads = settings.Size({ "n_heads" }, config.modelDimension / config.headDimension);
  config.keyHeads = settings.Size({ "n_key_value_heads" }, config.heads);
  config.vocabulary = settings.Size({ "d_vocab" });
  config.outputVocabulary = settings.Size({ "d_vocab_out" }, config.vocabulary);
  config.positions = settings.Size({ "n_ctx" });
  if (!settings.Flag({ "attn_only" }, false))
  {
    config.mlpDimension = settings.Size({ "d_mlp" }, 4 * config.modelDimension);
    config.activation = settings.Choice({ "act_fn" }, "", ActivationNames);
    config.gated = settings.Flag({ "gated_mlp" }, false);
  }
  config.mask = settings.Choice({ "attention_dir" }, "causal", AttentionMasks);
  ParseLensPositions(config, settings);
  ParseLensNorm(config, settings);
  if (settings.Flag({ "parallel_attn_mlp" }, false) && config.mlpDimension > 0)
  {
    config.order = SublayerOrder::Parallel;
  }
  config.scaleByLayer = settings.Flag({ "scale_attn_by_inverse_layer_idx" }, false);
  config.attentionScale =
    settings.Flag({ "use_attn_scale" }, true)
      ? settings.Number({ "attn_scale" }, std::sqrt(static_cast<double>(config.headDimension)))
      : 1;
  config.tiedUnembedding = false;
  return config;
}

}
