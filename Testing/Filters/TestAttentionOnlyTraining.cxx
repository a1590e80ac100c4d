#include "vtkAttentionOnlyTraining.h"

#include "PairTrainer.h"

#include "Pipeline.h"
#include "vtkTokenPairs.h"

#include <vtkCallbackCommand.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkNew.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <gmock/gmock.h>

#include <algorithm>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

/// A short training.
class Training : public Observed<vtkAttentionOnlyTraining>
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
    return AttentionAtlas::ToModel(
      vtkMultiBlockDataSet::SafeDownCast(this->Get()->GetOutputDataObject(0)));
  }

  std::vector<double> Column(const char* name)
  {
    this->Get()->Update(1);
    return Values(vtkTable::SafeDownCast(this->Get()->GetOutputDataObject(1))->GetRowData(), name);
  }
};

TEST(AttentionOnlyTraining, HasItsCheckpointsAsTimes)
{
  Training training;
  EXPECT_THAT(TimesOf(training.Get()), ElementsAre(0, 50, 100, 120));
  EXPECT_THAT(training.Column("Step"), ElementsAre(0, 50, 100, 120));
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
  const std::vector<double> accuracy = training.Column("Accuracy");
  const std::vector<double> steps = training.Column("Step");
  for (std::size_t i = 0; i < steps.size(); ++i)
  {
    vtkNew<vtkTokenPairs> pairs;
    Connect(pairs, 0, DataSetOf(training.At(steps[i])));
    pairs->Update();
    EXPECT_NEAR(
      Values(pairs->GetOutputDataObject(0)->GetFieldData(), "Accuracy")[0], accuracy[i], 1e-12);
  }
  EXPECT_GT(accuracy.back(), 0.8);
  EXPECT_LT(training.Column("Loss").back(), training.Column("Loss").front() / 4);
}

TEST(AttentionOnlyTraining, TrainsOnceForAllTimes)
{
  Training training;
  vtkNew<vtkCallbackCommand> counter;
  int progress = 0;
  counter->SetClientData(&progress);
  counter->SetCallback(
    [](vtkObject*, unsigned long, void* count, void*) { ++*static_cast<int*>(count); });
  training.At(0);
  training->AddObserver(vtkCommand::ProgressEvent, counter);
  training.At(50);
  training.At(120);
  const int moving = progress;
  training->SetSeed(1);
  training.At(50);
  EXPECT_GT(progress, moving + 3); // four checkpoints and VTK's own
}

TEST(AttentionOnlyTraining, TellsTheHeadInTraining)
{
  Training training;
  EXPECT_THAT(training.Column("Phase"), ElementsAre(-1, -1, -1, -1));
  training->SetMode(vtkAttentionOnlyTraining::BOOSTING);
  EXPECT_THAT(training.Column("Phase"), ElementsAre(0, 1, 2, 2));
}

TEST(AttentionOnlyTraining, KeepsWhatWasReachedWhenCancelled)
{
  Training training;
  vtkNew<vtkCallbackCommand> cancel;
  cancel->SetCallback(
    [](vtkObject* caller, unsigned long, void*, void*)
    {
      auto* self = static_cast<vtkAttentionOnlyTraining*>(caller);
      self->SetAbortExecute(self->GetProgress() > 0.3 ? 1 : 0);
    });
  training->AddObserver(vtkCommand::ProgressEvent, cancel);
  EXPECT_THAT(training.Column("Step"), ElementsAre(0, 50));
  EXPECT_EQ(training.At(120).metadata.at("step"), "50");
}

void ExpectError(Training& training, const std::string& message)
{
  training->Update();
  EXPECT_THAT(training.TakeErrors(), ElementsAre(HasSubstr(message)));
  EXPECT_EQ(
    vtkMultiBlockDataSet::SafeDownCast(training->GetOutputDataObject(0))->GetNumberOfBlocks(), 0U);
}

TEST(AttentionOnlyTraining, KeepsWhatWasReachedWhenItDiverges)
{
  Training training;
  training->SetLearningRate(1e308);
  training->Update();
  EXPECT_THAT(training.TakeErrors(), ElementsAre(HasSubstr("the training diverged at step ")));
  EXPECT_THAT(training.Column("Step"), ElementsAre(0));
}

/// The column of the table of runs.
std::vector<double> RunsColumn(Training& training, const char* name)
{
  training->Update(2);
  return Values(vtkTable::SafeDownCast(training->GetOutputDataObject(2))->GetRowData(), name);
}

TEST(AttentionOnlyTraining, SweepsOverSeeds)
{
  Training training;
  training->Update(2);
  EXPECT_EQ(vtkTable::SafeDownCast(training->GetOutputDataObject(2))->GetNumberOfColumns(), 0);
  training->SetSteps(600);
  training->SetSeed(4);
  training->SetRuns(3);
  EXPECT_THAT(RunsColumn(training, "Seed"), ElementsAre(4, 5, 6));
  const std::vector<double> losses = RunsColumn(training, "Loss");
  const std::vector<double> learned = RunsColumn(training, "Steps to Learn");
  const std::vector<double> second = RunsColumn(training, "Accuracy Head 1");
  for (std::size_t run = 0; run < 3; ++run)
  {
    Training one;
    one->SetSteps(600);
    one->SetCheckpointEvery(1);
    one->SetSeed(static_cast<int>(4 + run));
    const std::vector<double> accuracy = one.Column("Accuracy");
    EXPECT_EQ(losses[run], one.Column("Loss").back());
    EXPECT_EQ(second[run], one.Column("Accuracy Head 1").back());
    const auto first = std::find(accuracy.begin(), accuracy.end(), 1);
    EXPECT_EQ(learned[run], first == accuracy.end() ? -1. : double(first - accuracy.begin()));
  }
  training->AllModesOn();
  EXPECT_THAT(RunsColumn(training, "Seed"), ElementsAre(4, 5, 6, 4, 5, 6, 4, 5, 6));
}

TEST(AttentionOnlyTraining, SplitsASweepAmongPieces)
{
  Training training;
  training->SetRuns(5);
  const std::vector<double> all = RunsColumn(training, "Loss");
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
      Values(vtkTable::SafeDownCast(part->GetOutputDataObject(2))->GetRowData(), "Loss");
    together.insert(together.end(), losses.begin(), losses.end());
  }
  EXPECT_EQ(together, all);
}

/// The sweep changes nothing about the training itself.
TEST(AttentionOnlyTraining, DoesNotTrainAnewForASweep)
{
  Training training;
  const AttentionOnlyModel before = training.At(120);
  training->SetRuns(1);
  EXPECT_EQ(RunsColumn(training, "Seed").size(), 1U);
  vtkNew<vtkCallbackCommand> counter;
  int progress = 0;
  counter->SetClientData(&progress);
  counter->SetCallback(
    [](vtkObject* caller, unsigned long, void* count, void*)
    {
      const double done = vtkAlgorithm::SafeDownCast(caller)->GetProgress();
      *static_cast<int*>(count) += done > 0 && done < 1 ? 1 : 0;
    });
  training->AddObserver(vtkCommand::ProgressEvent, counter);
  EXPECT_EQ(training.At(120).wordEmbedding, before.wordEmbedding);
  EXPECT_EQ(progress, 0);
  training->SetSeed(1);
  EXPECT_NE(training.At(120).wordEmbedding, before.wordEmbedding);
  EXPECT_GT(progress, 0);
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
  EXPECT_LT(training.Column("Accuracy").front(), 0.9);
  training->ContinueModelOn();
  EXPECT_EQ(training.At(0).HeadCount(), 3U);
  EXPECT_EQ(training.At(0).heads[2].value, model.heads[2].value);
  EXPECT_EQ(training.Column("Accuracy").front(), 1);
  EXPECT_NE(training.At(120).heads[2].value, model.heads[2].value);
}

TEST(AttentionOnlyTraining, HasAnOptimizerAndAnInitialization)
{
  Training training;
  const AttentionOnlyModel published = training.At(0);
  const double adam = training.Column("Loss").back();
  training->SetOptimizer(vtkAttentionOnlyTraining::GRADIENT_DESCENT);
  EXPECT_EQ(training.At(0).wordEmbedding, published.wordEmbedding);
  EXPECT_GT(training.Column("Loss").back(), adam); // at this rate
  training->SetInitialization(vtkAttentionOnlyTraining::GAUSSIAN);
  EXPECT_NE(training.At(0).wordEmbedding, published.wordEmbedding);
}

TEST(AttentionOnlyTraining, HearsCancelBetweenCheckpoints)
{
  Training training;
  training->SetSteps(100000000); // an hour
  training->SetCheckpointEvery(50000000);
  vtkNew<vtkCallbackCommand> cancel;
  cancel->SetCallback(
    [](vtkObject* caller, unsigned long, void*, void*)
    {
      auto* self = static_cast<vtkAttentionOnlyTraining*>(caller);
      self->SetAbortExecute(self->GetProgress() > 0 ? 1 : 0);
    });
  training->AddObserver(vtkCommand::ProgressEvent, cancel);
  const std::vector<double> steps = training.Column("Step");
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_GT(steps[1], 0);
  EXPECT_LT(steps[1], 50000000);
  training->SetRuns(2); // starts a new training, which is neither canceled nor a continuation
  EXPECT_EQ(training.Column("Step"), steps);
}

TEST(AttentionOnlyTraining, NeedsANumberOfRuns)
{
  Training runs;
  runs->SetRuns(-1);
  runs->Update(2);
  EXPECT_THAT(runs.TakeErrors(), ElementsAre(HasSubstr("Runs: expected at least 0, found -1")));
}

TEST(AttentionOnlyTraining, RecoversFromAnError)
{
  Training training;
  const AttentionOnlyModel before = training.At(100);
  training->SetLearningRate(-1);
  ExpectError(training, "LearningRate");
  training->SetLearningRate(0.01);
  EXPECT_EQ(training.At(100).wordEmbedding, before.wordEmbedding);
}

}
