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

/// The tensors of one or more safetensors files. The files stay mapped as long as any copy of this
/// object exists.
class WeightFiles
{
public:
  /// No tensors.
  WeightFiles() = default;

  /// Tensors in memory that is owned elsewhere; messages refer to them as `source`.
  WeightFiles(TensorViews tensors, std::string source);

  /// Maps a .safetensors file, or the shards listed in a .safetensors.index.json, which are in the
  /// same folder. Throws FileError if a file is missing, FormatError if one is invalid, and
  /// ModelError if the index lists a tensor that its shard does not contain.
  static WeightFiles Read(const std::filesystem::path& path);

  const TensorViews& GetTensors() const { return this->Views; }

  /// Throws FileError if a file was truncated or changed since it was opened; see MappedFile.
  void RequireIntact() const;

  /// The stamps of the mapped files, which do not include an index.
  std::vector<FileStamp> Stamps() const;

  /// For messages: the file that holds a tensor, or the path passed to Read.
  const std::string& FileOf(std::string_view tensor) const;

private:
  std::vector<std::shared_ptr<const MappedFile>> Files; ///< which Views point into
  TensorViews Views;
  std::string Source;
  std::map<std::string, std::string, std::less<>> Origins;

  void AddShard(const std::filesystem::path& path);
};

}
