#pragma once

#include "CorpusStatistics.h"
#include "Weights/ProcessedWeights.h"

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// A principal component of what a head writes. For a value v it contributes
/// strength ((v - mean v) . reading) writing.
struct OutputPart
{
  double strength = 0;     ///< at least 0
  double variance = 0;     ///< strength^2, what the part adds to the variance of v W_O
  Eigen::VectorXd reading; ///< [d_value]; (v - mean v) . reading has the mean 0 and the variance 1
  Eigen::VectorXd writing; ///< [d_model], of length 1; those of two parts are orthogonal
};

/// The principal components of what a head writes, by falling variance, and the total variance.
///
/// A head that attends to one token alone writes v W_O, with the value v = x W_V + b_V of what it
/// reads of this token. With the covariance C of values over the corpus, the variance of v W_O,
/// summed over the dimensions of the residual stream, is tr(W_O^T C W_O). With the singular value
/// decomposition C^(1/2) W_O = U D V^T, part r has the strength D_r, the reading direction
/// C^(-1/2) u_r and the writing direction v_r: (v - mean v) W_O is the sum of all parts. The
/// coordinates of two parts are not correlated, and D_r is the standard deviation of what is
/// written along v_r. As C = W_V^T Cov(x) W_V, D and V are also those of Cov(x)^(1/2) W_V W_O: the
/// singular values of W_V W_O, weighted by what the head reads. Attention writes means of values,
/// whose variance is smaller.
///
/// W_O is processed as TransformerLens does: what later layer normalizations subtract, the mean
/// over the dimensions of the stream, is left out. Directions in which there is no variance are
/// left out, too. The entry of the largest magnitude of each writing direction is positive.
struct OutputParts
{
  double variance = 0;       ///< of v W_O: the sum of all parts
  Eigen::VectorXd valueMean; ///< [d_value]
  std::vector<OutputPart> parts;
};

/// `weights`: of the model of the statistics, processed as TransformerLens does. Throws OptionError
/// if the statistics have no such head, no tokens or no values, or are not of this model.
OutputParts FindOutputParts(const CorpusStatistics& statistics, const ProcessedWeights& weights,
  std::int64_t layer, std::int64_t head, std::int64_t most);

/// The coordinates of the tokens that were drawn [samples, parts]: (v - mean v) . reading. `head`
/// is its index in the statistics.
Eigen::MatrixXd OutputCoordinates(
  const CorpusStatistics& statistics, std::size_t head, const OutputParts& parts);

/// The coordinates of the embeddings of all tokens [vocabulary, parts]: those of the value that the
/// head would read if the residual stream held the embedding of the token alone, normalized as the
/// layer does.
Eigen::MatrixXd EmbeddingCoordinates(const Transformer& model, std::int64_t layer,
  std::int64_t head, const OutputParts& parts, int threads);

/// What each part adds to all logits [V, parts] at a coordinate of 1, before the final
/// normalization divides by the size of the stream: strength writing W_U, with the processed W_U
/// that has the mean 0 over tokens. Without rows if the model has no unembedding.
Eigen::MatrixXd LogitEffects(
  const ProcessedWeights& weights, const OutputParts& parts, int threads);

}
