#include "AttentionEvaluation.h"

#include "Base/Error.h"
#include "Numerics/AttentionKernels.h"

#include <cmath>

namespace atlas
{

using Eigen::Vector3d;

void CheckOptions(const AttentionOnlyModel& model, const EvaluationOptions& options)
{
  const std::size_t weights = options.headWeights.size();
  ThrowIf<OptionError>(weights != 0 && weights != model.HeadCount(),
    "HeadWeights: expected one weight for each of the ", model.HeadCount(),
    " heads of the model (or none, for all 1), found ", weights, ".");
  for (std::size_t h = 0; h < weights; ++h)
  {
    ThrowIf<OptionError>(!std::isfinite(options.headWeights[h]),
      "HeadWeights: expected finite numbers, found ", options.headWeights[h], " for head ", h, ".");
  }
}

ReferenceEvaluator::ReferenceEvaluator(
  const AttentionOnlyModel& model, const EvaluationOptions& options)
  : Model(model)
  , Options(options)
{
  CheckOptions(model, options);
  const double scale = std::sqrt(static_cast<double>(model.HeadDimension()));
  for (const AttentionHead& head : model.heads)
  {
    this->Heads.push_back({ head.query.transpose() * head.key / scale, head.output * head.value });
  }
}

Vector3d ReferenceEvaluator::TokenEmbedding(Eigen::Index t) const
{
  return LayerNorm(this->Model.wordEmbedding.row(t).transpose());
}

Vector3d ReferenceEvaluator::ResidualAt(const Vector3d& e2) const
{
  switch (this->Options.residual)
  {
    case Residual::EmbeddingPosition:
      return e2 + this->Model.positionEmbedding.row(1).transpose();
    case Residual::Embedding:
      return e2;
    case Residual::None:
      return Vector3d::Zero();
    case Residual::RawEmbedding:
      break;
  }
  throw OptionError("Residual: RawEmbedding is defined at token pairs only.");
}

Evaluation ReferenceEvaluator::AtAngles(double theta1, double theta2) const
{
  const Vector3d e1 = EmbeddingAtAngle(theta1, this->Options.angles);
  const Vector3d e2 = EmbeddingAtAngle(theta2, this->Options.angles);
  Evaluation result;
  this->Evaluate(e1, e2, this->ResidualAt(e2), result);
  return result;
}

Evaluation ReferenceEvaluator::AtTokens(Eigen::Index t1, Eigen::Index t2) const
{
  Evaluation result;
  this->AtTokens(t1, t2, result);
  return result;
}

void ReferenceEvaluator::AtTokens(Eigen::Index t1, Eigen::Index t2, Evaluation& result) const
{
  const Vector3d e1 = this->TokenEmbedding(t1);
  const Vector3d e2 = this->TokenEmbedding(t2);
  const Vector3d residual = this->Options.residual == Residual::RawEmbedding
                              ? Vector3d(this->Model.wordEmbedding.row(t2).transpose())
                              : this->ResidualAt(e2);
  this->Evaluate(e1, e2, residual, result);
}

void ReferenceEvaluator::Evaluate(
  const Vector3d& e1, const Vector3d& e2, const Vector3d& residual, Evaluation& result) const
{
  const EvaluationOptions& o = this->Options;
  const Vector3d p1 = this->Model.positionEmbedding.row(0).transpose();
  const Vector3d p2 = this->Model.positionEmbedding.row(1).transpose();
  const Vector3d x1 = o.wordInPattern * e1 + o.positionInPattern * p1;
  const Vector3d x2 = o.wordInPattern * e2 + o.positionInPattern * p2;

  result.heads.resize(this->Model.HeadCount());
  result.output = residual;
  for (std::size_t h = 0; h < this->Model.HeadCount(); ++h)
  {
    HeadEvaluation& at = result.heads[h];
    at.score = x2.dot(this->Heads[h].queryKey * (x1 - x2));
    at.attention =
      o.pattern == Pattern::Hardmax ? (at.score > 0 ? 1 : 0) : 1 / (1 + std::exp(-at.score));
    at.wordMix = o.wordInValues * (at.attention * e1 + (1 - at.attention) * e2);
    at.positionMix = o.positionInValues * (at.attention * p1 + (1 - at.attention) * p2);
    at.mix = at.wordMix + at.positionMix;
    at.output = this->Heads[h].outputValue * at.mix;
    result.output += (o.headWeights.empty() ? 1 : o.headWeights[h]) * at.output;
  }
  result.logits.noalias() = this->Model.unembedding * result.output;
  Eigen::Index predicted = 0;
  result.logits.maxCoeff(&predicted);
  result.predicted = static_cast<int>(predicted);
  result.probabilities = result.logits;
  Softmax(result.probabilities, predicted);
  result.probability = result.probabilities[predicted];
}

}
