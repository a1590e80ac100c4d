#include "Execution.h"

#include "Base/Parallel.h"
#include "Base/System.h"
#include "vtkTaskAlgorithm.h"

#include <vtkAlgorithm.h>
#include <vtkDataObject.h>
#include <vtkInformation.h>
#include <vtkInformationObjectBaseKey.h>
#include <vtkInformationVector.h>
#include <vtkMultiProcessController.h>
#include <vtkSMPTools.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkVersionMacros.h>
#include <vtksys/SystemTools.hxx>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace AttentionAtlas
{
namespace
{

/// Whether a filter, or one before it whose result it would use, is asked to stop.
bool IsAskedToStop(vtkAlgorithm* filter)
{
  if (filter->GetAbortExecute() != 0)
  {
    return true;
  }
  for (int port = 0; port < filter->GetNumberOfInputPorts(); ++port)
  {
    for (int i = 0; i < filter->GetNumberOfInputConnections(port); ++i)
    {
      if (IsAskedToStop(filter->GetInputAlgorithm(port, i)))
      {
        return true;
      }
    }
  }
  return false;
}

/// The positive number in an environment variable, or 0.
int EnvironmentNumber(const char* name)
{
  std::string text;
  return vtksys::SystemTools::GetEnv(name, text) ? std::max(std::atoi(text.c_str()), 0) : 0;
}

/// The number of MPI ranks on this host, including this process; 1 without mpirun.
int RanksOfHost()
{
  for (const char* name :
    { "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE" })
  {
    if (const int ranks = EnvironmentNumber(name))
    {
      return ranks;
    }
  }
  return 1;
}

/// The number of processors for this process if no limit is set.
int ProcessorShare()
{
  const int own = atlas::ProcessorCount();
  const int ranks = RanksOfHost();
  // A launcher that binds its ranks to processors is not bound itself.
  return ranks == 1
           ? own
           : std::clamp(atlas::ProcessorCount(atlas::system::ParentProcessId()) / ranks, 1, own);
}

}

const char* ParallelBackend()
{
  static const std::string backend = []
  {
    std::string name;
    vtksys::SystemTools::GetEnv("VTK_SMP_BACKEND_IN_USE", name);
    return name.empty() ? "STDThread" : name;
  }();
  return backend.c_str();
}

namespace
{

/// The threads that the ParallelBackend() uses by its limits: that of vtkSMPTools and that of the
/// environment, 0 for none. Asking it reads a dozen files of the system, so the last answer is kept
/// while limits and processors are the same.
int BackendThreads(int limitOfTools, int limitOfEnvironment, int processors)
{
  using Limits = std::array<int, 3>;
  static std::mutex mutex;
  static Limits known = { -1, -1, -1 };
  static int threads = 1;
  const Limits limits = { limitOfTools, limitOfEnvironment, processors };
  const std::lock_guard<std::mutex> lock(mutex);
  if (known != limits)
  {
    vtkSMPTools::Config config(vtk::detail::smp::vtkSMPToolsAPI::GetInstance());
    config.Backend = ParallelBackend();
    vtkSMPTools::LocalScope(
      config, [] { threads = std::max(vtkSMPTools::GetEstimatedNumberOfThreads(), 1); });
    known = limits;
  }
  return threads;
}

}

int ThreadLimit()
{
  const vtkSMPTools::Config config(vtk::detail::smp::vtkSMPToolsAPI::GetInstance());
  const int limit = EnvironmentNumber("VTK_SMP_MAX_THREADS");
  const int share = ProcessorShare();
  const int threads = BackendThreads(config.MaxNumberOfThreads, limit, share);
  return config.MaxNumberOfThreads > 0 || limit > 0 ? threads : std::min(threads, share);
}

void ParallelFor(
  vtkIdType first, vtkIdType last, const std::function<void(vtkIdType, vtkIdType)>& function)
{
  constexpr vtkIdType perThread = 4; // for threads that others slow down
  const vtkIdType count = std::max<vtkIdType>(last - first, 0);
  const int threads = ThreadLimit();
  const vtkIdType pieces = std::min(count, threads > 1 ? perThread * threads : 1);
  atlas::ParallelFor(pieces, threads, [&](std::int64_t i)
    { function(first + count * i / pieces, first + count * (i + 1) / pieces); });
}

void ParallelSteps(vtkIdType count, vtkIdType perStep, const atlas::Progress& progress,
  const std::function<void(vtkIdType, vtkIdType)>& function)
{
  for (vtkIdType begin = 0; begin < count; begin += perStep)
  {
    const vtkIdType end = std::min(begin + perStep, count);
    ParallelFor(begin, end, function);
    progress(end, count);
  }
}

bool ReportProgress(vtkAlgorithm* filter, double done)
{
  filter->UpdateProgress(done);
  return !IsCanceled(filter);
}

bool IsCanceled(vtkAlgorithm* filter)
{
#if VTK_VERSION_NUMBER < VTK_VERSION_CHECK(9, 2, 20220801) // which has no containers
  return IsAskedToStop(filter);
#else
  // As vtkAlgorithm::CheckAbort, which would also let VTK discard a part that is shown.
  vtkAlgorithm* container = filter->GetContainerAlgorithm();
  return filter->GetAbortOutput() || IsAskedToStop(filter) ||
         (container != nullptr && IsCanceled(container));
#endif
}

void WithdrawCancel(vtkAlgorithm* filter)
{
  if (auto* task = vtkTaskAlgorithm::SafeDownCast(filter))
  {
    task->WithdrawCancel();
  }
  else
  {
    filter->SetAbortExecute(0);
  }
}

bool IsFirstPiece(vtkInformationVector* outputVector)
{
  bool isFirst = true; // an output that was not asked for has no piece
  for (int port = 0; port < outputVector->GetNumberOfInformationObjects(); ++port)
  {
    isFirst = isFirst && outputVector->GetInformationObject(port)->Get(
                           vtkStreamingDemandDrivenPipeline::UPDATE_PIECE_NUMBER()) <= 0;
  }
  return isFirst;
}

void SetTimeSteps(vtkInformation* info, const std::vector<double>& times)
{
  info->Remove(SDDP::TIME_STEPS());
  info->Remove(SDDP::TIME_RANGE());
  if (!times.empty())
  {
    const std::array<double, 2> range = { times.front(), times.back() };
    info->Set(SDDP::TIME_STEPS(), times.data(), static_cast<int>(times.size()));
    info->Set(SDDP::TIME_RANGE(), range.data(), 2);
  }
}

namespace
{

/// The key of what was announced. It lives as long as the program, as VTK's own keys do.
vtkInformationObjectBaseKey* OutlineKey()
{
  static auto* key = vtkInformationObjectBaseKey::MakeKey("OUTLINE", "AttentionAtlas");
  return key;
}

/// The output that is the input at a port: its producer and the port of that. ParaView puts a
/// filter of its own behind some outputs, which passes the data on.
std::pair<vtkAlgorithm*, int> ProducerOf(vtkAlgorithm* filter, int inputPort)
{
  std::pair<vtkAlgorithm*, int> producer = { nullptr, 0 };
  if (filter->GetNumberOfInputConnections(inputPort) > 0)
  {
    producer.first = filter->GetInputAlgorithm(inputPort, 0, producer.second);
  }
  while (producer.first != nullptr && producer.first->IsA("vtkPVPostFilter") != 0 &&
         producer.first->GetNumberOfInputConnections(0) > 0)
  {
    producer.first = producer.first->GetInputAlgorithm(0, 0, producer.second);
  }
  return producer;
}

/// Whether an input takes data of this type. VTK gives blocks of data that it does not take one by
/// one, and asks for information on each, while the whole must not be updated.
bool Accepts(vtkAlgorithm* filter, int inputPort, vtkDataObject* data)
{
  vtkInformation* port = filter->GetInputPortInformation(inputPort);
  const int count = port->Length(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE());
  bool isTaken = data == nullptr || count == 0;
  for (int i = 0; i < count; ++i)
  {
    isTaken = isTaken || data->IsA(port->Get(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), i)) != 0;
  }
  return isTaken;
}

/// What an output was announced to be; null if it was not.
vtkDataObject* AnnouncedOf(const std::pair<vtkAlgorithm*, int>& producer)
{
  vtkInformation* info =
    producer.first == nullptr ? nullptr : producer.first->GetOutputInformation(producer.second);
  return info == nullptr ? nullptr : vtkDataObject::SafeDownCast(info->Get(OutlineKey()));
}

}

void Announce(vtkInformation* info, vtkDataObject* outline)
{
  info->Set(OutlineKey(), outline); // nullptr removes it
}

vtkDataObject* KnownOutline(vtkAlgorithm* filter, int inputPort)
{
  vtkDataObject* announced = AnnouncedOf(ProducerOf(filter, inputPort));
  return announced != nullptr ? announced : filter->GetInputDataObject(inputPort, 0);
}

vtkDataObject* OutlineOf(vtkAlgorithm* filter, int inputPort)
{
  const auto source = ProducerOf(filter, inputPort);
  if (vtkDataObject* announced = AnnouncedOf(source))
  {
    return announced;
  }
  if (source.first == nullptr ||
      !Accepts(filter, inputPort, source.first->GetOutputDataObject(source.second)))
  {
    return nullptr;
  }
  int port = 0;
  vtkAlgorithm* producer = filter->GetInputAlgorithm(inputPort, 0, port);
  vtkNew<vtkInformation> request; // of the piece that will be asked for in the end
  auto* task = vtkTaskAlgorithm::SafeDownCast(filter);
  KeepRequest(request, task == nullptr ? nullptr : task->GetController());
  vtkNew<vtkInformationVector> requests;
  requests->SetInformationObject(port, request);
  return producer->Update(port, requests) != 0 ? filter->GetInputDataObject(inputPort, 0) : nullptr;
}

void KeepRequest(vtkInformation* info, vtkMultiProcessController* controller)
{
  if (controller == nullptr)
  {
    controller = vtkMultiProcessController::GetGlobalController();
  }
  info->Set(SDDP::UPDATE_PIECE_NUMBER(), controller ? controller->GetLocalProcessId() : 0);
  info->Set(SDDP::UPDATE_NUMBER_OF_PIECES(), controller ? controller->GetNumberOfProcesses() : 1);
  info->Set(SDDP::UPDATE_NUMBER_OF_GHOST_LEVELS(), 0);
}

vtkMTimeType TimeOf(vtkDataObject* data)
{
  return data == nullptr ? 0 : std::max(data->GetMTime(), data->GetUpdateTime());
}

}
