#include "CurveOrder.h"

#include "Index.h"

#include <algorithm>
#include <array>

namespace atlas
{
namespace
{

/// The position on the curve of a cell with so many bits a coordinate.
template<std::size_t Dimensions>
std::uint32_t CurvePosition(std::array<std::uint32_t, Dimensions> x, unsigned bits)
{
  const std::uint32_t highest = 1U << (bits - 1);
  for (std::uint32_t bit = highest; bit > 1; bit >>= 1)
  {
    const std::uint32_t lower = bit - 1;
    for (std::uint32_t& value : x)
    {
      // Inverts the lower bits of the first coordinate, or exchanges them with those of this one.
      const std::uint32_t inverted = (value & bit) != 0 ? lower : 0;
      const std::uint32_t exchanged = (x[0] ^ value) & lower & ~inverted;
      x[0] ^= inverted | exchanged;
      value ^= exchanged;
    }
  }
  for (std::size_t i = 1; i < Dimensions; ++i)
  {
    x[i] ^= x[i - 1];
  }
  std::uint32_t flips = 0;
  for (std::uint32_t bit = highest; bit > 1; bit >>= 1)
  {
    flips ^= (x[Dimensions - 1] & bit) != 0 ? bit - 1 : 0;
  }
  std::uint32_t position = 0;
  for (std::uint32_t bit = highest; bit > 0; bit >>= 1)
  {
    for (const std::uint32_t value : x)
    {
      position = 2 * position + (((value ^ flips) & bit) != 0 ? 1 : 0);
    }
  }
  return position;
}

template<std::size_t Dimensions>
std::vector<std::uint32_t> OrderOf(const float* points, std::int64_t count, std::int64_t stride)
{
  constexpr unsigned bits = Dimensions == 2 ? 14 : 10;
  std::array<float, Dimensions> least;
  std::copy_n(points, Dimensions, least.begin());
  std::array<float, Dimensions> largest = least;
  for (std::int64_t i = 0; i < count; ++i)
  {
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      const float value = points[i * stride + static_cast<std::int64_t>(c)];
      least[c] = std::min(least[c], value);
      largest[c] = std::max(largest[c], value);
    }
  }
  float extent = 0;
  for (std::size_t c = 0; c < Dimensions; ++c)
  {
    extent = std::max(extent, largest[c] - least[c]);
  }
  const float scale = extent > 0 ? static_cast<float>((1U << bits) - 1) / extent : 0;
  std::vector<std::uint64_t> keys(ToIndex(count)); // position, then number of the point
  for (std::int64_t i = 0; i < count; ++i)
  {
    std::array<std::uint32_t, Dimensions> cell;
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      const float value = points[i * stride + static_cast<std::int64_t>(c)];
      cell[c] = std::min(static_cast<std::uint32_t>((value - least[c]) * scale), (1U << bits) - 1);
    }
    keys[ToIndex(i)] =
      std::uint64_t{ CurvePosition(cell, bits) } << 32U | static_cast<std::uint64_t>(i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::uint32_t> order;
  order.reserve(keys.size());
  for (const std::uint64_t key : keys)
  {
    order.push_back(static_cast<std::uint32_t>(key));
  }
  return order;
}

}

std::vector<std::uint32_t> CurveOrder(
  const float* points, std::int64_t count, int dimensions, std::int64_t stride)
{
  return dimensions == 2 ? OrderOf<2>(points, count, stride) : OrderOf<3>(points, count, stride);
}

}
