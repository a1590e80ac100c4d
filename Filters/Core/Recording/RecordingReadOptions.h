#pragma once

#include "AttentionKinds.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace atlas
{

/// What a recording made elsewhere does not tell. What is given here comes before what the file's
/// metadata say.
struct RecordingReadOptions
{
  /// Token strings; empty: NAME.tokens.json or NAME.tokens.txt beside the file NAME.*, if there is
  /// one. See ReadTokenTexts.
  std::filesystem::path tokensFile;
  std::string architecture; ///< metadata `architecture` or `model`
  /// Metadata `mask`; else as stored attention shows, bidirectional where there are BERT's arrays,
  /// and else causal.
  std::optional<AttentionMask> mask;
  std::optional<double> scoreScale;           ///< metadata `score_scale`, else 1 / sqrt(d_head)
  std::optional<WeightProcessing> processing; ///< metadata `processing`, else unknown
  /// Needed only where heads lie side by side in flat arrays; metadata `n_heads`. 0: unknown.
  std::int64_t headCount = 0;
};

}
