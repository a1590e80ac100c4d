#pragma once

#include "Tensor.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace atlas
{

/// An array in memory that is valid as long as `owner`.
struct LoadedArray
{
  TensorView view; ///< row-major, packed, little-endian
  std::shared_ptr<const void> owner;
};

/// An array of a file. `load` gives its elements, in place where the file has them one behind the
/// other. It may be called on several threads, and when the object of the file is gone. It throws
/// FormatError, and FileError if a mapped file is not intact.
struct ArrayEntry
{
  DType dtype = DType::F32;
  Shape shape;
  std::function<LoadedArray()> load;
  std::string holder; ///< PyTorch: the dictionary or list that it is in; empty: the outermost
};
using ArrayEntries = std::map<std::string, ArrayEntry, std::less<>>;

/// The header of a .npy file.
struct NumpyHeader
{
  DType dtype = DType::F32; ///< type of the loaded array
  std::string description;  ///< type in the file, such as "<f4"
  bool fortranOrder = false;
  Shape shape;
  std::size_t dataBegin = 0; ///< offset in the file, in bytes
};

/// The most bytes of a file that ParseNumpyHeader needs.
inline constexpr std::size_t NumpyHeaderBytes = 100'012;

/// The end of messages about pickles: why they are rejected and what to do.
inline constexpr const char* PickleAdvice =
  ", which only pickle can read; pickle can run any code, so it is refused. Save plain arrays, or "
  "safetensors.";

/// Whether the first bytes are those of a .npy file, or of a pickle.
bool LooksLikeNumpy(const std::byte* data, std::size_t size);
bool LooksLikePickle(const std::byte* data, std::size_t size);

/// Parses the header of a .npy file (format version 1.0, 2.0 or 3.0) of `size` bytes, of which the
/// first `available` are at `data`. Supports the types f2, f4, f8, i1 to i8, u1 to u8 and b1,
/// little- and big-endian. Throws FormatError for anything else, in particular for arrays of Python
/// objects, which only pickle can read, and for a size that does not match; the message starts with
/// `source`.
NumpyHeader ParseNumpyHeader(
  const std::byte* data, std::size_t available, std::uint64_t size, const std::string& source);

/// Reads the array of a complete .npy file in memory. It points into `data`, which `owner` keeps
/// alive, unless the axis order, byte order or type has to be converted. Unsigned integers become
/// signed integers of twice the size, but u8 of the same size. Throws FormatError.
LoadedArray ParseNumpy(const std::byte* data, std::size_t size, std::shared_ptr<const void> owner,
  const std::string& source);

}
