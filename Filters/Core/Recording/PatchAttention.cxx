#include "PatchAttention.h"

#include "Error.h"
#include "Index.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

namespace atlas
{
namespace
{

/// Weights in memory at a time: those of all queries of up to 4,096 tokens, as Rollout prefers.
constexpr std::int64_t WeightsInMemory = std::int64_t{ 1 } << 24U;

/// Throws if two tokens are the same patch.
void RequireDistinct(const PatchGrid& grid)
{
  std::vector<std::pair<std::int32_t, std::int32_t>> places;
  for (std::size_t i = 0; i < grid.row.size(); ++i)
  {
    if (grid.row[i] >= 0)
    {
      places.emplace_back(grid.row[i], grid.column[i]);
    }
  }
  std::sort(places.begin(), places.end());
  const auto twice = std::adjacent_find(places.begin(), places.end());
  if (twice != places.end())
  {
    throw ModelError("expected a token per patch, found two of row " +
                     std::to_string(twice->first) + ", column " + std::to_string(twice->second) +
                     ".");
  }
}

void CheckOptions(const PatchOptions& options, std::int64_t tokens)
{
  if (!(options.threshold >= 0) || !std::isfinite(options.threshold))
  {
    throw OptionError("ArrowThreshold: expected a weight of at least 0, found " +
                      std::to_string(options.threshold) + ".");
  }
  if (options.tokens.empty())
  {
    throw OptionError("expected at least one chosen token, found none.");
  }
  for (const std::int64_t token : options.tokens)
  {
    if (token < 0 || token >= tokens)
    {
      throw OptionError("expected chosen tokens from 0 to " + std::to_string(tokens - 1) +
                        ", found " + std::to_string(token) + ".");
    }
  }
}

/// Takes what is shown from the rows of attention, query by query.
class Collector
{
public:
  Collector(const PatchOptions& options, const PatchGrid& grid)
    : Options(options)
    , Grid(grid)
    , Tokens(grid.row.size())
    , Sums(grid.row.size(), 0)
  {
  }

  void Add(std::int64_t query, const float* row)
  {
    this->AddWeights(query, row);
    this->AddLinks(query, row);
  }

  PatchAttention Take()
  {
    const bool isMean = this->Options.direction == PatchDirection::From;
    const double parts = isMean ? static_cast<double>(this->Options.tokens.size()) : 1;
    for (const double sum : this->Sums)
    {
      this->Found.weights.push_back(static_cast<float>(sum / parts));
    }
    return std::move(this->Found);
  }

private:
  const PatchOptions& Options;
  const PatchGrid& Grid;
  std::int64_t Tokens;
  std::vector<double> Sums; ///< of the weights of each token
  PatchAttention Found;

  void AddWeights(std::int64_t query, const float* row)
  {
    const std::vector<std::int64_t>& chosen = this->Options.tokens;
    if (this->Options.direction == PatchDirection::To)
    {
      for (const std::int64_t token : chosen)
      {
        this->Sums[query] += static_cast<double>(row[token]);
      }
    }
    else if (std::binary_search(chosen.begin(), chosen.end(), query))
    {
      std::transform(this->Sums.begin(), this->Sums.end(), row, this->Sums.begin(),
        [](double sum, float weight) { return sum + static_cast<double>(weight); });
    }
  }

  void AddLinks(std::int64_t query, const float* row)
  {
    const std::int64_t strongest = std::max_element(row, row + this->Tokens) - row;
    const bool isMarked = strongest == query || !this->Grid.IsPatch(strongest);
    if (isMarked)
    {
      this->AddLink(query, strongest, row, this->Found.marks);
    }
    if (this->Options.arrows == PatchArrows::Strongest)
    {
      if (!isMarked)
      {
        this->AddLink(query, strongest, row, this->Found.arrows);
      }
      return;
    }
    for (std::int64_t key = 0; key < this->Tokens; ++key)
    {
      if (key != query && !(isMarked && key == strongest))
      {
        this->AddLink(query, key, row, this->Found.arrows);
      }
    }
  }

  void AddLink(
    std::int64_t query, std::int64_t key, const float* row, std::vector<AttentionLink>& links) const
  {
    if (row[key] > 0 && static_cast<double>(row[key]) >= this->Options.threshold)
    {
      links.push_back(
        { static_cast<std::int32_t>(query), static_cast<std::int32_t>(key), row[key] });
    }
  }
};

}

PatchGrid FindPatches(const Recording& recording, std::int64_t sequence)
{
  const RecordedTokens& tokens = recording.tokens;
  if (tokens.row.empty() || tokens.column.empty())
  {
    throw OptionError("expected a recording of images, whose tokens have a row and a column, found "
                      "one of architecture '" +
                      recording.architecture + "' without.");
  }
  const std::int64_t length = AttentionLength(recording, sequence);
  const std::size_t image = std::max<std::int64_t>(sequence, 0);
  const std::int64_t begin = recording.sequenceOffsets[image];
  const std::int64_t end = recording.sequenceOffsets[image + 1];
  if (end - begin != length)
  {
    throw OptionError("expected images of as many patches each for their mean, found " +
                      std::to_string(end - begin) + " and " + std::to_string(length) + " tokens.");
  }
  PatchGrid grid;
  grid.row.assign(tokens.row.begin() + begin, tokens.row.begin() + end);
  grid.column.assign(tokens.column.begin() + begin, tokens.column.begin() + end);
  for (std::size_t i = 0; i < grid.row.size(); ++i)
  {
    if (grid.row[i] < 0 || grid.column[i] < 0)
    {
      grid.row[i] = grid.column[i] = -1;
      grid.classTokens.push_back(static_cast<std::int64_t>(i));
    }
    grid.rows = std::max(grid.rows, std::int64_t{ 1 } + grid.row[i]);
    grid.columns = std::max(grid.columns, std::int64_t{ 1 } + grid.column[i]);
  }
  if (grid.rows == 0 || grid.rows > MaximumPatches / grid.columns)
  {
    throw ModelError("image " + std::to_string(sequence) + ": expected 1 to " +
                     std::to_string(MaximumPatches) + " patches, found " +
                     std::to_string(grid.rows) + " rows and " + std::to_string(grid.columns) +
                     " columns.");
  }
  RequireDistinct(grid);
  return grid;
}

std::vector<std::int64_t> ChoosePatch(const PatchGrid& grid, std::int64_t row, std::int64_t column)
{
  if (row == -1 && column == -1 && !grid.classTokens.empty())
  {
    return { grid.classTokens.front() };
  }
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < grid.row.size(); ++i)
  {
    if ((grid.row[i] == row && grid.column[i] == column) || (row == -1 && column == -1))
    {
      tokens.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (tokens.empty())
  {
    throw OptionError("Patch: expected a row from 0 to " + std::to_string(grid.rows - 1) +
                      " and a column from 0 to " + std::to_string(grid.columns - 1) +
                      ", or -1 -1 for the class token, found " + std::to_string(row) + " " +
                      std::to_string(column) + ".");
  }
  return tokens;
}

PatchAttention EvaluatePatches(const Recording& recording, const PatchOptions& options)
{
  const PatchGrid grid = FindPatches(recording, options.sequence);
  const std::int64_t tokens = grid.row.size();
  CheckOptions(options, tokens);
  AttentionRows rows = { options.sequence, options.layer, options.head, options.quantity, 0, 0 };
  EvaluateAttentionRows(recording, rows, nullptr, options.threads); // checks the place
  Collector collector(options, grid);
  const std::int64_t step = std::clamp(WeightsInMemory / tokens / QueriesPerBlock * QueriesPerBlock,
    QueriesPerBlock, tokens + QueriesPerBlock);
  std::vector<float> values(ToIndex(std::min(step, tokens)) * ToIndex(tokens));
  for (rows.begin = 0; rows.begin < tokens; rows.begin = rows.end)
  {
    rows.end = std::min(rows.begin + step, tokens);
    EvaluateAttentionRows(recording, rows, values.data(), options.threads,
      options.progress.Part(rows.begin, rows.end, tokens));
    for (std::int64_t query = rows.begin; query < rows.end; ++query)
    {
      collector.Add(query, values.data() + (query - rows.begin) * tokens);
    }
  }
  return collector.Take();
}

}
