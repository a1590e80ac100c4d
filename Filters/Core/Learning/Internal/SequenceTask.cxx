#include "SequenceTask.h"

#include "Error.h"
#include "Index.h"

#include <algorithm>
#include <utility>

namespace atlas
{
namespace
{

/// The shortest stretch that is repeated.
constexpr std::int64_t ShortestStretch = 16;

}

void RequireBetween(
  const std::string& name, std::int64_t value, std::int64_t first, std::int64_t last)
{
  if (value < first || value > last)
  {
    throw OptionError(name + ": expected " + std::to_string(first) + " to " + std::to_string(last) +
                      ", found " + std::to_string(value) + ".");
  }
}

void RequireFixed(const std::string& name, std::int64_t value, std::int64_t only)
{
  if (value != only)
  {
    throw OptionError(name + ": expected 0 or " + std::to_string(only) +
                      ", as the task has no other, found " + std::to_string(value) + ".");
  }
}

void RequireNoVocabulary(const TaskOptions& options, const std::string& task)
{
  if (options.vocabulary != 0)
  {
    throw OptionError("Vocabulary: expected 0 for " + task +
                      ", as images have no token ids, found " + std::to_string(options.vocabulary) +
                      ".");
  }
}

void SetImages(TransformerConfig& config, const PixelImages& images)
{
  config.input = InputKind::Images;
  config.vocabulary = 0;
  config.outputVocabulary = images.classes;
  config.positions = images.side * images.side + 1;
  config.imageHeight = config.imageWidth = images.side;
  config.patchHeight = config.patchWidth = 1;
  config.channels = images.channels;
  config.mask = AttentionMask::Bidirectional;
}

void RequireFree(const TransformerConfig& config, const std::string& task)
{
  if (config.tiedUnembedding)
  {
    throw OptionError("Tied: expected an unembedding of its own for " + task +
                      ", whose outputs are not its tokens, found the transpose of the embedding.");
  }
}

void AddNextTokens(TrainingBatch& batch, std::vector<std::int64_t> tokens, bool isContinued)
{
  batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
  if (isContinued)
  {
    tokens.pop_back();
  }
  else
  {
    batch.targets.push_back(-1);
  }
  batch.input.tokens.push_back(std::move(tokens));
}

std::vector<std::int64_t> DrawTokens(
  LearningRandom& random, std::int64_t count, std::int64_t vocabulary)
{
  std::vector<std::int64_t> tokens;
  std::vector<bool> isTaken(vocabulary);
  const bool isDistinct = count <= vocabulary;
  while (static_cast<std::int64_t>(tokens.size()) < count)
  {
    const std::int64_t token = random.Integer(vocabulary);
    if (!isDistinct || !isTaken[token])
    {
      isTaken[token] = true;
      tokens.push_back(token);
    }
  }
  return tokens;
}

std::vector<std::int64_t> DrawRepeatedTokens(
  LearningRandom& random, std::int64_t count, std::int64_t vocabulary)
{
  const std::int64_t period = random.Integer(count / 4, count / 2);
  std::vector<std::int64_t> tokens = DrawTokens(random, period, vocabulary);
  for (std::int64_t i = period; i < count; ++i)
  {
    tokens.push_back(tokens[i - period]);
  }
  return tokens;
}

void RequireRepeats(const TaskOptions& options, std::int64_t more)
{
  if (!(options.repeats >= 0 && options.repeats <= 1))
  {
    throw OptionError(
      "Repeats: expected a share from 0 to 1, found " + std::to_string(options.repeats) + ".");
  }
  if (options.curriculum < 0)
  {
    throw OptionError(
      "Curriculum: expected 0 steps or more, found " + std::to_string(options.curriculum) + ".");
  }
  const std::int64_t least = 2 * ShortestStretch + 1 - more;
  if (options.repeats > 0 && options.context < least)
  {
    throw OptionError("Context: expected at least " + std::to_string(least) +
                      " tokens for Repeats, found " + std::to_string(options.context) + ".");
  }
}

void RepeatStretch(std::vector<std::int64_t>& tokens, LearningRandom& random)
{
  const std::int64_t size = tokens.size();
  const std::int64_t length = random.Integer(ShortestStretch, (size - 1) / 2);
  const std::int64_t from = random.Integer(0, size - 2 * length);
  const std::int64_t to = random.Integer(from + length, size - length);
  std::copy_n(tokens.begin() + from, length, tokens.begin() + to);
}

std::vector<std::string> NumberNames(std::int64_t count)
{
  std::vector<std::string> names;
  names.reserve(count);
  for (std::int64_t i = 0; i < count; ++i)
  {
    names.push_back(std::to_string(i));
  }
  return names;
}

std::vector<std::string> LetterNames(std::int64_t count)
{
  if (count > 26)
  {
    return NumberNames(count);
  }
  std::vector<std::string> names;
  names.reserve(count);
  for (std::int64_t i = 0; i < count; ++i)
  {
    names.emplace_back(1, static_cast<char>('A' + i));
  }
  return names;
}

TrainingBatch SequenceTask::MakeBatch(std::int64_t step, std::int64_t size) const
{
  if (size < 1)
  {
    throw OptionError("BatchSize: expected at least 1, found " + std::to_string(size) + ".");
  }
  LearningRandom random(this->Seed, RandomPurpose::Batches, step);
  TrainingBatch batch;
  for (std::int64_t i = 0; i < size; ++i)
  {
    this->Add(batch, random, i);
  }
  return batch;
}

TrainingBatch SequenceTask::MakeHeldOut() const
{
  LearningRandom random(this->Seed, RandomPurpose::HeldOut);
  TrainingBatch batch;
  for (std::int64_t i = 0; i < this->HeldOut; ++i)
  {
    this->Add(batch, random, i);
  }
  return batch;
}

}
