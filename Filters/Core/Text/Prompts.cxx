#include "Prompts.h"

#include "Base/Error.h"
#include "Base/Joined.h"
#include "Base/NumberText.h"
#include "Files/JsonText.h"
#include "ProteinText.h"
#include "UnicodeText.h"

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <set>
#include <utility>

namespace atlas
{
namespace
{

/// The prompt of a JSON line. Other keys of an object are added to `unread`.
std::string ParsePromptLine(
  std::string_view line, const std::string& source, std::set<std::string>& unread)
{
  const nlohmann::json value = ParseJson(line, source, "the line");
  if (value.is_string())
  {
    return value.get<std::string>();
  }
  ThrowIf<FormatError>(
    !value.is_object(), source, ": expected a JSON string or object, found ", Describe(value), ".");
  std::vector<std::string> found;
  for (const auto& [key, content] : value.items())
  {
    if (key != "text" && key != "prompt")
    {
      unread.insert(key);
      continue;
    }
    ThrowIf<FormatError>(!content.is_string(), source, ": expected a string as \"", key,
      "\", found ", Describe(content), ".");
    found.push_back(content.get<std::string>());
  }
  ThrowIf<FormatError>(found.size() != 1, source,
    ": expected a prompt as \"text\" or \"prompt\", found ", found.empty() ? "neither." : "both.");
  return found.front();
}

void RequireAtLeast(const char* name, std::int64_t value, std::int64_t least)
{
  ThrowIf<OptionError>(value < least, name, ": expected at least ", least, ", found ", value, ".");
}

/// Draws an id uniformly. Rejects numbers beyond the last whole multiple of the range.
std::int64_t DrawId(std::mt19937_64& generator, const RandomPromptOptions& options)
{
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t range = static_cast<std::uint64_t>(options.lastId - options.firstId) + 1;
  std::uint64_t number = generator();
  while (number >= most - most % range)
  {
    number = generator();
  }
  return options.firstId + static_cast<std::int64_t>(number % range);
}

}

PromptFormat FormatOfFile(const std::filesystem::path& path)
{
  const std::string ending = ToLower(ReplaceInvalidUtf8(path.extension().string()));
  constexpr std::array<std::string_view, 4> fasta = { ".fasta", ".fas", ".fa", ".faa" };
  return ending == ".jsonl"                                             ? PromptFormat::JsonLines
         : ending == ".a3m"                                             ? PromptFormat::A3m
         : std::find(fasta.begin(), fasta.end(), ending) != fasta.end() ? PromptFormat::Fasta
                                                                        : PromptFormat::Lines;
}

std::vector<std::string> ParsePrompts(std::string_view text, PromptFormat format,
  const std::string& source, std::vector<std::string>& warnings)
{
  if (format == PromptFormat::Fasta || format == PromptFormat::A3m)
  {
    const auto rows = format == PromptFormat::Fasta ? ProteinFormat::Fasta : ProteinFormat::A3m;
    std::vector<std::string> prompts;
    for (ProteinSequence& protein : ParseProteins(text, rows, source))
    {
      prompts.push_back(std::move(protein.letters));
    }
    return prompts;
  }
  std::vector<std::string> lines = SplitLines(text);
  if (format == PromptFormat::Lines || lines.empty())
  {
    return lines;
  }
  if (format == PromptFormat::OneText)
  {
    return { Joined(lines, [](const std::string& line) { return line; }, "\n") };
  }
  std::vector<std::string> prompts;
  std::set<std::string> unread;
  for (std::size_t i = 0; i < lines.size(); ++i)
  {
    if (lines[i].find_first_not_of(" \t") != std::string::npos)
    {
      prompts.push_back(
        ParsePromptLine(lines[i], source + ", line " + std::to_string(i + 1), unread));
    }
  }
  if (!unread.empty())
  {
    warnings.push_back(source + ": only the text of each line is read, and not its " +
                       Joined(unread, [](const std::string& key) { return "\"" + key + "\""; }) +
                       ".");
  }
  return prompts;
}

std::string WritePrompts(const std::vector<std::string>& prompts, const std::string& source)
{
  std::string text;
  for (std::size_t i = 0; i < prompts.size(); ++i)
  {
    RequireUtf8(prompts[i], source + " " + std::to_string(i + 1));
    text += nlohmann::json(prompts[i]).dump() + "\n";
  }
  return text;
}

std::vector<std::string_view> WordsOf(std::string_view line)
{
  constexpr std::string_view separators = " \t,";
  std::vector<std::string_view> words;
  for (std::size_t begin = line.find_first_not_of(separators); begin != std::string_view::npos;)
  {
    const std::size_t end = line.find_first_of(separators, begin);
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(separators, end);
  }
  return words;
}

std::vector<std::vector<std::int64_t>> ParseIntegerLines(
  std::string_view text, const std::string& source)
{
  std::vector<std::vector<std::int64_t>> sequences;
  for (const std::string& line : SplitLines(text))
  {
    sequences.emplace_back();
    for (const std::string_view word : WordsOf(line))
    {
      const auto number = ToNumber<std::int64_t>(word);
      if (!number)
      {
        throw OptionError(source, ": line ", sequences.size(),
          ": expected integers separated by spaces, found '", word, "'.");
      }
      sequences.back().push_back(*number);
    }
  }
  return sequences;
}

std::vector<std::vector<std::int64_t>> MakeRandomPrompts(const RandomPromptOptions& options)
{
  RequireAtLeast("Length", options.length, 1);
  RequireAtLeast("Count", options.count, 1);
  RequireAtLeast("Block", options.block, 1);
  RequireAtLeast("IdRange: the first id", options.firstId, 0);
  RequireAtLeast("IdRange: the last id", options.lastId, options.firstId);
  const std::int64_t period = options.kind == RandomPromptKind::OneToken ? 1
                              : options.kind == RandomPromptKind::Random
                                ? options.length
                                : std::min(options.block, options.length);
  std::mt19937_64 generator(options.seed);
  std::vector<std::vector<std::int64_t>> sequences(options.count);
  for (std::vector<std::int64_t>& sequence : sequences)
  {
    sequence.resize(options.length);
    const auto repeated = sequence.begin() + period;
    std::generate(sequence.begin(), repeated, [&] { return DrawId(generator, options); });
    for (std::size_t i = period; i < sequence.size(); ++i)
    {
      sequence[i] = sequence[i - static_cast<std::size_t>(period)];
    }
  }
  return sequences;
}

}
