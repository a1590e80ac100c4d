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

/// The weights [to, from] of a line that is resized. Places beyond the ends are those of the ends.
std::vector<double> PlainWeights(std::int64_t from, std::int64_t to)
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
        Cubic(place - static_cast<double>(j), -0.75);
    }
  }
  return weights;
}

/// Likewise with a kernel as wide as the line shrinks. Places beyond the ends do not count.
std::vector<double> SmoothWeights(std::int64_t from, std::int64_t to)
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
      weight = Cubic((static_cast<double>(j) + 0.5 - center) / unit, -0.5);
      sum += weight;
    }
    for (std::int64_t j = 0; j < from; ++j)
    {
      weights[i * from + j] /= sum;
    }
  }
  return weights;
}

}

bool ResizesPositions(const TransformerConfig& config)
{
  return config.positionSide > 0 && (config.positionSide != config.PatchRows() ||
                                      config.positionSide != config.PatchColumns());
}

std::vector<float> ResizedPositions(const TensorView& stored, const TransformerConfig& config)
{
  const std::int64_t side = config.positionSide;
  const std::int64_t rows = config.PatchRows();
  const std::int64_t columns = config.PatchColumns();
  const std::int64_t d = config.modelDimension;
  const std::int64_t before = config.classTokens * d;
  const auto weights = config.registers > 0 ? SmoothWeights : PlainWeights;
  const std::vector<double> down = weights(side, rows);
  const std::vector<double> along = weights(side, columns);
  std::vector<float> from(stored.Count());
  stored.ToFloat(0, from.size(), from.data());
  std::vector<double> lines(ToIndex(rows * side * d)); // [rows, side, d]
  for (std::int64_t row = 0; row < rows; ++row)
  {
    for (std::int64_t y = 0; y < side; ++y)
    {
      for (std::int64_t i = 0; i < side * d; ++i)
      {
        lines[row * side * d + i] +=
          down[row * side + y] * static_cast<double>(from[before + y * side * d + i]);
      }
    }
  }
  std::vector<float> resized(from.begin(), from.begin() + before);
  resized.reserve(ToIndex(before + rows * columns * d));
  std::vector<double> sums(ToIndex(d));
  for (std::int64_t row = 0; row < rows; ++row)
  {
    for (std::int64_t column = 0; column < columns; ++column)
    {
      std::fill(sums.begin(), sums.end(), 0);
      for (std::int64_t x = 0; x < side; ++x)
      {
        const double* line = lines.data() + (row * side + x) * d;
        for (std::int64_t i = 0; i < d; ++i)
        {
          sums[i] += along[column * side + x] * line[i];
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

}
