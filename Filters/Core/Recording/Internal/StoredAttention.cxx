#include "StoredAttention.h"

#include "Base/Error.h"
#include "Base/Parallel.h"
#include "Numerics/AttentionKernels.h"
#include "Numerics/MatrixProduct.h"
#include "Recording/RecordedAttention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace atlas
{
namespace
{

/// See DropStoredAttention.
constexpr double LeastTolerance = 0.02;
constexpr double TolerancePerScore = 1.0 / 512;
constexpr double LargestTolerance = 0.25;

/// Masked scores are -infinity, -1e5 in old TransformerLens files, or the least float elsewhere.
constexpr float MaskedScore = -5e4F;

/// Weights that are computed at once, by one thread.
constexpr std::int64_t BlockSize = std::int64_t{ 1 } << 18;

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

/// The queries begin <= i < end of a sequence, for one head.
struct ComparedBlock
{
  std::int32_t layer = 0;
  std::int64_t head = 0;
  std::int64_t sequence = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The query of a block for which stored and computed attention differ the most, measured by what
/// is tolerated.
struct Deviation
{
  double share =
    0; ///< of the attention that lies on other keys; infinite for numbers that are none
  double tolerance = LeastTolerance; ///< the share that rounding may cause
  std::int64_t query = 0;

  double Excess() const { return this->share / this->tolerance; }
};

/// Blocks of all queries of the heads that have both attention and what gives it.
std::vector<ComparedBlock> BlocksToCompare(const Recording& recording)
{
  std::vector<ComparedBlock> blocks;
  for (const RecordedLayer& layer : recording.layers)
  {
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      if (!layer.heads[h].HasAttention() || !layer.heads[h].query.IsRecorded())
      {
        continue;
      }
      for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
      {
        const std::int64_t length = recording.SequenceLength(s);
        const std::int64_t step =
          std::max(BlockSize / std::max<std::int64_t>(length, 1), std::int64_t{ 1 });
        for (std::int64_t begin = 0; begin < length; begin += step)
        {
          blocks.push_back({ layer.index, static_cast<std::int64_t>(h), s, begin,
            std::min(begin + step, length) });
        }
      }
    }
  }
  return blocks;
}

/// The share of a query's attention that may lie on other keys as scores were rounded.
double Tolerance(const float* scores, std::int64_t count)
{
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i)
  {
    largest = std::max(largest, std::abs(scores[i]));
  }
  return std::clamp(
    TolerancePerScore * static_cast<double>(largest), LeastTolerance, LargestTolerance);
}

/// The total variation distance of the weights p, stored, and q, computed: half the sum over keys
/// of |p - q|. It is the share of the attention that lies on other keys, and so relative to all of
/// it: it does not become small with the weights of a long sequence, and a relative error e of
/// every weight gives e / 2.
double Share(const float* p, const float* q, std::int64_t length)
{
  double sum = 0;
  for (std::int64_t i = 0; i < length; ++i)
  {
    sum += std::abs(static_cast<double>(p[i]) - static_cast<double>(q[i]));
  }
  return std::isfinite(sum) ? sum / 2 : HUGE_VAL;
}

Deviation Compare(const Recording& stored, const Recording& computed, const ComparedBlock& block)
{
  const RecordedLayer& layer = FindLayer(stored, block.layer);
  HeadScores head = MaskOf(stored, block.sequence, layer);
  if (!layer.sinks.empty())
  {
    head.sink = layer.sinks.at(block.head);
  }
  const std::int64_t length = head.length;
  std::vector<float> p((block.end - block.begin) * length);
  std::vector<float> q(p.size());
  EvaluateAttention(stored, block.sequence, block.layer, block.head, AttentionQuantity::Weights,
    block.begin, block.end, p.data());
  EvaluateAttention(computed, block.sequence, block.layer, block.head, AttentionQuantity::Scores,
    block.begin, block.end, q.data());
  Deviation largest;
  for (std::int64_t query = block.begin; query < block.end; ++query)
  {
    const std::size_t row = (query - block.begin) * length;
    Deviation found;
    found.query = query;
    found.tolerance = Tolerance(q.data() + row, head.KeyCount(query + 1));
    NormalizeScores(head, query, query + 1, length, q.data() + row);
    found.share = Share(p.data() + row, q.data() + row, length);
    largest = found.Excess() > largest.Excess() ? found : largest;
  }
  return largest;
}

/// A copy whose attention is what its queries and keys give.
Recording WithoutAttention(const Recording& recording)
{
  Recording copy = recording;
  for (RecordedLayer& layer : copy.layers)
  {
    for (RecordedHead& head : layer.heads)
    {
      head.weights.clear();
      head.scores.clear();
    }
  }
  return copy;
}

/// Whether attention can be computed; CheckRecording refuses what cannot.
bool HasFittingSlopes(const Recording& recording)
{
  return recording.alibiSlopes.empty() ||
         std::all_of(recording.layers.begin(), recording.layers.end(),
           [&](const RecordedLayer& layer)
           { return layer.heads.size() == recording.alibiSlopes.size(); });
}

std::string DescribeDeviation(const ComparedBlock& block, const Deviation& deviation)
{
  std::array<char, 32> percent{};
  std::snprintf(percent.data(), percent.size(), "%.1f %%", 100 * deviation.share);
  return Concat("layer ", block.layer, ", head ", block.head, ", sequence ", block.sequence,
    ", query ", deviation.query, ": ",
    std::isfinite(deviation.share)
      ? std::string(percent.data()) + " of the attention lies on other keys"
      : "its weights are not finite");
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

std::string DropStoredAttention(Recording& recording, int threads)
{
  const std::vector<ComparedBlock> blocks = BlocksToCompare(recording);
  if (blocks.empty() || !HasFittingSlopes(recording))
  {
    return {};
  }
  Recording computed = WithoutAttention(recording);
  std::vector<Deviation> deviations(blocks.size());
  {
    const SingleThreadedBlas blas;
    ParallelFor(blocks.size(), threads,
      [&](std::int64_t i) { deviations[i] = Compare(recording, computed, blocks[i]); });
  }
  const auto largest = std::max_element(deviations.begin(), deviations.end(),
    [](const Deviation& a, const Deviation& b) { return a.Excess() < b.Excess(); });
  if (largest->Excess() > 1)
  {
    return "the stored attention is shown, as queries and keys do not give it (" +
           DescribeDeviation(blocks[largest - deviations.begin()], *largest) +
           "): the scores have another scale, a bias, a cap, a window or a sink, or were rounded "
           "more coarsely "
           "than in half precision.";
  }
  recording = std::move(computed);
  return "the stored attention is not kept, as queries and keys give it.";
}

}
