#pragma once

#include <cstdint>
#include <vector>

namespace atlas
{

/// Finds the nearest of some points, by a k-d tree (Bentley 1975) whose leaves have a few points
/// each.
class NearestPoints
{
public:
  /// `positions`: of the points, three finite numbers each; at least one point.
  explicit NearestPoints(const std::vector<double>& positions);

  /// The number of the nearest point; of several at the same distance the first. Several threads
  /// may call it.
  std::int64_t Find(const double* position) const;

private:
  struct Best;

  /// A part of space: a leaf with points begin <= i < end, or two parts on both sides of a plane.
  struct Part
  {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    int axis = -1; ///< -1: a leaf
    double plane = 0;
    std::int64_t above = 0; ///< the part beyond the plane; the other one follows this
  };

  std::vector<Part> Parts;
  std::vector<double> Positions;     ///< in the order of the leaves
  std::vector<std::int64_t> Numbers; ///< of the points, in this order

  void Divide(const std::vector<double>& positions, std::int64_t begin, std::int64_t end);
  void Search(std::int64_t part, const double* position, Best& best) const;
};

}
