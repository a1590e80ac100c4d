#include "SequenceTask.h"
#include "Tasks.h"

#include <algorithm>
#include <cmath>
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

/// Sequences of random Markov chains, each of its own (Edelman et al., "The evolution of
/// statistical induction heads: in-context learning Markov chains", 2024): the transitions must be
/// learned from the sequence itself.
///
/// Each row of the transitions is drawn from the flat Dirichlet distribution, the first token from
/// the stationary distribution of the chain, as in the paper. The loss is on every token of the
/// context; the target of the last one is drawn too.
///
/// Measures, on 128 held-out sequences, as mean losses in nats:
/// - Bayes Bigram: of BigramLosses. - Unigram: of UnigramLosses.
/// - Excess Loss: the loss of the model less that of Bayes Bigram.
class StatisticalInductionTask : public SequenceTask
{
public:
  explicit StatisticalInductionTask(const TaskOptions& options)
    : SequenceTask(options, 128)
    , States(options.vocabulary)
  {
    RequireBetween("Vocabulary", options.vocabulary, 2, 100);
    RequireBetween("Context", options.context, 2, 65536);
    this->Bigram = this->MeanHeldOutLoss(
      [this](const auto& tokens) { return BigramLosses(tokens, this->States); });
    this->Unigram = this->MeanHeldOutLoss(
      [this](const auto& tokens) { return UnigramLosses(tokens, this->States); });
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
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t, std::int64_t) const override
  {
    const std::vector<double> transitions = this->DrawTransitions(random);
    const std::vector<double> start = StationaryDistribution(transitions, this->States);
    std::vector<std::int64_t> tokens = { Choose(random, start.data(), this->States) };
    while (static_cast<std::int64_t>(tokens.size()) <= this->Options.context)
    {
      const double* row = transitions.data() + tokens.back() * this->States;
      tokens.push_back(Choose(random, row, this->States));
    }
    AddNextTokens(batch, std::move(tokens), true);
  }

private:
  std::int64_t States;
  double Bigram;  ///< the loss of this predictor on the held-out sequences
  double Unigram; ///< likewise

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
      std::for_each(row, row + this->States, [sum](double& share) { share /= sum; });
    }
    return transitions;
  }
};

}

std::vector<double> BigramLosses(const std::vector<std::int64_t>& tokens, std::int64_t states)
{
  std::vector<double> counts(states * states, 1);
  std::vector<double> sums(states, static_cast<double>(states));
  std::vector<double> losses;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
  {
    double& count = counts[tokens[i] * states + tokens[i + 1]];
    double& sum = sums[tokens[i]];
    losses.push_back(std::log(sum / count));
    ++count;
    ++sum;
  }
  return losses;
}

std::vector<double> UnigramLosses(const std::vector<std::int64_t>& tokens, std::int64_t states)
{
  std::vector<double> counts(states, 1);
  auto sum = static_cast<double>(states);
  std::vector<double> losses;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
  {
    ++counts[tokens[i]];
    ++sum;
    losses.push_back(std::log(sum / counts[tokens[i + 1]]));
  }
  return losses;
}

std::vector<double> StationaryDistribution(std::vector<double> transitions, std::int64_t states)
{
  const auto at = [&](std::int64_t from, std::int64_t to) -> double&
  { return transitions[from * states + to]; };
  // Takes out the last state, whose visits become direct transitions between the others.
  for (std::int64_t last = states - 1; last > 0; --last)
  {
    double leaving = 0;
    for (std::int64_t to = 0; to < last; ++to)
    {
      leaving += at(last, to);
    }
    for (std::int64_t from = 0; from < last; ++from)
    {
      at(from, last) /= leaving;
      for (std::int64_t to = 0; to < last; ++to)
      {
        at(from, to) += at(from, last) * at(last, to);
      }
    }
  }
  std::vector<double> shares(states, 1);
  double sum = 1;
  for (std::int64_t to = 1; to < states; ++to)
  {
    double& share = shares[to];
    share = 0;
    for (std::int64_t from = 0; from < to; ++from)
    {
      share += shares[from] * at(from, to);
    }
    sum += share;
  }
  for (double& share : shares)
  {
    share /= sum;
  }
  return shares;
}

std::unique_ptr<LearningTask> MakeStatisticalInductionTask(const TaskOptions& options)
{
  return std::make_unique<StatisticalInductionTask>(options);
}

}
