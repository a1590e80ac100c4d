#pragma once

#include "FloatValues.h"
#include "MatrixProduct.h"
#include "TransformerWeights.h"

#include <cstdint>
#include <optional>

namespace atlas
{

/// A matrix and its bias, converted to single precision for the lifetime of this object.
class Linear
{
public:
  /// Nothing.
  Linear() = default;
  explicit Linear(const LinearTensors& tensors);

  std::int64_t Inputs() const { return this->Tensors.inputs; }
  std::int64_t Outputs() const { return this->Tensors.outputs; }

  /// The block of W, as [inputs, outputs], that begins at these indices. Not for HeadInputOutput.
  MatrixBlock Part(std::int64_t input, std::int64_t output) const;

  /// The block [inputs, d_head] of W for the queries, keys or values of a head.
  MatrixBlock Head(std::int64_t head) const;

  /// The bias, starting at an output, or nullptr if there is none.
  const float* Bias(std::int64_t output) const;
  const float* HeadBias(std::int64_t head) const;

private:
  LinearTensors Tensors;
  FloatValues Weight;
  FloatValues BiasValues;
};

/// The memory that Linear allocates in addition to the tensors, in bytes.
std::uint64_t WidenedBytes(const LinearTensors& tensors);

/// The number of blocks of `block` rows or columns that cover `count` of them.
inline std::int64_t BlockCount(std::int64_t count, std::int64_t block)
{
  return (count + block - 1) / block;
}

/// At most ChunkRows consecutive rows of one sequence.
struct RowChunk
{
  std::int64_t begin = 0;
  std::int64_t rows = 0;
};

/// Chunks whose products with weights are computed together by one thread. The order in which
/// OpenBLAS sums depends on the size of a product and, as its kernels process 4, 6, 12 or 24 rows
/// at a time, on the place of a row among them. The size of a row's tile therefore depends only on
/// its own sequence: LongTileRows if at least that many rows of the sequence are left, else
/// ShortTileRows, which is shared with other sequences and padded with zeros. The place of a row in
/// its tile modulo ChunkRows is the same as in its sequence. The result for a row is thus equal to
/// the byte, whatever else it is computed with.
struct RowTile
{
  std::int64_t rows = 0;
  std::vector<RowChunk> chunks; ///< each occupies ChunkRows rows of the product
};
constexpr std::int64_t ChunkRows = 12;
constexpr std::int64_t ShortTileRows = 4 * ChunkRows;
constexpr std::int64_t LongTileRows = 16 * ChunkRows;

/// The tiles of consecutive sequences of these lengths.
std::vector<RowTile> MakeRowTiles(const std::vector<std::int64_t>& lengths);

/// Multiplies the rows of a tile: `from` [rows, inner] times b [inner, columns], written to `to`
/// [rows, columns] or added to it. Pointers are to the row 0 of the chunks; strides are from one
/// row to the next.
void MultiplyRows(const RowTile& tile, std::int64_t columns, std::int64_t inner, const float* from,
  std::int64_t fromStride, const MatrixBlock& b, float* to, std::int64_t stride, bool add);

/// What is applied to the product from W + b.
struct LinearFinish
{
  std::optional<Activation> activation;
  const float* factor = nullptr; ///< [rows, outputs], multiplied after the activation
  bool add = false;              ///< to += from W + b; excludes activation and factor
};

/// Computes to = factor * activation(from W + b), or to += from W + b. `from` [rows, inputs] and
/// `to` [rows, outputs] are packed. Runs in parallel.
void ApplyLinear(const Linear& linear, const std::vector<RowTile>& tiles, const float* from,
  float* to, const LinearFinish& finish, int threads);

}
