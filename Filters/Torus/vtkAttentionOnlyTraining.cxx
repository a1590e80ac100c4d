#include "vtkAttentionOnlyTraining.h"

#include "Execution.h"
#include "ModelConversion.h"
#include "TrainingTables.h"

#include <vtkExecutive.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

using AttentionAtlas::Checkpoint;

/// More would make ParaView's list of time steps slow.
constexpr double MaximumCheckpoints = 1e5;

}

/// All that a training depends on.
struct vtkAttentionOnlyTraining::Request
{
  atlas::TrainingOptions options;
  std::vector<int> checkpoints; ///< steps
  std::string file;             ///< of a model, or empty
  std::filesystem::file_time_type fileTime;
  bool continues = false;

  bool operator==(const Request& other) const
  {
    return this->options == other.options && this->checkpoints == other.checkpoints &&
           this->file == other.file && this->fileTime == other.fileTime &&
           this->continues == other.continues;
  }
};

/// The part of an output that is asked for: a rank's.
struct vtkAttentionOnlyTraining::Piece
{
  int number;
  int count;

  explicit Piece(vtkInformation* info)
    : number(std::max(info->Get(SDDP::UPDATE_PIECE_NUMBER()), 0))
    , count(std::max(info->Get(SDDP::UPDATE_NUMBER_OF_PIECES()), 1))
  {
  }
};

/// What the last training and the last sweep gave.
struct vtkAttentionOnlyTraining::History
{
  std::optional<Request> trained;
  std::vector<Checkpoint> checkpoints;

  std::optional<Request> swept;
  std::vector<atlas::TrainingOptions> sweep; ///< the options of the runs
  std::vector<atlas::TrainingRun> runs;

  vtkMTimeType failed = 0; ///< with the properties of this time nothing can be trained

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

/// Tells ParaView how much of a part of the work is done, but not at every step, and hears its
/// Cancel.
class vtkAttentionOnlyTraining::Clock
{
public:
  explicit Clock(vtkAttentionOnlyTraining* self)
    : Self(self)
  {
  }

  /// `done`: from 0 to 1. Returns whether to go on.
  bool Tell(double done, bool always = false)
  {
    const auto now = std::chrono::steady_clock::now();
    if (always || now - this->Last > std::chrono::milliseconds(50))
    {
      this->Last = now;
      this->Self->UpdateProgress(done);
    }
    return this->Self->GetAbortExecute() == 0;
  }

private:
  vtkAttentionOnlyTraining* Self;
  std::chrono::steady_clock::time_point Last;
};

vtkStandardNewMacro(vtkAttentionOnlyTraining);

vtkAttentionOnlyTraining::vtkAttentionOnlyTraining()
  : Trained(std::make_unique<History>())
{
  this->SetNumberOfInputPorts(0);
  this->SetNumberOfOutputPorts(3);
}

vtkAttentionOnlyTraining::~vtkAttentionOnlyTraining()
{
  this->SetModelFile(nullptr);
}

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
  for (const int port : { 1, 2 })
  {
    if (vtkTable::GetData(outputVector, port) == nullptr)
    {
      vtkNew<vtkTable> table;
      outputVector->GetInformationObject(port)->Set(vtkDataObject::DATA_OBJECT(), table);
    }
  }
  return 1;
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
  const std::vector<double> times(steps.begin(), steps.end());
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

/// What the properties ask for. Throws std::runtime_error if that makes no sense.
vtkAttentionOnlyTraining::Request vtkAttentionOnlyTraining::GetRequest() const
{
  if (this->CheckpointEvery < 1)
  {
    throw std::runtime_error("CheckpointEvery: expected at least 1 step, found " +
                             std::to_string(this->CheckpointEvery) + ".");
  }
  Request request;
  request.checkpoints = this->CheckpointSteps();
  if (request.checkpoints.empty())
  {
    throw std::runtime_error("CheckpointEvery: expected at most 100000 checkpoints, found " +
                             std::to_string(static_cast<std::int64_t>(this->CheckpointCount())) +
                             "; raise it.");
  }
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
  request.file = this->ModelFile != nullptr ? this->ModelFile : "";
  request.continues = this->ContinueModel;
  if (!request.file.empty())
  {
    std::error_code absent; // which reading the file will tell
    request.fileTime = std::filesystem::last_write_time(request.file, absent);
  }
  else if (request.continues)
  {
    throw std::runtime_error("ModelFile: expected the file of a model to continue, found none.");
  }
  return request;
}

namespace
{

/// The model of a file, or none if there is no file. Throws atlas::Error.
std::optional<atlas::AttentionOnlyModel> ReadModel(const std::string& file)
{
  if (file.empty())
  {
    return std::nullopt;
  }
  return atlas::ReadAttentionOnlyModel(file);
}

/// Throws std::runtime_error if the task and the checkpoints do not fit into memory.
void RequireMemoryFor(const atlas::TrainingOptions& options, std::size_t checkpoints)
{
  const double n = options.vocabularySize;
  const double pairs = n * n;
  AttentionAtlas::RequireMemory(4. * sizeof(double) * pairs,
    "VocabularySize: a task of " + std::to_string(static_cast<std::int64_t>(pairs)) + " pairs",
    "lower VocabularySize.");
  const double parameters = 6 * n + 6 + 12. * options.heads * options.headDimension;
  const double model = sizeof(double) * (pairs + parameters);
  AttentionAtlas::RequireMemory(model * static_cast<double>(checkpoints),
    "CheckpointEvery: " + std::to_string(checkpoints) + " models", "raise CheckpointEvery.");
}

}

/// Trains anew, unless it is what was trained the last time.
void vtkAttentionOnlyTraining::Train(const Request& request, Clock& clock)
{
  History& history = *this->Trained;
  if (history.trained && *history.trained == request)
  {
    return;
  }
  history.checkpoints.clear();
  history.trained = request;
  const std::optional<atlas::AttentionOnlyModel> model = ReadModel(request.file);
  atlas::CheckOptions(request.options);
  RequireMemoryFor(request.options, request.checkpoints.size());
  atlas::Trainer trainer(request.options, { model ? &*model : nullptr, request.continues });
  const double all = std::max(request.options.steps, 1);
  bool goesOn = true;
  try
  {
    for (const int checkpoint : request.checkpoints)
    {
      while (goesOn && trainer.GetStep() < checkpoint)
      {
        trainer.Step();
        goesOn = clock.Tell(trainer.GetStep() / all);
      }
      history.checkpoints.push_back(AttentionAtlas::TakeCheckpoint(trainer));
      if (!goesOn || !clock.Tell(trainer.GetStep() / all, true))
      {
        return; // what was reached is the result
      }
    }
  }
  catch (const atlas::DivergenceError& e) // likewise
  {
    vtkErrorMacro(<< e.what());
  }
}

/// The trainings of a part of the sweep.
std::vector<atlas::TrainingOptions> vtkAttentionOnlyTraining::GetSweep(
  const Request& request, const Piece& piece) const
{
  using Modes = atlas::TrainingMode;
  const std::vector<Modes> modes =
    this->AllModes ? std::vector<Modes>{ Modes::Joint, Modes::Boosting, Modes::BoostingOutputOnly }
                   : std::vector<Modes>{ request.options.mode };
  const auto all = atlas::SweepOptions(request.options, this->Runs, modes);
  const auto bound = [&](int number)
  { return all.begin() + static_cast<std::ptrdiff_t>(all.size()) * number / piece.count; };
  return { bound(piece.number), bound(piece.number + 1) };
}

/// Trains these; what is done when the user cancels is the result.
void vtkAttentionOnlyTraining::Sweep(
  const Request& request, const std::vector<atlas::TrainingOptions>& sweep, Clock& clock)
{
  History& history = *this->Trained;
  history.runs.clear();
  history.swept = request;
  history.sweep = sweep;
  const std::optional<atlas::AttentionOnlyModel> model = ReadModel(request.file);
  history.runs = atlas::RunTrainings(sweep, { model ? &*model : nullptr, request.continues },
    AttentionAtlas::ThreadLimit(), [&clock](double done) { return clock.Tell(done); });
}

/// Fills all outputs, since VTK has cleared them all; but sweeps only for who asks for its table.
int vtkAttentionOnlyTraining::RequestData(
  vtkInformation* request, vtkInformationVector**, vtkInformationVector* outputVector)
{
  if (this->Trained->failed == this->GetMTime())
  {
    return 1; // which has been told
  }
  const int port = request->Get(vtkExecutive::FROM_OUTPUT_PORT());
  try
  {
    const Request wanted = this->GetRequest();
    Clock clock(this);
    this->Train(wanted, clock);
    this->FillTraining(outputVector);
    this->FillRuns(wanted, port == 2, outputVector->GetInformationObject(2), clock);
  }
  catch (const std::exception& e)
  {
    *this->Trained = {};
    this->Trained->failed = this->GetMTime();
    vtkErrorMacro(<< e.what());
  }
  this->AbortExecute = 0;
  return 1;
}

/// The model at its time, the same in each piece, and the table of checkpoints, in the first alone.
void vtkAttentionOnlyTraining::FillTraining(vtkInformationVector* outputVector)
{
  const History& history = *this->Trained;
  if (history.checkpoints.empty())
  {
    return;
  }
  vtkInformation* info = outputVector->GetInformationObject(0);
  const double time =
    info->Has(SDDP::UPDATE_TIME_STEP()) != 0 ? info->Get(SDDP::UPDATE_TIME_STEP()) : this->Steps;
  const Checkpoint& checkpoint = history.At(time);
  vtkMultiBlockDataSet* output = vtkMultiBlockDataSet::GetData(outputVector, 0);
  AttentionAtlas::ToDataSet(checkpoint.model, output);
  output->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), checkpoint.state.step);
  if (Piece(outputVector->GetInformationObject(1)).number == 0)
  {
    AttentionAtlas::AddCheckpoints(history.checkpoints, vtkTable::GetData(outputVector, 1));
  }
}

/// The table of runs, of which each piece has a part.
void vtkAttentionOnlyTraining::FillRuns(
  const Request& request, bool isWanted, vtkInformation* info, Clock& clock)
{
  if (this->Runs == 0)
  {
    return;
  }
  const auto sweep = this->GetSweep(request, Piece(info));
  History& history = *this->Trained;
  const bool isDone = history.swept && *history.swept == request && history.sweep == sweep;
  if (!isDone && !isWanted)
  {
    info->Set(vtkDemandDrivenPipeline::DATA_NOT_GENERATED(), 1);
    return;
  }
  if (!isDone)
  {
    this->Sweep(request, sweep, clock);
  }
  AttentionAtlas::AddRuns(history.runs, vtkTable::SafeDownCast(vtkDataObject::GetData(info)));
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
  os << indent << "Optimizer: " << this->Optimizer << "\n";
  os << indent << "Initialization: " << this->Initialization << "\n";
  os << indent << "ModelFile: " << (this->ModelFile != nullptr ? this->ModelFile : "(none)")
     << "\n";
  os << indent << "ContinueModel: " << this->ContinueModel << "\n";
  os << indent << "Seed: " << this->Seed << "\n";
  os << indent << "CheckpointEvery: " << this->CheckpointEvery << "\n";
  os << indent << "Runs: " << this->Runs << "\n";
  os << indent << "AllModes: " << this->AllModes << "\n";
}
