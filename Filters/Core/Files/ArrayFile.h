#pragma once

#include "NumpyArray.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace atlas
{

class MappedFile;

/// Named arrays in a safetensors, .npy or .npz file, told apart by their first bytes. Opening costs
/// the headers; an array of a safetensors or .npy file is mapped, one of a .npz file is loaded each
/// time that it is asked for.
class ArrayFile
{
public:
  struct Entry
  {
    DType dtype = DType::F32;
    Shape shape;
    std::function<LoadedArray()> load;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  /// Throws FileError or FormatError; pickles are refused, inside PyTorch's .pt files as well.
  explicit ArrayFile(const std::filesystem::path& path);

  /// The same from bytes that `owner` owns.
  ArrayFile(const std::byte* data, std::size_t size, const std::shared_ptr<const void>& owner,
    const std::string& source);

  /// The array of a .npy file, which has no name there, is called "array".
  const Entries& GetEntries() const { return this->Arrays; }

  /// Of a safetensors file; empty in others.
  const Metadata& GetMetadata() const { return this->Texts; }

  /// Throws FileError if the file was truncated or changed since it was opened; see MappedFile.
  void RequireIntact() const;

private:
  std::shared_ptr<const MappedFile> File; ///< nullptr if bytes were given
  Entries Arrays;
  Metadata Texts;

  void Parse(const std::byte* data, std::size_t size, const std::shared_ptr<const void>& owner,
    const std::string& source);
};

}
