#include "ShardIndex.h"

#include "Base/Error.h"
#include "JsonText.h"
#include "MappedFile.h"

namespace atlas
{
namespace
{

using nlohmann::json;

/// The files of an index are in its folder, and no indices themselves.
bool IsFileName(const std::string& name)
{
  return !name.empty() && name.find('/') == std::string::npos &&
         std::filesystem::path(name).extension() != ".json";
}

}

ShardIndex ReadShardIndex(const std::filesystem::path& path)
{
  const json index = ParseJson(ReadFile(path), path.string(), "the index of shards");
  ThrowIf<FormatError>(
    !index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object(),
    path.string(), ": expected an object 'weight_map' with the file of each tensor.");
  ShardIndex shards;
  for (const auto& [tensor, shard] : index["weight_map"].items())
  {
    const std::string name = shard.is_string() ? shard.get<std::string>() : std::string();
    ThrowIf<FormatError>(!IsFileName(name), path.string(), ": tensor '", tensor,
      "': expected the name of a file in the folder of the index.");
    const std::filesystem::path file = path.parent_path() / name;
    ThrowIf<FileError>(!FileExists(file), path.string(), ": the shard '", name,
      "', which holds tensor '", tensor, "', is missing.");
    shards.files.emplace(tensor, file);
  }
  const auto metadata = index.find("metadata");
  if (metadata != index.end() && metadata->is_object())
  {
    for (const auto& [key, value] : metadata->items())
    {
      if (value.is_string())
      {
        shards.metadata.emplace(key, value.get<std::string>());
      }
    }
  }
  return shards;
}

}
