#pragma once

// Internal to Core.

#include "RecordingArrays.h"

#include <array>

namespace atlas
{

/// What an array holds, of one layer.
enum class ForeignQuantity
{
  RotatedQuery,
  RotatedKey,
  Query,
  Key,
  Value,
  Mixed, ///< weighted sum of values: not kept, but it shows the number of heads
  Output,
  Weights,
  Scores,
  ResidualBefore,
  ResidualAfter,
  Count
};

/// Order of the axes of an array that has a vector per token and head.
enum class ArrayLayout
{
  TokenFirst,     ///< [B,T,H,d] or, without a batch, [T,H,d]
  PerhapsFlat,    ///< the same, or [B,T,H*d], [T,H*d]
  HeadFirst,      ///< [B,H,T,d] or [H,T,d]
  NotPerHeadTable ///< attention [B,H,T,T], residual [B,T,d]
};

struct ForeignArray
{
  std::string name;
  ArrayLayout layout = ArrayLayout::TokenFirst;
};

/// The arrays of one layer: of each quantity that with the best name.
class ForeignLayer
{
public:
  /// Nullptr: there is none.
  const ForeignArray* Find(ForeignQuantity quantity) const;

  /// Takes an array unless there is one; returns that which there was, or nullptr.
  const ForeignArray* Offer(ForeignQuantity quantity, const ForeignArray& array);

private:
  std::array<std::optional<ForeignArray>, static_cast<std::size_t>(ForeignQuantity::Count)> Arrays;
};

/// Which arrays of a file hold the quantities of a recording, by the names that TransformerLens and
/// Hugging Face's code have for them; RecordingFile.h has the list.
struct ForeignNames
{
  /// Explains arrays that another one is preferred to. Throws ModelError for too many layers.
  explicit ForeignNames(RecordingArrays& arrays);

  std::map<std::int64_t, ForeignLayer> layers;

  /// Attention of all layers in one array, where no array is of a layer; else empty.
  std::string stackedWeights;
  std::string stackedScores;

  bool IsStacked() const { return !this->stackedWeights.empty() || !this->stackedScores.empty(); }

  /// Whether arrays of this name are attention of all layers, where no array is of a layer.
  static bool IsStackedName(const std::string& name);

  // Of several names of one quantity the first that is there counts.
  static constexpr std::array<const char*, 2> Logits = { "logits", "unembed.hook_out" };
  static constexpr std::array<const char*, 4> TokenIds = { "token_ids", "tokens", "hook_tokens",
    "input_ids" };
  static constexpr const char* TokenTypes = "token_type_ids";
  static constexpr const char* PaddingMask = "attention_mask";
};

}
