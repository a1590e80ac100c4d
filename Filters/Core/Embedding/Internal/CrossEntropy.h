#pragma once

#include "FuzzyGraph.h"
#include "UmapCurve.h"

#include <cstdint>

namespace atlas
{

/// UMAP's cross-entropy sum_{i<j} v ln(v / w) + (1 - v) ln((1 - v) / (1 - w)), w = 1 / (1 + a d^2b)
/// limited to [1e-12, 1 - 1e-12], of a graph and a layout.
struct CrossEntropy
{
  double attractive = 0; ///< sum of v ln(v / w)
  double repulsive = 0;  ///< sum of (1 - v) ln((1 - v) / (1 - w))

  double Total() const { return this->attractive + this->repulsive; }
};

/// Evaluates it at a layout [points, dimensions]. Pairs without an edge are sampled: `others`
/// others of each point, evenly by index; exact with 0, in time proportional to points^2. The
/// result is equal for any number of threads.
CrossEntropy EvaluateCrossEntropy(const FuzzyGraph& graph, const float* layout, int dimensions,
  const UmapCurve& curve, std::int64_t others, int threads);

}
