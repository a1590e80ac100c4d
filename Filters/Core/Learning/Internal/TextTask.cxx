#include "SequenceTask.h"
#include "Tasks.h"
#include "Text/BpeTraining.h"
#include "TextSource.h"

#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

TaskOptions Checked(const TaskOptions& options)
{
  CheckedText(options, SmallestBpeVocabulary, 1);
  if (options.curriculumVocabulary != 0)
  {
    RequireBetween("Curriculum Vocabulary", options.curriculumVocabulary, 2, options.vocabulary);
  }
  return options;
}

/// The next token of a text in byte-level BPE, whose tokenizer is trained on the same text
/// (TrainBpe).
///
/// Sequences are windows at random places of the first 90 % of the text. In a share `repeats` of
/// them, a stretch of 16 to context / 2 tokens is repeated later in the window, and the sequences
/// of the first `curriculum` steps are those of RepeatedTokens, random tokens of the same
/// vocabulary: from text alone, induction heads form late. With `curriculumVocabulary` v > 0, step
/// s of them has the first v (vocabulary / v)^(s / curriculum) tokens: a head learns to find the
/// earlier copy of few tokens first, and then of others. The held-out sequences are up to 64
/// windows of the last 10 %.
///
/// Measures are those of RepeatedTokens, on its held-out sequences.
class TextTask : public SequenceTask
{
public:
  explicit TextTask(const TaskOptions& options)
    : SequenceTask(Checked(options), 0)
    , Text(options.text, options.context + 1, // with the target of the last token
        [&](std::string_view text) { return TrainBpe(text, options.vocabulary); })
    , Repeated(MakeRepeatedTokensTask(options))
  {
    this->HeldOut = this->Text.HeldOutCount();
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

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t step,
    std::int64_t index) const override
  {
    if (step == HeldOutStep)
    {
      AddNextTokens(batch, this->Text.HeldOutWindow(index), true);
      return;
    }
    if (step < this->Options.curriculum)
    {
      const std::int64_t tokens = this->CurriculumTokens(step);
      AddNextTokens(batch, DrawRepeatedTokens(random, this->Options.context, tokens), false);
      return;
    }
    std::vector<std::int64_t> tokens = this->Text.Draw(random);
    if (random.Uniform() < this->Options.repeats)
    {
      RepeatStretch(tokens, random);
    }
    AddNextTokens(batch, std::move(tokens), true);
  }

private:
  TextSource Text;
  std::unique_ptr<LearningTask> Repeated;

  /// The vocabulary of a step of the curriculum, which grows by the same factor from step to step.
  std::int64_t CurriculumTokens(std::int64_t step) const
  {
    const auto first = static_cast<double>(this->Options.curriculumVocabulary);
    const auto last = static_cast<double>(this->Options.vocabulary);
    const double part = static_cast<double>(step) / static_cast<double>(this->Options.curriculum);
    return first == 0 ? this->Options.vocabulary
                      : std::llround(first * std::pow(last / first, part));
  }
};

}

std::unique_ptr<LearningTask> MakeTextTask(const TaskOptions& options)
{
  return std::make_unique<TextTask>(options);
}

}
