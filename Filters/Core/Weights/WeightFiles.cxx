#include "WeightFiles.h"

#include "Error.h"
#include "JsonText.h"
#include "TensorFile.h"

#include <set>
#include <system_error>

namespace atlas
{
namespace
{

using nlohmann::json;

json ReadIndex(const std::filesystem::path& path)
{
  json index = ParseJson(ReadFile(path), path.string(), "the index of shards");
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
  {
    throw FormatError(
      path.string() + ": expected an object 'weight_map' with the file of each tensor.");
  }
  return index["weight_map"];
}

}

WeightFiles::WeightFiles(TensorViews tensors, std::string source)
  : Views(std::move(tensors))
  , Source(std::move(source))
{
}

WeightFiles WeightFiles::Read(const std::filesystem::path& path)
{
  WeightFiles files;
  files.Source = path.string();
  if (path.extension() != ".json")
  {
    files.AddFile(path, false);
    return files;
  }
  std::set<std::string> shards;
  const json map = ReadIndex(path);
  for (const auto& [tensor, shard] : map.items())
  {
    const std::string name = shard.is_string() ? shard.get<std::string>() : std::string();
    if (name.empty() || name.find('/') != std::string::npos)
    {
      throw FormatError(path.string() + ": tensor '" + tensor +
                        "': expected the name of a file in the folder of the index.");
    }
    if (shards.insert(name).second)
    {
      const std::filesystem::path file = path.parent_path() / name;
      std::error_code ignored;
      if (!std::filesystem::exists(file, ignored))
      {
        std::string message = path.string() + ": the shard '" + name;
        message.append("', which holds tensor '").append(tensor).append("', is missing.");
        throw FileError(message);
      }
      files.AddFile(file, true);
    }
    const auto origin = files.Origins.find(tensor);
    if (origin == files.Origins.end())
    {
      throw ModelError((path.parent_path() / name).string() + ": tensor '" + tensor +
                       "' is missing, although " + path.filename().string() + " lists it.");
    }
  }
  return files;
}

void WeightFiles::AddFile(const std::filesystem::path& path, bool isShard)
{
  const TensorFile file = ReadTensorFile(path, isShard);
  this->Files.push_back(file.file);
  this->Owners.insert(this->Owners.end(), file.owners.begin(), file.owners.end());
  for (const auto& [name, view] : file.tensors)
  {
    if (!this->Views.emplace(name, view).second)
    {
      throw ModelError(path.string() + ": tensor '" + name + "' is in " + this->FileOf(name) +
                       " too, expected it once.");
    }
    this->Origins.emplace(name, path.string());
  }
}

void WeightFiles::RequireIntact() const
{
  for (const auto& file : this->Files)
  {
    file->RequireIntact();
  }
}

std::vector<FileStamp> WeightFiles::Stamps() const
{
  std::vector<FileStamp> stamps;
  stamps.reserve(this->Files.size());
  for (const auto& file : this->Files)
  {
    stamps.push_back(file->Stamp());
  }
  return stamps;
}

const std::string& WeightFiles::FileOf(std::string_view tensor) const
{
  const auto found = this->Origins.find(tensor);
  return found == this->Origins.end() ? this->Source : found->second;
}

}
