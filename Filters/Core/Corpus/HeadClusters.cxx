#include "HeadClusters.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Internal/MomentRoot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <Eigen/Eigenvalues>

namespace atlas
{

Eigen::MatrixXd HeadDistances(const CorpusStatistics& statistics, ClusterDistance distance)
{
  const auto heads = static_cast<Eigen::Index>(statistics.heads.size());
  if (distance == ClusterDistance::Agreement)
  {
    const Eigen::MatrixXd agreement = Agreement(statistics);
    ThrowIf<OptionError>(agreement.size() == 0,
      "clusters by agreement: expected statistics with Agreement, found none of it.");
    return 1 - agreement.array();
  }
  const auto columns = static_cast<Eigen::Index>(CorpusColumns.size());
  Eigen::MatrixXd values(heads, columns + 1);
  for (Eigen::Index h = 0; h < heads; ++h)
  {
    const CorpusHead& head = statistics.heads[h];
    for (Eigen::Index c = 0; c < columns; ++c)
    {
      values(h, c) = CorpusValue(head, CorpusColumns[c]);
    }
    values(h, columns) = MeanDistance(head);
  }
  for (Eigen::Index c = 0; c < values.cols(); ++c)
  {
    const double deviation =
      std::sqrt((values.col(c).array() - values.col(c).mean()).square().mean());
    values.col(c) *= deviation > 0 ? 1 / deviation : 0;
  }
  return Eigen::MatrixXd::NullaryExpr(heads, heads,
    [&](Eigen::Index g, Eigen::Index h) { return (values.row(g) - values.row(h)).norm(); });
}

Eigen::MatrixX2d ScaleDistances(const Eigen::MatrixXd& distances)
{
  const Eigen::Index count = distances.rows();
  const Eigen::MatrixXd center =
    Eigen::MatrixXd::Identity(count, count) -
    Eigen::MatrixXd::Constant(count, count, 1. / static_cast<double>(count));
  const Eigen::MatrixXd products = -0.5 * center * distances.array().square().matrix() * center;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(products);
  Eigen::MatrixX2d places = Eigen::MatrixX2d::Zero(count, 2);
  for (Eigen::Index axis = 0; axis < std::min<Eigen::Index>(2, count); ++axis)
  {
    const Eigen::VectorXd vector = solver.eigenvectors().col(count - 1 - axis);
    const double length = std::sqrt(std::max(solver.eigenvalues()[count - 1 - axis], 0.));
    places.col(axis) = vector * (length * SignOfLargest(vector));
  }
  return places;
}

std::vector<HeadMerge> MergeHeads(const Eigen::MatrixXd& distances, const Progress& progress)
{
  const Eigen::Index count = distances.rows();
  Eigen::MatrixXd left = distances;         // between clusters, each in the row of its first head
  std::vector<std::int64_t> cluster(count); // in a row; -1: merged into another
  std::iota(cluster.begin(), cluster.end(), std::int64_t{ 0 });
  std::vector<std::int64_t> size(count, 1);
  std::vector<Eigen::Index> nearest(count); // of the rows behind a row; -1: none is left
  const auto findNearest = [&](Eigen::Index i)
  {
    nearest[i] = -1;
    for (Eigen::Index j = i + 1; j < count; ++j)
    {
      if (cluster[j] >= 0 && (nearest[i] < 0 || left(j, i) < left(nearest[i], i)))
      {
        nearest[i] = j;
      }
    }
  };
  for (Eigen::Index i = 0; i < count; ++i)
  {
    findNearest(i);
  }
  std::vector<HeadMerge> merges;
  for (Eigen::Index merge = 0; merge + 1 < count; ++merge)
  {
    progress(merge, count);
    Eigen::Index a = -1;
    for (Eigen::Index i = 0; i < count; ++i)
    {
      if (cluster[i] >= 0 && nearest[i] >= 0 &&
          (a < 0 || left(i, nearest[i]) < left(a, nearest[a])))
      {
        a = i;
      }
    }
    const Eigen::Index b = nearest[a];
    merges.push_back({ std::min(cluster[a], cluster[b]), std::max(cluster[a], cluster[b]),
      left(a, b), size[a] + size[b] });
    const auto ofA = static_cast<double>(size[a]);
    const auto ofB = static_cast<double>(size[b]);
    left.row(a) = (left.row(a) * ofA + left.row(b) * ofB) / (ofA + ofB);
    left.col(a) = left.row(a).transpose();
    size[a] += size[b];
    cluster[a] = count + merge;
    cluster[b] = -1;
    for (Eigen::Index i = 0; i < b; ++i)
    {
      if (cluster[i] >= 0 && (i == a || nearest[i] == a || nearest[i] == b))
      {
        findNearest(i);
      }
      else if (cluster[i] >= 0 && i < a &&
               std::pair(left(a, i), a) < std::pair(left(nearest[i], i), nearest[i]))
      {
        nearest[i] = a;
      }
    }
  }
  return merges;
}

std::vector<std::int32_t> ClustersOf(const std::vector<HeadMerge>& merges, std::int64_t clusters)
{
  const auto heads = static_cast<std::int64_t>(merges.size()) + 1;
  ThrowIf<OptionError>(clusters < 1 || clusters > heads, "Clusters: expected 1 to ", heads,
    ", the number of heads, found ", clusters, ".");
  std::vector<std::int64_t> parent(ToIndex(heads) + merges.size());
  std::iota(parent.begin(), parent.end(), std::int64_t{ 0 });
  for (std::int64_t m = 0; m < heads - clusters; ++m)
  {
    parent[merges[m].first] = parent[merges[m].second] = heads + m;
  }
  std::map<std::int64_t, std::int32_t> numbers;
  std::vector<std::int32_t> result;
  for (std::int64_t h = 0; h < heads; ++h)
  {
    std::int64_t root = h;
    while (parent[root] != root)
    {
      root = parent[root];
    }
    result.push_back(
      numbers.emplace(root, static_cast<std::int32_t>(numbers.size())).first->second);
  }
  return result;
}

}
