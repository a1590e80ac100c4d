#include "Learning/BeliefStates.h"
#include "SequenceTask.h"
#include "Tasks.h"

#include <utility>

namespace atlas
{
namespace
{

/// Draws the next state, or a symbol: `same` with this probability, else one of the two others.
std::int64_t DrawNear(LearningRandom& random, std::int64_t same, double probability)
{
  if (random.Uniform() < probability)
  {
    return same;
  }
  return (same + 1 + random.Integer(Mess3States - 1)) % Mess3States;
}

/// Sequences of the process Mess3 (BeliefStates.h): to predict the next symbol as well as possible,
/// a network must keep track of what is to be believed of the hidden state. The loss is on every
/// token of the context; the target of the last one is drawn too. Where the context is short,
/// held-out sequences occur in training as well: nothing can be learned by heart from them that is
/// not a law of the process.
///
/// Measures, on 256 held-out sequences: Belief R2, of RegressBeliefs; Excess Loss, the mean loss
/// less that of the best predictor on the same tokens, OptimalLosses.
class BeliefStatesTask : public SequenceTask
{
public:
  explicit BeliefStatesTask(const TaskOptions& options)
    : SequenceTask(options, 256)
  {
    RequireFixed("Vocabulary", options.vocabulary, Mess3States);
    RequireBetween("Context", options.context, 1, 65536);
    this->BestLoss = this->MeanHeldOutLoss(
      [this](const auto& symbols) { return OptimalLosses(this->Process, symbols); });
  }

  std::vector<std::string> MeasureNames() const override { return { "Belief R2", "Excess Loss" }; }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    const TrainingBatch batch = this->MakeHeldOut();
    return { RegressBeliefs(this->Process, model, batch.input.tokens, threads).r2,
      EvaluateBatch(model, batch, threads).loss - this->BestLoss };
  }

  std::vector<std::string> TokenNames() const override { return LetterNames(Mess3States); }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t, std::int64_t) const override
  {
    std::vector<std::int64_t> symbols;
    std::int64_t state = random.Integer(Mess3States);
    while (static_cast<std::int64_t>(symbols.size()) <= this->Options.context)
    {
      state = DrawNear(random, state, 1 - 2 * this->Process.x);
      symbols.push_back(DrawNear(random, state, this->Process.alpha));
    }
    AddNextTokens(batch, std::move(symbols), true);
  }

private:
  Mess3 Process;
  double BestLoss; ///< of the best predictor on the held-out sequences
};

}

std::unique_ptr<LearningTask> MakeBeliefStatesTask(const TaskOptions& options)
{
  return std::make_unique<BeliefStatesTask>(options);
}

}
