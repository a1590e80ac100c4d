#pragma once

#include <filesystem>
#include <limits>
#include <string>

namespace atlas
{

/// What the control groups of a process allow: of a container, a service or a job of a cluster.
/// Infinite where there is no limit.
struct GroupLimits
{
  /// Processors' worth of time, such as 1.5.
  double processors = std::numeric_limits<double>::infinity();
  /// Bytes that may still be allocated; pages of files count as free, since the system takes them
  /// back.
  double freeMemory = std::numeric_limits<double>::infinity();
};

/// The smallest limits of the control groups that a process is in and of those above them, as far
/// as they are mounted here: cpu.max, memory.max, memory.current and memory.stat of version 2,
/// their counterparts of version 1 (cgroups(7)). `process` is its id; 0: this process. Files of the
/// system are read below `root`, for tests. What cannot be read is no limit.
GroupLimits LimitsOfGroups(int process = 0, const std::filesystem::path& root = "/");

/// The bytes that the machine has available, MemAvailable of /proc/meminfo; infinite where the
/// system does not say.
double AvailableMemory(const std::filesystem::path& root = "/");

/// The bytes that this process may still allocate, at least 0: AvailableMemory(), at most what its
/// control groups and its own limit leave, which the system (ulimit) or the environment variable
/// ATLAS_MEMORY_LIMIT_KIB sets.
double FreeMemory(const std::filesystem::path& root = "/");

/// Throws std::runtime_error if `bytes` exceeds FreeMemory(). Reading that takes half a
/// millisecond. For a second, therefore, up to a sixteenth of what is left is granted without
/// reading it again. The message begins with `what`, which needs the memory, and ends with
/// `advice`, what to change.
void RequireMemory(double bytes, const std::string& what, const std::string& advice);

}
