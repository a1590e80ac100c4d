#include "GgufModel.h"

#include "Adapter.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Internal/ArchitectureRows.h"
#include "Internal/GgufSettings.h"
#include "Internal/SettingRoles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

constexpr const char* TokensTensor = "token_embd.weight";
constexpr const char* FrequenciesTensor = "rope_freqs.weight";
constexpr const char* ShortFactorsTensor = "rope_factors_short.weight";
constexpr const char* LongFactorsTensor = "rope_factors_long.weight";

/// The layers of the models of 27 billion weights, whose scores llama.cpp scales otherwise.
constexpr std::int64_t LargestGemma2 = 46;
constexpr std::int64_t LargestGemma3 = 62;

/// The number of tokens: the rows of their embedding.
std::int64_t VocabularyOf(const GgufSettings& settings)
{
  const TensorView* tokens = settings.Find(TokensTensor);
  if (tokens == nullptr || tokens->shape.empty())
  {
    settings.Fail("expected the tensor '", TokensTensor, "' with a row per token, found none.");
  }
  return tokens->shape.front();
}

/// Copies numbers that the file has to the configuration: a key, and its name there.
void AddNumbers(const GgufSettings& settings, json& config,
  std::initializer_list<std::pair<const char*, const char*>> keys)
{
  for (const auto& [key, name] : keys)
  {
    if (settings.Has(key))
    {
      config[name] = settings.Number(key);
    }
  }
}

void AddRotation(const GgufSettings& settings, json& config)
{
  AddNumbers(settings, config,
    { { "rope.freq_base", "rope_theta" }, { "rope.freq_base_swa", "rope_local_base_freq" } });
  const std::int64_t dimension = settings.HeadDimension();
  const bool isSplit = settings.Has("attention.key_length_swa");
  const std::int64_t rotated =
    isSplit ? dimension : settings.Size("rope.dimension_count", dimension);
  settings.FailIf(rotated > dimension, "expected a rotary embedding of at most ", dimension,
    " components of a head, found one of ", rotated, ".");
  // Half a component more, so that the product with the dimension is never rounded down to one
  // less.
  config["partial_rotary_factor"] =
    rotated == dimension ? 1
                         : (static_cast<double>(rotated) + 0.5) / static_cast<double>(dimension);
  // As llama.cpp reads it: scaling is linear unless another type is named, and older files name the
  // factor otherwise.
  const double older = settings.Number("rope.scale_linear", 1);
  const double factor = settings.Number("rope.scaling.factor", older);
  const bool isScaled = factor != 0 && factor != 1;
  const std::string scaling = settings.Text("rope.scaling.type", isScaled ? "linear" : "none");
  settings.Ignore({ "rope.scaling.original_context_length", "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow" });
  if (scaling == "none" || !isScaled)
  {
    return;
  }
  json& rope = config["rope_scaling"];
  rope["rope_type"] = scaling;
  rope["factor"] = factor;
  AddNumbers(settings, rope,
    { { "rope.scaling.original_context_length", "original_max_position_embeddings" },
      { "rope.scaling.yarn_beta_fast", "beta_fast" },
      { "rope.scaling.yarn_beta_slow", "beta_slow" } });
  if (settings.HasLatent() && settings.Has("rope.scaling.yarn_log_multiplier"))
  {
    // llama.cpp has a tenth of it, and no other magnitude than that of all components.
    rope["mscale"] = rope["mscale_all_dim"] =
      settings.Number("rope.scaling.yarn_log_multiplier") * 10;
  }
}

/// Reads what the rotary frequencies are divided by, one number for each rotated pair of a head.
std::vector<double> ReadFactors(const GgufSettings& settings, const char* name, std::int64_t pairs)
{
  const TensorView* view = settings.Find(name);
  if (view == nullptr)
  {
    settings.Fail("tensor '", name, "' is missing, expected ", ShortFactorsTensor, " and ",
      LongFactorsTensor, ".");
  }
  const std::string what = std::string("tensor '") + name + "': expected ";
  settings.FailIf(view->Count() != static_cast<std::uint64_t>(pairs) || !IsFloating(view->dtype),
    what, pairs, " numbers, one for each rotated pair of a head, found the shape ",
    ToString(view->shape), " of type ", Name(view->dtype), ".");
  std::vector<double> factors = view->ToDouble();
  for (const double factor : factors)
  {
    settings.FailIf(
      !std::isfinite(factor) || factor <= 0, what, "positive numbers, found ", factor, ".");
  }
  return factors;
}

/// Divides the rotary frequencies as the file says: by the same numbers always, or by others in
/// texts that are longer than those of the training.
void AddFrequencies(const GgufSettings& settings, TransformerConfig& config)
{
  // llama.cpp multiplies by it, whatever the scaling; YaRN's own factor is in the configuration.
  const double factor = settings.Number("rope.scaling.attn_factor", 1);
  settings.FailIf(!std::isfinite(factor) || factor <= 0,
    "expected rope.scaling.attn_factor to be positive, found ", factor, ".");
  config.rotaryScaling.attentionFactor *= factor;
  config.windowRotaryScaling.attentionFactor *= factor;
  const bool isAlways = settings.HasTensor(FrequenciesTensor);
  const char* shorter = isAlways ? FrequenciesTensor : ShortFactorsTensor;
  const char* longer = isAlways ? FrequenciesTensor : LongFactorsTensor;
  if (!settings.HasTensor(shorter) && !settings.HasTensor(longer))
  {
    return;
  }
  RotaryScaling& scaling = config.rotaryScaling;
  settings.FailIf(scaling.kind != RotaryScaling::Kind::None, "tensor '", shorter,
    "': expected no other scaling of the rotary embedding, found one.");
  const std::int64_t pairs = config.RotatedDimension() / 2;
  scaling.kind = RotaryScaling::Kind::LongRope;
  scaling.shortFactors = ReadFactors(settings, shorter, pairs);
  scaling.longFactors = ReadFactors(settings, longer, pairs);
  if (!isAlways)
  {
    scaling.originalPositions =
      static_cast<double>(settings.Size("rope.scaling.original_context_length"));
  }
}

/// Throws ModelError if the file says otherwise than its architecture which keys a query sees.
void RequireMask(const GgufSettings& settings, const TransformerConfig& config)
{
  const bool isCausal = config.mask == AttentionMask::Causal;
  settings.FailIf(settings.Flag("attention.causal", isCausal) != isCausal,
    "expected attention.causal to be ", isCausal ? "true" : "false", " for '",
    settings.HuggingFaceName(), "', found ", isCausal ? "false" : "true", ".");
}

/// What scores of Gemma 2 and 3 are divided by, squared, which their files leave out: as llama.cpp
/// knows it, the dimension of a head, or of the largest model d_model / H.
std::int64_t ScoreScale(const GgufSettings& settings)
{
  const std::int64_t largest =
    settings.GetFamily().name == "gemma2" ? LargestGemma2 : LargestGemma3;
  return settings.Size("block_count") == largest
           ? settings.Size("embedding_length") / settings.Size("attention.head_count")
           : settings.HeadDimension();
}

/// The latent attention of DeepSeek-V2. Newer files have the dimensions of a head under other
/// names, as its keys are the latent vector for llama.cpp.
void AddLatent(const GgufSettings& settings, json& config)
{
  const auto size = [&](const char* name, const char* older)
  { return settings.Size(settings.Has(name) ? name : older); };
  const std::int64_t keys = size("attention.key_length_mla", "attention.key_length");
  const std::int64_t rotated = settings.Size("rope.dimension_count");
  settings.FailIf(keys <= rotated, "expected heads with more components than the ", rotated,
    " rotated ones, found ", keys, ".");
  settings.Ignore({ "attention.key_length", "attention.value_length" });
  config["qk_rope_head_dim"] = rotated;
  config["qk_nope_head_dim"] = keys - rotated;
  config["v_head_dim"] = size("attention.value_length_mla", "attention.value_length");
  config["kv_lora_rank"] = settings.Size("attention.kv_lora_rank");
  config["num_key_value_heads"] = settings.Size("attention.head_count");
  if (settings.HasTensor("blk.0.attn_q_a.weight"))
  {
    config["q_lora_rank"] = settings.Size("attention.q_lora_rank");
  }
}

/// Rows of the first tensor of this name in a layer: a size of all layers with experts that have
/// it.
std::int64_t RowsOfFirst(const GgufSettings& settings, const char* name)
{
  for (std::int64_t l = 0; l < settings.Size("block_count"); ++l)
  {
    const TensorView* found = settings.Find("blk." + std::to_string(l) + "." + name);
    if (found != nullptr && found->shape.size() >= 2)
    {
      return found->shape[found->shape.size() - 2];
    }
  }
  settings.Fail("expected tensors '", name, "' in layers with experts, found none.");
}

/// Groups of experts, and shared experts, of DeepSeek-V2.
void AddDeepSeekExperts(const GgufSettings& settings, json& config)
{
  constexpr std::array<const char*, 3> functions = { "softmax", "softmax", "sigmoid" };
  const std::int64_t function = settings.Integer("expert_gating_func", 1); // 0: not given
  config["scoring_func"] =
    0 <= function && function < 3 ? functions.at(ToIndex(function)) : std::to_string(function);
  config["norm_topk_prob"] = settings.Flag("expert_weights_norm", false);
  config["first_k_dense_replace"] = settings.Integer("leading_dense_block_count", 0);
  const double factor = settings.Number("expert_weights_scale", 0);
  config["routed_scaling_factor"] = factor == 0 ? 1 : factor;
  if (settings.Integer("expert_shared_count", 0) != 0)
  {
    config["n_shared_experts"] = settings.Size("expert_shared_count");
  }
  settings.Ignore({ "expert_group_used_count" });
  if (settings.Integer("expert_group_count", 0) > 1)
  {
    config["topk_method"] = "group_limited_greedy";
    config["n_group"] = settings.Size("expert_group_count");
    config["topk_group"] = settings.Size("expert_group_used_count");
  }
}

/// A mixture of experts. Which layers have experts follows from the tensors, as do their sizes. How
/// weights of experts are normed is known to llama.cpp by the architecture.
void AddExperts(const GgufSettings& settings, json& config)
{
  const std::string& name = settings.HuggingFaceName();
  constexpr std::array<std::string_view, 6> known = { "deepseek_v2", "gpt_oss", "mixtral", "olmoe",
    "qwen2_moe", "qwen3_moe" };
  settings.FailIf(std::find(known.begin(), known.end(), name) == known.end(),
    "expected a model with one MLP per layer, found a mixture of experts.");
  config["num_experts"] = settings.Size("expert_count");
  config["num_experts_per_tok"] = settings.Size("expert_used_count");
  constexpr std::array<std::string_view, 3> alone = { "gpt_oss", "mixtral", "olmoe" };
  const bool isAlone = std::find(alone.begin(), alone.end(), name) != alone.end();
  config[isAlone ? "intermediate_size" : "moe_intermediate_size"] =
    RowsOfFirst(settings, "ffn_gate_exps.weight");
  if (name == "qwen2_moe")
  {
    config["shared_expert_intermediate_size"] = RowsOfFirst(settings, "ffn_gate_shexp.weight");
  }
  config["norm_topk_prob"] = name == "qwen3_moe";
  if (name == "deepseek_v2")
  {
    AddDeepSeekExperts(settings, config);
    return;
  }
  config["mlp_only_layers"] = json::array();
  for (std::int64_t l = 0; l < settings.Size("block_count"); ++l)
  {
    if (!settings.HasTensor("blk." + std::to_string(l) + ".ffn_gate_inp.weight"))
    {
      config["mlp_only_layers"].push_back(static_cast<std::uint64_t>(l));
    }
  }
}

/// Gemma 4, whose layers with a window have other heads and MLPs than those without.
void AddGemma4(const GgufSettings& settings, json& config)
{
  const std::vector<std::int64_t> keys = settings.Sizes("attention.head_count_kv");
  const std::vector<std::int64_t> widths = settings.Sizes("feed_forward_length");
  const json types = config.value("layer_types", json::array());
  settings.FailIf(types.size() != ToIndex(settings.Size("block_count")),
    "expected attention.sliding_window_pattern to be a list of flags, one for each layer.");
  for (std::size_t l = 0; l < types.size(); ++l)
  {
    const bool isFull = types[l] == "full_attention";
    config[isFull ? "num_global_key_value_heads" : "num_key_value_heads"] =
      keys[std::min(l, keys.size() - 1)];
    const std::string attention = "blk." + std::to_string(l) + ".attn_";
    const bool areKeys =
      settings.HasTensor(attention + "k.weight") && !settings.HasTensor(attention + "v.weight");
    config["attention_k_eq_v"] = config.value("attention_k_eq_v", false) || (isFull && areKeys);
  }
  config["use_double_wide_mlp"] = widths.back() % 2 == 0 && widths.back() / 2 == widths.front();
}

/// The settings that only some architectures have.
void AddVariants(const GgufSettings& settings, json& config)
{
  constexpr const char* window = "attention.sliding_window";
  constexpr const char* pattern = "attention.sliding_window_pattern";
  const RowGguf& family = settings.GetFamily();
  for (const GgufSetting& one : family.settings)
  {
    json value = one.value;
    if (!one.key.empty())
    {
      value = settings.Value(one.key.c_str());
    }
    else if (!one.rows.empty())
    {
      const TensorView* tensor = settings.Find(one.rows);
      value = tensor == nullptr || tensor->shape.empty() ? json() : json(tensor->shape.front());
    }
    else if (!one.tensor.empty() && !settings.HasTensor("blk.0." + one.tensor))
    {
      value = one.otherwise;
    }
    const std::size_t dot = one.name.find('.');
    json& object = dot == std::string::npos ? config : config[one.name.substr(0, dot)];
    if (!value.is_null() && !value.is_array())
    {
      object[one.name.substr(dot + 1)] = value; // npos + 1 is 0
    }
  }
  // Files have the layers with a window as a list of flags, or as the distance of those without.
  const json layers = settings.Value(pattern);
  if (layers.is_array())
  {
    settings.FailIf(layers.size() != ToIndex(settings.Size("block_count")), "the metadata '",
      pattern, "': expected a flag for each layer, found ", layers.size(), ".");
    for (const json& slides : layers)
    {
      config["layer_types"].push_back(slides == 0 ? "full_attention" : "sliding_attention");
    }
  }
  if (!family.Has(window))
  {
    // The first files of Gemma 2 leave it out; llama.cpp has the same window for them.
    if (settings.Has(window) || family.name != "gemma2")
    {
      config["sliding_window"] = settings.IsOn(window) ? json(settings.Size(window)) : json();
    }
    if (!layers.is_null() && !layers.is_array())
    {
      config["sliding_window_pattern"] = settings.Size(pattern);
    }
  }
  if (config.contains("rope_parameters") && config.contains("rope_scaling")) // one of both
  {
    config["rope_parameters"].update(config["rope_scaling"]);
    config.erase("rope_scaling");
  }
  constexpr const char* sparsity = "activation_sparsity_scale";
  for (const json& quantile : settings.IsList(sparsity) ? settings.Value(sparsity) : json::array())
  {
    // The part of values below it, if they are normally distributed.
    const double part = std::erfc(-quantile.get<double>() / std::sqrt(2.0)) / 2;
    config["activation_sparsity_pattern"].push_back(part);
  }
  if (family.name == "gemma4")
  {
    AddGemma4(settings, config);
  }
  if (family.name == "gemma2" || family.row == "gemma3_text")
  {
    config["query_pre_attn_scalar"] = ScoreScale(settings);
  }
  AddNumbers(settings, config,
    { { "attn_logit_softcapping", "attn_logit_softcapping" },
      { "final_logit_softcapping", "final_logit_softcapping" } });
}

/// The settings of a GGUF file as the text of the config.json from which llama.cpp made it.
std::string ConfigText(const GgufSettings& settings)
{
  json config;
  config["model_type"] = settings.HuggingFaceName();
  config["num_hidden_layers"] = settings.Size("block_count");
  config["num_attention_heads"] = settings.Size("attention.head_count");
  config["num_key_value_heads"] =
    settings.Sizes(settings.Has("attention.head_count_kv") ? "attention.head_count_kv"
                                                           : "attention.head_count")[0];
  config["hidden_size"] = settings.Size("embedding_length");
  config["head_dim"] = settings.HeadDimension();
  config["intermediate_size"] = config["n_inner"] = settings.Sizes("feed_forward_length")[0];
  config["vocab_size"] = VocabularyOf(settings);
  config["max_position_embeddings"] = settings.Size("context_length");
  const bool hasRms = settings.Has("attention.layer_norm_rms_epsilon");
  settings.Ignore({ "attention.layer_norm_epsilon" }); // beside the other
  config["rms_norm_eps"] = config["layer_norm_eps"] = config["layer_norm_epsilon"] =
    settings.Number(hasRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon");
  config["tie_word_embeddings"] = !settings.HasTensor("output.weight");
  if (settings.HasLatent())
  {
    AddLatent(settings, config);
  }
  if (settings.HasExperts())
  {
    AddExperts(settings, config);
  }
  constexpr const char* end = "tokenizer.ggml.eos_token_id";
  if (settings.GetMetadata().Has(end))
  {
    config["eos_token_id"] = settings.GetMetadata().Integer(end);
  }
  AddRotation(settings, config);
  AddVariants(settings, config);
  // What has another name in config.json is not there by the usual one, too.
  constexpr std::array<std::pair<const char*, const char*>, 5> usual = {
    { { "block_count", "num_hidden_layers" }, { "attention.head_count", "num_attention_heads" },
      { "attention.head_count_kv", "num_key_value_heads" }, { "embedding_length", "hidden_size" },
      { "context_length", "max_position_embeddings" } }
  };
  for (const auto& [key, name] : usual)
  {
    if (settings.GetFamily().Has(key))
    {
      config.erase(name);
    }
  }
  return config.dump();
}

/// Adds the parameters of the activation of each layer, which are lists of the metadata, as
/// tensors.
void AddXielu(const GgufSettings& settings, TensorViews& tensors)
{
  for (const char* name : { "xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps" })
  {
    const auto found = settings.GetMetadata().GetValues().find(name);
    if (found == settings.GetMetadata().GetValues().end())
    {
      continue;
    }
    const GgufValue& value = found->second;
    const auto layers = static_cast<std::uint64_t>(settings.Size("block_count"));
    settings.FailIf(!value.isArray || value.type != GgufType::F32 || value.count != layers,
      "the metadata '", name, "': expected a list of ", layers, " numbers of type F32.");
    for (std::uint64_t l = 0; l < layers; ++l)
    {
      tensors["blk." + std::to_string(l) + "." + name] = { DType::F32, { 1 },
        value.data + l * sizeof(float) };
    }
  }
}

/// Replaces a tensor with a matrix for each residual stream beside the first by these matrices.
void SplitStacks(TensorViews& tensors)
{
  constexpr std::int64_t most = 64; // streams, so that no file makes many tensors
  for (const std::string& name : { std::string("altup_proj"), std::string("altup_unembd_proj") })
  {
    const auto found = tensors.find(name + ".weight");
    if (found == tensors.end() || found->second.shape.size() != 3 || found->second.shape[0] < 1 ||
        found->second.shape[0] > most)
    {
      continue;
    }
    const TensorView stack = found->second;
    tensors.erase(found);
    const std::int64_t count = stack.shape[0];
    for (std::int64_t i = 0; i < count; ++i)
    {
      tensors[name + "." + std::to_string(i) + ".weight"] = { stack.dtype,
        { stack.shape[1], stack.shape[2] }, stack.data + stack.Bytes() / count * i };
    }
  }
}

/// Whether a tensor has the rows of queries or keys.
bool IsRotated(const std::string& name)
{
  return name.find(".attn_q.") != std::string::npos || name.find(".attn_k.") != std::string::npos;
}

}

std::filesystem::path FindGguf(const std::filesystem::path& path)
{
  std::error_code ignored;
  if (IsGgufName(path) || !std::filesystem::is_directory(path, ignored) ||
      FileExists(path / "config.json") || FileExists(path / AdapterConfigFile))
  {
    return IsGgufName(path) ? path : std::filesystem::path();
  }
  std::set<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
  {
    if (IsGgufName(entry.path()))
    {
      found.insert(FirstGgufShard(entry.path()));
    }
  }
  if (found.size() > 1)
  {
    throw FileError(path.string(), ": expected a single GGUF file, found ", found.size(),
      ", such as ", found.begin()->filename().string(), " and ",
      std::next(found.begin())->filename().string(), "; give one of them.");
  }
  return found.empty() ? std::filesystem::path() : *found.begin();
}

bool IsVocabularyAlone(const std::filesystem::path& path)
{
  try
  {
    return GgufFile(path).GetTensors().empty();
  }
  catch (const Error&)
  {
    return false;
  }
}

TransformerConfig ReadGgufConfig(const std::filesystem::path& path, const std::string& architecture)
{
  const GgufFile file(path);
  return ReadIntact(file,
    [&]
    {
      const GgufSettings settings(file);
      TransformerConfig config =
        ParseTransformerConfig(ConfigText(settings), path.string(), architecture);
      const auto has = [&](const char* first, const char* second)
      { return settings.HasTensor(first) || settings.HasTensor(second); };
      config.inputBias = has("blk.0.attn_q.bias", "blk.0.attn_qkv.bias");
      config.outputBias = settings.HasTensor("blk.0.attn_output.bias");
      config.mlpBias = settings.HasTensor("blk.0.ffn_up.bias");
      config.gainOffset = 0; // llama.cpp stores the sums
      const TensorView* segments = settings.Find("token_types.weight");
      config.segments =
        segments != nullptr && !segments->shape.empty() ? segments->shape.front() : 0;
      AddFrequencies(settings, config);
      RequireMask(settings, config);
      const json unread = settings.FindUnread();
      config.unknownSettings = DecideUnread(
        Settings(unread, settings.GetMetadata().GetSource()), settings.HuggingFaceName());
      return config;
    });
}

TensorViews GgufTensors(const GgufFile& file)
{
  const GgufSettings settings(file);
  const std::int64_t dimension = settings.HeadDimension();
  const bool interleaves = settings.GetFamily().interleaved && dimension % 2 == 0;
  TensorViews tensors = file.GetTensors();
  for (const char* name : { FrequenciesTensor, ShortFactorsTensor, LongFactorsTensor })
  {
    tensors.erase(name); // part of the configuration
  }
  AddXielu(settings, tensors);
  SplitStacks(tensors);
  for (auto& [name, view] : tensors)
  {
    const bool hasHeads =
      !view.shape.empty() && view.shape.front() > 0 && view.shape.front() % dimension == 0;
    if (interleaves && IsRotated(name) && hasHeads)
    {
      view.interleavedRows = dimension;
    }
  }
  return tensors;
}

}
