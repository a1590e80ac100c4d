#include "PooledAttention.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Internal/StreamedScores.h"
#include "Numerics/MatrixProduct.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <Eigen/Core>

namespace atlas
{
namespace
{

/// Values between two reports of progress.
constexpr std::int64_t ValuesPerReport = std::int64_t{ 1 } << 26;

/// Longer sequences are pooled without rows where that is possible.
constexpr std::int64_t LongestInRows = 4096;

/// Cells of keys over which the exponentials of a query are summed.
constexpr std::int64_t KeyCells = 1024;

/// What is known of some values.
struct Pool
{
  float largest = -std::numeric_limits<float>::infinity();
  double sum = 0;
  std::int64_t count = 0;

  void Add(const float* values, std::int64_t number)
  {
    const Eigen::Map<const Eigen::ArrayXf> all(values, number);
    this->largest = std::max(this->largest, all.maxCoeff());
    const float total = all.sum();
    if (std::isfinite(total))
    {
      this->sum += static_cast<double>(total);
      this->count += number;
      return;
    }
    for (std::int64_t i = 0; i < number; ++i)
    {
      if (std::isfinite(values[i]))
      {
        this->sum += static_cast<double>(values[i]);
        ++this->count;
      }
    }
  }

  float Value(AttentionPooling pooling) const
  {
    if (!std::isfinite(this->largest) || this->count == 0)
    {
      return std::numeric_limits<float>::quiet_NaN();
    }
    return pooling == AttentionPooling::Maximum
             ? this->largest
             : static_cast<float>(this->sum / static_cast<double>(this->count));
  }
};

/// Some positions in bins: those from edges[b] to edges[b + 1].
struct Bins
{
  std::vector<std::int64_t> edges;

  explicit Bins(std::vector<std::int64_t> begins)
    : edges(std::move(begins))
  {
  }
  Bins(const KeyRange& all, std::int64_t size)
  {
    const std::int64_t count = BinCount(all.end - all.begin, size);
    for (std::int64_t bin = 0; bin <= count; ++bin)
    {
      this->edges.push_back(all.begin + BinBegin(bin, count, all.end - all.begin));
    }
  }

  std::int64_t Count() const { return static_cast<std::int64_t>(this->edges.size()) - 1; }
  std::int64_t Begin(std::int64_t bin) const { return this->edges[bin]; }
  std::int64_t Length() const { return this->edges.back() - this->edges.front(); }
};

/// The bins of a map.
struct MapBins
{
  std::int64_t length; ///< of a row of values
  Bins queries;
  Bins keys;
  AttentionPooling pooling;

  std::int64_t Count() const { return this->queries.Count() * this->keys.Count(); }

  /// Adds a row of values to the pools of its bins.
  void AddRow(const float* row, std::vector<Pool>& pools) const
  {
    for (std::int64_t bin = 0; bin < this->keys.Count(); ++bin)
    {
      const std::int64_t begin = this->keys.Begin(bin);
      pools[bin].Add(row + begin, this->keys.Begin(bin + 1) - begin);
    }
  }

  /// Pools the rows of bins begin <= b < end, which `evaluate` makes in blocks, into [end - begin,
  /// keys] values.
  template<class Evaluate>
  void PoolRows(std::int64_t begin, std::int64_t end, const Evaluate& evaluate, float* values) const
  {
    std::int64_t first = 0; // rows in the block
    std::int64_t last = 0;
    const float* block = nullptr;
    for (std::int64_t bin = begin; bin < end; ++bin)
    {
      std::vector<Pool> pools(this->keys.Count());
      for (std::int64_t row = this->queries.Begin(bin); row < this->queries.Begin(bin + 1); ++row)
      {
        if (row >= last)
        {
          first = row;
          last = std::min(row + QueriesPerBlock, this->queries.Begin(end));
          block = evaluate(first, last);
        }
        this->AddRow(block + (row - first) * this->length, pools);
      }
      for (const Pool& pool : pools)
      {
        *values++ = pool.Value(this->pooling);
      }
    }
  }
};

/// Pools heads of which rows are cheap.
void PoolInBlocks(const Recording& recording, const AttentionRows& wanted,
  const std::vector<HeadPlace>& heads, const MapBins& bins, float* values, int threads,
  const Progress& progress)
{
  const std::int64_t rows = bins.queries.Count();
  const std::int64_t queries = bins.queries.Length();
  const std::int64_t together = std::max(QueriesPerBlock * rows / queries, std::int64_t{ 1 });
  const std::int64_t perHead = BlockCount(rows, together);
  const std::int64_t tasks = perHead * static_cast<std::int64_t>(heads.size());
  const std::int64_t points = std::max(together * queries / rows, std::int64_t{ 1 });
  const std::int64_t step = std::max(ValuesPerReport / (points * bins.length), std::int64_t{ 1 });
  for (std::int64_t done = 0; done < tasks; done += step)
  {
    ParallelFor(std::min(step, tasks - done), threads,
      [&](std::int64_t i)
      {
        const std::int64_t head = (done + i) / perHead;
        const std::int64_t begin = (done + i) % perHead * together;
        std::vector<float> block(QueriesPerBlock * bins.length);
        const auto evaluate = [&](std::int64_t first, std::int64_t last)
        {
          EvaluateAttention(recording, wanted.sequence, heads[head].layer, heads[head].head,
            wanted.quantity, first, last, block.data());
          return block.data();
        };
        bins.PoolRows(begin, std::min(begin + together, rows), evaluate,
          values + (head * rows + begin) * bins.keys.Count());
      });
    progress(std::min(done + step, tasks), tasks);
  }
}

/// Pools heads one after another, of which all rows are evaluated at once.
void PoolWhole(const Recording& recording, const AttentionRows& wanted,
  const std::vector<HeadPlace>& heads, const MapBins& bins, float* values, int threads,
  const Progress& progress)
{
  std::vector<float> map(bins.length * bins.length);
  for (std::size_t head = 0; head < heads.size(); ++head)
  {
    const AttentionRows rows = { wanted.sequence, heads[head].layer, heads[head].head,
      wanted.quantity, 0, bins.length };
    EvaluateAttentionRows(
      recording, rows, map.data(), threads, progress.Part(head, head + 1, heads.size()));
    ParallelFor(bins.queries.Count(), threads,
      [&](std::int64_t bin)
      {
        bins.PoolRows(
          bin, bin + 1,
          [&](std::int64_t row, std::int64_t) { return map.data() + row * bins.length; },
          values + static_cast<std::int64_t>(head) * bins.Count() + bin * bins.keys.Count());
      });
  }
}

/// Pools rows that are evaluated.
void PoolEvaluated(const Recording& recording, const AttentionRows& wanted,
  const std::vector<HeadPlace>& heads, const MapBins& bins, float* values, int threads,
  const Progress& progress)
{
  const SingleThreadedBlas blas;
  (wanted.quantity == AttentionQuantity::Rollout ? PoolWhole : PoolInBlocks)(
    recording, wanted, heads, bins, values, threads, progress);
}

}

std::int64_t BinCount(std::int64_t length, std::int64_t size)
{
  return std::min(length, size);
}

std::int64_t BinBegin(std::int64_t bin, std::int64_t bins, std::int64_t length)
{
  return bin * length / bins;
}

void PoolAttention(const Recording& recording, std::int64_t sequence, AttentionQuantity quantity,
  const std::vector<HeadPlace>& heads, const PoolingOptions& options, float* values, int threads,
  const Progress& progress)
{
  ThrowIf<OptionError>(
    options.size < 1, "expected a size of at least 1, found ", options.size, ".");
  const std::int64_t length = RequireTokens(recording, sequence);
  const Bins queries(QueryPositions(recording, sequence), options.size);
  const Bins keys(KeyPositions(recording, sequence), options.size);
  for (const HeadPlace& head : heads) // before any work
  {
    EvaluateAttention(recording, sequence, head.layer, head.head, quantity, 0, 0, nullptr);
  }
  if (length <= LongestInRows)
  {
    PoolEvaluated(recording, { sequence, 0, 0, quantity, 0, 0 }, heads,
      { length, queries, keys, options.pooling }, values, threads, progress);
    return;
  }
  for (std::size_t i = 0; i < heads.size(); ++i)
  {
    PoolCells(recording, { sequence, heads[i].layer, heads[i].head, quantity }, queries.edges,
      keys.edges, options.pooling, values + i * ToIndex(queries.Count() * keys.Count()), threads,
      progress.Part(i, i + 1, heads.size()));
  }
}

void PoolCells(const Recording& recording, const MapPlace& place,
  const std::vector<std::int64_t>& queryEdges, const std::vector<std::int64_t>& keyEdges,
  AttentionPooling pooling, float* values, int threads, const Progress& progress)
{
  const std::optional<StreamedMap> map =
    FindStreamed(recording, place.sequence, place.layer, place.head, place.quantity);
  if (!map)
  {
    const HeadPlace head = { static_cast<std::int32_t>(place.layer),
      static_cast<std::int32_t>(place.head) };
    PoolEvaluated(recording, { place.sequence, 0, 0, place.quantity, 0, 0 }, { head },
      { RequireTokens(recording, place.sequence), Bins(queryEdges), Bins(keyEdges), pooling },
      values, threads, progress);
    return;
  }
  const KeyRange keys = KeyPositions(recording, place.sequence);
  const bool hasAllKeys = keyEdges.front() <= keys.begin && keyEdges.back() >= keys.end;
  std::optional<Normalizers> normalizers;
  Progress rest = progress;
  if (map->IsNormalized() && !(hasAllKeys && place.quantity == AttentionQuantity::Weights))
  {
    normalizers = FindNormalizers(*map, { queryEdges.front(), queryEdges.back() },
      Bins(keys, KeyCells).edges, threads, progress.Part(0, 0.5));
    rest = progress.Part(0.5, 1);
  }
  const PooledCells cells = PoolStreamed(
    *map, queryEdges, keyEdges, normalizers ? &*normalizers : nullptr, nullptr, threads, rest);
  const std::vector<float>& wanted =
    pooling == AttentionPooling::Maximum ? cells.largest : cells.mean;
  std::copy(wanted.begin(), wanted.end(), values);
}

}
