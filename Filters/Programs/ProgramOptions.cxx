#include "ProgramOptions.h"

#include <algorithm>
#include <iostream>
#include <iterator>

namespace atlas::programs
{

std::optional<cxxopts::ParseResult> Parse(cxxopts::Options options,
  const std::vector<std::string>& arguments, const std::vector<std::string>& examples)
{
  options.add_options()("h,help", "show this");
  options.set_width(100);
  std::vector<const char*> words;
  std::transform(arguments.begin(), arguments.end(), std::back_inserter(words),
    [](const std::string& argument) { return argument.c_str(); });
  cxxopts::ParseResult parsed = options.parse(static_cast<int>(words.size()), words.data());
  if (parsed.count("help") == 0)
  {
    return parsed;
  }
  std::cout << options.help() << "\nExamples:\n";
  for (const std::string& example : examples)
  {
    std::cout << "  " << arguments.front() << " " << example << "\n";
  }
  return std::nullopt;
}

}
