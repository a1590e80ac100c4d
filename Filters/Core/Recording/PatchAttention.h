#pragma once

#include "Progress.h"
#include "RecordedAttention.h"
#include "Recording.h"
#include "StrongestKeys.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The patches of one image of a recording. Tokens are given by their positions in the sequence.
struct PatchGrid
{
  std::int64_t rows = 0;                 ///< of patches, from the top
  std::int64_t columns = 0;              ///< of patches, from the left
  std::vector<std::int32_t> row;         ///< of each token; -1 for a class token
  std::vector<std::int32_t> column;      ///< of each token; -1 for a class token
  std::vector<std::int64_t> classTokens; ///< those that stand for no patch, such as [CLS]

  bool IsPatch(std::int64_t token) const { return this->row[token] >= 0; }
};

/// The patches of image `sequence`; for AllSequences those of the first image. Throws OptionError
/// if the recording is not of images or has no such sequence, or for AllSequences images of
/// different sizes, and ModelError if two tokens are the same patch or the grid has more than
/// MaximumPatches.
PatchGrid FindPatches(const Recording& recording, std::int64_t sequence);
inline constexpr std::int64_t MaximumPatches = std::int64_t{ 1 } << 24U;

/// The tokens that (row, column) chooses: a patch; for (-1, -1) the class token or, in an image
/// without one, all patches. Throws OptionError for a patch outside the image.
std::vector<std::int64_t> ChoosePatch(const PatchGrid& grid, std::int64_t row, std::int64_t column);

/// Whose attention is shown.
enum class PatchDirection
{
  From, ///< that of the chosen tokens to each token: the mean of their rows
  To    ///< that of each token to the chosen ones: the sum of their columns
};

/// Which queries and keys have arrows.
enum class PatchArrows
{
  Strongest, ///< each query and its strongest key
  Above      ///< all of at least the threshold
};

struct PatchOptions
{
  std::int64_t sequence = 0; ///< the image; AllSequences: their mean
  std::int64_t layer = 0;
  std::int64_t head = 0; ///< AllHeads: the mean of the layer
  AttentionQuantity quantity = AttentionQuantity::Weights;
  std::vector<std::int64_t> tokens; ///< the chosen ones, at least one, in ascending order
  PatchDirection direction = PatchDirection::From;
  PatchArrows arrows = PatchArrows::Strongest;
  double threshold = 0.1; ///< arrows and marks have at least this weight, and more than 0
  int threads = 0;        ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

/// The attention of one head on one image.
struct PatchAttention
{
  std::vector<float> weights;        ///< of each token
  std::vector<AttentionLink> arrows; ///< between different tokens, by query, then key. None has a
                                     ///< mark
  std::vector<AttentionLink> marks; ///< of the queries that attend most to themselves or to a class
                                    ///< token, which is the key
};

/// The attention of image patches, as in the image view of AttentionViz (Yeh et al. 2023). With A
/// the attention of the head (EvaluateAttention) and C the chosen tokens, the weight of token t is
///
///     From: sum over c in C of A[c, t] / |C|        To: sum over c in C of A[t, c]
///
/// so that weights of From add up to what those of one query do, 1 without sinks, and those of To
/// are the part of each query's attention that goes to the chosen tokens, at most 1. The strongest
/// key of a query is the first of those with the largest weight. If it is the query itself or a
/// class token, it is marked, and has no arrow. Of many tokens, the attention of some queries is in
/// memory at a time.
///
/// Throws as EvaluateAttention and FindPatches, and OptionError for a threshold that is negative or
/// not finite, or for no or wrong tokens.
PatchAttention EvaluatePatches(const Recording& recording, const PatchOptions& options);

}
