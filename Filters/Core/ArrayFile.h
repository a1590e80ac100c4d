#pragma once

#include "Tensor.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{

class MappedFile;

/// An array in memory that lives as long as `owner`.
struct LoadedArray
{
  TensorView view; ///< row-major, packed, little-endian
  std::shared_ptr<const void> owner;
};

/// The header of a .npy file: what its bytes mean.
struct NumpyHeader
{
  DType dtype = DType::F32; ///< of the array as it is loaded
  std::string description;  ///< of the array in the file, such as "<f4"
  bool fortranOrder = false;
  Shape shape;
  std::size_t dataBegin = 0; ///< in the file
};

/// Parses the header of a .npy file (NumPy's format 1.0, 2.0 or 3.0) of `size` bytes, of which at
/// least the first `available` lie at `data`. Types f2, f4, f8, i1 to i8, u1 to u8 and b1 are read,
/// little- and big-endian. Throws FormatError, which starts with `source`, for anything else: above
/// all for arrays of Python objects, which only pickle can read, and for a size that does not fit.
NumpyHeader ParseNumpyHeader(
  const std::byte* data, std::size_t available, std::uint64_t size, const std::string& source);

/// The array of a whole .npy file in memory. It points into `data`, of which `owner` is the owner,
/// unless its order, its byte order or its type must be changed: unsigned integers become signed
/// ones of twice the size, u8 of the same size. Throws FormatError.
LoadedArray ParseNumpy(const std::byte* data, std::size_t size, std::shared_ptr<const void> owner,
  const std::string& source);

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
