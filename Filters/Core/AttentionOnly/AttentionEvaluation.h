#pragma once

#include "AttentionOnlyModel.h"
#include "TorusAngles.h"

#include <vector>

namespace atlas
{

/// How a score becomes an attention weight.
enum class Pattern
{
  Softmax, ///< a_h = 1 / (1 + exp(-score_h))
  Hardmax  ///< a_h = 1 where score_h > 0, else 0
};

/// What the heads' outputs are added to.
enum class Residual
{
  EmbeddingPosition, ///< x_2 = e_2 + p_2, as in the source post
  Embedding,         ///< e_2
  None,              ///< 0
  RawEmbedding       ///< word_embedding[t_2] before layer normalization; only defined at token
                     ///< pairs
};

/// The settings of an evaluation; with the model they determine its result.
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

/// Throws OptionError if the options do not fit the model: the number of head weights is neither 0
/// nor H, or a weight is not finite.
void CheckOptions(const AttentionOnlyModel& model, const EvaluationOptions& options);

/// The intermediate results of one head at a point.
struct HeadEvaluation
{
  double score = 0;            ///< score_h = x_2^T W_QK^h (x_1 - x_2)
  double attention = 0;        ///< a_h: attention from token 2 to token 1, 0 to 1
  Eigen::Vector3d wordMix;     ///< a_h e_1 + (1 - a_h) e_2
  Eigen::Vector3d positionMix; ///< a_h p_1 + (1 - a_h) p_2
  Eigen::Vector3d mix;         ///< mix_h = word mix + position mix
  Eigen::Vector3d output;      ///< out_h = W_O^h W_V^h mix_h, not yet multiplied by w_h
};

/// All intermediate results and the prediction at a point.
struct Evaluation
{
  std::vector<HeadEvaluation> heads;
  Eigen::Vector3d output;        ///< r = residual + sum_h w_h out_h
  Eigen::VectorXd logits;        ///< W_U r [N]
  Eigen::VectorXd probabilities; ///< [N], the softmax of the logits
  int predicted = 0;             ///< argmax of the logits, the lowest index on a tie
  double probability = 0;        ///< softmax(logits) of the predicted class
};

/// The reference evaluation in double precision. It follows the formulas of the post "Visualizing
/// small Attention-only Transformers" line by line:
///
///     x_s     = e_s + p_s                                        s = 1, 2
///     score_h = x_2^T W_QK^h (x_1 - x_2),   W_QK^h = W_Q^T W_K / sqrt(d_h)
///     a_h     = 1 / (1 + exp(-score_h))
///     mix_h   = a_h x_1 + (1 - a_h) x_2
///     out_h   = W_O^h W_V^h mix_h
///     r       = residual + sum_h w_h out_h
///     logits  = W_U r,   p = softmax(logits)
///
/// The attention is scaled dot-product attention (Vaswani et al. 2017); its softmax over two tokens
/// is a sigmoid. Precondition: the options pass CheckOptions.
class ReferenceEvaluator
{
public:
  ReferenceEvaluator(const AttentionOnlyModel& model, const EvaluationOptions& options);

  /// At the angles theta_1 and theta_2, in radians. Throws OptionError for Residual::RawEmbedding,
  /// which is undefined between tokens.
  Evaluation AtAngles(double theta1, double theta2) const;

  /// At the token pair (t1, t2).
  Evaluation AtTokens(Eigen::Index t1, Eigen::Index t2) const;

  /// Same, but reuses the memory of `result`: only the first call allocates.
  void AtTokens(Eigen::Index t1, Eigen::Index t2, Evaluation& result) const;

  /// e(t) = LN(word_embedding[t])
  Eigen::Vector3d TokenEmbedding(Eigen::Index t) const;

private:
  /// The two circuits of a head (Elhage et al. 2021, "A Mathematical Framework for Transformer
  /// Circuits").
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
