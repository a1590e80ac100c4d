#include "BracketsTask.h"

#include "TaskModel.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;

namespace
{

std::string TextOf(const std::vector<std::int64_t>& brackets)
{
  std::string text;
  for (const std::int64_t bracket : brackets)
  {
    text += bracket == OpeningBracket ? '(' : ')';
  }
  return text;
}

/// By taking out "()" again and again.
bool CollapsesToNothing(std::string text)
{
  for (std::size_t place = text.find("()"); place != std::string::npos; place = text.find("()"))
  {
    text.erase(place, 2);
  }
  return text.empty();
}

TEST(BracketsTask, AreLabeledByAnIndependentCheck)
{
  const auto task = MakeTask(OptionsOf(TaskKind::Brackets, 1));
  const TrainingBatch batch = task->MakeBatch(0, 4000);
  std::size_t row = 0;
  std::map<std::string, int> kinds;
  std::set<std::size_t> lengths;
  for (const std::vector<std::int64_t>& tokens : batch.input.tokens)
  {
    EXPECT_EQ(tokens[0], BracketClass);
    const std::string text = TextOf({ tokens.begin() + 1, tokens.end() });
    lengths.insert(text.size());
    const bool isBalanced = CollapsesToNothing(text);
    EXPECT_EQ(batch.targets[row], isBalanced ? 1 : 0) << text;
    EXPECT_EQ(std::count(batch.targets.begin() + static_cast<std::ptrdiff_t>(row + 1),
                batch.targets.begin() + static_cast<std::ptrdiff_t>(row + tokens.size()), -1),
      text.size());
    row += tokens.size();
    const auto opening = std::count(text.begin(), text.end(), '(');
    const auto closing = std::count(text.begin(), text.end(), ')');
    EXPECT_LE(std::abs(opening - closing), 2);
    ++kinds[isBalanced ? "balanced" : opening == closing ? "swapped" : "turned"];
  }
  EXPECT_EQ(row, batch.targets.size());
  EXPECT_EQ(kinds["balanced"], 2000);
  EXPECT_EQ(kinds["swapped"], 1000);
  EXPECT_EQ(kinds["turned"], 1000);
  EXPECT_EQ(lengths.size(), 20U);
  EXPECT_EQ(*lengths.begin(), 2U);
  EXPECT_EQ(*lengths.rbegin(), 40U);
}

/// There are 42 balanced sequences of five pairs, the fifth Catalan number.
TEST(BracketsTask, BalancedSequencesAreUniform)
{
  LearningRandom random(2, RandomPurpose::Batches);
  std::map<std::string, int> counts;
  for (int i = 0; i < 42000; ++i)
  {
    ++counts[TextOf(DrawBalanced(random, 5))];
  }
  EXPECT_EQ(counts.size(), 42U);
  for (const auto& [text, count] : counts)
  {
    EXPECT_TRUE(CollapsesToNothing(text)) << text;
    EXPECT_NEAR(count, 1000, 5 * std::sqrt(1000.)) << text;
  }
}

TEST(BracketsTask, BalanceIsThatOfCollapsing)
{
  for (int code = 0; code < 256; ++code)
  {
    std::vector<std::int64_t> brackets;
    for (int bit = 0; bit < 8; ++bit)
    {
      brackets.push_back(code >> bit & 1);
    }
    EXPECT_EQ(AreBalanced(brackets), CollapsesToNothing(TextOf(brackets)));
  }
}

/// A model that always says "unbalanced", and one that always says "balanced".
TEST(BracketsTask, MeasuresUnbalancedOnesByKind)
{
  const auto task = MakeTask(OptionsOf(TaskKind::Brackets));
  EXPECT_THAT(task->MeasureNames(), ElementsAre("Swapped", "Turned"));
  TaskModel model(*task, {});
  EXPECT_THAT(task->Measure(model.Make(), 1), ElementsAre(1, 1));
  model.Set("embed.W_E", BracketClass, 0, 1);
  model.Set("unembed.W_U", 0, 1, 1);
  EXPECT_THAT(task->Measure(model.Make(), 1), ElementsAre(0, 0));
}

/// A model that counts: [CLS] attends to all alike and says "balanced" if there are more closing
/// brackets than opening ones, by a hundredth at least.
TEST(BracketsTask, CountingTellsTurnedOnesAlone)
{
  const auto task = MakeTask(OptionsOf(TaskKind::Brackets));
  ArchitectureOptions architecture;
  architecture.layers = 1;
  architecture.heads = 1;
  TaskModel model(*task, architecture);
  model.Set("embed.W_E", OpeningBracket, 0, 1);
  model.Set("embed.W_E", ClosingBracket, 0, -1);
  model.Set("embed.W_E", BracketClass, 2, 1);
  model.Set("blocks.0.attn.W_V", 0, 0, 1);
  model.Set("blocks.0.attn.W_O", 0, 1, 1);
  model.Set("unembed.W_U", 1, 1, -1);
  model.Set("unembed.W_U", 2, 0, 0.01F);
  const std::vector<double> measures = task->Measure(model.Make(), 1);
  EXPECT_EQ(measures[0], 1);
  double fewer = 0;
  double turned = 0;
  for (const std::vector<std::int64_t>& tokens : task->MakeHeldOut().input.tokens)
  {
    const auto opening = std::count(tokens.begin(), tokens.end(), OpeningBracket);
    const auto closing = std::count(tokens.begin(), tokens.end(), ClosingBracket);
    turned += opening != closing ? 1 : 0;
    fewer += opening > closing ? 1 : 0;
  }
  EXPECT_NEAR(measures[1], fewer / turned, 1e-12);
}

}
