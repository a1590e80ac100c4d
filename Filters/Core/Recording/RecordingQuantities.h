#pragma once

#include "Recording.h"

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

/// The quantities of a recording and their names in native files and in tables. What reads, writes,
/// checks or converts recordings goes through these lists.
namespace atlas
{

/// A matrix of each head, with a row per token.
struct HeadQuantity
{
  const char* name;  ///< in files, layers.{l}.heads.{h}.NAME, and in messages
  const char* label; ///< in tables
  SharedMatrix RecordedHead::*matrix;
  bool isGrouped; ///< whether heads of a group share it
};
inline constexpr std::array<HeadQuantity, 4> HeadQuantities = { {
  { "query", "Query", &RecordedHead::query, false },
  { "key", "Key", &RecordedHead::key, true },
  { "value", "Value", &RecordedHead::value, true },
  { "output", "Output", &RecordedHead::output, false },
} };

/// Stored attention of each head, a square matrix per sequence.
struct StoredQuantity
{
  const char* name;  ///< in files, layers.{l}.heads.{h}.NAME.{s}, and in messages
  const char* label; ///< in tables
  std::vector<SharedMatrix> RecordedHead::*matrices;
  bool allowsMinusInfinity; ///< where the mask excludes a key
};
inline constexpr std::array<StoredQuantity, 2> StoredQuantities = { {
  { "weights", "Weights", &RecordedHead::weights, false },
  { "scores", "Scores", &RecordedHead::scores, true },
} };

/// A list with an item per token, beside the sequences, which files keep as their first rows.
struct TokenQuantity
{
  const char* name;    ///< in files, tokens.NAME; nullptr: in the metadata, as texts are
  const char* label;   ///< in tables
  const char* message; ///< in messages
  std::variant<std::vector<std::int32_t> RecordedTokens::*,
    std::vector<std::int64_t> RecordedTokens::*, std::vector<std::string> RecordedTokens::*>
    list;
  bool isOptional = true;
};
inline constexpr std::array<TokenQuantity, 6> TokenQuantities = { {
  { "position", "Position", "position", &RecordedTokens::position, false },
  { "id", "TokenId", "token id", &RecordedTokens::id },
  { nullptr, "Token", "token text", &RecordedTokens::text },
  { "segment", "Segment", "segment", &RecordedTokens::segment },
  { "row", "Row", "patch row", &RecordedTokens::row },
  { "column", "Column", "patch column", &RecordedTokens::column },
} };

/// A matrix of the whole recording, or of each layer, with a row per token.
struct StreamQuantity
{
  const char* name;  ///< in files, residual.{l} and logits
  const char* label; ///< in tables
};
inline constexpr StreamQuantity ResidualQuantity = { "residual", "Residual" };
inline constexpr StreamQuantity LogitsQuantity = { "logits", "Logits" };

}
