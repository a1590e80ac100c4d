#include "Commands.h"
#include "Error.h"
#include "VirtualDisplay.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>

#include <unistd.h>

namespace atlas::programs
{

#ifdef ATLAS_PVPYTHON

namespace
{

namespace fs = std::filesystem;

/// Puts a folder first in a list of paths.
void Prepend(const char* variable, const fs::path& folder)
{
  const char* others = std::getenv(variable);
  const bool isAlone = others == nullptr || *others == '\0';
  ::setenv(variable, (folder.string() + (isAlone ? "" : std::string(":") + others)).c_str(), 1);
}

/// Lets pvpython find the Python package and the plugin that belong to this program.
void SetPaths()
{
  const fs::path folder = fs::canonical("/proc/self/exe").parent_path();
  const fs::path plugin = (folder / ATLAS_PLUGIN_PATH).lexically_normal();
  const fs::path python = (folder / ATLAS_PYTHON_PATH).lexically_normal();
  for (const fs::path& path : { plugin, python / "attentionatlas" })
  {
    if (!fs::exists(path))
    {
      throw FileError(path.string() + ": expected a part of Attention Atlas, found none; build or "
                                      "install all of it.");
    }
  }
  ::setenv("ATLAS_PLUGIN", plugin.c_str(), 1);
  if (python != "/usr/lib/python3/dist-packages") // where Debian's Python looks, but last
  {
    Prepend("PYTHONPATH", python);
  }
}

/// A display on nobody's screen, where one is needed; the one at hand where there can be no other.
void SetDisplay()
{
  const char* display = std::getenv("DISPLAY");
  const bool hasDisplay = display != nullptr && *display != '\0';
  if (!ATLAS_NEEDS_DISPLAY)
  {
    ::unsetenv("DISPLAY");
  }
  else
  {
    try
    {
      if (!StartVirtualDisplay() && !hasDisplay)
      {
        throw OptionError(
          "ParaView 5 draws on an X display only: expected Xvfb or the variable DISPLAY, "
          "found neither. Install the package xvfb.");
      }
    }
    catch (const OptionError& error)
    {
      if (!hasDisplay)
      {
        throw;
      }
      std::cerr << error.what() << "\nThe display " << display << " is used.\n";
    }
  }
}

bool DrawsNothing(const std::string& argument)
{
  return argument == "-h" || argument == "--help" || argument == "--list";
}

}

int RunPython(const std::string& command, const std::vector<std::string>& arguments)
{
  SetPaths();
  if (std::none_of(arguments.begin(), arguments.end(), DrawsNothing))
  {
    SetDisplay();
  }
  std::vector<std::string> words = { "pvpython", "-m", "attentionatlas", command };
  words.insert(words.end(), arguments.begin() + 1, arguments.end());
  std::vector<char*> pointers;
  std::transform(words.begin(), words.end(), std::back_inserter(pointers),
    [](std::string& word) { return word.data(); });
  pointers.push_back(nullptr);
  ::execv(ATLAS_PVPYTHON, pointers.data());
  ::execvp("pvpython", pointers.data());
  throw FileError(std::string(ATLAS_PVPYTHON) + ": cannot be run: " + std::strerror(errno) +
                  ". Install ParaView with its Python.");
}

#else

int RunPython(const std::string& /*command*/, const std::vector<std::string>& /*arguments*/)
{
  throw OptionError(
    "expected a build with ParaView, found one without it (ATLAS_BUILD_PLUGIN=OFF).");
}

#endif

}
