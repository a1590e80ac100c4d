#include "ArchitectureConfigs.h"
#include "Base/Index.h"
#include "Base/NamedValues.h"
#include "ConfigParts.h"

#include <array>
#include <cmath>
#include <optional>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The experts of a layer and how many are chosen for each token.
void ParseExperts(TransformerConfig& config, const Settings& settings, const Settings::Keys& keys,
  std::int64_t experts, const Settings::Keys& keysPerToken, std::int64_t perToken)
{
  config.experts = SizeOr(settings, keys, experts);
  config.expertsPerToken = settings.Size(keysPerToken, perToken);
  settings.FailIf(config.expertsPerToken > config.experts, "expected at most ", config.experts,
    " experts per token, found ", config.expertsPerToken, ".");
  config.expertDimension = config.mlpDimension;
}

/// The layers of Qwen2-MoE and Qwen3-MoE that have experts: every decoder_sparse_step-th, but for
/// those of mlp_only_layers.
void ParseExpertLayers(TransformerConfig& config, const Settings& settings)
{
  RequireFewLayers(config, settings);
  const std::int64_t step = settings.Size({ "decoder_sparse_step" }, 1);
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    config.expertLayers.push_back((l + 1) % step == 0);
  }
  const json* plain = settings.Value({ "mlp_only_layers" });
  for (const json& layer : plain != nullptr && plain->is_array() ? *plain : json::array())
  {
    settings.FailIf(
      !layer.is_number_unsigned(), "expected 'mlp_only_layers' to be a list of numbers of layers.");
    if (layer.get<std::uint64_t>() < ToIndex(config.layers)) // as the original, which asks each
    {
      config.expertLayers[layer.get<std::uint64_t>()] = false;
    }
  }
}

/// The experts of DeepSeek-V2. Scores of experts are a softmax; of groups, that of their best
/// expert.
void ParseDeepSeekExperts(TransformerConfig& config, const Settings& settings)
{
  settings.RefuseVariants({ "norm_topk_prob" }, "a variant of experts");
  constexpr std::array<Named<bool>, 1> functions = { { { "softmax", true } } };
  config.expertWeightsOfAll = settings.Choice({ "scoring_func" }, "softmax", functions);
  constexpr std::array<Named<bool>, 2> methods = { {
    { "greedy", false },
    { "group_limited_greedy", true },
  } };
  settings.Ignore({ "n_group", "topk_group" }); // of a greedy choice
  if (settings.Choice({ "topk_method" }, "greedy", methods))
  {
    config.expertGroups = settings.Size({ "n_group" });
    config.expertGroupsPerToken = settings.Size({ "topk_group" });
    const std::int64_t groups = config.expertGroups;
    settings.FailIf(
      config.experts % groups != 0 || config.expertGroupsPerToken > groups ||
        config.expertsPerToken > config.experts / groups * config.expertGroupsPerToken,
      "expected groups of equally many experts, of which 'topk_group' have as many as "
      "a token, found ",
      config.experts, " experts in ", groups, " groups, ", config.expertsPerToken, " of them from ",
      config.expertGroupsPerToken, " groups per token.");
  }
  config.expertFactor = settings.Number({ "routed_scaling_factor" }, 1);
  config.expertDimension = settings.Size({ "moe_intermediate_size" });
  if (settings.Has({ "n_shared_experts" }))
  {
    config.sharedExpertDimension = settings.Size({ "n_shared_experts" }) * config.expertDimension;
    config.sharedExpertHasGate = false;
  }
  const std::int64_t first = settings.Signed({ "first_k_dense_replace" }, 0);
  const std::int64_t step = settings.Size({ "moe_layer_freq" }, 1);
  RequireFewLayers(config, settings);
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    config.expertLayers.push_back(l >= first && l % step == 0);
  }
}

}

TransformerConfig ParseGptOss(const Settings& settings)
{
  DecoderDefaults defaults = { 131072, 1e-5, false, 64 };
  defaults.rotary.base = 150'000;
  defaults.activation = nullptr;
  TransformerConfig config = ParseDecoder(settings, defaults);
  config.inputBias = config.outputBias = settings.Flag({ "attention_bias" }, true);
  config.mlpBias = true;
  config.sinks = true;
  config.activation = Activation::QuickGelu;
  settings.Ignore({ "initial_context_length" });
  ParseExperts(config, settings, { "num_local_experts", "num_experts" }, 0,
    { "num_experts_per_tok", "experts_per_token" }, 4);
  config.expertLimit = settings.Number({ "swiglu_limit" }, 7);
  ParseWindows(config, settings, 128, [](std::int64_t l) { return l % 2 == 0; });
  return config;
}

TransformerConfig ParseMixtral(const Settings& settings)
{
  DecoderDefaults defaults = { 131072, 1e-5 };
  defaults.rotary.base = 1'000'000;
  TransformerConfig config = ParseDecoder(settings, defaults);
  ParseExperts(
    config, settings, { "num_local_experts", "num_experts" }, 8, { "num_experts_per_tok" }, 2);
  ParseWindows(config, settings, 0);
  return config;
}

TransformerConfig ParseQwen2Moe(const Settings& settings)
{
  settings.RefuseVariants({ "use_sliding_window" });
  settings.Ignore({ "sliding_window", "max_window_layers" });
  TransformerConfig config = ParseDecoder(settings, { 32768 });
  config.inputBias = settings.Flag({ "qkv_bias" }, true);
  ParseExperts(
    config, settings, { "num_experts", "num_local_experts" }, 60, { "num_experts_per_tok" }, 4);
  config.expertDimension = settings.Size({ "moe_intermediate_size" }, 1408);
  config.sharedExpertDimension = settings.Size({ "shared_expert_intermediate_size" }, 5632);
  config.expertWeightsOfAll = !settings.Flag({ "norm_topk_prob" }, false);
  ParseExpertLayers(config, settings);
  return config;
}

TransformerConfig ParseQwen3Moe(const Settings& settings)
{
  TransformerConfig config = ParseDecoder(settings, { 32768 });
  config.inputBias = config.outputBias = settings.Flag({ "attention_bias" }, false);
  config.queryKeyNorm = QueryKeyNorm::OfAllHeads;
  ParseExperts(
    config, settings, { "num_experts", "num_local_experts" }, 128, { "num_experts_per_tok" }, 8);
  config.expertDimension = settings.Size({ "moe_intermediate_size" }, 768);
  config.expertWeightsOfAll = !settings.Flag({ "norm_topk_prob" }, false);
  ParseExpertLayers(config, settings);
  if (settings.Flag({ "use_sliding_window" }, false))
  {
    ParseWindows(config, settings, 4096);
  }
  settings.Ignore({ "sliding_window", "max_window_layers" });
  return config;
}

TransformerConfig ParseOlmoe(const Settings& settings)
{
  TransformerConfig config = ParseDecoder(settings, { 4096, 1e-5 });
  config.inputBias = config.outputBias = settings.Flag({ "attention_bias" }, false);
  config.queryKeyNorm = QueryKeyNorm::Together;
  config.projectionClip = settings.Number({ "clip_qkv" }, 0, true);
  ParseExperts(
    config, settings, { "num_experts", "num_local_experts" }, 64, { "num_experts_per_tok" }, 8);
  config.expertWeightsOfAll = !settings.Flag({ "norm_topk_prob" }, false);
  return config;
}

/// DeepSeek-V2 and its Lite: latent attention. head_dim, if there is one, is only the rotated part
/// of a head.
TransformerConfig ParseDeepSeekV2(const Settings& settings)
{
  settings.RefuseVariants({ "attention_bias" });
  settings.Ignore({ "qk_head_dim" }); // the sum of its parts
  TransformerConfig config = ParseDecoder(settings);
  ParseExperts(config, settings, { "n_routed_experts", "num_experts", "num_local_experts" }, 0,
    { "num_experts_per_tok" }, 0);
  config.keyHeads = config.heads;
  config.keyLatent = settings.Size({ "kv_lora_rank" });
  config.queryLatent = settings.Has({ "q_lora_rank" }) ? settings.Size({ "q_lora_rank" }) : 0;
  config.rotaryDimension = settings.Size({ "qk_rope_head_dim" });
  config.headDimension = settings.Size({ "qk_nope_head_dim" }) + config.rotaryDimension;
  config.rotatesNeighbors = true;
  config.rotatesLast = true;
  CheckRotatedPart(config, settings);
  config.valueDimension = settings.Size({ "v_head_dim" });
  settings.FailIf(config.valueDimension > config.headDimension,
    "expected 'v_head_dim' to be at most 'qk_nope_head_dim' + 'qk_rope_head_dim', ",
    config.headDimension, ", found ", config.valueDimension, ".");
  config.attentionScale = std::sqrt(static_cast<double>(config.headDimension));
  const std::optional<Settings> scaling = settings.Nested({ "rope_parameters", "rope_scaling" });
  if (scaling && config.rotaryScaling.kind == RotaryScaling::Kind::Yarn &&
      scaling->Has({ "mscale_all_dim" }))
  {
    const double magnitude =
      YarnMagnitude(config.rotaryScaling.factor, scaling->Number({ "mscale_all_dim" }, 0, true));
    config.attentionScale /= magnitude * magnitude;
  }
  ParseDeepSeekExperts(config, settings);
  return config;
}

}
