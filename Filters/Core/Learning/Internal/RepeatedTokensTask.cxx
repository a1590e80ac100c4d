#include "RepeatedTokensTask.h"

#include "HeadComposition.h"
#include "HeadPatterns.h"
#include "Index.h"
#include "Parallel.h"
#include "RecordTransformer.h"

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

/// The scores of all heads, by layer and head.
class ScoreTable
{
public:
  ScoreTable(const Recording& recording, const std::vector<RepeatedTokens>& repeated, int threads)
    : Layers(recording.layers.size())
    , Heads(recording.layers[0].heads.size())
    , Scores(this->Layers * this->Heads)
  {
    ParallelFor(this->Layers * this->Heads, threads,
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
            return MeasurePatterns(
              recording, tokens, s, i / this->Heads, i % this->Heads, begin, end, {}, work);
          };
          first.Add(measure(0, tokens.Period()));
          later.Add(measure(tokens.Period(), recording.SequenceLength(s)));
        }
        // Later blocks repeat what the first one says: heads need the token before there alone.
        this->Scores[i] = { later.PrefixMatching(),
          first.Score(HeadPattern::PreviousToken, PatternMeasure::Stripe) };
      });
  }

  /// The first of the heads of layers first <= l < end with the largest score. The layers exist.
  HeadPlace Best(double InductionScores::* score, std::int64_t first, std::int64_t end) const
  {
    const auto begin = this->Scores.begin();
    const auto best = std::max_element(begin + first * this->Heads, begin + end * this->Heads,
      [score](const InductionScores& a, const InductionScores& b) { return a.*score < b.*score; });
    const std::int64_t place = best - begin;
    return { static_cast<std::int32_t>(place / this->Heads),
      static_cast<std::int32_t>(place % this->Heads) };
  }

  double Largest(double InductionScores::* score) const
  {
    const HeadPlace place = this->Best(score, 0, this->Layers);
    return this->Scores[place.layer * this->Heads + place.head].*score;
  }

  std::int64_t LayerCount() const { return this->Layers; }

private:
  std::int64_t Layers;
  std::int64_t Heads;
  std::vector<InductionScores> Scores;
};

double KeyComposition(const Transformer& model, const ScoreTable& scores, int threads)
{
  if (scores.LayerCount() < 2)
  {
    return 0;
  }
  const HeadPlace from = scores.Best(&InductionScores::previous, 0, 1);
  const HeadPlace to = scores.Best(&InductionScores::induction, 1, scores.LayerCount());
  HeadCompositionOptions options;
  options.threads = threads;
  const std::vector<ComposedHeads> pairs = FindHeadComposition(model, options);
  const auto found = std::find_if(pairs.begin(), pairs.end(),
    [&](const ComposedHeads& pair)
    {
      return pair.fromLayer == from.layer && pair.fromHead == from.head &&
             pair.toLayer == to.layer && pair.toHead == to.head;
    });
  return found->score;
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

class RepeatedTokensTask : public SequenceTask
{
public:
  explicit RepeatedTokensTask(const TaskOptions& options)
    : SequenceTask(options.seed, HeldOutSequences)
    , Vocabulary(options.vocabulary)
    , Context(options.context)
  {
    RequireBetween("Vocabulary", this->Vocabulary, 2, 1000000);
    RequireBetween("Context", this->Context, 8, 65536);
  }

  void Configure(TransformerConfig& config) const override
  {
    config.vocabulary = config.outputVocabulary = this->Vocabulary;
    config.positions = this->Context;
    config.mask = AttentionMask::Causal;
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
    const ScoreTable scores(recording, repeated, threads);
    return { scores.Largest(&InductionScores::induction),
      scores.Largest(&InductionScores::previous), KeyComposition(model, scores, threads),
      RepeatLoss(EvaluateBatch(model, batch, threads), batch, repeated) };
  }

  std::vector<std::string> TokenNames() const override { return NumberNames(this->Vocabulary); }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t /*index*/) const override
  {
    AddNextTokens(batch, DrawRepeatedTokens(random, this->Context, this->Vocabulary), false);
  }

private:
  static constexpr std::int64_t HeldOutSequences = 64;
  std::int64_t Vocabulary;
  std::int64_t Context;
};

}

std::unique_ptr<LearningTask> MakeRepeatedTokensTask(const TaskOptions& options)
{
  return std::make_unique<RepeatedTokensTask>(options);
}

}
