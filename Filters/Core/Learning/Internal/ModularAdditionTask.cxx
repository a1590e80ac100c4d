#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Pi.h"
#include "SequenceTask.h"
#include "Tasks.h"
#include "Weights/FloatValues.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <Eigen/Core>

namespace atlas
{
namespace
{

constexpr std::int64_t PairLength = 3;
constexpr std::int64_t Frequencies = 5;

/// "a b =" and the answer a + b mod p: networks that are trained on a part of the pairs first learn
/// these by heart and much later all of them, by rotations on circles (Power et al., "Grokking",
/// 2022; Nanda et al., "Progress measures for grokking via mechanistic interpretability", 2023).
///
/// Token p is "="; the p outputs are the numbers. Only the last token has a target. The pairs to
/// train on are drawn by the seed; all others are held out. A batch of size 0 is all of the former;
/// a smaller one is a random sample of them, and a larger one all.
///
/// Measures: Train Accuracy, on the pairs that are trained on; Fourier Energy, the share of the
/// squared norm of the embeddings of the numbers in the five strongest frequencies over the numbers
/// modulo p, StrongestFrequencies.
class ModularAdditionTask : public LearningTask
{
public:
  explicit ModularAdditionTask(const TaskOptions& options)
    : Modulus(options.vocabulary)
    , Seed(options.seed)
  {
    RequireBetween("Vocabulary", this->Modulus, 2, 500);
    RequireFixed("Context", options.context, PairLength);
    ThrowIf<OptionError>(!(options.trainShare > 0 && options.trainShare < 1),
      "TrainShare: expected a number above 0 and below 1, found ", options.trainShare, ".");
    LearningRandom random(options.seed, RandomPurpose::Split);
    const std::int64_t pairs = this->Modulus * this->Modulus;
    this->Order = random.Permutation(pairs);
    this->Trained = std::clamp<std::int64_t>(
      std::llround(options.trainShare * static_cast<double>(pairs)), 1, pairs - 1);
  }

  void Configure(TransformerConfig& config) const override
  {
    ThrowIf<OptionError>(config.tiedUnembedding,
      "Tied: expected an unembedding of its own for ModularAddition, whose outputs are not its "
      "tokens, found the transpose of the embedding.");
    config.vocabulary = this->Modulus + 1;
    config.outputVocabulary = this->Modulus;
    config.positions = PairLength;
    config.mask = AttentionMask::Causal;
  }

  TrainingBatch MakeBatch(std::int64_t step, std::int64_t size) const override
  {
    ThrowIf<OptionError>(
      size < 0, "BatchSize: expected 0, for all pairs, or more, found ", size, ".");
    std::vector<std::int64_t> pairs(this->Order.begin(), this->Order.begin() + this->Trained);
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
    return this->Ask({ this->Order.begin() + this->Trained, this->Order.end() });
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

std::vector<double> CyclicSpectrum(const float* vectors, std::int64_t p, std::int64_t dimension)
{
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::MatrixXd values = Eigen::Map<const RowMajor>(vectors, p, dimension).cast<double>();
  std::vector<double> spectrum;
  Eigen::RowVectorXd cosine(p);
  Eigen::RowVectorXd sine(p);
  for (std::int64_t k = 0; k <= p / 2; ++k)
  {
    for (std::int64_t a = 0; a < p; ++a)
    {
      const double angle = 2 * Pi * static_cast<double>(k * a % p) / static_cast<double>(p);
      cosine[a] = std::cos(angle);
      sine[a] = std::sin(angle);
    }
    const double power = (cosine * values).squaredNorm() + (sine * values).squaredNorm();
    const bool isPair = k > 0 && 2 * k < p;
    spectrum.push_back((isPair ? 2 : 1) * power / static_cast<double>(p));
  }
  return spectrum;
}

double StrongestFrequencies(const std::vector<double>& spectrum, std::int64_t count)
{
  const double sum = std::accumulate(spectrum.begin(), spectrum.end(), 0.);
  std::vector<double> falling(spectrum.begin() + 1, spectrum.end());
  std::sort(falling.begin(), falling.end(), std::greater<>());
  falling.resize(std::min(falling.size(), ToIndex(count)));
  return sum > 0 ? std::accumulate(falling.begin(), falling.end(), 0.) / sum : 0;
}

std::unique_ptr<LearningTask> MakeModularAdditionTask(const TaskOptions& options)
{
  return std::make_unique<ModularAdditionTask>(options);
}

}
