#include "Commands.h"
#include "Error.h"
#include "ProgramOptions.h"
#include "VirtualDisplay.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>

#include <fcntl.h>
#include <sys/wait.h>
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
  const bool hasDisplay = HasValue("DISPLAY");
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
    if (!fs::exists(*word))
    {
      throw FileError(*word + ": no such file.");
    }
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

/// Runs `become`, which does not return, in another process; the exit status of that.
template<class Function>
int RunBeside(const std::string& name, const Function& become)
{
  const pid_t child = ::fork();
  if (child == 0)
  {
    try
    {
      become();
    }
    catch (const std::exception& error)
    {
      std::cerr << name << ": " << error.what() << "\n";
    }
    ::_exit(1);
  }
  const auto before = std::signal(SIGINT, SIG_IGN); // Ctrl+C is for the child
  int status = 1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR)
  {
  }
  std::signal(SIGINT, before);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// A folder for temporary files, removed with this object.
class TemporaryFolder
{
public:
  TemporaryFolder()
  {
    std::string pattern = (fs::temp_directory_path() / "attention-atlas-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
    {
      throw FileError(pattern + ": cannot be made: " + std::strerror(errno) + ".");
    }
    this->Path = pattern;
  }
  ~TemporaryFolder()
  {
    std::error_code ignored;
    fs::remove_all(this->Path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  fs::path Path;
};

[[noreturn]] void BecomeParaView(const std::vector<std::string>& options)
{
  Prepend("PV_PLUGIN_PATH", fs::path(std::getenv("ATLAS_PLUGIN")).parent_path());
  std::vector<std::string> words = { "paraview" };
  words.insert(words.end(), options.begin(), options.end());
  Become(fs::path(ATLAS_PVPYTHON).parent_path() / "paraview", words);
}

}

int View(const std::vector<std::string>& arguments)
{
  using cxxopts::value;
  const auto rest = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> options(rest == arguments.end() ? rest : rest + 1, arguments.end());
  cxxopts::Options described(arguments.front(),
    "Opens ParaView with the plugin, and linked views of a model or a recording, if one is given.\n"
    "What follows -- are options of ParaView.\n");
  described.add_options()(
    "file", "as scene takes it, or a state (.pvsm)", value<std::vector<std::string>>());
  described.parse_positional({ "file" });
  described.positional_help("[FILE] [-- OPTION...]");
  const auto parsed = Parse(std::move(described), { arguments.begin(), rest },
    { "run.safetensors", "gpt2/config.json", "scene.pvsm -- --stereo" });
  if (!parsed)
  {
    return 0;
  }
  if (parsed->count("file") > 1 || !parsed->unmatched().empty())
  {
    throw OptionError("expected one file, found more; options of ParaView follow --.");
  }
  if (!HasValue("DISPLAY") && !HasValue("WAYLAND_DISPLAY"))
  {
    throw OptionError("a window needs a display: expected the variable DISPLAY or "
                      "WAYLAND_DISPLAY, found neither. figures and web need none.");
  }
  const std::string file =
    parsed->count("file") == 0 ? "" : (*parsed)["file"].as<std::vector<std::string>>().front();
  const bool isState = fs::path(file).extension() == ".pvsm";
  if (!file.empty() && !fs::exists(file))
  {
    throw FileError(file + ": expected " + (isState ? "a state of ParaView" : "a file to show") +
                    ", found no file.");
  }
  SetPaths();
  if (file.empty() || isState)
  {
    options.insert(options.begin(), file.empty() ? 0 : 1, "--state=" + file);
    BecomeParaView(options);
  }
  const TemporaryFolder folder;
  const std::string state = folder.Path / "scene.pvsm";
  if (::isatty(STDERR_FILENO) != 0)
  {
    std::cerr << "Preparing the views of " << file << " ...\n";
  }
  const int made = RunBeside(arguments.front(),
    [&]
    {
      const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      if (nowhere >= 0)
      {
        ::dup2(nowhere, STDOUT_FILENO); // the name of the state
      }
      RunPython("scene", { arguments.front(), file, "-o", state });
    });
  if (made != 0)
  {
    return made;
  }
  options.insert(options.begin(), "--state=" + state);
  return RunBeside(arguments.front(), [&] { BecomeParaView(options); });
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
