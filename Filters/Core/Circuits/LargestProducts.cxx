#include "LargestProducts.h"

#include "Index.h"
#include "Parallel.h"

#include <algorithm>

namespace atlas
{
namespace
{

using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Tokens that are multiplied at a time.
constexpr std::int64_t BlockTokens = 1024;
/// Blocks between two reports of progress, which run in parallel.
constexpr std::int64_t BlocksPerStep = 8;

}

std::optional<std::vector<TokenLogit>> LargestProducts(
  const DoubleMatrix& rows, const TokenRows& tokens, const LargestProductOptions& options)
{
  const std::int64_t count = rows.rows();
  const auto top = std::min<std::int64_t>(options.top, tokens.count);
  const std::int64_t blocks = (tokens.count + BlockTokens - 1) / BlockTokens;
  TopTokens all(count, top);
  for (std::int64_t first = 0; first < blocks; first += BlocksPerStep)
  {
    if (options.progress &&
        !options.progress(static_cast<double>(first) / static_cast<double>(blocks)))
    {
      return std::nullopt;
    }
    const std::int64_t parts = std::min(BlocksPerStep, blocks - first);
    std::vector<TopTokens> found(ToIndex(parts), TopTokens(count, top));
    ParallelFor(parts, options.threads,
      [&](std::int64_t part)
      {
        const std::int64_t begin = (first + part) * BlockTokens;
        const std::int64_t end = std::min(begin + BlockTokens, tokens.count);
        const FloatMatrix products = (rows * tokens.read(begin, end).transpose()).cast<float>();
        for (std::int64_t row = 0; row < count; ++row)
        {
          found[ToIndex(part)].Add(
            row, static_cast<std::int32_t>(begin), end - begin, products.row(row).data());
        }
      });
    for (const TopTokens& part : found)
    {
      for (std::int64_t row = 0; row < count; ++row)
      {
        all.Join(row, part);
      }
    }
  }
  return std::vector<TokenLogit>(all.Of(0), all.Of(0) + count * top);
}

}
