#pragma once

#include <cstddef>

namespace atlas
{

/// The conditional probabilities of t-SNE: c_j = exp(-beta s_j) / sum, where beta is such that
/// the entropy of c is `entropy`, to 1e-12. `squares` has the squared distances s_j >= 0 of `count`
/// neighbors, of which the nearest is the first, and exp(entropy) <= count. If at least
/// exp(entropy) neighbors are as near as the first, beta would be infinite; they share the weight.
/// Returns beta.
double SearchPerplexity(
  const double* squares, std::size_t count, double entropy, double* probabilities);

}
