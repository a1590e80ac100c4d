#pragma once

#include "NamedValues.h"

#include <array>
#include <string_view>

namespace atlas
{

/// Which keys a query may attend to, among those of its own sequence.
enum class AttentionMask
{
  Causal,       ///< those at its position and before
  Bidirectional ///< all of them: no mask
};

/// Their names in files and data objects.
inline constexpr std::array<Named<AttentionMask>, 2> AttentionMasks = { {
  { "causal", AttentionMask::Causal },
  { "bidirectional", AttentionMask::Bidirectional },
} };

std::string_view Name(AttentionMask mask);

/// Whether layer normalizations were folded into the weights and the weights were centered, as
/// TransformerLens does by default.
enum class WeightProcessing
{
  Unknown,
  Unprocessed,
  Processed
};

/// Their names in files and data objects.
inline constexpr std::array<Named<WeightProcessing>, 3> WeightProcessings = { {
  { "unknown", WeightProcessing::Unknown },
  { "unprocessed", WeightProcessing::Unprocessed },
  { "processed", WeightProcessing::Processed },
} };

std::string_view Name(WeightProcessing processing);

}
