#include "ArchitectureRules.h"

#include "ActivationNames.h"
#include "Base/Index.h"
#include "Base/NamedValues.h"
#include "ConfigParts.h"
#include "EncoderRules.h"
#include "RotaryConfig.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace atlas
{
namespace
{

using nlohmann::json;

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

/// GPT-Neo: layers that are local have a window, by default every second one.
void NeoWindows(TransformerConfig& config, const Settings& settings)
{
  const std::int64_t window = settings.Size({ "window_size" }, 256);
  for (const std::string& kind : NeoLayers(settings, config.layers))
  {
    settings.FailIf(kind != "local" && kind != "global", "unknown kind of attention '",
      kind.substr(0, 80), "' of a layer, expected global or local.");
    config.windows.push_back(kind == "local" ? window : 0);
  }
}

/// The scaling of rotations in Meta's code, whose files say only that there is one.
void MetaScaling(TransformerConfig& config, const Settings& settings)
{
  if (settings.Flag({ "use_scaled_rope" }, false))
  {
    RotaryScaling& scaling = config.rotaryScaling;
    scaling.kind = RotaryScaling::Kind::Llama3;
    scaling.factor = settings.Number({ "rope_scaling_factor" }, 8);
    scaling.lowFactor = 1;
    scaling.highFactor = settings.Number({ "rope_high_freq_factor" }, 4);
    scaling.originalPositions = 8192;
  }
}

/// Gemma 1 was published with hidden_act gelu, but always had its approximation. Releases of the
/// original differ in which of both settings they read.
void GemmaActivation(TransformerConfig& config, const Settings& settings)
{
  constexpr const char* approximation = "gelu_pytorch_tanh";
  const auto name = [&](const char* key)
  {
    const std::string found = settings.Text({ key }, approximation);
    return found == "gelu" && key == std::string_view("hidden_act") ? approximation : found;
  };
  const std::string act = name("hidden_act");
  const std::string activation = name("hidden_activation");
  settings.FailIf(settings.Has({ "hidden_activation" }) && act != activation,
    "expected 'hidden_act' and 'hidden_activation' to be the same, found ", act.substr(0, 80),
    " and ", activation.substr(0, 80), ".");
  if (act != approximation)
  {
    config.activation = settings.Choice({ "hidden_act" }, "", ActivationNames);
  }
}

/// Falcon: what its original code cannot run.
void CheckFalcon(TransformerConfig& config, const Settings& settings)
{
  const bool isNew = settings.Flag({ "new_decoder_architecture" }, false);
  const std::int64_t norms = settings.Size({ "num_ln_in_parallel_attn" }, isNew ? 2 : 1);
  settings.FailIf(isNew && !settings.Flag({ "parallel_attn" }, true),
    "expected 'parallel_attn' to be true with 'new_decoder_architecture', found false.");
  settings.FailIf(norms > 2 || (norms == 2 && !isNew),
    "expected 'num_ln_in_parallel_attn' to be 1, or 2 with 'new_decoder_architecture', found ",
    norms, ".");
  settings.FailIf(config.heads % config.keyHeads != 0, "the number of heads of keys, ",
    config.keyHeads, ", does not divide that of queries, ", config.heads, ".");
}

/// Hunyuan: a larger base in place of a scaling that depends on the length.
void HunyuanBase(TransformerConfig& config, const Settings& settings)
{
  const std::optional<Settings> scaling = settings.Nested({ "rope_parameters", "rope_scaling" });
  const bool isDynamic = scaling && scaling->Text({ "rope_type", "type" }, "") == "dynamic";
  if (scaling && scaling->Has({ "alpha" }) && isDynamic)
  {
    const auto dimension = static_cast<double>(config.headDimension);
    config.rotaryBase *= std::pow(scaling->Number({ "alpha" }, 1), dimension / (dimension - 2));
    scaling->Ignore({ "beta_fast", "beta_slow", "mscale", "mscale_all_dim" }); // of none of it
  }
}

/// CodeGen: the tensor of queries, keys and values has a quarter of the heads in each block.
void CheckCodeGen(TransformerConfig& config, const Settings& settings)
{
  settings.FailIf(
    config.heads % 4 != 0, "expected a number of heads that 4 divides, found ", config.heads, ".");
}

/// The largest of sizes that layers have; the list is emptied if all are the same.
std::int64_t LargestOf(std::vector<std::int64_t>& sizes)
{
  const auto [least, largest] = std::minmax_element(sizes.begin(), sizes.end());
  const std::int64_t found = *largest;
  if (*least == found)
  {
    sizes.clear();
  }
  return found;
}

/// Layers that share keys and values need some of their kind before them.
void CheckSharedKeys(TransformerConfig& config, const Settings& settings)
{
  const std::int64_t own = config.layers - config.sharedKeyLayers;
  if (own <= 0)
  {
    config.sharedKeyLayers = 0; // as in the original code
    return;
  }
  for (std::int64_t l = own; l < config.layers; ++l)
  {
    const bool slides = config.Window(l) > 0;
    settings.FailIf((config.Window(config.KeyLayer(l)) > 0) != slides,
      "expected a layer of the kind of layer ", l, " before the last ", config.sharedKeyLayers,
      ", which share its keys and values (num_kv_shared_layers), found none.");
  }
}

/// Gemma 3n: sizes of MLPs, and the part of their values that are 0, by layer.
void Gemma3nLayers(TransformerConfig& config, const Settings& settings)
{
  const json* size = settings.Value({ "intermediate_size" });
  if (size != nullptr && size->is_array())
  {
    for (const double one : settings.Numbers({ "intermediate_size" }, ToIndex(config.layers), 0))
    {
      settings.FailIf(one < 1 || one != std::floor(one) || one > 1e9,
        "expected 'intermediate_size' to be positive integers, found ", one, ".");
      config.mlpDimensions.push_back(static_cast<std::int64_t>(one));
    }
    config.mlpDimension = LargestOf(config.mlpDimensions);
  }
  else
  {
    config.mlpDimension = settings.Size({ "intermediate_size" }, 16384);
  }
  constexpr std::int64_t sparse = 10;
  constexpr double part = 0.95;
  std::vector<double> parts(ToIndex(config.layers), 0);
  std::fill_n(parts.begin(), config.layers > sparse ? sparse : 0, part);
  if (settings.Has({ "activation_sparsity_pattern" }))
  {
    parts = settings.Numbers({ "activation_sparsity_pattern" }, ToIndex(config.layers), 0);
  }
  for (const double one : parts)
  {
    settings.FailIf(one < 0 || one >= 1,
      "expected 'activation_sparsity_pattern' to be numbers from 0 to below 1, found ", one, ".");
  }
  if (std::any_of(parts.begin(), parts.end(), [](double one) { return one > 0; }))
  {
    config.gateSparsities = parts;
  }
  settings.FailIf(config.activeStream >= config.streams, "expected 'altup_active_idx' to be below ",
    config.streams, ", found ", config.activeStream, ".");
  CheckSharedKeys(config, settings);
}

/// Gemma 4: layers without a window have heads of another size, and perhaps fewer keys, which may
/// be their values, too. The last layer has no window.
void Gemma4Layers(TransformerConfig& config, const Settings& settings)
{
  if (!config.windows.empty())
  {
    config.windows.back() = 0;
  }
  const std::int64_t wide = settings.Size({ "global_head_dim" }, 512);
  const bool areKeys = settings.Flag({ "attention_k_eq_v" }, false);
  const std::int64_t keys = settings.Size({ "num_global_key_value_heads" }, config.keyHeads);
  const std::optional<Settings> layers = settings.Nested({ "per_layer_config" });
  const bool isDouble = settings.Flag({ "use_double_wide_mlp" }, false);
  CheckSharedKeys(config, settings);
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    const bool isFull = config.Window(l) == 0;
    std::int64_t head = isFull && !layers ? wide : config.headDimension;
    std::int64_t count = isFull && areKeys && !layers ? keys : config.keyHeads;
    const std::string number = std::to_string(l);
    if (layers && layers->Has({ number.c_str() }))
    {
      const Settings own = layers->NestedOrEmpty({ number.c_str() });
      head = own.Size({ "head_dim" }, head);
      count = own.Size({ "num_key_value_heads" }, count);
    }
    settings.FailIf(head % 2 != 0 || config.heads % count != 0, "expected layer ", l,
      " to have heads of even dimension, and a number of keys that divides ", config.heads,
      ", found ", head, " and ", count, ".");
    const bool isShared = l >= config.layers - config.sharedKeyLayers;
    config.headDimensions.push_back(head);
    config.keyHeadCounts.push_back(count);
    config.mlpDimensions.push_back(config.mlpDimension * (isDouble && isShared ? 2 : 1));
    config.valuesAreKeys.push_back(areKeys && isFull);
  }
  config.headDimension = LargestOf(config.headDimensions);
  config.rotaryDimension = config.headDimension;
  config.keyHeads = LargestOf(config.keyHeadCounts);
  config.mlpDimension = LargestOf(config.mlpDimensions);
  if (!areKeys)
  {
    config.valuesAreKeys.clear();
  }
}

/// Which layers have attention: those that layer_types says, or `otherwise`. Layers of LFM2 are of
/// other kinds than those of the others, which have older names, too.
void ReadMixers(TransformerConfig& config, const Settings& settings, Mixer mixer,
  const std::function<bool(std::int64_t)>& otherwise,
  const Settings::Keys& keys = { "layer_types" })
{
  RequireFewLayers(config, settings);
  using Kinds = std::vector<Named<bool>>;
  const Kinds kinds = mixer == Mixer::ShortConvolution
                        ? Kinds{ { "conv", false }, { "full_attention", true } }
                        : Kinds{ { "attention", true }, { "full_attention", true },
                            { "linear_attention", false }, { "mamba", false } };
  const std::vector<std::string> types = settings.Texts(keys, config.layers);
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    const auto* kind = types.empty() ? nullptr : FindNamed(kinds, types[l]);
    settings.FailIf(!types.empty() && kind == nullptr, "unknown layer_types '",
      types.empty() ? std::string() : types[l].substr(0, 80), "', expected one of ", NamesOf(kinds),
      ".");
    const bool attends = kind == nullptr ? otherwise(l) : kind->value;
    config.mixers.push_back(attends ? Mixer::Attention : mixer);
  }
  if (config.AttentionsBefore(config.layers) == config.layers)
  {
    config.mixers.clear();
  }
}

/// LFM2: layers that are not in full_attn_idxs have a convolution.
void Lfm2Layers(TransformerConfig& config, const Settings& settings)
{
  const json* list = settings.Value({ "full_attn_idxs" });
  settings.FailIf(list != nullptr && !list->is_array(),
    "expected 'full_attn_idxs' to be a list of numbers of layers.");
  ReadMixers(config, settings, Mixer::ShortConvolution, [list](std::int64_t l)
    { return list == nullptr || std::find(list->begin(), list->end(), json(l)) != list->end(); });
}

/// The heads of layers without attention; `keys` counts those of keys.
void CheckMixerHeads(const TransformerConfig& config, const Settings& settings, const char* keys)
{
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() / 8;
  settings.FailIf(config.mixerHeads > most / config.mixerValueDimension ||
                    config.mixerKeyHeads > most / config.mixerKeyDimension,
    "expected at most ", most, " components of all heads of linear attention, found ",
    config.mixerHeads, " times ", config.mixerValueDimension, " and ", config.mixerKeyHeads,
    " times ", config.mixerKeyDimension, ".");
  settings.FailIf(config.mixerHeads % config.mixerKeyHeads != 0,
    "expected a number of heads of values that '", keys, "', ", config.mixerKeyHeads,
    ", divides, found ", config.mixerHeads, ".");
}

/// Qwen3-Next and Qwen3.5: every full_attention_interval-th layer has attention.
void QwenHybridLayers(TransformerConfig& config, const Settings& settings)
{
  const std::int64_t interval = settings.Size({ "full_attention_interval" }, 4);
  ReadMixers(config, settings, Mixer::DeltaRule,
    [interval](std::int64_t l) { return (l + 1) % interval == 0; });
  CheckMixerHeads(config, settings, "linear_num_key_heads");
}

/// OLMo Hybrid: every fourth layer has attention, at least the last. Without a base of rotations
/// there are none.
void OlmoHybridLayers(TransformerConfig& config, const Settings& settings)
{
  constexpr std::int64_t interval = 4;
  ReadMixers(config, settings, Mixer::DeltaRule,
    [&config](std::int64_t l)
    {
      return l % interval == interval - 1 || (config.layers < interval && l == config.layers - 1);
    });
  CheckMixerHeads(config, settings, "linear_num_key_heads");
  const std::optional<Settings> rotation = settings.Nested({ "rope_parameters", "rope_scaling" });
  const bool isNested =
    rotation && (rotation->Has({ "rope_theta" }) || rotation->IsNull("rope_theta"));
  const Settings& owner = isNested ? *rotation : settings;
  if (owner.IsNull("rope_theta"))
  {
    config.position = PositionKind::None;
    config.rotaryDimension = 0;
  }
}

/// Which layers a list of their numbers names; as the original code, which asks each layer.
std::vector<bool> NamedLayers(const Settings& settings, const char* key, std::int64_t layers)
{
  std::vector<bool> named(ToIndex(layers));
  const json* list = settings.Value({ key });
  for (const json& layer : list != nullptr && list->is_array() ? *list : json::array())
  {
    settings.FailIf(
      !layer.is_number_unsigned(), "expected '", key, "' to be a list of numbers of layers.");
    if (layer.get<std::uint64_t>() < ToIndex(layers))
    {
      named[layer.get<std::uint64_t>()] = true;
    }
  }
  return named;
}

/// Granite 4 and Bamba: layers have attention, also those that are `listed`, or a state space.
/// Files of release 5 of transformers write an infinite limit of steps as an object.
void StateSpaces(
  TransformerConfig& config, const Settings& settings, const std::vector<bool>& listed)
{
  ReadMixers(config, settings, Mixer::StateSpace, [&](std::int64_t l) { return listed[l]; },
    { "layer_types", "layers_block_type" });
  const std::int64_t width = settings.Size({ "mamba_expand" }, 2) * config.modelDimension;
  const json* size = settings.Value({ "mamba_d_head" });
  const bool isGiven = size != nullptr && *size != json("auto");
  config.mixerValueDimension =
    isGiven ? settings.Size({ "mamba_d_head" }) : width / config.mixerHeads;
  settings.FailIf(config.mixerHeads * config.mixerValueDimension != width,
    "expected 'mamba_n_heads' times 'mamba_d_head' to be 'mamba_expand' times 'hidden_size', ",
    width, ", found ", config.mixerHeads, " times ", config.mixerValueDimension, ".");
  CheckMixerHeads(config, settings, "mamba_n_groups");
  const json* limits = settings.Value({ "time_step_limit" });
  const json infinite = { { "__float__", "Infinity" } };
  const json limit = limits == nullptr ? json::array({ 0, infinite }) : *limits;
  const bool isPair = limit.is_array() && limit.size() == 2 && limit[0].is_number();
  const bool isOpen = isPair && limit[1] == infinite;
  settings.FailIf(!isPair || limit[0] < 0 || !(isOpen || (limit[1].is_number() && limit[1] > 0)),
    "expected 'time_step_limit' to be a number of at least 0 and a positive one, found ",
    Describe(limit), ".");
  config.mixerLeastStep = limit[0].get<double>();
  config.mixerMostStep = isOpen ? 0 : limit[1].get<double>();
  if (config.mixers.empty())
  {
    config.mixerHeads = config.mixerKeyHeads = config.mixerTaps = 0;
    config.mixerKeyDimension = config.mixerValueDimension = 0;
  }
}

void StateSpaceLayers(TransformerConfig& config, const Settings& settings)
{
  StateSpaces(config, settings, std::vector<bool>(ToIndex(config.layers)));
}

/// Bamba: the original code knows attn_layer_indices alone.
void BambaLayers(TransformerConfig& config, const Settings& settings)
{
  const std::vector<bool> listed = NamedLayers(settings, "attn_layer_indices", config.layers);
  StateSpaces(config, settings, listed);
  for (std::int64_t l = 0; l < config.layers && settings.Has({ "attn_layer_indices" }); ++l)
  {
    settings.FailIf(config.HasAttention(l) != listed[l],
      "expected 'attn_layer_indices' to be the layers with attention of 'layer_types', found "
      "layer ",
      l, " in one of them.");
  }
}

/// The layers of Qwen2-MoE and Qwen3-MoE that have experts: every decoder_sparse_step-th, but for
/// those of mlp_only_layers.
void QwenExperts(TransformerConfig& config, const Settings& settings)
{
  const std::int64_t step = settings.Size({ "decoder_sparse_step" }, 1);
  const std::vector<bool> plain = NamedLayers(settings, "mlp_only_layers", config.layers);
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    config.expertLayers.push_back((l + 1) % step == 0 && !plain[l]);
  }
}

/// Groups of experts, of which one is none.
void ExpertGroups(TransformerConfig& config, const Settings& settings)
{
  const std::int64_t groups = config.expertGroups;
  if (groups == 0)
  {
    return;
  }
  const std::int64_t size = config.experts / groups;
  settings.FailIf(config.experts % groups != 0 || config.expertGroupsPerToken > groups ||
                    config.expertsPerToken > size * config.expertGroupsPerToken ||
                    size < config.expertGroupScores,
    "expected groups of equally many experts, at least ", config.expertGroupScores,
    ", of which 'topk_group' have as many as a token, found ", config.experts, " experts in ",
    groups, " groups, ", config.expertsPerToken, " of them from ", config.expertGroupsPerToken,
    " groups per token.");
  if (groups == 1)
  {
    config.expertGroups = config.expertGroupsPerToken = 0;
  }
}

/// Latent attention: scores grow with the scaling of rotations.
void LatentScale(TransformerConfig& config, const Settings& settings)
{
  if (config.keyLatent == 0)
  {
    return;
  }
  settings.FailIf(config.valueDimension > config.headDimension,
    "expected 'v_head_dim' to be at most 'qk_nope_head_dim' + 'qk_rope_head_dim', ",
    config.headDimension, ", found ", config.valueDimension, ".");
  const std::optional<Settings> scaling = settings.Nested({ "rope_parameters", "rope_scaling" });
  if (scaling && scaling->Text({ "rope_type", "type" }, "default") != "default")
  {
    const double magnitude = YarnMagnitude(
      scaling->Number({ "factor" }, 1), scaling->Number({ "mscale_all_dim" }, 0, true));
    config.attentionScale /= magnitude * magnitude;
  }
}

/// MiniMax-M2: the part of a head that is rotated in files as they were published.
void MiniMaxRotation(TransformerConfig& config, const Settings& settings)
{
  if (!settings.Has({ "rope_parameters" }) && settings.Has({ "rotary_dim" }))
  {
    config.rotaryDimension = settings.Size({ "rotary_dim" });
    CheckRotatedPart(config, settings);
  }
}

/// Llama 4: layers with experts, with chunks, and with queries that grow.
void Llama4Layers(TransformerConfig& config, const Settings& settings)
{
  const std::int64_t step = settings.Size({ "interleave_moe_layer_step" }, 1);
  const bool hasList = settings.Has({ "moe_layers" });
  const std::vector<bool> listed = NamedLayers(settings, "moe_layers", config.layers);
  settings.FailIf(settings.IsNull("attention_chunk_size"),
    "expected 'attention_chunk_size' to be a number of tokens, found null.");
  const std::int64_t chunk = settings.Size({ "attention_chunk_size" }, 8192);
  const std::vector<std::string> types = settings.Texts({ "layer_types" }, config.layers);
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    config.expertLayers.push_back(hasList ? listed[l] : (l + 1) % step == 0);
    const std::string expected = config.Rotates(l) ? "chunked_attention" : "full_attention";
    const std::string& type = types.empty() ? expected : types[l];
    settings.FailIf(type != "chunked_attention" && type != "full_attention",
      "unknown layer_types '", type.substr(0, 80),
      "', expected chunked_attention or full_attention.");
    config.chunks.push_back(type == "chunked_attention" ? chunk : 0);
  }
  config.queryGrowth = settings.Number({ "attn_scale" }, 0.1, true);
  config.queryGrowthStep = settings.Number({ "floor_scale" }, 8192);
  config.growsUnrotated = true;
  const json* grows =
    settings.Value({ "attn_temperature_tuning" }); // true, or a number as published
  if (grows != nullptr && IsOff(*grows))
  {
    config.queryGrowth = 0;
  }
}

using Rule = void (*)(TransformerConfig&, const Settings&);
constexpr std::array<Named<Rule>, 28> Rules = { {
  { "anyGrid", AnyGrid },
  { "anySize", AnySize },
  { "bambaLayers", BambaLayers },
  { "bothSides", BothSides },
  { "codegen", CheckCodeGen },
  { "disentangled", Disentangled },
  { "expertGroups", ExpertGroups },
  { "falcon", CheckFalcon },
  { "gemma3nLayers", Gemma3nLayers },
  { "gemma4Layers", Gemma4Layers },
  { "gemmaActivation", GemmaActivation },
  { "hunyuanBase", HunyuanBase },
  { "images", Images },
  { "latentScale", LatentScale },
  { "lfm2Layers", Lfm2Layers },
  { "llama4Layers", Llama4Layers },
  { "localAttention", LocalAttention },
  { "metaScaling", MetaScaling },
  { "miniMaxRotation", MiniMaxRotation },
  { "neoWindows", NeoWindows },
  { "olmoHybridLayers", OlmoHybridLayers },
  { "paddedPositions", PaddedPositions },
  { "patchBias", PatchBias },
  { "qwenExperts", QwenExperts },
  { "qwenHybridLayers", QwenHybridLayers },
  { "spectrogram", Spectrogram },
  { "stateSpaceLayers", StateSpaceLayers },
  { "waveform", Waveform },
} };

}

void ApplyRule(const std::string& name, TransformerConfig& config, const Settings& settings)
{
  const auto* rule = FindNamed(Rules, name);
  if (rule == nullptr)
  {
    settings.Fail("unknown rule '", name.substr(0, 80), "', expected one of ", NamesOf(Rules), ".");
  }
  rule->value(config, settings);
}

}
