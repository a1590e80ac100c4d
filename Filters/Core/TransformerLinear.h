#pragma once

#include "MatrixProduct.h"
#include "TransformerWeights.h"

#include <cstdint>
#include <optional>

namespace atlas
{

/// A matrix with its bias in single precision, for as long as it is used.
class Linear
{
public:
  /// Nothing.
  Linear() = default;
  explicit Linear(const LinearTensors& tensors);

  std::int64_t Inputs() const { return this->Tensors.inputs; }
  std::int64_t Outputs() const { return this->Tensors.outputs; }

  /// The part of W, as [inputs, outputs], that begins at these indices. Not for HeadInputOutput.
  MatrixBlock Part(std::int64_t input, std::int64_t output) const;

  /// The part [inputs, d_head] of W for queries, keys or values of a head.
  MatrixBlock Head(std::int64_t head) const;

  /// The bias from an output on, or nullptr if there is none.
  const float* Bias(std::int64_t output) const;
  const float* HeadBias(std::int64_t head) const;

private:
  LinearTensors Tensors;
  FloatValues Weight;
  FloatValues BiasValues;
};

/// What Linear takes beside the tensors' own memory, in bytes.
std::uint64_t WidenedBytes(const LinearTensors& tensors);

/// Rows of a product that are computed at once, by one thread.
constexpr std::int64_t RowBlock = 128;

/// The blocks of `block` rows or columns that `count` of them need.
inline std::int64_t BlockCount(std::int64_t count, std::int64_t block)
{
  return (count + block - 1) / block;
}

/// to = activation(from W + b), or to += from W + b. `from` [rows, inputs] and `to` [rows, outputs]
/// are packed. In parallel, in blocks that do not depend on the number of threads.
void ApplyLinear(const Linear& linear, std::int64_t rows, const float* from, float* to,
  std::optional<Activation> activation, bool add, int threads);

/// to = activation(from W_gate + b_gate) * (from W_up + b_up), likewise.
void ApplyGated(const Linear& gate, const Linear& up, std::int64_t rows, const float* from,
  float* to, Activation activation, int threads);

}
