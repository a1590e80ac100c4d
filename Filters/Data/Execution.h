#pragma once

#include "AttentionAtlasDataModule.h"

#include <vtkSMPTools.h>
#include <vtkType.h>

#include <exception>
#include <mutex>
#include <string>

class vtkInformationVector;

/// How the filters use the machine.
namespace AttentionAtlas
{

/// The vtkSMPTools backend to compute with: the one that VTK_SMP_BACKEND_IN_USE names, or else
/// STDThread, since ParaView is often built with a sequential default.
ATTENTIONATLASDATA_EXPORT const char* ParallelBackend();

/// The number of threads that a filter of this process may compute with, at least 1: what
/// vtkSMPTools::Initialize, vtkSMPTools::LocalScope or VTK_SMP_MAX_THREADS allow the
/// ParallelBackend(), which is 1 for Sequential. Where none of them sets a limit, the processors
/// that the affinity mask of the process allows; and no more than the share of an MPI rank, for
/// which the processors of its launcher are divided by the ranks of this host (rounded down). A
/// rank that is bound to a core has 1, and the ranks of a host together no more than its
/// processors. The number of ranks is what Open MPI, MPICH, Intel MPI and MVAPICH2 put into the
/// environment.
ATTENTIONATLASDATA_EXPORT int ThreadLimit();

/// Calls `function(begin, end)` for ranges that make up [first, last), on up to ThreadLimit()
/// threads. Throws what one of the calls threw.
template<class Function>
void ParallelFor(vtkIdType first, vtkIdType last, Function&& function)
{
  vtkSMPTools::Config config(vtk::detail::smp::vtkSMPToolsAPI::GetInstance());
  config.MaxNumberOfThreads = ThreadLimit();
  config.Backend = ParallelBackend();
  std::mutex mutex;
  std::exception_ptr error;
  const auto guarded = [&](vtkIdType begin, vtkIdType end)
  {
    try
    {
      function(begin, end);
    }
    catch (...) // of any type: it must not leave its thread
    {
      const std::lock_guard<std::mutex> lock(mutex);
      error = std::current_exception();
    }
  };
  vtkSMPTools::LocalScope(config, [&]() { vtkSMPTools::For(first, last, guarded); });
  if (error)
  {
    std::rethrow_exception(error);
  }
}

/// Throws std::runtime_error if `bytes` are more than the memory that this machine has free. `what`
/// begins the message and says what would take the memory, `advice` ends it and says what to
/// change.
ATTENTIONATLASDATA_EXPORT void RequireMemory(
  double bytes, const std::string& what, const std::string& advice);

/// Empties all outputs and has the next update compute them anew, even if nothing has changed: for
/// a RequestData that the user has cancelled.
ATTENTIONATLASDATA_EXPORT void MarkUnfinished(vtkInformationVector* outputVector);

/// Whether this is the piece, and so the rank, that small things come from: on the others they are
/// empty, so that nothing is drawn or counted twice.
ATTENTIONATLASDATA_EXPORT bool IsFirstPiece(vtkInformationVector* outputVector);

}
