#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// Sequences of numbers, one a line, separated by spaces, tabs or commas. Throws OptionError, which
/// starts with `source` and names line and word, for anything that is not an integer of 64 bits.
std::vector<std::vector<std::int64_t>> ParseIntegerLines(
  std::string_view text, const std::string& source);

enum class RandomPromptKind
{
  OneToken,     ///< a random token, repeated
  Random,       ///< every token at random
  RepeatedBlock ///< a random block, repeated; the last time cut off at the length
};

struct RandomPromptOptions
{
  RandomPromptKind kind = RandomPromptKind::Random;
  std::int64_t length = 64;  ///< of each sequence, at least 1
  std::int64_t count = 1;    ///< of sequences, at least 1
  std::int64_t block = 16;   ///< length of the block, at least 1
  std::int64_t firstId = 0;  ///< ids are drawn from firstId <= id <= lastId, at least 0
  std::int64_t lastId = 999; ///< at least firstId
  std::uint64_t seed = 0;
};

/// Sequences of token ids with uniform probabilities, that models cannot know. They follow from the
/// seed alone (std::mt19937_64), and the first sequences do not depend on their count. Throws
/// OptionError naming the option.
std::vector<std::vector<std::int64_t>> MakeRandomPrompts(const RandomPromptOptions& options);

}
