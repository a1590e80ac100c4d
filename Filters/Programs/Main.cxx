// The command attention-atlas: what the plugin does, without its window.

#include "Base/Error.h"
#include "Base/Progress.h"
#include "Base/Utf8Text.h"
#include "Commands.h"
#include "ProgramOptions.h"

#include <algorithm>
#include <array>
#include <exception>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

using namespace atlas::programs;

namespace
{

struct Command
{
  const char* name;
  const char* summary;
  int (*run)(const std::vector<std::string>&); ///< nullptr: a command of the Python package
};

constexpr std::array<Command, 11> Commands = { {
  { "view", "ParaView with the plugin, and linked views of a model or a recording", View },
  { "figures", "figures of a model or a recording, as PNG, PDF or SVG", nullptr },
  { "web", "a page for a browser, with scenes to turn and search", nullptr },
  { "attribution", "the circuit of a prediction, with tables, figures and a page", nullptr },
  { "article", "attention on a torus, as an article whose pictures are alive", nullptr },
  { "scene", "linked views as a state of ParaView", nullptr },
  { "record", "run a transformer on prompts or pictures, and record its heads", Record },
  { "corpus", "what every head does over texts of any length", Corpus },
  { "learn", "train a small transformer on a task with a known phenomenon", Learn },
  { "map", "the class map of a small model, of any size", Map },
  { "findings", "claims of the literature, tested on the models that come along", nullptr },
} };

void PrintHelp(std::ostream& stream)
{
  stream << "Shows how transformers attend.\n\n"
            "Usage:\n  attention-atlas COMMAND [OPTION...] [FILE...]\n\nCommands:\n";
  for (const Command& command : Commands)
  {
    stream << "  " << std::left << std::setw(12) << command.name << command.summary << "\n";
  }
  stream
    << "\nOptions:\n"
       "  -h, --help     show this; attention-atlas COMMAND --help shows the options of a\n"
       "                 command\n"
       "      --version  show the version\n"
       "\nExamples:\n"
       "  attention-atlas record gpt2 \"Data visualization empowers users to\" -o run.safetensors\n"
       "  attention-atlas view run.safetensors\n"
       "  attention-atlas figures run.safetensors -o figures\n"
       "  attention-atlas web run.safetensors -o page.html\n"
       "\nMODEL is a file or a folder on this machine, such as gpt2 after\n"
       "'hf download openai-community/gpt2 --local-dir gpt2'.\n";
}

[[noreturn]] void FailUnknown(const std::string& name)
{
  const auto distance = [&](const Command& command)
  {
    const std::string known = command.name;
    return atlas::EditDistance({ name.begin(), name.end() }, { known.begin(), known.end() });
  };
  const auto nearest = std::min_element(Commands.begin(), Commands.end(),
    [&](const Command& a, const Command& b) { return distance(a) < distance(b); });
  throw atlas::OptionError("unknown command '", name, "'.",
    distance(*nearest) <= 2 ? atlas::Concat(" Did you mean '", nearest->name, "'?") : "",
    " attention-atlas --help lists all.");
}

}

int main(int argc, char** argv)
{
  std::string program = "attention-atlas";
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "--version")
  {
    std::cout << "attention-atlas " ATLAS_VERSION "\n";
    return 0;
  }
  if (name.empty() || name == "-h" || name == "--help" || name == "help")
  {
    PrintHelp(name.empty() ? std::cerr : std::cout);
    return name.empty() ? 1 : 0;
  }
  try
  {
    const auto command = std::find_if(
      Commands.begin(), Commands.end(), [&](const Command& known) { return name == known.name; });
    if (command == Commands.end())
    {
      FailUnknown(name);
    }
    program += " " + name;
    std::vector<std::string> arguments(argv + 1, argv + argc);
    arguments.front() = program;
    return command->run != nullptr ? command->run(arguments) : RunPython(name, arguments);
  }
  catch (const atlas::Canceled&)
  {
    std::cerr << program << ": canceled; nothing was written.\n";
    return 130; // as a shell tells of SIGINT
  }
  catch (const std::exception& e) // includes those of cxxopts
  {
    std::cerr << program << ": " << WithOptions(e.what()) << "\n";
    return 1;
  }
}
