#include "Learning/LearningTask.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Learning/Internal/SequenceTask.h"
#include "TaskModel.h"

#include <algorithm>
#include <limits>
#include <numeric>
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
  TaskKind::ModularAddition, TaskKind::BeliefStates, TaskKind::ColorPatches,
  TaskKind::LatticeProtein };

TransformerConfig ConfigOf(const LearningTask& task)
{
  TransformerConfig config;
  config.tiedUnembedding = false;
  task.Configure(config);
  return config;
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
  const TransformerConfig config = ConfigOf(*task);
  for (const TrainingBatch& batch : { task->MakeBatch(3, 7), task->MakeHeldOut() })
  {
    EXPECT_NO_THROW(CheckInput(config, batch.input));
    const std::vector<std::int64_t> rows = SequenceLengths(config, batch.input);
    EXPECT_THAT(batch.targets, SizeIs(std::accumulate(rows.begin(), rows.end(), 0)));
    EXPECT_THAT(batch.targets, Each(AllOf(Ge(-1), Lt(config.outputVocabulary))));
    EXPECT_THAT(batch.targets, Contains(Ge(0)));
  }
}

TEST_P(TaskOfKind, NamesItsTokensOrClasses)
{
  const auto task = MakeTask(OptionsOf(this->GetParam()));
  const TransformerConfig config = ConfigOf(*task);
  const bool isImages = config.input == InputKind::Images;
  const std::vector<std::string> labels = LabelsOf(OptionsOf(this->GetParam()));
  std::vector<std::string> names = isImages ? labels : task->TokenNames();
  EXPECT_EQ(static_cast<std::int64_t>(names.size()),
    isImages ? config.outputVocabulary : config.vocabulary);
  EXPECT_THAT(isImages ? task->TokenNames() : labels, IsEmpty());
  EXPECT_THAT(names, Each(Not(IsEmpty())));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

INSTANTIATE_TEST_SUITE_P(LearningTask, TaskOfKind, testing::ValuesIn(Generated),
  [](const auto& task) { return NameOf(task.param); });

TEST(LearningTask, HasNames)
{
  EXPECT_THAT(
    TaskNames(), ElementsAre("RepeatedTokens", "Text", "StatisticalInduction", "ModularAddition",
                   "BeliefStates", "ColorPatches", "MaskedText", "LatticeProtein", "TokenPairs"));
  EXPECT_EQ(ParseTask("MaskedText"), TaskKind::MaskedText);
  EXPECT_EQ(ParseTask("RepeatedTokens"), TaskKind::RepeatedTokens);
  EXPECT_EQ(TaskNumbered(9), TaskKind::LatticeProtein); // as state files have it
  for (const int gone : { -1, 4, 5, 10, 11, 13 })
  {
    EXPECT_THAT(MessageOf<OptionError>([gone] { TaskNumbered(gone); }),
      HasSubstr("found number " + std::to_string(gone)));
  }
  EXPECT_THAT(MessageOf<OptionError>([] { ParseTask("Chess"); }),
    AllOf(HasSubstr("Task: expected one of"), HasSubstr("BeliefStates"), HasSubstr("'Chess'")));
}

std::string MessageOfTask(const TaskOptions& options)
{
  return MessageOf<OptionError>([&] { MakeTask(options); });
}

TEST(LearningTask, RejectsSizesOutOfRange)
{
  struct Case
  {
    TaskKind kind;
    std::int64_t vocabulary; ///< 0: the usual one
    std::int64_t context;
    const char* message;
  };
  for (const Case& c :
    { Case{ TaskKind::RepeatedTokens, 1, 0, "Vocabulary: expected 2 to 1000000, found 1." },
      Case{ TaskKind::RepeatedTokens, 0, 7, "Context: expected 8 to 65536, found 7." },
      Case{ TaskKind::StatisticalInduction, -3, 0, "Vocabulary: expected 2 to 100, found -3." },
      Case{ TaskKind::ModularAddition, 0, 4,
        "Context: expected 0 or 3, as the task has no other, found 4." },
      Case{ TaskKind::BeliefStates, 64, 0,
        "Vocabulary: expected 0 or 3, as the task has no other, found 64." },
      Case{ TaskKind::ColorPatches, 64, 0,
        "Vocabulary: expected 0, as images have no token ids, found 64." },
      Case{ TaskKind::LatticeProtein, 0, 35,
        "Context: expected 0 or 36, as the task has no other, found 35." } })
  {
    TaskOptions options = OptionsOf(c.kind);
    options.vocabulary = c.vocabulary;
    options.context = c.context;
    EXPECT_EQ(MessageOfTask(options), c.message);
  }
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
  const auto task = MakeTask(OptionsOf(TaskKind::ModularAddition));
  EXPECT_THAT(MessageOf<OptionError>([&] { MakeConfig(architecture, *task); }),
    HasSubstr("Tied: expected an unembedding of its own for ModularAddition"));
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
  EXPECT_THAT(tokens, UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(DrawTokens(random, 9, 2), SizeIs(9));
}

TEST(LearningTask, LettersEndWithTheAlphabet)
{
  EXPECT_THAT(LetterNames(3), ElementsAre("A", "B", "C"));
  EXPECT_EQ(LetterNames(26).back(), "Z");
  EXPECT_EQ(LetterNames(27).back(), "26");
}

}
