#pragma once

// Internal to Core: merges of byte pair encoding. Tokenizer.h is the interface.

#include "Vocabulary.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace atlas
{

/// Two adjacent symbols: the left one in the upper 32 bits, so that pairs compare as their symbols
/// do.
using PairKey = std::uint64_t;

inline PairKey KeyOf(std::int32_t left, std::int32_t right)
{
  return static_cast<PairKey>(static_cast<std::uint32_t>(left)) << 32U |
         static_cast<std::uint32_t>(right);
}

/// A symbol that stands for a token and is not merged, and back: symbols are below 0 only if so.
inline std::int32_t FrozenSymbol(std::int64_t id)
{
  return static_cast<std::int32_t>(-1 - id);
}
inline std::int64_t IdOfSymbol(std::int32_t symbol)
{
  return symbol < 0 ? -1 - std::int64_t{ symbol } : symbol;
}

/// The merges of byte pair encoding (Sennrich et al. 2016): which pair of symbols becomes which
/// symbol, and which pair goes first. Symbols are numbers; those below 0 are never merged.
class MergeRules
{
public:
  void Reserve(std::size_t count) { this->Merges.reserve(count); }

  /// Adds a merge. Returns false, and changes nothing, if the pair has one already.
  bool Add(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t result);

  /// Merges, of all adjacent pairs, the one of the lowest rank, leftmost first, and repeats this
  /// until no pair can be merged. Takes n log n steps for n symbols.
  void Apply(std::vector<std::int32_t>& symbols) const;

private:
  struct Result
  {
    std::uint32_t rank;
    std::int32_t id;
  };
  static constexpr std::uint32_t NoRank = ~0U;

  std::unordered_map<PairKey, Result> Merges;

  Result Find(std::int32_t left, std::int32_t right) const;
  void MergeShort(std::vector<std::int32_t>& symbols) const;
  void MergeLong(std::vector<std::int32_t>& symbols) const;
};

/// Two tokens that become one.
using Merge = std::pair<std::string, std::string>;

/// "left right", with one space. Throws FormatError; the message starts with `place`.
Merge ParseMerge(std::string_view line, const std::string& place);

/// Adds the merge at `rank` of a list. The result lacks the first `prefix` bytes of the right
/// token. Throws FormatError if it uses or produces a token that is not in the vocabulary, or is
/// listed twice; the message starts with `source`.
void AddMerge(MergeRules& rules, const Vocabulary& tokens, const std::vector<Merge>& merges,
  std::size_t rank, const std::string& source, std::size_t prefix = 0);

}
