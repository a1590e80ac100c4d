#include "vtkAttentionOnlyTraining.h"

#include "ArrayNames.h"
#include "HeadAccuracy.h"
#include "ModelConversion.h"
#include "Training.h"

#include <vtkDoubleArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkSmartPointer.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <algorithm>
#include <stdexcept>
#include <string>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

namespace Names = AttentionAtlas::ArrayNames;

/// A model in training, and how well it does.
struct Checkpoint
{
  atlas::AttentionOnlyModel model;
  atlas::TrainingState state;
  int phase;
  std::vector<double> heads; ///< accuracy of each alone
};

Checkpoint Take(atlas::Trainer& trainer)
{
  Checkpoint checkpoint{ trainer.GetModel(), trainer.Measure(), trainer.GetPhase(), {} };
  const atlas::HeadAccuracies counts =
    atlas::CountCorrect(checkpoint.model, atlas::Residual::EmbeddingPosition);
  for (const Eigen::Index correct : counts.alone)
  {
    checkpoint.heads.push_back(static_cast<double>(correct) / static_cast<double>(counts.pairs));
  }
  return checkpoint;
}

template<class Array, class Value>
void AddColumn(vtkTable* table, const std::string& name, const std::vector<Checkpoint>& checkpoints,
  const Value& value)
{
  vtkNew<Array> column;
  column->SetName(name.c_str());
  for (const Checkpoint& checkpoint : checkpoints)
  {
    column->InsertNextValue(value(checkpoint));
  }
  table->AddColumn(column);
}

void ToTable(const std::vector<Checkpoint>& checkpoints, vtkTable* table)
{
  using C = Checkpoint;
  AddColumn<vtkIntArray>(table, Names::Step, checkpoints, [](const C& c) { return c.state.step; });
  AddColumn<vtkDoubleArray>(
    table, Names::Loss, checkpoints, [](const C& c) { return c.state.loss; });
  AddColumn<vtkDoubleArray>(
    table, Names::Accuracy, checkpoints, [](const C& c) { return c.state.accuracy; });
  AddColumn<vtkIntArray>(table, Names::Phase, checkpoints, [](const C& c) { return c.phase; });
  for (std::size_t h = 0; h < checkpoints.front().heads.size(); ++h)
  {
    AddColumn<vtkDoubleArray>(table, std::string(Names::AccuracyHead) + " " + std::to_string(h),
      checkpoints, [h](const C& c) { return c.heads[h]; });
  }
}

}

/// What the last training gave.
struct vtkAttentionOnlyTraining::History
{
  std::vector<Checkpoint> checkpoints;
  vtkMTimeType time = 0; ///< of the properties that it was trained with

  const Checkpoint& At(double step) const
  {
    std::size_t found = 0;
    while (found + 1 < this->checkpoints.size() && this->checkpoints[found + 1].state.step <= step)
    {
      ++found;
    }
    return this->checkpoints[found];
  }
};

vtkStandardNewMacro(vtkAttentionOnlyTraining);

vtkAttentionOnlyTraining::vtkAttentionOnlyTraining()
  : Trained(std::make_unique<History>())
{
  this->SetNumberOfInputPorts(0);
  this->SetNumberOfOutputPorts(2);
}

vtkAttentionOnlyTraining::~vtkAttentionOnlyTraining() = default;

int vtkAttentionOnlyTraining::FillOutputPortInformation(int port, vtkInformation* info)
{
  info->Set(vtkDataObject::DATA_TYPE_NAME(), port == 0 ? "vtkMultiBlockDataSet" : "vtkTable");
  return 1;
}

int vtkAttentionOnlyTraining::RequestDataObject(
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

std::vector<int> vtkAttentionOnlyTraining::CheckpointSteps() const
{
  std::vector<int> steps;
  const int every = std::max(this->CheckpointEvery, 1);
  for (std::int64_t step = 0; step < this->Steps; step += every)
  {
    steps.push_back(static_cast<int>(step));
  }
  steps.push_back(std::max(this->Steps, 0));
  return steps;
}

int vtkAttentionOnlyTraining::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  const std::vector<int> steps = this->CheckpointSteps();
  const std::vector<double> times(steps.begin(), steps.end());
  const double range[2] = { times.front(), times.back() };
  vtkInformation* info = outputVector->GetInformationObject(0);
  info->Set(SDDP::TIME_STEPS(), times.data(), static_cast<int>(times.size()));
  info->Set(SDDP::TIME_RANGE(), range, 2);
  return 1;
}

/// Trains anew, unless nothing has changed since the last time.
void vtkAttentionOnlyTraining::Train()
{
  History& history = *this->Trained;
  if (history.time == this->GetMTime() && !history.checkpoints.empty())
  {
    return;
  }
  history.checkpoints.clear();
  history.time = this->GetMTime();
  if (this->CheckpointEvery < 1)
  {
    throw std::runtime_error("CheckpointEvery: expected at least 1 step, found " +
                             std::to_string(this->CheckpointEvery) + ".");
  }
  atlas::TrainingOptions options;
  options.vocabularySize = this->VocabularySize;
  options.heads = this->Heads;
  options.headDimension = this->HeadDimension;
  options.steps = this->Steps;
  options.learningRate = this->LearningRate;
  options.batchSize = this->BatchSize;
  options.mode = static_cast<atlas::TrainingMode>(this->Mode);
  options.priorDecay = this->PriorDecay;
  options.specialization = this->Specialization;
  options.seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(this->Seed));
  atlas::Trainer trainer(options);
  for (const int checkpoint : this->CheckpointSteps())
  {
    while (trainer.GetStep() < checkpoint)
    {
      trainer.Step();
    }
    history.checkpoints.push_back(Take(trainer));
    this->UpdateProgress(static_cast<double>(checkpoint) / std::max(this->Steps, 1));
    if (this->GetAbortExecute() != 0)
    {
      this->AbortExecute = 0; // what was reached is the result
      return;
    }
  }
}

int vtkAttentionOnlyTraining::RequestData(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* output = vtkMultiBlockDataSet::GetData(outputVector, 0);
  vtkTable* table = vtkTable::GetData(outputVector, 1);
  output->Initialize();
  table->Initialize();
  try
  {
    this->Train();
  }
  catch (const std::exception& e)
  {
    vtkErrorMacro(<< e.what());
  }
  if (this->Trained->checkpoints.empty())
  {
    return 1;
  }
  vtkInformation* info = outputVector->GetInformationObject(0);
  const double time =
    info->Has(SDDP::UPDATE_TIME_STEP()) != 0 ? info->Get(SDDP::UPDATE_TIME_STEP()) : this->Steps;
  const Checkpoint& checkpoint = this->Trained->At(time);
  AttentionAtlas::ToDataSet(checkpoint.model, output);
  output->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), checkpoint.state.step);
  const bool first = outputVector->GetInformationObject(1)->Get(SDDP::UPDATE_PIECE_NUMBER()) <= 0;
  if (first)
  {
    ToTable(this->Trained->checkpoints, table);
  }
  return 1;
}

void vtkAttentionOnlyTraining::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "VocabularySize: " << this->VocabularySize << "\n";
  os << indent << "Heads: " << this->Heads << "\n";
  os << indent << "HeadDimension: " << this->HeadDimension << "\n";
  os << indent << "Steps: " << this->Steps << "\n";
  os << indent << "LearningRate: " << this->LearningRate << "\n";
  os << indent << "BatchSize: " << this->BatchSize << "\n";
  os << indent << "Mode: " << this->Mode << "\n";
  os << indent << "PriorDecay: " << this->PriorDecay << "\n";
  os << indent << "Specialization: " << this->Specialization << "\n";
  os << indent << "Seed: " << this->Seed << "\n";
  os << indent << "CheckpointEvery: " << this->CheckpointEvery << "\n";
}
