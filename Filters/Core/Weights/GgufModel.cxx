#include "GgufModel.h"

#include "Error.h"
#include "JsonText.h"
#include "NamedValues.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

namespace atlas
{
namespace
{

using nlohmann::json;

constexpr const char* ArchitectureKey = "general.architecture";
constexpr const char* TokensTensor = "token_embd.weight";
constexpr const char* FrequenciesTensor = "rope_freqs.weight";
constexpr std::string_view FactorsPrefix = "rope_factors_";
constexpr std::string_view LayerPrefix = "blk.";

/// How the files of an architecture differ from those of llama.
struct Family
{
  std::string_view name;
  bool interleavesRows; ///< of queries and keys
};
constexpr std::array<Family, 3> Families = { {
  { "llama", true },
  { "qwen2", false },
  { "qwen3", false },
} };

/// A name in GGUF files, and the same in those of Hugging Face. In layers both are without their
/// prefix.
struct TensorName
{
  std::string_view name;
  std::string_view here;
};
constexpr std::array<TensorName, 3> ModelNames = { {
  { "token_embd", "model.embed_tokens" },
  { "output_norm", "model.norm" },
  { "output", "lm_head" },
} };
constexpr std::array<TensorName, 11> LayerNames = { {
  { "attn_norm", "input_layernorm" },
  { "attn_q", "self_attn.q_proj" },
  { "attn_k", "self_attn.k_proj" },
  { "attn_v", "self_attn.v_proj" },
  { "attn_output", "self_attn.o_proj" },
  { "attn_q_norm", "self_attn.q_norm" },
  { "attn_k_norm", "self_attn.k_norm" },
  { "ffn_norm", "post_attention_layernorm" },
  { "ffn_gate", "mlp.gate_proj" },
  { "ffn_up", "mlp.up_proj" },
  { "ffn_down", "mlp.down_proj" },
} };

/// Reads the settings of a model, whose keys begin with its architecture.
class GgufSettings
{
public:
  explicit GgufSettings(const GgufFile& file)
    : File(file)
    , Data(file.GetMetadata())
    , Architecture(this->Data.Text(ArchitectureKey))
  {
    if (FindNamed(Families, this->Architecture) == nullptr)
    {
      this->Fail("expected a model of one of the architectures " + NamesOf(Families) + ", found '" +
                 this->Architecture.substr(0, 80) + "'.");
    }
  }

  const Family& GetFamily() const { return *FindNamed(Families, this->Architecture); }

  [[noreturn]] void Fail(const std::string& message) const
  {
    throw ModelError(this->Data.GetSource() + ": " + message);
  }

  bool Has(const char* key) const { return this->Data.Has(this->Key(key)); }
  bool HasTensor(const char* name) const { return this->File.GetTensors().count(name) != 0; }

  std::int64_t Size(const char* key) const
  {
    return this->Positive(key, this->Data.Integer(this->Key(key)));
  }
  std::int64_t Size(const char* key, std::int64_t otherwise) const
  {
    return this->Has(key) ? this->Size(key) : otherwise;
  }
  std::int64_t Integer(const char* key, std::int64_t otherwise) const
  {
    return this->Data.Integer(this->Key(key), otherwise);
  }
  double Number(const char* key) const { return this->Data.Number(this->Key(key)); }
  std::string Text(const char* key, const std::string& otherwise) const
  {
    return this->Data.Text(this->Key(key), otherwise);
  }

  /// The dimension of a head: as it is stated, or what the model's dimension leaves.
  std::int64_t HeadDimension() const
  {
    const std::int64_t heads = this->Size("attention.head_count");
    const std::int64_t dimension = this->Size("embedding_length");
    const std::int64_t keys = this->Size("attention.key_length", dimension / heads);
    const std::int64_t values = this->Size("attention.value_length", keys);
    if (keys == 0 || keys != values)
    {
      this->Fail("expected heads whose keys and values have the same positive dimension, found " +
                 std::to_string(keys) + " and " + std::to_string(values) + ".");
    }
    return keys;
  }

private:
  const GgufFile& File;
  const GgufMetadata& Data;
  std::string Architecture;

  std::string Key(const char* key) const { return this->Architecture + "." + key; }

  std::int64_t Positive(const char* key, std::int64_t size) const
  {
    if (size <= 0)
    {
      this->Fail("the metadata '" + this->Key(key) + "': expected a positive size, found " +
                 std::to_string(size) + ".");
    }
    return size;
  }
};

/// The number of tokens: the rows of their embedding.
std::int64_t VocabularyOf(const GgufSettings& settings, const GgufFile& file)
{
  const auto found = file.GetTensors().find(TokensTensor);
  if (found == file.GetTensors().end() || found->second.shape.empty())
  {
    settings.Fail(std::string("expected the tensor '") + TokensTensor + "' with a row per token, " +
                  "found none.");
  }
  return found->second.shape.front();
}

void AddRotation(const GgufSettings& settings, json& config)
{
  if (settings.Has("rope.freq_base"))
  {
    config["rope_theta"] = settings.Number("rope.freq_base");
  }
  const std::int64_t dimension = settings.HeadDimension();
  const std::int64_t rotated = settings.Size("rope.dimension_count", dimension);
  if (rotated != dimension)
  {
    settings.Fail("expected a rotary embedding of all " + std::to_string(dimension) +
                  " components of a head, found one of " + std::to_string(rotated) + ".");
  }
  // As llama.cpp reads it: scaling is linear unless another type is named, and older files name the
  // factor otherwise.
  const char* key =
    settings.Has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  const double factor = settings.Has(key) ? settings.Number(key) : 1;
  const bool isScaled = factor != 0 && factor != 1;
  const std::string scaling = settings.Text("rope.scaling.type", isScaled ? "linear" : "none");
  if (scaling == "none" || !isScaled)
  {
    return;
  }
  json& rope = config["rope_scaling"];
  rope["rope_type"] = scaling;
  rope["factor"] = factor;
  if (settings.Has("rope.scaling.original_context_length"))
  {
    rope["original_max_position_embeddings"] =
      settings.Size("rope.scaling.original_context_length");
  }
}

/// Divides the rotary frequencies as the file says.
void AddFrequencies(const GgufFile& file, const std::string& source, TransformerConfig& config)
{
  const auto found = file.GetTensors().find(FrequenciesTensor);
  if (found == file.GetTensors().end())
  {
    return;
  }
  const std::string what = source + ": tensor '" + FrequenciesTensor + "': expected ";
  RotaryScaling& scaling = config.rotaryScaling;
  if (scaling.kind != RotaryScaling::Kind::None)
  {
    throw ModelError(what + "no other scaling of the rotary embedding, found one.");
  }
  const auto pairs = static_cast<std::uint64_t>(config.headDimension / 2);
  if (found->second.Count() != pairs || !IsFloating(found->second.dtype))
  {
    throw ModelError(what + std::to_string(pairs) +
                     " numbers, one for each rotated pair of a head, found the shape " +
                     ToString(found->second.shape) + " of type " +
                     std::string(Name(found->second.dtype)) + ".");
  }
  const std::vector<double> factors = found->second.ToDouble();
  for (const double factor : factors)
  {
    if (!std::isfinite(factor) || factor <= 0)
    {
      throw ModelError(what + "positive numbers, found " + std::to_string(factor) + ".");
    }
  }
  scaling.kind = RotaryScaling::Kind::LongRope;
  scaling.shortFactors = factors;
  scaling.longFactors = factors;
}

/// Replaces the stem of a name "stem.weight" or "stem.bias".
template<class Names>
std::optional<std::string> Translated(const Names& names, std::string_view name)
{
  const std::size_t dot = std::min(name.rfind('.'), name.size());
  const auto* found = FindNamed(names, name.substr(0, dot));
  return found == nullptr ? std::nullopt
                          : std::optional(std::string(found->here) + std::string(name.substr(dot)));
}

/// The name in the files of Hugging Face. A tensor of a layer that has none there keeps the rest of
/// its name, so that it is refused as one that the layer does not have; any other keeps its name.
std::string HuggingFaceName(const std::string& name)
{
  const std::size_t dot = name.find('.', LayerPrefix.size());
  if (name.compare(0, LayerPrefix.size(), LayerPrefix) != 0 || dot == std::string::npos)
  {
    return Translated(ModelNames, name).value_or(name);
  }
  const std::string rest = name.substr(dot + 1);
  return "model.layers." + name.substr(LayerPrefix.size(), dot + 1 - LayerPrefix.size()) +
         Translated(LayerNames, rest).value_or(rest);
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
      std::filesystem::exists(path / "config.json", ignored))
  {
    return IsGgufName(path) ? path : std::filesystem::path();
  }
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
  {
    if (IsGgufName(entry.path()))
    {
      found.push_back(entry.path());
    }
  }
  if (found.size() > 1)
  {
    std::sort(found.begin(), found.end());
    throw FileError(path.string() + ": expected a single GGUF file, found " +
                    std::to_string(found.size()) + ", such as " + found[0].filename().string() +
                    " and " + found[1].filename().string() + "; give one of them.");
  }
  return found.empty() ? std::filesystem::path() : found.front();
}

std::string GgufConfigText(const GgufFile& file)
{
  const GgufSettings settings(file);
  json config;
  const bool hasWindow = settings.Has("attention.sliding_window");
  const bool isMistral = hasWindow && settings.GetFamily().name == "llama";
  config["model_type"] = isMistral ? "mistral" : std::string(settings.GetFamily().name);
  if (hasWindow)
  {
    config["sliding_window"] = settings.Size("attention.sliding_window");
  }
  config["num_hidden_layers"] = settings.Size("block_count");
  config["num_attention_heads"] = settings.Size("attention.head_count");
  config["num_key_value_heads"] =
    settings.Size("attention.head_count_kv", settings.Size("attention.head_count"));
  config["hidden_size"] = settings.Size("embedding_length");
  config["head_dim"] = settings.HeadDimension();
  config["intermediate_size"] = settings.Size("feed_forward_length");
  config["vocab_size"] = VocabularyOf(settings, file);
  config["max_position_embeddings"] = settings.Size("context_length");
  config["rms_norm_eps"] = settings.Number("attention.layer_norm_rms_epsilon");
  config["attention_bias"] = settings.HasTensor("blk.0.attn_q.bias");
  config["mlp_bias"] = settings.HasTensor("blk.0.ffn_up.bias");
  config["tie_word_embeddings"] = !settings.HasTensor("output.weight");
  if (settings.Integer("expert_count", 0) != 0)
  {
    settings.Fail("expected a model with one MLP per layer, found a mixture of experts.");
  }
  constexpr const char* end = "tokenizer.ggml.eos_token_id";
  if (file.GetMetadata().Has(end))
  {
    config["eos_token_id"] = file.GetMetadata().Integer(end);
  }
  AddRotation(settings, config);
  return config.dump();
}

TransformerConfig ReadGgufConfig(const std::filesystem::path& path, const std::string& architecture)
{
  const GgufFile file(path);
  return ReadIntact(file,
    [&]
    {
      TransformerConfig config =
        ParseTransformerConfig(GgufConfigText(file), path.string(), architecture);
      AddFrequencies(file, path.string(), config);
      return config;
    });
}

TensorViews GgufTensors(const GgufFile& file)
{
  const GgufSettings settings(file);
  const std::int64_t dimension = settings.HeadDimension();
  const bool interleaves = settings.GetFamily().interleavesRows && dimension % 2 == 0;
  TensorViews tensors;
  for (const auto& [name, view] : file.GetTensors())
  {
    if (name == FrequenciesTensor) // part of the configuration
    {
      continue;
    }
    if (name.compare(0, FactorsPrefix.size(), FactorsPrefix) == 0)
    {
      settings.Fail("tensor '" + name + "': expected no rotary factors by length, found some.");
    }
    TensorView renamed = view;
    const bool hasHeads =
      !view.shape.empty() && view.shape.front() > 0 && view.shape.front() % dimension == 0;
    if (interleaves && IsRotated(name) && hasHeads)
    {
      renamed.interleavedRows = dimension;
    }
    const std::string translated = HuggingFaceName(name);
    if (!tensors.emplace(translated, std::move(renamed)).second)
    {
      std::string message = "tensor '" + name + "': expected one tensor of this purpose, found '";
      settings.Fail(message.append(translated).append("' too."));
    }
  }
  return tensors;
}

}
