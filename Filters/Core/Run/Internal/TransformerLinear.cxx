#include "TransformerLinear.h"

#include "Base/Index.h"
#include "Base/Parallel.h"
#include "Files/Dequantize.h"
#include "Numerics/RowProduct.h"
#include "TransformerKernels.h"

namespace atlas
{
namespace
{

/// The number of parts of equal work for each thread, so that none waits long for another.
constexpr std::int64_t PartsPerThread = 3;

/// Rows of a part are a multiple of this, so that packing a block is little beside its products.
constexpr std::int64_t PartRows = 48;

/// The number of parts in which a product is to be computed.
std::int64_t WantedParts(int threads)
{
  return PartsPerThread * ThreadCount(threads);
}

/// The columns that ApplyLinear multiplies at once: narrow blocks rather than few rows for each
/// thread, since every part packs its block.
std::int64_t BlockWidth(std::int64_t outputs, int threads)
{
  std::int64_t width = BlockColumns;
  while (width > LeastBlockColumns && BlockCount(outputs, width) < WantedParts(threads))
  {
    width /= 2;
  }
  return width;
}

using Floats = std::unique_ptr<float[]>;

/// Memory for so many numbers of a block, uninitialized; none if they are in place.
Floats RoomFor(const WeightBlock& block, std::int64_t count)
{
  return Floats(block.IsInPlace() ? nullptr : new float[ToIndex(count)]);
}

/// The numbers of a block that are widened at once for few rows; they stay in the cache.
constexpr std::int64_t TileLines = 16;
constexpr std::int64_t TileWidth = 1024;

/// Some columns of a block of integers (Dequantize.h), which stay in the cache.
class IntegerTile
{
public:
  explicit IntegerTile(DType dtype)
    : Type(dtype)
    , Offsets(HasOffsets(dtype) ? this->Scales.size() : 0)
  {
  }

  /// The first IntegerColumnCount columns of a block, and so many numbers of them.
  IntegerColumns Unpack(const WeightBlock& block, std::int64_t inner)
  {
    const auto width = ToIndex(block.matrix.stride);
    const auto group = ToIndex(block.stored->interleavedRows);
    for (std::int64_t column = 0; column < IntegerColumnCount; ++column)
    {
      const ScaledIntegers to = { this->Integers.data() + column * TileWidth,
        this->Scales.data() + column,
        this->Offsets.empty() ? nullptr : this->Offsets.data() + column,
        ToIndex(IntegerColumnCount) };
      const std::uint64_t row = block.first / width + ToIndex(column);
      const std::uint64_t place =
        (group > 0 ? InterleavedRow(group, row) : row) * width + block.first % width;
      UnpackBlocks(this->Type,
        block.stored->data + place / BlockElements(this->Type) * BlockBytes(this->Type),
        ToIndex(inner) / BlockElements(this->Type), to);
    }
    return { this->Integers.data(), TileWidth, this->Scales.data(),
      this->Offsets.empty() ? nullptr : this->Offsets.data() };
  }

private:
  static constexpr std::size_t Groups = TileWidth / static_cast<std::int64_t>(ScaleGroup);

  DType Type;
  std::vector<std::int8_t> Integers = std::vector<std::int8_t>(IntegerColumnCount * TileWidth);
  std::vector<float> Scales = std::vector<float>(ToIndex(IntegerColumnCount) * Groups);
  std::vector<float> Offsets;
};

/// Adds the products of few rows with whole tiles of integers of a block, and returns the columns
/// that these have.
std::int64_t AddIntegers(std::int64_t rows, const ColumnBlock& block, std::int64_t inner,
  const float* from, float* product)
{
  const WeightBlock& weights = block.weights;
  const bool areBlocks = !weights.IsInPlace() && weights.matrix.transposed &&
                         IsBlock(weights.stored->dtype) && weights.stored->packed == nullptr;
  if (!areBlocks)
  {
    return 0;
  }
  IntegerTile tile(weights.stored->dtype);
  std::int64_t column = 0;
  for (; column + IntegerColumnCount <= block.columns; column += IntegerColumnCount)
  {
    for (std::int64_t i = 0; i < inner; i += TileWidth)
    {
      const std::int64_t count = std::min(TileWidth, inner - i);
      AddRowProducts(rows, count, from + i, inner, tile.Unpack(weights.From(i, column), count),
        product + column, block.columns);
    }
  }
  return column;
}

/// Adds the products of few rows with a block.
void AddBlock(std::int64_t rows, const ColumnBlock& block, std::int64_t inner, const float* from,
  float* product)
{
  const bool transposed = block.weights.matrix.transposed;
  const std::int64_t height = transposed ? TileWidth : TileLines; // of a tile
  const std::int64_t width = transposed ? TileLines : TileWidth;
  const Floats memory = RoomFor(block.weights, height * width);
  for (std::int64_t column = AddIntegers(rows, block, inner, from, product); column < block.columns;
    column += width)
  {
    const std::int64_t columns = std::min(width, block.columns - column);
    for (std::int64_t i = 0; i < inner; i += height)
    {
      const std::int64_t count = std::min(height, inner - i);
      AddRowProducts(rows, count, from + i, inner,
        FloatsOf(block.weights.From(i, column), count, columns, memory.get()), columns,
        product + column, block.columns);
    }
  }
}

/// MultiplyRows of at most FewRows rows, without packing.
void MultiplyFewRows(std::int64_t rows, const std::vector<ColumnBlock>& blocks, std::int64_t inner,
  const float* from, const RowVisitor& visit, int threads)
{
  ParallelFor(static_cast<std::int64_t>(blocks.size()), threads,
    [&](std::int64_t i)
    {
      const std::size_t index = ToIndex(i);
      const ColumnBlock& block = blocks[index];
      std::vector<float> product(ToIndex(rows * block.columns));
      AddBlock(rows, block, inner, from, product.data());
      for (std::int64_t row = 0; row < rows; ++row)
      {
        visit(index, row, product.data() + row * block.columns);
      }
    });
}

}

WeightBlock WeightBlock::From(std::int64_t inner, std::int64_t column) const
{
  const std::int64_t stride = this->matrix.stride;
  const std::int64_t place =
    this->matrix.transposed ? column * stride + inner : inner * stride + column;
  WeightBlock part = *this;
  if (this->IsInPlace())
  {
    part.matrix.data += place;
  }
  else
  {
    part.first += ToIndex(place);
  }
  return part;
}

MatrixBlock FloatsOf(
  const WeightBlock& block, std::int64_t inner, std::int64_t columns, float* memory)
{
  if (block.IsInPlace())
  {
    return block.matrix;
  }
  const bool transposed = block.matrix.transposed;
  const std::int64_t lines = transposed ? columns : inner; // as they are stored
  const std::int64_t width = transposed ? inner : columns;
  const bool isPacked = block.matrix.stride == width;
  const std::int64_t count = isPacked ? lines * width : width;
  for (std::int64_t line = 0; line < (isPacked ? 1 : lines); ++line)
  {
    const std::uint64_t begin = block.first + ToIndex(line * block.matrix.stride);
    block.stored->ToFloat(begin, begin + ToIndex(count), memory + line * width);
  }
  return { memory, width, transposed };
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
           : this->Block(0, this->Tensors.FirstOutput(head));
}

bool Linear::HeadsAreNeighbors(std::int64_t dimension) const
{
  return this->Tensors.layout != WeightLayout::HeadInputOutput &&
         this->Tensors.headStep == dimension && this->Tensors.groupHeads == 0;
}

const float* Linear::Bias(std::int64_t output) const
{
  const float* bias = this->BiasValues.Data();
  return bias == nullptr ? nullptr : bias + output;
}

std::uint64_t WidenedBytes(const LinearTensors& tensors, int threads)
{
  const std::int64_t width = tensors.headStep > 0 ? std::max(BlockColumns, tensors.headStep)
                                                  : BlockWidth(tensors.outputs, threads);
  const std::int64_t columns = std::min(tensors.outputs, width);
  std::uint64_t block = ToIndex(tensors.inputs * columns) * sizeof(float); // packed
  if (WidenedBytes(tensors.weight) > 0)
  {
    block *= 2;
  }
  if (tensors.products == ProductPrecision::Bfloat16)
  {
    block += ToIndex(tensors.inputs * RowsAtOnce) * sizeof(float); // rounded rows
  }
  return WidenedBytes(tensors.bias) + ToIndex(ThreadCount(threads)) * block;
}

void MultiplyRows(std::int64_t rows, const std::vector<ColumnBlock>& blocks, std::int64_t inner,
  const float* from, const RowVisitor& visit, int threads)
{
  if (rows == 0 || blocks.empty())
  {
    return;
  }
  if (rows <= FewRows && blocks.front().weights.products == ProductPrecision::Single)
  {
    MultiplyFewRows(rows, blocks, inner, from, visit, threads);
    return;
  }
  const auto count = static_cast<std::int64_t>(blocks.size());
  const std::int64_t step =
    BlockCount(BlockCount(rows, BlockCount(WantedParts(threads), count)), PartRows) * PartRows;
  const std::int64_t parts = BlockCount(rows, step); // of each block
  ParallelFor(count * parts, threads,
    [&](std::int64_t i)
    {
      const std::size_t index = ToIndex(i / parts);
      const ColumnBlock& block = blocks[index];
      const std::int64_t first = i % parts * step;
      Floats memory = RoomFor(block.weights, inner * block.columns);
      PackedColumns packed;
      packed.Set(FloatsOf(block.weights, inner, block.columns, memory.get()), inner, block.columns,
        block.weights.products);
      memory.reset();
      VisitProducts(packed, std::min(step, rows - first), from + first * inner, inner,
        [&](std::int64_t row, float* product) { visit(index, first + row, product); });
    });
}

void ApplyLinear(const Linear& linear, std::int64_t rows, const float* from, float* to,
  const LinearFinish& finish, int threads)
{
  const std::int64_t outputs = linear.Outputs();
  const std::int64_t width = BlockWidth(outputs, threads);
  std::vector<ColumnBlock> blocks;
  for (std::int64_t column = 0; column < outputs; column += width)
  {
    blocks.push_back({ linear.Block(0, column), std::min(width, outputs - column) });
  }
  const auto visit = [&](std::size_t block, std::int64_t row, float* product)
  {
    const std::int64_t column = static_cast<std::int64_t>(block) * width;
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
  MultiplyRows(rows, blocks, linear.Inputs(), from, visit, threads);
}

}
