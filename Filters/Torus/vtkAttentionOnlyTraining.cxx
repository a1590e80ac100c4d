#include "vtkAttentionOnlyTraining.h"

#include "Base/Error.h"
#include "ModelConversion.h"
#include "Task.h"
#include "TrainingResults.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

using namespace AttentionAtlas;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

/// More would make ParaView's list of time steps slow.
constexpr double MaximumCheckpoints = 1e5;

constexpr int RunsPort = 2;

/// The part of an output that is asked for: a rank's.
struct Piece
{
  int number;
  int count;

  explicit Piece(vtkInformation* info)
    : number(std::max(info->Get(SDDP::UPDATE_PIECE_NUMBER()), 0))
    , count(std::max(info->Get(SDDP::UPDATE_NUMBER_OF_PIECES()), 1))
  {
  }
};

/// Reports progress, but not at every step, and hears ParaView's Cancel.
class Clock
{
public:
  Clock(vtkAlgorithm* algorithm, const Task& task)
    : Algorithm(algorithm)
    , Part(task)
  {
  }

  bool operator()(double done, bool always)
  {
    const auto now = std::chrono::steady_clock::now();
    if (always || now - this->Last > std::chrono::milliseconds(50))
    {
      this->Last = now;
      return this->Part.GoesOn(done);
    }
    return !IsCanceled(this->Algorithm);
  }

private:
  vtkAlgorithm* Algorithm;
  const Task& Part;
  std::chrono::steady_clock::time_point Last;
};

}

struct vtkAttentionOnlyTraining::Results
{
  TrainingHistory history;
  TrainingSweep sweep;
};

vtkStandardNewMacro(vtkAttentionOnlyTraining);

vtkAttentionOnlyTraining::vtkAttentionOnlyTraining()
  : vtkTaskAlgorithm({}, { "vtkMultiBlockDataSet", "vtkTable", "vtkTable" })
  , Trained(std::make_unique<Results>())
{
}

double vtkAttentionOnlyTraining::CheckpointCount() const
{
  return 1 + std::ceil(
               static_cast<double>(std::max(this->Steps, 0)) / std::max(this->CheckpointEvery, 1));
}

/// The steps of the checkpoints; none if they are too many.
std::vector<int> vtkAttentionOnlyTraining::CheckpointSteps() const
{
  std::vector<int> steps;
  if (this->CheckpointCount() > MaximumCheckpoints)
  {
    return steps;
  }
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
  SetTimeSteps(outputVector->GetInformationObject(0), { steps.begin(), steps.end() });
  for (int port = 0; port < this->GetNumberOfOutputPorts(); ++port)
  {
    outputVector->GetInformationObject(port)->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
  }
  return 1;
}

/// What the properties ask for. Throws std::runtime_error if that makes no sense.
TrainingRequest vtkAttentionOnlyTraining::GetRequest() const
{
  atlas::ThrowIf<atlas::OptionError>(this->CheckpointEvery < 1,
    "CheckpointEvery: expected at least 1 step, found ", this->CheckpointEvery, ".");
  TrainingRequest request;
  request.checkpoints = this->CheckpointSteps();
  atlas::ThrowIf<atlas::OptionError>(request.checkpoints.empty(),
    "CheckpointEvery: expected at most 100000 checkpoints, found ",
    static_cast<std::int64_t>(this->CheckpointCount()), "; raise it.");
  atlas::TrainingOptions& options = request.options;
  options.vocabularySize = this->VocabularySize;
  options.heads = this->Heads;
  options.headDimension = this->HeadDimension;
  options.steps = this->Steps;
  options.learningRate = this->LearningRate;
  options.batchSize = this->BatchSize;
  options.mode = static_cast<atlas::TrainingMode>(this->Mode);
  options.optimizer = static_cast<atlas::Optimizer>(this->Optimizer);
  options.initialization = static_cast<atlas::Initialization>(this->Initialization);
  options.priorDecay = this->PriorDecay;
  options.specialization = this->Specialization;
  options.seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(this->Seed));
  request.file = this->ModelFile;
  request.continues = this->ContinueModel;
  if (!request.file.empty())
  {
    std::error_code absent; // which reading the file will tell
    request.fileTime = std::filesystem::last_write_time(request.file, absent);
  }
  else if (request.continues)
  {
    throw atlas::OptionError("ModelFile: expected the file of a model to continue, found none.");
  }
  return request;
}

void vtkAttentionOnlyTraining::Execute(Task& task)
{
  task.Reads(this->ModelFile.c_str());
  try
  {
    const TrainingRequest wanted = this->GetRequest();
    const TrainingProgress progress = Clock(this, task);
    const std::string divergence = this->Trained->history.Update(wanted, progress);
    if (!divergence.empty() && task.IsFirst())
    {
      vtkErrorMacro(<< divergence);
    }
    this->FillTraining(task);
    this->FillRuns(wanted, task, progress);
  }
  catch (const std::exception&)
  {
    *this->Trained = {};
    throw;
  }
  task.KeepCanceled(); // what was trained until then is the result
}

/// The model at its time, the same in each piece, and the table of checkpoints, in the first alone.
void vtkAttentionOnlyTraining::FillTraining(const Task& task) const
{
  const TrainingHistory& history = this->Trained->history;
  if (history.Checkpoints().empty())
  {
    return;
  }
  vtkInformation* info = task.OutputInformation();
  const double time =
    info->Has(SDDP::UPDATE_TIME_STEP()) != 0 ? info->Get(SDDP::UPDATE_TIME_STEP()) : this->Steps;
  const Checkpoint& checkpoint = history.At(time);
  auto* output = task.Output<vtkMultiBlockDataSet>();
  ToDataSet(checkpoint.model, output);
  output->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), checkpoint.state.step);
  if (Piece(task.OutputInformation(1)).number == 0)
  {
    AddCheckpoints(history.Checkpoints(), task.Output<vtkTable>(1));
  }
}

/// The table of runs, of which each piece has a part; trained only for who asks for it.
void vtkAttentionOnlyTraining::FillRuns(
  const TrainingRequest& request, const Task& task, const TrainingProgress& progress)
{
  if (this->Runs == 0)
  {
    return;
  }
  vtkInformation* info = task.OutputInformation(RunsPort);
  const Piece piece(info);
  const auto options = SweepPiece(request, this->Runs, this->AllModes, piece.number, piece.count);
  TrainingSweep& sweep = this->Trained->sweep;
  const bool isDone = sweep.IsDone(request, options);
  if (!isDone && task.Port() != RunsPort)
  {
    info->Set(vtkDemandDrivenPipeline::DATA_NOT_GENERATED(), 1);
    return;
  }
  if (!isDone)
  {
    sweep.Update(request, options, progress);
  }
  AddRuns(sweep.Runs(), task.Output<vtkTable>(RunsPort));
}
