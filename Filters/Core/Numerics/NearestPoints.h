#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace atlas
{

/// Finds the nearest of some points, by nanoflann's k-d tree.
class NearestPoints
{
public:
  /// `positions`: of the points, three finite numbers each; at least one point.
  explicit NearestPoints(std::vector<double> positions);
  ~NearestPoints();
  NearestPoints(const NearestPoints&) = delete;
  NearestPoints& operator=(const NearestPoints&) = delete;

  /// The number of the nearest point; of several at the same distance the first. Several threads
  /// may call it.
  std::int64_t Find(const double* position) const;

private:
  struct Tree;
  std::unique_ptr<const Tree> Index;
};

}
