#pragma once

#include "Recording.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

/// The quantities of a recording and their names in native files and in tables. All code that
/// reads, writes, checks or converts recordings uses these lists.
namespace atlas
{

/// A matrix of each head, with one row per token.
struct HeadQuantity
{
  const char* name;  ///< in files, layers.{l}.heads.{h}.NAME, and in messages
  const char* label; ///< in tables
  SharedMatrix RecordedHead::* matrix;
  bool isGrouped; ///< whether the heads of a group share it
};
inline constexpr std::array<HeadQuantity, 5> HeadQuantities = { {
  { "query", "Query", &RecordedHead::query, false },
  { "key", "Key", &RecordedHead::key, true },
  { "value", "Value", &RecordedHead::value, true },
  { "output", "Output", &RecordedHead::output, false },
  { "value_norm", "Value Norm", &RecordedHead::valueNorm, false },
} };

/// Stored attention of each head: one square matrix per sequence.
struct StoredQuantity
{
  const char* name;  ///< in files, layers.{l}.heads.{h}.NAME.{s}, and in messages
  const char* label; ///< in tables
  std::vector<SharedMatrix> RecordedHead::* matrices;
  bool allowsMinusInfinity; ///< whether excluded keys may have -infinity
};
inline constexpr std::array<StoredQuantity, 2> StoredQuantities = { {
  { "weights", "Weights", &RecordedHead::weights, false },
  { "scores", "Scores", &RecordedHead::scores, true },
} };

/// The experts that a layer chose for each token: matrices with one row per token.
struct RoutingQuantity
{
  const char* name;  ///< in files, layers.{l}.NAME, and in messages
  const char* label; ///< in tables
  SharedMatrix RecordedRouting::* matrix;
};
inline constexpr std::array<RoutingQuantity, 3> RoutingQuantities = { {
  { "experts", "Expert", &RecordedRouting::chosen },
  { "expert_weights", "Expert Weight", &RecordedRouting::weights },
  { "expert_scores", "Expert Score", &RecordedRouting::scores },
} };

/// The bias of each expert, [1, experts]: a tensor layers.{l}.NAME in files, a field array of the
/// layer's block.
inline constexpr const char* ExpertBiasName = "expert_bias";
inline constexpr const char* ExpertBiasLabel = "Expert Bias";

/// What a layer adds to scores by the places of query and key: matrices without rows of tokens.
struct LayerQuantity
{
  const char* name;  ///< in files, layers.{l}.NAME, and in messages
  const char* label; ///< of field arrays of the layer's block
  SharedMatrix RecordedLayer::* matrix;
};
inline constexpr std::array<LayerQuantity, 4> LayerQuantities = { {
  { "distance_bias", "Distance Bias", &RecordedLayer::distanceBias },
  { "patch_bias", "Patch Bias", &RecordedLayer::patchBias },
  { "position_keys", "Position Keys", &RecordedLayer::positionKeys },
  { "position_queries", "Position Queries", &RecordedLayer::positionQueries },
} };

/// Whether a layer has any of these.
inline bool HasOwnBias(const RecordedLayer& layer)
{
  return std::any_of(LayerQuantities.begin(), LayerQuantities.end(),
    [&](const LayerQuantity& quantity) { return (layer.*quantity.matrix).IsRecorded(); });
}

/// Calls call(matrix) for all matrices of a recording, without its parts, that have a row per
/// token.
template<class AnyRecording, class Call>
void ForEachTokenMatrix(AnyRecording& recording, const Call& call)
{
  for (auto& layer : recording.layers)
  {
    for (auto& head : layer.heads)
    {
      for (const HeadQuantity& quantity : HeadQuantities)
      {
        call(head.*quantity.matrix);
      }
    }
    for (const RoutingQuantity& quantity : RoutingQuantities)
    {
      call(layer.routing.*quantity.matrix);
    }
  }
  for (auto& residual : recording.residual)
  {
    call(residual);
  }
  call(recording.logits);
}

/// A list with one item per token. Sequences are not listed, as files store their first rows
/// instead.
struct TokenQuantity
{
  const char* name;    ///< in files, tokens.NAME; nullptr for texts, which are in the metadata
  const char* label;   ///< in tables
  const char* message; ///< in messages
  std::variant<std::vector<std::int32_t> RecordedTokens::*,
    std::vector<std::int64_t> RecordedTokens::*, std::vector<std::string> RecordedTokens::*>
    list;
  bool isOptional = true;
};
inline constexpr std::array<TokenQuantity, 8> TokenQuantities = { {
  { "position", "Position", "position", &RecordedTokens::position, false },
  { "id", "TokenId", "token id", &RecordedTokens::id },
  { nullptr, "Token", "token text", &RecordedTokens::text },
  { "segment", "Segment", "segment", &RecordedTokens::segment },
  { "row", "Row", "patch row", &RecordedTokens::row },
  { "column", "Column", "patch column", &RecordedTokens::column },
  { "picture", "Picture Number", "picture", &RecordedTokens::picture },
  { "key_end", "Key End", "number of keys", &RecordedTokens::keyEnd },
} };

/// The mean colors of patches, a matrix with one row per token.
struct ColorQuantity
{
  const char* name;  ///< in files
  const char* label; ///< in tables
  std::int64_t columns;
};
inline constexpr ColorQuantity PatchColorQuantity = { "tokens.color", "Patch Color", 3 };

/// The pictures of images.
struct PictureQuantity
{
  const char* name;       ///< in files: the pixels [images, height, width, 3], of pictures among
                          ///< words [pixels of all, 3]; and the block
  const char* label;      ///< in tables
  const char* size;       ///< in metadata: [height, width], of pictures whose pixels are elsewhere
  const char* sources;    ///< in metadata: an array of [file, hash]
  const char* processing; ///< in metadata
  const char* contents;   ///< in metadata: an array of the numbers of each PictureContent
};
inline constexpr PictureQuantity Pictures = { "pictures", "Picture", "picture_size",
  "picture_sources", "picture_processing", "picture_contents" };

/// A matrix of the whole recording, or of each layer, with one row per token.
struct StreamQuantity
{
  const char* name;  ///< in files, residual.{l} and logits
  const char* label; ///< in tables
};
inline constexpr StreamQuantity ResidualQuantity = { "residual", "Residual" };
inline constexpr StreamQuantity LogitsQuantity = { "logits", "Logits" };

}
