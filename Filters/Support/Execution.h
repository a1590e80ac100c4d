#pragma once

#include "AttentionAtlasSupportModule.h"
#include "Base/Progress.h"
#include "Base/SystemLimits.h"

#include <vtkType.h>

#include <functional>
#include <vector>

class vtkAlgorithm;
class vtkDataObject;
class vtkInformation;
class vtkInformationVector;
class vtkMultiProcessController;

/// Threads, memory and pieces of the filters.
namespace AttentionAtlas
{

/// The vtkSMPTools backend to use: that of VTK_SMP_BACKEND_IN_USE if set, else STDThread, since
/// ParaView is often built with a sequential default.
ATTENTIONATLASSUPPORT_EXPORT const char* ParallelBackend();

/// The number of threads that a filter of this process may use, at least 1: the limit that
/// vtkSMPTools::Initialize, vtkSMPTools::LocalScope or VTK_SMP_MAX_THREADS set for the
/// ParallelBackend(), 1 for Sequential. Without a limit it is the number of processors of the
/// affinity mask, but at most the share of an MPI rank: the processors of its launcher divided by
/// the ranks of this host (rounded down), which the environment of Open MPI, MPICH, Intel MPI or
/// MVAPICH2 has. A rank that is bound to a core thus has 1 thread.
ATTENTIONATLASSUPPORT_EXPORT int ThreadLimit();

/// Calls `function(begin, end)` for ranges that cover [first, last) on up to ThreadLimit() threads,
/// those of Core's pool. Rethrows an exception of one of the calls.
ATTENTIONATLASSUPPORT_EXPORT void ParallelFor(
  vtkIdType first, vtkIdType last, const std::function<void(vtkIdType, vtkIdType)>& function);

/// Same, in steps of `perStep` of 0 ... count - 1, with a report of progress after each.
ATTENTIONATLASSUPPORT_EXPORT void ParallelSteps(vtkIdType count, vtkIdType perStep,
  const atlas::Progress& progress, const std::function<void(vtkIdType, vtkIdType)>& function);

using atlas::RequireMemory;

/// Reports the progress of a filter, 0 to 1, and returns whether to continue: false once
/// IsCanceled. Call it from the thread that executes the filter.
ATTENTIONATLASSUPPORT_EXPORT bool ReportProgress(vtkAlgorithm* filter, double done);

/// Whether the user has canceled the filter, one before it, one that it is a part of, or an input.
ATTENTIONATLASSUPPORT_EXPORT bool IsCanceled(vtkAlgorithm* filter);

/// Takes back the request to cancel a filter, which VTK 9.2 keeps for the next execution. It does
/// not count as a change of one of our filters (vtkTaskAlgorithm).
ATTENTIONATLASSUPPORT_EXPORT void WithdrawCancel(vtkAlgorithm* filter);

/// Whether this is the piece, and thus the rank, that holds small outputs. They are empty on all
/// others, so nothing is drawn or counted twice.
ATTENTIONATLASSUPPORT_EXPORT bool IsFirstPiece(vtkInformationVector* outputVector);

/// Announces the time steps of an output, in ascending order, or that it has none.
ATTENTIONATLASSUPPORT_EXPORT void SetTimeSteps(
  vtkInformation* info, const std::vector<double>& times);

/// Announces what an output will be: a data object of its class with the final field data, whose
/// numbers need not be there; nullptr: it is not known. For RequestInformation of what takes long
/// to compute, so that filters behind it know layers, heads and lengths, and nothing runs.
ATTENTIONATLASSUPPORT_EXPORT void Announce(vtkInformation* info, vtkDataObject* outline);

/// What the input at a port of a filter will be, for RequestInformation: what was announced, or
/// else the input itself, which is updated. Null if there is none; what went wrong has then been
/// told.
ATTENTIONATLASSUPPORT_EXPORT vtkDataObject* OutlineOf(vtkAlgorithm* filter, int port = 0);

/// The same without an update: what was announced, or else the input as it is. Null without one.
ATTENTIONATLASSUPPORT_EXPORT vtkDataObject* KnownOutline(vtkAlgorithm* filter, int port = 0);

/// Asks for what OutlineOf asks for, the piece of this rank, so that the recording is not made
/// again. For RequestUpdateExtent, with the information of the first input. `controller`: of the
/// filter; nullptr: the global one.
ATTENTIONATLASSUPPORT_EXPORT void KeepRequest(
  vtkInformation* info, vtkMultiProcessController* controller = nullptr);

/// When a data object was changed or updated last; 0 without one.
ATTENTIONATLASSUPPORT_EXPORT vtkMTimeType TimeOf(vtkDataObject* data);

}
