#include "PatchAttention.h"

#include "Error.h"
#include "Index.h"
#include "Parallel.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

namespace atlas
{
namespace
{

/// Queries that are evaluated at a time. Blocks begin at multiples of it, so that weights do not
/// depend on the threads or on what is chosen.
constexpr std::int64_t BlockRows = 64;
/// Weights between two reports of progress, each a chance to cancel.
constexpr std::int64_t WeightsPerStep = std::int64_t{ 1 } << 22U;

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

/// What is found of some queries.
struct BlockResult
{
  std::vector<float> toChosen;   ///< of each query
  std::vector<float> fromChosen; ///< rows of the chosen queries
  std::vector<AttentionLink> arrows;
  std::vector<AttentionLink> marks;
};

/// Evaluates blocks of queries.
class Blocks
{
public:
  Blocks(const Recording& recording, const PatchOptions& options, const PatchGrid& grid)
    : Record(recording)
    , Options(options)
    , Grid(grid)
    , Tokens(static_cast<std::int64_t>(grid.row.size()))
  {
  }

  std::int64_t Count() const { return (this->Tokens + BlockRows - 1) / BlockRows; }

  BlockResult Evaluate(std::int64_t block) const
  {
    const std::int64_t begin = block * BlockRows;
    const std::int64_t end = std::min(begin + BlockRows, this->Tokens);
    std::vector<float> rows(ToIndex(end - begin) * ToIndex(this->Tokens));
    EvaluateAttention(this->Record, this->Options.sequence, this->Options.layer, this->Options.head,
      this->Options.quantity, begin, end, rows.data());
    BlockResult result;
    for (std::int64_t query = begin; query < end; ++query)
    {
      const float* row = rows.data() + (query - begin) * this->Tokens;
      this->AddWeights(query, row, result);
      this->AddLinks(query, row, result);
    }
    return result;
  }

private:
  const Recording& Record;
  const PatchOptions& Options;
  const PatchGrid& Grid;
  std::int64_t Tokens;

  void AddWeights(std::int64_t query, const float* row, BlockResult& result) const
  {
    const std::vector<std::int64_t>& chosen = this->Options.tokens;
    if (this->Options.direction == PatchDirection::To)
    {
      double sum = 0;
      for (const std::int64_t token : chosen)
      {
        sum += static_cast<double>(row[token]);
      }
      result.toChosen.push_back(static_cast<float>(sum));
    }
    else if (std::binary_search(chosen.begin(), chosen.end(), query))
    {
      result.fromChosen.insert(result.fromChosen.end(), row, row + this->Tokens);
    }
  }

  bool IsShown(float weight) const
  {
    return weight > 0 && static_cast<double>(weight) >= this->Options.threshold;
  }

  void AddLinks(std::int64_t query, const float* row, BlockResult& result) const
  {
    const std::int64_t strongest = std::max_element(row, row + this->Tokens) - row;
    const bool isMarked = strongest == query || !this->Grid.IsPatch(strongest);
    const auto add = [&](std::int64_t key, std::vector<AttentionLink>& links)
    {
      if (this->IsShown(row[key]))
      {
        links.push_back(
          { static_cast<std::int32_t>(query), static_cast<std::int32_t>(key), row[key] });
      }
    };
    if (isMarked)
    {
      add(strongest, result.marks);
    }
    if (this->Options.arrows == PatchArrows::Strongest)
    {
      if (!isMarked)
      {
        add(strongest, result.arrows);
      }
      return;
    }
    for (std::int64_t key = 0; key < this->Tokens; ++key)
    {
      if (key != query && !(isMarked && key == strongest))
      {
        add(key, result.arrows);
      }
    }
  }
};

/// Puts the results of blocks together, in their order.
class Collector
{
public:
  Collector(std::int64_t tokens, std::size_t chosen)
    : Sums(ToIndex(tokens), 0)
    , Chosen(static_cast<double>(chosen))
  {
  }

  void Add(const BlockResult& block)
  {
    this->Found.weights.insert(
      this->Found.weights.end(), block.toChosen.begin(), block.toChosen.end());
    for (std::size_t i = 0; i < block.fromChosen.size(); ++i)
    {
      this->Sums[i % this->Sums.size()] += static_cast<double>(block.fromChosen[i]);
    }
    this->Found.arrows.insert(this->Found.arrows.end(), block.arrows.begin(), block.arrows.end());
    this->Found.marks.insert(this->Found.marks.end(), block.marks.begin(), block.marks.end());
  }

  PatchAttention Take()
  {
    if (this->Found.weights.empty())
    {
      for (const double sum : this->Sums)
      {
        this->Found.weights.push_back(static_cast<float>(sum / this->Chosen));
      }
    }
    return std::move(this->Found);
  }

private:
  PatchAttention Found;
  std::vector<double> Sums; ///< over the chosen queries
  double Chosen;
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
  if (sequence < 0 || sequence >= recording.SequenceCount())
  {
    throw OptionError("expected an image from 0 to " +
                      std::to_string(recording.SequenceCount() - 1) + ", found " +
                      std::to_string(sequence) + ".");
  }
  const auto begin = recording.sequenceOffsets[ToIndex(sequence)];
  const auto end = recording.sequenceOffsets[ToIndex(sequence) + 1];
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

std::optional<PatchAttention> EvaluatePatches(
  const Recording& recording, const PatchOptions& options)
{
  const PatchGrid grid = FindPatches(recording, options.sequence);
  const auto tokens = static_cast<std::int64_t>(grid.row.size());
  CheckOptions(options, tokens);
  EvaluateAttention(recording, options.sequence, options.layer, options.head, options.quantity, 0,
    0, nullptr); // checks the place
  const Blocks blocks(recording, options, grid);
  Collector collector(tokens, options.tokens.size());
  const std::int64_t step = std::max<std::int64_t>(WeightsPerStep / (BlockRows * tokens), 1);
  for (std::int64_t first = 0; first < blocks.Count(); first += step)
  {
    const std::int64_t end = std::min(first + step, blocks.Count());
    std::vector<BlockResult> results(ToIndex(end - first));
    ParallelFor(end - first, options.threads,
      [&](std::int64_t i) { results[ToIndex(i)] = blocks.Evaluate(first + i); });
    for (const BlockResult& result : results)
    {
      collector.Add(result);
    }
    if (options.progress &&
        !options.progress(static_cast<double>(end) / static_cast<double>(blocks.Count())))
    {
      return std::nullopt;
    }
  }
  return collector.Take();
}

}
