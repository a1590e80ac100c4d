#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// How prompts are written as one text.
enum class PromptFormat
{
  Lines,     ///< one prompt per line
  OneText,   ///< one prompt with its line breaks; that at the end of the text is left out
  JsonLines, ///< in each line a JSON string, or an object that has one as "text" or "prompt"
  Fasta,     ///< proteins (ProteinText.h); a prompt is the letters of one
  A3m        ///< rows of an alignment of proteins, likewise
};

/// The format of a file by the ending of its name, in whatever case: .jsonl; .fasta, .fas, .fa or
/// .faa; .a3m; Lines for others.
PromptFormat FormatOfFile(const std::filesystem::path& path);

/// The prompts of a text. Blank JSON lines are skipped. Keys of JSON objects that are not read are
/// named in `warnings`. Throws FormatError, which begins with `source` and the line, for what is no
/// such JSON, and as ParseProteins.
std::vector<std::string> ParsePrompts(std::string_view text, PromptFormat format,
  const std::string& source, std::vector<std::string>& warnings);

/// Prompts as JSON lines, which keep every character. Throws FormatError, which begins with
/// `source` and the number of the prompt, for what is not UTF-8.
std::string WritePrompts(const std::vector<std::string>& prompts, const std::string& source);

/// The words of a line, which spaces, tabs and commas separate.
std::vector<std::string_view> WordsOf(std::string_view line);

/// Parses sequences of integers, one sequence per line, separated by spaces, tabs or commas. Throws
/// OptionError for anything that is not a 64-bit integer; the message starts with `source` and
/// gives the line and the word.
std::vector<std::vector<std::int64_t>> ParseIntegerLines(
  std::string_view text, const std::string& source);

enum class RandomPromptKind
{
  OneToken,     ///< a random token, repeated
  Random,       ///< each token drawn at random
  RepeatedBlock ///< a random block, repeated; the last repetition is cut off at the length
};

struct RandomPromptOptions
{
  RandomPromptKind kind = RandomPromptKind::Random;
  std::int64_t length = 64;  ///< of each sequence, at least 1
  std::int64_t count = 1;    ///< of sequences, at least 1
  std::int64_t block = 16;   ///< tokens of the repeated block, at least 1
  std::int64_t firstId = 0;  ///< ids are drawn from firstId <= id <= lastId, at least 0
  std::int64_t lastId = 999; ///< at least firstId
  std::uint64_t seed = 0;
};

/// Draws sequences of token ids uniformly at random, which no model can have memorized. They depend
/// only on the options and the seed (std::mt19937_64); a larger count appends sequences and leaves
/// the first ones unchanged. Throws OptionError with the name of the invalid option.
std::vector<std::vector<std::int64_t>> MakeRandomPrompts(const RandomPromptOptions& options);

}
