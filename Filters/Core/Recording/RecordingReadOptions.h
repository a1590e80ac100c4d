#pragma once

#include "AttentionKinds.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace atlas
{

/// Information that a recording made by other software may lack. It takes precedence over the
/// metadata of the file.
struct RecordingReadOptions
{
  /// File of token strings, see ReadTokenTexts. If empty, NAME.tokens.json or NAME.tokens.txt next
  /// to the file NAME.* is read, if there is one.
  std::filesystem::path tokensFile;
  std::string architecture; ///< default: metadata `architecture` or `model`
  /// Default: metadata `mask`; else what stored attention shows; else bidirectional if there are
  /// arrays that only BERT has; else causal.
  std::optional<AttentionMask> mask;
  std::optional<double> scoreScale;           ///< default: metadata `score_scale`, else 1 /
                                              ///< sqrt(d_head)
  std::optional<WeightProcessing> processing; ///< default: metadata `processing`, else unknown
  /// Number of heads, needed only for flat arrays in which heads are side by side. 0: metadata
  /// `n_heads`, if present.
  std::int64_t headCount = 0;
  int threads = 0; ///< as ThreadCount takes them, to compare stored attention with queries and keys
};

}
