#pragma once

#include "Safetensors.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// The tensors of one or several safetensors files, memory-mapped for as long as a copy lives.
class WeightFiles
{
public:
  /// No tensors.
  WeightFiles() = default;

  /// Tensors that lie in memory that somebody else owns; messages name them by `source`.
  WeightFiles(TensorViews tensors, std::string source);

  /// Maps a .safetensors file, or the shards that a .safetensors.index.json names, which lie in its
  /// folder. Throws FileError for a missing shard, FormatError, or ModelError for an index that
  /// names a tensor which its shard does not hold.
  static WeightFiles Read(const std::filesystem::path& path);

  const TensorViews& GetTensors() const { return this->Views; }

  /// Throws FileError if tensors are no longer those of their file; see MappedFile.
  void RequireIntact() const;

  /// The stamps of the mapped files, of which an index is none.
  std::vector<FileStamp> Stamps() const;

  /// The file that holds a tensor, or what was given to Read, for messages.
  const std::string& FileOf(std::string_view tensor) const;

private:
  std::vector<std::shared_ptr<const SafetensorsFile>> Files;
  TensorViews Views;
  std::string Source;
  std::map<std::string, std::string, std::less<>> Origins;

  void AddShard(const std::filesystem::path& path);
};

}
