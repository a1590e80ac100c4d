#include "Transformer.h"

#include "Adapter.h"
#include "Base/Error.h"
#include "Base/Joined.h"
#include "Base/TextEnds.h"
#include "CheckpointConfig.h"
#include "Files/GgufFile.h"
#include "Files/MappedFile.h"
#include "GgufModel.h"
#include "ImageProcessor.h"
#include "Internal/Quantization.h"
#include "Internal/TensorFile.h"
#include "Internal/TensorNames.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace atlas
{
namespace
{

/// The files of a folder that only PyTorch's extensions tell to be weights.
std::vector<std::filesystem::path> Checkpoints(const std::filesystem::path& folder)
{
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
  {
    // Other files of a training end in .bin too.
    if (HasTorchExtension(entry.path()) && entry.path().extension() != ".bin")
    {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// The first of these files that is in a folder; empty: none.
std::filesystem::path FirstOf(
  const std::filesystem::path& folder, std::initializer_list<const char*> names)
{
  const auto* found = std::find_if(
    names.begin(), names.end(), [&](const char* name) { return FileExists(folder / name); });
  return found == names.end() ? std::filesystem::path() : folder / *found;
}

/// Sets the precision of all products with weights, those of the encoder of sound or text, of
/// images and of the projector included. Routers, which choose experts, and what weighs the shared
/// expert stay in single precision.
void SetProductsOf(TransformerWeights& weights, ProductPrecision products)
{
  for (LinearTensors* linear : MatricesBesideLayers(weights))
  {
    linear->products = products;
  }
  for (LayerTensors& layer : weights.layers)
  {
    for (LinearTensors* linear : MatricesOf(layer))
    {
      linear->products = products;
    }
    for (auto* experts : { &layer.experts.gate, &layer.experts.up, &layer.experts.down })
    {
      for (LinearTensors& linear : *experts)
      {
        linear.products = products;
      }
    }
  }
  if (weights.encoder != nullptr)
  {
    auto encoder = std::make_shared<TransformerWeights>(*weights.encoder);
    SetProductsOf(*encoder, products);
    weights.encoder = std::move(encoder);
  }
  if (weights.vision != nullptr)
  {
    auto vision = std::make_shared<VisionWeights>(*weights.vision);
    SetProductsOf(vision->encoder, products);
    for (LinearTensors* linear : MatricesOfProjectors(*vision))
    {
      linear->products = products;
    }
    weights.vision = std::move(vision);
  }
}

/// The weights of a model, with those that are quantized under the names of others.
WeightFiles ReadWeights(const std::filesystem::path& config, const std::filesystem::path& path)
{
  WeightFiles files = WeightFiles::Read(path);
  UnpackWeights(ReadQuantization(config), files);
  return files;
}

/// Whether the configuration is in the weights, or in a params.json beside them.
bool HasOwnConfig(const std::filesystem::path& path, const std::filesystem::path& folder)
{
  if (path.filename() == ConfigFile || FileExists(folder / ConfigFile))
  {
    return false;
  }
  const bool hasCheckpoint =
    folder == path ? Checkpoints(folder).size() == 1 : HasTorchExtension(path);
  return hasCheckpoint || FileExists(folder / MetaConfigFile);
}

constexpr const char* VisionSettings = "vision_config";

/// How BareName begins names of the encoder of pictures, with the projectors inside of it, and of
/// other projectors.
constexpr std::array<std::string_view, 3> PictureParts = { "vision_tower.",
  "multi_modal_projector.", "connector." };

/// Whether a model of pictures among words has the tensors of its text alone. It is run as that
/// text, unless its prompts see all of themselves.
bool IsTextAlone(const TransformerConfig& config, const TensorViews& tensors)
{
  const auto isOfPictures = [&config](const auto& tensor)
  {
    const std::string name = BareName(tensor.first, config);
    return std::any_of(PictureParts.begin(), PictureParts.end(),
      [&name](std::string_view part) { return BeginsWith(name, part); });
  };
  return config.vision != nullptr && !config.vision->seesWholePrompts &&
         std::none_of(tensors.begin(), tensors.end(), isOfPictures);
}

/// The settings of what there are tensors of. MLX stores whole gains, not less 1, of models with
/// convolutions, whose taps lie before an axis of 1 there.
TransformerConfig WithTensors(TransformerConfig config, const TensorViews& tensors)
{
  if (IsTextAlone(config, tensors))
  {
    config.vision = nullptr;
    config.unknownSettings.emplace_back(VisionSettings);
  }
  const std::string taps = config.mixerTaps > 1 ? NamesFor(config).mixerTaps.weight : "";
  const auto isOfMlx = [&](const auto& tensor)
  {
    const Shape& shape = tensor.second.shape;
    return !taps.empty() && EndsWith(tensor.first, taps) && shape.size() == 3 &&
           shape[1] == config.mixerTaps && shape[2] == 1;
  };
  if (std::any_of(tensors.begin(), tensors.end(), isOfMlx))
  {
    config.gainOffset = 0;
  }
  return config;
}

}

std::filesystem::path FindWeights(const std::filesystem::path& folder)
{
  std::filesystem::path file =
    FirstOf(folder, { WeightsFile, ShardIndexFile, TorchWeightsFile, TorchShardIndexFile });
  if (!file.empty())
  {
    return file;
  }
  const std::vector<std::filesystem::path> checkpoints = Checkpoints(folder);
  if (checkpoints.size() == 1)
  {
    return checkpoints.front();
  }
  if (!checkpoints.empty())
  {
    throw FileError(folder.string(), ": expected one file of weights, found ",
      Joined(checkpoints, [](const auto& path) { return path.filename().string(); }),
      "; open the right one instead of the folder.");
  }
  throw FileError(folder.string(), ": expected the weights in ", WeightsFile, ", in ",
    TorchWeightsFile, ", in shards that ", ShardIndexFile, " or ", TorchShardIndexFile,
    " names, or in a .pt, .pth or .ckpt file, found none.");
}

std::filesystem::path ModelFolder(const std::filesystem::path& path)
{
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path : path.parent_path();
}

std::filesystem::path ModelFile(const std::filesystem::path& folder)
{
  std::filesystem::path file = FirstOf(folder, { ConfigFile, AdapterConfigFile });
  return file.empty() ? folder : file;
}

std::string ModelName(const std::filesystem::path& path)
{
  const std::filesystem::path place = std::filesystem::absolute(path).lexically_normal();
  if (IsGgufName(place))
  {
    return place.stem().string();
  }
  std::filesystem::path folder = ModelFolder(place);
  folder = folder.has_filename() ? folder : folder.parent_path(); // without the slash at its end
  const std::filesystem::path above = folder.parent_path();
  if (above.filename() == "snapshots")
  {
    const std::string repository = above.parent_path().filename().string(); // models--owner--name
    const std::size_t end = repository.rfind("--");
    return end != std::string::npos ? repository.substr(end + 2) : repository;
  }
  const std::string name = folder.filename().string();
  return CheckpointStep(folder) ? above.filename().string() + "/" + name : name;
}

Transformer::Transformer(TransformerConfig config, WeightFiles files, std::filesystem::path adapter)
  : Config(WithTensors(std::move(config), files.GetTensors()))
  , Files(std::move(files))
  , Weights(BindTransformerWeights(this->Config, this->Files))
  , Adapter(std::move(adapter))
{
  const TensorView& stored = this->Weights.rotaryFrequencies;
  if (stored.data != nullptr)
  {
    this->Config.rotaryFrequencies.resize(stored.Count());
    stored.ToFloat(0, stored.Count(), this->Config.rotaryFrequencies.data());
  }
}

void Transformer::SetProducts(ProductPrecision products)
{
  this->Products = products;
  SetProductsOf(this->Weights, products);
}

Transformer Transformer::Read(const std::filesystem::path& path, const std::string& architecture)
{
  if (const std::optional<AdapterPlace> adapter = FindAdapter(path))
  {
    TransformerConfig config = ReadTransformerConfig(adapter->base / ConfigFile, architecture);
    WeightFiles files = ApplyAdapter(
      *adapter, ReadWeights(adapter->base / ConfigFile, FindWeights(adapter->base)), config);
    return { std::move(config), std::move(files), adapter->folder };
  }
  const std::filesystem::path gguf = FindGguf(path);
  if (!gguf.empty())
  {
    TransformerConfig config = ReadGgufConfig(gguf, architecture);
    return { std::move(config), WeightFiles::Read(gguf) };
  }
  const std::filesystem::path folder = ModelFolder(path);
  const bool isConfig =
    folder == path || path.filename() == ConfigFile || path.filename() == MetaConfigFile;
  if (HasOwnConfig(path, folder))
  {
    const std::filesystem::path weights = isConfig ? FindWeights(folder) : path;
    TransformerConfig config = ReadCheckpointConfig(weights, architecture);
    return { std::move(config), WeightFiles::Read(weights) };
  }
  TransformerConfig config = ReadTransformerConfig(folder / ConfigFile, architecture);
  AdoptImageSize(config, folder);
  return { std::move(config),
    ReadWeights(folder / ConfigFile, isConfig ? FindWeights(folder) : path) };
}

}
