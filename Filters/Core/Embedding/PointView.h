#pragma once

#include <cstdint>

namespace atlas
{

/// Points as the rows of a row-major, packed float matrix [count, dimension], in memory owned
/// elsewhere.
struct PointView
{
  const float* values = nullptr;
  std::int64_t count = 0;
  std::int64_t dimension = 0;

  const float* Row(std::int64_t i) const { return this->values + i * this->dimension; }
};

/// How the distance of two points is measured. The squared distances are 2 (1 - cos), (1 - cos)^2
/// and |x - y|^2.
enum class PointMetric
{
  Cosine,        ///< that of unit vectors
  SquaredCosine, ///< what scikit-learn takes for the metric 'cosine' since version 1.1
  Euclidean
};

}
