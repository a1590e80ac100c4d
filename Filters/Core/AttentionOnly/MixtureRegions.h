#pragma once

#include "HeadAccuracy.h"

#include <array>
#include <vector>

namespace atlas
{

/// How many pairs a mixture of heads predicts correctly at the points of a row of SimplexGrid.
struct MixtureRow
{
  std::vector<int> correct;         ///< [points]
  std::vector<int> correctByTarget; ///< [N, points]: correct pairs per target
};

/// For each pair, the region of the weight triangle in which a mixture predicts it correctly.
/// Counting over a whole SimplexGrid then takes time proportional to pairs x N once plus the pairs
/// per row, where HeadMixture::Evaluate takes pairs x N per point.
///
/// The logits of a pair are linear in the weights c, so the pair is correct in a convex polygon:
/// the triangle, cut by the lines logit_target = logit_k. HeadMixture rounds, so its prediction may
/// differ close to these lines, where two logits differ by less than a rounding bound. Each pair
/// therefore has two polygons. Inside the inner one the target leads every other class by more than
/// the bound. Outside the outer one it trails some class by more than the bound.
/// HeadMixture::Predict decides the points in between. Classes that tie with the target everywhere
/// because their rows of W_U are equal are decided by index. All counts equal those of
/// HeadMixture::Evaluate, ties included.
class MixtureRegions
{
public:
  /// Computes the polygons. `mixture` must outlive this object.
  explicit MixtureRegions(const HeadMixture& mixture);

  /// Sets `counts` at the points c_1 = row / segments of SimplexGrid(segments), in its order, for 0
  /// <= row <= segments. The memory of `counts` is reused. May run concurrently with different
  /// `counts`.
  void EvaluateRow(int segments, int row, MixtureRow& counts) const;

private:
  using Polygon = std::vector<std::array<double, 2>>; ///< (c_0, c_1) of its corners

  /// The polygons of a pair as ranges of Corners: the outer one ends at `inner`, where the inner
  /// one begins; that ends at `end`. The outer one reaches from c_1 = bottom to top.
  struct Region
  {
    Eigen::Index pair;
    double bottom;
    double top;
    std::size_t outer;
    std::size_t inner;
    std::size_t end;
  };

  class Cutter;

  const HeadMixture& Mixture;
  std::vector<std::vector<Region>> RegionsOfTarget; ///< [N]
  Polygon Corners;

  void CountPair(const Region& region, int segments, int row, int target, int* changes) const;
};

}
