#pragma once

#include "Analysis/TopTokens.h"
#include "Base/Progress.h"
#include "Weights/ProcessedWeights.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace atlas
{

/// A matrix [count, inner] with a row per token, made in blocks.
struct TokenRows
{
  std::int64_t count = 0;
  /// Rows begin <= id < end; called from several threads at once.
  std::function<DoubleMatrix(std::int64_t begin, std::int64_t end)> read;
};

struct LargestProductOptions
{
  int top = 10;    ///< at least 1
  int threads = 0; ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

/// The largest entries of each row of rows * tokens^T, where `rows` is [n, inner]: lists of
/// min(top, count) tokens, one after another, by falling value, equal ones by id. Products are in
/// double precision; of the matrix [n, count] only blocks are formed.
std::vector<TokenLogit> LargestProducts(
  const DoubleMatrix& rows, const TokenRows& tokens, const LargestProductOptions& options);

}
