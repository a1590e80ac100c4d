#pragma once

#include <cstdint>

namespace atlas
{

/// Points as the rows of a row-major, packed float matrix [count, dimension], in memory that is
/// owned elsewhere.
struct PointView
{
  const float* values = nullptr;
  std::int64_t count = 0;
  std::int64_t dimension = 0;

  const float* Row(std::int64_t i) const { return this->values + i * this->dimension; }
};

/// How far apart two points x and y are. cos is the cosine of the angle between them; a point at
/// the origin has cos = 0 with every point.
enum class PointMetric
{
  Cosine,        ///< squared distance 2 (1 - cos): Euclidean between unit vectors
  SquaredCosine, ///< squared distance (1 - cos)^2, as scikit-learn has it since version 1.1
  Euclidean      ///< squared distance |x - y|^2
};

}
