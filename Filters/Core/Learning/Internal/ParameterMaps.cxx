#include "ParameterMaps.h"

#include <algorithm>

namespace atlas
{

template<class Number>
LearnedNorm<Number> ParameterMaps<Number>::Norm(const NormTensors& tensors) const
{
  const bool exists = tensors.gain.data != nullptr;
  return { exists ? this->Config.norm : NormKind::None, static_cast<Number>(this->Config.epsilon),
    exists ? this->Of(tensors.gain) : nullptr,
    tensors.shift.data != nullptr ? this->Of(tensors.shift) : nullptr };
}

template<class Number>
void ParameterMaps<Number>::ApplyNorm(const NormTensors& tensors, std::int64_t rows,
  const Number* x, Number* y, SublayerStore<Number>& store) const
{
  const std::int64_t d = this->Config.modelDimension;
  Reserve(store.normed, rows * d);
  Reserve(store.stats, 2 * rows);
  std::copy_n(x, rows * d, store.normed.data());
  Normalize(this->Norm(tensors), rows, d, store.normed.data(), y, store.stats.data());
}

template<class Number>
void ParameterMaps<Number>::NormBackward(const NormTensors& tensors, std::int64_t rows,
  const SublayerStore<Number>& store, const Number* dy, Number* dx, bool add) const
{
  NormalizeBackward(this->Norm(tensors), rows, this->Config.modelDimension, store.normed.data(),
    store.stats.data(), dy, dx, add,
    tensors.gain.data != nullptr ? this->GradientOf(tensors.gain) : nullptr,
    tensors.shift.data != nullptr ? this->GradientOf(tensors.shift) : nullptr);
}

template<class Number>
void ParameterMaps<Number>::Apply(
  const LinearTensors& linear, std::int64_t rows, const Number* x, Number* y, bool add) const
{
  if (linear.bias.data != nullptr)
  {
    const Number* bias = this->Of(linear.bias);
    for (std::int64_t r = 0; r < rows; ++r)
    {
      Number* to = y + r * linear.outputs;
      add ? AddTo(linear.outputs, bias, to) : (void)std::copy_n(bias, linear.outputs, to);
    }
  }
  const bool transposed = linear.layout == WeightLayout::OutputInput;
  Multiply<Number>(rows, linear.outputs, linear.inputs, 1, { x, linear.inputs, false },
    { this->Of(linear.weight), transposed ? linear.inputs : linear.outputs, transposed }, y,
    linear.outputs, add || linear.bias.data != nullptr);
}

template<class Number>
void ParameterMaps<Number>::Backward(const LinearTensors& linear, std::int64_t rows,
  const Number* x, const Number* dy, Number* dx, bool add) const
{
  const bool transposed = linear.layout == WeightLayout::OutputInput;
  Number* weight = this->GradientOf(linear.weight);
  if (transposed)
  {
    Multiply<Number>(linear.outputs, linear.inputs, rows, 1, { dy, linear.outputs, true },
      { x, linear.inputs, false }, weight, linear.inputs, true);
  }
  else
  {
    Multiply<Number>(linear.inputs, linear.outputs, rows, 1, { x, linear.inputs, true },
      { dy, linear.outputs, false }, weight, linear.outputs, true);
  }
  if (linear.bias.data != nullptr)
  {
    AddColumnSums(rows, linear.outputs, dy, linear.outputs, this->GradientOf(linear.bias));
  }
  if (dx != nullptr)
  {
    Multiply<Number>(rows, linear.inputs, linear.outputs, 1, { dy, linear.outputs, false },
      { this->Of(linear.weight), transposed ? linear.inputs : linear.outputs, !transposed }, dx,
      linear.inputs, add);
  }
}

template class ParameterMaps<float>;
template class ParameterMaps<double>;

}
