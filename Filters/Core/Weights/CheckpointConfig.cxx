#include "CheckpointConfig.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "Files/TorchFile.h"
#include "Internal/ArchitectureConfigs.h"
#include "Internal/TensorFile.h"
#include "WeightFiles.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{
namespace
{

using nlohmann::json;

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
  return std::any_of(tensors.begin(), tensors.end(),
    [](const auto& tensor) { return EndsWith(tensor.first, "h.0.mlp.c_fc.bias"); });
}

/// The shape of a tensor; empty if there is none.
Shape ShapeOf(const TensorViews& tensors, const std::string& name)
{
  const auto found = tensors.find(name);
  return found == tensors.end() ? Shape() : found->second.shape;
}

/// A text in which <TENSOR AXIS> becomes the extent of a tensor, "?" without it, and <LAYERS *> the
/// number of layers with this prefix. All names are behind `prefix`.
std::string Filled(const TensorViews& tensors, const std::string& prefix, const std::string& text)
{
  std::string filled;
  std::size_t end = 0;
  for (std::size_t i = text.find('<'); i != std::string::npos; i = text.find('<', end))
  {
    filled += text.substr(end, i - end);
    end = text.find('>', i) + 1;
    const std::string name = prefix + text.substr(i + 1, end - i - 4);
    const std::size_t axis = text[end - 2] - '0';
    const Shape shape = ShapeOf(tensors, name);
    std::set<std::string> layers;
    for (const auto& [tensor, view] : tensors)
    {
      if (BeginsWith(tensor, name))
      {
        layers.insert(tensor.substr(name.size(), tensor.find('.', name.size()) - name.size()));
      }
    }
    filled += text[end - 2] == '*'  ? std::to_string(layers.size())
              : axis < shape.size() ? std::to_string(shape[axis])
                                    : "?";
  }
  return filled + text.substr(end);
}

/// What the shapes of weights tell about a configuration: the lines of a config.json, with "?" for
/// what they do not tell; empty if the names of the weights are not known.
std::string ConfigHint(const TensorViews& tensors)
{
  const auto has = [&](const std::string& name, std::size_t axes)
  { return ShapeOf(tensors, name).size() == axes; };
  for (const std::string prefix : { "transformer.", "" })
  {
    const std::string fused = prefix + "h.0.attn.c_attn.";
    if (has(fused + "weight", 2) && has(prefix + "wte.weight", 2) && has(prefix + "wpe.weight", 2))
    {
      // nn.Linear has [outputs, inputs].
      const bool isNano =
        ShapeOf(tensors, fused + "weight")[1] == ShapeOf(tensors, prefix + "wte.weight")[1];
      return Filled(tensors, prefix,
        std::string(R"({"model_type": ")") + (isNano ? "nanogpt" : "gpt2") +
          R"(", "n_layer": <h. *>, "n_head": ?, "n_embd": <wte.weight 1>,
 "vocab_size": <wte.weight 0>, )" +
          (!isNano                   ? R"("n_positions": <wpe.weight 0>})"
            : has(fused + "bias", 1) ? "\"block_size\": <wpe.weight 0>,\n \"bias\": true}"
                                     : "\"block_size\": <wpe.weight 0>,\n \"bias\": false}"));
    }
  }
  if (has("blocks.0.attn.W_Q", 3) && has("embed.W_E", 2))
  {
    const bool hasPositions = has("pos_embed.W_pos", 2);
    return Filled(tensors, "",
      std::string(R"({"model_type": "transformer_lens", "n_layers": <blocks. *>, )"
                  R"("n_heads": <blocks.0.attn.W_Q 0>, "d_model": <blocks.0.attn.W_Q 1>, )"
                  R"("d_head": <blocks.0.attn.W_Q 2>,
 "d_vocab": <embed.W_E 0>, "n_ctx": )") +
        (hasPositions ? "<pos_embed.W_pos 0>, " : "<blocks.0.attn.mask 0>, ") +
        (has("blocks.0.mlp.W_in", 2) ? R"("d_mlp": <blocks.0.mlp.W_in 1>, "act_fn": ?)"
                                     : R"("attn_only": true)") +
        ",\n \"normalization_type\": " +
        (has("blocks.0.ln1.b", 1)    ? R"("LN")"
          : has("blocks.0.ln1.w", 1) ? R"("RMS")"
                                     : "?") +
        (hasPositions ? "}" : R"(, "positional_embedding_type": ?})"));
  }
  const bool isLlama = has("layers.0.attention.wq.weight", 2) && has("tok_embeddings.weight", 2);
  return !isLlama ? ""
                  : Filled(tensors, "",
                      R"({"model_type": "meta_llama", "n_layers": <layers. *>, "n_heads": ?, )"
                      R"("n_kv_heads": ?,
 "dim": <tok_embeddings.weight 1>, "hidden_dim": <layers.0.feed_forward.w1.weight 0>,
 "vocab_size": <tok_embeddings.weight 0>})");
}

/// params.json. The vocabulary of Llama 1 and 2 is -1 there; its size is that of the embedding.
TransformerConfig ReadMetaConfig(const std::filesystem::path& params,
  const std::filesystem::path& weights, const std::string& architecture)
{
  json settings = ParseJson(ReadFile(params), params.string());
  ThrowIf<ModelError>(FileExists(params.parent_path() / "consolidated.01.pth"), params.string(),
    ": expected the weights in one file, found those of a model that is split "
    "over several devices; convert it to the files of Hugging Face.");
  if (settings.is_object() && settings.value("vocab_size", json()) == -1)
  {
    const WeightFiles files = WeightFiles::Read(weights);
    const Shape embedding = ShapeOf(files.GetTensors(), "tok_embeddings.weight");
    if (!embedding.empty())
    {
      settings["vocab_size"] = embedding[0];
    }
  }
  return ParseTransformerConfig(settings.dump(), params.string(), architecture);
}

}

TransformerConfig ReadCheckpointConfig(
  const std::filesystem::path& weights, const std::string& architecture)
{
  const std::filesystem::path params = weights.parent_path() / MetaConfigFile;
  if (FileExists(params))
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
  const std::string hint = ConfigHint(WeightFiles::Read(weights).GetTensors());
  throw ModelError(weights.string(),
    ": expected a config.json beside it, or settings in it, found none. ",
    hint.empty() ? "Copy the config.json of the model to it."
                 : "Write a config.json, with what the training used for each ?:\n" + hint);
}

bool IsTransformerCheckpoint(const std::filesystem::path& path)
{
  try
  {
    return HasTorchExtension(path) &&
           (FileExists(path.parent_path() / MetaConfigFile) || FindSettings(path) ||
             !ConfigHint(WeightFiles::Read(path).GetTensors()).empty());
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
  const json config = settings.is_object() ? settings.value("config", json()) : json();
  const json dataset = config.is_object() ? config.value("dataset", json()) : json();
  const std::string name = dataset.is_string() ? dataset.get<std::string>() : "";
  if (name.empty() || name.find('/') != std::string::npos || name == "..")
  {
    return {};
  }
  std::filesystem::path folder =
    std::filesystem::absolute(weights).parent_path().parent_path() / "data" / name;
  return FileExists(folder / "meta.pkl") ? folder : std::filesystem::path();
}

std::optional<std::int64_t> StepInName(
  const std::filesystem::path& path, std::string_view prefix, std::string_view suffix)
{
  const std::string name = path.filename().string();
  if (name.size() < prefix.size() + suffix.size() || !BeginsWith(name, prefix) ||
      !EndsWith(name, suffix))
  {
    return {};
  }
  std::int64_t step = 0;
  const char* end = name.data() + name.size() - suffix.size();
  const auto parsed = std::from_chars(name.data() + prefix.size(), end, step);
  const bool isNumber = parsed.ec == std::errc() && parsed.ptr == end && step >= 0;
  return isNumber ? std::optional<std::int64_t>(step) : std::nullopt;
}

std::optional<std::int64_t> CheckpointStep(const std::filesystem::path& folder)
{
  return StepInName(folder, "checkpoint-");
}

}
