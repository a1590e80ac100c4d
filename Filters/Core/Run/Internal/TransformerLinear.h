#pragma once

#include "FloatValues.h"
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

/// The blocks of `block` rows or columns that `count` of them need.
inline std::int64_t BlockCount(std::int64_t count, std::int64_t block)
{
  return (count + block - 1) / block;
}

/// Consecutive rows, at most ChunkRows, of one sequence.
struct RowChunk
{
  std::int64_t begin = 0;
  std::int64_t rows = 0;
};

/// Chunks whose products with weights are computed at once, by one thread. How OpenBLAS sums
/// depends on the size of a product and, in its kernels of 4, 6, 12 and 24 rows, on a row's place
/// among them. Therefore the size of a row's tile depends on its own sequence alone: LongTileRows
/// where so many rows of it are left, else ShortTileRows, shared with other sequences and filled up
/// with zeros; and its place modulo ChunkRows is that in its sequence. So its result is the same to
/// the byte whatever it is computed with.
struct RowTile
{
  std::int64_t rows = 0;
  std::vector<RowChunk> chunks; ///< each takes ChunkRows rows of the product
};
constexpr std::int64_t ChunkRows = 12;
constexpr std::int64_t ShortTileRows = 4 * ChunkRows;
constexpr std::int64_t LongTileRows = 16 * ChunkRows;

/// Tiles of sequences of these lengths that lie one after the other.
std::vector<RowTile> MakeRowTiles(const std::vector<std::int64_t>& lengths);

/// The rows of a tile in matrix products: from [rows, inner] times b [inner, columns], written to
/// `to` [rows, columns] or added to it. Pointers are to the row 0 that chunks count from, strides
/// from one row to the next.
void MultiplyRows(const RowTile& tile, std::int64_t columns, std::int64_t inner, const float* from,
  std::int64_t fromStride, const MatrixBlock& b, float* to, std::int64_t stride, bool add);

/// What is done with from W + b.
struct LinearFinish
{
  std::optional<Activation> activation;
  const float* factor = nullptr; ///< [rows, outputs], multiplied after the activation
  bool add = false;              ///< to += from W + b; without the two above
};

/// to = factor * activation(from W + b), or to += from W + b. `from` [rows, inputs] and `to` [rows,
/// outputs] are packed. In parallel.
void ApplyLinear(const Linear& linear, const std::vector<RowTile>& tiles, const float* from,
  float* to, const LinearFinish& finish, int threads);

}
