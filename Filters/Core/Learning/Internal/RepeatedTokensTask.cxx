#include "Analysis/HeadPatterns.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "Circuits/HeadComposition.h"
#include "Run/RecordTransformer.h"
#include "SequenceTask.h"
#include "Tasks.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// The scores of a head, over all sequences of a recording.
struct InductionScores
{
  double induction = 0;
  double previous = 0;
};

/// The scores of all heads of a recording: [layers, heads].
std::vector<InductionScores> ScoresOf(
  const Recording& recording, const std::vector<RepeatedTokens>& repeated, int threads)
{
  const std::int64_t heads = recording.layers[0].heads.size();
  std::vector<InductionScores> scores(recording.layers.size() * ToIndex(heads));
  ParallelFor(scores.size(), threads,
    [&](std::int64_t i)
    {
      PatternSums first;
      PatternSums later;
      std::vector<float> work;
      for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
      {
        const RepeatedTokens& tokens = repeated[s];
        const auto measure = [&](std::int64_t begin, std::int64_t end)
        {
          return MeasurePatterns(recording, tokens, s, i / heads, i % heads, begin, end, {}, work);
        };
        first.Add(measure(0, tokens.Period()));
        later.Add(measure(tokens.Period(), recording.SequenceLength(s)));
      }
      // Later blocks repeat what the first one says: heads need the token before there alone.
      scores[i] = { later.PrefixMatching(),
        first.Score(HeadPattern::PreviousToken, PatternMeasure::Stripe) };
    });
  return scores;
}

/// The index of the first of the scores first <= i < end that is the largest.
std::int64_t Best(const std::vector<InductionScores>& scores, double InductionScores::* score,
  std::int64_t first, std::int64_t end)
{
  const auto begin = scores.begin();
  return std::max_element(begin + first, begin + end,
           [score](const auto& a, const auto& b) { return a.*score < b.*score; }) -
         begin;
}

double KeyComposition(
  const Transformer& model, const std::vector<InductionScores>& scores, int threads)
{
  const std::int64_t heads = model.GetConfig().heads;
  const std::int64_t count = scores.size();
  if (count == heads)
  {
    return 0; // one layer
  }
  const std::int64_t from = Best(scores, &InductionScores::previous, 0, heads);
  const std::int64_t to = Best(scores, &InductionScores::induction, heads, count);
  HeadCompositionOptions options;
  options.threads = threads;
  const std::vector<ComposedHeads> pairs = FindHeadComposition(model, options);
  return std::find_if(pairs.begin(), pairs.end(),
    [&](const ComposedHeads& pair)
    {
      return pair.fromLayer * heads + pair.fromHead == from &&
             pair.toLayer * heads + pair.toHead == to;
    })
    ->score;
}

/// The mean loss of rows from the second block on.
double RepeatLoss(const BatchEvaluation& evaluation, const TrainingBatch& batch,
  const std::vector<RepeatedTokens>& repeated)
{
  double sum = 0;
  std::int64_t count = 0;
  std::int64_t first = 0;
  for (std::size_t s = 0; s < repeated.size(); ++s)
  {
    const auto end = first + static_cast<std::int64_t>(batch.input.tokens[s].size());
    for (std::int64_t row = first + repeated[s].Period(); row < end; ++row)
    {
      sum += evaluation.rowLoss[row]; // 0 without a target
      count += batch.targets[row] >= 0 ? 1 : 0;
    }
    first = end;
  }
  return sum / static_cast<double>(count);
}

/// Random blocks of tokens, each repeated until the context is full: what repeats can be predicted
/// by an induction head alone (Olsson et al., "In-context learning and induction heads", 2022).
///
/// The length of a block is random, from a quarter to half of the context. If it were fixed, a head
/// could find the earlier token by its position. The tokens of a block are all different where the
/// vocabulary allows it, so the token that came before determines the next one. The loss is on
/// every next token of the context.
///
/// Measures, on 64 held-out sequences:
/// - Induction: the largest prefix-matching score of a head, PatternSums::PrefixMatching.
/// - Previous Token: the largest mean attention of a head to the token before, over the queries of
///   the first block, whose tokens are the ones that induction heads look up.
/// - K-Composition (FindHeadComposition) of the strongest head of the first layer for the previous
///   token with the strongest induction head of a later layer; 0 with one layer.
/// - Repeat Loss: the mean loss of tokens that are predicted from the second block or a later one.
class RepeatedTokensTask : public SequenceTask
{
public:
  explicit RepeatedTokensTask(const TaskOptions& options)
    : SequenceTask(options, 64)
  {
    RequireBetween("Vocabulary", options.vocabulary, 2, 1000000);
    RequireBetween("Context", options.context, 8, 65536);
  }

  std::vector<std::string> MeasureNames() const override
  {
    return { "Induction", "Previous Token", "K-Composition", "Repeat Loss" };
  }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    const TrainingBatch batch = this->MakeHeldOut();
    RecordOptions options;
    options.values = false;
    options.threads = threads;
    const Recording recording = RecordTransformer(model, batch.input, options);
    std::vector<RepeatedTokens> repeated;
    repeated.reserve(recording.SequenceCount());
    for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
    {
      repeated.emplace_back(recording, s);
    }
    const std::vector<InductionScores> scores = ScoresOf(recording, repeated, threads);
    const auto largest = [&](double InductionScores::* score)
    { return scores[Best(scores, score, 0, scores.size())].*score; };
    return { largest(&InductionScores::induction), largest(&InductionScores::previous),
      KeyComposition(model, scores, threads),
      RepeatLoss(EvaluateBatch(model, batch, threads), batch, repeated) };
  }

  std::vector<std::string> TokenNames() const override
  {
    return NumberNames(this->Options.vocabulary);
  }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t, std::int64_t) const override
  {
    AddNextTokens(
      batch, DrawRepeatedTokens(random, this->Options.context, this->Options.vocabulary), false);
  }
};

}

std::unique_ptr<LearningTask> MakeRepeatedTokensTask(const TaskOptions& options)
{
  return std::make_unique<RepeatedTokensTask>(options);
}

}
