#include "SortedListTask.h"

#include "Error.h"
#include "Index.h"

#include <algorithm>
#include <utility>

namespace atlas
{
namespace
{

class SortedListTask : public SequenceTask
{
public:
  explicit SortedListTask(const TaskOptions& options)
    : SequenceTask(options.seed, HeldOutSequences)
    , Numbers(options.vocabulary)
    , Length((options.context - 1) / 2)
  {
    RequireBetween("Vocabulary", this->Numbers, 2, 100000);
    RequireBetween(
      "Context", options.context, 5, 2 * std::min<std::int64_t>(this->Numbers, 30000) + 1);
    if (options.context % 2 == 0)
    {
      throw OptionError("Context: expected an odd number, for a list, a separator and the list "
                        "sorted, found " +
                        std::to_string(options.context) + ".");
    }
  }

  void Configure(TransformerConfig& config) const override
  {
    config.vocabulary = config.outputVocabulary = this->Numbers + 1;
    config.positions = 2 * this->Length + 1;
    config.mask = AttentionMask::Causal;
  }

  std::vector<std::string> MeasureNames() const override { return { "Sequences Right" }; }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    const TrainingBatch batch = this->MakeHeldOut();
    const BatchEvaluation evaluation = EvaluateBatch(model, batch, threads);
    std::int64_t right = 0;
    const std::int64_t length = 2 * this->Length + 1;
    const std::int64_t* predicted = evaluation.predicted.data(); // -1 without a target
    for (std::int64_t row = 0; row < HeldOutSequences * length; row += length)
    {
      const std::int64_t* targets = batch.targets.data() + row;
      right += std::equal(targets, targets + length, predicted + row) ? 1 : 0;
    }
    return { static_cast<double>(right) / static_cast<double>(HeldOutSequences) };
  }

  std::vector<std::string> TokenNames() const override
  {
    std::vector<std::string> names = NumberNames(this->Numbers);
    names.emplace_back("|");
    return names;
  }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t /*index*/) const override
  {
    std::vector<std::int64_t> tokens = DrawTokens(random, this->Length, this->Numbers);
    std::vector<std::int64_t> sorted = tokens;
    std::sort(sorted.begin(), sorted.end());
    batch.targets.insert(batch.targets.end(), ToIndex(this->Length), -1);
    batch.targets.insert(batch.targets.end(), sorted.begin(), sorted.end());
    batch.targets.push_back(-1);
    tokens.push_back(this->Numbers);
    tokens.insert(tokens.end(), sorted.begin(), sorted.end());
    batch.input.tokens.push_back(std::move(tokens));
  }

private:
  static constexpr std::int64_t HeldOutSequences = 256;
  std::int64_t Numbers;
  std::int64_t Length; ///< of a list
};

}

std::unique_ptr<LearningTask> MakeSortedListTask(const TaskOptions& options)
{
  return std::make_unique<SortedListTask>(options);
}

}
