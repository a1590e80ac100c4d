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
  constexpr const char* single = "model.safetensors";
  constexpr const char* index = "model.safetensors.index.json";
  std::error_code ignored;
  for (const char* name : { single, index })
  {
    if (std::filesystem::exists(folder / name, ignored))
    {
      return folder / name;
    }
  }
  const bool pickled = std::filesystem::exists(folder / "pytorch_model.bin", ignored);
  throw FileError(folder.string() + ": expected the weights in " + single + " or in shards that " +
                  index + " names, found neither" +
                  (pickled ? "; pytorch_model.bin is a pickle, which can run any code, so it is "
                             "refused."
                           : "."));
}

}

Transformer::Transformer(TransformerConfig config, WeightFiles files)
  : Config(std::move(config))
  , Files(std::move(files))
  , Weights(BindTransformerWeights(this->Config, this->Files))
{
}

Transformer Transformer::Read(const std::filesystem::path& path, const std::string& architecture)
{
  std::error_code ignored;
  const bool isFolder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path folder = isFolder ? path : path.parent_path();
  const bool isConfig = isFolder || path.filename() == "config.json";
  TransformerConfig config = ReadTransformerConfig(folder / "config.json", architecture);
  return { std::move(config), WeightFiles::Read(isConfig ? FindWeights(folder) : path) };
}

}
