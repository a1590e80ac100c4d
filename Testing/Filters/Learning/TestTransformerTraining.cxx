#include "vtkTransformerTraining.h"

#include "Learning/CheckpointFiles.h"
#include "Learning/LearningRun.h"
#include "Learning/RecipeFile.h"
#include "Learning/SavedTraining.h"
#include "TransformerConversion.h"
#include "Transformers.h"
#include "Weights/ProcessedWeights.h"
#include "vtkHeadComposition.h"
#include "vtkHeadScores.h"

#include <fstream>

using namespace atlas;
using namespace atlas::test;

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

  vtkMultiBlockDataSet* Output() { return OutputOf<vtkMultiBlockDataSet>(this->Get()); }

  vtkMultiBlockDataSet* At(double time)
  {
    this->Get()->UpdateTimeStep(time);
    return this->Output();
  }

  vtkTable* Table() { return this->On::Table(1); }
  std::vector<double> Column(const char* name) { return this->On::Column(name, 1); }
};

/// Tensors by their names.
using Weights = std::map<std::string, std::vector<double>>;

Weights WeightsOf(const Tensors& tensors)
{
  Weights weights;
  for (const auto& [name, tensor] : tensors)
  {
    weights[name] = tensor.View().ToDouble();
  }
  return weights;
}

Weights WeightsOf(const LearningCheckpoint& checkpoint)
{
  return WeightsOf(*checkpoint.weights);
}

/// The weights that a description leads to.
Weights WeightsOf(vtkMultiBlockDataSet* description)
{
  Weights weights;
  const auto model = AttentionAtlas::ToTransformer(description);
  for (const auto& [name, tensor] : model->GetModel().GetFiles().GetTensors())
  {
    weights[name] = tensor.ToDouble();
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
  const Weights before = WeightsOf(training.At(20));
  const Reports reports(training.Get());
  training.At(8);
  training.Table();
  EXPECT_EQ(WeightsOf(training.At(20)), before);
  EXPECT_THAT(reports.Progress, IsEmpty());
  training->SetSeed(1);
  EXPECT_NE(WeightsOf(training.At(20)), before);
  EXPECT_THAT(reports.Progress, Not(IsEmpty()));
}

TEST(TransformerTraining, AnotherTaskHasItsOwnRecipe)
{
  Warned<vtkTransformerTraining> training;
  training->SetSteps(1);
  for (const TaskKind kind : { TaskKind::BeliefStates, TaskKind::LatticeProtein })
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
  const Canceler canceler(training.Get());
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
  EXPECT_THAT(training.Error(), HasSubstr(message));
  training->UpdateTimeStep(8);
  EXPECT_THAT(training.TakeErrors(), IsEmpty()) << "it is reported once";
}

/// TestHostileInput.py has what else may be wrong.
TEST(TransformerTraining, SaysWhatIsWrong)
{
  Training text;
  text->SetTask(vtkTransformerTraining::TEXT);
  text->SetTextFile("/no/such/text.txt");
  text->SetVocabulary(300);
  text->SetRepeats(0); // which the short context has no place for
  ExpectError(text, "/no/such/text.txt");
  Training rows;
  rows->SetSteps(2000000000);
  rows->SetCheckpointEvery(0);
  rows->SetMeasureEvery(1);
  ExpectError(rows, "MeasureEvery: expected at most 100000 rows");
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
    ExpectSameArrays(OutputOf<vtkTable>(scores.Get())->GetRowData(),
      OutputOf<vtkTable>(scoresOfFiles.Get())->GetRowData());

    vtkNew<vtkHeadComposition> compositionOfFiles;
    compositionOfFiles->SetInputConnection(ofFiles.Model->GetOutputPort());
    compositionOfFiles->Update();
    composition->UpdateTimeStep(time);
    ExpectSameArrays(OutputOf<vtkPolyData>(composition.Get())->GetCellData(),
      OutputOf<vtkPolyData>(compositionOfFiles.Get())->GetCellData());
  }
}

TEST(TransformerTraining, GivesProcessedWeights)
{
  Training training;
  const auto stored = AttentionAtlas::ToTransformer(training.At(20));
  training->SetProcessing(vtkTransformerTraining::TRANSFORMER_LENS);
  EXPECT_EQ(WeightsOf(training.At(20)), WeightsOf(ProcessedTensors(stored->GetModel())));
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
  EXPECT_THAT(recorder.Error(), HasSubstr("trained in this session, found none"));
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
