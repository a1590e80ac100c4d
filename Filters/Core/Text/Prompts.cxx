#include "Prompts.h"

#include "Error.h"
#include "Joined.h"
#include "JsonText.h"
#include "UnicodeText.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>
#include <set>
#include <system_error>

namespace atlas
{
namespace
{

constexpr std::string_view Separators = " \t,";

std::int64_t ParseInteger(std::string_view word, std::size_t line, const std::string& source)
{
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
  {
    throw OptionError(source + ": line " + std::to_string(line) +
                      ": expected integers separated by spaces, found '" + std::string(word) +
                      "'.");
  }
  return value;
}

/// The prompt of a JSON line. Other keys of an object are added to `unread`.
std::string ParsePromptLine(
  std::string_view line, const std::string& source, std::set<std::string>& unread)
{
  const nlohmann::json value = ParseJson(line, source, "the line");
  if (value.is_string())
  {
    return value.get<std::string>();
  }
  if (!value.is_object())
  {
    throw FormatError(
      source + ": expected a JSON string or object, found " + Describe(value) + ".");
  }
  std::vector<std::string> found;
  for (const auto& [key, content] : value.items())
  {
    if (key != "text" && key != "prompt")
    {
      unread.insert(key);
    }
    else if (content.is_string())
    {
      found.push_back(content.get<std::string>());
    }
    else
    {
      std::string message = source + ": expected a string as \"";
      message.append(key).append("\", found ").append(Describe(content)).append(".");
      throw FormatError(message);
    }
  }
  if (found.size() != 1)
  {
    throw FormatError(source + ": expected a prompt as \"text\" or \"prompt\", found " +
                      (found.empty() ? "neither." : "both."));
  }
  return found.front();
}

void RequireAtLeast(const char* name, std::int64_t value, std::int64_t least)
{
  if (value < least)
  {
    throw OptionError(std::string(name) + ": expected at least " + std::to_string(least) +
                      ", found " + std::to_string(value) + ".");
  }
}

/// Draws uniform ids. Rejects numbers beyond the last whole multiple of the range.
class IdGenerator
{
public:
  explicit IdGenerator(const RandomPromptOptions& options)
    : First(options.firstId)
    , Range(static_cast<std::uint64_t>(options.lastId - options.firstId) + 1)
    , Generator(options.seed)
  {
  }

  std::int64_t Next()
  {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t number = this->Generator();
    while (number >= most - most % this->Range)
    {
      number = this->Generator();
    }
    return this->First + static_cast<std::int64_t>(number % this->Range);
  }

private:
  std::int64_t First;
  std::uint64_t Range;
  std::mt19937_64 Generator;
};

}

std::vector<std::string> ParsePrompts(std::string_view text, PromptFormat format,
  const std::string& source, std::vector<std::string>& warnings)
{
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

std::vector<std::vector<std::int64_t>> ParseIntegerLines(
  std::string_view text, const std::string& source)
{
  std::vector<std::vector<std::int64_t>> sequences;
  for (const std::string& line : SplitLines(text))
  {
    sequences.emplace_back();
    std::string_view rest = line;
    while (rest.find_first_not_of(Separators) != std::string_view::npos)
    {
      rest.remove_prefix(rest.find_first_not_of(Separators));
      const std::string_view word = rest.substr(0, rest.find_first_of(Separators));
      sequences.back().push_back(ParseInteger(word, sequences.size(), source));
      rest.remove_prefix(word.size());
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
  IdGenerator generator(options);
  std::vector<std::vector<std::int64_t>> sequences(options.count);
  for (std::vector<std::int64_t>& sequence : sequences)
  {
    sequence.resize(options.length);
    const auto repeated = sequence.begin() + period;
    std::generate(sequence.begin(), repeated, [&generator]() { return generator.Next(); });
    for (std::size_t i = period; i < sequence.size(); ++i)
    {
      sequence[i] = sequence[i - static_cast<std::size_t>(period)];
    }
  }
  return sequences;
}

}
