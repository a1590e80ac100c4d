#include "RecordedAttention.h"

#include "Error.h"
#include "MatrixProduct.h"
#include "TransformerKernels.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// Throws OptionError unless 0 <= index < count.
void CheckIndex(const char* name, std::int64_t index, std::int64_t count)
{
  if (index < 0 || index >= count)
  {
    throw OptionError("expected a " + std::string(name) + " from 0 to " +
                      std::to_string(count - 1) + ", found " + std::to_string(index) + ".");
  }
}

const RecordedLayer& FindLayer(const Recording& recording, std::int64_t index)
{
  std::string recorded;
  for (const RecordedLayer& layer : recording.layers)
  {
    if (layer.index == index)
    {
      return layer;
    }
    recorded += (recorded.empty() ? "" : " ") + std::to_string(layer.index);
  }
  throw OptionError("layer " + std::to_string(index) + " is not in the recording, which has " +
                    (recorded.empty() ? "no layers" : "layers " + recorded) + ".");
}

HeadScores FindHead(const Recording& recording, std::int64_t sequence, std::int64_t layerIndex,
  std::int64_t headIndex)
{
  CheckIndex("sequence", sequence, recording.SequenceCount());
  const RecordedLayer& layer = FindLayer(recording, layerIndex);
  CheckIndex("head", headIndex, static_cast<std::int64_t>(layer.heads.size()));
  const auto h = static_cast<std::size_t>(headIndex);
  const RecordedHead& head = layer.heads[h];
  if (!head.query.IsRecorded() || !head.key.IsRecorded())
  {
    throw OptionError("the recording has no queries and keys, which attention is computed from.");
  }
  const std::int64_t first = recording.sequenceOffsets[static_cast<std::size_t>(sequence)];
  HeadScores scores;
  scores.query = head.query.Row(first);
  scores.key = head.key.Row(first);
  scores.length = recording.SequenceLength(sequence);
  scores.dimension = head.query.columns;
  scores.scale = static_cast<float>(layer.scoreScale);
  scores.slope = recording.alibiSlopes.empty() ? 0 : static_cast<float>(recording.alibiSlopes[h]);
  scores.mask = recording.mask;
  return scores;
}

}

void EvaluateAttention(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, AttentionQuantity quantity, std::int64_t begin, std::int64_t end,
  float* values)
{
  const HeadScores scores = FindHead(recording, sequence, layer, head);
  const std::int64_t keys = scores.length;
  if (begin < 0 || begin > end || end > keys)
  {
    throw OptionError("expected queries from 0 to " + std::to_string(keys) + ", found " +
                      std::to_string(begin) + " to " + std::to_string(end) + ".");
  }
  if (begin == end)
  {
    return;
  }
  const SingleThreadedBlas blas;
  switch (quantity)
  {
    case AttentionQuantity::Weights:
      EvaluateWeights(scores, begin, end, keys, values);
      break;
    case AttentionQuantity::Scores:
      EvaluateContent(scores, begin, end, keys, values);
      AddBias(scores, end - begin, keys, values);
      break;
    case AttentionQuantity::Content:
      EvaluateContent(scores, begin, end, keys, values);
      break;
    case AttentionQuantity::Bias:
      std::fill_n(values, (end - begin) * keys, 0.0F);
      AddBias(scores, end - begin, keys, values);
      break;
  }
}

}
