#include "ProgramOptions.h"

#include "Base/AttentionKinds.h"
#include "Base/NamedValues.h"
#include "Files/PictureFile.h"
#include "Learning/RecipeFile.h"
#include "Text/Prompts.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>

namespace atlas::programs
{

namespace fs = std::filesystem;

namespace
{

/// The property ModelDimension of the setting model_dimension.
std::string PropertyOf(const std::string& setting)
{
  std::string property = "_" + setting;
  for (auto gap = property.find('_'); gap != std::string::npos; gap = property.find('_'))
  {
    property.erase(gap, 1);
    property[gap] = static_cast<char>(property[gap] - 'a' + 'A');
  }
  return property;
}

/// A message of cxxopts, which names a value in quotes, with the option that it was given for.
std::string WithPlace(const std::string& message, const std::vector<std::string>& words)
{
  if (message.find("incorrect syntax") != std::string::npos)
  {
    return message + "; what begins with a dash and is no option follows --.";
  }
  for (std::size_t i = 1; i < words.size(); ++i)
  {
    const std::size_t equals = words[i].find('=');
    const bool isOption = words[i].rfind("--", 0) == 0;
    const bool isJoined = isOption && equals != std::string::npos;
    const std::string value = isJoined               ? words[i].substr(equals + 1)
                              : i + 1 < words.size() ? words[i + 1]
                                                     : "";
    if (isOption && !value.empty() &&
        message.find(value + "\u2019 failed to parse") != std::string::npos)
    {
      return words[i].substr(0, equals) + ": expected a number, found '" + value + "'.";
    }
  }
  return message;
}

}

std::optional<cxxopts::ParseResult> Parse(cxxopts::Options options,
  const std::vector<std::string>& arguments, const std::vector<std::string>& examples)
{
  options.add_options()("h,help", "show this");
  options.set_width(100);
  std::vector<const char*> words;
  std::transform(arguments.begin(), arguments.end(), std::back_inserter(words),
    [](const std::string& argument) { return argument.c_str(); });
  cxxopts::ParseResult parsed = [&]
  {
    try
    {
      return options.parse(static_cast<int>(words.size()), words.data());
    }
    catch (const std::exception& e) // of cxxopts, whose classes have other names in each version
    {
      throw OptionError(WithPlace(e.what(), arguments));
    }
  }();
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

std::string OptionOf(std::string setting)
{
  std::replace(setting.begin(), setting.end(), '_', '-');
  return setting;
}

std::string WithOptions(std::string message)
{
  constexpr std::array<Named<std::string_view>, 15> properties = { {
    { "MaximumLength", "--max-length" },
    { "FramesPerFilm", "--frames-per-film" },
    { "FramesPerSecond", "--frames-per-second" },
    { "GenerateTokens", "--generate" },
    { "TopK", "--top-k" },
    { "PromptFile", "--prompts" },
    { "TokenIds", "--token-ids" },
    { "Token Ids", "--token-ids" },
    { "Targets:", "--target:" },
    { "Targets,", "--target," },
    { "Layers:", "--layers:" },
    { "Window:", "--window:" },
    { "Overlap:", "--overlap:" },
    { "Contexts:", "--contexts:" },
    { "Samples:", "--samples:" },
  } };
  for (const RecipeSetting& setting : RecipeSettings())
  {
    const std::string property = PropertyOf(setting.name) + ":";
    if (message.compare(0, property.size(), property) == 0)
    {
      message.replace(0, property.size(), "--" + OptionOf(setting.name) + ":");
    }
  }
  for (const auto& [property, option] : properties)
  {
    for (auto place = message.find(property); place != std::string::npos;
      place = message.find(property, place + option.size()))
    {
      message.replace(place, property.size(), option);
    }
  }
  return message;
}

fs::path ModelOf(const cxxopts::ParseResult& parsed)
{
  ThrowIf<OptionError>(
    parsed.count("model") == 0, "expected a model, found none; --help shows how.");
  fs::path model = parsed["model"].as<std::string>();
  ThrowIf<FileError>(!fs::exists(model), model.string(),
    ": expected the folder or the file of a model, found none. Models are not "
    "downloaded: huggingface.co has many, and 'hf download NAME --local-dir "
    "FOLDER' gets one.");
  ThrowIf<FileError>(fs::is_regular_file(model) && IsPicture(model.string()), model.string(),
    ": expected the folder or the file of a model, found a picture.");
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

void AddThreads(cxxopts::OptionAdder& add)
{
  AddNumber<int>(
    add, "threads", "number of threads; 0: one per processor that the process may use");
}

void Warn(const std::string& name, const std::string& warning)
{
  if (!warning.empty())
  {
    std::cerr << name << ": warning: " << WithOptions(warning) << "\n";
  }
}

std::shared_ptr<const OpenTransformer> OpenModel(
  const cxxopts::ParseResult& parsed, const std::string& name, const fs::path& path, bool processes)
{
  auto model = OpenTransformer::Open(path, Given(parsed, "architecture"), processes,
    ParseNamed<OptionError>(ProductPrecisions, parsed["products"].as<std::string>(), "--products"));
  for (const auto& warnings : { UnusedWarnings(path, model->GetModel()), model->FileWarnings() })
  {
    for (const std::string& warning : warnings)
    {
      Warn(name, warning);
    }
  }
  return model;
}

fs::path OutputOf(const cxxopts::ParseResult& parsed, const std::string& what)
{
  ThrowIf<OptionError>(parsed.count("output") == 0, "expected --output, ", what, ", found none.");
  fs::path output = parsed["output"].as<std::string>();
  ThrowIf<OptionError>(output.extension() != ".safetensors",
    "--output: expected a name ending in .safetensors, found '", output.string(), "'.");
  ThrowIf<FileError>(!fs::is_directory(fs::absolute(output).parent_path()), output.string(),
    ": expected an existing folder, found none.");
  return output;
}

std::vector<std::int64_t> LayersOf(const cxxopts::ParseResult& parsed)
{
  if (parsed.count("layers") == 0)
  {
    return {};
  }
  const auto lines = ParseIntegerLines(Given(parsed, "layers"), "--layers");
  ThrowIf<OptionError>(lines.size() != 1, "--layers: expected numbers such as 0,4,5, found none.");
  return lines.front();
}

}
