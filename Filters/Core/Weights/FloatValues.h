#pragma once

#include "Tensor.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// A tensor of floating type as packed floats: its own memory where that is aligned F32, else
/// widened (or narrowed from F64) into memory of this object. Without a tensor: no data.
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

/// Bytes that FloatValues takes for a tensor beside the tensor's own.
std::uint64_t WidenedBytes(const TensorView& view);

}
