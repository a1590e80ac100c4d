#pragma once

// Internal to Core.

#include "Files/Tensor.h"

namespace atlas
{

/// The elements of an array in row-major order, `bytes` bytes each: a power of two up to 8. Element
/// (i, j, ...) of `data` is number i * stride[0] + j * stride[1] + ...
std::vector<std::byte> PackedCopy(
  const std::byte* data, const Shape& shape, const Shape& stride, std::size_t bytes);

}
