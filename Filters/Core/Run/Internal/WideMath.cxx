#include "WideMath.h"

#include "Base/Parallel.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace atlas
{
namespace
{

/// Columns of a product that one thread computes at a time, and the numbers of which it adds up
/// products at once: so many widened weights stay in the cache.
constexpr std::int64_t Block = 128;
constexpr std::int64_t Depth = 512;

/// A block of weights [inner, columns] in double precision, as it lies in memory.
class WideBlock
{
public:
  WideBlock(const WeightBlock& block, std::int64_t inner, std::int64_t columns)
  {
    const std::unique_ptr<float[]> memory(block.IsInPlace() ? nullptr : new float[inner * columns]);
    const MatrixBlock floats = FloatsOf(block, inner, columns, memory.get());
    const std::int64_t lines = floats.transposed ? columns : inner;
    const std::int64_t width = floats.transposed ? inner : columns;
    this->Values.reset(new double[lines * width]);
    for (std::int64_t line = 0; line < lines; ++line)
    {
      const float* from = floats.data + line * floats.stride;
      std::copy_n(from, width, this->Values.get() + line * width);
    }
    this->Stride = width;
    this->IsTransposed = floats.transposed;
  }

  /// The block or its transpose.
  DoubleMatrixBlock Get(bool transposed = false) const
  {
    return { this->Values.get(), this->Stride, this->IsTransposed != transposed };
  }

private:
  std::unique_ptr<double[]> Values;
  std::int64_t Stride = 0;
  bool IsTransposed = false;
};

/// Calls work(first, count) for blocks of a number of columns, in parallel.
template<class Work>
void ForColumns(std::int64_t columns, int threads, const Work& work)
{
  ParallelFor(BlockCount(columns, Block), threads,
    [&](std::int64_t block) { work(block * Block, std::min(Block, columns - block * Block)); });
}

/// Columns of c = a b, or of c += a b, of which `to` has the first.
void MultiplyInto(const DoubleMatrix& a, std::int64_t first, std::int64_t inner,
  const DoubleMatrixBlock& b, std::int64_t columns, DoubleMatrix& c, std::int64_t to, bool add)
{
  Multiply<double>(a.rows(), columns, inner, 1, { a.data() + first, a.cols(), false }, b,
    c.data() + to, c.cols(), add);
}

DoubleMatrix ToMatrix(const WeightBlock& block, std::int64_t inner, std::int64_t columns)
{
  const WideBlock wide(block, inner, columns);
  const DoubleMatrixBlock values = wide.Get();
  using Stored = Eigen::Map<const DoubleMatrix>;
  return values.transposed ? DoubleMatrix(Stored(values.data, columns, inner).transpose())
                           : DoubleMatrix(Stored(values.data, inner, columns));
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

DoubleMatrix TimesWeights(
  const DoubleMatrix& x, const LinearTensors& tensors, bool transposed, int threads)
{
  const Linear linear(tensors);
  const std::int64_t columns = transposed ? tensors.inputs : tensors.outputs;
  const std::int64_t inner = transposed ? tensors.outputs : tensors.inputs;
  DoubleMatrix y(x.rows(), columns);
  ForColumns(columns, threads,
    [&](std::int64_t first, std::int64_t count)
    {
      for (std::int64_t i = 0; i < inner; i += Depth)
      {
        const std::int64_t depth = std::min(Depth, inner - i);
        const WideBlock wide = transposed ? WideBlock(linear.Block(first, i), count, depth)
                                          : WideBlock(linear.Block(i, first), depth, count);
        MultiplyInto(x, i, depth, wide.Get(transposed), count, y, first, i > 0);
      }
    });
  return y;
}

DoubleMatrix TimesHeads(const DoubleMatrix& x, const LinearTensors& tensors, std::int64_t heads,
  std::int64_t dimension, bool transposed, int threads)
{
  const Linear linear(tensors);
  const std::int64_t inputs = tensors.inputs;
  DoubleMatrix y(x.rows(), transposed ? inputs : heads * dimension);
  if (!transposed)
  {
    ParallelFor(heads, threads,
      [&](std::int64_t head)
      {
        const WideBlock wide(linear.Head(head), inputs, dimension);
        MultiplyInto(x, 0, inputs, wide.Get(), dimension, y, head * dimension, false);
      });
    return y;
  }
  ForColumns(inputs, threads,
    [&](std::int64_t first, std::int64_t count)
    {
      for (std::int64_t head = 0; head < heads; ++head)
      {
        const WideBlock wide(linear.Head(head).From(first, 0), count, dimension);
        MultiplyInto(x, head * dimension, dimension, wide.Get(true), count, y, first, head > 0);
      }
    });
  return y;
}

void WidenRows(const LinearTensors& tensors, std::int64_t first, DoubleMatrix& to)
{
  to = ToMatrix(Linear(tensors).Block(first, 0), to.rows(), to.cols());
}

DoubleMatrix WidenedHead(const LinearTensors& tensors, std::int64_t head, std::int64_t dimension)
{
  return ToMatrix(Linear(tensors).Head(head), tensors.inputs, dimension);
}

DoubleMatrix ApplyWide(const LinearTensors& tensors, const DoubleMatrix& x, int threads)
{
  DoubleMatrix y = TimesWeights(x, tensors, false, threads);
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
