#pragma once

#include "AttentionAtlasDataModule.h"

#include <vtkSMPTools.h>
#include <vtkType.h>

#include <exception>
#include <mutex>
#include <string>

class vtkInformationVector;

/// Threads, memory and pieces of the filters.
namespace AttentionAtlas
{

/// The vtkSMPTools backend to use: that of VTK_SMP_BACKEND_IN_USE if set, else STDThread, since
/// ParaView is often built with a sequential default.
ATTENTIONATLASDATA_EXPORT const char* ParallelBackend();

/// Calls `function(begin, end)` for ranges that cover [first, last) on several threads, at most as
/// many as vtkSMPTools::Initialize or VTK_SMP_MAX_THREADS allow. Rethrows an exception of one of
/// the calls.
template<class Function>
void ParallelFor(vtkIdType first, vtkIdType last, Function&& function)
{
  vtkSMPTools::Config config(vtk::detail::smp::vtkSMPToolsAPI::GetInstance());
  config.Backend = ParallelBackend();
  std::mutex mutex;
  std::exception_ptr error;
  const auto guarded = [&](vtkIdType begin, vtkIdType end)
  {
    try
    {
      function(begin, end);
    }
    catch (...) // any type, as it must not leave its thread
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

/// Throws std::runtime_error if `bytes` exceeds the free memory of this machine. The message begins
/// with `what`, which needs the memory, and ends with `advice`, what to change.
ATTENTIONATLASDATA_EXPORT void RequireMemory(
  double bytes, const std::string& what, const std::string& advice);

/// Empties all outputs and makes the next update compute them again, even if nothing has changed.
/// For a RequestData that the user has canceled.
ATTENTIONATLASDATA_EXPORT void MarkUnfinished(vtkInformationVector* outputVector);

/// Whether this is the piece, and thus the rank, that holds small outputs. They are empty on all
/// others, so nothing is drawn or counted twice.
ATTENTIONATLASDATA_EXPORT bool IsFirstPiece(vtkInformationVector* outputVector);

}
