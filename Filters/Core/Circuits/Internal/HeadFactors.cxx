#include "HeadFactors.h"

#include "Base/Parallel.h"
#include "Circuits/CircuitFactors.h"
#include "Circuits/CircuitWeights.h"
#include "Numerics/MatrixProduct.h"

#include <algorithm>
#include <functional>

namespace atlas
{
namespace
{

/// Tokens that are read at a time.
constexpr std::int64_t TokensPerRead = 512;
/// Blocks between two reports of progress, which run in parallel.
constexpr std::int64_t ReadsPerStep = 16;

/// Calls body(begin, end) for blocks of tokens.
void ForBlocks(std::int64_t count, int threads, const Progress& progress,
  const std::function<void(std::int64_t, std::int64_t)>& body)
{
  constexpr std::int64_t step = TokensPerRead * ReadsPerStep;
  for (std::int64_t first = 0; first < count; first += step)
  {
    progress(first, count);
    const std::int64_t tokens = std::min(step, count - first);
    ParallelFor((tokens + TokensPerRead - 1) / TokensPerRead, threads,
      [&](std::int64_t block)
      {
        const std::int64_t begin = first + block * TokensPerRead;
        body(begin, std::min(begin + TokensPerRead, count));
      });
  }
}

void CenterOverTokens(DoubleMatrix& rows)
{
  rows.rowwise() -= rows.colwise().mean().eval();
}

}

HeadFactors MakeHeadFactors(const ProcessedWeights& weights, std::int64_t layer, std::int64_t head,
  int threads, const Progress& progress)
{
  const ProcessedHead tensors = FiniteHead(weights, layer, head);
  const Eigen::Index dimension = tensors.query.cols();
  const std::int64_t tokens = weights.GetModel().GetConfig().vocabulary;
  const double scale = weights.GetModel().GetConfig().ScoreScale(layer);
  const DoubleMatrix transposed = tensors.output.transpose();
  const SingleThreadedBlas blas;
  HeadFactors factors;
  for (DoubleMatrix* rows : { &factors.queries, &factors.keys, &factors.values })
  {
    rows->resize(tokens, dimension);
  }
  factors.outputs.resize(weights.OutputVocabulary(), dimension);
  ForBlocks(tokens, threads, progress.Part(0, 0.5),
    [&](std::int64_t begin, std::int64_t end)
    {
      const DoubleMatrix rows = CircuitEmbedding(weights, begin, end);
      factors.queries.middleRows(begin, end - begin) = scale * Product(rows, tensors.query);
      factors.keys.middleRows(begin, end - begin) = Product(rows, tensors.key);
      factors.values.middleRows(begin, end - begin) = Product(rows, tensors.value);
    });
  ForBlocks(factors.outputs.rows(), threads, progress.Part(0.5, 1),
    [&](std::int64_t begin, std::int64_t end)
    {
      factors.outputs.middleRows(begin, end - begin) =
        Product(CircuitUnembedding(weights, begin, end), transposed);
    });
  CenterOverTokens(factors.keys);
  CenterOverTokens(factors.outputs);
  return factors;
}

}
