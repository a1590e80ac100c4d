#pragma once

// Internal to Core: normalizations and linear maps of a model, forward and backward.

#include "Base/Index.h"
#include "ParameterBlock.h"
#include "Run/GradientMath.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// Memory that is used again: at least `count` numbers, whose values are kept or unspecified.
template<class Number>
void Reserve(std::vector<Number>& values, std::int64_t count)
{
  if (values.size() < ToIndex(count))
  {
    values.resize(count);
  }
}

/// Consecutive sequences that are run together, and the place of their rows in the batch.
struct BatchSlice
{
  std::int64_t firstSequence = 0;
  std::vector<std::int64_t>
    offsets;                 ///< first row of each sequence in the slice, then the row count
  std::int64_t firstRow = 0; ///< in the batch

  std::int64_t Rows() const { return this->offsets.back(); }
  std::size_t Sequences() const { return this->offsets.size() - 1; }

  /// Calls function(row in the slice, position in its sequence).
  template<class Function>
  void ForRows(const Function& function) const
  {
    for (std::size_t s = 0; s < this->Sequences(); ++s)
    {
      for (std::int64_t row = this->offsets[s]; row < this->offsets[s + 1]; ++row)
      {
        function(row, row - this->offsets[s]);
      }
    }
  }
};

/// What the forward pass of a sublayer keeps for the backward pass.
template<class Number>
struct SublayerStore
{
  std::vector<Number> normed; ///< input of the normalization [rows, d]
  std::vector<Number> stats;  ///< [rows, 2]
  std::vector<Number> input;  ///< of the attention or the MLP [rows, d]
};

/// Normalizations and linear maps with the parameters of a model. The backward pass adds to the
/// gradients of the parameters, in a block of their layout.
template<class Number>
class ParameterMaps
{
public:
  /// `parameters` must outlive this object.
  explicit ParameterMaps(const ParameterBlock<Number>& parameters)
    : Parameters(parameters)
    , Config(parameters.GetConfig())
  {
  }

  /// nullptr: no gradient is computed, and nothing runs backward.
  void SetGradient(Number* gradient) { this->Gradient = gradient; }
  bool HasGradient() const { return this->Gradient != nullptr; }

  const Number* Of(const TensorView& view) const { return this->Parameters.Of(view); }
  Number* GradientOf(const TensorView& view) const
  {
    return this->Parameters.In(this->Gradient, view);
  }

  /// y = norm(x) [rows, d]; y may be x.
  void ApplyNorm(const NormTensors& tensors, std::int64_t rows, const Number* x, Number* y,
    SublayerStore<Number>& store) const;

  /// dx = the gradient of the input of a normalization, or dx += it.
  void NormBackward(const NormTensors& tensors, std::int64_t rows,
    const SublayerStore<Number>& store, const Number* dy, Number* dx, bool add) const;

  /// y = x W + b, or y += x W + b
  void Apply(
    const LinearTensors& linear, std::int64_t rows, const Number* x, Number* y, bool add) const;

  /// Adds to the gradients of W and b; dx = dy W^T, or dx += it, unless dx is nullptr.
  void Backward(const LinearTensors& linear, std::int64_t rows, const Number* x, const Number* dy,
    Number* dx, bool add) const;

private:
  const ParameterBlock<Number>& Parameters;
  const TransformerConfig& Config;
  Number* Gradient = nullptr;

  LearnedNorm<Number> Norm(const NormTensors& tensors) const;
};

extern template class ParameterMaps<float>;
extern template class ParameterMaps<double>;

}
