#include "Learning/LearningRun.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "ErrorMessage.h"
#include "Learning/CheckpointFiles.h"
#include "Learning/RecipeFile.h"
#include "Learning/SavedTraining.h"
#include "TemporaryDirectory.h"

#include <cmath>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

LearningRecipe SmallRecipe(std::int64_t steps)
{
  LearningRecipe recipe = DefaultRecipe(TaskKind::BeliefStates);
  recipe.architecture.modelDimension = 8;
  recipe.architecture.heads = 2;
  recipe.architecture.mlpDimension = 8;
  recipe.batchSize = 4;
  recipe.steps = steps;
  return recipe;
}

std::vector<std::int64_t> StepsOf(const LearningResult& result)
{
  std::vector<std::int64_t> steps;
  for (const LearningCheckpoint& checkpoint : result.checkpoints)
  {
    steps.push_back(checkpoint.step);
  }
  return steps;
}

TEST(LearningRun, LogarithmicStepsGrowByAFactor)
{
  const std::vector<std::int64_t> steps = LogarithmicSteps(1000, 10);
  // 1000^(i / 10)
  EXPECT_EQ(steps, (std::vector<std::int64_t>{ 0, 1, 2, 4, 8, 16, 32, 63, 126, 251, 501, 1000 }));
  EXPECT_EQ(LogarithmicSteps(0, 10), std::vector<std::int64_t>{ 0 });
  EXPECT_EQ(LogarithmicSteps(2, 10), (std::vector<std::int64_t>{ 0, 1, 2 }));
}

TEST(LearningRun, KeepsWhatIsAskedFor)
{
  LearningOptions options;
  options.checkpointEvery = 4;
  options.measureEvery = 3;
  std::vector<double> progress;
  options.progress = [&](double done, double)
  {
    progress.push_back(done);
    return true;
  };
  const LearningResult result = Learn(SmallRecipe(10), options);
  EXPECT_EQ(StepsOf(result), (std::vector<std::int64_t>{ 0, 4, 8, 10 }));
  std::vector<double> rows;
  for (const std::vector<double>& row : result.curves.rows)
  {
    EXPECT_EQ(row.size(), result.curves.names.size());
    rows.push_back(row[0]);
    EXPECT_EQ(std::isnan(row[1]), row[0] == 10) << "the loss of the batch of the next step";
  }
  EXPECT_EQ(rows, (std::vector<double>{ 0, 3, 4, 6, 8, 9, 10 }));
  ASSERT_EQ(progress.size(), 10U);
  EXPECT_DOUBLE_EQ(progress[4], 0.5);
  EXPECT_FALSE(result.stopped);
  EXPECT_TRUE(result.divergence.empty());
  // Each checkpoint has weights of its own.
  EXPECT_NE(result.checkpoints[0].weights->at("embed.W_E").bytes,
    result.checkpoints[1].weights->at("embed.W_E").bytes);
}

TEST(LearningRun, TrainsPairsAsTheirTrainer)
{
  LearningRecipe recipe = DefaultRecipe(TaskKind::TokenPairs);
  recipe.steps = 9;
  recipe.seed = 3;
  LearningOptions options;
  options.checkpointEvery = 4;
  options.measureEvery = 9;
  const LearningResult result = Learn(recipe, options);
  EXPECT_EQ(StepsOf(result), (std::vector<std::int64_t>{ 0, 4, 8, 9 }));
  TrainingOptions same;
  same.steps = 9;
  same.seed = 3;
  PairTrainer trainer(same);
  for (const LearningCheckpoint& checkpoint : result.checkpoints)
  {
    while (trainer.GetStep() < checkpoint.step)
    {
      trainer.Step();
    }
    ASSERT_NE(checkpoint.pairs, nullptr);
    EXPECT_EQ(checkpoint.pairs->wordEmbedding, trainer.GetModel().wordEmbedding);
    const TrainingState state = trainer.Measure();
    const std::vector<double>& row = result.curves.rows.at(&checkpoint - result.checkpoints.data());
    EXPECT_EQ(std::vector<double>(row.begin(), row.begin() + 4),
      (std::vector<double>{ static_cast<double>(state.step), state.loss, state.accuracy, -1 }));
  }
  recipe.pairs.keepsWeights = true;
  EXPECT_EQ(MessageOf<OptionError>([&] { Learn(recipe, options); }),
    "Model: expected a file whose weights are kept, found none.");
}

TEST(LearningRun, StopKeepsWhatWasReached)
{
  LearningOptions options;
  options.checkpointEvery = 4;
  options.progress = [](double done, double) { return done < 0.55; };
  const LearningResult result = Learn(SmallRecipe(10), options);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(StepsOf(result), (std::vector<std::int64_t>{ 0, 4, 6 }));
  // The last model is measured, too.
  EXPECT_EQ(result.curves.rows.back()[0], 6);
  EXPECT_TRUE(std::isfinite(result.curves.rows.back()[3]));
}

TEST(LearningRun, CheckpointsHaveTheirSteps)
{
  using Steps = std::vector<std::int64_t>;
  EXPECT_EQ(CheckpointSteps(0, 10, 4), (Steps{ 0, 4, 8, 10 }));
  EXPECT_EQ(CheckpointSteps(5, 12, 4), (Steps{ 5, 8, 12 }));
  EXPECT_EQ(CheckpointSteps(0, 0, 4), (Steps{ 0 }));
  EXPECT_EQ(CheckpointSteps(0, 3, 0), (Steps{ 0, 1, 2, 3 }));
  EXPECT_EQ(CheckpointSteps(2, 3, 0), (Steps{ 2, 3 }));
  const Steps logarithmic = CheckpointSteps(100, 100000, 0);
  EXPECT_EQ(logarithmic.front(), 100);
  EXPECT_EQ(logarithmic.back(), 100000);
  EXPECT_EQ(MessageOf<OptionError>([] { CheckpointSteps(0, 1000000, 1); }),
    "CheckpointEvery: expected at most 100000 checkpoints, found 1000000; raise it.");
}

TEST(LearningRun, TheEstimateOfMemoryGrowsWithEachSizeAndDoesNotOverflow)
{
  const LearningRecipe recipe = SmallRecipe(10);
  const double bytes = TrainingBytes(recipe, 3);
  double weights = 0; // counted in the model itself
  const LearningResult trained = Learn(recipe, {});
  for (const auto& [name, tensor] : *trained.checkpoints[0].weights)
  {
    weights += static_cast<double>(tensor.View().Count());
  }
  EXPECT_GT(bytes, 4 * weights * 3);
  EXPECT_GT(TrainingBytes(recipe, 1000), bytes);
  LearningRecipe large = recipe;
  large.architecture.layers = large.architecture.modelDimension = large.task.vocabulary =
    std::numeric_limits<std::int64_t>::max();
  EXPECT_GT(TrainingBytes(large, 3), 1e50);
}

TEST(LearningRun, ADivergenceKeepsWhatCameBefore)
{
  LearningRecipe recipe = SmallRecipe(50);
  recipe.optimizer.rate = 1e30;
  const LearningResult result = Learn(recipe, {});
  EXPECT_NE(result.divergence.find("step "), std::string::npos) << result.divergence;
  ASSERT_FALSE(result.checkpoints.empty());
  for (const LearningCheckpoint& checkpoint : result.checkpoints)
  {
    for (const auto& [name, tensor] : *checkpoint.weights)
    {
      EXPECT_TRUE(std::isfinite(tensor.View().At(0))) << checkpoint.step << " " << name;
    }
  }
}

/// A saved training goes on to the same bytes as one that was never interrupted.
TEST(LearningRun, ContinuesFromItsFolderToTheByte)
{
  const TemporaryDirectory folder;
  const LearningResult whole = Learn(SmallRecipe(12), {});
  LearningOptions options;
  Tensors last;
  options.checkpoint = [&](const LearningCheckpoint&, const Tensors& state) { last = state; };
  const LearningResult half = Learn(SmallRecipe(6), options);
  ASSERT_EQ(half.state->size(), last.size());
  for (const auto& [name, tensor] : last)
  {
    EXPECT_EQ(half.state->at(name).bytes, tensor.bytes) << name;
  }
  WriteSafetensors(folder / TrainingStateFile, last, {});
  std::ofstream(folder / "recipe.json") << ToJson(SmallRecipe(6));
  const SavedTraining saved(folder.Path());
  EXPECT_EQ(saved.step, 6);
  EXPECT_EQ(saved.recipe.steps, 6);
  const LearningResult rest = Learn(SmallRecipe(12), {}, saved.state.GetTensors());
  EXPECT_EQ(rest.checkpoints.front().step, 6);
  for (const auto& [name, tensor] : *whole.checkpoints.back().weights)
  {
    EXPECT_EQ(tensor.bytes, rest.checkpoints.back().weights->at(name).bytes) << name;
  }
  EXPECT_THAT(MessageOf<OptionError>([&] { saved.RequireMoreSteps(SmallRecipe(6)); }),
    testing::HasSubstr("6"));
  MessageOf<FileError>([&] { SavedTraining(folder / "none"); });
}

TEST(LearningRun, RecipesOfOneTrainingDifferInStepsAlone)
{
  const std::string recipe = ToJson(SmallRecipe(6));
  EXPECT_TRUE(AreOfOneTraining(recipe, ToJson(SmallRecipe(12))));
  LearningRecipe other = SmallRecipe(6);
  ++other.seed;
  EXPECT_FALSE(AreOfOneTraining(recipe, ToJson(other)));
  MessageOf<FormatError>([&] { AreOfOneTraining("", recipe); });
}

TEST(LearningRun, BadRecipesAreNamed)
{
  const auto expect = [](const char* name, const auto& change)
  {
    LearningRecipe recipe = SmallRecipe(2);
    LearningOptions options;
    change(recipe, options);
    EXPECT_THAT(MessageOf<OptionError>([&] { Learn(recipe, options); }), testing::StartsWith(name));
  };
  using Recipe = LearningRecipe;
  expect("Steps: ", [](Recipe& r, auto&) { r.steps = -1; });
  expect("BatchSize: ", [](Recipe& r, auto&) { r.batchSize = 0; });
  expect("BatchSize: expected 1 to 1000000", [](Recipe& r, auto&) { r.batchSize = 1000001; });
  expect("MeasureEvery: ", [](Recipe&, auto& o) { o.measureEvery = -1; });
  expect("Initialization: ", [](Recipe& r, auto&) { r.initialization = std::nan(""); });
  expect("Layers: ", [](Recipe& r, auto&) { r.architecture.layers = 0; });
}

}
