#pragma once

#include "Base/Error.h"
#include "Recorder/OpenTransformer.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

// Commas do not separate values: prompts and names of files have them.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <cxxopts.hpp>

namespace atlas::programs
{

/// Parses the arguments of a command. Returns nothing after --help, which is printed with examples:
/// the arguments of a call each, without the name of the command.
std::optional<cxxopts::ParseResult> Parse(cxxopts::Options options,
  const std::vector<std::string>& arguments, const std::vector<std::string>& examples);

/// The number given for an option. Throws OptionError with the name that the option has on the
/// command line unless `holds` is true of it; `expected` says for which numbers it is.
template<class Number, class Holds>
Number Checked(const cxxopts::ParseResult& parsed, const std::string& option,
  const std::string& expected, const Holds& holds)
{
  const auto number = parsed[option].as<Number>();
  if (!holds(number))
  {
    std::ostringstream message;
    message << "--" << option << ": expected " << expected << ", found " << number << ".";
    throw OptionError(message.str());
  }
  return number;
}

template<class Number>
Number AtLeast(const cxxopts::ParseResult& parsed, const std::string& option, Number least)
{
  std::ostringstream expected;
  expected << "at least " << least;
  return Checked<Number>(
    parsed, option, expected.str(), [least](Number number) { return number >= least; });
}

/// The name of a recipe's setting as an option: - for _.
std::string OptionOf(std::string setting);

/// A message of Core with the names that properties of ParaView have as options of a command.
std::string WithOptions(std::string message);

/// What is given for an option without a default; empty if it is not given.
template<class Value = std::string>
Value Given(const cxxopts::ParseResult& parsed, const std::string& option)
{
  return parsed.count(option) != 0 ? parsed[option].as<Value>() : Value();
}

/// The path given as `model`, which is there.
std::filesystem::path ModelOf(const cxxopts::ParseResult& parsed);

/// Adds an option that takes a number and has a default.
template<class Number = std::int64_t>
void AddNumber(cxxopts::OptionAdder& add, const std::string& option, const std::string& description,
  const std::string& byDefault = "0")
{
  add(option, description, cxxopts::value<Number>()->default_value(byDefault));
}

/// Adds --architecture and --products: how a model is read.
void AddModelOptions(cxxopts::OptionAdder& add);

/// Adds --threads.
void AddThreads(cxxopts::OptionAdder& add);

/// Prints a warning of a command, unless it is empty.
void Warn(const std::string& name, const std::string& warning);

/// The model of a path, read as these options say. Settings and tensors of it that are not used are
/// printed as warnings of the command `name`.
std::shared_ptr<const OpenTransformer> OpenModel(const cxxopts::ParseResult& parsed,
  const std::string& name, const std::filesystem::path& path, bool processes = false);

/// The safetensors file of --output, in a folder that is there: what comes before it takes time.
/// `what` says what it is.
std::filesystem::path OutputOf(const cxxopts::ParseResult& parsed, const std::string& what);

/// The numbers of --layers; none if it is not given.
std::vector<std::int64_t> LayersOf(const cxxopts::ParseResult& parsed);

}
