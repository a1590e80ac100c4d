#include "ResizedPositions.h"

#include "Base/Index.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

/// Keys' cubic convolution (Keys 1981).
double Cubic(double distance, double a)
{
  const double x = std::abs(distance);
  return x < 1   ? ((a + 2) * x - (a + 3)) * x * x + 1
         : x < 2 ? ((x - 5) * x + 8) * a * x - 4 * a
                 : 0;
}

/// The value of a kernel.
double ValueOf(GridKernel kernel, double distance)
{
  switch (kernel)
  {
    case GridKernel::Bicubic:
      return Cubic(distance, -0.75);
    case GridKernel::SmoothBicubic:
      return Cubic(distance, -0.5);
    default:
      return std::max(1 - std::abs(distance), 0.0);
  }
}

/// The weights [to, from] of a line that is resized between its ends, each in single precision as
/// in the original code.
std::vector<double> AlignedWeights(std::int64_t from, std::int64_t to)
{
  std::vector<double> weights(ToIndex(from) * ToIndex(to));
  for (std::int64_t i = 0; i < to; ++i)
  {
    const float place =
      static_cast<float>(i * (from - 1)) / static_cast<float>(std::max<std::int64_t>(to - 1, 1));
    const auto first = static_cast<std::int64_t>(place);
    const float part = place - static_cast<float>(first);
    weights[i * from + first] += static_cast<double>(1 - part);
    weights[i * from + std::min(first + 1, from - 1)] += static_cast<double>(part);
  }
  return weights;
}

/// The weights [to, from] of a line that is resized. Places beyond the ends are those of the ends.
std::vector<double> PlainWeights(GridKernel kernel, std::int64_t from, std::int64_t to)
{
  std::vector<double> weights(ToIndex(from) * ToIndex(to));
  for (std::int64_t i = 0; i < to; ++i)
  {
    const double place =
      (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    const auto first = static_cast<std::int64_t>(std::floor(place)) - 1;
    for (std::int64_t j = first; j < first + 4; ++j)
    {
      weights[i * from + std::clamp<std::int64_t>(j, 0, from - 1)] +=
        ValueOf(kernel, place - static_cast<double>(j));
    }
  }
  return weights;
}

/// Likewise with a kernel as wide as the line shrinks. Places beyond the ends do not count.
std::vector<double> SmoothWeights(GridKernel kernel, std::int64_t from, std::int64_t to)
{
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double unit = std::max(scale, 1.0);
  std::vector<double> weights(ToIndex(from) * ToIndex(to));
  for (std::int64_t i = 0; i < to; ++i)
  {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    double sum = 0;
    for (std::int64_t j = 0; j < from; ++j)
    {
      double& weight = weights[i * from + j];
      weight = ValueOf(kernel, (static_cast<double>(j) + 0.5 - center) / unit);
      sum += weight;
    }
    for (std::int64_t j = 0; j < from; ++j)
    {
      weights[i * from + j] /= sum;
    }
  }
  return weights;
}

std::vector<double> WeightsOf(GridKernel kernel, std::int64_t from, std::int64_t to)
{
  if (kernel == GridKernel::AlignedBilinear)
  {
    return AlignedWeights(from, to);
  }
  const bool isSmooth = kernel == GridKernel::SmoothBicubic || kernel == GridKernel::SmoothBilinear;
  return isSmooth ? SmoothWeights(kernel, from, to) : PlainWeights(kernel, from, to);
}

std::vector<float> ValuesOf(const TensorView& stored)
{
  std::vector<float> values(stored.Count());
  stored.ToFloat(0, values.size(), values.data());
  return values;
}

}

std::vector<float> ResizedGrid(const std::vector<float>& grid, std::int64_t fromRows,
  std::int64_t fromColumns, std::int64_t rows, std::int64_t columns, std::int64_t d,
  GridKernel kernel)
{
  const std::vector<double> down = WeightsOf(kernel, fromRows, rows);
  const std::vector<double> along = WeightsOf(kernel, fromColumns, columns);
  const std::int64_t width = fromColumns * d;
  std::vector<double> lines(ToIndex(rows * width)); // [rows, fromColumns, d]
  for (std::int64_t row = 0; row < rows; ++row)
  {
    for (std::int64_t y = 0; y < fromRows; ++y)
    {
      for (std::int64_t i = 0; i < width; ++i)
      {
        lines[row * width + i] +=
          down[row * fromRows + y] * static_cast<double>(grid[y * width + i]);
      }
    }
  }
  std::vector<float> resized;
  resized.reserve(ToIndex(rows * columns * d));
  std::vector<double> sums(ToIndex(d));
  for (std::int64_t row = 0; row < rows; ++row)
  {
    for (std::int64_t column = 0; column < columns; ++column)
    {
      std::fill(sums.begin(), sums.end(), 0);
      for (std::int64_t x = 0; x < fromColumns; ++x)
      {
        const double* line = lines.data() + row * width + x * d;
        for (std::int64_t i = 0; i < d; ++i)
        {
          sums[i] += along[column * fromColumns + x] * line[i];
        }
      }
      for (const double sum : sums)
      {
        resized.push_back(static_cast<float>(sum));
      }
    }
  }
  return resized;
}

bool ResizesPositions(const TransformerConfig& config)
{
  return config.positionSide > 0 && (config.positionSide != config.PatchRows() ||
                                      config.positionSide != config.PatchColumns());
}

std::vector<float> ResizedPositions(const TensorView& stored, const TransformerConfig& config)
{
  const std::int64_t side = config.positionSide;
  const std::int64_t d = config.modelDimension;
  const std::vector<float> all = ValuesOf(stored);
  std::vector<float> positions(all.begin(), all.begin() + config.classTokens * d);
  const std::vector<float> resized =
    ResizedGrid({ all.begin() + config.classTokens * d, all.end() }, side, side, config.PatchRows(),
      config.PatchColumns(), d,
      config.registers > 0 ? GridKernel::SmoothBicubic : GridKernel::Bicubic);
  positions.insert(positions.end(), resized.begin(), resized.end());
  return positions;
}

std::vector<float> PositionsOfGrid(const TensorView& stored, const TransformerConfig& config,
  std::int64_t rows, std::int64_t columns)
{
  const std::int64_t side = config.positionSide;
  return ResizedGrid(ValuesOf(stored), side, side, rows, columns, config.modelDimension,
    config.alignsPositions ? GridKernel::AlignedBilinear : GridKernel::SmoothBilinear);
}

std::vector<float> ResizedPatchBias(const TensorView& stored, const TransformerConfig& config)
{
  const std::int64_t side = 2 * config.positionSide - 1;
  const std::vector<float> all = ValuesOf(stored);
  const auto patches = all.begin() + side * side * config.heads;
  std::vector<float> biases = ResizedGrid({ all.begin(), patches }, side, side,
    2 * config.PatchRows() - 1, 2 * config.PatchColumns() - 1, config.heads, GridKernel::Bilinear);
  biases.insert(biases.end(), patches, all.end());
  return biases;
}

}
