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

/// Calls `function(begin, end)` for ranges that make up [first, last), on several threads: no more
/// than vtkSMPTools::Initialize or VTK_SMP_MAX_THREADS allow. Throws what one of the calls threw.
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
