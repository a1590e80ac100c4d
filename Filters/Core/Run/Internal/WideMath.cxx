#include "WideMath.h"

#include "Base/Parallel.h"

#include <algorithm>
#include <vector>

namespace atlas
{
namespace
{

/// Columns of a product, or rows of weights, that one thread computes at a time.
constexpr std::int64_t Block = 128;

/// Writes a block of weights [inner, columns] to `to`, whose rows are `stride` apart.
void Widen(const WeightBlock& block, std::int64_t inner, std::int64_t columns, double* to,
  std::int64_t stride)
{
  std::vector<float> memory(inner * columns);
  const MatrixBlock values = FloatsOf(block, inner, columns, memory.data());
  const std::int64_t row = values.transposed ? 1 : values.stride;
  const std::int64_t column = values.transposed ? values.stride : 1;
  for (std::int64_t i = 0; i < inner; ++i)
  {
    for (std::int64_t j = 0; j < columns; ++j)
    {
      to[i * stride + j] = static_cast<double>(values.data[i * row + j * column]);
    }
  }
}

}

DoubleMatrix Product(const DoubleMatrix& a, const DoubleMatrix& b, bool transposed, int threads)
{
  const std::int64_t columns = transposed ? b.rows() : b.cols();
  DoubleMatrix c(a.rows(), columns);
  ParallelFor(BlockCount(columns, Block), threads,
    [&](std::int64_t block)
    {
      const std::int64_t begin = block * Block;
      const std::int64_t count = std::min(Block, columns - begin);
      const double* from = b.data() + (transposed ? begin * b.cols() : begin);
      Multiply<double>(a.rows(), count, a.cols(), 1, { a.data(), a.cols(), false },
        { from, b.cols(), transposed }, c.data() + begin, columns, false);
    });
  return c;
}

DoubleMatrix Widened(const LinearTensors& tensors, int threads)
{
  const Linear linear(tensors);
  DoubleMatrix wide(tensors.inputs, tensors.outputs);
  ParallelFor(BlockCount(tensors.inputs, Block), threads,
    [&](std::int64_t block)
    {
      const std::int64_t begin = block * Block;
      Widen(linear.Block(begin, 0), std::min(Block, tensors.inputs - begin), tensors.outputs,
        wide.data() + begin * tensors.outputs, tensors.outputs);
    });
  return wide;
}

void WidenRows(const LinearTensors& tensors, std::int64_t first, DoubleMatrix& to)
{
  Widen(Linear(tensors).Block(first, 0), to.rows(), to.cols(), to.data(), to.cols());
}

DoubleMatrix WidenedHeads(
  const LinearTensors& tensors, std::int64_t heads, std::int64_t dimension, int threads)
{
  const Linear linear(tensors);
  DoubleMatrix wide(tensors.inputs, heads * dimension);
  ParallelFor(heads, threads,
    [&](std::int64_t head)
    {
      Widen(linear.Head(head), tensors.inputs, dimension, wide.data() + head * dimension,
        heads * dimension);
    });
  return wide;
}

DoubleMatrix WidenedHead(const LinearTensors& tensors, std::int64_t head, std::int64_t dimension)
{
  DoubleMatrix wide(tensors.inputs, dimension);
  Widen(Linear(tensors).Head(head), tensors.inputs, dimension, wide.data(), dimension);
  return wide;
}

DoubleMatrix ApplyWide(const LinearTensors& tensors, const DoubleMatrix& x, int threads)
{
  DoubleMatrix y = Product(x, Widened(tensors, threads), false, threads);
  const std::vector<double> bias = WideRow(tensors.bias);
  if (!bias.empty())
  {
    y.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(bias.data(), y.cols());
  }
  return y;
}

Eigen::RowVectorXd UnembeddingColumn(const LinearTensors& unembedding, std::int64_t token)
{
  const bool isRow = unembedding.layout == WeightLayout::OutputInput;
  const std::int64_t first = isRow ? token * unembedding.inputs : token;
  const std::int64_t step = isRow ? 1 : unembedding.outputs;
  Eigen::RowVectorXd column(unembedding.inputs);
  for (std::int64_t i = 0; i < unembedding.inputs; ++i)
  {
    column(i) = unembedding.weight.At(first + i * step);
  }
  return column;
}

std::vector<double> WideRow(const TensorView& view)
{
  const FloatValues values(view);
  return values.Data() == nullptr
           ? std::vector<double>()
           : std::vector<double>(values.Data(), values.Data() + view.Count());
}

WideNorm::WideNorm(const TransformerConfig& config, const NormTensors& tensors, NormKind kind,
  std::int64_t dimension)
  : Kind(kind)
  , Epsilon(config.epsilon)
  , Gain(WideRow(tensors.gain))
  , Shift(WideRow(tensors.shift))
{
  for (double& gain : this->Gain)
  {
    gain += config.gainOffset;
  }
  if (this->Gain.empty())
  {
    this->Gain.assign(dimension, 1);
  }
}

LearnedNorm<double> WideNorm::Norm(const std::vector<double>& gain) const
{
  return { this->Kind, this->Epsilon, gain.data(),
    this->Shift.empty() ? nullptr : this->Shift.data() };
}

DoubleMatrix WideNorm::Apply(const DoubleMatrix& x) const
{
  const auto d = static_cast<std::int64_t>(this->Gain.size());
  DoubleMatrix y(x.rows(), x.cols());
  std::vector<double> stats(2 * x.size() / d);
  Normalize(this->Norm(this->Gain), x.size() / d, d, x.data(), y.data(), stats.data());
  return y;
}

DoubleMatrix WideNorm::BackwardBy(
  const std::vector<double>& gain, const DoubleMatrix& x, const DoubleMatrix& dy) const
{
  const auto d = static_cast<std::int64_t>(gain.size());
  const std::int64_t rows = x.size() / d;
  DoubleMatrix dx(x.rows(), x.cols());
  std::vector<double> stats(2 * rows);
  Normalize(this->Norm(gain), rows, d, x.data(), dx.data(), stats.data());
  NormalizeBackward(this->Norm(gain), rows, d, x.data(), stats.data(), dy.data(), dx.data(), false);
  return dx;
}

DoubleMatrix WideNorm::Backward(const DoubleMatrix& x, const DoubleMatrix& dy) const
{
  return this->BackwardBy(this->Gain, x, dy);
}

DoubleMatrix WideNorm::Forward(const DoubleMatrix& x, const DoubleMatrix& dx) const
{
  // Without gain, the derivative of a normalization is symmetric.
  const std::vector<double> ones(this->Gain.size(), 1);
  DoubleMatrix dy = this->BackwardBy(ones, x, dx);
  if (this->Kind != NormKind::None)
  {
    const auto d = static_cast<std::int64_t>(this->Gain.size());
    Eigen::Map<DoubleMatrix>(dy.data(), dy.size() / d, d).array().rowwise() *=
      Eigen::Map<const Eigen::ArrayXd>(this->Gain.data(), d).transpose();
  }
  return dy;
}

}
