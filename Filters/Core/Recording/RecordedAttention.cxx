#include "RecordedAttention.h"

#include "AttentionKernels.h"
#include "Error.h"
#include "Index.h"
#include "MappedFile.h"
#include "MatrixProduct.h"

#include <algorithm>
#include <string>

namespace atlas
{
namespace
{

/// One head of one layer, with its indices.
struct Place
{
  const RecordedLayer& layer;
  const RecordedHead& head;
  std::size_t h;
  std::size_t sequence;
};

Place FindPlace(
  const Recording& recording, std::int64_t sequence, std::int64_t layer, std::int64_t head)
{
  if (sequence < 0 || sequence >= recording.SequenceCount())
  {
    throw OptionError("expected a sequence from 0 to " +
                      std::to_string(recording.SequenceCount() - 1) + ", found " +
                      std::to_string(sequence) + ".");
  }
  return { FindLayer(recording, layer), FindHead(recording, layer, head), ToIndex(head),
    ToIndex(sequence) };
}

HeadScores ScoresOf(const Recording& recording, const Place& place)
{
  const RecordedHead& head = place.head;
  if (!head.query.IsRecorded() || !head.key.IsRecorded())
  {
    throw OptionError(
      "the recording has no queries and keys, from which attention is computed" +
      std::string(
        head.HasAttention()
          ? "; it stores only the " + std::string(head.scores.empty() ? "weights" : "scores") + "."
          : "."));
  }
  const std::int64_t first = recording.sequenceOffsets[place.sequence];
  HeadScores scores;
  scores.query = head.query.Row(first);
  scores.key = head.key.Row(first);
  scores.length = recording.SequenceLength(static_cast<std::int64_t>(place.sequence));
  scores.dimension = head.query.columns;
  scores.scale = static_cast<float>(place.layer.scoreScale);
  scores.slope =
    recording.alibiSlopes.empty() ? 0 : static_cast<float>(recording.alibiSlopes[place.h]);
  scores.mask = recording.mask;
  return scores;
}

void CopyRows(const SharedMatrix& matrix, std::int64_t begin, std::int64_t end, float* values)
{
  std::copy(matrix.Row(begin), matrix.Row(end), values);
}

/// Copies attention that is stored in the recording. Returns false if it has to be computed.
bool CopyStored(const Recording& recording, const Place& place, AttentionQuantity quantity,
  std::int64_t begin, std::int64_t end, float* values)
{
  const RecordedHead& head = place.head;
  const std::size_t s = place.sequence;
  if (quantity == AttentionQuantity::Scores && !head.scores.empty())
  {
    CopyRows(head.scores[s], begin, end, values);
    return true;
  }
  if (quantity == AttentionQuantity::Scores && head.HasAttention() && head.query.IsRecorded())
  {
    throw OptionError(
      "the recording has no scores, and its weights do not follow from its queries and keys.");
  }
  if (quantity != AttentionQuantity::Weights || !head.HasAttention())
  {
    return false;
  }
  if (!head.weights.empty())
  {
    CopyRows(head.weights[s], begin, end, values);
    return true;
  }
  CopyRows(head.scores[s], begin, end, values);
  HeadScores scores;
  scores.length = head.scores[s].columns;
  scores.mask = recording.mask;
  NormalizeScores(scores, begin, end, scores.length, values);
  return true;
}

/// Checks the files of mapped matrices, which may have been truncated.
void RequireIntact(const Place& place)
{
  const RecordedHead& head = place.head;
  for (const SharedMatrix* matrix : { &head.query, &head.key })
  {
    atlas::RequireIntact(matrix->values.get());
  }
  for (const auto* matrices : { &head.weights, &head.scores })
  {
    if (!matrices->empty())
    {
      atlas::RequireIntact((*matrices)[place.sequence].values.get());
    }
  }
}

void Evaluate(const Recording& recording, const Place& place, AttentionQuantity quantity,
  std::int64_t begin, std::int64_t end, float* values)
{
  if (CopyStored(recording, place, quantity, begin, end, values))
  {
    return;
  }
  const HeadScores scores = ScoresOf(recording, place);
  if (begin == end)
  {
    return;
  }
  const std::int64_t keys = scores.length;
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

void EvaluateAttention(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, AttentionQuantity quantity, std::int64_t begin, std::int64_t end,
  float* values)
{
  const Place place = FindPlace(recording, sequence, layer, head);
  const std::int64_t keys = recording.SequenceLength(sequence);
  if (begin < 0 || begin > end || end > keys)
  {
    throw OptionError("expected queries from 0 to " + std::to_string(keys) + ", found " +
                      std::to_string(begin) + " to " + std::to_string(end) + ".");
  }
  Evaluate(recording, place, quantity, begin, end, values);
  RequireIntact(place);
}

}
