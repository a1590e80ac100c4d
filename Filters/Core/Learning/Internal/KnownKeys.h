#pragma once

#include "TransformerInput.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

class Transformer;

/// How well attention finds keys that are known.
struct KnownKeyAttention
{
  double first = 0;  ///< share of the queries of which the known key has more weight than any other
  double weight = 0; ///< mean weight on the known key
};

/// The attention of the last layer, the mean of its heads. `keys` has the position of the known key
/// in its sequence for each row of the input, or -1 where there is none; one row at least has one.
KnownKeyAttention MeasureKnownKeys(const Transformer& model, const TransformerInput& input,
  const std::vector<std::int64_t>& keys, int threads);

/// The first image of an input as a file of pixel values, which the recorder reads.
std::string PixelFile(const TransformerInput& input, const std::vector<std::int64_t>& shape);

}
