#pragma once

#include "RecordingArrays.h"

#include <array>

namespace atlas
{

/// What an array of one layer contains.
enum class ForeignQuantity
{
  RotatedQuery,
  RotatedKey,
  Query,
  Key,
  Value,
  Mixed, ///< weighted sum of values; not kept, but gives the number of heads
  Output,
  Weights,
  Scores,
  ResidualBefore,
  ResidualAfter
};

/// The order of the axes of an array with one vector per token and head.
enum class ArrayLayout
{
  TokenFirst,     ///< [B,T,H,d] or, without a batch, [T,H,d]
  PerhapsFlat,    ///< as TokenFirst, or [B,T,H*d], [T,H*d]
  HeadFirst,      ///< [B,H,T,d] or [H,T,d]
  NotPerHeadTable ///< attention [B,H,T,T], residual [B,T,d]
};

struct ForeignArray
{
  std::string name;
  ArrayLayout layout = ArrayLayout::TokenFirst;
};

/// The arrays of one layer: for each quantity, the one with the preferred name.
struct ForeignLayer
{
  std::map<ForeignQuantity, ForeignArray> arrays;

  /// Returns nullptr if there is none.
  const ForeignArray* Find(ForeignQuantity quantity) const
  {
    const auto found = this->arrays.find(quantity);
    return found == this->arrays.end() ? nullptr : &found->second;
  }
};

/// Which arrays of a file hold the quantities of a recording, according to the names used by
/// TransformerLens and Hugging Face code. RecordingFile.h lists them.
struct ForeignNames
{
  /// Notes a reason for arrays that are not used because another one is preferred. Throws
  /// ModelError if there are too many layers.
  explicit ForeignNames(RecordingArrays& arrays);

  std::map<std::int64_t, ForeignLayer> layers;

  /// Name of the array with the attention of all layers, if no array belongs to a single layer;
  /// else empty.
  std::string stackedWeights;
  std::string stackedScores;

  bool IsStacked() const { return !this->stackedWeights.empty() || !this->stackedScores.empty(); }

  /// Whether an array of this name holds the attention of all layers if no array belongs to a
  /// single layer.
  static bool IsStackedName(const std::string& name)
  {
    return name == "attention" || name == "scores" || name == "array";
  }

  // The first name that is present is used.
  static constexpr std::array<const char*, 2> Logits = { "logits", "unembed.hook_out" };
  static constexpr std::array<const char*, 4> TokenIds = { "token_ids", "tokens", "hook_tokens",
    "input_ids" };
  static constexpr const char* TokenTypes = "token_type_ids";
  static constexpr const char* TokenPicture = "token_picture";
  static constexpr const char* TokenRow = "token_row";
  static constexpr const char* TokenColumn = "token_column";
  static constexpr const char* PaddingMask = "attention_mask";
};

}
