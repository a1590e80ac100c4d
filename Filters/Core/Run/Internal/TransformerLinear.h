#pragma once

#include "Numerics/PackedProduct.h"
#include "Weights/FloatValues.h"
#include "Weights/TransformerWeights.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace atlas
{

/// A block of a matrix of weights [inner, columns]: floats in place, or numbers of a tensor, which
/// are widened when they are multiplied; or either, to be rounded to BF16.
struct WeightBlock
{
  MatrixBlock matrix;                 ///< without data: how the numbers lie in the tensor
  const TensorView* stored = nullptr; ///< the tensor, unless the matrix has data
  std::uint64_t first = 0;            ///< the index of the block's first number there
  ProductPrecision products = ProductPrecision::Single;

  bool IsInPlace() const { return this->matrix.data != nullptr; }

  /// The block that begins at these indices of this one.
  WeightBlock From(std::int64_t inner, std::int64_t column) const;
};

/// A block of weights [inner, columns] as floats: in place, or in `memory`, of as many numbers.
MatrixBlock FloatsOf(
  const WeightBlock& block, std::int64_t inner, std::int64_t columns, float* memory);

/// A matrix and its bias. Weights that are not floats in place stay as they are; products widen a
/// block of them at a time.
class Linear
{
public:
  /// Nothing.
  Linear() = default;
  explicit Linear(const LinearTensors& tensors);

  std::int64_t Inputs() const { return this->Tensors.inputs; }
  std::int64_t Outputs() const { return this->Tensors.outputs; }

  /// The block of W, as [inputs, outputs], that begins at these indices. Not for HeadInputOutput.
  WeightBlock Block(std::int64_t input, std::int64_t output) const;

  /// The same as floats. Unless they are in place, the first call widens the whole matrix, which
  /// then lives as long as this object.
  MatrixBlock Part(std::int64_t input, std::int64_t output) const;

  /// The block [inputs, d_head] of W for the queries, keys or values of a head.
  WeightBlock Head(std::int64_t head) const;

  /// Whether the blocks of heads of this dimension lie side by side, as columns of one matrix.
  bool HeadsAreNeighbors(std::int64_t dimension) const;

  /// The bias, starting at an output, or nullptr if there is none.
  const float* Bias(std::int64_t output) const;
  const float* HeadBias(std::int64_t head) const
  {
    return this->Bias(this->Tensors.FirstOutput(head));
  }

private:
  struct Whole
  {
    std::once_flag once;
    FloatValues values;
  };

  LinearTensors Tensors;
  const float* InPlace = nullptr; ///< the weights, if they are floats
  std::unique_ptr<Whole> Widened; ///< otherwise: for Part
  FloatValues BiasValues;

  WeightBlock BlockAt(std::uint64_t first, std::int64_t stride, bool transposed) const;
};

/// The bytes that ApplyLinear allocates for blocks of weights with this number of threads (see
/// ThreadCount), and Linear for its bias.
std::uint64_t WidenedBytes(const LinearTensors& tensors, int threads);

/// The number of blocks of `block` rows or columns that cover `count` of them.
inline std::int64_t BlockCount(std::int64_t count, std::int64_t block)
{
  return (count + block - 1) / block;
}

/// The rows that are multiplied at once: as many as stay in the cache.
constexpr std::int64_t RowsAtOnce = 192;

/// Some columns of a matrix by which rows are multiplied.
struct ColumnBlock
{
  WeightBlock weights; ///< [inner, columns]
  std::int64_t columns = 0;
};

/// The most and the fewest columns that are multiplied at once. A block of them stays in the cache.
constexpr std::int64_t BlockColumns = 256;
constexpr std::int64_t LeastBlockColumns = 64;

/// What is done with a row of a product: the index of the block, the row, and its product with the
/// block [columns], which may be changed.
using RowVisitor = std::function<void(std::size_t block, std::int64_t row, float* product)>;

/// Calls visit(row, product) for each row of from b, where `from` is [rows, the inner size of b]
/// with the given stride.
template<class Visitor>
void VisitProducts(const PackedColumns& b, std::int64_t rows, const float* from,
  std::int64_t stride, const Visitor& visit)
{
  const std::unique_ptr<float[]> product(new float[std::min(rows, RowsAtOnce) * b.Stride()]);
  for (std::int64_t first = 0; first < rows; first += RowsAtOnce)
  {
    const std::int64_t count = std::min(RowsAtOnce, rows - first);
    b.Multiply(count, from + first * stride, stride, product.get());
    for (std::int64_t i = 0; i < count; ++i)
    {
      visit(first + i, product.get() + i * b.Stride());
    }
  }
}

/// Multiplies rows, `from` [rows, inner], by each block and calls `visit` for each row and block
/// once. Runs in parallel: calls may come at the same time. Each thread has one packed block of
/// weights at a time and, while it packs, the same as floats unless they are in place. At most
/// FewRows rows are multiplied by the weights where they are, of which each thread widens some that
/// stay in the cache, unless products are of BF16. A row's products depend on no other row
/// (PackedColumns, AddRowProducts).
void MultiplyRows(std::int64_t rows, const std::vector<ColumnBlock>& blocks, std::int64_t inner,
  const float* from, const RowVisitor& visit, int threads);

/// What is applied to the product from W + b.
struct LinearFinish
{
  std::optional<Activation> activation;
  const float* factor = nullptr; ///< [rows, outputs], multiplied after the activation
  bool add = false;              ///< to += from W + b; excludes activation and factor
};

/// Computes to = factor * activation(from W + b), or to += from W + b. `from` [rows, inputs] and
/// `to` [rows, outputs] are packed. Runs in parallel.
void ApplyLinear(const Linear& linear, std::int64_t rows, const float* from, float* to,
  const LinearFinish& finish, int threads);

}
