#include "BracketsTask.h"

#include "Index.h"

#include <algorithm>
#include <utility>

namespace atlas
{
namespace
{

enum class BracketKind
{
  Balanced,
  Swapped,
  Turned
};

/// The kinds in turn: half are balanced.
BracketKind KindOf(std::int64_t index)
{
  return index % 2 == 0   ? BracketKind::Balanced
         : index % 4 == 1 ? BracketKind::Swapped
                          : BracketKind::Turned;
}

/// Swaps an opening bracket with a later closing one so that the sequence is unbalanced.
void Swap(std::vector<std::int64_t>& brackets, LearningRandom& random)
{
  const std::int64_t size = brackets.size();
  while (AreBalanced(brackets))
  {
    const std::int64_t first = random.Integer(size);
    const std::int64_t second = random.Integer(size);
    std::int64_t& one = brackets[std::min(first, second)];
    std::int64_t& other = brackets[std::max(first, second)];
    if (one == OpeningBracket && other == ClosingBracket)
    {
      std::swap(one, other);
      if (AreBalanced(brackets))
      {
        std::swap(one, other);
      }
    }
  }
}

void Turn(std::vector<std::int64_t>& brackets, LearningRandom& random)
{
  std::int64_t& bracket = brackets[random.Integer(brackets.size())];
  bracket = bracket == OpeningBracket ? ClosingBracket : OpeningBracket;
}

class BracketsTask : public SequenceTask
{
public:
  explicit BracketsTask(const TaskOptions& options)
    : SequenceTask(options.seed, HeldOutSequences)
    , Context(options.context)
  {
    RequireFixed("Vocabulary", options.vocabulary, BracketClass + 1);
    RequireBetween("Context", this->Context, 3, 65536);
  }

  void Configure(TransformerConfig& config) const override
  {
    RequireFree(config, "Brackets");
    config.vocabulary = BracketClass + 1;
    config.outputVocabulary = 2;
    config.positions = this->Context;
    config.mask = AttentionMask::Bidirectional;
  }

  std::vector<std::string> MeasureNames() const override { return { "Swapped", "Turned" }; }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    const TrainingBatch batch = this->MakeHeldOut();
    std::vector<BracketKind> kinds; // of the sequence of each row
    for (std::size_t s = 0; s < batch.input.tokens.size(); ++s)
    {
      kinds.insert(kinds.end(), batch.input.tokens[s].size(), KindOf(static_cast<std::int64_t>(s)));
    }
    const BatchEvaluation evaluation = EvaluateBatch(model, batch, threads);
    const auto share = [&](BracketKind kind)
    { return ShareRight(evaluation, batch, [&](std::size_t row) { return kinds[row] == kind; }); };
    return { share(BracketKind::Swapped), share(BracketKind::Turned) };
  }

  std::vector<std::string> TokenNames() const override { return { "(", ")", "[CLS]" }; }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t index) const override
  {
    const BracketKind kind = KindOf(index);
    std::vector<std::int64_t> brackets =
      DrawBalanced(random, random.Integer(1, (this->Context - 1) / 2));
    if (kind == BracketKind::Swapped)
    {
      Swap(brackets, random);
    }
    else if (kind == BracketKind::Turned)
    {
      Turn(brackets, random);
    }
    batch.targets.push_back(kind == BracketKind::Balanced ? 1 : 0);
    batch.targets.insert(batch.targets.end(), brackets.size(), -1);
    brackets.insert(brackets.begin(), BracketClass);
    batch.input.tokens.push_back(std::move(brackets));
  }

private:
  static constexpr std::int64_t HeldOutSequences = 512;
  std::int64_t Context;
};

}

std::vector<std::int64_t> DrawBalanced(LearningRandom& random, std::int64_t pairs)
{
  // Of all rotations of a sequence with one more closing bracket than opening ones, exactly one is
  // balanced up to its last bracket: that which begins after the first of the lowest places.
  std::vector<std::int64_t> brackets(pairs, OpeningBracket);
  brackets.resize(2 * pairs + 1, ClosingBracket);
  random.Shuffle(brackets, brackets.size());
  std::int64_t depth = 0;
  std::int64_t lowest = 0;
  auto begin = brackets.begin();
  for (auto bracket = brackets.begin(); bracket != brackets.end(); ++bracket)
  {
    depth += *bracket == OpeningBracket ? 1 : -1;
    if (depth < lowest)
    {
      lowest = depth;
      begin = bracket + 1;
    }
  }
  std::rotate(brackets.begin(), begin, brackets.end());
  brackets.pop_back();
  return brackets;
}

bool AreBalanced(const std::vector<std::int64_t>& brackets)
{
  std::int64_t depth = 0;
  for (const std::int64_t bracket : brackets)
  {
    depth += bracket == OpeningBracket ? 1 : -1;
    if (depth < 0)
    {
      return false;
    }
  }
  return depth == 0;
}

std::unique_ptr<LearningTask> MakeBracketsTask(const TaskOptions& options)
{
  return std::make_unique<BracketsTask>(options);
}

}
