#include "vtkTransformerTraining.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Execution.h"
#include "Learning/RecipeFile.h"
#include "Learning/SavedTraining.h"
#include "LearningHistory.h"
#include "RankGroup.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

/// Reports progress and the loss, but not at every step, and hears ParaView's Cancel.
class Clock
{
public:
  Clock(vtkAlgorithm* algorithm, const AttentionAtlas::Task& task)
    : Algorithm(algorithm)
    , Part(task)
  {
  }

  bool operator()(double done, double loss)
  {
    const auto now = std::chrono::steady_clock::now();
    if (now - this->Last > std::chrono::milliseconds(50))
    {
      this->Last = now;
      std::array<char, 32> text;
      std::snprintf(text.data(), text.size(), "loss %.3f", loss);
      return this->Part.GoesOn(done, text.data());
    }
    return !AttentionAtlas::IsCanceled(this->Algorithm);
  }

private:
  vtkAlgorithm* Algorithm;
  const AttentionAtlas::Task& Part;
  std::chrono::steady_clock::time_point Last;
};

/// Replaces a setting of the recipe by a property, unless the property has its default, the one
/// that stands for the recipe. Throws atlas::OptionError if it is below 0, or not a number.
template<class Setting, class Number>
void Replace(Setting& setting, Number number, int recipe, const char* name)
{
  if (number == recipe)
  {
    return;
  }
  if (!(number >= 0))
  {
    std::ostringstream message;
    message << name << ": expected " << (recipe < 0 ? "0 or more, or -1" : "0 or more")
            << " for that of the recipe, found " << number << ".";
    throw atlas::OptionError(message.str());
  }
  setting = static_cast<Setting>(number);
}

/// Replaces a setting by an enumeration whose first value stands for the recipe.
template<class Setting>
void ReplaceKind(Setting& setting, int value, std::initializer_list<Setting> kinds)
{
  if (value > 0)
  {
    setting = kinds.begin()[value - 1];
  }
}

}

struct vtkTransformerTraining::Results
{
  AttentionAtlas::LearningHistory history;
  AttentionAtlas::LearningHistory untrained; ///< the model before the first step, for the outline
  std::shared_ptr<const atlas::OpenTransformer> given; ///< the model of the output
};

vtkStandardNewMacro(vtkTransformerTraining);

vtkTransformerTraining::vtkTransformerTraining()
  : vtkTaskAlgorithm({}, { "vtkMultiBlockDataSet", "vtkTable" }, TOGETHER)
  , Trained(std::make_unique<Results>())
{
}

vtkTransformerTraining::~vtkTransformerTraining() = default;

/// Tells the steps that are planned, and the model before the first one, which has the layers,
/// heads and tokens of all; none if the training is impossible, which RequestData reports.
int vtkTransformerTraining::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  std::vector<double> times;
  vtkNew<vtkMultiBlockDataSet> outline;
  try
  {
    AttentionAtlas::LearningRequest request = this->GetRequest();
    const std::vector<std::int64_t> steps = request.CheckpointSteps();
    times.assign(steps.begin(), steps.end());
    request.recipe.steps = 0;
    request.continueFrom.clear();
    AttentionAtlas::LearningHistory& untrained = this->Trained->untrained;
    untrained.Update(request, AttentionAtlas::RankGroup(), [](auto&&...) { return true; });
    const AttentionAtlas::KeptModel& kept = untrained.Models().front();
    AttentionAtlas::ToDataSet(kept.model->GetModel(), kept.path, "", false, outline);
  }
  catch (const std::exception&)
  {
    times.clear();
    outline->Initialize();
  }
  vtkInformation* info = outputVector->GetInformationObject(0);
  AttentionAtlas::Announce(info, outline);
  if (times.empty())
  {
    info->Remove(SDDP::TIME_STEPS());
    info->Remove(SDDP::TIME_RANGE());
  }
  else
  {
    const double range[2] = { times.front(), times.back() };
    info->Set(SDDP::TIME_STEPS(), times.data(), static_cast<int>(times.size()));
    info->Set(SDDP::TIME_RANGE(), range, 2);
  }
  for (int port = 0; port < this->GetNumberOfOutputPorts(); ++port)
  {
    outputVector->GetInformationObject(port)->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
  }
  return 1;
}

/// What the properties ask for. Throws atlas::OptionError if one is invalid.
AttentionAtlas::LearningRequest vtkTransformerTraining::GetRequest() const
{
  using namespace atlas;
  AttentionAtlas::LearningRequest request;
  const TaskKind kind = TaskNumbered(this->Task);
  LearningRecipe& recipe = request.recipe;
  if (this->ContinueFrom.empty())
  {
    ThrowIf<OptionError>(this->Seed < 0, "Seed: expected 0 or more, found ", this->Seed, ".");
    recipe = DefaultRecipe(kind);
    recipe.seed = recipe.task.seed = static_cast<std::uint64_t>(this->Seed);
  }
  else
  {
    request.continueFrom = this->ContinueFrom;
    recipe = ReadRecipe(request.continueFrom / RecipeFile);
    ThrowIf<OptionError>(recipe.task.kind != kind, "Task: expected ", NameOf(recipe.task.kind),
      ", that of ContinueFrom, found ", NameOf(kind), ".");
  }
  if (!this->TextFile.empty())
  {
    recipe.task.text = this->TextFile;
  }
  TaskOptions& task = recipe.task;
  Replace(task.vocabulary, this->Vocabulary, 0, "Vocabulary");
  Replace(task.context, this->Context, 0, "Context");
  Replace(task.repeats, this->Repeats, -1, "Repeats");
  Replace(task.curriculum, this->Curriculum, -1, "Curriculum");
  Replace(task.curriculumVocabulary, this->CurriculumVocabulary, 0, "Curriculum Vocabulary");
  Replace(task.trainShare, this->TrainShare, 0, "TrainShare");
  ArchitectureOptions& model = recipe.architecture;
  Replace(model.layers, this->Layers, 0, "Layers");
  Replace(model.heads, this->Heads, 0, "Heads");
  Replace(model.modelDimension, this->ModelDimension, 0, "ModelDimension");
  Replace(model.headDimension, this->HeadDimension, 0, "HeadDimension");
  Replace(model.mlpDimension, this->MlpDimension, -1, "MlpDimension");
  ReplaceKind(model.positions, this->Positions,
    { PositionKind::Learned, PositionKind::Shortformer, PositionKind::Alibi, PositionKind::Rotary,
      PositionKind::None });
  ReplaceKind(
    model.norm, this->Normalization, { NormKind::LayerNorm, NormKind::RmsNorm, NormKind::None });
  ReplaceKind(model.activation, this->Activation,
    { atlas::Activation::Gelu, atlas::Activation::GeluTanh, atlas::Activation::Relu,
      atlas::Activation::Silu });
  ReplaceKind(model.tied, this->Tied, { false, true });
  Replace(recipe.batchSize, this->BatchSize, 0, "BatchSize");
  Replace(recipe.steps, this->Steps, 0, "Steps");
  Replace(recipe.optimizer.rate, this->LearningRate, 0, "LearningRate");
  Replace(recipe.optimizer.weightDecay, this->WeightDecay, -1, "WeightDecay");
  Replace(recipe.optimizer.warmup, this->Warmup, -1, "Warmup");
  Replace(request.checkpointEvery, this->CheckpointEvery, 0, "CheckpointEvery");
  Replace(request.measureEvery, this->MeasureEvery, 0, "MeasureEvery");
  return request;
}

int vtkTransformerTraining::RequestUpdateExtent(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  AskForAllOutputs(request, outputVector);
  return this->Superclass::RequestUpdateExtent(request, inputVector, outputVector);
}

void vtkTransformerTraining::Execute(AttentionAtlas::Task& task)
{
  task.Reads(this->TextFile.c_str());
  task.Reads(this->ContinueFrom.c_str());
  const AttentionAtlas::LearningRequest request = this->GetRequest();
  const std::string divergence =
    this->Trained->history.Update(request, task.Ranks(), Clock(this, task));
  if (!divergence.empty() && task.Ranks().Rank() == 0)
  {
    vtkWarningMacro(<< divergence);
  }
  this->FillOutputs(atlas::ToJson(request.recipe), task);
  task.KeepCanceled(); // what was trained until then is the result
}

/// The model at its time, the same in each piece, and the curves, in the first alone.
void vtkTransformerTraining::FillOutputs(
  const std::string& recipe, const AttentionAtlas::Task& task)
{
  const AttentionAtlas::LearningHistory& history = this->Trained->history;
  vtkInformation* info = task.OutputInformation();
  const double time = info->Has(SDDP::UPDATE_TIME_STEP()) != 0
                        ? info->Get(SDDP::UPDATE_TIME_STEP())
                        : static_cast<double>(history.Models().back().step);
  const AttentionAtlas::KeptModel& kept = history.At(time);
  auto* output = task.Output<vtkMultiBlockDataSet>();
  const bool processes = this->Processing == TRANSFORMER_LENS;
  this->Trained->given = processes ? atlas::OpenTransformer::Open(kept.path, "", true) : kept.model;
  AttentionAtlas::ToDataSet(this->Trained->given->GetModel(), kept.path, "", processes, output);
  AttentionAtlas::AddField(output->GetFieldData(), AttentionAtlas::ArrayNames::Recipe, recipe);
  output->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), static_cast<double>(kept.step));
  if (!task.IsFirst())
  {
    return;
  }
  auto* table = task.Output<vtkTable>(1);
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::TransformerTraining);
  AttentionAtlas::AddField(table->GetFieldData(), AttentionAtlas::ArrayNames::Recipe, recipe);
  const atlas::LearningCurves& curves = history.Curves();
  for (std::size_t c = 0; c < curves.names.size(); ++c)
  {
    if (curves.names[c] == AttentionAtlas::ArrayNames::Step)
    {
      AttentionAtlas::AddColumn<vtkIntArray>(table, curves.names[c], curves.rows,
        [c](const std::vector<double>& row) { return static_cast<int>(row[c]); });
    }
    else
    {
      AttentionAtlas::AddColumn<vtkDoubleArray>(table, curves.names[c], curves.rows,
        [c](const std::vector<double>& row) { return row[c]; });
    }
  }
}
