#include "ProgramOptions.h"

#include "AttentionKinds.h"
#include "NamedValues.h"
#include "Prompts.h"

#include <algorithm>
#include <iostream>
#include <iterator>

namespace atlas::programs
{

namespace fs = std::filesystem;

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

fs::path ModelOf(const cxxopts::ParseResult& parsed)
{
  fs::path model = parsed["model"].as<std::string>();
  if (!fs::exists(model))
  {
    throw FileError(model.string() + ": expected the folder or the file of a model, found none.");
  }
  return model;
}

void AddModelOptions(cxxopts::OptionAdder& add)
{
  using cxxopts::value;
  add("architecture", "the model_type of config.json, if that is missing or wrong",
    value<std::string>());
  add("products",
    "numbers in which activations and weights are multiplied: " + NamesOf(ProductPrecisions) +
      "; bf16 is faster on processors with AVX512-BF16",
    value<std::string>()->default_value(std::string(Name(ProductPrecision::Single))));
}

std::shared_ptr<const OpenTransformer> OpenModel(
  const cxxopts::ParseResult& parsed, const fs::path& path, bool processes)
{
  return OpenTransformer::Open(path,
    parsed.count("architecture") != 0 ? parsed["architecture"].as<std::string>() : "", processes,
    ParseNamed<OptionError>(ProductPrecisions, parsed["products"].as<std::string>(), "--products"));
}

fs::path OutputOf(const cxxopts::ParseResult& parsed, const std::string& what)
{
  if (parsed.count("output") == 0)
  {
    throw OptionError("expected --output, " + what + ", found none.");
  }
  fs::path output = parsed["output"].as<std::string>();
  if (output.extension() != ".safetensors")
  {
    throw OptionError(
      "--output: expected a name ending in .safetensors, found '" + output.string() + "'.");
  }
  if (!fs::is_directory(fs::absolute(output).parent_path()))
  {
    throw FileError(output.string() + ": expected an existing folder, found none.");
  }
  return output;
}

std::vector<std::int64_t> LayersOf(const cxxopts::ParseResult& parsed)
{
  if (parsed.count("layers") == 0)
  {
    return {};
  }
  const auto lines = ParseIntegerLines(parsed["layers"].as<std::string>(), "--layers");
  if (lines.size() != 1)
  {
    throw OptionError("--layers: expected numbers such as 0,4,5, found none.");
  }
  return lines.front();
}

}
