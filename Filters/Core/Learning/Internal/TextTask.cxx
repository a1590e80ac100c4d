#include "TextTask.h"

#include "BpeTraining.h"
#include "Error.h"
#include "Index.h"
#include "RepeatedTokensTask.h"
#include "SequenceTask.h"
#include "TextSource.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

void CheckOptions(const TaskOptions& options)
{
  RequireBetween("Vocabulary", options.vocabulary, SmallestBpeVocabulary, 1000000);
  RequireBetween("Context", options.context, 8, 65536);
  RequireRepeats(options, 1);
  if (options.curriculumVocabulary != 0)
  {
    RequireBetween("Curriculum Vocabulary", options.curriculumVocabulary, 2, options.vocabulary);
  }
}

class TextTask : public LearningTask
{
public:
  explicit TextTask(const TaskOptions& options)
    : Options((CheckOptions(options), options))
    , Window(options.context + 1)
    , Text(options.text, this->Window,
        [&](std::string_view text) { return TrainBpe(text, options.vocabulary); })
    , Repeated(MakeRepeatedTokensTask(options))
  {
  }

  void Configure(TransformerConfig& config) const override { this->Repeated->Configure(config); }

  TrainingBatch MakeBatch(std::int64_t step, std::int64_t size) const override
  {
    const bool isRepeated = step < this->Options.curriculum;
    if (size < 1 || (isRepeated && this->Options.curriculumVocabulary == 0)) // size: an error
    {
      return this->Repeated->MakeBatch(step, size);
    }
    LearningRandom random(this->Options.seed, RandomPurpose::Batches, step);
    if (isRepeated)
    {
      return this->MakeCurriculum(random, step, size);
    }
    const auto places = static_cast<std::int64_t>(this->Text.train.size()) - this->Window + 1;
    TrainingBatch batch;
    for (std::int64_t i = 0; i < size; ++i)
    {
      std::vector<std::int64_t> tokens =
        TextSource::Window(this->Text.train, random.Integer(places), this->Window);
      if (random.Uniform() < this->Options.repeats)
      {
        RepeatStretch(tokens, random);
      }
      AddNextTokens(batch, std::move(tokens), true);
    }
    return batch;
  }

  TrainingBatch MakeHeldOut() const override
  {
    TrainingBatch batch;
    for (const std::int64_t start : this->Text.HeldOutStarts(this->Window, HeldOutSequences))
    {
      AddNextTokens(batch, TextSource::Window(this->Text.heldOut, start, this->Window), true);
    }
    return batch;
  }

  std::vector<std::string> MeasureNames() const override { return this->Repeated->MeasureNames(); }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    return this->Repeated->Measure(model, threads);
  }

  std::map<std::string, std::string> Files() const override
  {
    return { { "tokenizer.json", this->Text.tokenizer } };
  }

private:
  static constexpr std::int64_t HeldOutSequences = 64;
  TaskOptions Options;
  std::int64_t Window; ///< tokens, with the target of the last
  TextSource Text;
  std::unique_ptr<LearningTask> Repeated;

  /// Repeated random tokens of a vocabulary that grows by the same factor from step to step. A head
  /// learns to find the earlier copy of few tokens first, and then of others.
  TrainingBatch MakeCurriculum(LearningRandom& random, std::int64_t step, std::int64_t size) const
  {
    const auto first = static_cast<double>(this->Options.curriculumVocabulary);
    const auto last = static_cast<double>(this->Options.vocabulary);
    const double part = static_cast<double>(step) / static_cast<double>(this->Options.curriculum);
    const std::int64_t tokens = std::llround(first * std::pow(last / first, part));
    TrainingBatch batch;
    for (std::int64_t i = 0; i < size; ++i)
    {
      AddNextTokens(batch, DrawRepeatedTokens(random, this->Options.context, tokens), false);
    }
    return batch;
  }
};

}

std::unique_ptr<LearningTask> MakeTextTask(const TaskOptions& options)
{
  return std::make_unique<TextTask>(options);
}

}
