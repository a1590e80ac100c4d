#include "TransformerLinear.h"

#include "Bfloat16Product.h"
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

/// Whether weights are rounded to BF16.
bool Rounds(const std::vector<ColumnBlock>& blocks)
{
  return blocks.front().weights.products == ProductPrecision::Bfloat16;
}

/// What one thread does at a time: the products of some tiles with some blocks.
struct TilePart
{
  std::size_t tile = 0;
  std::size_t endTile = 0;
  std::size_t block = 0;
  std::size_t endBlock = 0;
};

/// Parts of one tile and as many blocks as possible, so that rows that must be copied are copied
/// once; or, if weights must be widened or rounded, of one block and as many tiles as possible.
std::vector<TilePart> MakeParts(std::size_t tiles, std::size_t blocks, bool byBlock, int threads)
{
  const std::size_t single = byBlock ? blocks : tiles;
  const std::size_t several = byBlock ? tiles : blocks;
  const std::int64_t wanted = PartsPerThread * ThreadCount(threads);
  const std::int64_t perSingle =
    std::min(static_cast<std::int64_t>(several), BlockCount(wanted, single));
  const std::size_t step = BlockCount(static_cast<std::int64_t>(several), perSingle);
  std::vector<TilePart> parts;
  for (std::size_t one = 0; one < single; ++one)
  {
    for (std::size_t begin = 0; begin < several; begin += step)
    {
      const std::size_t end = std::min(begin + step, several);
      parts.push_back(
        byBlock ? TilePart{ begin, end, one, one + 1 } : TilePart{ one, one + 1, begin, end });
    }
  }
  return parts;
}

/// The most rows of the tiles of a part, and the most columns of its blocks.
std::pair<std::int64_t, std::int64_t> LargestOf(
  const TilePart& part, const std::vector<RowTile>& tiles, const std::vector<ColumnBlock>& blocks)
{
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  for (std::size_t tile = part.tile; tile < part.endTile; ++tile)
  {
    rows = std::max(rows, tiles[tile].rows);
  }
  for (std::size_t block = part.block; block < part.endBlock; ++block)
  {
    columns = std::max(columns, blocks[block].columns);
  }
  return { rows, columns };
}

/// Computes the products of a part by the machine's own products of BF16.
void MultiplyBfloat16Part(const TilePart& part, const std::vector<RowTile>& tiles,
  const std::vector<ColumnBlock>& blocks, std::int64_t inner, const float* from,
  const RowVisitor& visit)
{
  FloatBlock weights;
  Bfloat16Columns columns;
  Bfloat16Rows rows(inner);
  std::vector<float> product;
  for (std::size_t block = part.block; block < part.endBlock; ++block)
  {
    const ColumnBlock& column = blocks[block];
    columns.Set(weights.Of(column.weights, inner, column.columns), inner, column.columns);
    for (std::size_t t = part.tile; t < part.endTile; ++t)
    {
      rows.Clear();
      VisitRows(tiles[t], [&](std::int64_t, std::int64_t row) { rows.Add(from + row * inner); });
      product.resize(ToIndex(rows.Count() * columns.Stride()));
      columns.Multiply(rows, product.data());
      float* next = product.data();
      VisitRows(tiles[t],
        [&](std::int64_t, std::int64_t row)
        {
          visit(block, row, next);
          next += columns.Stride();
        });
    }
  }
}

/// Computes the products of a part.
void MultiplyPart(const TilePart& part, const std::vector<RowTile>& tiles,
  const std::vector<ColumnBlock>& blocks, std::int64_t inner, const float* from,
  const RowVisitor& visit)
{
  const bool rounds = Rounds(blocks);
  if (rounds && HasBfloat16Products())
  {
    MultiplyBfloat16Part(part, tiles, blocks, inner, from, visit);
    return;
  }
  const auto [rows, columns] = LargestOf(part, tiles, blocks);
  const std::unique_ptr<float[]> product(new float[rows * columns]);
  FloatBlock weights;
  for (std::size_t t = part.tile; t < part.endTile; ++t)
  {
    const RowTile& tile = tiles[t];
    const TileRows tileRows =
      rounds ? TileRows::Rounded(tile, inner, from, inner) : TileRows(tile, inner, from, inner);
    for (std::size_t block = part.block; block < part.endBlock; ++block)
    {
      const ColumnBlock& column = blocks[block];
      const MatrixBlock b = rounds ? weights.Rounded(column.weights, inner, column.columns)
                                   : weights.Of(column.weights, inner, column.columns);
      MultiplyTile(tile, column.columns, inner, tileRows.Matrix(), b, product.get());
      VisitRows(tile, [&](std::int64_t place, std::int64_t row)
        { visit(block, row, product.get() + place * column.columns); });
    }
  }
}

}

MatrixBlock FloatBlock::Of(const WeightBlock& block, std::int64_t inner, std::int64_t columns)
{
  if (block.IsInPlace())
  {
    return block.matrix;
  }
  const bool transposed = block.matrix.transposed;
  const std::int64_t lines = transposed ? columns : inner; // as they are stored
  const std::int64_t width = transposed ? inner : columns;
  if (this->Stored != block.stored || this->First != block.first || this->Columns != columns)
  {
    this->Widen(block, lines, width);
    this->Columns = columns;
  }
  return { this->Memory.get(), width, transposed };
}

MatrixBlock FloatBlock::Rounded(const WeightBlock& block, std::int64_t inner, std::int64_t columns)
{
  const bool transposed = block.matrix.transposed;
  const std::int64_t lines = transposed ? columns : inner;
  const std::int64_t width = transposed ? inner : columns;
  if (!block.IsInPlace())
  {
    this->Widen(block, lines, width);
  }
  else
  {
    float* to = this->Reserve(lines * width);
    for (std::int64_t line = 0; line < lines; ++line)
    {
      to = std::copy_n(block.matrix.data + line * block.matrix.stride, width, to);
    }
  }
  this->Stored = nullptr; // these are not the numbers of a tensor
  RoundToBfloat16(lines * width, this->Memory.get());
  return { this->Memory.get(), width, transposed };
}

float* FloatBlock::Reserve(std::int64_t size)
{
  if (this->Size < size)
  {
    this->Size = size;
    this->Memory.reset(new float[size]); // each number of which is set by the caller
  }
  return this->Memory.get();
}

void FloatBlock::Widen(const WeightBlock& block, std::int64_t lines, std::int64_t width)
{
  float* to = this->Reserve(lines * width);
  const bool isPacked = block.matrix.stride == width;
  const std::int64_t count = isPacked ? lines * width : width;
  for (std::int64_t line = 0; line < (isPacked ? 1 : lines); ++line)
  {
    const std::uint64_t begin = block.first + ToIndex(line * block.matrix.stride);
    block.stored->ToFloat(begin, begin + ToIndex(count), to + line * width);
  }
  this->Stored = block.stored;
  this->First = block.first;
}

Linear::Linear(const LinearTensors& tensors)
  : Tensors(tensors)
  , BiasValues(tensors.bias)
{
  if (WidenedBytes(tensors.weight) > 0)
  {
    this->Widened = std::make_unique<Whole>();
  }
  else
  {
    this->InPlace = FloatValues(tensors.weight).Data();
  }
}

/// The block whose first number has this index in the tensor.
WeightBlock Linear::BlockAt(std::uint64_t first, std::int64_t stride, bool transposed) const
{
  const ProductPrecision products = this->Tensors.products;
  if (this->Widened != nullptr)
  {
    return { { nullptr, stride, transposed }, &this->Tensors.weight, first, products };
  }
  return { { this->InPlace + first, stride, transposed }, nullptr, first, products };
}

WeightBlock Linear::Block(std::int64_t input, std::int64_t output) const
{
  const std::int64_t inputs = this->Tensors.inputs;
  const std::int64_t outputs = this->Tensors.outputs;
  return this->Tensors.layout == WeightLayout::OutputInput
           ? this->BlockAt(ToIndex(output * inputs + input), inputs, true)
           : this->BlockAt(ToIndex(input * outputs + output), outputs, false);
}

MatrixBlock Linear::Part(std::int64_t input, std::int64_t output) const
{
  const WeightBlock block = this->Block(input, output);
  if (this->Widened == nullptr)
  {
    return block.matrix;
  }
  Whole& whole = *this->Widened;
  std::call_once(whole.once, [&] { whole.values = FloatValues(this->Tensors.weight); });
  return { whole.values.Data() + block.first, block.matrix.stride, block.matrix.transposed };
}

WeightBlock Linear::Head(std::int64_t head) const
{
  const std::int64_t dimension = this->Tensors.headStep;
  return this->Tensors.layout == WeightLayout::HeadInputOutput
           ? this->BlockAt(ToIndex(head * this->Tensors.inputs * dimension), dimension, false)
           : this->Block(0, this->Tensors.headFirst + head * this->Tensors.headStep);
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

std::uint64_t WidenedBytes(const LinearTensors& tensors, int threads)
{
  const std::int64_t columns = std::min(tensors.outputs, std::max(BlockColumns, tensors.headStep));
  const bool rounds = tensors.products == ProductPrecision::Bfloat16;
  std::uint64_t block = 0; // of one thread
  if (rounds || WidenedBytes(tensors.weight) > 0)
  {
    block += ToIndex(tensors.inputs * columns) * sizeof(float);
  }
  if (rounds)
  {
    block += ToIndex(tensors.inputs * (columns + LongTileRows)) * sizeof(float);
  }
  return WidenedBytes(tensors.bias) + ToIndex(ThreadCount(threads)) * block;
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
  this->Take(tile, inner, from, stride);
}

TileRows TileRows::Rounded(
  const RowTile& tile, std::int64_t inner, const float* from, std::int64_t stride)
{
  TileRows rows;
  rows.Take(tile, inner, from, stride);
  RoundToBfloat16(tile.rows * inner, rows.Copy.get());
  return rows;
}

/// Copies the rows.
void TileRows::Take(const RowTile& tile, std::int64_t inner, const float* from, std::int64_t stride)
{
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
  const bool isWidened =
    Rounds(blocks) || std::any_of(blocks.begin(), blocks.end(),
                        [](const ColumnBlock& block) { return !block.weights.IsInPlace(); });
  const std::vector<TilePart> parts =
    MakeParts(larger.size(), blocks.size(), isWidened && larger.size() > 1, threads);
  ParallelFor(parts.size(), threads,
    [&](std::int64_t i) { MultiplyPart(parts[i], larger, blocks, inner, from, visit); });
}

void ApplyLinear(const Linear& linear, const std::vector<RowTile>& tiles, const float* from,
  float* to, const LinearFinish& finish, int threads)
{
  const std::int64_t outputs = linear.Outputs();
  std::vector<ColumnBlock> blocks;
  for (std::int64_t column = 0; column < outputs; column += BlockColumns)
  {
    blocks.push_back({ linear.Block(0, column), std::min(BlockColumns, outputs - column) });
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
