#include "SortedListTask.h"

#include "TaskModel.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;

namespace
{

TEST(SortedListTask, SortsDifferentNumbers)
{
  const auto task = MakeTask(OptionsOf(TaskKind::SortedList));
  const TrainingBatch batch = task->MakeBatch(0, 100);
  for (std::size_t s = 0; s < 100; ++s)
  {
    const std::vector<std::int64_t>& tokens = batch.input.tokens[s];
    ASSERT_EQ(tokens.size(), 21U);
    EXPECT_EQ(tokens[10], 64);
    std::vector<std::int64_t> list(tokens.begin(), tokens.begin() + 10);
    std::sort(list.begin(), list.end());
    EXPECT_EQ(std::adjacent_find(list.begin(), list.end()), list.end());
    EXPECT_TRUE(std::equal(list.begin(), list.end(), tokens.begin() + 11));
    for (std::size_t i = 0; i < 21; ++i)
    {
      const bool isAsked = i >= 10 && i < 20;
      EXPECT_EQ(batch.targets[21 * s + i], isAsked ? tokens[i + 1] : -1);
    }
  }
}

TEST(SortedListTask, DrawsAllNumbers)
{
  std::set<std::int64_t> first;
  for (const std::vector<std::int64_t>& tokens :
    MakeTask(OptionsOf(TaskKind::SortedList))->MakeBatch(0, 2000).input.tokens)
  {
    first.insert(tokens[0]);
  }
  EXPECT_EQ(first.size(), 64U);
}

/// Of two numbers the sorted list is always 0 1. The model predicts 0 after "|" and 1 after 0.
TEST(SortedListTask, MeasuresWholeLists)
{
  TaskOptions options = OptionsOf(TaskKind::SortedList);
  options.vocabulary = 2;
  options.context = 5;
  const auto task = MakeTask(options);
  EXPECT_THAT(task->TokenNames(), ElementsAre("0", "1", "|"));
  EXPECT_THAT(task->MeasureNames(), ElementsAre("Sequences Right"));
  TaskModel model(*task, {});
  for (std::int64_t token = 0; token < 3; ++token)
  {
    model.Set("embed.W_E", token, token, 1);
  }
  model.Set("unembed.W_U", 2, 0, 1);
  EXPECT_THAT(task->Measure(model.Make(), 1), ElementsAre(0)); // after 0, all are alike
  model.Set("unembed.W_U", 0, 1, 1);
  EXPECT_THAT(task->Measure(model.Make(), 1), ElementsAre(1));
}

}
