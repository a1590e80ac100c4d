#include "ModularAdditionTask.h"

#include "BatchEvaluation.h"
#include "CyclicSpectrum.h"
#include "Error.h"
#include "FloatValues.h"
#include "Index.h"
#include "LearningRandom.h"
#include "SequenceTask.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

constexpr std::int64_t PairLength = 3;
constexpr std::int64_t Frequencies = 5;

class ModularAdditionTask : public LearningTask
{
public:
  explicit ModularAdditionTask(const TaskOptions& options)
    : Modulus(options.vocabulary)
    , Seed(options.seed)
  {
    RequireBetween("Vocabulary", this->Modulus, 2, 500);
    RequireFixed("Context", options.context, PairLength);
    if (!(options.trainShare > 0 && options.trainShare < 1))
    {
      throw OptionError("TrainShare: expected a number above 0 and below 1, found " +
                        std::to_string(options.trainShare) + ".");
    }
    LearningRandom random(options.seed, RandomPurpose::Split);
    const std::int64_t pairs = this->Modulus * this->Modulus;
    this->Order = random.Permutation(pairs);
    const auto wanted =
      static_cast<std::int64_t>(std::llround(options.trainShare * static_cast<double>(pairs)));
    this->Trained = std::clamp<std::int64_t>(wanted, 1, pairs - 1);
  }

  void Configure(TransformerConfig& config) const override
  {
    RequireFree(config, "ModularAddition");
    config.vocabulary = this->Modulus + 1;
    config.outputVocabulary = this->Modulus;
    config.positions = PairLength;
    config.mask = AttentionMask::Causal;
  }

  TrainingBatch MakeBatch(std::int64_t step, std::int64_t size) const override
  {
    if (size < 0)
    {
      throw OptionError(
        "BatchSize: expected 0, for all pairs, or more, found " + std::to_string(size) + ".");
    }
    std::vector<std::int64_t> pairs(
      this->Order.begin(), this->Order.begin() + static_cast<std::ptrdiff_t>(this->Trained));
    if (size > 0 && size < this->Trained)
    {
      LearningRandom random(this->Seed, RandomPurpose::Batches, step);
      random.Shuffle(pairs, size);
      pairs.resize(size);
    }
    return this->Ask(pairs);
  }

  TrainingBatch MakeHeldOut() const override
  {
    return this->Ask(
      { this->Order.begin() + static_cast<std::ptrdiff_t>(this->Trained), this->Order.end() });
  }

  std::vector<std::string> MeasureNames() const override
  {
    return { "Train Accuracy", "Fourier Energy" };
  }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    const FloatValues embedding(model.GetWeights().tokenEmbedding);
    const std::vector<double> spectrum =
      CyclicSpectrum(embedding.Data(), this->Modulus, model.GetConfig().modelDimension);
    return { EvaluateBatch(model, this->MakeBatch(0, 0), threads).accuracy,
      StrongestFrequencies(spectrum, Frequencies) };
  }

  std::map<std::string, std::string> Files() const override { return {}; }

  std::vector<std::string> TokenNames() const override
  {
    std::vector<std::string> names = NumberNames(this->Modulus);
    names.emplace_back("=");
    return names;
  }

private:
  std::int64_t Modulus;
  std::uint64_t Seed;
  std::int64_t Trained = 0;        ///< pairs that are trained on
  std::vector<std::int64_t> Order; ///< all pairs, as a p + b; those to train on first

  TrainingBatch Ask(const std::vector<std::int64_t>& pairs) const
  {
    TrainingBatch batch;
    for (const std::int64_t pair : pairs)
    {
      const std::int64_t a = pair / this->Modulus;
      const std::int64_t b = pair % this->Modulus;
      batch.input.tokens.push_back({ a, b, this->Modulus });
      batch.targets.insert(batch.targets.end(), { -1, -1, (a + b) % this->Modulus });
    }
    return batch;
  }
};

}

std::unique_ptr<LearningTask> MakeModularAdditionTask(const TaskOptions& options)
{
  return std::make_unique<ModularAdditionTask>(options);
}

}
