#include "Execution.h"

#include <vtkDataObject.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtksys/SystemInformation.hxx>
#include <vtksys/SystemTools.hxx>

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>

namespace AttentionAtlas
{
namespace
{

constexpr double Kibibyte = 1024.;

std::string Size(double bytes)
{
  const double mebibytes = bytes / (Kibibyte * Kibibyte);
  const double gibibytes = mebibytes / 1024;
  std::array<char, 64> text;
  if (gibibytes < 1)
  {
    std::snprintf(text.data(), text.size(), "%.*f MiB", mebibytes < 10 ? 2 : 0, mebibytes);
  }
  else
  {
    std::snprintf(text.data(), text.size(), "%.*f GiB", gibibytes < 10 ? 2 : 0, gibibytes);
  }
  return text.data();
}

}

const char* ParallelBackend()
{
  static const std::string backend = []()
  {
    std::string name;
    return vtksys::SystemTools::GetEnv("VTK_SMP_BACKEND_IN_USE", name) && !name.empty()
             ? name
             : std::string("STDThread");
  }();
  return backend.c_str();
}

void RequireMemory(double bytes, const std::string& what, const std::string& advice)
{
  vtksys::SystemInformation system;
  // The free memory of the machine, and what this process may still allocate within its own limit,
  // which the system (ulimit) or the environment sets.
  const auto ofHost = static_cast<double>(system.GetHostMemoryTotal() - system.GetHostMemoryUsed());
  const auto ofProcess = static_cast<double>(
    system.GetProcMemoryAvailable(nullptr, "ATLAS_MEMORY_LIMIT_KIB") - system.GetProcMemoryUsed());
  const double free = Kibibyte * std::max(std::min(ofHost, ofProcess), 0.);
  if (bytes > free)
  {
    throw std::runtime_error(what + " would take " + Size(bytes) + " of memory, but only " +
                             Size(free) + " are free; " + advice);
  }
}

void MarkUnfinished(vtkInformationVector* outputVector)
{
  for (int port = 0; port < outputVector->GetNumberOfInformationObjects(); ++port)
  {
    vtkInformation* info = outputVector->GetInformationObject(port);
    vtkDataObject::GetData(info)->ReleaseData();
    info->Set(vtkDemandDrivenPipeline::DATA_NOT_GENERATED(), 1);
  }
}

bool IsFirstPiece(vtkInformationVector* outputVector)
{
  return outputVector->GetInformationObject(0)->Get(
           vtkStreamingDemandDrivenPipeline::UPDATE_PIECE_NUMBER()) <= 0;
}

}
