#pragma once

#include "BatchEvaluation.h"
#include "LearningRandom.h"
#include "LearningTask.h"

#include <string>

namespace atlas
{

/// Throws OptionError, which begins with the name, unless first <= value <= last.
void RequireBetween(
  const std::string& name, std::int64_t value, std::int64_t first, std::int64_t last);

/// Throws OptionError, which begins with the name, unless the value is the only possible one.
void RequireFixed(const std::string& name, std::int64_t value, std::int64_t only);

/// Throws OptionError for a vocabulary, for tasks of images.
void RequireNoVocabulary(const TaskOptions& options, const std::string& task);

/// Square images whose patches are pixels, each of which may get a class.
struct PixelImages
{
  std::int64_t channels = 0;
  std::int64_t side = 0;
  std::int64_t classes = 0;
};

/// Sets what a task of such images determines.
void SetImages(TransformerConfig& config, const PixelImages& images);

/// Throws OptionError if the unembedding is tied, for tasks whose outputs are not their tokens.
void RequireFree(const TransformerConfig& config, const std::string& task);

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

/// Throws OptionError unless Repeats is a share, Curriculum is not negative and, with Repeats, a
/// sequence of context + `more` tokens has room for RepeatStretch.
void RequireRepeats(const TaskOptions& options, std::int64_t more);

/// Writes a stretch of tokens, at least 16 and less than half of them, again at a later place.
void RepeatStretch(std::vector<std::int64_t>& tokens, LearningRandom& random);

/// The share of the rows with a target, among those for which isCounted(row) holds, that are
/// predicted right; 0 without such rows.
template<class Function>
double ShareRight(
  const BatchEvaluation& evaluation, const TrainingBatch& batch, const Function& isCounted)
{
  std::int64_t right = 0;
  std::int64_t count = 0;
  for (std::size_t row = 0; row < batch.targets.size(); ++row)
  {
    if (batch.targets[row] >= 0 && isCounted(row))
    {
      right += evaluation.predicted[row] == batch.targets[row] ? 1 : 0;
      ++count;
    }
  }
  return count > 0 ? static_cast<double>(right) / static_cast<double>(count) : 0;
}

/// "0", ..., "count - 1".
std::vector<std::string> NumberNames(std::int64_t count);

/// "A", "B", ...; numbers if there are more than 26.
std::vector<std::string> LetterNames(std::int64_t count);

/// A task whose sequences or images are drawn independently of each other.
class SequenceTask : public LearningTask
{
public:
  /// Throws OptionError for a size below 1.
  TrainingBatch MakeBatch(std::int64_t step, std::int64_t size) const final;
  TrainingBatch MakeHeldOut() const final;
  std::map<std::string, std::string> Files() const override { return {}; }

protected:
  /// `heldOut` is the number of sequences that MakeHeldOut draws.
  SequenceTask(std::uint64_t seed, std::int64_t heldOut)
    : Seed(seed)
    , HeldOut(heldOut)
  {
  }

  /// Draws a sequence, or an image, and its targets. `index` is its place in the batch.
  virtual void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t index) const = 0;

private:
  std::uint64_t Seed;
  std::int64_t HeldOut;
};

}
