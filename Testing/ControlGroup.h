#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

namespace atlas::test
{

/// A control group of version 1 or 2 of the machine with one processor and 64 MiB, for the time of
/// a scope. Without the right to make one, nothing.
class ControlGroup
{
public:
  static constexpr int Bytes = 64 << 20;

  ControlGroup()
  {
    const std::string name = "attention-atlas-" + std::to_string(getpid());
    const std::filesystem::path top = "/sys/fs/cgroup";
    this->Make(
      top / "cpu" / name, { { "cpu.cfs_period_us", "100000" }, { "cpu.cfs_quota_us", "100000" } });
    this->Make(top / "memory" / name, { { "memory.limit_in_bytes", std::to_string(Bytes) } });
    if (this->Folders.empty())
    {
      this->Make(
        top / name, { { "cpu.max", "100000 100000" }, { "memory.max", std::to_string(Bytes) } });
    }
  }
  ~ControlGroup()
  {
    for (const std::filesystem::path& folder : this->Folders)
    {
      rmdir(folder.c_str());
    }
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  bool IsThere() const { return !this->Folders.empty() && this->IsWhole; }

  void Join(pid_t process) const
  {
    for (const std::filesystem::path& folder : this->Folders)
    {
      std::ofstream(folder / "cgroup.procs") << process << std::flush;
    }
  }

private:
  void Make(const std::filesystem::path& folder,
    const std::vector<std::pair<std::string, std::string>>& files)
  {
    std::error_code failed;
    if (!std::filesystem::create_directory(folder, failed))
    {
      return;
    }
    this->Folders.push_back(folder);
    for (const auto& [name, text] : files)
    {
      std::ofstream file(folder / name);
      this->IsWhole = this->IsWhole && (file << text << std::flush);
    }
  }

  std::vector<std::filesystem::path> Folders;
  bool IsWhole = true;
};

}
