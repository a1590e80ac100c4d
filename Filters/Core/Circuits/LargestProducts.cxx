#include "LargestProducts.h"

#include "Base/Parallel.h"
#include "CircuitFactors.h"
#include "Internal/BestItems.h"
#include "Numerics/MatrixProduct.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// Tokens that are multiplied at a time.
constexpr std::int64_t BlockTokens = 512;
/// Blocks between two reports of progress, which run in parallel.
constexpr std::int64_t BlocksPerStep = 8;

void Add(
  const double* products, std::int64_t count, std::int64_t first, BestItems<TokenLogit>& best)
{
  for (std::int64_t i = 0; i < count; ++i)
  {
    best.Add({ static_cast<std::int32_t>(first + i), static_cast<float>(products[i]) });
  }
}

}

std::vector<TokenLogit> LargestProducts(
  const DoubleMatrix& rows, const TokenRows& tokens, const LargestProductOptions& options)
{
  const SingleThreadedBlas blas;
  const auto top = std::min<std::int64_t>(options.top, tokens.count);
  const std::int64_t blocks = (tokens.count + BlockTokens - 1) / BlockTokens;
  std::vector<BestItems<TokenLogit>> best(rows.rows(), BestItems<TokenLogit>(top));
  for (std::int64_t first = 0; first < blocks; first += BlocksPerStep)
  {
    options.progress(first, blocks);
    std::vector<DoubleMatrix> products(std::min(BlocksPerStep, blocks - first));
    ParallelFor(products.size(), options.threads,
      [&](std::int64_t part)
      {
        const std::int64_t begin = (first + part) * BlockTokens;
        products[part] =
          ProductTransposed(rows, tokens.read(begin, std::min(begin + BlockTokens, tokens.count)));
      });
    ParallelFor(rows.rows(), options.threads,
      [&](std::int64_t row)
      {
        std::int64_t begin = first * BlockTokens;
        for (const DoubleMatrix& part : products)
        {
          Add(part.row(row).data(), part.cols(), begin, best[row]);
          begin += part.cols();
        }
      });
  }
  std::vector<TokenLogit> found;
  for (BestItems<TokenLogit>& list : best)
  {
    const std::vector<TokenLogit> items = list.Take();
    found.insert(found.end(), items.begin(), items.end());
  }
  return found;
}

}
