#include "StoredAttention.h"

#include "Index.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

/// The stored attention must be what queries and keys give, in half precision too.
constexpr double AttentionTolerance = 0.02;

/// Masked scores are -infinity, -1e5 in old TransformerLens files, or the least float elsewhere.
constexpr float MaskedScore = -5e4F;

bool LooksAhead(const RecordedHead& head)
{
  const bool weights = !head.weights.empty();
  for (const SharedMatrix& matrix : weights ? head.weights : head.scores)
  {
    for (std::int64_t i = 0; i < matrix.rows; ++i)
    {
      for (std::int64_t j = i + 1; j < matrix.columns; ++j)
      {
        const float value = matrix.Row(i)[j];
        if (weights ? value != 0 : value > MaskedScore)
        {
          return true;
        }
      }
    }
  }
  return false;
}

void Softmax(std::vector<double>& scores)
{
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores)
  {
    score = std::exp(score - largest);
    sum += score;
  }
  for (double& score : scores)
  {
    score /= sum;
  }
}

/// The largest difference of stored attention and what queries and keys give, for the last query of
/// the first sequence, which sees all keys under either mask.
double Deviation(const Recording& recording, const RecordedLayer& layer, std::size_t h)
{
  const RecordedHead& head = layer.heads[h];
  const std::int64_t length = recording.SequenceLength(0);
  std::vector<double> stored(ToIndex(length));
  std::vector<double> given(stored.size());
  const bool weights = !head.weights.empty();
  const float* row = (weights ? head.weights : head.scores).front().Row(length - 1);
  const float* query = head.query.Row(length - 1);
  const double slope = h < recording.alibiSlopes.size() ? recording.alibiSlopes[h] : 0;
  for (std::int64_t j = 0; j < length; ++j)
  {
    double product = 0;
    for (std::int64_t i = 0; i < head.query.columns; ++i)
    {
      product += static_cast<double>(query[i]) * static_cast<double>(head.key.Row(j)[i]);
    }
    given[ToIndex(j)] = layer.scoreScale * product + slope * static_cast<double>(j);
    stored[ToIndex(j)] = static_cast<double>(row[j]);
  }
  Softmax(given);
  if (!weights)
  {
    Softmax(stored);
  }
  double deviation = 0;
  for (std::size_t j = 0; j < stored.size(); ++j)
  {
    deviation = std::max(deviation, std::abs(stored[j] - given[j]));
  }
  return deviation;
}

}

std::optional<bool> StoredAttentionLooksAhead(const Recording& recording)
{
  if (recording.layers.empty() || recording.layers.front().heads.empty() ||
      !recording.layers.front().heads.front().HasAttention())
  {
    return std::nullopt;
  }
  const std::vector<RecordedHead>& heads = recording.layers.front().heads;
  return std::any_of(heads.begin(), heads.end(), LooksAhead);
}

std::string DropStoredAttention(Recording& recording)
{
  double deviation = 0;
  std::string where;
  bool both = false;
  if (recording.sequenceOffsets.size() > 1 && recording.SequenceLength(0) > 0)
  {
    for (const RecordedLayer& layer : recording.layers)
    {
      for (std::size_t h = 0; h < layer.heads.size(); ++h)
      {
        if (!layer.heads[h].HasAttention() || !layer.heads[h].query.IsRecorded())
        {
          continue;
        }
        both = true;
        const double found = Deviation(recording, layer, h);
        if (found > deviation)
        {
          deviation = found;
          where = "layer " + std::to_string(layer.index) + ", head " + std::to_string(h);
        }
      }
    }
  }
  if (!both)
  {
    return {};
  }
  if (deviation > AttentionTolerance)
  {
    return "the stored attention is shown, as queries and keys do not give it (" + where +
           ": weights differ by " + std::to_string(deviation) +
           "): the scores have another scale, a bias or a cap.";
  }
  for (RecordedLayer& layer : recording.layers)
  {
    for (RecordedHead& head : layer.heads)
    {
      head.weights.clear();
      head.scores.clear();
    }
  }
  return "the stored attention is not kept, as queries and keys give it.";
}

}
