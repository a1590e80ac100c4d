#pragma once

// Internal to Core: the fields of a configuration that a row of an architecture may have.

#include "ActivationNames.h"
#include "Base/NamedValues.h"
#include "Weights/TransformerConfig.h"

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace atlas
{

inline constexpr std::array<Named<NormKind>, 3> NormKinds = { {
  { "None", NormKind::None },
  { "LayerNorm", NormKind::LayerNorm },
  { "RmsNorm", NormKind::RmsNorm },
} };
inline constexpr std::array<Named<NormPlace>, 4> NormPlaces = { {
  { "BeforeSublayer", NormPlace::BeforeSublayer },
  { "AfterSublayer", NormPlace::AfterSublayer },
  { "BeforeAndAfter", NormPlace::BeforeAndAfter },
  { "AfterOutput", NormPlace::AfterOutput },
} };
inline constexpr std::array<Named<SublayerOrder>, 3> SublayerOrders = { {
  { "Sequential", SublayerOrder::Sequential },
  { "Parallel", SublayerOrder::Parallel },
  { "ParallelOfOneNorm", SublayerOrder::ParallelOfOneNorm },
} };
inline constexpr std::array<Named<QueryKeyNorm>, 5> QueryKeyNorms = { {
  { "None", QueryKeyNorm::None },
  { "OfAllHeads", QueryKeyNorm::OfAllHeads },
  { "OfEachHead", QueryKeyNorm::OfEachHead },
  { "Together", QueryKeyNorm::Together },
  { "WithoutGain", QueryKeyNorm::WithoutGain },
} };
inline constexpr std::array<Named<ExpertScores>, 3> ExpertScoreKinds = { {
  { "Softmax", ExpertScores::Softmax },
  { "Sigmoid", ExpertScores::Sigmoid },
  { "SparseMixer", ExpertScores::SparseMixer },
} };
inline constexpr std::array<Named<PositionKind>, 9> PositionKinds = { {
  { "Learned", PositionKind::Learned },
  { "Alibi", PositionKind::Alibi },
  { "Rotary", PositionKind::Rotary },
  { "None", PositionKind::None },
  { "Sinusoidal", PositionKind::Sinusoidal },
  { "Relative", PositionKind::Relative },
  { "RelativeOfPatches", PositionKind::RelativeOfPatches },
  { "RotaryOfPatches", PositionKind::RotaryOfPatches },
  { "Disentangled", PositionKind::Disentangled },
} };
inline constexpr std::array<Named<EmbeddingProjection>, 3> EmbeddingProjections = { {
  { "OfTokens", EmbeddingProjection::OfTokens },
  { "OfSum", EmbeddingProjection::OfSum },
  { "OfNormed", EmbeddingProjection::OfNormed },
} };

/// The names of the values of a kind.
struct RowChoices
{
  static constexpr const auto& Of(NormKind /*kind*/) { return NormKinds; }
  static constexpr const auto& Of(NormPlace /*kind*/) { return NormPlaces; }
  static constexpr const auto& Of(SublayerOrder /*kind*/) { return SublayerOrders; }
  static constexpr const auto& Of(QueryKeyNorm /*kind*/) { return QueryKeyNorms; }
  static constexpr const auto& Of(ExpertScores /*kind*/) { return ExpertScoreKinds; }
  static constexpr const auto& Of(PositionKind /*kind*/) { return PositionKinds; }
  static constexpr const auto& Of(EmbeddingProjection /*kind*/) { return EmbeddingProjections; }
  static constexpr const auto& Of(Activation /*kind*/) { return ActivationNames; }
  static constexpr const auto& Of(std::optional<Activation> /*kind*/) { return ActivationNames; }
  static constexpr const auto& Of(AttentionMask /*kind*/) { return AttentionMasks; }
};

/// How a field is read.
struct RowCount
{
  std::int64_t TransformerConfig::* field;
  std::int64_t least = 1; ///< in a file
};
struct RowNumber
{
  double TransformerConfig::* field;
  bool zero = false; ///< whether 0 is allowed in a file
};
using RowFlag = bool TransformerConfig::*;
using RowField = std::variant<RowCount, RowNumber, RowFlag, NormKind TransformerConfig::*,
  NormPlace TransformerConfig::*, SublayerOrder TransformerConfig::*,
  QueryKeyNorm TransformerConfig::*, ExpertScores TransformerConfig::*,
  PositionKind TransformerConfig::*, EmbeddingProjection TransformerConfig::*,
  Activation TransformerConfig::*, std::optional<Activation> TransformerConfig::*,
  AttentionMask TransformerConfig::*, std::vector<bool> TransformerConfig::*,
  std::vector<double> TransformerConfig::*>;

/// The fields, in the order in which they are found.
const std::vector<Named<RowField>>& RowFields();

}
