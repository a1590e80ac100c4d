#include "ScoreBreakdown.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Files/MappedFile.h"
#include "Numerics/AttentionKernels.h"
#include "Numerics/MatrixProduct.h"
#include "Recording/RecordedAttention.h"
#include "Weights/ArchitectureLimits.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace atlas
{
namespace
{

void RequireSplittable(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, const std::vector<float>& queryBias)
{
  RequireOneSequence(recording, sequence);
  EvaluateAttention(recording, sequence, layer, head, AttentionQuantity::Content, 0, 0, nullptr);
  const RecordedHead& recorded = FindHead(recording, layer, head);
  ThrowIf<OptionError>(recorded.HasAttention(), "layer ", layer, ", head ", head,
    ": the recording stores attention that does not follow from its queries and keys, so its "
    "scores cannot be split.");
  RequireUncapped(recording, layer, "split");
  ThrowIf<OptionError>(queryBias.size() != ToIndex(recorded.query.columns),
    "expected a model with queries of ", recorded.query.columns,
    " components, as in the recording, found ", queryBias.size(), ".");
  const bool hasBias =
    std::any_of(queryBias.begin(), queryBias.end(), [](float component) { return component != 0; });
  ThrowIf<OptionError>(recording.rotated && hasBias,
    "the model rotates queries together with their bias (RoPE), so "
    "no part of its scores depends on the key alone.");
}

/// Queries without their bias [end - begin, d_head].
std::vector<float> WithoutBias(
  const float* queries, std::int64_t count, const std::vector<float>& bias)
{
  std::vector<float> result(queries, queries + count * static_cast<std::int64_t>(bias.size()));
  for (std::size_t i = 0; i < result.size(); ++i)
  {
    result[i] -= bias[i % bias.size()];
  }
  return result;
}

}

std::vector<float> QueryBias(
  const Transformer& model, std::int64_t layer, std::int64_t head, AttentionKind kind)
{
  const bool isEncoder = kind == AttentionKind::Encoder;
  ThrowIf<OptionError>(kind != AttentionKind::Decoder && model.GetConfig().encoder == nullptr,
    "expected a model with an encoder and a decoder, found one of ", model.GetConfig().architecture,
    ".");
  const TransformerConfig& config = isEncoder ? *model.GetConfig().encoder : model.GetConfig();
  ThrowIf<OptionError>(layer < 0 || layer >= config.layers || head < 0 || head >= config.heads,
    "expected a model with layer ", layer, " and head ", head, ", found one of ", config.layers,
    " layers of ", config.heads, " heads.");
  RefuseSwitches(config, "parts of scores",
    { ArchitectureSwitch::QueryKeyNorms, ArchitectureSwitch::ProjectionClip,
      ArchitectureSwitch::ScoreCap, ArchitectureSwitch::QueryGrowth,
      ArchitectureSwitch::LatentAttention });
  const TransformerWeights& weights = isEncoder ? *model.GetWeights().encoder : model.GetWeights();
  const LayerTensors& tensors = weights.layers[layer];
  const LinearTensors& query = kind == AttentionKind::Cross ? tensors.crossQuery : tensors.query;
  std::vector<float> bias(config.headDimension, 0.F);
  if (query.bias.data != nullptr)
  {
    const auto first = static_cast<std::uint64_t>(query.FirstOutput(head));
    query.bias.ToFloat(first, first + bias.size(), bias.data());
  }
  return bias;
}

KeyScores EvaluateKeyScores(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, const std::vector<float>& queryBias)
{
  RequireSplittable(recording, sequence, layer, head, queryBias);
  const double scale = FindLayer(recording, layer).scoreScale;
  const RecordedHead& recorded = FindHead(recording, layer, head);
  const double slope = recording.alibiSlopes.empty() ? 0 : recording.alibiSlopes[head];
  const std::int64_t first = recording.sequenceOffsets[sequence];
  KeyScores keys;
  for (std::int64_t j = 0; j < recording.SequenceLength(sequence); ++j)
  {
    const float* key = recorded.key.Row(first + j);
    const double product = std::inner_product(queryBias.begin(), queryBias.end(), key, 0.,
      std::plus<>(), [](double a, double b) { return a * b; });
    keys.alibi.push_back(static_cast<float>(AlibiBias(slope, recording.alibiUnit, j)));
    keys.bias.push_back(static_cast<float>(scale * product));
  }
  RequireIntact(recorded.key.values.get());
  return keys;
}

void AppendScoreParts(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, const std::vector<float>& queryBias, const KeyScores& keys, std::int64_t begin,
  std::int64_t end, std::int64_t top, std::vector<ScoreParts>& parts)
{
  RequireSplittable(recording, sequence, layer, head, queryBias);
  if (begin == end)
  {
    return;
  }
  const RecordedHead& recorded = FindHead(recording, layer, head);
  const std::int64_t first = recording.sequenceOffsets[sequence];
  const std::int64_t length = recording.SequenceLength(sequence);
  const std::int64_t size = recorded.query.columns;
  const std::vector<float> queries =
    WithoutBias(recorded.query.Row(first + begin), end - begin, queryBias);
  std::vector<float> attention((end - begin) * length);
  const SingleThreadedBlas blas;
  MultiplyMatrices(end - begin, length, size,
    static_cast<float>(FindLayer(recording, layer).scoreScale), { queries.data(), size },
    { recorded.key.Row(first), size, true }, attention.data(), length);
  RequireIntact(recorded.query.values.get());
  RequireIntact(recorded.key.values.get());
  HeadScores biases = ScoresOf(recording, sequence, layer, head);
  const HeadScores all = biases;
  biases.slope = 0;             // the part of ALiBi is in `keys`
  biases.positionKey = nullptr; // these have parts of their own
  biases.positionQuery = nullptr;
  const bool hasPatchWindow = FindLayer(recording, layer).patchWindow > 0;
  std::vector<float> distances(length);
  std::vector<ScoreParts> row;
  for (std::int64_t i = begin; i < end; ++i)
  {
    const KeyRange allowed = AllowedKeys(recording, sequence, layer, i);
    const float* products = attention.data() + (i - begin) * length;
    std::fill(distances.begin(), distances.end(), 0.0F);
    AddBias(biases, i, i + 1, allowed.end, distances.data());
    row.clear();
    for (std::int64_t j = allowed.begin; j < allowed.end; ++j)
    {
      if (hasPatchWindow && !HasKey(recording, sequence, layer, i, j))
      {
        continue;
      }
      const float alibi = keys.alibi[j];
      const float bias = keys.bias[j];
      const float distance = distances[j];
      const float toPosition = all.ContentToPosition(i, j);
      const float toContent = all.PositionToContent(i, j);
      row.push_back({ static_cast<std::int32_t>(i), static_cast<std::int32_t>(j), 0,
        products[j] + bias + alibi + distance + toPosition + toContent, alibi, distance, toPosition,
        toContent, bias, products[j] });
    }
    const auto kept = row.begin() + std::min(top, static_cast<std::int64_t>(row.size()));
    std::partial_sort(row.begin(), kept, row.end(), [](const ScoreParts& a, const ScoreParts& b)
      { return a.score != b.score ? a.score > b.score : a.key < b.key; });
    for (auto part = row.begin(); part != kept; ++part)
    {
      part->rank = static_cast<std::int32_t>(part - row.begin());
    }
    parts.insert(parts.end(), row.begin(), kept);
  }
}

std::vector<double> WithoutMean(const std::vector<float>& values)
{
  const double mean =
    std::accumulate(values.begin(), values.end(), 0.) / static_cast<double>(values.size());
  std::vector<double> result;
  result.reserve(values.size());
  for (const float value : values)
  {
    result.push_back(static_cast<double>(value) - mean);
  }
  return result;
}

}
