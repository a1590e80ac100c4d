#pragma once

#include "Learning/LearningTask.h"
#include "LearningRandom.h"

#include <functional>
#include <string>

namespace atlas
{

/// Throws OptionError, which begins with the name, unless first <= value <= last.
void RequireBetween(
  const std::string& name, std::int64_t value, std::int64_t first, std::int64_t last);

/// Throws OptionError, which begins with the name, unless the value is the only possible one.
void RequireFixed(const std::string& name, std::int64_t value, std::int64_t only);

/// Adds a sequence whose tokens are each to be predicted from those before. With `isContinued` the
/// last of the tokens is no input, but only the target of the one before it.
void AddNextTokens(TrainingBatch& batch, std::vector<std::int64_t> tokens, bool isContinued);

/// Draws token ids below `vocabulary`, all different if there are enough of them.
std::vector<std::int64_t> DrawTokens(
  LearningRandom& random, std::int64_t count, std::int64_t vocabulary);

/// Draws a block of count / 4 to count / 2 token ids below `vocabulary`, and repeats it until there
/// are `count`.
std::vector<std::int64_t> DrawRepeatedTokens(
  LearningRandom& random, std::int64_t count, std::int64_t vocabulary);

/// "0", ..., "count - 1".
std::vector<std::string> NumberNames(std::int64_t count);

/// "A", "B", ...; numbers if there are more than 26.
std::vector<std::string> LetterNames(std::int64_t count);

/// A task whose sequences or images are drawn independently of each other.
class SequenceTask : public LearningTask
{
public:
  /// Tokens, each of which attends to those before it.
  void Configure(TransformerConfig& config) const override;
  /// Throws OptionError for a size below 1.
  TrainingBatch MakeBatch(std::int64_t step, std::int64_t size) const override;
  TrainingBatch MakeHeldOut() const final;

protected:
  static constexpr std::int64_t HeldOutStep = -1;

  TaskOptions Options;
  std::int64_t HeldOut; ///< the number of sequences that MakeHeldOut draws

  SequenceTask(const TaskOptions& options, std::int64_t heldOut)
    : Options(options)
    , HeldOut(heldOut)
  {
  }

  /// Draws a sequence, or an image, and its targets. `index` is its place in the batch of this
  /// step.
  virtual void Add(
    TrainingBatch& batch, LearningRandom& random, std::int64_t step, std::int64_t index) const = 0;

  /// The mean of losses(a held-out sequence with the target of its last token), one number for each
  /// of its targets.
  double MeanHeldOutLoss(
    const std::function<std::vector<double>(const std::vector<std::int64_t>&)>& losses) const;
};

}
