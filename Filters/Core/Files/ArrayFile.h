#pragma once

#include "NumpyArray.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{

class MappedFile;

/// The named arrays of a safetensors, .npy, .npz or PyTorch file (TorchFile.h); the format is
/// detected from the first bytes. Opening reads only headers. Arrays of a safetensors, .npy or
/// PyTorch file are memory-mapped; an array of a .npz file is loaded each time it is requested.
/// A path that ends in .json is the index of such files, its shards (ShardIndex.h).
class ArrayFile
{
public:
  using Entry = ArrayEntry;
  using Entries = ArrayEntries;

  /// Throws FileError or FormatError. Pickles are rejected, but for those of PyTorch's tensors,
  /// which are read without running them. Throws ModelError if two shards have an array of the same
  /// name, or none has one that their index lists.
  explicit ArrayFile(const std::filesystem::path& path);

  /// Same, from bytes in memory that `owner` keeps alive.
  ArrayFile(const std::byte* data, std::size_t size, const std::shared_ptr<const void>& owner,
    const std::string& source);

  /// The arrays by name. The single, unnamed array of a .npy or PyTorch file is called "array".
  const Entries& GetEntries() const { return this->Arrays; }

  /// The metadata of a safetensors file or of an index, not of its shards; empty for other formats.
  const Metadata& GetMetadata() const { return this->Texts; }

  /// Throws FileError if a file was truncated or changed since it was opened; see MappedFile.
  void RequireIntact() const;

private:
  std::vector<std::shared_ptr<const MappedFile>> Files; ///< none if bytes were given
  Entries Arrays;
  Metadata Texts;

  void ReadShards(const std::filesystem::path& index);
  void Parse(const std::byte* data, std::size_t size, const std::shared_ptr<const void>& owner,
    const std::string& source);
};

}
