#include "WeightFiles.h"

#include "Error.h"
#include "ShardIndex.h"
#include "TensorFile.h"

#include <set>

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
    if (files.Origins.find(tensor) == files.Origins.end())
    {
      throw ModelError(file.string() + ": tensor '" + tensor + "' is missing, although " +
                       path.filename().string() + " lists it.");
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
