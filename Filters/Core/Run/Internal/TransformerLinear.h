#pragma once

#include "FloatValues.h"
#include "MatrixProduct.h"
#include "TransformerWeights.h"

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
};

/// Memory of one thread for a block of weights as floats.
class FloatBlock
{
public:
  /// The block [inner, columns] as floats: in place, or in this memory until another block is asked
  /// for.
  MatrixBlock Of(const WeightBlock& block, std::int64_t inner, std::int64_t columns);

  /// A copy of it in this memory, rounded to BF16.
  MatrixBlock Rounded(const WeightBlock& block, std::int64_t inner, std::int64_t columns);

private:
  std::unique_ptr<float[]> Memory;
  std::int64_t Size = 0;
  const TensorView* Stored = nullptr; ///< what is in the memory
  std::uint64_t First = 0;
  std::int64_t Columns = 0;

  float* Reserve(std::int64_t size);
  void Widen(const WeightBlock& block, std::int64_t lines, std::int64_t width);
};

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
  const float* HeadBias(std::int64_t head) const;

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

/// The memory that ApplyLinear allocates for weights as floats on so many threads (as for
/// ThreadCount), and Linear for its bias, in bytes.
std::uint64_t WidenedBytes(const LinearTensors& tensors, int threads = 0);

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
  std::int64_t joined = 1;      ///< the number of tiles of equal size that were joined (JoinTiles)
};
constexpr std::int64_t ChunkRows = 12;
constexpr std::int64_t ShortTileRows = 4 * ChunkRows;
constexpr std::int64_t LongTileRows = 16 * ChunkRows;

/// The tiles of consecutive sequences of these lengths.
std::vector<RowTile> MakeRowTiles(const std::vector<std::int64_t>& lengths);

/// The tiles of this many rows without padding between sequences: the place of a row modulo
/// ChunkRows is its own. Not for long sequences.
std::vector<RowTile> MakeDenseTiles(std::int64_t rows);

/// Joins short tiles, `count` at a time, so that OpenBLAS copies the weights into its own order
/// fewer times. A joined tile has at most LongTileRows rows.
std::vector<RowTile> JoinTiles(const std::vector<RowTile>& tiles, std::int64_t count);

/// The rows of a tile as one matrix: those of the caller if they are consecutive, else a copy, in
/// which missing rows are zero.
class TileRows
{
public:
  /// `from` is the row 0 of the chunks, [rows, inner] with the given stride.
  TileRows(const RowTile& tile, std::int64_t inner, const float* from, std::int64_t stride);

  MatrixBlock Matrix() const { return this->Rows; }

  /// Likewise, rounded to BF16.
  static TileRows Rounded(
    const RowTile& tile, std::int64_t inner, const float* from, std::int64_t stride);

private:
  std::unique_ptr<float[]> Copy;
  MatrixBlock Rows;

  TileRows() = default;
  void Take(const RowTile& tile, std::int64_t inner, const float* from, std::int64_t stride);
};

/// Computes product = rows b, where `rows` are those of the tile, b is [inner, columns] and
/// `product` [tile.rows, columns]. The tiles that were joined are multiplied at once where that
/// changes no bit, else one by one.
void MultiplyTile(const RowTile& tile, std::int64_t columns, std::int64_t inner,
  const MatrixBlock& rows, const MatrixBlock& b, float* product);

/// Calls visit(place, row) for each row of a tile, where `place` is its row in the product.
template<class Visitor>
void VisitRows(const RowTile& tile, const Visitor& visit)
{
  std::int64_t place = 0;
  for (const RowChunk& chunk : tile.chunks)
  {
    for (std::int64_t i = 0; i < chunk.rows; ++i)
    {
      visit(place + i, chunk.begin + i);
    }
    place += ChunkRows;
  }
}

/// Some columns of a matrix by which rows are multiplied.
struct ColumnBlock
{
  WeightBlock weights; ///< [inner, columns]
  std::int64_t columns = 0;
};

/// The most columns that are multiplied at once. A block of them and a tile fit into the cache.
constexpr std::int64_t BlockColumns = 256;

/// What is done with a row of a product: the index of the block, the row, and its product with the
/// block [columns], which may be changed.
using RowVisitor = std::function<void(std::size_t block, std::int64_t row, float* product)>;

/// Multiplies the rows of all tiles, `from` [rows, inner], by each block and calls `visit` for each
/// row and block once. Runs in parallel: calls may come at the same time. Each thread has one block
/// of weights as floats at a time, which it multiplies all its tiles by. All blocks have the
/// precision of the first.
void MultiplyTiles(const std::vector<RowTile>& tiles, const std::vector<ColumnBlock>& blocks,
  std::int64_t inner, const float* from, const RowVisitor& visit, int threads);

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
