#pragma once

#include "Embedding/Neighbors.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace atlas
{

/// The points that may be among the `wanted` with the largest scores, while scores arrive in parts.
class NeighborCandidates
{
public:
  /// Forgets all. Scores may be wrong by half of `margin`.
  void Begin(std::size_t wanted, float margin);

  /// Takes the scores of `count` points that begin with `first`.
  void Append(const float* scores, std::size_t count, std::uint32_t first);

  /// Leaves out all that cannot be among the wanted. Among the others are all that can.
  void Finish();

  std::size_t Count() const { return this->Kept; }
  const std::uint32_t* Index() const { return this->Indices.data(); }

private:
  std::size_t Wanted = 1;
  float Margin = 0;
  float Threshold = 0;   ///< lower scores are left out
  std::size_t Kept = 0;  ///< number of candidates
  std::size_t Limit = 0; ///< so many are too many
  std::vector<std::uint32_t> Indices;
  std::vector<float> Scores;
};

/// Leaves out of `index` what is certainly farther from x than the square root of `limit`: rows of
/// `rows` whose coordinates, like those of x, are rounded by up to half of `rounding` in all. What
/// is nearer stays, in its order. x and each row have `dimension` values.
void KeepNear(const float* x, const float* rows, std::int64_t dimension, double limit,
  double rounding, std::vector<std::uint32_t>& index);

/// The squared distances in double precision of a point from others, each point times its scale
/// (ScalesOf); 2 from and to a point without direction, whose cosine is 0 with all.
void SquaredDistances(const PointView& points, const std::vector<double>& scales,
  std::int64_t point, const std::uint32_t* others, std::size_t count, std::vector<double>& squares);

/// The distance of NeighborLists by that square.
inline double DistanceOf(double square, PointMetric metric)
{
  return metric == PointMetric::Euclidean ? std::sqrt(square) : square / 2;
}

/// The distances and numbers of points that may be neighbors.
using FoundNeighbors = std::vector<std::pair<double, std::uint32_t>>;

/// Makes the nearest of `found` the list of a point; the farthest again if they are too few.
void KeepNearest(FoundNeighbors& found, std::int64_t point, NeighborLists& lists);

}
