#pragma once

#include "AttentionOnlyModel.h"
#include "TorusAngles.h"

#include <vector>

namespace atlas
{

/// How a score becomes attention.
enum class Pattern
{
  Softmax, ///< a_h = 1 / (1 + exp(-score_h))
  Hardmax  ///< a_h = 1 where score_h > 0, else 0
};

/// What the heads' outputs are added to.
enum class Residual
{
  EmbeddingPosition, ///< x_2 = e_2 + p_2, as in the source document
  Embedding,         ///< e_2
  None,              ///< 0
  RawEmbedding       ///< word_embedding[t_2] before layer normalization; at token pairs only
};

/// Everything that an evaluation depends on beside the model.
struct EvaluationOptions
{
  AngleMap angles = AngleMap::Isometric;
  Pattern pattern = Pattern::Softmax;
  Residual residual = Residual::EmbeddingPosition;
  std::vector<double> headWeights; ///< w_h, one per head; empty: all 1
  bool wordInPattern = true;       ///< keep e_s in the x of score_h
  bool positionInPattern = true;   ///< keep p_s in the x of score_h
  bool wordInValues = true;        ///< keep e_s in the x of mix_h
  bool positionInValues = true;    ///< keep p_s in the x of mix_h
};

/// Throws OptionError if the options do not fit the model: a number of head weights that is neither
/// 0 nor H, or a weight that is not finite.
void CheckOptions(const AttentionOnlyModel& model, const EvaluationOptions& options);

/// What one head does at a point.
struct HeadEvaluation
{
  double score = 0;            ///< score_h = x_2^T W_QK^h (x_1 - x_2)
  double attention = 0;        ///< a_h: attention of token 2 to token 1
  Eigen::Vector3d wordMix;     ///< a_h e_1 + (1 - a_h) e_2
  Eigen::Vector3d positionMix; ///< a_h p_1 + (1 - a_h) p_2
  Eigen::Vector3d mix;         ///< mix_h = their sum
  Eigen::Vector3d output;      ///< out_h = W_O^h W_V^h mix_h, without its weight w_h
};

/// All quantities at a point.
struct Evaluation
{
  std::vector<HeadEvaluation> heads;
  Eigen::Vector3d output; ///< r = residual + sum_h w_h out_h
  Eigen::VectorXd logits; ///< W_U r [N]
  int predicted = 0;      ///< argmax of the logits, the lowest index on a tie
  double probability = 0; ///< softmax(logits) of the predicted class
};

/// The reference evaluation, in double, written to be read beside the formulas of the source:
///
///     x_s     = e_s + p_s                                        s = 1, 2
///     score_h = x_2^T W_QK^h (x_1 - x_2),   W_QK^h = W_Q^T W_K / sqrt(d_h)
///     a_h     = 1 / (1 + exp(-score_h))
///     mix_h   = a_h x_1 + (1 - a_h) x_2
///     out_h   = W_O^h W_V^h mix_h
///     r       = residual + sum_h w_h out_h
///     logits  = W_U r,   p = softmax(logits)
///
/// Precondition: CheckOptions passes.
class ReferenceEvaluator
{
public:
  ReferenceEvaluator(const AttentionOnlyModel& model, const EvaluationOptions& options);

  /// At angles theta_1 and theta_2, in radians. RawEmbedding is undefined here: throws OptionError.
  Evaluation AtAngles(double theta1, double theta2) const;

  /// At the pair of tokens (t1, t2).
  Evaluation AtTokens(Eigen::Index t1, Eigen::Index t2) const;

  /// The same into a result whose memory is used again: only the first call allocates.
  void AtTokens(Eigen::Index t1, Eigen::Index t2, Evaluation& result) const;

  /// e(t) = LN(word_embedding[t])
  Eigen::Vector3d TokenEmbedding(Eigen::Index t) const;

private:
  /// A head's two circuits on the residual stream.
  struct Circuits
  {
    Eigen::Matrix3d queryKey;    ///< W_QK = W_Q^T W_K / sqrt(d_h)
    Eigen::Matrix3d outputValue; ///< W_OV = W_O W_V
  };

  const AttentionOnlyModel& Model;
  EvaluationOptions Options;
  std::vector<Circuits> Heads;

  void Evaluate(const Eigen::Vector3d& e1, const Eigen::Vector3d& e2,
    const Eigen::Vector3d& residual, Evaluation& result) const;
  Eigen::Vector3d ResidualAt(const Eigen::Vector3d& e2) const;
};

}
