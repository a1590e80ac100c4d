#pragma once

#include "Base/Progress.h"
#include "LargestProducts.h"
#include "Recording/Recording.h"
#include "SparseDictionary.h"
#include "Weights/ProcessedWeights.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace atlas
{

/// Throws unless a dictionary is one of this model: its layer, its inputs, and what it reads.
/// ModelError for an architecture in which these are something else: for z where gates or
/// normalizations follow, for what attention adds where it is normalized or scaled, and for the
/// stream between attention and MLP where they are in parallel. OptionError for another size. The
/// message begins with "Dictionary".
void CheckDictionary(const Transformer& model, const SparseDictionary& dictionary);

/// The vectors that a dictionary reads at the tokens of a sequence [length, d_in], with the steps
/// of TransformerLens that it asks for. z is the recorded attention times the values. Throws
/// OptionError unless the recording holds what they follow from, which the message names, and has
/// the sequence; and as CheckDictionary.
DoubleMatrix DictionaryInputs(const Recording& recording, const Transformer& model,
  const SparseDictionary& dictionary, std::int64_t sequence, int threads = 0,
  const Progress& progress = {});

/// What a part of the model does with a feature; NaN for what it cannot do.
struct FeaturePart
{
  static constexpr double None = std::numeric_limits<double>::quiet_NaN();

  std::string name;                                     ///< "head 0.1", "rest" or "bias"
  std::int32_t layer = -1;                              ///< -1 but for heads
  std::int32_t head = -1;                               ///< likewise
  double contribution = None;                           ///< to the feature
  double share = None;                                  ///< of the decoder's row
  std::array<double, 3> reading = { None, None, None }; ///< by queries, keys and values
};

/// Which heads write a feature and which read it: all heads of the model, by layer and head, then
/// "rest", what else the dictionary reads, unless that is z, and "bias".
///
/// Contributions are means over the `rows` of the recording at which the feature is active, whose
/// `vectors` [rows, d_in] DictionaryInputs gave; NaN without rows. With e and b as
/// SparseDictionary::EncoderOf and BiasOf has them and the scale s of the normalization of the
/// whole vector, a head's is s c e for the part c of the vector that it writes, less its mean where
/// means are subtracted: its output or, of z, its own components (direct feature attribution,
/// Kissane et al. 2024, "Interpreting attention layer outputs with sparse autoencoders"). That of
/// "bias" is b, less b_dec e if that is subtracted. So all of them add up to the mean value of the
/// feature. Where normalizations or scales follow what heads write, they have none in the residual
/// stream, and "rest" is all of it.
///
/// Shares are |w_h|^2 / |w|^2 of the components w_h of a head in the decoder's row w, for
/// dictionaries of z.
///
/// Heads of later layers, or of the same one where the dictionary reads what they do, read the
/// direction d that the feature has in the residual stream, w or sum over h of w_h W_O^h:
///
///     |d W| / (|d| |W|),   W = W_Q W_K^T, its transpose, W_V W_O,
///
/// as HeadComposition has it for the output of a head (Elhage et al. 2021), by chance about
/// 1 / sqrt(d_model). Weights are processed as TransformerLens does where that is possible, and
/// then d is less its mean in models with LayerNorm, but for shortformer positions.
///
/// Throws OptionError unless the recording holds the outputs of the heads that write; ModelError
/// for weights that are not finite.
std::vector<FeaturePart> SplitFeature(const Recording& recording, const Transformer& model,
  const SparseDictionary& dictionary, std::int64_t feature, const std::vector<std::int64_t>& rows,
  const DoubleMatrix& vectors, int threads = 0, const Progress& progress = {});

/// The tokens whose logits a feature raises and those whose logits it lowers most.
struct FeatureLogits
{
  std::vector<TokenLogit> highest; ///< by falling value
  std::vector<TokenLogit> lowest;  ///< by rising value
};

/// The direct effect of a unit of a feature on logits, d U, of its direction d as above and the
/// unembedding U with the gain of the final normalization, centered over the vocabulary if weights
/// can be processed; the scale of that normalization is left out (Elhage et al. 2021). Of each list
/// at most `top`, at least 1. Empty for a model without an unembedding that reads the stream.
FeatureLogits FindFeatureLogits(const Transformer& model, const SparseDictionary& dictionary,
  std::int64_t feature, const LargestProductOptions& options);

}
