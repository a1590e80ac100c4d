#pragma once

#include "PointView.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The principal components of points: the eigenvectors of their covariance matrix (Pearson 1901,
/// Hotelling 1933), without whitening.
struct PrincipalComponents
{
  std::int64_t dimension = 0;
  std::int64_t count = 0;         ///< of components
  std::vector<double> mean;       ///< [dimension]
  std::vector<double> components; ///< [count, dimension], unit vectors by falling variance. The
                                  ///< entry of largest magnitude is positive
  std::vector<double> variance;   ///< [dimension], of all components, with denominator points - 1

  /// The share of the variance along the first `number` components, 0 to 1; 1 if all points are
  /// equal.
  double Ratio(std::int64_t number) const;
};

/// The first `count` components, by the covariance matrix in blocks and an eigensolver for
/// symmetric matrices. Throws OptionError unless there are at least 2 points and 1 <= count. If
/// there are fewer dimensions than `count`, the components are as many as dimensions.
PrincipalComponents FindPrincipalComponents(const PointView& points, std::int64_t count);

/// The points in the coordinates of the components: [points, count], row-major, 0 beyond the
/// components that there are.
std::vector<float> Project(
  const PointView& points, const PrincipalComponents& principal, std::int64_t count);

}
