#include "MeanDistance.h"

#include <limits>

#include <Eigen/Core>

namespace atlas
{

void PointList::Add(const double* point)
{
  this->x.push_back(static_cast<float>(point[0]));
  this->y.push_back(static_cast<float>(point[1]));
  this->z.push_back(static_cast<float>(point[2]));
}

PointList PointList::Thinned(std::size_t count) const
{
  if (count >= this->Count() || count < 2)
  {
    return *this;
  }
  PointList thinned;
  for (std::size_t i = 0; i < count; ++i)
  {
    const std::size_t row = i * (this->Count() - 1) / (count - 1);
    thinned.x.push_back(this->x[row]);
    thinned.y.push_back(this->y[row]);
    thinned.z.push_back(this->z[row]);
  }
  return thinned;
}

double MeanDistance(const PointList& points)
{
  using Values = Eigen::Map<const Eigen::ArrayXf>;
  const auto count = static_cast<Eigen::Index>(points.Count());
  if (count < 2)
  {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const Values x(points.x.data(), count);
  const Values y(points.y.data(), count);
  const Values z(points.z.data(), count);
  double sum = 0;
  for (Eigen::Index i = 0; i + 1 < count; ++i)
  {
    const Eigen::Index rest = count - 1 - i;
    sum += static_cast<double>(((x.tail(rest) - x[i]).square() + (y.tail(rest) - y[i]).square() +
                                (z.tail(rest) - z[i]).square())
        .sqrt()
        .sum());
  }
  return sum / (0.5 * static_cast<double>(count) * static_cast<double>(count - 1));
}

}
