#include "SystemLimits.h"

#include "Internal/KnownMemory.h"
#include "System.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace atlas
{
namespace
{

namespace fs = std::filesystem;

constexpr double Kibibyte = 1024;
constexpr double Unlimited = std::numeric_limits<double>::infinity();

/// A mounted hierarchy of control groups.
struct Mount
{
  bool isUnified;      ///< version 2
  std::string options; ///< ",rw,cpu,": of version 1 its controllers too
  std::string group;   ///< at the mount point: "/" but in a container that sees a part only
  fs::path folder;
};

/// A path of mountinfo, where \040 is a space.
std::string Unescaped(const std::string& text)
{
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i)
  {
    const std::string digits = text[i] == '\\' ? text.substr(i + 1, 3) : "";
    if (digits.size() == 3 && digits.find_first_not_of("01234567") == std::string::npos)
    {
      result += static_cast<char>(std::stoi(digits, nullptr, 8));
      i += 3;
    }
    else
    {
      result += text[i];
    }
  }
  return result;
}

/// The hierarchies that mountinfo lists (proc(5)).
std::vector<Mount> ReadMounts(const fs::path& root)
{
  std::vector<Mount> mounts;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);)
  {
    std::istringstream fields(line);
    const std::vector<std::string> words{ std::istream_iterator<std::string>(fields), {} };
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (dash - words.begin() < 6 || words.end() - dash < 4 ||
        (dash[1] != "cgroup" && dash[1] != "cgroup2"))
    {
      continue;
    }
    mounts.push_back({ dash[1] == "cgroup2", "," + dash[3] + ",", Unescaped(words[3]),
      root / fs::path(Unescaped(words[4])).relative_path() });
  }
  return mounts;
}

/// A number of a file; none if there is no file or no number, such as "max".
std::optional<double> ReadNumber(const fs::path& path)
{
  std::ifstream file(path);
  double number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// The sum of the entries of a file with lines "name number" that have these names.
double SumOf(const fs::path& path, const std::vector<std::string>& names)
{
  std::ifstream file(path);
  double sum = 0;
  std::string name;
  for (double number = 0; file >> name >> number;)
  {
    sum += std::count(names.begin(), names.end(), name) > 0 ? number : 0;
  }
  return sum;
}

double ProcessorsOf(const fs::path& group, bool isUnified)
{
  std::stringstream text; // "max" or -1 as the quota: no limit
  text << std::ifstream(group / (isUnified ? "cpu.max" : "cpu.cfs_quota_us")).rdbuf();
  if (!isUnified)
  {
    text << ' ' << std::ifstream(group / "cpu.cfs_period_us").rdbuf();
  }
  double quota = 0;
  double period = 0;
  return text >> quota >> period && quota > 0 && period > 0 ? quota / period : Unlimited;
}

double FreeMemoryOf(const fs::path& group, bool isUnified)
{
  const auto limit = ReadNumber(group / (isUnified ? "memory.max" : "memory.limit_in_bytes"));
  const auto used = ReadNumber(group / (isUnified ? "memory.current" : "memory.usage_in_bytes"));
  if (!limit || !used)
  {
    return Unlimited;
  }
  const std::string prefix = isUnified ? "" : "total_";
  const double files =
    SumOf(group / "memory.stat", { prefix + "inactive_file", prefix + "active_file" });
  return std::max(*limit - std::max(*used - files, 0.), 0.);
}

/// The folder of a group in a hierarchy. A group that is not below what is mounted is that at the
/// mount point, as a container sees its own.
fs::path FolderOf(const Mount& mount, const std::string& group)
{
  const fs::path path = fs::path(group).lexically_relative(mount.group);
  const bool isBelow = !path.empty() && *path.begin() != "..";
  return isBelow ? (mount.folder / path).lexically_normal() : mount.folder;
}

/// The limits of a group and of all above it in a hierarchy. "a/b/." and "a/b" are the same group.
GroupLimits LimitsOf(const Mount& mount, const std::string& group)
{
  GroupLimits limits;
  for (fs::path folder = FolderOf(mount, group);; folder = folder.parent_path())
  {
    limits.processors = std::min(limits.processors, ProcessorsOf(folder, mount.isUnified));
    limits.freeMemory = std::min(limits.freeMemory, FreeMemoryOf(folder, mount.isUnified));
    if (folder == mount.folder || folder == folder.parent_path())
    {
      return limits;
    }
  }
}

/// What this process may still allocate within its own limits.
double FreeWithinProcess()
{
  double limit = system::ProcessMemoryLimit();
  const char* kibibytes = std::getenv("ATLAS_MEMORY_LIMIT_KIB");
  const double given = kibibytes == nullptr ? 0 : std::atof(kibibytes);
  limit = given > 0 ? std::min(limit, Kibibyte * given) : limit;
  return limit == Unlimited ? limit : limit - system::ProcessMemory();
}

struct Free
{
  double bytes;
  bool isOfGroups; ///< whether a group of the system is what limits it
};

Free FindFree(const fs::path& root)
{
  const double ofGroups = LimitsOfGroups(0, root).freeMemory;
  const double free = std::min({ AvailableMemory(root), ofGroups, FreeWithinProcess() });
  return { std::max(free, 0.), ofGroups <= free };
}

/// "1.5 GiB"
std::string Size(double bytes)
{
  const double mebibytes = bytes / (Kibibyte * Kibibyte);
  const double gibibytes = mebibytes / Kibibyte;
  const bool isSmall = gibibytes < 1;
  const double number = isSmall ? mebibytes : gibibytes;
  std::array<char, 64> text;
  std::snprintf(
    text.data(), text.size(), "%.*f %s", number < 10 ? 2 : 0, number, isSmall ? "MiB" : "GiB");
  return text.data();
}

}

GroupLimits LimitsOfGroups(int process, const fs::path& root)
{
  const std::vector<Mount> mounts = ReadMounts(root);
  const std::string name = process > 0 ? std::to_string(process) : "self";
  std::ifstream file(root / "proc" / name / "cgroup");
  GroupLimits limits;
  for (std::string line; std::getline(file, line);) // "4:cpu,cpuacct:/a/b"; of version 2 "0::/a/b"
  {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
    {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string controller = "," + controllers.substr(0, controllers.find(',')) + ",";
    const auto isOfLine = [&](const Mount& mount)
    {
      return mount.isUnified ? controllers.empty()
                             : mount.options.find(controller) != std::string::npos;
    };
    const auto mount = std::find_if(mounts.begin(), mounts.end(), isOfLine);
    if (mount != mounts.end())
    {
      const GroupLimits found = LimitsOf(*mount, line.substr(second + 1));
      limits.processors = std::min(limits.processors, found.processors);
      limits.freeMemory = std::min(limits.freeMemory, found.freeMemory);
    }
  }
  return limits;
}

double AvailableMemory(const fs::path& root)
{
  std::ifstream file(root / "proc/meminfo");
  std::string name;
  double kibibytes = 0;
  while (file >> name >> kibibytes && name != "MemAvailable:")
  {
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return file ? Kibibyte * kibibytes : Unlimited;
}

double FreeMemory(const fs::path& root)
{
  return FindFree(root).bytes;
}

void RequireMemory(double bytes, const std::string& what, const std::string& advice)
{
  static std::mutex mutex;
  static KnownMemory known;
  // Where another thread asks, or did in a process that was forked meanwhile, this one reads anew.
  const std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  const auto now = KnownMemory::Clock::now();
  if (lock && bytes <= FreeWithinProcess() && known.Grant(bytes, system::ProcessId(), now))
  {
    return;
  }
  const Free free = FindFree("/");
  if (bytes > free.bytes)
  {
    throw std::runtime_error(
      what + " would take " + Size(bytes) + " of memory, but only " + Size(free.bytes) +
      " are free" + (free.isOfGroups ? " within the limit of this container; " : "; ") + advice);
  }
  if (lock)
  {
    known.Set(free.bytes - bytes, system::ProcessId(), now);
  }
}

}
