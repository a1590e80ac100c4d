#include "Transformer.h"

#include "Error.h"
#include "GgufModel.h"
#include "Joined.h"
#include "TensorFile.h"

#include <algorithm>
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

}

std::filesystem::path FindWeights(const std::filesystem::path& folder)
{
  std::error_code ignored;
  for (const char* name : { WeightsFile, ShardIndexFile, TorchWeightsFile, TorchShardIndexFile })
  {
    if (std::filesystem::exists(folder / name, ignored))
    {
      return folder / name;
    }
  }
  const std::vector<std::filesystem::path> checkpoints = Checkpoints(folder);
  if (checkpoints.size() == 1)
  {
    return checkpoints.front();
  }
  if (!checkpoints.empty())
  {
    throw FileError(folder.string() + ": expected one file of weights, found " +
                    Joined(checkpoints, [](const auto& path) { return path.filename().string(); }) +
                    "; open the right one instead of the folder.");
  }
  throw FileError(folder.string() + ": expected the weights in " + WeightsFile + ", in " +
                  TorchWeightsFile + ", in shards that " + ShardIndexFile + " or " +
                  TorchShardIndexFile + " names, or in a .pt, .pth or .ckpt file, found none.");
}

std::filesystem::path ModelFolder(const std::filesystem::path& path)
{
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path : path.parent_path();
}

Transformer::Transformer(TransformerConfig config, WeightFiles files)
  : Config(std::move(config))
  , Files(std::move(files))
  , Weights(BindTransformerWeights(this->Config, this->Files))
{
}

Transformer Transformer::Read(const std::filesystem::path& path, const std::string& architecture)
{
  const std::filesystem::path gguf = FindGguf(path);
  if (!gguf.empty())
  {
    TransformerConfig config = ReadGgufConfig(gguf, architecture);
    return { std::move(config), WeightFiles::Read(gguf) };
  }
  const std::filesystem::path folder = ModelFolder(path);
  const bool isConfig = folder == path || path.filename() == ConfigFile;
  TransformerConfig config = ReadTransformerConfig(folder / ConfigFile, architecture);
  return { std::move(config), WeightFiles::Read(isConfig ? FindWeights(folder) : path) };
}

}
