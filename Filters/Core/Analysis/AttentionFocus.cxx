#include "AttentionFocus.h"

#include "Numerics/DotProduct.h"
#include "Numerics/Lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace atlas
{
namespace
{

constexpr float Lowest = -std::numeric_limits<float>::infinity();

/// The two largest values of a row of at least one; the second is -infinity if there is none.
struct TopTwo
{
  float largest;
  float second;
};

TopTwo FindTopTwo(std::int64_t count, const float* values)
{
  Lanes first = Lanes::Constant(Lowest);
  Lanes second = Lanes::Constant(Lowest);
  ForLanes(count,
    [&](std::int64_t i, std::int64_t left)
    {
      const Lanes x = Load(values + i, left, Lowest);
      second = second.max(first.min(x));
      first = first.max(x);
    });
  Lanes::Index lane = 0;
  const float largest = first.maxCoeff(&lane);
  first[lane] = second[lane];
  return { largest, std::max(first.maxCoeff(), second.maxCoeff()) };
}

/// The softmax of a row without its values: they are exp(x - largest) / sum.
struct RowSums
{
  float sum = 0;      ///< of exp(x - largest)
  float weighted = 0; ///< of exp(x - largest) (x - largest)
};

/// What counts as -infinity behind the largest value: exp of it is no more than rounding.
constexpr float Negligible = -87;

float Behind(float value, float largest)
{
  return std::max(value - largest, Negligible);
}

RowSums SumRow(std::int64_t count, const float* values, float largest)
{
  Lanes sum = Lanes::Zero();
  Lanes weighted = Lanes::Zero();
  ForLanes(count,
    [&](std::int64_t i, std::int64_t left)
    {
      const Lanes x = (Load(values + i, left, Lowest) - largest).max(Negligible);
      const Lanes e = x.exp();
      sum += e;
      weighted += e * x;
    });
  return { sum.sum(), weighted.sum() };
}

/// The same from the softmax times `share`: with w = share e / sum, the sum is share / w of the
/// largest value, where e = 1.
RowSums SumRow(
  std::int64_t count, const float* values, float largest, const float* weights, float share)
{
  Lanes weighted = Lanes::Zero();
  Lanes most = Lanes::Zero();
  ForLanes(count,
    [&](std::int64_t i, std::int64_t left)
    {
      const Lanes weight = Load(weights + i, left, 0);
      weighted += weight * (Load(values + i, left, largest) - largest).max(Negligible);
      most = most.max(weight);
    });
  const float sum = share / most.maxCoeff();
  return { sum, weighted.sum() / share * sum };
}

/// What the weights of all keys add up to.
float ShareOfKeys(const ScoreRow& row, float sum, float largest)
{
  if (!row.sink)
  {
    return row.share;
  }
  const double behind = static_cast<double>(*row.sink) - static_cast<double>(largest);
  const auto keys = static_cast<double>(sum);
  return static_cast<float>(keys / (keys + std::exp(behind)));
}

float Dot(const float* a, const float* b, std::int64_t count)
{
  return static_cast<float>(DotProduct(a, b, count));
}

/// Splits q . k_0 into its cosine and the norms.
void SplitFirstScore(
  const RecordedHead& head, std::int64_t row, std::int64_t firstRow, QueryFocus& focus)
{
  const float* query = head.query.Row(row);
  const float* key = head.key.Row(firstRow);
  const std::int64_t size = head.query.columns;
  focus.queryNorm = std::sqrt(Dot(query, query, size));
  focus.firstKeyNorm = std::sqrt(Dot(key, key, size));
  const float norms = focus.queryNorm * focus.firstKeyNorm;
  focus.firstCosine = norms > 0 ? std::clamp(Dot(query, key, size) / norms, -1.F, 1.F) : 0;
}

/// The statistics of a row of which only some keys, rising, are allowed.
QueryFocus FocusOfKeys(
  const ScoreRow& row, const std::vector<std::int64_t>& keys, std::vector<float>& scores)
{
  scores.resize(keys.size());
  std::transform(keys.begin(), keys.end(), scores.begin(),
    [&](std::int64_t key) { return row.scores[key - row.firstKey]; });
  ScoreRow some = row;
  some.firstKey = keys.front() == 0 ? 0 : 1; // whether the first of them is the first of all
  some.keys = static_cast<std::int64_t>(keys.size());
  some.scores = scores.data();
  some.query = some.firstKey + (std::find(keys.begin(), keys.end(), row.query) - keys.begin());
  QueryFocus focus = FocusOfScores(some);
  focus.query = static_cast<std::int32_t>(row.query);
  focus.strongest = static_cast<std::int32_t>(keys[focus.strongest - some.firstKey]);
  return focus;
}

}

QueryFocus FocusOfScores(const ScoreRow& row)
{
  const float* scores = row.scores;
  const TopTwo top = FindTopTwo(row.keys, scores);
  const float largest = std::max(top.largest, std::numeric_limits<float>::lowest());
  const bool weighted = row.weights != nullptr;
  float share = weighted && row.sink ? static_cast<float>(SumOf(row.keys, row.weights)) : row.share;
  const RowSums sums = weighted ? SumRow(row.keys, scores, largest, row.weights, share)
                                : SumRow(row.keys, scores, largest);
  share = weighted ? share : ShareOfKeys(row, sums.sum, largest);
  const auto weight = [&](float score)
  { return share * std::exp(Behind(score, largest)) / sums.sum; };
  QueryFocus focus;
  focus.query = static_cast<std::int32_t>(row.query);
  focus.strongest = static_cast<std::int32_t>(
    row.firstKey + (std::find(scores, scores + row.keys, top.largest) - scores));
  focus.strongestWeight = weight(top.largest);
  focus.strongestScore = top.largest;
  const std::int64_t self = row.query - row.firstKey; // no key if queries are of another text
  focus.selfWeight = self < row.keys ? weight(scores[self]) : 0;
  focus.firstWeight = row.firstKey == 0 ? weight(scores[0]) : 0;
  if (row.keys == 1)
  {
    focus.concentration = share;
    return focus;
  }
  focus.concentration = focus.strongestWeight - weight(top.second);
  const float entropy = std::log(sums.sum) - sums.weighted / sums.sum;
  focus.entropy = std::clamp(entropy / std::log(static_cast<float>(row.keys)), 0.F, 1.F);
  return focus;
}

double FocusValue(const QueryFocus& focus, FocusMeasure measure, double sinkThreshold)
{
  const auto flag = [](bool is) { return is ? 1. : 0.; };
  switch (measure)
  {
    case FocusMeasure::SelfWeight:
      return focus.selfWeight;
    case FocusMeasure::FirstWeight:
      return focus.firstWeight;
    case FocusMeasure::StrongestKey:
      return focus.strongest;
    case FocusMeasure::StrongestIsSelf:
      return flag(focus.strongest == focus.query);
    case FocusMeasure::StrongestIsFirst:
      return flag(focus.strongest == 0);
    case FocusMeasure::Concentration:
      return focus.concentration;
    case FocusMeasure::Entropy:
      return focus.entropy;
    case FocusMeasure::SinkRate:
      return flag(static_cast<double>(focus.firstWeight) > sinkThreshold);
    case FocusMeasure::FirstCosine:
      return focus.firstCosine;
    case FocusMeasure::QueryNorm:
      return focus.queryNorm;
    case FocusMeasure::FirstKeyNorm:
      return focus.firstKeyNorm;
  }
  return 0;
}

void FocusSums::Add(const QueryFocus& focus, double sinkThreshold)
{
  ++this->queries;
  for (std::size_t m = 0; m < FocusMeasureCount; ++m)
  {
    this->sums[m] += FocusValue(focus, static_cast<FocusMeasure>(m), sinkThreshold);
  }
}

void FocusSums::Add(const FocusSums& other)
{
  this->queries += other.queries;
  for (std::size_t m = 0; m < FocusMeasureCount; ++m)
  {
    this->sums[m] += other.sums[m];
  }
}

double FocusSums::Mean(FocusMeasure measure) const
{
  const double sum = this->sums[static_cast<std::size_t>(measure)];
  return this->queries > 0 ? sum / static_cast<double>(this->queries) : 0;
}

void MeasureFocus(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, AttentionQuantity quantity, std::int64_t begin, std::int64_t end,
  std::vector<float>& work, QueryFocus* focus)
{
  RequireOneSequence(recording, sequence);
  EvaluateAttention(recording, sequence, layer, head, quantity, 0, 0, nullptr); // checks the place
  const RecordedHead& recorded = FindHead(recording, layer, head);
  const RecordedLayer& recordedLayer = FindLayer(recording, layer);
  const bool hasScores = quantity == AttentionQuantity::Weights && recorded.weights.empty();
  // Rollout goes beyond the window of a layer.
  const bool hasPatchWindow =
    recordedLayer.patchWindow > 0 && quantity != AttentionQuantity::Rollout;
  const std::int64_t keys = recording.SequenceLength(sequence);
  work.resize(std::max<std::int64_t>(end - begin, 0) * keys);
  EvaluateAttention(recording, sequence, layer, head,
    hasScores ? AttentionQuantity::Scores : quantity, begin, end, work.data());
  const bool hasSink = quantity == AttentionQuantity::Weights && !recordedLayer.sinks.empty();
  const std::int64_t first = recording.sequenceOffsets[sequence];
  std::vector<std::int64_t> window;
  std::vector<float> ofWindow;
  for (std::int64_t query = begin; query < end; ++query)
  {
    const KeyRange allowed = AllowedKeys(recording, sequence, layer, query);
    if (hasPatchWindow && (query == begin || !HasKey(recording, sequence, layer, query - 1, query)))
    {
      window = KeysOf(recording, sequence, layer, query);
    }
    float* values = work.data() + (query - begin) * keys + allowed.begin;
    ScoreRow row = { query, allowed.begin, allowed.end - allowed.begin, values, {} };
    if (hasSink && hasScores)
    {
      row.sink = recordedLayer.sinks.at(head);
    }
    else if (hasSink)
    {
      row.share = std::accumulate(values, values + row.keys, 0.F);
    }
    if (!hasScores)
    {
      ForLanes(row.keys, [values](std::int64_t i, std::int64_t left)
        { Store(Load(values + i, left, 1).log(), left, values + i); });
    }
    QueryFocus& found = focus[query - begin];
    found = hasPatchWindow ? FocusOfKeys(row, window, ofWindow) : FocusOfScores(row);
    found.strongestScore = hasScores ? found.strongestScore : 0;
    if (recorded.query.IsRecorded() && recorded.key.IsRecorded())
    {
      SplitFirstScore(recorded, first + query, first, found);
    }
  }
}

std::vector<std::size_t> FallingOrder(const std::vector<double>& values)
{
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{ 0 });
  std::sort(order.begin(), order.end(), [&values](std::size_t a, std::size_t b)
    { return values[a] != values[b] ? values[a] > values[b] : a < b; });
  return order;
}

}
