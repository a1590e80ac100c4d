#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace atlas::benchmarks
{

/// What a script says that runs another program to compare with.
struct PeerTime
{
  double seconds = 0;
  std::string problem; ///< such as "umap-learn is not installed"; empty if there is a time
};

/// Runs a script of this folder with Debian's Python or another. It prints seconds, or why there
/// are none.
inline PeerTime RunPeer(
  const std::string& script, const std::string& arguments, const std::string& python = ATLAS_PYTHON)
{
  const std::string command =
    "'" + python + "' '" ATLAS_BENCHMARK_DIR "/" + script + "' " + arguments + " 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), pclose);
  std::array<char, 200> line = {};
  if (!output || !std::fgets(line.data(), static_cast<int>(line.size()), output.get()))
  {
    return { 0, script + " failed" };
  }
  char* end = nullptr;
  const double seconds = std::strtod(line.data(), &end);
  if (end != line.data())
  {
    return { seconds, "" };
  }
  const std::string text = line.data();
  return { 0, text.substr(0, text.find('\n')) };
}

}
