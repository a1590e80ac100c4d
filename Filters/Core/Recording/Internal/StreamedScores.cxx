#include "StreamedScores.h"

#include "Base/Index.h"
#include "Base/ParallelProgress.h"
#include "Numerics/ParallelBlocks.h"
#include "Numerics/ValueRanges.h"
#include "Recording/RecordingQuantities.h"
#include "ScoreTiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include <Eigen/Core>

namespace atlas
{
namespace
{

/// Queries that one thread takes at a time, about: 8 tiles.
constexpr std::int64_t QueriesPerTask = 8 * QueriesPerTile;

/// Scores and norms below this can be multiplied.
constexpr double LargestProduct = 1e15;

constexpr float None = -std::numeric_limits<float>::infinity();

/// The largest absolute value of `count` numbers; infinity if one is not finite.
double LargestOf(const float* values, std::int64_t count)
{
  if (!AreFinite(values, count))
  {
    return std::numeric_limits<double>::infinity();
  }
  return static_cast<double>(Eigen::Map<const Eigen::ArrayXf>(values, count).abs().maxCoeff());
}

/// Whether no score can overflow.
bool AreModerate(const HeadScores& scores)
{
  const std::int64_t count = scores.length * scores.dimension;
  const double product = LargestOf(scores.query, count) * LargestOf(scores.key, count) *
                         static_cast<double>(scores.dimension) *
                         std::abs(static_cast<double>(scores.scale));
  return product < LargestProduct;
}

/// Values reduced side by side, always in the same way.
template<class Number, class Combine>
Number Reduced(const float* values, std::int64_t count, Number nothing, const Combine& combine)
{
  constexpr std::int64_t together = 8;
  std::array<Number, together> lanes;
  lanes.fill(nothing);
  std::int64_t i = 0;
  for (; i + together <= count; i += together)
  {
    for (std::int64_t lane = 0; lane < together; ++lane)
    {
      lanes[lane] = combine(lanes[lane], static_cast<Number>(values[i + lane]));
    }
  }
  Number all = std::accumulate(lanes.begin(), lanes.end(), nothing, combine);
  for (; i < count; ++i)
  {
    all = combine(all, static_cast<Number>(values[i]));
  }
  return all;
}

/// The scores of QueriesPerTile queries with all keys, in cells.
class TileRow
{
public:
  TileRow(const StreamedMap& map, const std::vector<std::int64_t>& edges)
    : Packed(QueriesPerTile * map.scores.dimension)
    , Largest((edges.size() - 1) * QueriesPerTile)
    , Sums(this->Largest.size())
    , Map(map)
    , Edges(edges)
  {
  }

  /// Reads queries begin <= i < end, at most QueriesPerTile. With `norms` scores have the
  /// logarithms of norms.
  void Reduce(std::int64_t begin, std::int64_t end, bool norms)
  {
    const HeadScores& scores = this->Map.scores;
    PackQueries(scores.query + (begin - scores.firstQuery) * scores.dimension, end - begin,
      scores.dimension, scores.scale, this->Packed.data());
    this->First = 0;
    this->Last = static_cast<std::int64_t>(this->Edges.size()) - 1;
    const bool isMasked = this->Map.IsNormalized();
    if (isMasked) // cells with keys to which one of them attends
    {
      const std::int64_t firstKey = scores.FirstKey(begin);
      const std::int64_t lastKey = scores.KeyCount(end);
      while (this->First < this->Last && this->Edges[ToIndex(this->First) + 1] <= firstKey)
      {
        ++this->First;
      }
      while (this->Last > this->First && this->Edges[ToIndex(this->Last) - 1] >= lastKey)
      {
        --this->Last;
      }
    }
    const std::vector<float>& bias = norms ? this->Map.logNorms : this->Map.keyBias;
    ScoreTile tile;
    tile.queries = this->Packed.data();
    tile.keys = scores.key;
    tile.dimension = scores.dimension;
    tile.query = begin;
    if (this->Map.quantity != AttentionQuantity::Content)
    {
      tile.cap = scores.cap;
      tile.keyBias = bias.empty() ? nullptr : bias.data();
      tile.aheadBias =
        this->Map.aheadBias.empty() ? nullptr : this->Map.aheadBias.data() + scores.length - 1;
    }
    if (isMasked && scores.mask == AttentionMask::Causal)
    {
      tile.least = 0;
    }
    if (isMasked && scores.window > 0)
    {
      tile.beyond = std::min(scores.window, ScoreTile::Everywhere);
      tile.least = scores.mask == AttentionMask::Causal ? 0 : 1 - tile.beyond;
    }
    ReduceCells(tile, this->Edges.data() + this->First, this->Last - this->First,
      isMasked ? ScoreSum::Exponentials : ScoreSum::Scores,
      this->Largest.data() + this->First * QueriesPerTile,
      this->Sums.data() + this->First * QueriesPerTile);
  }

  /// Finds the normalizers of these queries.
  void Normalize(float* shift, float* factor) const
  {
    const std::optional<float>& sink = this->Map.scores.sink;
    FindNormalizers(this->Largest.data() + this->First * QueriesPerTile,
      this->Sums.data() + this->First * QueriesPerTile, this->Last - this->First,
      sink ? &*sink : nullptr, shift, factor);
  }

  std::int64_t First = 0; ///< cells that are there
  std::int64_t Last = 0;

  std::vector<float> Packed;
  std::vector<float> Largest; ///< [cells, QueriesPerTile]
  std::vector<float> Sums;    ///< likewise

private:
  const StreamedMap& Map;
  const std::vector<std::int64_t>& Edges;
};

/// Some numbers for each query of a tile.
struct TileNumbers
{
  alignas(64) float first[QueriesPerTile] = {};
  alignas(64) float second[QueriesPerTile] = {};
};

/// Pools the queries of cells begin <= c < end.
class CellRows
{
public:
  CellRows(const StreamedMap& map, const std::vector<std::int64_t>& queryEdges,
    const std::vector<std::int64_t>& keyEdges, std::int64_t begin, std::int64_t end)
    : Map(map)
    , QueryEdges(queryEdges)
    , KeyEdges(keyEdges)
    , Begin(begin)
    , End(end)
    , Columns(static_cast<std::int64_t>(keyEdges.size()) - 1)
    , Row(map, keyEdges)
    , Largest((end - begin) * this->Columns, map.IsNormalized() ? 0 : None)
    , Sums(this->Largest.size())
  {
  }

  void Add(const Normalizers* known, Normalizers* found)
  {
    const std::int64_t last = this->QueryEdges[this->End];
    const bool hasNorms = this->Map.quantity == AttentionQuantity::NormWeighted;
    for (std::int64_t query = this->QueryEdges[this->Begin]; query < last; query += QueriesPerTile)
    {
      const std::int64_t end = std::min(query + QueriesPerTile, last);
      this->Row.Reduce(query, end, hasNorms);
      TileNumbers scale;
      if (known != nullptr)
      {
        std::copy(known->shift.begin() + query, known->shift.begin() + end, scale.first);
        std::copy(known->factor.begin() + query, known->factor.begin() + end, scale.second);
      }
      else if (this->Map.IsNormalized())
      {
        this->Row.Normalize(scale.first, scale.second);
      }
      if (found != nullptr)
      {
        std::copy_n(scale.first, end - query, found->shift.begin() + query);
        std::copy_n(scale.second, end - query, found->factor.begin() + query);
      }
      this->AddTile(query, end, scale);
    }
  }

  void CopyTo(PooledCells& cells) const
  {
    const std::int64_t first = this->Begin * this->Columns;
    std::copy(this->Largest.begin(), this->Largest.end(), cells.largest.begin() + first);
    for (std::int64_t row = this->Begin; row < this->End; ++row)
    {
      const std::int64_t queries = this->QueryEdges[ToIndex(row) + 1] - this->QueryEdges[row];
      for (std::int64_t column = 0; column < this->Columns; ++column)
      {
        const std::int64_t keys = this->KeyEdges[ToIndex(column) + 1] - this->KeyEdges[column];
        const std::int64_t place = row * this->Columns + column;
        cells.mean[place] =
          static_cast<float>(this->Sums[place - first] / static_cast<double>(queries * keys));
      }
    }
  }

private:
  const StreamedMap& Map;
  const std::vector<std::int64_t>& QueryEdges;
  const std::vector<std::int64_t>& KeyEdges;
  std::int64_t Begin;
  std::int64_t End;
  std::int64_t Columns;
  TileRow Row;
  std::vector<float> Largest;
  std::vector<double> Sums;

  void AddTile(std::int64_t query, std::int64_t end, const TileNumbers& scale)
  {
    TileNumbers weights;
    for (std::int64_t column = this->Row.First; column < this->Row.Last; ++column)
    {
      const float* largest = this->Row.Largest.data() + column * QueriesPerTile;
      const float* sums = this->Row.Sums.data() + column * QueriesPerTile;
      if (this->Map.IsNormalized())
      {
        WeighCell(largest, sums, scale.first, scale.second, weights.first, weights.second);
        largest = weights.first;
        sums = weights.second;
      }
      std::int64_t from = query;
      for (std::int64_t row = this->CellOf(query); from < end; ++row)
      {
        const std::int64_t to = std::min(end, this->QueryEdges[ToIndex(row) + 1]);
        const std::size_t place = ToIndex((row - this->Begin) * this->Columns + column);
        const auto max = [](float a, float b) { return std::max(a, b); };
        this->Largest[place] =
          max(this->Largest[place], Reduced(largest + (from - query), to - from, None, max));
        this->Sums[place] += Reduced(sums + (from - query), to - from, 0.0, std::plus<double>());
        from = to;
      }
    }
  }

  /// The cell that a query is in.
  std::int64_t CellOf(std::int64_t query) const
  {
    return std::upper_bound(
             this->QueryEdges.begin() + this->Begin, this->QueryEdges.begin() + this->End, query) -
           this->QueryEdges.begin() - 1;
  }
};

}

std::optional<StreamedMap> FindStreamed(const Recording& recording, std::int64_t sequence,
  std::int64_t layer, std::int64_t head, AttentionQuantity quantity)
{
  if (sequence == AllSequences || head == AllHeads || quantity == AttentionQuantity::Rollout ||
      quantity == AttentionQuantity::Bias)
  {
    return std::nullopt;
  }
  const RecordedHead& recorded = FindHead(recording, layer, head);
  if (recorded.HasAttention() || !recorded.query.IsRecorded() || !recorded.key.IsRecorded() ||
      FindLayer(recording, layer).patchWindow > 0 || FindLayer(recording, layer).chunk > 0 ||
      HasOwnBias(FindLayer(recording, layer)) || !recording.tokens.keyEnd.empty())
  {
    return std::nullopt;
  }
  StreamedMap map;
  map.scores = ScoresOf(recording, sequence, layer, head);
  map.quantity = quantity;
  const std::int64_t length = map.scores.length;
  if (length < 1 || !AreModerate(map.scores))
  {
    return std::nullopt;
  }
  if (map.scores.slope != 0)
  {
    for (std::int64_t key = 0; key < length; ++key)
    {
      map.keyBias.push_back(static_cast<float>(AlibiBias(
        static_cast<double>(map.scores.slope), static_cast<double>(map.scores.slopeUnit), key)));
    }
  }
  if (quantity == AttentionQuantity::NormWeighted)
  {
    if (!recorded.valueNorm.IsRecorded())
    {
      return std::nullopt;
    }
    const float* norms = recorded.valueNorm.Row(recording.sequenceOffsets[sequence]);
    if (LargestOf(norms, length) > LargestProduct)
    {
      return std::nullopt;
    }
    for (std::int64_t key = 0; key < length; ++key)
    {
      map.logNorms.push_back(std::log(norms[key]) + (map.keyBias.empty() ? 0 : map.keyBias[key]));
    }
  }
  if (map.scores.distanceBias != nullptr)
  {
    // A tile reads biases of queries behind the last one.
    for (std::int64_t ahead = 1 - length; ahead < length + QueriesPerTile; ++ahead)
    {
      map.aheadBias.push_back(
        map.scores.distanceBias[std::clamp(-ahead, -map.scores.reach, map.scores.reach)]);
    }
  }
  return map;
}

Normalizers FindNormalizers(const StreamedMap& map, const KeyRange& queries,
  const std::vector<std::int64_t>& keyEdges, int threads, const Progress& progress)
{
  Normalizers found = { std::vector<float>(ToIndex(queries.end)),
    std::vector<float>(ToIndex(queries.end)) };
  ParallelFor(BlockCount(queries.end - queries.begin, QueriesPerTask), threads, progress,
    [&](std::int64_t task)
    {
      TileRow row(map, keyEdges);
      const std::int64_t first = queries.begin + task * QueriesPerTask;
      const std::int64_t last = std::min(first + QueriesPerTask, queries.end);
      for (std::int64_t query = first; query < last; query += QueriesPerTile)
      {
        const std::int64_t end = std::min(query + QueriesPerTile, last);
        row.Reduce(query, end, false);
        TileNumbers scale;
        row.Normalize(scale.first, scale.second);
        std::copy_n(scale.first, end - query, found.shift.begin() + query);
        std::copy_n(scale.second, end - query, found.factor.begin() + query);
      }
    });
  progress(1.0);
  return found;
}

PooledCells PoolStreamed(const StreamedMap& map, const std::vector<std::int64_t>& queryEdges,
  const std::vector<std::int64_t>& keyEdges, const Normalizers* normalizers, Normalizers* found,
  int threads, const Progress& progress)
{
  const std::int64_t rows = static_cast<std::int64_t>(queryEdges.size()) - 1;
  const std::int64_t columns = static_cast<std::int64_t>(keyEdges.size()) - 1;
  PooledCells cells = { std::vector<float>(ToIndex(rows * columns)),
    std::vector<float>(ToIndex(rows * columns)) };
  if (found != nullptr)
  {
    found->shift.resize(queryEdges.back());
    found->factor.resize(queryEdges.back());
  }
  const std::int64_t queries = queryEdges.back() - queryEdges.front();
  const std::int64_t together = std::max(QueriesPerTask * rows / queries, std::int64_t{ 1 });
  ParallelFor(BlockCount(rows, together), threads, progress,
    [&](std::int64_t task)
    {
      const std::int64_t begin = task * together;
      CellRows some(map, queryEdges, keyEdges, begin, std::min(begin + together, rows));
      some.Add(normalizers, found);
      some.CopyTo(cells);
    });
  progress(1.0);
  return cells;
}

}
