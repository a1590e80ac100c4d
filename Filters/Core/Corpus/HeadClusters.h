#pragma once

#include "Base/Progress.h"
#include "CorpusStatistics.h"

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// By what heads are near each other.
enum class ClusterDistance
{
  Statistics, ///< their columns (CorpusColumns, and the mean distance), each divided by its
              ///< standard deviation over heads: the Euclidean distance
  Agreement   ///< 1 - Agreement of their attention
};

/// Distances between heads [heads, heads]. Throws OptionError for Agreement if the statistics have
/// none.
Eigen::MatrixXd HeadDistances(const CorpusStatistics& statistics, ClusterDistance distance);

/// Places of heads in a plane [heads, 2], whose mean is 0 and whose distances are about these:
/// classical multidimensional scaling (Torgerson, "Multidimensional scaling: I. Theory and method",
/// 1952). The entry of largest magnitude in each column is positive. `distances` is symmetric.
Eigen::MatrixX2d ScaleDistances(const Eigen::MatrixXd& distances);

/// Two clusters that become one. Heads are clusters 0 ... N - 1, and merge i makes cluster N + i.
struct HeadMerge
{
  std::int64_t first = 0; ///< the lower index
  std::int64_t second = 0;
  double distance = 0;    ///< mean distance between the heads of both
  std::int64_t heads = 0; ///< of the new cluster
};

/// Merges the nearest two clusters until one is left (average linkage, Sokal and Michener 1958). Of
/// equal distances, the clusters whose first heads have the lowest indices. `distances` is
/// symmetric. Takes N^2 steps, or up to N^3 where many clusters share their nearest one.
std::vector<HeadMerge> MergeHeads(const Eigen::MatrixXd& distances, const Progress& progress = {});

/// The cluster of each head after merging down to `clusters`, 1 to the number of heads: numbered
/// from 0 by their first heads. Throws OptionError for a number out of range.
std::vector<std::int32_t> ClustersOf(const std::vector<HeadMerge>& merges, std::int64_t clusters);

}
