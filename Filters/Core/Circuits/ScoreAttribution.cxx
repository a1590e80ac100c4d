#include "ScoreAttribution.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "CircuitWeights.h"
#include "Numerics/AttentionKernels.h"
#include "Recording/RecordedAttention.h"
#include "Weights/ArchitectureLimits.h"
#include "Weights/VectorNorm.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace atlas
{
namespace
{

using Vector = Eigen::RowVectorXd;

constexpr const char* What = "Score Attribution";
constexpr const char* AlibiName = "ALiBi";

/// Rotates each row [d_head] as the queries and keys of a layer at a position of a sequence of
/// `length` tokens, in a rotary model.
void Rotate(const TransformerConfig& config, std::int64_t layer, std::int64_t length,
  std::int64_t position, DoubleMatrix& rows)
{
  if (config.position != PositionKind::Rotary)
  {
    return;
  }
  const std::vector<float> frequencies = RotaryFrequencies(config, layer, length);
  const double factor = config.RotaryScalingOf(layer).attentionFactor;
  const std::int64_t pairs = frequencies.size();
  for (std::int64_t i = 0; i < pairs; ++i)
  {
    const float angle = static_cast<float>(position) * frequencies[i];
    const double cosine = factor * static_cast<double>(std::cos(angle));
    const double sine = factor * static_cast<double>(std::sin(angle));
    const Eigen::VectorXd a = rows.col(i);
    const Eigen::VectorXd b = rows.col(i + pairs);
    rows.col(i) = a * cosine - b * sine;
    rows.col(i + pairs) = b * cosine + a * sine;
  }
}

/// One side of a score, the query or the key.
struct Side
{
  const DoubleMatrix& weight;
  const Vector& bias;
  const DoubleMatrix& positions;
  std::int64_t row; ///< in the recording
};

/// The parts of a query or key [components + 1, d_head]: of each component, and the bias.
DoubleMatrix PartsOf(
  const Recording& recording, const ResidualWeights& weights, std::int64_t layer, const Side& side)
{
  const TransformerConfig& config = weights.GetConfig();
  DoubleMatrix vectors = ComponentVectors(recording, weights, side.row, layer);
  const NormSplit split = SplitNorm(config, vectors.colwise().sum());
  if (split.centers)
  {
    vectors.colwise() -= vectors.rowwise().mean().eval();
  }
  const std::int64_t position = recording.tokens.position[side.row];
  const bool hasPositions = side.positions.size() > 0;
  DoubleMatrix parts(vectors.rows() + (hasPositions ? 2 : 1), side.weight.cols());
  const DoubleMatrix read = vectors * side.weight / split.sigma;
  parts.row(0) = read.row(0);
  if (hasPositions)
  {
    parts.row(1) = side.positions.row(PositionAt(recording, side.row, side.positions.rows()));
  }
  parts.middleRows(hasPositions ? 2 : 1, read.rows() - 1) = read.bottomRows(read.rows() - 1);
  parts.bottomRows(1) = side.bias;
  const std::int64_t sequence = recording.tokens.sequence[side.row];
  Rotate(config, layer, recording.SequenceLength(sequence), position, parts);
  return parts;
}

/// A position of a sequence; -1: `otherwise`.
std::int64_t PositionOf(
  std::int64_t position, std::int64_t length, std::int64_t otherwise, const std::string& name)
{
  ThrowIf<OptionError>(position < -1 || position >= length, name,
    ": expected a position from 0 to ", length - 1, ", or -1, found ", position, ".");
  return position == -1 ? otherwise : position;
}

/// Scores of recorded queries and keys.
class RecordedScores
{
public:
  RecordedScores(const Recording& recording, const ScorePlace& place)
    : Head(FindHead(recording, place.layer, place.head))
    , Scale(FindLayer(recording, place.layer).scoreScale)
    , Slope(recording.alibiSlopes.empty() ? 0 : recording.alibiSlopes[place.head])
    , SlopeUnit(recording.alibiUnit)
    , First(recording.sequenceOffsets[place.sequence])
  {
  }

  double Alibi(std::int64_t key) const { return AlibiBias(this->Slope, this->SlopeUnit, key); }

  double At(std::int64_t query, std::int64_t key) const
  {
    return this->Scale * RowOf(this->Head.query, this->First + query)
                           .dot(RowOf(this->Head.key, this->First + key)) +
           this->Alibi(key);
  }

  /// The key of the largest score of a query, of those that it can attend to.
  std::int64_t StrongestKey(std::int64_t query, const std::vector<std::int64_t>& keys) const
  {
    std::int64_t strongest = keys.front();
    double largest = this->At(query, strongest);
    for (const std::int64_t key : keys)
    {
      const double score = this->At(query, key);
      if (score > largest)
      {
        largest = score;
        strongest = key;
      }
    }
    return strongest;
  }

private:
  const RecordedHead& Head;
  double Scale;
  double Slope;
  double SlopeUnit;
  std::int64_t First;
};

/// Checks a place, and finds the positions that it leaves open.
ScorePlace Found(const Recording& recording, const ScorePlace& asked)
{
  RequireOneSequence(recording, asked.sequence);
  RequireTokens(recording, asked.sequence);
  EvaluateAttention(
    recording, asked.sequence, asked.layer, asked.head, AttentionQuantity::Content, 0, 0, nullptr);
  ThrowIf<OptionError>(FindHead(recording, asked.layer, asked.head).HasAttention(), "layer ",
    asked.layer, ", head ", asked.head,
    ": the recording stores attention that does not follow from its queries and keys, so its "
    "scores cannot be split.");
  RequireUncapped(recording, asked.layer, "split");
  ScorePlace place = asked;
  const std::int64_t length = recording.SequenceLength(place.sequence);
  place.query = PositionOf(asked.query, length, length - 1, "Query");
  place.key = PositionOf(asked.key, length, -1, "Key");
  const std::vector<std::int64_t> keys =
    KeysOf(recording, place.sequence, place.layer, place.query);
  if (place.key != -1 && !std::binary_search(keys.begin(), keys.end(), place.key))
  {
    const bool hasPatchWindow = FindLayer(recording, place.layer).patchWindow > 0;
    throw OptionError("Key: expected a position from ", keys.front(), " to ", keys.back(),
      hasPatchWindow ? " in the query's window of patches" : "",
      ", which the query can attend to, found ", place.key, ".");
  }
  if (place.key == -1)
  {
    place.key = RecordedScores(recording, place).StrongestKey(place.query, keys);
  }
  return place;
}

}

std::vector<NamedComponent> ScoreComponents(
  const TransformerConfig& config, std::int64_t layer, const char* bias, bool hasAlibi)
{
  std::vector<NamedComponent> names = NamedComponentsBefore(config, layer);
  if (config.position == PositionKind::Shortformer)
  {
    const ResidualComponent position = { ComponentKind::Position };
    names.insert(names.begin() + 1, { NameOf(position), position });
  }
  names.push_back({ bias, {}, false });
  if (hasAlibi)
  {
    names.push_back({ AlibiName, {}, false });
  }
  return names;
}

ScoreHead ReadScoreHead(const Transformer& model, std::int64_t layer, std::int64_t head)
{
  const TransformerConfig& config = model.GetConfig();
  RequireHead(model, layer, head);
  using Switch = ArchitectureSwitch;
  RefuseSwitches(config, What,
    { Switch::Encoder, Switch::QueryKeyNorms, Switch::PartialRotation, Switch::NeighborRotation,
      Switch::RotationByLayer, Switch::QueryGrowth, Switch::ScoreCap, Switch::ProjectionClip,
      Switch::GainOffset, Switch::PositionScores, Switch::PatchRotation, Switch::Mixers });
  const ProcessedWeights stored(model, WeightSteps::Stored, 1);
  const ProcessedAttention attention = stored.Attention(layer);
  const ProcessedHead& weights = attention.heads[head];
  ScoreHead result = { weights.query, weights.key, weights.queryBias, weights.keyBias, {}, {} };
  if (config.position == PositionKind::Shortformer)
  {
    const DoubleMatrix positions = stored.PositionEmbedding();
    result.queryPositions = positions * weights.query;
    result.keyPositions = positions * weights.key;
  }
  const NormTensors& norm = model.GetWeights().layers[layer].attentionNorm;
  const Vector shift = ToVector(norm.shift);
  const Vector gain = ToVector(norm.gain);
  if (shift.size() > 0)
  {
    result.queryBias += shift * weights.query;
    result.keyBias += shift * weights.key;
  }
  if (gain.size() > 0)
  {
    result.query.array().colwise() *= gain.transpose().array();
    result.key.array().colwise() *= gain.transpose().array();
  }
  return result;
}

ScoreTerms AttributeScore(const Recording& recording, const ResidualWeights& weights,
  const ScoreHead& head, const ScorePlace& asked)
{
  const TransformerConfig& config = weights.GetConfig();
  ScoreTerms terms;
  terms.place = Found(recording, asked);
  const ScorePlace& place = terms.place;
  RequireComponents(recording, config, place.layer, What);
  const std::int64_t first = recording.sequenceOffsets[place.sequence];
  const DoubleMatrix queries = PartsOf(recording, weights, place.layer,
    { head.query, head.queryBias, head.queryPositions, first + place.query });
  const DoubleMatrix keys = PartsOf(recording, weights, place.layer,
    { head.key, head.keyBias, head.keyPositions, first + place.key });
  const bool hasAlibi = !recording.alibiSlopes.empty();
  terms.queries = ScoreComponents(config, place.layer, "b_Q", hasAlibi);
  terms.keys = ScoreComponents(config, place.layer, "b_K", hasAlibi);
  const std::int64_t count = terms.queries.size();
  const RecordedScores scores(recording, place);
  terms.values = DoubleMatrix::Zero(count, count);
  terms.values.topLeftCorner(queries.rows(), keys.rows()) =
    config.ScoreScale(place.layer) * (queries * keys.transpose());
  if (hasAlibi)
  {
    terms.values(count - 1, count - 1) = scores.Alibi(place.key);
  }
  terms.score = scores.At(place.query, place.key);
  terms.sum = terms.values.sum();
  RequireIntactRecording(recording);
  return terms;
}

ScoreTerms Grouped(const ScoreTerms& terms, ComponentGrouping grouping)
{
  const ComponentGroups queries(terms.queries, grouping);
  const ComponentGroups keys(terms.keys, grouping);
  ScoreTerms joined = terms;
  joined.queries = queries.groups;
  joined.keys = keys.groups;
  joined.values = DoubleMatrix::Zero(queries.groups.size(), keys.groups.size());
  for (std::size_t i = 0; i < queries.groupOf.size(); ++i)
  {
    for (std::size_t j = 0; j < keys.groupOf.size(); ++j)
    {
      joined.values(queries.groupOf[i], keys.groupOf[j]) +=
        terms.values(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
    }
  }
  return joined;
}

std::vector<ScorePair> StrongestPairs(const ScoreTerms& terms, std::int64_t top)
{
  std::vector<ScorePair> pairs;
  for (std::int64_t i = 0; i < terms.values.rows(); ++i)
  {
    for (std::int64_t j = 0; j < terms.values.cols(); ++j)
    {
      pairs.push_back({ i, j });
    }
  }
  std::sort(pairs.begin(), pairs.end(),
    [&](const ScorePair& a, const ScorePair& b)
    {
      const double ofA = std::abs(terms.values(a.query, a.key));
      const double ofB = std::abs(terms.values(b.query, b.key));
      return ofA != ofB ? ofA > ofB : std::tie(a.query, a.key) < std::tie(b.query, b.key);
    });
  pairs.resize(std::min(pairs.size(), ToIndex(top)));
  return pairs;
}

}
