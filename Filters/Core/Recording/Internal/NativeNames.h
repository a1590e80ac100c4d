#pragma once

// Internal to Core: the names of arrays and metadata in files of recordings.

#include "Recording/Recording.h"
#include "Recording/RecordingQuantities.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace atlas
{

inline constexpr const char* SequenceOffsets = "sequence_offsets";
inline constexpr const char* ScoreScales = "score_scales";
inline constexpr const char* LayersWithoutHeads = "layers_without_heads";
inline constexpr const char* ScoreCaps = "score_caps";
inline constexpr const char* AlibiUnit = "alibi_unit";
inline constexpr const char* Windows = "windows";
inline constexpr const char* PatchWindows = "patch_windows";
inline constexpr const char* Chunks = "chunks";
/// Whole numbers of layers, 0 where there is none.
inline constexpr std::array<std::pair<const char*, std::int64_t RecordedLayer::*>, 3>
  LayerWindows = { {
    { Windows, &RecordedLayer::window },
    { PatchWindows, &RecordedLayer::patchWindow },
    { Chunks, &RecordedLayer::chunk },
  } };
inline constexpr const char* Sinks = "sinks";
inline constexpr const char* ExpertCounts = "expert_counts";
inline constexpr const char* SourceLengths = "source_lengths";
inline constexpr const char* DistanceBias = "distance_bias";

/// The parts of a transformer with an encoder and a decoder, whose names in files begin with
/// theirs.
struct NativePart
{
  AttentionKind kind;
  std::shared_ptr<const Recording> Recording::* recording;
};
inline constexpr std::array<NativePart, 2> NativeParts = { {
  { AttentionKind::Encoder, &Recording::encoder },
  { AttentionKind::Cross, &Recording::cross },
} };

/// What the names of a part begin with.
inline std::string PrefixOf(const NativePart& part)
{
  return std::string(Name(part.kind)) + ".";
}

inline std::string HeadName(std::int64_t layer, std::size_t head)
{
  return "layers." + std::to_string(layer) + ".heads." + std::to_string(head) + ".";
}

inline std::string LayerName(std::int64_t layer, const char* name)
{
  return "layers." + std::to_string(layer) + "." + name;
}

inline std::string ResidualName(std::size_t layer)
{
  return ResidualQuantity.name + ("." + std::to_string(layer));
}

inline std::string TokenName(const TokenQuantity& quantity)
{
  return std::string("tokens.") + quantity.name;
}

/// Calls `call(name, list)` for each list of integers with one item per token.
template<class Tokens, class Call>
void ForEachTokenList(Tokens& tokens, const Call& call)
{
  for (const TokenQuantity& quantity : TokenQuantities)
  {
    const auto callWith = [&](auto list)
    {
      using List = std::decay_t<decltype(tokens.*list)>;
      if constexpr (!std::is_same_v<List, std::vector<std::string>>)
      {
        call(TokenName(quantity), tokens.*list, quantity.isOptional);
      }
    };
    std::visit(callWith, quantity.list);
  }
}

}
