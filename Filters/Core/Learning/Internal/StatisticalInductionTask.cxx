#include "StatisticalInductionTask.h"

#include "Index.h"
#include "MarkovPredictors.h"

#include <numeric>
#include <utility>

namespace atlas
{
namespace
{

/// Draws an index by its probability; they begin at `shares`.
std::int64_t Choose(LearningRandom& random, const double* shares, std::int64_t count)
{
  double rest = random.Uniform();
  std::int64_t i = 0;
  while (i + 1 < count && rest >= shares[i])
  {
    rest -= shares[i++];
  }
  return i;
}

class StatisticalInductionTask : public SequenceTask
{
public:
  explicit StatisticalInductionTask(const TaskOptions& options)
    : SequenceTask(options.seed, HeldOutSequences)
    , States(options.vocabulary)
    , Context(options.context)
  {
    RequireBetween("Vocabulary", this->States, 2, 100);
    RequireBetween("Context", this->Context, 2, 65536);
    this->MeasureBaselines();
  }

  void Configure(TransformerConfig& config) const override
  {
    config.vocabulary = config.outputVocabulary = this->States;
    config.positions = this->Context;
    config.mask = AttentionMask::Causal;
  }

  std::vector<std::string> MeasureNames() const override
  {
    return { "Bayes Bigram", "Unigram", "Excess Loss" };
  }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    const double loss = EvaluateBatch(model, this->MakeHeldOut(), threads).loss;
    return { this->Bigram, this->Unigram, loss - this->Bigram };
  }

  std::vector<std::string> TokenNames() const override { return LetterNames(this->States); }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t /*index*/) const override
  {
    const std::vector<double> transitions = this->DrawTransitions(random);
    const std::vector<double> start = StationaryDistribution(transitions, this->States);
    std::vector<std::int64_t> tokens = { Choose(random, start.data(), this->States) };
    while (static_cast<std::int64_t>(tokens.size()) <= this->Context)
    {
      const double* row = transitions.data() + tokens.back() * this->States;
      tokens.push_back(Choose(random, row, this->States));
    }
    AddNextTokens(batch, std::move(tokens), true);
  }

private:
  static constexpr std::int64_t HeldOutSequences = 128;
  std::int64_t States;
  std::int64_t Context;
  double Bigram = 0;
  double Unigram = 0;

  std::vector<double> DrawTransitions(LearningRandom& random) const
  {
    std::vector<double> transitions(this->States * this->States);
    for (std::int64_t state = 0; state < this->States; ++state)
    {
      double* row = transitions.data() + state * this->States;
      double sum = 0;
      for (std::int64_t i = 0; i < this->States; ++i)
      {
        row[i] = random.Exponential();
        sum += row[i];
      }
      for (std::int64_t i = 0; i < this->States; ++i)
      {
        row[i] /= sum;
      }
    }
    return transitions;
  }

  /// The losses of the two predictors on the held-out sequences.
  void MeasureBaselines()
  {
    const TrainingBatch batch = this->MakeHeldOut();
    for (std::size_t s = 0; s < batch.input.tokens.size(); ++s)
    {
      std::vector<std::int64_t> tokens = batch.input.tokens[s];
      tokens.push_back(batch.targets[(s + 1) * ToIndex(this->Context) - 1]);
      const std::vector<double> bigram = BigramLosses(tokens, this->States);
      const std::vector<double> unigram = UnigramLosses(tokens, this->States);
      this->Bigram = std::accumulate(bigram.begin(), bigram.end(), this->Bigram);
      this->Unigram = std::accumulate(unigram.begin(), unigram.end(), this->Unigram);
    }
    this->Bigram /= static_cast<double>(batch.targets.size());
    this->Unigram /= static_cast<double>(batch.targets.size());
  }
};

}

std::unique_ptr<LearningTask> MakeStatisticalInductionTask(const TaskOptions& options)
{
  return std::make_unique<StatisticalInductionTask>(options);
}

}
