#include "Base/Error.h"
#include "Commands.h"
#include "ProgramOptions.h"
#include "Text/Prompts.h"
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

bool HasValue(const char* variable)
{
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

/// Puts a folder first in a list of paths.
void Prepend(const char* variable, const fs::path& folder)
{
  const std::string others = HasValue(variable) ? std::string(":") + std::getenv(variable) : "";
  ::setenv(variable, (folder.string() + others).c_str(), 1);
}

/// Lets ParaView find the Python package and the plugin that belong to this program; the folder of
/// the package.
fs::path SetPaths()
{
  const fs::path folder = fs::canonical("/proc/self/exe").parent_path();
  const fs::path plugin = (folder / ATLAS_PLUGIN_PATH).lexically_normal();
  const fs::path python = (folder / ATLAS_PYTHON_PATH).lexically_normal();
  const fs::path package = python / "attentionatlas";
  for (const fs::path& path : { plugin, package })
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
  return package;
}

/// A display on nobody's screen, where one is needed; the one at hand where there can be no other.
void SetDisplay()
{
  const bool hasDisplay = HasValue("DISPLAY");
  if (!ATLAS_NEEDS_DISPLAY)
  {
    ::unsetenv("DISPLAY");
  }
  else
  {
    try
    {
      ThrowIf<OptionError>(!StartVirtualDisplay() && !hasDisplay,
        "ParaView 5 draws on an X display only: expected Xvfb or the variable DISPLAY, "
        "found neither. Install the package xvfb.");
    }
    catch (const OptionError& error)
    {
      if (!hasDisplay)
      {
        throw;
      }
      std::cerr << error.what() << "\nThe display " << std::getenv("DISPLAY") << " is used.\n";
    }
  }
}

/// Throws FileError for a file that is not there, before ParaView takes seconds to start. Files are
/// the words before the first option; behind one a word may be its value.
void RequireFiles(const std::vector<std::string>& arguments)
{
  for (auto word = arguments.begin() + 1; word != arguments.end() && word->rfind('-', 0) != 0;
    ++word)
  {
    ThrowIf<FileError>(!fs::exists(*word), *word, ": no such file.");
  }
}

bool DrawsNothing(const std::string& argument)
{
  return argument == "-h" || argument == "--help" || argument == "--list";
}

/// Becomes another program, whose name is the first word, if need be that of PATH.
[[noreturn]] void Become(const fs::path& program, std::vector<std::string> words)
{
  std::vector<char*> pointers;
  std::transform(words.begin(), words.end(), std::back_inserter(pointers),
    [](std::string& word) { return word.data(); });
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  ::execvp(pointers.front(), pointers.data());
  throw FileError(program.string() + ": cannot be run: " + std::strerror(errno) +
                  ". Install ParaView with its Python.");
}

/// Becomes ParaView with the plugin, and without its welcome unless the user has asked for that.
[[noreturn]] void BecomeParaView(const std::vector<std::string>& options, const fs::path& package)
{
  Prepend("PV_PLUGIN_PATH", fs::path(std::getenv("ATLAS_PLUGIN")).parent_path());
  if (!HasValue("XDG_CONFIG_DIRS"))
  {
    ::setenv("XDG_CONFIG_DIRS", "/etc/xdg", 1);
  }
  Prepend("XDG_CONFIG_DIRS", package / "assets");
  std::vector<std::string> words = { "paraview" };
  words.insert(words.end(), options.begin(), options.end());
  Become(fs::path(ATLAS_PVPYTHON).parent_path() / "paraview", words);
}

}

int View(const std::vector<std::string>& arguments)
{
  using cxxopts::value;
  using Texts = std::vector<std::string>;
  const auto rest = std::find(arguments.begin(), arguments.end(), "--");
  Texts options(rest == arguments.end() ? rest : rest + 1, arguments.end());
  cxxopts::Options described(arguments.front(),
    "Opens ParaView with the plugin, and linked views of a model or a recording, if one is given;\n"
    "of a language model with prompts, each in quotes, those of a run, too.\n"
    "What follows -- are options of ParaView.\n");
  described.add_options()(
    "file", "as scene takes it, or a state (.pvsm)", value<std::string>()->default_value(""))(
    "prompts", "texts that a language model runs on", value<Texts>());
  described.parse_positional({ "file", "prompts" });
  described.positional_help("[FILE [PROMPT...]] [-- OPTION...]");
  const auto parsed = Parse(std::move(described), { arguments.begin(), rest },
    { "run.safetensors", "gpt2/config.json \"Data visualization empowers users to\"",
      "scene.pvsm -- --stereo" });
  if (!parsed)
  {
    return 0;
  }
  const auto file = (*parsed)["file"].as<std::string>();
  const bool isState = fs::path(file).extension() == ".pvsm";
  ThrowIf<OptionError>(isState && parsed->count("prompts") > 0,
    "expected one file, found more; options of ParaView follow --.");
  ThrowIf<OptionError>(!HasValue("DISPLAY") && !HasValue("WAYLAND_DISPLAY"),
    "a window needs a display: expected the variable DISPLAY or "
    "WAYLAND_DISPLAY, found neither. figures and web need none.");
  ThrowIf<FileError>(!file.empty() && !fs::exists(file), file, ": expected ",
    (isState ? "a state of ParaView" : "a file to show"), ", found no file.");
  const fs::path package = SetPaths();
  if (!file.empty())
  {
    std::cerr << "Opening " << file << " in ParaView ...\n";
    Texts shown = { file };
    const auto prompts = Given<Texts>(*parsed, "prompts");
    shown.insert(shown.end(), prompts.begin(), prompts.end());
    ::setenv("ATLAS_VIEW", WritePrompts(shown, "argument").c_str(), 1);
    options.insert(options.begin(),
      isState ? "--state=" + file : "--script=" + (package / "assets/window.py").string());
  }
  BecomeParaView(options, package);
}

int RunPython(const std::string& command, const std::vector<std::string>& arguments)
{
  RequireFiles(arguments);
  SetPaths();
  if (std::none_of(arguments.begin(), arguments.end(), DrawsNothing))
  {
    SetDisplay();
  }
  std::vector<std::string> words = { "pvpython", "-m", "attentionatlas", command };
  words.insert(words.end(), arguments.begin() + 1, arguments.end());
  Become(ATLAS_PVPYTHON, words);
}

#else

namespace
{

[[noreturn]] void FailWithoutParaView()
{
  throw OptionError(
    "expected a build with ParaView, found one without it (ATLAS_BUILD_PLUGIN=OFF).");
}

}

int RunPython(const std::string& /*command*/, const std::vector<std::string>& /*arguments*/)
{
  FailWithoutParaView();
}

int View(const std::vector<std::string>& /*arguments*/)
{
  FailWithoutParaView();
}

#endif

}
