#include "TaskModel.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// The smallest shift under which a sequence is the same, by trying all.
std::int64_t PeriodOf(const std::vector<std::int64_t>& tokens)
{
  for (std::size_t period = 1; period < tokens.size(); ++period)
  {
    if (std::equal(
          tokens.begin() + static_cast<std::ptrdiff_t>(period), tokens.end(), tokens.begin()))
    {
      return static_cast<std::int64_t>(period);
    }
  }
  return tokens.size();
}

TEST(RepeatedTokensTask, RepeatsBlocksOfRandomLengths)
{
  const auto task = MakeTask(OptionsOf(TaskKind::RepeatedTokens, 3));
  std::set<std::int64_t> periods;
  std::set<std::int64_t> ids;
  for (const std::vector<std::int64_t>& tokens : task->MakeBatch(0, 500).input.tokens)
  {
    ASSERT_EQ(tokens.size(), 64U);
    const std::int64_t period = PeriodOf(tokens);
    periods.insert(period);
    const std::set<std::int64_t> block(tokens.begin(), tokens.begin() + period);
    EXPECT_EQ(static_cast<std::int64_t>(block.size()), period) << "tokens are different";
    ids.insert(block.begin(), block.end());
  }
  EXPECT_EQ(periods.size(), 17U);
  EXPECT_EQ(*periods.begin(), 16);
  EXPECT_EQ(*periods.rbegin(), 32);
  EXPECT_EQ(ids.size(), 64U);
}

TEST(RepeatedTokensTask, AsksForEveryNextToken)
{
  const auto task = MakeTask(OptionsOf(TaskKind::RepeatedTokens));
  const TrainingBatch batch = task->MakeBatch(5, 4);
  for (std::size_t i = 0; i < batch.targets.size(); ++i)
  {
    EXPECT_EQ(batch.targets[i], i % 64 == 63 ? -1 : batch.input.tokens[i / 64][i % 64 + 1]);
  }
}

TEST(RepeatedTokensTask, AllowsSmallVocabularies)
{
  TaskOptions options = OptionsOf(TaskKind::RepeatedTokens);
  options.vocabulary = 2;
  options.context = 20;
  const auto task = MakeTask(options);
  for (const std::vector<std::int64_t>& tokens : task->MakeHeldOut().input.tokens)
  {
    EXPECT_LE(PeriodOf(tokens), 10);
  }
  const TaskModel model(*task, {});
  for (const double measure : task->Measure(model.Make(), 1))
  {
    EXPECT_TRUE(std::isfinite(measure));
  }
}

constexpr std::int64_t Size = 16; ///< of vocabulary and context

std::unique_ptr<LearningTask> SmallTask()
{
  TaskOptions options = OptionsOf(TaskKind::RepeatedTokens);
  options.vocabulary = options.context = Size;
  return MakeTask(options);
}

/// A model that does by hand what induction heads do. The residual stream has four parts of 16:
/// the token, the position, the token before (written by head 0 of layer 0) and the token that
/// comes next (written by head 0 of layer 1).
TaskModel InductionModel(const LearningTask& task)
{
  ArchitectureOptions architecture;
  architecture.heads = 1;
  architecture.modelDimension = 4 * Size;
  architecture.headDimension = Size;
  TaskModel model(task, architecture);
  const float strong = 40 * std::sqrt(16.F); // scores of 40 after the division by sqrt(d_head)
  for (std::int64_t i = 0; i < Size; ++i)
  {
    model.Set("embed.W_E", i, i, 1);
    model.Set("pos_embed.W_pos", i, Size + i, 1);
    model.Set("blocks.0.attn.W_Q", Size + i, i, strong);
    if (i + 1 < Size)
    {
      model.Set("blocks.0.attn.W_K", Size + i, i + 1, 1);
    }
    model.Set("blocks.0.attn.W_V", i, i, 1);
    model.Set("blocks.0.attn.W_O", i, 2 * Size + i, 1);
    model.Set("blocks.1.attn.W_Q", i, i, strong);
    model.Set("blocks.1.attn.W_K", 2 * Size + i, i, 1);
    model.Set("blocks.1.attn.W_V", i, i, 1);
    model.Set("blocks.1.attn.W_O", i, 3 * Size + i, 1);
    model.Set("unembed.W_U", 3 * Size + i, i, 30);
  }
  return model;
}

TEST(RepeatedTokensTask, MeasuresAnInductionHeadMadeByHand)
{
  const auto task = SmallTask();
  EXPECT_THAT(task->MeasureNames(),
    testing::ElementsAre("Induction", "Previous Token", "K-Composition", "Repeat Loss"));
  const TaskModel model = InductionModel(*task);
  const std::vector<double> measures = task->Measure(model.Make(), 2);
  // The first token of a sequence sees itself alone, writes itself as the one before it, and so is
  // a second place at which its own repetitions look: half of their attention goes there. The
  // others see the right places alone.
  const TrainingBatch batch = task->MakeHeldOut();
  double expected = 0;
  std::int64_t queries = 0;
  for (const std::vector<std::int64_t>& tokens : batch.input.tokens)
  {
    const std::int64_t period = PeriodOf(tokens);
    for (std::int64_t i = period; i < Size; ++i)
    {
      const auto earlier = static_cast<double>(i / period);
      expected += i % period == 0 ? earlier / (earlier + 1) : 1;
      ++queries;
    }
  }
  EXPECT_NEAR(measures[0], expected / static_cast<double>(queries), 1e-6);
  EXPECT_NEAR(measures[1], 1, 1e-6);
  // W_OV of the first head and W_QK of the second are, up to a factor, partial isometries of rank
  // 16 that fit: |product| = sqrt(16), |W_OV| |W_QK| = 16.
  EXPECT_NEAR(measures[2], 0.25, 1e-5);
}

TEST(RepeatedTokensTask, RepeatLossIsThatOfLaterBlocks)
{
  const auto task = SmallTask();
  // Always predicts token 0, with logit log 2 against 0.
  TaskModel model(*task, {});
  for (std::int64_t i = 0; i < Size; ++i)
  {
    model.Set("embed.W_E", i, 0, 1);
  }
  model.Set("unembed.W_U", 0, 0, static_cast<float>(std::log(2.)));
  const TrainingBatch batch = task->MakeHeldOut();
  double sum = 0;
  std::int64_t count = 0;
  for (const std::vector<std::int64_t>& tokens : batch.input.tokens)
  {
    for (std::size_t i = PeriodOf(tokens); i + 1 < tokens.size(); ++i)
    {
      sum += std::log(17.) - (tokens[i + 1] == 0 ? std::log(2.) : 0);
      ++count;
    }
  }
  EXPECT_NEAR(task->Measure(model.Make(), 1)[3], sum / static_cast<double>(count), 1e-6);
}

TEST(RepeatedTokensTask, OneLayerHasNoComposition)
{
  const auto task = MakeTask(OptionsOf(TaskKind::RepeatedTokens));
  ArchitectureOptions architecture;
  architecture.layers = 1;
  const TaskModel model(*task, architecture);
  const std::vector<double> measures = task->Measure(model.Make(), 1);
  EXPECT_EQ(measures[2], 0);
  // Attention is uniform: the mean of 1 / (i + 1) over the queries i >= 1 of the first blocks,
  // whose tokens are all different.
  double sum = 0;
  double count = 0;
  const TrainingBatch heldOut = task->MakeHeldOut();
  for (const std::vector<std::int64_t>& tokens : heldOut.input.tokens)
  {
    const auto again = std::find(tokens.begin() + 1, tokens.end(), tokens[0]);
    for (int i = 1; i < again - tokens.begin(); ++i)
    {
      sum += 1. / (i + 1);
      ++count;
    }
  }
  EXPECT_NEAR(measures[1], sum / count, 1e-6);
}

}
