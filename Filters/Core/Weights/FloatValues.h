#pragma once

#include "Files/Tensor.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// A floating-point tensor as packed floats. Aligned, plain F32 is used in place; other tensors are
/// converted into memory of this object. Without a tensor there is no data.
class FloatValues
{
public:
  FloatValues() = default;
  explicit FloatValues(const TensorView& view);
  FloatValues(FloatValues&&) = default;
  FloatValues& operator=(FloatValues&&) = default;
  FloatValues(const FloatValues&) = delete; // would point into the other's memory
  FloatValues& operator=(const FloatValues&) = delete;

  const float* Data() const { return this->Values; }

private:
  std::vector<float> Owned;
  const float* Values = nullptr;
};

/// The memory that FloatValues allocates for a tensor, in bytes.
std::uint64_t WidenedBytes(const TensorView& view);

}
