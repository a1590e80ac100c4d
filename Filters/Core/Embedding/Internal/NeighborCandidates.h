#pragma once

#include <cstddef>
#include <cstdint>
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
  void Finish() { this->Prune(); }

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

  void Prune();
};

/// Leaves out of `index` what is certainly farther from x than the square root of `limit`: rows of
/// `rows` whose coordinates, like those of x, are rounded by up to half of `rounding` in all. What
/// is nearer stays, in its order. x and each row have `dimension` values.
void KeepNear(const float* x, const float* rows, std::int64_t dimension, double limit,
  double rounding, std::vector<std::uint32_t>& index);

/// Computes |scale x - scales[j] y_j|^2 in double precision for the rows y_j of `points` that
/// `index` lists. x and y_j have `dimension` values.
void SquaredDistances(const float* x, double scale, const float* points, const double* scales,
  std::int64_t dimension, const std::uint32_t* index, std::size_t count, double* squares);

}
