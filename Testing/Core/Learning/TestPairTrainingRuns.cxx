#include "Learning/PairTrainingRuns.h"

#include "AttentionOnly/AttentionEvaluation.h"
#include "Base/Error.h"

#include "Oracle.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>

using namespace atlas;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace
{

std::vector<TrainingRun> Trained(const TrainingOptions& options, int runs, int threads = 2)
{
  return RunTrainings(SweepOptions(options, runs, { options.mode }), {}, threads);
}

std::ptrdiff_t CountLearned(const std::vector<TrainingRun>& runs)
{
  return std::count_if(
    runs.begin(), runs.end(), [](const TrainingRun& run) { return run.last.accuracy == 1; });
}

/// The median of the losses in the end.
double MedianLoss(const std::vector<TrainingRun>& runs)
{
  std::vector<double> losses;
  for (const TrainingRun& run : runs)
  {
    losses.push_back(run.last.loss);
  }
  std::sort(losses.begin(), losses.end());
  return losses[losses.size() / 2];
}

TEST(TrainingRuns, FullBatchesLearnTheTaskOfNearlyAllSeeds)
{
  EXPECT_GE(CountLearned(Trained({}, 100)), 95);
}

TEST(TrainingRuns, LearnAsThePublishedCodeDoes)
{
  // The published run: Adam at 1e-3, 256 pairs a step, 3,500 steps, on the task of its model.
  const std::string name = "trained-n5-h3-slow";
  const AttentionOnlyModel published =
    ReadAttentionOnlyModel(test::Oracle::Folder() / (name + ".safetensors"));
  TrainingOptions options;
  options.learningRate = 1e-3;
  options.batchSize = 256;
  const auto runs =
    RunTrainings(SweepOptions(options, 20, { options.mode }), { &published, false }, 2);
  EXPECT_GT(CountLearned(runs), 10);
  const SafetensorsFile curve(test::Oracle::Folder() / (name + ".curve.safetensors"));
  const std::vector<double> losses = curve.GetTensors().at("loss").ToDouble();
  const double expected = std::accumulate(losses.end() - 100, losses.end(), 0.) / 100;
  RecordProperty("median loss", testing::PrintToString(MedianLoss(runs)));
  EXPECT_LT(std::abs(std::log10(MedianLoss(runs) / expected)), 1);
}

TEST(TrainingRuns, TellWhatATrainingOfTheirOwnTells)
{
  TrainingOptions options;
  options.steps = 700;
  options.seed = 11;
  const std::vector<TrainingRun> runs = Trained(options, 3);
  ASSERT_EQ(runs.size(), 3U);
  for (const TrainingRun& run : runs)
  {
    options.seed = run.options.seed;
    PairTrainer trainer(options);
    int learned = -1;
    for (int step = 0; step <= 700; ++step)
    {
      if (learned < 0 && trainer.Measure().accuracy == 1)
      {
        learned = step;
      }
      if (step < 700)
      {
        trainer.Step();
      }
    }
    EXPECT_EQ(run.learned, learned);
    EXPECT_EQ(run.last.step, 700);
    EXPECT_EQ(run.last.loss, trainer.Measure().loss);
    EXPECT_EQ(run.last.accuracy, trainer.Measure().accuracy);
    const AttentionOnlyModel model = trainer.GetModel();
    const ReferenceEvaluator evaluator(model, {});
    Eigen::Index any = 0;
    for (int pair = 0; pair < 25; ++pair)
    {
      bool correct = false;
      for (const HeadEvaluation& head : evaluator.AtTokens(pair / 5, pair % 5).heads)
      {
        Eigen::Index predicted = 0;
        (model.unembedding * head.output).maxCoeff(&predicted);
        correct = correct || predicted == model.nextToken(pair / 5, pair % 5);
      }
      any += correct ? 1 : 0;
    }
    EXPECT_EQ(run.heads.any, any);
  }
  EXPECT_EQ(runs[2].options.seed, 13U);
}

TEST(TrainingRuns, DoNotDependOnThreads)
{
  TrainingOptions options;
  options.steps = 100;
  const std::vector<TrainingMode> modes = { TrainingMode::Joint, TrainingMode::Boosting };
  const auto sweep = SweepOptions(options, 5, modes);
  const auto one = RunTrainings(sweep, {}, 1);
  const auto many = RunTrainings(sweep, {}, 4);
  ASSERT_EQ(one.size(), 10U);
  ASSERT_EQ(many.size(), 10U);
  for (std::size_t i = 0; i < one.size(); ++i)
  {
    EXPECT_EQ(one[i].last.loss, many[i].last.loss);
    EXPECT_EQ(one[i].learned, many[i].learned);
    EXPECT_EQ(one[i].heads.alone, many[i].heads.alone);
    EXPECT_EQ(one[i].options.seed, i % 5);
    EXPECT_EQ(one[i].options.mode, modes[i / 5]);
  }
}

TEST(TrainingRuns, SpecializationLetsHeadsShareTheWork)
{
  TrainingOptions options;
  const auto without = Trained(options, 20);
  options.specialization = 0.3;
  const auto with = Trained(options, 20);
  const auto mean = [](const std::vector<TrainingRun>& runs)
  {
    double sum = 0;
    for (const TrainingRun& run : runs)
    {
      sum += static_cast<double>(run.heads.any) / static_cast<double>(run.heads.pairs);
    }
    return sum / static_cast<double>(runs.size());
  };
  EXPECT_GT(mean(with), mean(without) + 0.1);
  EXPECT_GE(CountLearned(with), CountLearned(without) - 2);
}

TEST(TrainingRuns, GiveWhatIsDoneWhenCanceled)
{
  TrainingOptions options;
  options.steps = 100;
  double last = -1;
  const auto runs = RunTrainings(SweepOptions(options, 10, { options.mode }), {}, 1,
    [&last](double done)
    {
      EXPECT_GE(done, last);
      last = done;
      return done < 0.55;
    });
  EXPECT_EQ(runs.size(), 5U);
  EXPECT_NEAR(last, 0.55, 1e-9);
}

TEST(TrainingRuns, GoOnWhereOneDiverges)
{
  TrainingOptions options;
  options.learningRate = 1e300;
  options.optimizer = Optimizer::GradientDescent;
  const auto runs = Trained(options, 2);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_TRUE(std::isnan(runs[0].last.loss));
  EXPECT_GT(runs[0].last.step, 0);
  EXPECT_EQ(runs[0].learned, -1);
}

TEST(TrainingRuns, SayWhatIsWrong)
{
  TrainingOptions options;
  options.heads = 0;
  EXPECT_THAT([&]() { Trained(options, 4); },
    ThrowsMessage<OptionError>(HasSubstr("Heads: expected at least 1")));
}

}
