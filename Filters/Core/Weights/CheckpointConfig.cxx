#include "CheckpointConfig.h"

#include "ArchitectureConfigs.h"
#include "Error.h"
#include "JsonText.h"
#include "TensorFile.h"
#include "TorchFile.h"
#include "WeightFiles.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

bool Exists(const std::filesystem::path& path)
{
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// A dictionary of settings in a file, and where it is.
using FoundSettings = std::pair<std::string, json>;

/// The first dictionary that names all sizes of a model, at most `depth` others deep.
std::optional<FoundSettings> FindSettings(const json& value, const std::string& place, int depth)
{
  if (!value.is_object())
  {
    return {};
  }
  if (!ArchitectureBySettings(Settings(value, place)).empty())
  {
    return FoundSettings{ place, value };
  }
  for (const auto& [key, inner] : value.items())
  {
    std::string inside = place;
    inside.append(": ").append(key);
    std::optional<FoundSettings> found =
      depth > 0 ? FindSettings(inner, inside, depth - 1) : std::nullopt;
    if (found)
    {
      return found;
    }
  }
  return {};
}

std::optional<FoundSettings> FindSettings(const std::filesystem::path& weights)
{
  constexpr int depth = 2;
  return FindSettings(json::parse(TorchFile(weights).GetSettings()), weights.string(), depth);
}

/// Whether a nanoGPT has biases, which settings of before 2023 and of forks leave out.
bool HasBiases(const TensorViews& tensors)
{
  constexpr std::string_view end = "h.0.mlp.c_fc.bias";
  return std::any_of(tensors.begin(), tensors.end(),
    [end](const auto& tensor)
    {
      const std::string_view name = tensor.first;
      return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
    });
}

/// What the shapes of weights tell about a configuration.
class ConfigHint
{
public:
  explicit ConfigHint(const TensorViews& tensors)
    : Tensors(tensors)
  {
  }

  /// The lines of a config.json, with "?" for what shapes do not tell; empty if the names of the
  /// weights are not known.
  std::string Text() const
  {
    for (const std::string& prefix : { std::string("transformer."), std::string() })
    {
      if (this->Has(prefix + "h.0.attn.c_attn.weight", 2) && this->Has(prefix + "wte.weight", 2) &&
          this->Has(prefix + "wpe.weight", 2))
      {
        return this->Gpt(prefix);
      }
    }
    if (this->Has("blocks.0.attn.W_Q", 3) && this->Has("embed.W_E", 2))
    {
      return this->Lens();
    }
    if (this->Has("layers.0.attention.wq.weight", 2) && this->Has("tok_embeddings.weight", 2))
    {
      return R"({"model_type": "meta_llama", "n_layers": )" + this->Layers("layers.") +
             R"(, "n_heads": ?, "n_kv_heads": ?,)" + "\n" + R"( "dim": )" +
             this->Extent("tok_embeddings.weight", 1) + R"(, "hidden_dim": )" +
             this->Extent("layers.0.feed_forward.w1.weight", 0) + ",\n" + R"( "vocab_size": )" +
             this->Extent("tok_embeddings.weight", 0) + "}";
    }
    return {};
  }

private:
  const TensorViews& Tensors;

  bool Has(const std::string& name, std::size_t axes) const
  {
    const auto found = this->Tensors.find(name);
    return found != this->Tensors.end() && found->second.shape.size() == axes;
  }

  std::string Extent(const std::string& name, std::size_t axis) const
  {
    const auto found = this->Tensors.find(name);
    return found == this->Tensors.end() || found->second.shape.size() <= axis
             ? "?"
             : std::to_string(found->second.shape[axis]);
  }

  /// The number of layers whose names begin so, followed by the layer.
  std::string Layers(const std::string& prefix) const
  {
    std::set<std::string> layers;
    for (const auto& [name, view] : this->Tensors)
    {
      if (name.compare(0, prefix.size(), prefix) == 0)
      {
        layers.insert(name.substr(prefix.size(), name.find('.', prefix.size()) - prefix.size()));
      }
    }
    return std::to_string(layers.size());
  }

  std::string Gpt(const std::string& prefix) const
  {
    const std::string fused = prefix + "h.0.attn.c_attn.weight";
    const std::string width = this->Extent(prefix + "wte.weight", 1);
    const bool isLinear = this->Extent(fused, 1) == width; // [outputs, inputs]
    const bool hasBias = this->Has(prefix + "h.0.attn.c_attn.bias", 1);
    const std::string sizes = R"("n_layer": )" + this->Layers(prefix + "h.") +
                              R"(, "n_head": ?, "n_embd": )" + width + ",\n";
    const std::string vocabulary = R"("vocab_size": )" + this->Extent(prefix + "wte.weight", 0);
    const std::string positions = this->Extent(prefix + "wpe.weight", 0);
    return isLinear
             ? R"({"model_type": "nanogpt", )" + sizes + " " + vocabulary + R"(, "block_size": )" +
                 positions + ",\n" + R"( "bias": )" + (hasBias ? "true" : "false") + "}"
             : R"({"model_type": "gpt2", )" + sizes + " " + vocabulary + R"(, "n_positions": )" +
                 positions + "}";
  }

  std::string Lens() const
  {
    const std::string query = "blocks.0.attn.W_Q";
    const std::string up = "blocks.0.mlp.W_in";
    const bool hasShift = this->Has("blocks.0.ln1.b", 1);
    const bool hasGain = this->Has("blocks.0.ln1.w", 1);
    const bool hasPositions = this->Has("pos_embed.W_pos", 2);
    return R"({"model_type": "transformer_lens", "n_layers": )" + this->Layers("blocks.") +
           R"(, "n_heads": )" + this->Extent(query, 0) + R"(, "d_model": )" +
           this->Extent(query, 1) + R"(, "d_head": )" + this->Extent(query, 2) + ",\n" +
           R"( "d_vocab": )" + this->Extent("embed.W_E", 0) + R"(, "n_ctx": )" +
           this->Extent(hasPositions ? "pos_embed.W_pos" : "blocks.0.attn.mask", 0) + ", " +
           (this->Has(up, 2) ? R"("d_mlp": )" + this->Extent(up, 1) + R"(, "act_fn": ?)"
                             : std::string(R"("attn_only": true)")) +
           ",\n" + R"( "normalization_type": )" +
           (hasShift   ? R"("LN")"
             : hasGain ? R"("RMS")"
                       : "?") +
           (hasPositions ? "}" : R"(, "positional_embedding_type": ?})");
  }
};

/// params.json. The vocabulary of Llama 1 and 2 is -1 there; its size is that of the embedding.
TransformerConfig ReadMetaConfig(const std::filesystem::path& params,
  const std::filesystem::path& weights, const std::string& architecture)
{
  json settings = ParseJson(ReadFile(params), params.string());
  if (Exists(params.parent_path() / "consolidated.01.pth"))
  {
    throw ModelError(params.string() +
                     ": expected the weights in one file, found those of a model that is split "
                     "over several devices; convert it to the files of Hugging Face.");
  }
  if (settings.is_object() && settings.value("vocab_size", json()) == -1)
  {
    const WeightFiles files = WeightFiles::Read(weights);
    const auto embedding = files.GetTensors().find("tok_embeddings.weight");
    if (embedding != files.GetTensors().end() && !embedding->second.shape.empty())
    {
      settings["vocab_size"] = embedding->second.shape[0];
    }
  }
  return ParseTransformerConfig(settings.dump(), params.string(), architecture);
}

}

TransformerConfig ReadCheckpointConfig(
  const std::filesystem::path& weights, const std::string& architecture)
{
  const std::filesystem::path params = weights.parent_path() / MetaConfigFile;
  if (Exists(params))
  {
    return ReadMetaConfig(params, weights, architecture);
  }
  if (std::optional<FoundSettings> found = FindSettings(weights))
  {
    auto& [place, settings] = *found;
    if (settings.value("bias", json()).is_null() &&
        ArchitectureBySettings(Settings(settings, place)) == "nanogpt")
    {
      settings["bias"] = HasBiases(WeightFiles::Read(weights).GetTensors());
    }
    return ParseTransformerConfig(settings.dump(), place, architecture);
  }
  const std::string hint = ConfigHint(WeightFiles::Read(weights).GetTensors()).Text();
  throw ModelError(
    weights.string() + ": expected a config.json beside it, or settings in it, found none. " +
    (hint.empty() ? "Copy the config.json of the model to it."
                  : "Write a config.json, with what the training used for each ?:\n" + hint));
}

bool IsTransformerCheckpoint(const std::filesystem::path& path)
{
  try
  {
    return HasTorchExtension(path) &&
           (Exists(path.parent_path() / MetaConfigFile) || FindSettings(path) ||
             !ConfigHint(WeightFiles::Read(path).GetTensors()).Text().empty());
  }
  catch (const Error&)
  {
    return false;
  }
}

std::filesystem::path FindTrainingData(const std::filesystem::path& weights)
{
  if (!HasTorchExtension(weights))
  {
    return {};
  }
  const json settings = json::parse(TorchFile(weights).GetSettings());
  const json* config =
    settings.is_object() && settings.contains("config") ? &settings["config"] : nullptr;
  const bool hasName = config != nullptr && config->is_object() && config->contains("dataset") &&
                       (*config)["dataset"].is_string();
  const std::string name = hasName ? (*config)["dataset"].get<std::string>() : std::string();
  if (name.empty() || name.find('/') != std::string::npos || name == "..")
  {
    return {};
  }
  std::filesystem::path folder =
    std::filesystem::absolute(weights).parent_path().parent_path() / "data" / name;
  return Exists(folder / "meta.pkl") ? folder : std::filesystem::path();
}

}
