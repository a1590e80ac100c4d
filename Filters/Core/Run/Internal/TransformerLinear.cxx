#include "TransformerLinear.h"

#include "Parallel.h"
#include "TransformerKernels.h"

#include <algorithm>

namespace atlas
{
namespace
{

constexpr std::int64_t ColumnBlock = 256;

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
  if (index < 0 ||
      static_cast<std::int64_t>(tiles[static_cast<std::size_t>(index)].chunks.size()) * ChunkRows ==
        rows)
  {
    index = static_cast<std::int64_t>(tiles.size());
    tiles.push_back({ rows, {} });
  }
  tiles[static_cast<std::size_t>(index)].chunks.push_back(chunk);
  return index;
}

/// Applies bias, activation and factor to some columns of a row; `values` and `factor` begin at the
/// first of them.
void FinishRow(const LinearFinish& finish, std::int64_t columns, const float* bias,
  const float* factor, float* values)
{
  if (bias != nullptr)
  {
    AddRow(columns, bias, values);
  }
  if (finish.activation)
  {
    Activate(*finish.activation, columns, values);
  }
  if (factor != nullptr)
  {
    MultiplyRow(columns, factor, values);
  }
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

void MultiplyRows(const RowTile& tile, std::int64_t columns, std::int64_t inner, const float* from,
  std::int64_t fromStride, const MatrixBlock& b, float* to, std::int64_t stride, bool add)
{
  if (IsContiguous(tile))
  {
    const std::int64_t row = tile.chunks.front().begin;
    MultiplyMatrices(tile.rows, columns, inner, 1, { from + row * fromStride, fromStride }, b,
      to + row * stride, stride, add);
    return;
  }
  std::vector<float> gathered(static_cast<std::size_t>(tile.rows * inner));
  std::vector<float> product(static_cast<std::size_t>(tile.rows * columns));
  const auto forRows = [&tile](const auto& function)
  {
    std::int64_t place = 0;
    for (const RowChunk& chunk : tile.chunks)
    {
      for (std::int64_t i = 0; i < chunk.rows; ++i)
      {
        function(place + i, chunk.begin + i);
      }
      place += ChunkRows;
    }
  };
  forRows(
    [&](std::int64_t place, std::int64_t row)
    {
      std::copy_n(from + row * fromStride, inner, gathered.data() + place * inner);
      std::copy_n(to + row * stride, add ? columns : 0, product.data() + place * columns);
    });
  MultiplyMatrices(
    tile.rows, columns, inner, 1, { gathered.data(), inner }, b, product.data(), columns, add);
  forRows([&](std::int64_t place, std::int64_t row)
    { std::copy_n(product.data() + place * columns, columns, to + row * stride); });
}

void ApplyLinear(const Linear& linear, const std::vector<RowTile>& tiles, const float* from,
  float* to, const LinearFinish& finish, int threads)
{
  const std::int64_t outputs = linear.Outputs();
  const auto tileCount = static_cast<std::int64_t>(tiles.size());
  ParallelFor(tileCount * BlockCount(outputs, ColumnBlock), threads,
    [&](std::int64_t i)
    {
      const RowTile& tile = tiles[static_cast<std::size_t>(i % tileCount)];
      const std::int64_t column = i / tileCount * ColumnBlock;
      const std::int64_t columns = std::min(ColumnBlock, outputs - column);
      MultiplyRows(tile, columns, linear.Inputs(), from, linear.Inputs(), linear.Part(0, column),
        to + column, outputs, finish.add);
      for (const RowChunk& chunk : tile.chunks)
      {
        for (std::int64_t row = chunk.begin; row < chunk.begin + chunk.rows; ++row)
        {
          const std::int64_t offset = row * outputs + column;
          FinishRow(finish, columns, linear.Bias(column),
            finish.factor == nullptr ? nullptr : finish.factor + offset, to + offset);
        }
      }
    });
}

}
