#pragma once

#include <cstddef>
#include <vector>

namespace atlas
{

/// Points of space, by coordinate; all lists have the same length.
struct PointList
{
  std::vector<float> x;
  std::vector<float> y;
  std::vector<float> z;

  void Add(const double* point);
  std::size_t Count() const { return this->x.size(); }

  /// `count` of the points in even steps, the first and the last included; all if there are no
  /// more.
  PointList Thinned(std::size_t count) const;
};

/// The mean Euclidean distance of all pairs of different points; NaN if there are fewer than two
/// points. The time grows with their square.
double MeanDistance(const PointList& points);

}
