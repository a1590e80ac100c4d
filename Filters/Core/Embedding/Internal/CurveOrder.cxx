#include "CurveOrder.h"

#include "Base/Index.h"
#include "Numerics/InstructionSets.h"

#include <algorithm>
#include <array>
#include <utility>

#include <Eigen/Core>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Embedding/Internal/CurveOrder.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before this header, which is read once per target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

/// The positions on the curve of cells x [dimensions, count] with `bits` bits a coordinate. The
/// count is whole vectors.
template<std::size_t Dimensions>
HWY_INLINE void Positions(
  const std::uint32_t* cells, std::size_t count, unsigned bits, std::uint32_t* positions)
{
  const hn::ScalableTag<std::uint32_t> d;
  using Vector = hn::Vec<decltype(d)>;
  for (std::size_t p = 0; p < count; p += hn::Lanes(d))
  {
    Vector x[Dimensions];
    for (std::size_t i = 0; i < Dimensions; ++i)
    {
      x[i] = hn::LoadU(d, cells + i * count + p);
    }
    for (std::uint32_t bit = 1U << (bits - 1); bit > 1; bit >>= 1)
    {
      const Vector tested = hn::Set(d, bit);
      const Vector lower = hn::Set(d, bit - 1);
      for (std::size_t i = 0; i < Dimensions; ++i)
      {
        // Inverts the lower bits of the first coordinate, or exchanges them with those of this one.
        const auto isSet = hn::TestBit(x[i], tested);
        const Vector exchanged = hn::IfThenZeroElse(isSet, hn::And(hn::Xor(x[0], x[i]), lower));
        x[0] = hn::Xor(x[0], hn::IfThenElse(isSet, lower, exchanged));
        x[i] = i == 0 ? x[0] : hn::Xor(x[i], exchanged);
      }
    }
    for (std::size_t i = 1; i < Dimensions; ++i)
    {
      x[i] = hn::Xor(x[i], x[i - 1]);
    }
    Vector flips = hn::Zero(d);
    for (std::uint32_t bit = 1U << (bits - 1); bit > 1; bit >>= 1)
    {
      const auto isSet = hn::TestBit(x[Dimensions - 1], hn::Set(d, bit));
      flips = hn::Xor(flips, hn::IfThenElseZero(isSet, hn::Set(d, bit - 1)));
    }
    Vector position = hn::Zero(d);
    for (std::uint32_t bit = 1U << (bits - 1); bit > 0; bit >>= 1)
    {
      for (std::size_t i = 0; i < Dimensions; ++i)
      {
        const auto isSet = hn::TestBit(hn::Xor(x[i], flips), hn::Set(d, bit));
        position = hn::Add(hn::Add(position, position), hn::IfThenElseZero(isSet, hn::Set(d, 1U)));
      }
    }
    hn::StoreU(position, d, positions + p);
  }
}

void CurvePositions(const std::uint32_t* cells, std::size_t dimensions, std::size_t count,
  unsigned bits, std::uint32_t* positions)
{
  (dimensions == 2 ? Positions<2> : Positions<3>)(cells, count, bits, positions);
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(CurvePositions);

namespace
{

struct Key
{
  std::uint32_t position;
  std::uint32_t point;
};

/// Sorts by position, less than 2^bits; equal ones stay in their order.
void SortKeys(std::vector<Key>& keys, unsigned bits)
{
  constexpr unsigned digit = 10;
  std::vector<Key> sorted(keys.size());
  for (unsigned shift = 0; shift < bits; shift += digit)
  {
    std::array<std::size_t, 1U << digit> next = {}; // places of the keys with each digit
    const auto digitOf = [shift](const Key& key)
    { return key.position >> shift & ((1U << digit) - 1); };
    for (const Key& key : keys)
    {
      ++next[digitOf(key)];
    }
    std::size_t place = 0;
    for (std::size_t& count : next)
    {
      place += std::exchange(count, place);
    }
    for (const Key& key : keys)
    {
      sorted[next[digitOf(key)]++] = key;
    }
    keys.swap(sorted);
  }
}

/// Positions are computed for whole groups of so many points; vectors are not longer.
constexpr std::size_t Unit = 64;

template<std::size_t Dimensions>
std::vector<std::uint32_t> OrderOf(const float* points, std::size_t count, std::size_t stride)
{
  constexpr unsigned bits = Dimensions == 2 ? 14 : 10;
  // Coordinates become whole numbers below 2^bits, in a cube around all points.
  using Columns = Eigen::Array<float, Dimensions, Eigen::Dynamic>;
  const Eigen::Map<const Columns, Eigen::Unaligned, Eigen::OuterStride<>> all(
    points, Dimensions, count, Eigen::OuterStride<>(stride));
  const Eigen::Array<float, Dimensions, 1> least = all.rowwise().minCoeff();
  const float extent = (all.rowwise().maxCoeff() - least).maxCoeff();
  constexpr std::uint32_t largest = (1U << bits) - 1;
  const float scale = extent > 0 ? static_cast<float>(largest) / extent : 0;
  const std::size_t padded = (count + Unit - 1) / Unit * Unit;
  std::vector<std::uint32_t> cells(Dimensions * padded);
  for (std::size_t i = 0; i < count; ++i)
  {
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      cells[c * padded + i] =
        std::min(static_cast<std::uint32_t>((points[i * stride + c] - least[c]) * scale), largest);
    }
  }
  std::vector<std::uint32_t> positions(padded);
  HWY_DYNAMIC_DISPATCH(CurvePositions)
  (cells.data(), Dimensions, padded, bits, positions.data());
  std::vector<Key> keys(count);
  for (std::size_t i = 0; i < count; ++i)
  {
    keys[i] = { positions[i], static_cast<std::uint32_t>(i) };
  }
  SortKeys(keys, bits * Dimensions);
  std::vector<std::uint32_t> order(count);
  std::transform(keys.begin(), keys.end(), order.begin(), [](const Key& key) { return key.point; });
  return order;
}

}

std::vector<std::uint32_t> CurveOrder(
  const float* points, std::int64_t count, int dimensions, std::int64_t stride)
{
  InitializeTarget();
  return dimensions == 2 ? OrderOf<2>(points, count, stride) : OrderOf<3>(points, count, stride);
}

}

#endif
