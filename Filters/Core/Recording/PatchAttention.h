#pragma once

#include "Base/Progress.h"
#include "RecordedAttention.h"
#include "Recording.h"
#include "StrongestKeys.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace atlas
{

/// In place of a layer: the mean over all recorded layers. In place of a picture: all of a
/// sequence.
inline constexpr std::int64_t AllLayers = -1;
inline constexpr std::int64_t AllPictures = -1;

/// One of the pictures of a text.
struct PatchPicture
{
  std::int64_t entry = 0; ///< of RecordedPictures::contents
  std::int64_t rows = 0;  ///< of its tokens
  std::int64_t columns = 0;
  std::int64_t left = -1; ///< column of the grid where it begins; -1: it is not shown

  bool IsShown() const { return this->left >= 0; }
};

/// The patches of one image of a recording, or of the pictures of one of its texts, which are side
/// by side, with their tops in one line and a gap of one column between them. Tokens are given by
/// their positions in the sequence.
struct PatchGrid
{
  std::int64_t rows = 0;                 ///< of patches, from the top
  std::int64_t columns = 0;              ///< of patches, from the left
  std::vector<std::int32_t> row;         ///< of each token in its picture; -1 if it is of none
  std::vector<std::int32_t> column;      ///< likewise
  std::vector<std::int64_t> classTokens; ///< those that stand for no patch, such as [CLS] or words
  std::vector<PatchPicture> pictures;    ///< of a text; empty for an image
  std::vector<std::int32_t> picture; ///< of each token: its number in `pictures`, -1 for a word;
                                     ///< empty for an image

  bool IsAmongWords() const { return !this->pictures.empty(); }

  /// Whether a token is a patch, and shown.
  bool IsPatch(std::int64_t token) const
  {
    return this->row[token] >= 0 &&
           (this->picture.empty() || this->pictures[this->picture[token]].IsShown());
  }

  /// Whether a token is a word, or stands for no patch.
  bool IsWord(std::int64_t token) const { return this->row[token] < 0; }

  /// The column of the grid where a patch is.
  std::int64_t Column(std::int64_t token) const
  {
    return this->column[token] +
           (this->picture.empty() ? 0 : this->pictures[this->picture[token]].left);
  }
};

/// The patches of image `sequence`; for AllSequences those of the first image. Of pictures among
/// words those of text `sequence`, of which number `picture` is shown, or all.
///
/// Throws OptionError if the recording is not of images and has no pictures, or no such sequence or
/// picture, for AllSequences images of different sizes or texts; and ModelError if two tokens are
/// the same patch or the grid has more than MaximumPatches.
PatchGrid FindPatches(
  const Recording& recording, std::int64_t sequence, std::int64_t picture = AllPictures);
inline constexpr std::int64_t MaximumPatches = std::int64_t{ 1 } << 24U;

/// The tokens that (row, column) chooses: a patch; for (-1, -1) the class token or, in an image
/// without one, all patches. Of pictures among words a patch of number `picture`; for (-1, -1) all
/// patches of it. Throws OptionError for a patch outside the image, or no such picture.
std::vector<std::int64_t> ChoosePatch(
  const PatchGrid& grid, std::int64_t row, std::int64_t column, std::int64_t picture = 0);

/// The token at a position, -1: the last one. Throws OptionError for another one.
std::int64_t ChooseToken(const PatchGrid& grid, std::int64_t position);

/// The part of a picture of a text that is an image of the encoder.
struct ImagePlace
{
  std::int64_t entry = 0; ///< of RecordedPictures::contents
  std::int64_t top = 0;   ///< in pixels of the picture, as all that follow
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// Where image `sequence` of `encoder` is in the pictures of its text: all of one, a tile, or a
/// group of frames. Follows from the sizes of the pictures and the patches of the images, of which
/// there are as many as pictures, or which all have the same size. std::nullopt if they do not fit.
std::optional<ImagePlace> FindImage(
  const RecordedPictures& pictures, const Recording& encoder, std::int64_t sequence);

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
  std::int64_t sequence = 0;          ///< the image; AllSequences: their mean
  std::int64_t layer = 0;             ///< AllLayers: the mean of the recorded ones, not for Rollout
  std::int64_t head = 0;              ///< AllHeads: the mean of the layer
  std::int64_t picture = AllPictures; ///< among words: number of that which is shown
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
                                     ///< mark. Of pictures among words, between shown patches
  std::vector<AttentionLink> marks; ///< of the queries that attend most to themselves or to a class
                                    ///< token or word, which is the key
  double onWords = 0;               ///< sum of the weights of words, or of class tokens
};

/// The attention of image patches, as in the image view of AttentionViz (Yeh et al. 2023). With A
/// the attention of the head (EvaluateAttention) and C the chosen tokens, the weight of token t is
///
///     From: sum over c in C of A[c, t] / |C|        To: sum over c in C of A[t, c]
///
/// so that weights of From add up to what those of one query do, and those of To are the part of
/// each query's attention that goes to the chosen tokens. The strongest key of a query is the first
/// of those with the largest weight. If it is the query itself or a class token, it is marked, and
/// has no arrow. Of many tokens, the attention of some queries is in memory at a time.
///
/// Of pictures among words the chosen tokens may be words, too; queries with arrows and marks are
/// the shown patches. A query whose strongest key is a patch that is not shown has neither.
///
/// Throws as EvaluateAttention and FindPatches, and OptionError for a threshold that is negative or
/// not finite, for no or wrong tokens, or for Rollout with AllLayers.
PatchAttention EvaluatePatches(const Recording& recording, const PatchOptions& options);

}
