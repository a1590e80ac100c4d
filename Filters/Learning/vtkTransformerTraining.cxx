#include "vtkTransformerTraining.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Error.h"
#include "Execution.h"
#include "LearningHistory.h"
#include "RecipeFile.h"
#include "SavedTraining.h"
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
  explicit Clock(vtkAlgorithm* algorithm)
    : Algorithm(algorithm)
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
      this->Algorithm->SetProgressText(text.data());
      return AttentionAtlas::ReportProgress(this->Algorithm, done);
    }
    return !AttentionAtlas::IsCanceled(this->Algorithm);
  }

private:
  vtkAlgorithm* Algorithm;
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
  std::shared_ptr<const AttentionAtlas::OpenTransformer> given; ///< the model of the output
  vtkMTimeType failed = 0; ///< with the properties of this time nothing can be trained or given
};

vtkStandardNewMacro(vtkTransformerTraining);

vtkTransformerTraining::vtkTransformerTraining()
  : Trained(std::make_unique<Results>())
{
  this->SetNumberOfInputPorts(0);
  this->SetNumberOfOutputPorts(2);
}

vtkTransformerTraining::~vtkTransformerTraining()
{
  this->SetTextFile(nullptr);
  this->SetContinueFrom(nullptr);
}

int vtkTransformerTraining::FillOutputPortInformation(int port, vtkInformation* info)
{
  info->Set(vtkDataObject::DATA_TYPE_NAME(), port == 0 ? "vtkMultiBlockDataSet" : "vtkTable");
  return 1;
}

int vtkTransformerTraining::RequestDataObject(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  if (vtkMultiBlockDataSet::GetData(outputVector, 0) == nullptr)
  {
    vtkNew<vtkMultiBlockDataSet> model;
    outputVector->GetInformationObject(0)->Set(vtkDataObject::DATA_OBJECT(), model);
  }
  if (vtkTable::GetData(outputVector, 1) == nullptr)
  {
    vtkNew<vtkTable> table;
    outputVector->GetInformationObject(1)->Set(vtkDataObject::DATA_OBJECT(), table);
  }
  return 1;
}

/// Tells the steps that are planned; none if the training is impossible, which RequestData reports.
int vtkTransformerTraining::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  std::vector<double> times;
  try
  {
    const std::vector<std::int64_t> steps = this->GetRequest().CheckpointSteps();
    times.assign(steps.begin(), steps.end());
  }
  catch (const std::exception&)
  {
    times.clear();
  }
  vtkInformation* info = outputVector->GetInformationObject(0);
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
  const auto kind = static_cast<TaskKind>(this->Task);
  LearningRecipe& recipe = request.recipe;
  if (this->ContinueFrom == nullptr || *this->ContinueFrom == '\0')
  {
    if (this->Seed < 0)
    {
      throw OptionError("Seed: expected 0 or more, found " + std::to_string(this->Seed) + ".");
    }
    recipe = DefaultRecipe(kind);
    recipe.seed = recipe.task.seed = static_cast<std::uint64_t>(this->Seed);
  }
  else
  {
    request.continueFrom = this->ContinueFrom;
    recipe = ReadRecipe(request.continueFrom / RecipeFile);
    if (recipe.task.kind != kind)
    {
      throw OptionError("Task: expected " +
                        TaskNames().at(static_cast<std::size_t>(recipe.task.kind)) +
                        ", that of ContinueFrom, found " +
                        TaskNames().at(static_cast<std::size_t>(this->Task)) + ".");
    }
  }
  if (this->TextFile != nullptr && *this->TextFile != '\0')
  {
    recipe.task.text = this->TextFile;
  }
  TaskOptions& task = recipe.task;
  Replace(task.vocabulary, this->Vocabulary, 0, "Vocabulary");
  Replace(task.context, this->Context, 0, "Context");
  Replace(task.repeats, this->Repeats, -1, "Repeats");
  Replace(task.curriculum, this->Curriculum, -1, "Curriculum");
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

/// Asks for the same piece of both outputs, which are made together.
int vtkTransformerTraining::RequestUpdateExtent(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  const int port = request->Get(vtkExecutive::FROM_OUTPUT_PORT());
  for (int other = 0; port >= 0 && other < this->GetNumberOfOutputPorts(); ++other)
  {
    for (auto* key : { SDDP::UPDATE_PIECE_NUMBER(), SDDP::UPDATE_NUMBER_OF_PIECES() })
    {
      outputVector->GetInformationObject(other)->Set(
        key, outputVector->GetInformationObject(port)->Get(key));
    }
  }
  return this->Superclass::RequestUpdateExtent(request, inputVector, outputVector);
}

int vtkTransformerTraining::RequestData(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  const AttentionAtlas::RankGroup ranks(outputVector);
  if (!ranks.Any(this->Trained->failed != this->GetMTime()))
  {
    return 1; // which has been told
  }
  AttentionAtlas::LearningRequest request;
  AttentionAtlas::RankResult asked;
  try
  {
    request = this->GetRequest();
  }
  catch (const std::exception& e)
  {
    asked.error = e.what();
  }
  try
  {
    ranks.Require(asked);
    const std::string divergence = this->Trained->history.Update(request, ranks, Clock(this));
    if (!divergence.empty() && ranks.Rank() == 0)
    {
      vtkWarningMacro(<< divergence);
    }
    AttentionAtlas::RankResult filled;
    try
    {
      this->FillOutputs(atlas::ToJson(request.recipe), outputVector);
    }
    catch (const std::exception& e)
    {
      filled.error = e.what();
    }
    ranks.Require(filled);
  }
  catch (const std::exception& e)
  {
    if (ranks.Leave(e))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    this->Trained->given.reset();
    this->Failed.Remember({ this->TextFile, this->ContinueFrom });
    this->Trained->failed = this->GetMTime();
    if (ranks.Rank() == 0)
    {
      vtkErrorMacro(<< e.what());
    }
  }
  this->SetProgressText(nullptr);
  AttentionAtlas::WithdrawCancel(this); // what was trained until then is the result
  return 1;
}

/// The model at its time, the same in each piece, and the curves, in the first alone.
void vtkTransformerTraining::FillOutputs(
  const std::string& recipe, vtkInformationVector* outputVector)
{
  const AttentionAtlas::LearningHistory& history = this->Trained->history;
  vtkInformation* info = outputVector->GetInformationObject(0);
  const double time = info->Has(SDDP::UPDATE_TIME_STEP()) != 0
                        ? info->Get(SDDP::UPDATE_TIME_STEP())
                        : static_cast<double>(history.Models().back().step);
  const AttentionAtlas::KeptModel& kept = history.At(time);
  vtkMultiBlockDataSet* output = vtkMultiBlockDataSet::GetData(outputVector, 0);
  const bool processes = this->Processing == TRANSFORMER_LENS;
  this->Trained->given =
    processes ? AttentionAtlas::OpenTransformer::Open(kept.path, "", true) : kept.model;
  AttentionAtlas::ToDataSet(this->Trained->given->GetModel(), kept.path, "", processes, output);
  AttentionAtlas::AddField(output->GetFieldData(), AttentionAtlas::ArrayNames::Recipe, recipe);
  output->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), static_cast<double>(kept.step));
  if (!AttentionAtlas::IsFirstPiece(outputVector))
  {
    return;
  }
  vtkTable* table = vtkTable::GetData(outputVector, 1);
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::TransformerTraining);
  AttentionAtlas::AddField(table->GetFieldData(), AttentionAtlas::ArrayNames::Recipe, recipe);
  const atlas::LearningCurves& curves = history.Curves();
  for (std::size_t c = 0; c < curves.names.size(); ++c)
  {
    const auto value = [c](const std::vector<double>& row) { return row[c]; };
    if (curves.names[c] == AttentionAtlas::ArrayNames::Step)
    {
      AttentionAtlas::AddColumn<vtkIntArray>(table, curves.names[c], curves.rows,
        [c](const std::vector<double>& row) { return static_cast<int>(row[c]); });
    }
    else
    {
      AttentionAtlas::AddColumn<vtkDoubleArray>(table, curves.names[c], curves.rows, value);
    }
  }
}

vtkMTimeType vtkTransformerTraining::GetMTime()
{
  this->Failed.Touch(this);
  return this->Superclass::GetMTime();
}

void vtkTransformerTraining::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  const auto text = [](const char* path) { return path != nullptr ? path : "(none)"; };
  os << indent << "Task: " << this->Task << "\n";
  os << indent << "TextFile: " << text(this->TextFile) << "\n";
  os << indent << "Vocabulary: " << this->Vocabulary << "\n";
  os << indent << "Context: " << this->Context << "\n";
  os << indent << "Repeats: " << this->Repeats << "\n";
  os << indent << "Curriculum: " << this->Curriculum << "\n";
  os << indent << "TrainShare: " << this->TrainShare << "\n";
  os << indent << "Layers: " << this->Layers << "\n";
  os << indent << "Heads: " << this->Heads << "\n";
  os << indent << "ModelDimension: " << this->ModelDimension << "\n";
  os << indent << "HeadDimension: " << this->HeadDimension << "\n";
  os << indent << "MlpDimension: " << this->MlpDimension << "\n";
  os << indent << "Positions: " << this->Positions << "\n";
  os << indent << "Normalization: " << this->Normalization << "\n";
  os << indent << "Activation: " << this->Activation << "\n";
  os << indent << "Tied: " << this->Tied << "\n";
  os << indent << "BatchSize: " << this->BatchSize << "\n";
  os << indent << "Steps: " << this->Steps << "\n";
  os << indent << "LearningRate: " << this->LearningRate << "\n";
  os << indent << "WeightDecay: " << this->WeightDecay << "\n";
  os << indent << "Warmup: " << this->Warmup << "\n";
  os << indent << "Seed: " << this->Seed << "\n";
  os << indent << "CheckpointEvery: " << this->CheckpointEvery << "\n";
  os << indent << "MeasureEvery: " << this->MeasureEvery << "\n";
  os << indent << "Processing: " << this->Processing << "\n";
  os << indent << "ContinueFrom: " << text(this->ContinueFrom) << "\n";
}
