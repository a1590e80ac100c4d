#include "TransformerLinear.h"

#include "Index.h"
#include "Parallel.h"
#include "TransformerKernels.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// The least number of multiplications of a short tile's product for tiles to be joined. OpenBLAS
/// has other kernels for small products, below 10^6 (0.3.21) or 7.4 10^6 (without a copy of b).
/// Larger products differ in nothing but their number of rows, which changes no sum.
constexpr std::int64_t LeastJoinedProduct = std::int64_t{ 1 } << 23;

/// The number of parts of equal work for each thread, so that none waits long for another.
constexpr std::int64_t PartsPerThread = 3;

/// Whether a tile is full and its rows are consecutive.
bool IsContiguous(const RowTile& tile)
{
  const RowChunk& last = tile.chunks.back();
  return last.rows == ChunkRows &&
         last.begin + ChunkRows - tile.chunks.front().begin == tile.rows &&
         static_cast<std::int64_t>(tile.chunks.size()) * ChunkRows == tile.rows;
}

/// Adds a chunk to the tile with this index, or to a new tile if that one is full or the index is
/// -1. Returns the index of the tile.
std::int64_t AddChunk(
  std::vector<RowTile>& tiles, std::int64_t index, std::int64_t rows, const RowChunk& chunk)
{
  if (index < 0 || static_cast<std::int64_t>(tiles[index].chunks.size()) * ChunkRows == rows)
  {
    index = static_cast<std::int64_t>(tiles.size());
    tiles.push_back({ rows, {} });
  }
  tiles[index].chunks.push_back(chunk);
  return index;
}

/// What one thread does at a time: the product of a tile with blocks begin <= block < end.
struct TilePart
{
  const RowTile* tile = nullptr;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Rows that must be copied are multiplied by as many blocks as possible, so that they are copied
/// once.
std::vector<TilePart> MakeParts(const std::vector<RowTile>& tiles, std::size_t blocks, int threads)
{
  const std::int64_t wanted = PartsPerThread * ThreadCount(threads);
  const std::int64_t perTile =
    std::min(static_cast<std::int64_t>(blocks), BlockCount(wanted, tiles.size()));
  const std::size_t step = BlockCount(static_cast<std::int64_t>(blocks), perTile);
  std::vector<TilePart> parts;
  for (const RowTile& tile : tiles)
  {
    for (std::size_t begin = 0; begin < blocks; begin += step)
    {
      parts.push_back({ &tile, begin, std::min(begin + step, blocks) });
    }
  }
  return parts;
}

}

Linear::Linear(const LinearTensors& tensors)
  : Tensors(tensors)
  , Weight(tensors.weight)
  , BiasValues(tensors.bias)
{
}

MatrixBlock Linear::Part(std::int64_t input, std::int64_t output) const
{
  const std::int64_t inputs = this->Tensors.inputs;
  const std::int64_t outputs = this->Tensors.outputs;
  const float* weight = this->Weight.Data();
  return this->Tensors.layout == WeightLayout::OutputInput
           ? MatrixBlock{ weight + output * inputs + input, inputs, true }
           : MatrixBlock{ weight + input * outputs + output, outputs, false };
}

MatrixBlock Linear::Head(std::int64_t head) const
{
  const std::int64_t dimension = this->Tensors.headStep;
  return this->Tensors.layout == WeightLayout::HeadInputOutput
           ? MatrixBlock{ this->Weight.Data() + head * this->Tensors.inputs * dimension, dimension,
               false }
           : this->Part(0, this->Tensors.headFirst + head * this->Tensors.headStep);
}

bool Linear::HeadsAreNeighbors(std::int64_t dimension) const
{
  return this->Tensors.layout != WeightLayout::HeadInputOutput &&
         this->Tensors.headStep == dimension;
}

const float* Linear::Bias(std::int64_t output) const
{
  const float* bias = this->BiasValues.Data();
  return bias == nullptr ? nullptr : bias + output;
}

const float* Linear::HeadBias(std::int64_t head) const
{
  return this->Bias(this->Tensors.headFirst + head * this->Tensors.headStep);
}

std::uint64_t WidenedBytes(const LinearTensors& tensors)
{
  return WidenedBytes(tensors.weight) + WidenedBytes(tensors.bias);
}

std::vector<RowTile> MakeRowTiles(const std::vector<std::int64_t>& lengths)
{
  std::vector<RowTile> tiles;
  std::int64_t first = 0;
  std::int64_t shortTile = -1;
  for (const std::int64_t length : lengths)
  {
    const std::int64_t longRows = length / LongTileRows * LongTileRows;
    std::int64_t longTile = -1;
    for (std::int64_t row = 0; row < length; row += ChunkRows)
    {
      const RowChunk chunk = { first + row, std::min(ChunkRows, length - row) };
      if (row < longRows)
      {
        longTile = AddChunk(tiles, longTile, LongTileRows, chunk);
      }
      else
      {
        shortTile = AddChunk(tiles, shortTile, ShortTileRows, chunk);
      }
    }
    first += length;
  }
  return tiles;
}

std::vector<RowTile> MakeDenseTiles(std::int64_t rows)
{
  std::vector<RowTile> tiles;
  std::int64_t tile = -1;
  for (std::int64_t row = 0; row < rows; row += ChunkRows)
  {
    tile = AddChunk(tiles, tile, ShortTileRows, { row, std::min(ChunkRows, rows - row) });
  }
  return tiles;
}

std::vector<RowTile> JoinTiles(const std::vector<RowTile>& tiles, std::int64_t count)
{
  const std::int64_t most = std::min(count, LongTileRows / ShortTileRows);
  std::vector<RowTile> joined;
  std::int64_t last = -1; // the tile that others may be joined to
  for (const RowTile& tile : tiles)
  {
    if (tile.rows != ShortTileRows)
    {
      joined.push_back(tile);
    }
    else if (last < 0 || joined[last].joined == most)
    {
      last = static_cast<std::int64_t>(joined.size());
      joined.push_back(tile);
    }
    else
    {
      RowTile& to = joined[last];
      to.rows += tile.rows;
      to.joined += 1;
      to.chunks.insert(to.chunks.end(), tile.chunks.begin(), tile.chunks.end());
    }
  }
  return joined;
}

TileRows::TileRows(const RowTile& tile, std::int64_t inner, const float* from, std::int64_t stride)
{
  if (IsContiguous(tile))
  {
    this->Rows = { from + tile.chunks.front().begin * stride, stride };
    return;
  }
  this->Copy.reset(new float[tile.rows * inner]); // each number of which is set below
  this->Rows = { this->Copy.get(), inner };
  float* to = this->Copy.get();
  for (const RowChunk& chunk : tile.chunks)
  {
    for (std::int64_t row = chunk.begin; row < chunk.begin + chunk.rows; ++row)
    {
      to = std::copy_n(from + row * stride, inner, to);
    }
    to = std::fill_n(to, (ChunkRows - chunk.rows) * inner, 0.F);
  }
  std::fill(to, this->Copy.get() + tile.rows * inner, 0.F);
}

void MultiplyTile(const RowTile& tile, std::int64_t columns, std::int64_t inner,
  const MatrixBlock& rows, const MatrixBlock& b, float* product)
{
  const std::int64_t single = tile.rows / tile.joined;
  const std::int64_t step = single * columns * inner < LeastJoinedProduct ? single : tile.rows;
  for (std::int64_t row = 0; row < tile.rows; row += step)
  {
    MultiplyMatrices(step, columns, inner, 1, { rows.data + row * rows.stride, rows.stride }, b,
      product + row * columns, columns);
  }
}

void MultiplyTiles(const std::vector<RowTile>& tiles, const std::vector<ColumnBlock>& blocks,
  std::int64_t inner, const float* from, const RowVisitor& visit, int threads)
{
  if (tiles.empty() || blocks.empty())
  {
    return;
  }
  const auto products = static_cast<std::int64_t>(tiles.size() * blocks.size());
  const std::int64_t joined = products / (PartsPerThread * ThreadCount(threads));
  const std::vector<RowTile> larger = JoinTiles(tiles, std::max<std::int64_t>(joined, 1));
  const std::vector<TilePart> parts = MakeParts(larger, blocks.size(), threads);
  ParallelFor(parts.size(), threads,
    [&](std::int64_t i)
    {
      const TilePart& part = parts[i];
      const TileRows rows(*part.tile, inner, from, inner);
      std::int64_t columns = 0;
      for (std::size_t block = part.begin; block < part.end; ++block)
      {
        columns = std::max(columns, blocks[block].columns);
      }
      const std::unique_ptr<float[]> product(new float[part.tile->rows * columns]);
      for (std::size_t block = part.begin; block < part.end; ++block)
      {
        const ColumnBlock& column = blocks[block];
        MultiplyTile(
          *part.tile, column.columns, inner, rows.Matrix(), column.weights, product.get());
        VisitRows(*part.tile, [&](std::int64_t place, std::int64_t row)
          { visit(block, row, product.get() + place * column.columns); });
      }
    });
}

void ApplyLinear(const Linear& linear, const std::vector<RowTile>& tiles, const float* from,
  float* to, const LinearFinish& finish, int threads)
{
  const std::int64_t outputs = linear.Outputs();
  std::vector<ColumnBlock> blocks;
  for (std::int64_t column = 0; column < outputs; column += BlockColumns)
  {
    blocks.push_back({ linear.Part(0, column), std::min(BlockColumns, outputs - column) });
  }
  const auto visit = [&](std::size_t block, std::int64_t row, float* product)
  {
    const std::int64_t column = static_cast<std::int64_t>(block) * BlockColumns;
    const std::int64_t columns = blocks[block].columns;
    const std::int64_t offset = row * outputs + column;
    if (linear.Bias(column) != nullptr)
    {
      AddRow(columns, linear.Bias(column), product);
    }
    if (finish.add)
    {
      AddRow(columns, product, to + offset);
      return;
    }
    if (finish.activation)
    {
      Activate(*finish.activation, columns, product);
    }
    if (finish.factor != nullptr)
    {
      MultiplyRow(columns, finish.factor + offset, product);
    }
    std::copy_n(product, columns, to + offset);
  };
  MultiplyTiles(tiles, blocks, linear.Inputs(), from, visit, threads);
}

}
