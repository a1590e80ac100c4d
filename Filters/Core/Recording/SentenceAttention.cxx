#include "SentenceAttention.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace atlas
{
namespace
{

void CheckOptions(const SentenceOptions& options, std::int64_t length)
{
  const std::size_t count = length;
  ThrowIf<OptionError>(!(options.threshold >= 0),
    "Threshold: expected a weight of at least 0, found ", options.threshold, ".");
  for (const std::vector<bool>* flags : { &options.hidden, &options.chosen })
  {
    ThrowIf<OptionError>(!flags->empty() && flags->size() != count, "expected a flag for each of ",
      length, " tokens, found ", flags->size(), ".");
  }
}

/// The queries that are shown, in whole blocks: values depend in their last bits on where blocks
/// begin and end.
KeyRange ShownBlocks(const SentenceOptions& options, std::int64_t length)
{
  const std::int64_t begin = std::max<std::int64_t>(options.queries.begin, 0);
  const std::int64_t end = std::min(options.queries.end, length);
  if (begin >= end)
  {
    return {};
  }
  return { begin - begin % QueriesPerBlock,
    std::min(BlockCount(end, QueriesPerBlock) * QueriesPerBlock, length) };
}

bool IsSet(const std::vector<bool>& flags, std::int64_t i)
{
  return !flags.empty() && flags[i];
}

/// The rows of some queries, and what becomes of them.
class Step
{
public:
  Step(const SentenceOptions& options, std::int64_t length, std::int64_t queries, bool hasSinks)
    : Options(options)
    , Queries(queries)
    , Length(length)
    , HasSinks(hasSinks)
    , HasHidden(
        std::find(options.hidden.begin(), options.hidden.end(), true) != options.hidden.end())
    , Values(ToIndex(this->Rows() * length))
  {
  }

  /// Queries in a step.
  std::int64_t Rows() const { return std::min(QueriesAtOnce(this->Length), this->Queries); }

  float* Row(std::int64_t row) { return this->Values.data() + row * this->Length; }

  /// Hides tokens and leaves out those that are not chosen.
  void Choose(std::int64_t query, float* row) const
  {
    if (IsSet(this->Options.hidden, query))
    {
      std::fill_n(row, this->Length, 0.0F);
      return;
    }
    if (this->HasHidden)
    {
      this->Hide(row);
    }
    if (this->Options.chosen.empty())
    {
      return;
    }
    const bool ofKeys = this->Options.chosenSide == TokenSide::Key;
    for (std::int64_t key = 0; key < this->Length; ++key)
    {
      row[key] = IsSet(this->Options.chosen, ofKeys ? key : query) ? row[key] : 0;
    }
  }

  void AppendLines(std::int64_t query, const float* row, std::vector<AttentionLink>& lines) const
  {
    if (!this->Options.queries.Has(query))
    {
      return;
    }
    const std::int64_t end = std::min(this->Options.keys.end, this->Length);
    for (std::int64_t key = std::max(this->Options.keys.begin, std::int64_t{ 0 }); key < end; ++key)
    {
      if (row[key] > 0 && static_cast<double>(row[key]) >= this->Options.threshold)
      {
        lines.push_back(
          { static_cast<std::int32_t>(query), static_cast<std::int32_t>(key), row[key] });
      }
    }
  }

private:
  const SentenceOptions& Options;
  std::int64_t Queries; ///< of all steps
  std::int64_t Length;
  bool HasSinks;
  bool HasHidden;
  std::vector<float> Values;

  void Hide(float* row) const
  {
    const double sinks =
      this->HasSinks ? std::max(1 - std::accumulate(row, row + this->Length, 0.0), 0.0) : 0;
    double sum = 0;
    for (std::int64_t key = 0; key < this->Length; ++key)
    {
      row[key] = this->Options.hidden[key] ? 0 : row[key];
      sum += static_cast<double>(row[key]);
    }
    if (this->Options.renormalize && sum > 0)
    {
      std::for_each(row, row + this->Length, [total = sum + sinks](float& value)
        { value = static_cast<float>(static_cast<double>(value) / total); });
    }
  }
};

/// What a block of queries adds to the result.
struct Part
{
  std::vector<AttentionLink> lines;
  float largest = 0;
};

/// Turns the values of queries begin <= i < end into lines and, with `sums`, into sums.
void AddRows(Step& step, std::int64_t begin, std::int64_t end, bool sums, SentenceAttention& result,
  int threads)
{
  std::vector<Part> parts(BlockCount(end - begin, QueriesPerBlock));
  const std::int64_t length = result.given.size();
  ForBlocks(end - begin, QueriesPerBlock, threads,
    [&](std::int64_t first, std::int64_t last)
    {
      Part& part = parts[first / QueriesPerBlock];
      for (std::int64_t i = first; i < last; ++i)
      {
        float* row = step.Row(i);
        step.Choose(begin + i, row);
        step.AppendLines(begin + i, row, part.lines);
        if (sums)
        {
          result.given[begin + i] = std::accumulate(row, row + length, 0.0);
          part.largest = std::max(part.largest, *std::max_element(row, row + length));
        }
      }
    });
  ForBlocks(sums ? length : 0, QueriesPerBlock, threads,
    [&](std::int64_t first, std::int64_t last)
    {
      for (std::int64_t row = 0; row < end - begin; ++row)
      {
        for (std::int64_t key = first; key < last; ++key)
        {
          result.received[key] += static_cast<double>(step.Row(row)[key]);
        }
      }
    });
  for (const Part& part : parts)
  {
    result.lines.insert(result.lines.end(), part.lines.begin(), part.lines.end());
    result.largest = std::max(result.largest, part.largest);
  }
}

}

void EvaluateSentence(const Recording& recording, const SentenceOptions& options,
  SentenceAttention& result, int threads, const Progress& progress, const SentenceSums* known)
{
  EvaluateAttention(recording, options.sequence, options.layer, options.head, options.quantity, 0,
    0, nullptr); // checks the place
  const std::int64_t length = AttentionLength(recording, options.sequence);
  CheckOptions(options, length);
  const std::vector<double> zeros(length);
  result = { known != nullptr ? *known : SentenceSums{ zeros, zeros, 0 }, {} };
  const KeyRange queries = known != nullptr ? ShownBlocks(options, length) : KeyRange{ 0, length };
  const std::int64_t count = queries.end - queries.begin;
  Step step(options, length, count, HasSinks(recording, options.layer, options.quantity));
  AttentionRows rows{ options.sequence, options.layer, options.head, options.quantity,
    queries.begin, queries.begin };
  for (; rows.end < queries.end; rows.begin = rows.end)
  {
    rows.end = std::min(rows.begin + step.Rows(), queries.end);
    EvaluateAttentionRows(recording, rows, step.Row(0), threads,
      progress.Part(rows.begin - queries.begin, rows.end - queries.begin, count));
    AddRows(step, rows.begin, rows.end, known == nullptr, result, threads);
  }
}

bool IsCausal(const Recording& recording, std::int64_t sequence)
{
  const auto isCausal = [](const SharedMatrix& weights)
  {
    for (std::int64_t query = 0; query < weights.rows; ++query)
    {
      const float* row = weights.Row(query);
      if (std::any_of(
            row + query + 1, row + weights.columns, [](float weight) { return weight != 0; }))
      {
        return false;
      }
    }
    return true;
  };
  const auto isCausalHead = [&](const RecordedHead& head)
  {
    return head.weights.empty() || (sequence == AllSequences ? std::all_of(head.weights.begin(),
                                                                 head.weights.end(), isCausal)
                                                             : isCausal(head.weights[sequence]));
  };
  return recording.mask == AttentionMask::Causal && recording.tokens.keyEnd.empty() &&
         std::all_of(recording.layers.begin(), recording.layers.end(),
           [&](const RecordedLayer& layer)
           { return std::all_of(layer.heads.begin(), layer.heads.end(), isCausalHead); });
}

}
