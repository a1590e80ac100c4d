#include "TransformerLinear.h"

#include "Parallel.h"
#include "TransformerKernels.h"

#include <algorithm>

namespace atlas
{
namespace
{

constexpr std::int64_t ColumnBlock = 256;

/// Some rows and columns of a product.
struct Tile
{
  std::int64_t row;
  std::int64_t column;
  std::int64_t rows;
  std::int64_t columns;
};

template<class Function>
void ForTiles(std::int64_t rows, std::int64_t columns, int threads, const Function& function)
{
  const std::int64_t rowBlocks = BlockCount(rows, RowBlock);
  const std::int64_t columnBlocks = BlockCount(columns, ColumnBlock);
  ParallelFor(rowBlocks * columnBlocks, threads,
    [&](std::int64_t i)
    {
      const std::int64_t row = i % rowBlocks * RowBlock;
      const std::int64_t column = i / rowBlocks * ColumnBlock;
      function(Tile{
        row, column, std::min(RowBlock, rows - row), std::min(ColumnBlock, columns - column) });
    });
}

/// One tile of activation(from W + b), or added to what is there; `to` is where the tile begins.
void ApplyToTile(const Linear& linear, const Tile& tile, const float* from, float* to,
  std::int64_t stride, std::optional<Activation> activation, bool add)
{
  const std::int64_t inputs = linear.Inputs();
  MultiplyMatrices(tile.rows, tile.columns, inputs, 1, { from + tile.row * inputs, inputs },
    linear.Part(0, tile.column), to, stride, add);
  const float* bias = linear.Bias(tile.column);
  for (std::int64_t row = 0; row < tile.rows; ++row)
  {
    float* values = to + row * stride;
    if (bias != nullptr)
    {
      AddRow(tile.columns, bias, values);
    }
    if (activation)
    {
      Activate(*activation, tile.columns, values);
    }
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

void ApplyLinear(const Linear& linear, std::int64_t rows, const float* from, float* to,
  std::optional<Activation> activation, bool add, int threads)
{
  const std::int64_t outputs = linear.Outputs();
  ForTiles(rows, outputs, threads,
    [&](const Tile& tile)
    {
      ApplyToTile(
        linear, tile, from, to + tile.row * outputs + tile.column, outputs, activation, add);
    });
}

void ApplyGated(const Linear& gate, const Linear& up, std::int64_t rows, const float* from,
  float* to, Activation activation, int threads)
{
  const std::int64_t outputs = gate.Outputs();
  ForTiles(rows, outputs, threads,
    [&](const Tile& tile)
    {
      std::vector<float> factors(static_cast<std::size_t>(tile.rows * tile.columns));
      ApplyToTile(up, tile, from, factors.data(), tile.columns, std::nullopt, false);
      float* gated = to + tile.row * outputs + tile.column;
      ApplyToTile(gate, tile, from, gated, outputs, activation, false);
      for (std::int64_t row = 0; row < tile.rows; ++row)
      {
        MultiplyRow(tile.columns, factors.data() + row * tile.columns, gated + row * outputs);
      }
    });
}

}
