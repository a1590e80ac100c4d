#include "vtkTransformerTraining.h"

#include "CheckpointFiles.h"
#include "LearningRun.h"
#include "ProcessedWeights.h"
#include "RecipeFile.h"
#include "SavedTraining.h"
#include "TemporaryDirectory.h"
#include "TransformerConversion.h"
#include "Transformers.h"
#include "vtkHeadComposition.h"
#include "vtkHeadScores.h"

#include <vtkCallbackCommand.h>
#include <vtkCellData.h>
#include <vtkInformation.h>
#include <vtkNew.h>
#include <vtkPolyData.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

namespace
{

/// The recipe of the training below.
LearningRecipe SmallRecipe()
{
  LearningRecipe recipe = DefaultRecipe(TaskKind::RepeatedTokens);
  recipe.task.vocabulary = 8;
  recipe.task.context = 16;
  recipe.architecture.heads = 2;
  recipe.architecture.modelDimension = 16;
  recipe.batchSize = 4;
  recipe.steps = 20;
  return recipe;
}

/// A short training.
class Training : public Warned<vtkTransformerTraining>
{
public:
  Training()
  {
    this->Get()->SetVocabulary(8);
    this->Get()->SetContext(16);
    this->Get()->SetHeads(2);
    this->Get()->SetModelDimension(16);
    this->Get()->SetBatchSize(4);
    this->Get()->SetSteps(20);
    this->Get()->SetCheckpointEvery(8);
  }

  vtkMultiBlockDataSet* Output()
  {
    return vtkMultiBlockDataSet::SafeDownCast(this->Get()->GetOutputDataObject(0));
  }

  vtkMultiBlockDataSet* At(double time)
  {
    this->Get()->UpdateTimeStep(time);
    return this->Output();
  }

  vtkTable* Table()
  {
    this->Get()->Update(1);
    return vtkTable::SafeDownCast(this->Get()->GetOutputDataObject(1));
  }

  std::vector<double> Column(const char* name) { return Values(this->Table()->GetRowData(), name); }
};

/// The bytes of the weights that a description leads to.
std::vector<std::vector<double>> WeightsOf(vtkMultiBlockDataSet* description)
{
  std::vector<std::vector<double>> weights;
  const auto model = AttentionAtlas::ToTransformer(description);
  for (const auto& [name, tensor] : model->GetModel().GetFiles().GetTensors())
  {
    weights.push_back(tensor.ToDouble());
  }
  return weights;
}

std::vector<std::vector<double>> WeightsOf(const LearningCheckpoint& checkpoint)
{
  std::vector<std::vector<double>> weights;
  for (const auto& [name, tensor] : *checkpoint.weights)
  {
    weights.push_back(tensor.View().ToDouble());
  }
  return weights;
}

LearningResult Learned(const LearningRecipe& recipe, std::int64_t every)
{
  LearningOptions options;
  options.checkpointEvery = every;
  return Learn(recipe, options);
}

TEST(TransformerTraining, HasItsCheckpointsAsTimes)
{
  Training training;
  EXPECT_THAT(TimesOf(training.Get()), ElementsAre(0, 8, 16, 20)) << "before the training";
  training->Update();
  EXPECT_THAT(TimesOf(training.Get()), ElementsAre(0, 8, 16, 20));
  training->SetSteps(16);
  EXPECT_THAT(TimesOf(training.Get()), ElementsAre(0, 8, 16));
}

TEST(TransformerTraining, PlansTheStepsThatItReaches)
{
  Training training;
  training->SetCheckpointEvery(0);
  training->SetSteps(100);
  std::vector<double> steps;
  LearningRecipe recipe = SmallRecipe();
  recipe.steps = 100;
  for (const LearningCheckpoint& checkpoint : Learned(recipe, 0).checkpoints)
  {
    steps.push_back(static_cast<double>(checkpoint.step));
  }
  EXPECT_EQ(TimesOf(training.Get()), steps);
}

TEST(TransformerTraining, GivesTheModelOfATime)
{
  Training training;
  const LearningResult expected = Learned(SmallRecipe(), 8);
  ASSERT_THAT(expected.checkpoints, SizeIs(4));
  EXPECT_EQ(WeightsOf(training.At(0)), WeightsOf(expected.checkpoints[0]));
  EXPECT_EQ(WeightsOf(training.At(8)), WeightsOf(expected.checkpoints[1]));
  EXPECT_EQ(WeightsOf(training.At(15.5)), WeightsOf(expected.checkpoints[1]));
  EXPECT_EQ(WeightsOf(training.At(20)), WeightsOf(expected.checkpoints[3]));
  EXPECT_NE(WeightsOf(training.At(16)), WeightsOf(expected.checkpoints[3]));
  EXPECT_EQ(training.Output()->GetInformation()->Get(vtkDataObject::DATA_TIME_STEP()), 16);
}

TEST(TransformerTraining, HasCurves)
{
  Training training;
  const LearningCurves expected = Learned(SmallRecipe(), 8).curves;
  vtkTable* table = training.Table();
  ASSERT_EQ(table->GetNumberOfColumns(), static_cast<int>(expected.names.size()));
  for (std::size_t c = 0; c < expected.names.size(); ++c)
  {
    EXPECT_EQ(table->GetColumnName(static_cast<vtkIdType>(c)), expected.names[c]);
  }
  const std::vector<double> steps = training.Column("Step");
  EXPECT_EQ(steps.front(), 0);
  EXPECT_EQ(steps.back(), 20);
  EXPECT_TRUE(std::isnan(training.Column("Loss").back()));
  EXPECT_FALSE(std::isnan(training.Column("Held-out Loss").back()));
  EXPECT_THAT(Texts(table->GetFieldData(), "Recipe"), ElementsAre(ToJson(SmallRecipe())));
  EXPECT_THAT(
    Texts(training.Output()->GetFieldData(), "Recipe"), ElementsAre(ToJson(SmallRecipe())));
}

TEST(TransformerTraining, TrainsOnceForAllTimes)
{
  Training training;
  const std::vector<std::vector<double>> before = WeightsOf(training.At(20));
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
  training.At(8);
  training.Table();
  EXPECT_EQ(WeightsOf(training.At(20)), before);
  EXPECT_EQ(progress, 0);
  training->SetSeed(1);
  EXPECT_NE(WeightsOf(training.At(20)), before);
  EXPECT_GT(progress, 0);
}

TEST(TransformerTraining, AnotherTaskHasItsOwnRecipe)
{
  Warned<vtkTransformerTraining> training;
  training->SetSteps(1);
  for (const TaskKind kind : { TaskKind::BeliefStates, TaskKind::SortedList })
  {
    training->SetTask(static_cast<int>(kind));
    auto* output = Updated<vtkMultiBlockDataSet>(training.Get());
    const auto model = AttentionAtlas::ToTransformer(output);
    const LearningRecipe recipe = DefaultRecipe(kind);
    const TransformerConfig& config = model->GetModel().GetConfig();
    EXPECT_EQ(config.layers, recipe.architecture.layers);
    EXPECT_EQ(config.modelDimension, recipe.architecture.modelDimension);
    EXPECT_EQ(config.mlpDimension, recipe.architecture.mlpDimension);
  }
}

TEST(TransformerTraining, KeepsWhatWasReachedWhenCancelled)
{
  Training training;
  training->SetSteps(100000);
  training->SetCheckpointEvery(50000);
  vtkNew<vtkCallbackCommand> cancel;
  cancel->SetCallback(
    [](vtkObject* caller, unsigned long, void*, void*)
    {
      auto* self = static_cast<vtkTransformerTraining*>(caller);
      self->SetAbortExecute(self->GetProgress() > 0 && self->GetProgress() < 1 ? 1 : 0);
    });
  training->AddObserver(vtkCommand::ProgressEvent, cancel);
  EXPECT_LT(training.Column("Step").back(), 50000);
  const double last = training.At(100000)->GetInformation()->Get(vtkDataObject::DATA_TIME_STEP());
  EXPECT_GT(last, 0);
  EXPECT_LT(last, 50000);
  EXPECT_EQ(training.At(0)->GetInformation()->Get(vtkDataObject::DATA_TIME_STEP()), 0);
}

TEST(TransformerTraining, KeepsWhatWasReachedWhenItDiverges)
{
  Training training;
  training->SetCheckpointEvery(1);
  training->SetLearningRate(1e30);
  training->SetWarmup(0);
  training->Update();
  EXPECT_THAT(training.TakeWarnings(), ElementsAre(HasSubstr("step ")));
  EXPECT_LT(training.Column("Step").back(), 20);
  EXPECT_EQ(WeightsOf(training.At(0)), WeightsOf(Learned(SmallRecipe(), 8).checkpoints[0]));
  EXPECT_THAT(training.TakeWarnings(), IsEmpty()) << "it is reported once";
}

void ExpectError(Training& training, const std::string& message)
{
  training->Update();
  EXPECT_THAT(training.TakeErrors(), ElementsAre(HasSubstr(message)));
  EXPECT_EQ(training.Output()->GetNumberOfBlocks(), 0U);
  training->UpdateTimeStep(8);
  EXPECT_THAT(training.TakeErrors(), IsEmpty()) << "it is reported once";
}

TEST(TransformerTraining, SaysWhatIsWrong)
{
  Training text;
  text->SetTask(vtkTransformerTraining::TEXT);
  text->SetTextFile("/no/such/text.txt");
  text->SetVocabulary(300);
  text->SetRepeats(0); // which the short context has no place for
  ExpectError(text, "/no/such/text.txt");
  Training layers;
  layers->SetLayers(-2);
  ExpectError(layers, "Layers: expected 0 or more for that of the recipe, found -2.");
  Training rate;
  rate->SetLearningRate(std::nan(""));
  ExpectError(rate, "LearningRate: expected 0 or more");
  Training decay;
  decay->SetWeightDecay(-2);
  ExpectError(decay, "WeightDecay: expected 0 or more, or -1 for that of the recipe, found -2.");
  Training seed;
  seed->SetSeed(-1);
  ExpectError(seed, "Seed: expected 0 or more, found -1.");
  Training heads;
  heads->SetHeads(17);
  ExpectError(heads, "HeadDimension: 17 heads do not fit into ModelDimension, 16");
  Training many;
  many->SetSteps(2000000000);
  many->SetCheckpointEvery(1);
  ExpectError(many, "CheckpointEvery: expected at most 100000 checkpoints");
  Training rows;
  rows->SetSteps(2000000000);
  rows->SetCheckpointEvery(0);
  rows->SetMeasureEvery(1);
  ExpectError(rows, "MeasureEvery: expected at most 100000 rows");
  Training large;
  large->SetLayers(2000000000);
  ExpectError(large, "the training would take");
  Training folder;
  folder->SetContinueFrom("/no/such/folder");
  ExpectError(folder, "/no/such/folder/recipe.json");
}

/// Expects the same arrays of numbers.
void ExpectSameNumbers(vtkFieldData* found, vtkFieldData* expected)
{
  ASSERT_EQ(Names(found), Names(expected));
  for (const std::string& name : Names(expected))
  {
    if (expected->GetArray(name.c_str()) != nullptr) // of texts, otherwise
    {
      EXPECT_TRUE(IsSame(found->GetArray(name.c_str()), expected->GetArray(name.c_str()))) << name;
    }
  }
}

/// The views of a model are the same from memory as from files.
TEST(TransformerTraining, EveryFilterFollowsItsTime)
{
  const TemporaryDirectory folder;
  const LearningResult expected = Learned(SmallRecipe(), 8);
  Training training;
  Warned<vtkTransformerRecorder> recorder;
  recorder->SetInputConnection(training->GetOutputPort());
  recorder->SetTokenIds("1 2 3 4 5 1 2 3 4 5");
  vtkNew<vtkHeadScores> scores;
  scores->SetInputConnection(recorder->GetOutputPort());
  vtkNew<vtkHeadComposition> composition;
  composition->SetInputConnection(training->GetOutputPort());
  for (const LearningCheckpoint& checkpoint : expected.checkpoints)
  {
    const std::filesystem::path path = folder / std::to_string(checkpoint.step);
    WriteCheckpoint(path, *checkpoint.model, expected.files);
    Pipeline ofFiles(path);
    ofFiles.Recorder->SetTokenIds("1 2 3 4 5 1 2 3 4 5");
    const auto time = static_cast<double>(checkpoint.step);
    recorder->UpdateTimeStep(time);
    const Recording found =
      AttentionAtlas::ToRecording(OutputOf<vtkMultiBlockDataSet>(recorder.Get()));
    ExpectEqual(found, ofFiles.Record());

    vtkNew<vtkHeadScores> scoresOfFiles;
    scoresOfFiles->SetInputConnection(ofFiles.Recorder->GetOutputPort());
    scoresOfFiles->Update();
    scores->UpdateTimeStep(time);
    ExpectSameNumbers(vtkTable::SafeDownCast(scores->GetOutputDataObject(0))->GetRowData(),
      vtkTable::SafeDownCast(scoresOfFiles->GetOutputDataObject(0))->GetRowData());

    vtkNew<vtkHeadComposition> compositionOfFiles;
    compositionOfFiles->SetInputConnection(ofFiles.Model->GetOutputPort());
    compositionOfFiles->Update();
    composition->UpdateTimeStep(time);
    ExpectSameNumbers(vtkPolyData::SafeDownCast(composition->GetOutputDataObject(0))->GetCellData(),
      vtkPolyData::SafeDownCast(compositionOfFiles->GetOutputDataObject(0))->GetCellData());
  }
}

TEST(TransformerTraining, GivesProcessedWeights)
{
  Training training;
  const auto stored = AttentionAtlas::ToTransformer(training.At(20));
  training->SetProcessing(vtkTransformerTraining::TRANSFORMER_LENS);
  const Tensors expected = ProcessedTensors(stored->GetModel());
  const auto processed = AttentionAtlas::ToTransformer(training.At(20));
  const TensorViews& found = processed->GetModel().GetFiles().GetTensors();
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected)
  {
    EXPECT_EQ(found.at(name).ToDouble(), tensor.View().ToDouble()) << name;
  }
}

TEST(TransformerTraining, IsGoneWithItsSource)
{
  auto description = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  {
    Training training;
    description->DeepCopy(training.At(8));
  }
  Warned<vtkTransformerRecorder> recorder;
  Connect(recorder.Get(), 0, description);
  recorder->SetTokenIds("1 2 3");
  recorder->Update();
  EXPECT_THAT(recorder.TakeErrors(), ElementsAre(HasSubstr("trained in this session, found none")));
}

/// A folder as attention-atlas learn writes it, after 8 steps.
void WriteTraining(const std::filesystem::path& folder)
{
  LearningRecipe recipe = SmallRecipe();
  LearningOptions options;
  options.checkpointEvery = 8;
  options.checkpoint = [&](const LearningCheckpoint& checkpoint, const Tensors& state)
  {
    if (checkpoint.step == 8)
    {
      WriteSafetensors(folder / TrainingStateFile, state, {});
    }
  };
  Learn(recipe, options);
  std::ofstream(folder / RecipeFile) << ToJson(recipe);
}

TEST(TransformerTraining, GoesOn)
{
  const TemporaryDirectory folder;
  WriteTraining(folder.Path());
  Training whole;
  Training rest;
  rest->SetContinueFrom(folder.Path().c_str());
  EXPECT_THAT(TimesOf(rest.Get()), ElementsAre(8, 16, 20));
  EXPECT_EQ(WeightsOf(rest.At(8)), WeightsOf(whole.At(8)));
  EXPECT_EQ(WeightsOf(rest.At(20)), WeightsOf(whole.At(20)));
  rest->SetSteps(8);
  ExpectError(rest, "Steps: expected more than the 8 that are done, found 8.");
  rest->SetSteps(20);
  rest->SetTask(vtkTransformerTraining::BELIEF_STATES);
  ExpectError(rest, "Task: expected RepeatedTokens, that of ContinueFrom, found BeliefStates.");
}

}
