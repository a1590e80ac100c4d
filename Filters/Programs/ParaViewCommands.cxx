#include "Base/Error.h"
#include "Base/System.h"
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

#ifdef ATLAS_PYTHON_PATH

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

/// A part of Attention Atlas, by its path from this program.
fs::path PartAt(const char* path)
{
  const fs::path part = (system::ProgramPath().parent_path() / path).lexically_normal();
  ThrowIf<FileError>(!fs::exists(part), part.string(),
    ": expected a part of Attention Atlas, found none; build or install all of it.");
  return part;
}

/// Lets the host's Python find the package that belongs to this program; the folder of the package.
fs::path SetPaths()
{
  const fs::path package = PartAt(ATLAS_PYTHON_PATH "/attentionatlas");
  const fs::path python = package.parent_path();
  if (python != "/usr/lib/python3/dist-packages") // where Debian's Python looks, but last
  {
    Prepend("PYTHONPATH", python);
  }
#ifdef ATLAS_PLUGIN_PATH
  ::setenv("ATLAS_PLUGIN", PartAt(ATLAS_PLUGIN_PATH).c_str(), 1);
#endif
  return package;
}

/// Throws FileError for a file that is not there, before Python takes seconds to start. Files are
/// the words before the first option; behind one a word may be its value.
void RequireFiles(const std::vector<std::string>& arguments)
{
  for (auto word = arguments.begin() + 1; word != arguments.end() && word->rfind('-', 0) != 0;
    ++word)
  {
    ThrowIf<FileError>(!fs::exists(*word), *word, ": no such file.");
  }
}

/// Becomes another program, whose name is the first word, if need be that of PATH. `needed` is what
/// to install where there is none.
[[noreturn]] void Become(
  const fs::path& program, std::vector<std::string> words, const std::string& needed)
{
  std::vector<char*> pointers;
  std::transform(words.begin(), words.end(), std::back_inserter(pointers),
    [](std::string& word) { return word.data(); });
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  ::execvp(pointers.front(), pointers.data());
  throw FileError((program.empty() ? pointers.front() : program.string()) +
                  ": cannot be run: " + std::strerror(errno) + ". Install " + needed + ".");
}

#ifdef ATLAS_PVPYTHON

constexpr const char* ParaView = "ParaView with its Python";

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

/// Whether a command runs on VTK alone, which starts sooner than ParaView: all but scenes, unless
/// the user has chosen a host, or a state of ParaView is shown.
bool RunsOnVtk(const std::string& command, const std::vector<std::string>& arguments)
{
  return !HasValue("ATLAS_HOST") && command != "scene" &&
         std::none_of(arguments.begin(), arguments.end(),
           [](const std::string& word) { return fs::path(word).extension() == ".pvsm"; });
}

bool DrawsNothing(const std::string& argument)
{
  return argument == "-h" || argument == "--help" || argument == "--list";
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
  Become(fs::path(ATLAS_PVPYTHON).parent_path() / "paraview", words, ParaView);
}

#endif

}

#endif

#ifdef ATLAS_PVPYTHON

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

#else

int View(const std::vector<std::string>& /*arguments*/)
{
  throw OptionError("expected a build of the plugin for ParaView, found one without it.");
}

#endif

#ifdef ATLAS_PYTHON_PATH

int RunPython(const std::string& command, const std::vector<std::string>& arguments)
{
  RequireFiles(arguments);
  std::vector<std::string> words = { "-m", "attentionatlas", command };
  words.insert(words.end(), arguments.begin() + 1, arguments.end());
#ifdef ATLAS_PVPYTHON
  SetPaths();
  const bool isPlain = RunsOnVtk(command, arguments);
  const bool drawsPage = isPlain && command == "web"; // which a browser renders
  if (!drawsPage && std::none_of(arguments.begin(), arguments.end(), DrawsNothing))
  {
    SetDisplay();
  }
  if (isPlain)
  {
    ::setenv("ATLAS_HOST", "VTK", 1);
  }
  words.insert(words.begin(), isPlain ? "python3" : "pvpython");
  Become(isPlain ? ATLAS_VTK_PYTHON : ATLAS_PVPYTHON, words, ParaView);
#else
  // The Python that a wheel is installed in finds the package.
  const bool isInstalled = HasValue("ATLAS_PYTHON");
  if (!isInstalled)
  {
    SetPaths();
  }
  words.insert(words.begin(), isInstalled ? std::getenv("ATLAS_PYTHON") : "python3");
  Become({}, words, "Python");
#endif
}

#else

int RunPython(const std::string& /*command*/, const std::vector<std::string>& /*arguments*/)
{
  throw OptionError("expected a build with ParaView or VTK, found one without them.");
}

#endif

}
