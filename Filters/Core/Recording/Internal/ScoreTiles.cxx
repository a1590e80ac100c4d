#include "ScoreTiles.h"

#include "Numerics/InstructionSets.h"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Recording/Internal/ScoreTiles.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before these headers, which are read once per target.
#include "Numerics/VectorMath-inl.h"
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of queries, and keys, whose products are summed at the same time: as many as registers
/// hold.
constexpr std::int64_t VectorsTogether = 3;
constexpr std::int64_t KeysTogether = 4;

/// Keys whose scores are in memory at a time.
constexpr std::int64_t KeysPerChunk = 32;

/// Below any score.
constexpr float Lowest = -3e38F;

void PackQueriesOf(
  const float* queries, std::int64_t rows, std::int64_t dimension, float scale, float* packed)
{
  const auto group = static_cast<std::int64_t>(hn::Lanes(D())) * VectorsTogether;
  for (std::int64_t first = 0; first < QueriesPerTile; first += group)
  {
    for (std::int64_t p = 0; p < dimension; ++p)
    {
      for (std::int64_t query = first; query < first + group; ++query)
      {
        *packed++ = query < rows ? scale * queries[query * dimension + p] : 0;
      }
    }
  }
}

/// The products of `count` keys with all queries: [count, QueriesPerTile].
HWY_INLINE void Multiply(
  const ScoreTile& tile, const float* keys, std::int64_t count, float* products)
{
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t group = lanes * VectorsTogether;
  for (std::int64_t first = 0; first < QueriesPerTile; first += group)
  {
    for (std::int64_t key = 0; key < count; key += KeysTogether)
    {
      const float* rows[KeysTogether]; // those that are missing repeat the last one
      V sums[KeysTogether][VectorsTogether];
      for (std::int64_t i = 0; i < KeysTogether; ++i)
      {
        rows[i] = keys + std::min(key + i, count - 1) * tile.dimension;
        sums[i][0] = sums[i][1] = sums[i][2] = hn::Zero(d);
      }
      const float* q = tile.queries + first * tile.dimension;
      for (std::int64_t p = 0; p < tile.dimension; ++p, q += group)
      {
        const V q0 = hn::LoadU(d, q);
        const V q1 = hn::LoadU(d, q + lanes);
        const V q2 = hn::LoadU(d, q + 2 * lanes);
        for (std::int64_t i = 0; i < KeysTogether; ++i)
        {
          const V k = hn::Set(d, rows[i][p]);
          sums[i][0] = hn::MulAdd(q0, k, sums[i][0]);
          sums[i][1] = hn::MulAdd(q1, k, sums[i][1]);
          sums[i][2] = hn::MulAdd(q2, k, sums[i][2]);
        }
      }
      float* to = products + key * QueriesPerTile + first;
      for (std::int64_t i = 0; i < KeysTogether; ++i)
      {
        if (key + i < count)
        {
          hn::StoreU(sums[i][0], d, to + i * QueriesPerTile);
          hn::StoreU(sums[i][1], d, to + i * QueriesPerTile + lanes);
          hn::StoreU(sums[i][2], d, to + i * QueriesPerTile + 2 * lanes);
        }
      }
    }
  }
}

/// Turns products with the keys from position `begin` on into scores.
HWY_INLINE void AddBiases(
  const ScoreTile& tile, std::int64_t begin, std::int64_t count, float* scores)
{
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V cap = hn::Set(d, tile.cap);
  const V perHalfCap = hn::Set(d, 2 / std::max(tile.cap, 1e-30F));
  for (std::int64_t key = begin; key < begin + count; ++key)
  {
    const V keyBias = hn::Set(d, tile.keyBias != nullptr ? tile.keyBias[key] : 0);
    const std::int64_t ahead = tile.query - key;
    for (std::int64_t query = 0; query < QueriesPerTile; query += lanes, scores += lanes)
    {
      V score = hn::LoadU(d, scores);
      if (tile.cap > 0) // tanh x = 2 / (1 + e^-2x) - 1
      {
        const V share = Logistic(Batch<1>{ { hn::Mul(score, perHalfCap) } }).v[0];
        score = hn::Mul(cap, hn::Sub(hn::Add(share, share), hn::Set(d, 1)));
      }
      score = hn::Add(score, keyBias);
      if (tile.aheadBias != nullptr)
      {
        score = hn::Add(score, hn::LoadU(d, tile.aheadBias + ahead + query));
      }
      hn::StoreU(score, d, scores);
    }
  }
}

/// Makes scores with keys from position `begin` on, to which a query may not attend, -infinity.
HWY_INLINE void Exclude(
  const ScoreTile& tile, std::int64_t begin, std::int64_t count, float* scores)
{
  const D d;
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V none = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto least = hn::Set(di, static_cast<std::int32_t>(tile.least));
  const auto beyond = hn::Set(di, static_cast<std::int32_t>(tile.beyond));
  for (std::int64_t key = begin; key < begin + count; ++key)
  {
    for (std::int64_t query = 0; query < QueriesPerTile; query += lanes, scores += lanes)
    {
      const auto ahead = hn::Iota(di, static_cast<std::int32_t>(tile.query - key + query));
      const auto isExcluded = hn::Or(hn::Lt(ahead, least), hn::Not(hn::Lt(ahead, beyond)));
      const V score = hn::LoadU(d, scores);
      hn::StoreU(hn::IfThenElse(hn::RebindMask(d, isExcluded), none, score), d, scores);
    }
  }
}

/// Adds the scores of a chunk of keys to what is known of each query.
HWY_INLINE void AddChunk(
  const float* scores, std::int64_t count, ScoreSum kind, float* largest, float* sums)
{
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V lowest = hn::Set(d, Lowest);
  for (std::int64_t query = 0; query < QueriesPerTile; query += 2 * lanes)
  {
    // Two vectors at a time, as those of one would wait for each other.
    Batch<2> highest = { { hn::LoadU(d, scores + query), hn::LoadU(d, scores + query + lanes) } };
    for (std::int64_t key = 1; key < count; ++key)
    {
      const float* row = scores + key * QueriesPerTile + query;
      highest.v[0] = hn::Max(highest.v[0], hn::LoadU(d, row));
      highest.v[1] = hn::Max(highest.v[1], hn::LoadU(d, row + lanes));
    }
    const Batch<2> before = { { hn::LoadU(d, largest + query),
      hn::LoadU(d, largest + query + lanes) } };
    Batch<2> sum = { { hn::Zero(d), hn::Zero(d) } };
    const Batch<2> known = { { hn::LoadU(d, sums + query), hn::LoadU(d, sums + query + lanes) } };
    const Batch<2> now = Map([](V x, V y) HWY_ATTR { return hn::Max(x, y); }, before, highest);
    const auto load = [&](std::int64_t key) HWY_ATTR
    {
      const float* row = scores + key * QueriesPerTile + query;
      return Batch<2>{ { hn::LoadU(d, row), hn::LoadU(d, row + lanes) } };
    };
    const auto add = [](V x, V y) HWY_ATTR { return hn::Add(x, y); };
    if (kind == ScoreSum::Scores)
    {
      for (std::int64_t key = 0; key < count; ++key)
      {
        sum = Map(add, sum, load(key));
      }
      sum = Map(add, known, sum);
    }
    else
    {
      const Batch<2> shift = Map([&](V x) HWY_ATTR { return hn::Max(x, lowest); }, now);
      const auto difference = [](V x, V y) HWY_ATTR { return hn::Sub(x, y); };
      for (std::int64_t key = 0; key < count; ++key)
      {
        sum = Map(add, sum, ExpOfNegative(Map(difference, load(key), shift)));
      }
      const Batch<2> scale = ExpOfNegative(Map(difference, before, shift));
      sum = Map([](V x, V y, V z) HWY_ATTR { return hn::MulAdd(x, y, z); }, known, scale, sum);
    }
    hn::StoreU(now.v[0], d, largest + query);
    hn::StoreU(now.v[1], d, largest + query + lanes);
    hn::StoreU(sum.v[0], d, sums + query);
    hn::StoreU(sum.v[1], d, sums + query + lanes);
  }
}

/// Computes the scores of the keys begin <= j < end, at most KeysPerChunk. Returns false if no
/// query may attend to any of them.
HWY_INLINE bool Score(const ScoreTile& tile, std::int64_t begin, std::int64_t end, float* scores)
{
  const std::int64_t count = end - begin;
  const std::int64_t farthest = tile.query - begin + QueriesPerTile - 1;
  const std::int64_t nearest = tile.query - end + 1;
  if (farthest < tile.least || nearest >= tile.beyond)
  {
    return false;
  }
  Multiply(tile, tile.keys + begin * tile.dimension, count, scores);
  if (tile.cap > 0 || tile.keyBias != nullptr || tile.aheadBias != nullptr)
  {
    AddBiases(tile, begin, count, scores);
  }
  if (nearest < tile.least || farthest >= tile.beyond)
  {
    Exclude(tile, begin, count, scores);
  }
  return true;
}

/// The results of a single key.
HWY_INLINE void TakeKey(const float* scores, ScoreSum kind, float* largest, float* sums)
{
  std::copy_n(scores, QueriesPerTile, largest);
  for (std::int64_t query = 0; query < QueriesPerTile; ++query)
  {
    sums[query] = kind == ScoreSum::Scores ? scores[query] : scores[query] > Lowest ? 1.0F : 0.0F;
  }
}

void ReduceCellsOf(const ScoreTile& tile, const std::int64_t* edges, std::int64_t cells,
  ScoreSum kind, float* largest, float* sums)
{
  HWY_ALIGN float scores[KeysPerChunk * QueriesPerTile];
  std::fill_n(largest, cells * QueriesPerTile, -std::numeric_limits<float>::infinity());
  std::fill_n(sums, cells * QueriesPerTile, 0.0F);
  for (std::int64_t first = 0; first < cells;)
  {
    // Several small cells together, or one large cell in parts.
    std::int64_t last = first + 1;
    while (last < cells && edges[last + 1] - edges[first] <= KeysPerChunk)
    {
      ++last;
    }
    for (std::int64_t key = edges[first]; key < edges[last]; key += KeysPerChunk)
    {
      if (!Score(tile, key, std::min(key + KeysPerChunk, edges[last]), scores))
      {
        continue;
      }
      for (std::int64_t cell = first; cell < last; ++cell)
      {
        const std::int64_t begin = std::max(edges[cell], key);
        const std::int64_t count = std::min(edges[cell + 1], key + KeysPerChunk) - begin;
        const float* part = scores + (begin - key) * QueriesPerTile;
        float* most = largest + cell * QueriesPerTile;
        float* sum = sums + cell * QueriesPerTile;
        if (edges[cell + 1] - edges[cell] == 1)
        {
          TakeKey(part, kind, most, sum);
        }
        else
        {
          AddChunk(part, count, kind, most, sum);
        }
      }
    }
    first = last;
  }
}

void FindNormalizersOf(const float* largest, const float* sums, std::int64_t cells,
  const float* sink, float* shift, float* factor)
{
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V lowest = hn::Set(d, Lowest);
  for (std::int64_t query = 0; query < QueriesPerTile; query += lanes)
  {
    V highest = hn::Set(d, sink != nullptr ? *sink : Lowest);
    for (std::int64_t cell = 0; cell < cells; ++cell)
    {
      highest = hn::Max(highest, hn::LoadU(d, largest + cell * QueriesPerTile + query));
    }
    HWY_ALIGN float terms[hn::MaxLanes(D())];
    std::array<double, hn::MaxLanes(D())> all = {};
    const auto addTerms = [&](V x, V count) HWY_ATTR
    {
      const V power = ExpOfNegative(Batch<1>{ { hn::Sub(x, highest) } }).v[0];
      hn::Store(hn::IfThenElseZero(hn::Gt(x, lowest), hn::Mul(count, power)), d, terms);
      for (std::int64_t lane = 0; lane < lanes; ++lane)
      {
        all[lane] += static_cast<double>(terms[lane]);
      }
    };
    for (std::int64_t cell = 0; cell < cells; ++cell)
    {
      const std::int64_t place = cell * QueriesPerTile + query;
      addTerms(hn::LoadU(d, largest + place), hn::LoadU(d, sums + place));
    }
    if (sink != nullptr)
    {
      addTerms(hn::Set(d, *sink), hn::Set(d, 1));
    }
    hn::StoreU(highest, d, shift + query);
    for (std::int64_t lane = 0; lane < lanes; ++lane)
    {
      factor[query + lane] = all[lane] > 0 ? static_cast<float>(1 / all[lane]) : 0;
    }
  }
}

void WeighCellOf(const float* largest, const float* sums, const float* shift, const float* factor,
  float* largestWeight, float* sumOfWeights)
{
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V lowest = hn::Set(d, Lowest);
  for (std::int64_t query = 0; query < QueriesPerTile; query += lanes)
  {
    const V score = hn::LoadU(d, largest + query);
    const V power = ExpOfNegative(Batch<1>{ { hn::Sub(score, hn::LoadU(d, shift + query)) } }).v[0];
    const V weight =
      hn::IfThenElseZero(hn::Gt(score, lowest), hn::Mul(power, hn::LoadU(d, factor + query)));
    hn::StoreU(weight, d, largestWeight + query);
    hn::StoreU(hn::Mul(weight, hn::LoadU(d, sums + query)), d, sumOfWeights + query);
  }
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(PackQueriesOf);
HWY_EXPORT(ReduceCellsOf);
HWY_EXPORT(FindNormalizersOf);
HWY_EXPORT(WeighCellOf);

void PackQueries(
  const float* queries, std::int64_t rows, std::int64_t dimension, float scale, float* packed)
{
  InitializeTarget();
  HWY_DYNAMIC_DISPATCH(PackQueriesOf)(queries, rows, dimension, scale, packed);
}

void ReduceCells(const ScoreTile& tile, const std::int64_t* edges, std::int64_t cells, ScoreSum sum,
  float* largest, float* sums)
{
  HWY_DYNAMIC_DISPATCH(ReduceCellsOf)(tile, edges, cells, sum, largest, sums);
}

void FindNormalizers(const float* largest, const float* sums, std::int64_t cells, const float* sink,
  float* shift, float* factor)
{
  HWY_DYNAMIC_DISPATCH(FindNormalizersOf)(largest, sums, cells, sink, shift, factor);
}

void WeighCell(const float* largest, const float* sums, const float* shift, const float* factor,
  float* largestWeight, float* sumOfWeights)
{
  HWY_DYNAMIC_DISPATCH(WeighCellOf)(largest, sums, shift, factor, largestWeight, sumOfWeights);
}

}

#endif
