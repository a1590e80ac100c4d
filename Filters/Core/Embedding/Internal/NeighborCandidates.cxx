#include "NeighborCandidates.h"

#include "Numerics/InstructionSets.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Embedding/Internal/NeighborCandidates.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before this header, which is read once per target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

/// Bit i is set where scores[i] reaches the threshold; scores are whole vectors, at most 64.
HWY_INLINE std::uint64_t WhichReach(const float* scores, std::size_t count, float threshold)
{
  const hn::ScalableTag<float> d;
  const auto least = hn::Set(d, threshold);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d))
  {
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, hn::Ge(hn::LoadU(d, scores + i), least), bytes);
    bits |= (bytes[0] + 256ULL * bytes[1]) << i;
  }
  return bits;
}

/// Appends what reaches the threshold to the lists, which have room for all. Returns the new
/// number. The lists may be where the scores are, if at the beginning.
std::size_t KeepScores(const float* scores, const std::uint32_t* index, std::size_t count,
  std::uint32_t first, float threshold, std::size_t kept, float* keptScores,
  std::uint32_t* keptIndex)
{
  const auto keep = [&](std::size_t i)
  {
    keptIndex[kept] = index ? index[i] : first + static_cast<std::uint32_t>(i);
    keptScores[kept++] = scores[i];
  };
  constexpr std::size_t word = 64;
  std::size_t i = 0;
  for (; i + word <= count; i += word)
  {
    for (std::uint64_t bits = WhichReach(scores + i, word, threshold); bits != 0; bits &= bits - 1)
    {
      keep(i + hwy::Num0BitsBelowLS1Bit_Nonzero64(bits));
    }
  }
  for (; i < count; ++i)
  {
    if (scores[i] >= threshold)
    {
      keep(i);
    }
  }
  return kept;
}

std::size_t CountReaching(const float* scores, std::size_t count, float threshold)
{
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto least = hn::Set(d, threshold);
  std::size_t reaching = 0;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
  {
    reaching += hn::CountTrue(d, hn::Ge(hn::LoadU(d, scores + i), least));
  }
  for (; i < count; ++i)
  {
    reaching += scores[i] >= threshold ? 1 : 0;
  }
  return reaching;
}

/// A score that at least `wanted` of `count` scores reach, and if that is easily found, few more.
float ReachedBy(const float* scores, std::size_t count, std::size_t wanted)
{
  const auto [least, largest] = std::minmax_element(scores, scores + count);
  float low = *least;
  float high = *largest;
  const std::size_t enough = wanted + wanted / 16 + 1;
  for (int step = 0; step < 24 && low < high; ++step)
  {
    const float middle = low + (high - low) / 2;
    const std::size_t reaching = CountReaching(scores, count, middle);
    (reaching < wanted ? high : low) = middle;
    if (reaching >= wanted && reaching <= enough)
    {
      break;
    }
  }
  return low;
}

/// How many rows ahead the next ones are asked for. Rows of many points are not in the cache, and
/// otherwise too few are loaded at once.
inline constexpr std::size_t RowsAhead = 6;

HWY_INLINE void PrefetchRow(const float* row, std::size_t size)
{
  constexpr std::size_t line = 64 / sizeof(float);
  for (std::size_t i = 0; i < size; i += line)
  {
    hwy::Prefetch(row + i);
  }
}

std::size_t KeepNearRows(const float* x, const float* rows, std::int64_t dimension,
  const std::uint32_t* index, std::size_t count, float limit, std::uint32_t* near)
{
  const hn::ScalableTag<float> d;
  const std::size_t size = dimension;
  const std::size_t lanes = hn::Lanes(d);
  const auto rowOf = [&](std::size_t c)
  { return rows + static_cast<std::size_t>(index[c]) * size; };
  std::size_t kept = 0;
  for (std::size_t c = 0; c < count; ++c)
  {
    if (c + RowsAhead < count)
    {
      PrefetchRow(rowOf(c + RowsAhead), size);
    }
    const float* y = rowOf(c);
    auto sum = hn::Zero(d);
    std::size_t i = 0;
    for (; i + lanes <= size; i += lanes)
    {
      const auto difference = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, y + i));
      sum = hn::MulAdd(difference, difference, sum);
    }
    float square = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; i < size; ++i)
    {
      square += (x[i] - y[i]) * (x[i] - y[i]);
    }
    near[kept] = index[c];
    kept += square > limit ? 0 : 1;
  }
  return kept;
}

/// `x` is multiplied by its scale.
void SquaresOf(const double* x, const float* points, const double* scales, std::int64_t dimension,
  const std::uint32_t* index, std::size_t count, double* squares)
{
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const std::size_t size = dimension;
  const std::size_t lanes = hn::Lanes(d);
  const auto rowOf = [&](std::size_t c)
  { return points + static_cast<std::size_t>(index[c]) * size; };
  for (std::size_t c = 0; c < count; ++c)
  {
    if (c + RowsAhead < count)
    {
      hwy::Prefetch(scales + index[c + RowsAhead]);
      PrefetchRow(rowOf(c + RowsAhead), size);
    }
    const float* y = rowOf(c);
    const auto ofY = hn::Set(d, -scales[index[c]]);
    auto sum = hn::Zero(d);
    std::size_t i = 0;
    for (; i + lanes <= size; i += lanes)
    {
      const auto fromY = hn::Mul(hn::PromoteTo(d, hn::LoadU(df, y + i)), ofY);
      const auto difference = hn::Add(hn::LoadU(d, x + i), fromY);
      sum = hn::MulAdd(difference, difference, sum);
    }
    double square = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; i < size; ++i)
    {
      const double difference = x[i] - static_cast<double>(y[i]) * scales[index[c]];
      square += difference * difference;
    }
    squares[c] = square;
  }
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(KeepNearRows);
HWY_EXPORT(KeepScores);
HWY_EXPORT(ReachedBy);
HWY_EXPORT(SquaresOf);

void NeighborCandidates::Begin(std::size_t wanted, float margin)
{
  this->Wanted = wanted;
  this->Margin = margin;
  this->Threshold = -std::numeric_limits<float>::infinity();
  this->Kept = 0;
  this->Limit = 4 * wanted;
}

void NeighborCandidates::Append(const float* scores, std::size_t count, std::uint32_t first)
{
  const std::size_t room = this->Kept + count;
  if (this->Indices.size() < room)
  {
    this->Indices.resize(room);
    this->Scores.resize(room);
  }
  this->Kept = HWY_DYNAMIC_DISPATCH(KeepScores)(scores, nullptr, count, first, this->Threshold,
    this->Kept, this->Scores.data(), this->Indices.data());
  if (this->Kept > this->Limit)
  {
    this->Finish();
    this->Limit = std::max(4 * this->Wanted, 2 * this->Kept); // those within the margin stay
  }
}

void NeighborCandidates::Finish()
{
  if (this->Kept <= this->Wanted)
  {
    return;
  }
  this->Threshold =
    HWY_DYNAMIC_DISPATCH(ReachedBy)(this->Scores.data(), this->Kept, this->Wanted) - this->Margin;
  this->Kept = HWY_DYNAMIC_DISPATCH(KeepScores)(this->Scores.data(), this->Indices.data(),
    this->Kept, 0, this->Threshold, 0, this->Scores.data(), this->Indices.data());
}

void KeepNear(const float* x, const float* rows, std::int64_t dimension, double limit,
  double rounding, std::vector<std::uint32_t>& index)
{
  // Differences of coordinates, their squares and the sum are rounded, and `limit`.
  const double relative = 1 + static_cast<double>(dimension + 8) *
                                static_cast<double>(std::numeric_limits<float>::epsilon());
  const double distance = std::sqrt(limit) + rounding;
  const double largest =
    distance * distance * relative + static_cast<double>(std::numeric_limits<float>::min());
  const float asFloat = largest < static_cast<double>(std::numeric_limits<float>::max())
                          ? static_cast<float>(largest)
                          : std::numeric_limits<float>::infinity();
  index.resize(HWY_DYNAMIC_DISPATCH(KeepNearRows)(
    x, rows, dimension, index.data(), index.size(), asFloat, index.data()));
}

void SquaredDistances(const PointView& points, const std::vector<double>& scales,
  std::int64_t point, const std::uint32_t* others, std::size_t count, std::vector<double>& squares)
{
  static thread_local std::vector<double> scaled;
  scaled.resize(points.dimension);
  const float* x = points.Row(point);
  const double scale = scales[point];
  std::transform(x, x + points.dimension, scaled.begin(),
    [scale](float value) { return static_cast<double>(value) * scale; });
  squares.resize(count);
  HWY_DYNAMIC_DISPATCH(SquaresOf)
  (scaled.data(), points.values, scales.data(), points.dimension, others, count, squares.data());
  for (std::size_t i = 0; i < count; ++i)
  {
    squares[i] = scale == 0 || scales[others[i]] == 0 ? 2 : squares[i];
  }
}

void KeepNearest(FoundNeighbors& found, std::int64_t point, NeighborLists& lists)
{
  const std::size_t wanted = lists.count;
  if (found.size() > wanted)
  {
    std::nth_element(found.begin(), found.begin() + lists.count, found.end());
    found.resize(wanted);
  }
  std::sort(found.begin(), found.end());
  found.resize(wanted, found.back());
  std::size_t to = point * lists.count;
  for (const auto& [distance, index] : found)
  {
    lists.index[to] = index;
    lists.distance[to++] = static_cast<float>(distance);
  }
}

}

#endif
