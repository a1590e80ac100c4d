#include "vtkAttentionOnlyTraining.h"

#include "Training.h"

#include "Pipeline.h"
#include "vtkTokenPairs.h"

#include <vtkCallbackCommand.h>
#include <vtkInformation.h>
#include <vtkNew.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <gmock/gmock.h>

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

  std::vector<double> Times()
  {
    this->Get()->UpdateInformation();
    vtkInformation* info = this->Get()->GetOutputInformation(0);
    const double* times = info->Get(SDDP::TIME_STEPS());
    return { times, times + info->Length(SDDP::TIME_STEPS()) };
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
  EXPECT_THAT(training.Times(), ElementsAre(0, 50, 100, 120));
  EXPECT_THAT(training.Column("Step"), ElementsAre(0, 50, 100, 120));
  training->SetSteps(100);
  EXPECT_THAT(training.Times(), ElementsAre(0, 50, 100));
  training->SetSteps(0);
  EXPECT_THAT(training.Times(), ElementsAre(0));
}

TEST(AttentionOnlyTraining, GivesTheModelOfATime)
{
  Training training;
  TrainingOptions options;
  options.steps = 120;
  Trainer trainer(options);
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

TEST(AttentionOnlyTraining, SaysWhatIsWrong)
{
  Training rate;
  rate->SetLearningRate(0);
  ExpectError(rate, "LearningRate: expected a positive number, found 0.000000.");
  Training every;
  every->SetCheckpointEvery(0);
  ExpectError(every, "CheckpointEvery: expected at least 1 step, found 0.");
  Training heads;
  heads->SetHeads(0);
  ExpectError(heads, "Heads: expected at least 1");
}

TEST(AttentionOnlyTraining, KeepsWhatWasReachedWhenItDiverges)
{
  Training training;
  training->SetLearningRate(1e308);
  training->Update();
  EXPECT_THAT(training.TakeErrors(), ElementsAre(HasSubstr("the training diverged at step ")));
  EXPECT_THAT(training.Column("Step"), ElementsAre(0));
}

}
