#include "Transformer.h"

#include "Error.h"

#include <system_error>

namespace atlas
{
namespace
{

/// The weights file of a folder.
std::filesystem::path FindWeights(const std::filesystem::path& folder)
{
  std::error_code ignored;
  for (const char* name : { WeightsFile, ShardIndexFile })
  {
    if (std::filesystem::exists(folder / name, ignored))
    {
      return folder / name;
    }
  }
  const bool pickled = std::filesystem::exists(folder / "pytorch_model.bin", ignored);
  throw FileError(folder.string() + ": expected the weights in " + WeightsFile +
                  " or in shards that " + ShardIndexFile + " names, found neither" +
                  (pickled ? "; pytorch_model.bin is a pickle, which can run any code, so it is "
                             "refused."
                           : "."));
}

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
  const std::filesystem::path folder = ModelFolder(path);
  const bool isConfig = folder == path || path.filename() == ConfigFile;
  TransformerConfig config = ReadTransformerConfig(folder / ConfigFile, architecture);
  return { std::move(config), WeightFiles::Read(isConfig ? FindWeights(folder) : path) };
}

}
