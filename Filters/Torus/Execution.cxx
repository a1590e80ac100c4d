#include "Execution.h"

#include <vtksys/SystemInformation.hxx>
#include <vtksys/SystemTools.hxx>

#include <cstdio>
#include <stdexcept>

namespace AttentionAtlas
{
namespace
{

std::string Gibibytes(double bytes)
{
  const double gibibytes = bytes / (1024. * 1024. * 1024.);
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f GiB", gibibytes < 10 ? 2 : 0, gibibytes);
  return text;
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
  constexpr double kibibyte = 1024.;
  // Limits of a container or batch system count, where the environment tells them.
  const double available =
    kibibyte * static_cast<double>(system.GetHostMemoryAvailable("ATLAS_MEMORY_LIMIT_KIB"));
  const double used = kibibyte * static_cast<double>(system.GetHostMemoryUsed());
  const double free = available - used;
  if (bytes > free)
  {
    throw std::runtime_error(what + " would take " + Gibibytes(bytes) + " of memory, but only " +
                             Gibibytes(free > 0 ? free : 0) + " are free; " + advice);
  }
}

}
