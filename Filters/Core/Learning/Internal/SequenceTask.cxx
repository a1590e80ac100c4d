#include "SequenceTask.h"

#include "Base/Error.h"
#include "Base/Index.h"

#include <numeric>
#include <utility>

namespace atlas
{

void RequireBetween(
  const std::string& name, std::int64_t value, std::int64_t first, std::int64_t last)
{
  ThrowIf<OptionError>(value < first || value > last, name, ": expected ", first, " to ", last,
    ", found ", value, ".");
}

void RequireFixed(const std::string& name, std::int64_t value, std::int64_t only)
{
  ThrowIf<OptionError>(value != only, name, ": expected 0 or ", only,
    ", as the task has no other, found ", value, ".");
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
  std::vector<std::string> names = NumberNames(count);
  for (std::int64_t i = 0; count <= 26 && i < count; ++i)
  {
    names[i] = static_cast<char>('A' + i);
  }
  return names;
}

void SequenceTask::Configure(TransformerConfig& config) const
{
  config.vocabulary = config.outputVocabulary = this->Options.vocabulary;
  config.positions = this->Options.context;
  config.mask = AttentionMask::Causal;
}

TrainingBatch SequenceTask::MakeBatch(std::int64_t step, std::int64_t size) const
{
  ThrowIf<OptionError>(size < 1, "BatchSize: expected at least 1, found ", size, ".");
  LearningRandom random(this->Options.seed, RandomPurpose::Batches, step);
  TrainingBatch batch;
  for (std::int64_t i = 0; i < size; ++i)
  {
    this->Add(batch, random, step, i);
  }
  return batch;
}

TrainingBatch SequenceTask::MakeHeldOut() const
{
  LearningRandom random(this->Options.seed, RandomPurpose::HeldOut);
  TrainingBatch batch;
  for (std::int64_t i = 0; i < this->HeldOut; ++i)
  {
    this->Add(batch, random, HeldOutStep, i);
  }
  return batch;
}

double SequenceTask::MeanHeldOutLoss(
  const std::function<std::vector<double>(const std::vector<std::int64_t>&)>& losses) const
{
  TrainingBatch batch = this->MakeHeldOut();
  double sum = 0;
  std::size_t row = 0;
  for (std::vector<std::int64_t>& tokens : batch.input.tokens)
  {
    row += tokens.size();
    tokens.push_back(batch.targets[row - 1]);
    const std::vector<double> values = losses(tokens);
    sum = std::accumulate(values.begin(), values.end(), sum);
  }
  return sum / static_cast<double>(batch.targets.size());
}

}
