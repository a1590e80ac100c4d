#include "WeightFiles.h"

#include "Base/Error.h"
#include "Files/ShardIndex.h"
#include "Internal/TensorFile.h"

#include <set>
#include <utility>

namespace atlas
{
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
  const ShardIndex index = ReadShardIndex(path);
  std::set<std::filesystem::path> read;
  for (const auto& [tensor, file] : index.files)
  {
    if (read.insert(file).second)
    {
      files.AddFile(file, true);
    }
    if (files.Views.find(tensor) == files.Views.end())
    {
      files.Missing.emplace(tensor, file.string());
    }
  }
  for (const auto& [tensor, view] : files.Views)
  {
    files.Missing.erase(tensor); // it is in another shard
  }
  return files;
}

void WeightFiles::Set(const std::string& name, TensorView view, const std::string& origin)
{
  this->Views[name] = std::move(view);
  this->Origins[name] = origin;
}

void WeightFiles::Set(const std::string& name, Tensor tensor, const std::string& origin)
{
  const auto owned = std::make_shared<const Tensor>(std::move(tensor));
  this->Owners.push_back(owned);
  this->Set(name, owned->View(), origin);
}

void WeightFiles::Keep(const WeightFiles& others)
{
  this->Files.insert(this->Files.end(), others.Files.begin(), others.Files.end());
  this->Owners.insert(this->Owners.end(), others.Owners.begin(), others.Owners.end());
}

void WeightFiles::AddFile(const std::filesystem::path& path, bool isShard)
{
  const TensorFile file = ReadTensorFile(path, isShard);
  this->Files.insert(this->Files.end(), file.files.begin(), file.files.end());
  this->Owners.insert(this->Owners.end(), file.owners.begin(), file.owners.end());
  for (const auto& [name, view] : file.tensors)
  {
    if (!this->Views.emplace(name, view).second)
    {
      throw ModelError(path.string(), ": tensor '", name, "' is in ", this->FileOf(name),
        " too, expected it once.");
    }
    const auto shard = file.origins.find(name);
    this->Origins.emplace(name, shard == file.origins.end() ? path.string() : shard->second);
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
  const auto missing = this->Missing.find(tensor);
  return found != this->Origins.end()     ? found->second
         : missing != this->Missing.end() ? missing->second
                                          : this->Source;
}

}
