#include "LearningTask.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "SequenceTask.h"
#include "TaskModel.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// The tasks that need no file.
const std::vector<TaskKind> Generated = { TaskKind::RepeatedTokens, TaskKind::StatisticalInduction,
  TaskKind::ModularAddition, TaskKind::SortedList, TaskKind::Brackets, TaskKind::BeliefStates,
  TaskKind::ColorPatches, TaskKind::LatticeProtein, TaskKind::VolumePatches, TaskKind::PointCloud };

std::string NameOf(TaskKind kind)
{
  return TaskNames()[static_cast<std::size_t>(kind)];
}

/// Rows of the input: tokens, or class tokens and patches.
std::int64_t RowsOf(const LearningTask& task, const TrainingBatch& batch)
{
  TransformerConfig config;
  config.tiedUnembedding = false;
  task.Configure(config);
  std::int64_t rows = 0;
  for (const std::int64_t length : SequenceLengths(config, batch.input))
  {
    rows += length;
  }
  return rows;
}

bool AreEqual(const TrainingBatch& a, const TrainingBatch& b)
{
  return a.input.tokens == b.input.tokens && a.input.pixels == b.input.pixels &&
         a.input.images == b.input.images && a.targets == b.targets;
}

using TaskOfKind = testing::TestWithParam<TaskKind>;

TEST_P(TaskOfKind, BatchesDependOnOptionsAndStepAlone)
{
  const auto one = MakeTask(OptionsOf(this->GetParam(), 4));
  const auto other = MakeTask(OptionsOf(this->GetParam(), 4));
  const TrainingBatch late = one->MakeBatch(9, 8);
  const TrainingBatch first = one->MakeBatch(0, 8);
  EXPECT_TRUE(AreEqual(other->MakeBatch(0, 8), first));
  EXPECT_TRUE(AreEqual(other->MakeBatch(9, 8), late));
  EXPECT_TRUE(AreEqual(other->MakeHeldOut(), one->MakeHeldOut()));
  EXPECT_FALSE(AreEqual(first, late));
  const auto seeded = MakeTask(OptionsOf(this->GetParam(), 5));
  EXPECT_FALSE(AreEqual(seeded->MakeBatch(0, 8), first));
  EXPECT_FALSE(AreEqual(seeded->MakeHeldOut(), one->MakeHeldOut()));
}

TEST_P(TaskOfKind, BatchesFitTheModel)
{
  const auto task = MakeTask(OptionsOf(this->GetParam()));
  TransformerConfig config;
  config.tiedUnembedding = false;
  task->Configure(config);
  for (const TrainingBatch& batch : { task->MakeBatch(3, 7), task->MakeHeldOut() })
  {
    EXPECT_NO_THROW(CheckInput(config, batch.input));
    EXPECT_THAT(batch.targets, SizeIs(RowsOf(*task, batch)));
    EXPECT_THAT(batch.targets, testing::Each(testing::Ge(-1)));
    EXPECT_THAT(batch.targets, testing::Each(testing::Lt(config.outputVocabulary)));
    EXPECT_GT(std::count_if(batch.targets.begin(), batch.targets.end(),
                [](std::int64_t target) { return target >= 0; }),
      0);
  }
}

TEST_P(TaskOfKind, NamesItsTokensOrClasses)
{
  const auto task = MakeTask(OptionsOf(this->GetParam()));
  TransformerConfig config;
  config.tiedUnembedding = false;
  task->Configure(config);
  const bool isImages = config.input == InputKind::Images;
  std::vector<std::string> names = isImages ? task->Labels() : task->TokenNames();
  EXPECT_EQ(static_cast<std::int64_t>(names.size()),
    isImages ? config.outputVocabulary : config.vocabulary);
  EXPECT_THAT(isImages ? task->TokenNames() : task->Labels(), IsEmpty());
  EXPECT_EQ(LabelsOf(OptionsOf(this->GetParam())), task->Labels());
  EXPECT_THAT(names, testing::Each(testing::Not(IsEmpty())));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

INSTANTIATE_TEST_SUITE_P(LearningTask, TaskOfKind, testing::ValuesIn(Generated),
  [](const auto& task) { return NameOf(task.param); });

TEST(LearningTask, HasNames)
{
  EXPECT_THAT(
    TaskNames(), ElementsAre("RepeatedTokens", "Text", "StatisticalInduction", "ModularAddition",
                   "SortedList", "Brackets", "BeliefStates", "ColorPatches", "MaskedText",
                   "LatticeProtein", "VolumePatches", "PointCloud", "TokenPairs"));
  EXPECT_EQ(ParseTask("MaskedText"), TaskKind::MaskedText);
  EXPECT_EQ(ParseTask("RepeatedTokens"), TaskKind::RepeatedTokens);
  const std::string message = MessageOf<OptionError>([] { ParseTask("Chess"); });
  EXPECT_THAT(message, HasSubstr("Task: expected one of"));
  EXPECT_THAT(message, HasSubstr("BeliefStates"));
  EXPECT_THAT(message, HasSubstr("'Chess'"));
}

std::string MessageOfTask(const TaskOptions& options)
{
  return MessageOf<OptionError>([&] { MakeTask(options); });
}

TEST(LearningTask, RejectsSizesOutOfRange)
{
  TaskOptions options = OptionsOf(TaskKind::RepeatedTokens);
  options.vocabulary = 1;
  EXPECT_EQ(MessageOfTask(options), "Vocabulary: expected 2 to 1000000, found 1.");
  options.vocabulary = 0;
  options.context = 7;
  EXPECT_EQ(MessageOfTask(options), "Context: expected 8 to 65536, found 7.");
  options = OptionsOf(TaskKind::StatisticalInduction);
  options.vocabulary = -3;
  EXPECT_EQ(MessageOfTask(options), "Vocabulary: expected 2 to 100, found -3.");
  options = OptionsOf(TaskKind::SortedList);
  options.context = 20;
  EXPECT_THAT(MessageOfTask(options), HasSubstr("Context: expected an odd number"));
  options.vocabulary = 9;
  options.context = 21;
  EXPECT_EQ(MessageOfTask(options), "Context: expected 5 to 19, found 21.");
  options = OptionsOf(TaskKind::Brackets);
  options.context = 2;
  EXPECT_EQ(MessageOfTask(options), "Context: expected 3 to 65536, found 2.");
}

TEST(LearningTask, RejectsSizesThatATaskDoesNotHave)
{
  TaskOptions options = OptionsOf(TaskKind::ModularAddition);
  options.context = 4;
  EXPECT_EQ(MessageOfTask(options), "Context: expected 0 or 3, as the task has no other, found 4.");
  for (const TaskKind kind : { TaskKind::Brackets, TaskKind::BeliefStates })
  {
    options = OptionsOf(kind);
    options.vocabulary = 64;
    EXPECT_EQ(
      MessageOfTask(options), "Vocabulary: expected 0 or 3, as the task has no other, found 64.");
  }
  for (const TaskKind kind :
    { TaskKind::ColorPatches, TaskKind::VolumePatches, TaskKind::PointCloud })
  {
    options = OptionsOf(kind);
    options.vocabulary = 64;
    EXPECT_THAT(MessageOfTask(options), HasSubstr("Vocabulary: expected 0 for " + NameOf(kind)));
  }
  options = OptionsOf(TaskKind::LatticeProtein);
  options.context = 35;
  EXPECT_EQ(
    MessageOfTask(options), "Context: expected 0 or 36, as the task has no other, found 35.");
}

TEST(LearningTask, RejectsSharesOutOfRange)
{
  TaskOptions options = OptionsOf(TaskKind::ModularAddition);
  for (const double share : { -0.1, 1., 2., std::numeric_limits<double>::quiet_NaN() })
  {
    options.trainShare = share;
    EXPECT_THAT(MessageOfTask(options), HasSubstr("TrainShare: expected a number above 0"));
  }
}

TEST(LearningTask, RejectsEmptyBatches)
{
  for (const TaskKind kind : Generated)
  {
    const auto task = MakeTask(OptionsOf(kind));
    EXPECT_THAT(
      MessageOf<OptionError>([&] { task->MakeBatch(0, -1); }), HasSubstr("BatchSize: expected"));
  }
}

TEST(LearningTask, RejectsATiedUnembeddingWhereOutputsAreNoTokens)
{
  ArchitectureOptions architecture;
  architecture.tied = true;
  for (const TaskKind kind : { TaskKind::ModularAddition, TaskKind::Brackets })
  {
    const auto task = MakeTask(OptionsOf(kind));
    EXPECT_THAT(MessageOf<OptionError>([&] { MakeConfig(architecture, *task); }),
      HasSubstr("Tied: expected an unembedding of its own for " + NameOf(kind)));
  }
}

TEST(LearningTask, NextTokensAreTargets)
{
  TrainingBatch batch;
  AddNextTokens(batch, { 4, 5, 6 }, false);
  AddNextTokens(batch, { 7, 8, 9 }, true);
  EXPECT_THAT(batch.input.tokens, ElementsAre(ElementsAre(4, 5, 6), ElementsAre(7, 8)));
  EXPECT_THAT(batch.targets, ElementsAre(5, 6, -1, 8, 9));
}

TEST(LearningTask, TokensAreDifferentIfThereAreEnough)
{
  LearningRandom random(1, RandomPurpose::Batches);
  std::vector<std::int64_t> tokens = DrawTokens(random, 9, 9);
  EXPECT_THAT(tokens, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(DrawTokens(random, 9, 2), SizeIs(9));
}

TEST(LearningTask, LettersEndWithTheAlphabet)
{
  EXPECT_THAT(LetterNames(3), ElementsAre("A", "B", "C"));
  EXPECT_EQ(LetterNames(26).back(), "Z");
  EXPECT_EQ(LetterNames(27).back(), "26");
}

}
