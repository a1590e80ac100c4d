#pragma once

#include "HeadAccuracy.h"

#include <array>
#include <vector>

namespace atlas
{

/// How many pairs a mixture of heads has right at the points of a row of SimplexGrid.
struct MixtureRow
{
  std::vector<int> correct;         ///< [points]
  std::vector<int> correctByTarget; ///< [N, points]: of the pairs with that target
};

/// Where in the triangle of its heads a mixture has each pair right. With it a whole SimplexGrid
/// takes time for pairs x N once and for the pairs per row, where HeadMixture::Evaluate takes pairs
/// x N per point.
///
/// The logits of a pair are linear in the weights c, so the pair is right in a convex polygon: the
/// triangle, cut by the lines logit_target = logit_k. HeadMixture rounds, and so may differ from
/// that within a bound of the lines. There are therefore two polygons for each pair. In the inner
/// one the target leads all other classes by more than the bound, outside the outer one it trails
/// one of them by more than the bound, and points in between are left to HeadMixture::Predict.
/// Classes that tie with the target everywhere, with their rows of W_U equal, are decided by index.
/// All counts are those of HeadMixture::Evaluate, ties included.
class MixtureRegions
{
public:
  /// Finds the polygons. Keeps a reference to `mixture`.
  explicit MixtureRegions(const HeadMixture& mixture);

  /// Sets the counts at the points c_1 = row / segments of SimplexGrid(segments), in its order, for
  /// 0 <= row <= segments. May run concurrently, with different `counts`, whose memory is used
  /// again.
  void EvaluateRow(int segments, int row, MixtureRow& counts) const;

private:
  using Polygon = std::vector<std::array<double, 2>>; ///< (c_0, c_1) of its corners

  /// The polygons of a pair, as corners in Corners: the outer one up to `inner`, then the inner one
  /// up to `end`. The outer one reaches from c_1 = bottom to top.
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
