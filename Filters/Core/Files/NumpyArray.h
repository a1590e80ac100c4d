#pragma once

#include "Tensor.h"

#include <cstddef>
#include <memory>
#include <string>

namespace atlas
{

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

/// ParseNumpyHeader needs at most so many bytes of a file.
inline constexpr std::size_t NumpyHeaderBytes = 100'012;

/// Why pickles are refused, to end a message with.
inline constexpr const char* PickleAdvice =
  ", which only pickle can read; pickle can run any code, so it is refused. Save plain arrays, or "
  "safetensors.";

/// Whether a file begins like a .npy file, or like a pickle.
bool LooksLikeNumpy(const std::byte* data, std::size_t size);
bool LooksLikePickle(const std::byte* data, std::size_t size);

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

}
