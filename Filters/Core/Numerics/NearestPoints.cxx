#include "NearestPoints.h"

#include <cmath>
#include <limits>
#include <utility>

#include <nanoflann.hpp>

namespace atlas
{
namespace
{

constexpr double Infinity = std::numeric_limits<double>::infinity();

/// Points as nanoflann asks for them.
struct Points
{
  std::vector<double> positions;

  std::size_t kdtree_get_point_count() const { return this->positions.size() / 3; }
  double kdtree_get_pt(std::size_t point, std::size_t axis) const
  {
    return this->positions[3 * point + axis];
  }
  template<class Box>
  bool kdtree_get_bbox(Box& /*box*/) const
  {
    return false;
  }
};

/// Keeps the nearest of the points that nanoflann passes, those nearer than worstDist: a little
/// more than the least distance, so that of several at the same distance all are seen.
struct Nearest
{
  using DistanceType = double;
  using IndexType = std::size_t;
  using CountType = std::size_t;

  std::size_t point = 0;
  double distance = Infinity; ///< squared

  bool addPoint(double other, std::size_t number)
  {
    if (other < this->distance || (other == this->distance && number < this->point))
    {
      this->distance = other;
      this->point = number;
    }
    return true;
  }
  double worstDist() const { return std::nextafter(this->distance * (1 + 1e-12), Infinity); }
  bool full() const { return true; }
  bool empty() const { return false; }
  std::size_t size() const { return 1; }
  void sort() {}
};

}

struct NearestPoints::Tree
{
  using Distance = nanoflann::L2_Simple_Adaptor<double, Points, double, std::size_t>;

  Points points;
  nanoflann::KDTreeSingleIndexAdaptor<Distance, Points, 3, std::size_t> index{ 3, this->points };
};

NearestPoints::NearestPoints(std::vector<double> positions)
  : Index(new Tree{ { std::move(positions) } })
{
}

NearestPoints::~NearestPoints() = default;

std::int64_t NearestPoints::Find(const double* position) const
{
  Nearest nearest;
  this->Index->index.findNeighbors(nearest, position, {});
  return static_cast<std::int64_t>(nearest.point);
}

}
