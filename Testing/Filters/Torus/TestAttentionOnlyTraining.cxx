#include "vtkAttentionOnlyTraining.h"

#include "Learning/PairTrainer.h"

#include "Matchers.h"
#include "Pipeline.h"
#include "vtkTokenPairs.h"

using namespace atlas;
using namespace atlas::test;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

/// A short training.
class Training : public On<vtkAttentionOnlyTraining>
{
public:
  Training()
  {
    this->Get()->SetSteps(120);
    this->Get()->SetCheckpointEvery(50);
  }

  AttentionOnlyModel At(double time)
  {
    this->Get()->UpdateTimeStep(time);
    return AttentionAtlas::ToModel(OutputOf<vtkMultiBlockDataSet>(this->Get()));
  }
};

TEST(AttentionOnlyTraining, HasItsCheckpointsAsTimes)
{
  Training training;
  EXPECT_THAT(TimesOf(training.Get()), ElementsAre(0, 50, 100, 120));
  EXPECT_THAT(training.Column("Step", 1), ElementsAre(0, 50, 100, 120));
  training->SetSteps(100);
  EXPECT_THAT(TimesOf(training.Get()), ElementsAre(0, 50, 100));
  training->SetSteps(0);
  EXPECT_THAT(TimesOf(training.Get()), ElementsAre(0));
}

TEST(AttentionOnlyTraining, GivesTheModelOfATime)
{
  Training training;
  TrainingOptions options;
  options.steps = 120;
  PairTrainer trainer(options);
  EXPECT_EQ(training.At(0).wordEmbedding, trainer.GetModel().wordEmbedding);
  while (trainer.GetStep() < 100)
  {
    trainer.Step();
  }
  EXPECT_EQ(training.At(100).heads[1].key, trainer.GetModel().heads[1].key);
  EXPECT_EQ(training.At(119.5).heads[1].key, trainer.GetModel().heads[1].key);
  EXPECT_NE(training.At(120).heads[1].key, trainer.GetModel().heads[1].key);
}

TEST(AttentionOnlyTraining, TellsTheAccuracyThatTheMapShows)
{
  Training training;
  training->SetSteps(600);
  const std::vector<double> accuracy = training.Column("Accuracy", 1);
  const std::vector<double> steps = training.Column("Step", 1);
  for (std::size_t i = 0; i < steps.size(); ++i)
  {
    On<vtkTokenPairs> pairs(DataSetOf(training.At(steps[i])));
    EXPECT_NEAR(pairs.Field("Accuracy")[0], accuracy[i], 1e-12);
  }
  EXPECT_GT(accuracy.back(), 0.8);
  EXPECT_LT(training.Column("Loss", 1).back(), training.Column("Loss", 1).front() / 4);
}

/// Also for a sweep, which changes nothing about the training itself.
TEST(AttentionOnlyTraining, TrainsOnceForAllTimes)
{
  Training training;
  const AttentionOnlyModel before = training.At(120);
  training->SetRuns(1);
  EXPECT_EQ(training.Column("Seed", 2).size(), 1U);
  const Reports reports(training.Get());
  training.At(50);
  EXPECT_EQ(training.At(120).wordEmbedding, before.wordEmbedding);
  EXPECT_THAT(reports.Progress, IsEmpty());
  training->SetSeed(1);
  EXPECT_NE(training.At(120).wordEmbedding, before.wordEmbedding);
  EXPECT_GE(reports.Progress.size(), 2U); // checkpoints between the first and the last
}

TEST(AttentionOnlyTraining, TellsTheHeadInTraining)
{
  Training training;
  EXPECT_THAT(training.Column("Phase", 1), ElementsAre(-1, -1, -1, -1));
  training->SetMode(vtkAttentionOnlyTraining::BOOSTING);
  EXPECT_THAT(training.Column("Phase", 1), ElementsAre(0, 1, 2, 2));
}

TEST(AttentionOnlyTraining, KeepsWhatWasReachedWhenCancelled)
{
  Training training;
  const Canceler canceler(training.Get(), 0.3);
  EXPECT_THAT(training.Column("Step", 1), ElementsAre(0, 50));
  EXPECT_EQ(training.At(120).metadata.at("step"), "50");
}

TEST(AttentionOnlyTraining, KeepsWhatWasReachedWhenItDiverges)
{
  Training training;
  training->SetLearningRate(1e308);
  training->Update();
  EXPECT_THAT(training.TakeErrors(), ElementsAre(HasSubstr("the training diverged at step ")));
  EXPECT_THAT(training.Column("Step", 1), ElementsAre(0));
}

TEST(AttentionOnlyTraining, SweepsOverSeeds)
{
  Training training;
  EXPECT_EQ(training.Table(2)->GetNumberOfColumns(), 0);
  training->SetSteps(600);
  training->SetSeed(4);
  training->SetRuns(3);
  EXPECT_THAT(training.Column("Seed", 2), ElementsAre(4, 5, 6));
  const std::vector<double> losses = training.Column("Loss", 2);
  const std::vector<double> learned = training.Column("Steps to Learn", 2);
  const std::vector<double> second = training.Column("Accuracy Head 1", 2);
  for (std::size_t run = 0; run < 3; ++run)
  {
    Training one;
    one->SetSteps(600);
    one->SetCheckpointEvery(1);
    one->SetSeed(static_cast<int>(4 + run));
    const std::vector<double> accuracy = one.Column("Accuracy", 1);
    EXPECT_EQ(losses[run], one.Column("Loss", 1).back());
    EXPECT_EQ(second[run], one.Column("Accuracy Head 1", 1).back());
    const auto first = std::find(accuracy.begin(), accuracy.end(), 1);
    EXPECT_EQ(learned[run], first == accuracy.end() ? -1. : double(first - accuracy.begin()));
  }
  training->AllModesOn();
  EXPECT_THAT(training.Column("Seed", 2), ElementsAre(4, 5, 6, 4, 5, 6, 4, 5, 6));
}

TEST(AttentionOnlyTraining, SplitsASweepAmongPieces)
{
  Training training;
  training->SetRuns(5);
  const std::vector<double> all = training.Column("Loss", 2);
  std::vector<double> together;
  for (int piece = 0; piece < 3; ++piece)
  {
    Training part;
    part->SetRuns(5);
    vtkNew<vtkInformationVector> requests;
    requests->SetNumberOfInformationObjects(3);
    vtkInformation* request = requests->GetInformationObject(2);
    request->Set(SDDP::UPDATE_PIECE_NUMBER(), piece);
    request->Set(SDDP::UPDATE_NUMBER_OF_PIECES(), 3);
    part->Update(2, requests);
    const std::vector<double> losses =
      Values(OutputOf<vtkTable>(part.Get(), 2)->GetRowData(), "Loss");
    together.insert(together.end(), losses.begin(), losses.end());
  }
  EXPECT_EQ(together, all);
}

TEST(AttentionOnlyTraining, TrainsTheTaskOfAModelAndContinuesIt)
{
  const std::string path = ATLAS_DATA_DIR "/trained-n5-h3.safetensors";
  const AttentionOnlyModel model = ReadAttentionOnlyModel(path);
  Training training;
  training->SetVocabularySize(9);
  training->SetHeads(2);
  training->SetModelFile(path.c_str());
  EXPECT_EQ(training.At(0).nextToken, model.nextToken);
  EXPECT_EQ(training.At(0).HeadCount(), 2U);
  EXPECT_LT(training.Column("Accuracy", 1).front(), 0.9);
  training->ContinueModelOn();
  EXPECT_EQ(training.At(0).HeadCount(), 3U);
  EXPECT_EQ(training.At(0).heads[2].value, model.heads[2].value);
  EXPECT_EQ(training.Column("Accuracy", 1).front(), 1);
  EXPECT_NE(training.At(120).heads[2].value, model.heads[2].value);
}

TEST(AttentionOnlyTraining, HasAnOptimizerAndAnInitialization)
{
  Training training;
  const AttentionOnlyModel published = training.At(0);
  const double adam = training.Column("Loss", 1).back();
  training->SetOptimizer(vtkAttentionOnlyTraining::GRADIENT_DESCENT);
  EXPECT_EQ(training.At(0).wordEmbedding, published.wordEmbedding);
  EXPECT_GT(training.Column("Loss", 1).back(), adam); // at this rate
  training->SetInitialization(vtkAttentionOnlyTraining::GAUSSIAN);
  EXPECT_NE(training.At(0).wordEmbedding, published.wordEmbedding);
}

TEST(AttentionOnlyTraining, HearsCancelBetweenCheckpoints)
{
  Training training;
  training->SetSteps(100000000); // an hour
  training->SetCheckpointEvery(50000000);
  const Canceler canceler(training.Get());
  const std::vector<double> steps = training.Column("Step", 1);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_GT(steps[1], 0);
  EXPECT_LT(steps[1], 50000000);
  training->SetRuns(2); // starts a new training, which is neither canceled nor a continuation
  EXPECT_EQ(training.Column("Step", 1), steps);
}

TEST(AttentionOnlyTraining, NeedsANumberOfRuns)
{
  Training runs;
  runs->SetRuns(-1);
  EXPECT_THAT(runs.Error(), HasSubstr("Runs: expected at least 0, found -1"));
}

TEST(AttentionOnlyTraining, RecoversFromAnError)
{
  Training training;
  const AttentionOnlyModel before = training.At(100);
  training->SetLearningRate(-1);
  EXPECT_THAT(training.Error(), HasSubstr("LearningRate"));
  training->SetLearningRate(0.01);
  EXPECT_EQ(training.At(100).wordEmbedding, before.wordEmbedding);
}

}
