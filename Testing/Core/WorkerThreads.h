#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace atlas::test
{

/// The threads of this process that belong to Core's pool (Parallel.h), which names them.
inline int CountWorkers()
{
  int count = 0;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored))
  {
    std::ifstream file(task.path() / "comm");
    std::string name;
    std::getline(file, name);
    count += name == "atlas-worker" ? 1 : 0;
  }
  return count;
}

}
