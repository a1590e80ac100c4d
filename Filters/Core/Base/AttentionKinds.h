#pragma once

#include <string_view>

namespace atlas
{

/// Which keys a query may attend to, among those of its own sequence.
enum class AttentionMask
{
  Causal,       ///< those at its position and before
  Bidirectional ///< all of them: no mask
};

/// "causal", "bidirectional"
std::string_view Name(AttentionMask mask);

/// Whether layer normalizations were folded into the weights and these were centred, as
/// TransformerLens does (design/transformers.md F.4).
enum class WeightProcessing
{
  Unknown,
  Unprocessed,
  Processed
};

/// "unknown", "unprocessed", "processed"
std::string_view Name(WeightProcessing processing);

}
