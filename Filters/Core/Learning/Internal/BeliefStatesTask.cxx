#include "BeliefStatesTask.h"

#include "BeliefStates.h"
#include "Index.h"
#include "RecordTransformer.h"

#include <numeric>
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

class BeliefStatesTask : public SequenceTask
{
public:
  explicit BeliefStatesTask(const TaskOptions& options)
    : SequenceTask(options.seed, HeldOutSequences)
    , Context(options.context)
  {
    RequireFixed("Vocabulary", options.vocabulary, Mess3States);
    RequireBetween("Context", this->Context, 1, 65536);
    this->MeasureBest();
  }

  void Configure(TransformerConfig& config) const override
  {
    config.vocabulary = config.outputVocabulary = Mess3States;
    config.positions = this->Context;
    config.mask = AttentionMask::Causal;
  }

  std::vector<std::string> MeasureNames() const override { return { "Belief R2", "Excess Loss" }; }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    const TrainingBatch batch = this->MakeHeldOut();
    RecordOptions options;
    options.queriesAndKeys = options.values = false;
    options.residual = true;
    options.layers = { model.GetConfig().layers - 1 };
    options.threads = threads;
    const Recording recording = RecordTransformer(model, batch.input, options);
    const SharedMatrix& residual = recording.residual.back();
    const double r2 = RegressBeliefs(this->Beliefs, residual.Row(0), residual.columns).r2;
    return { r2, EvaluateBatch(model, batch, threads).loss - this->BestLoss };
  }

  std::vector<std::string> TokenNames() const override { return LetterNames(Mess3States); }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t /*index*/) const override
  {
    std::vector<std::int64_t> symbols;
    std::int64_t state = random.Integer(Mess3States);
    while (static_cast<std::int64_t>(symbols.size()) <= this->Context)
    {
      state = DrawNear(random, state, 1 - 2 * this->Process.x);
      symbols.push_back(DrawNear(random, state, this->Process.alpha));
    }
    AddNextTokens(batch, std::move(symbols), true);
  }

private:
  static constexpr std::int64_t HeldOutSequences = 256;
  Mess3 Process;
  std::int64_t Context;
  double BestLoss = 0;         ///< of the best predictor on the held-out sequences
  std::vector<Belief> Beliefs; ///< at each of their tokens

  void MeasureBest()
  {
    const TrainingBatch batch = this->MakeHeldOut();
    for (std::size_t s = 0; s < batch.input.tokens.size(); ++s)
    {
      std::vector<std::int64_t> symbols = batch.input.tokens[s];
      const std::vector<Belief> beliefs = BeliefsAfter(this->Process, symbols);
      this->Beliefs.insert(this->Beliefs.end(), beliefs.begin(), beliefs.end());
      symbols.push_back(batch.targets[(s + 1) * ToIndex(this->Context) - 1]);
      const std::vector<double> losses = OptimalLosses(this->Process, symbols);
      this->BestLoss = std::accumulate(losses.begin(), losses.end(), this->BestLoss);
    }
    this->BestLoss /= static_cast<double>(batch.targets.size());
  }
};

}

std::unique_ptr<LearningTask> MakeBeliefStatesTask(const TaskOptions& options)
{
  return std::make_unique<BeliefStatesTask>(options);
}

}
