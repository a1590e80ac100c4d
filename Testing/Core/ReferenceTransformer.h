#pragma once

#include "Run/Interventions.h"
#include "Weights/Transformer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>

namespace atlas::test
{

/// A transformer written anew in double precision, as plainly as possible, for tests that change
/// values during a run: causal attention, learned or Shortformer positions, GELU, LayerNorm or
/// none.
class ReferenceTransformer
{
public:
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// May change what is in a layer: "residual" [T, d_model] before it, "mixed" [T, H d_head] before
  /// W_O, or "hidden" [T, mlp] before W_down.
  using Hook = std::function<void(const std::string& place, std::int64_t layer, Matrix& values)>;

  explicit ReferenceTransformer(const Transformer& model)
    : Config(model.GetConfig())
    , Weights(model.GetWeights())
  {
    if (this->Config.mask != AttentionMask::Causal || this->Config.gated ||
        this->Config.keyHeads != this->Config.heads)
    {
      throw std::runtime_error("not in this reference");
    }
  }

  /// The logits [T, vocabulary] of one sequence.
  Matrix Logits(const std::vector<std::int64_t>& tokens, const Hook& hook = {}) const
  {
    const auto see = [&](const char* place, std::int64_t l, Matrix& values)
    {
      if (hook)
      {
        hook(place, l, values);
      }
    };
    const std::int64_t length = tokens.size();
    const Matrix embedding = Table(this->Weights.tokenEmbedding);
    const Matrix positions = this->Weights.positionEmbedding.data != nullptr
                               ? Table(this->Weights.positionEmbedding)
                               : Matrix::Zero(length, embedding.cols());
    const bool atStart = this->Config.position == PositionKind::Learned;
    Matrix x(length, embedding.cols());
    for (Eigen::Index t = 0; t < length; ++t)
    {
      x.row(t) = embedding.row(tokens[t]);
    }
    if (atStart)
    {
      x += positions.topRows(length);
    }
    for (std::int64_t l = 0; l < this->Config.layers; ++l)
    {
      const LayerTensors& layer = this->Weights.layers[l];
      see("residual", l, x);
      const Matrix normed = this->Normed(layer.attentionNorm, x);
      Matrix mixed = this->Mixed(
        layer, l, normed, atStart ? normed : Matrix(normed + positions.topRows(length)));
      see("mixed", l, mixed);
      x += Applied(layer.output, mixed);
      if (this->Config.mlpDimension > 0)
      {
        Matrix hidden = Applied(layer.up, this->Normed(layer.mlpNorm, x))
                          .unaryExpr([this](double value) { return this->Activated(value); });
        see("hidden", l, hidden);
        x += Applied(layer.down, hidden);
      }
    }
    return Applied(this->Weights.unembedding,
      this->Config.finalNorm ? this->Normed(this->Weights.finalNorm, x) : x);
  }

private:
  const TransformerConfig& Config;
  const TransformerWeights& Weights;

  static Matrix Table(const TensorView& view)
  {
    const std::vector<double> values = view.ToDouble();
    return Eigen::Map<const Matrix>(values.data(), view.shape[0], view.shape[1]);
  }

  /// W [inputs, outputs]; the outputs of heads one after another.
  static Matrix WeightOf(const LinearTensors& linear)
  {
    const std::vector<double> values = linear.weight.ToDouble();
    Matrix weight(linear.inputs, linear.outputs);
    for (std::int64_t i = 0; i < linear.inputs; ++i)
    {
      for (std::int64_t o = 0; o < linear.outputs; ++o)
      {
        const std::int64_t step = linear.headStep;
        const std::int64_t place = linear.layout == WeightLayout::InputOutput
                                     ? i * linear.outputs + o
                                   : linear.layout == WeightLayout::OutputInput
                                     ? o * linear.inputs + i
                                     : (o / step * linear.inputs + i) * step + o % step;
        weight(i, o) = values[place];
      }
    }
    return weight;
  }

  static Matrix Applied(const LinearTensors& linear, const Matrix& from)
  {
    Matrix to = from * WeightOf(linear);
    if (linear.bias.data != nullptr)
    {
      const std::vector<double> bias = linear.bias.ToDouble();
      to.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(bias.data(), to.cols());
    }
    return to;
  }

  Matrix Normed(const NormTensors& norm, const Matrix& from) const
  {
    if (this->Config.norm == NormKind::None)
    {
      return from;
    }
    Matrix to = from.colwise() - from.rowwise().mean();
    const Eigen::VectorXd variance = to.rowwise().squaredNorm() / static_cast<double>(to.cols());
    to.array().colwise() /= (variance.array() + this->Config.epsilon).sqrt();
    if (norm.gain.data != nullptr)
    {
      const std::vector<double> gain = norm.gain.ToDouble();
      to.array().rowwise() *= Eigen::Map<const Eigen::RowVectorXd>(gain.data(), to.cols()).array();
    }
    if (norm.shift.data != nullptr)
    {
      const std::vector<double> shift = norm.shift.ToDouble();
      to.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(shift.data(), to.cols());
    }
    return to;
  }

  double Activated(double x) const
  {
    const double cubic = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
    return this->Config.activation == Activation::GeluTanh
             ? x / 2 * (1 + std::tanh(cubic))
             : x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  }

  /// Each head's columns of a matrix for all heads.
  Matrix HeadOf(const LinearTensors& linear, const Matrix& all, std::int64_t head) const
  {
    return all.middleCols(linear.headFirst + head * linear.headStep, this->Config.headDimension);
  }

  Matrix Mixed(const LayerTensors& layer, std::int64_t l, const Matrix& forValues,
    const Matrix& forScores) const
  {
    const Matrix queries = Applied(layer.query, forScores);
    const Matrix keys = Applied(layer.key, forScores);
    const Matrix values = Applied(layer.value, forValues);
    const Eigen::Index length = forValues.rows();
    Matrix mixed(length, this->Config.heads * this->Config.headDimension);
    for (std::int64_t h = 0; h < this->Config.heads; ++h)
    {
      Matrix attention = HeadOf(layer.query, queries, h) * HeadOf(layer.key, keys, h).transpose() *
                         this->Config.ScoreScale(l);
      for (Eigen::Index t = 0; t < length; ++t)
      {
        const double largest = attention.row(t).head(t + 1).maxCoeff();
        attention.row(t).tail(length - t - 1).setZero();
        attention.row(t).head(t + 1) = (attention.row(t).head(t + 1).array() - largest).exp();
        attention.row(t) /= attention.row(t).sum();
      }
      mixed.middleCols(h * this->Config.headDimension, this->Config.headDimension) =
        attention * HeadOf(layer.value, values, h);
    }
    return mixed;
  }
};

using ReferenceMatrix = ReferenceTransformer::Matrix;

/// Replaces the rows and columns of a site by those of another matrix.
inline void CopySite(const TransformerConfig& config, const ActivationSite& site,
  const ReferenceMatrix& from, ReferenceMatrix& to)
{
  const bool isHead = site.kind == ActivationKind::HeadOutput;
  const bool isAll = site.position == AllPositions;
  const Eigen::Index column = isHead ? site.head * config.headDimension : 0;
  const Eigen::Index columns = isHead ? config.headDimension : to.cols();
  const Eigen::Index row = isAll ? 0 : site.position;
  const Eigen::Index rows = isAll ? to.rows() : 1;
  to.block(row, column, rows, columns) = from.block(row, column, rows, columns);
}

inline std::string PlaceOf(const ActivationSite& site)
{
  return site.kind == ActivationKind::Residual    ? "residual"
         : site.kind == ActivationKind::MlpOutput ? "hidden"
                                                  : "mixed";
}

/// All tokens of other prompts at a place, of runs without changes.
inline ReferenceMatrix OthersAt(const Transformer& model, const std::string& wanted,
  std::int64_t layer, const std::vector<std::vector<std::int64_t>>& others)
{
  ReferenceMatrix all;
  for (const std::vector<std::int64_t>& tokens : others)
  {
    ReferenceTransformer(model).Logits(tokens,
      [&](const std::string& place, std::int64_t l, const ReferenceMatrix& values)
      {
        if (place == wanted && l == layer)
        {
          all.conservativeResize(all.rows() + values.rows(), values.cols());
          all.bottomRows(values.rows()) = values;
        }
      });
  }
  return all;
}

/// The logits of a run with changed sites, by the reference; `others` are the prompts that means
/// are over.
inline ReferenceMatrix ReferenceLogits(const Transformer& model,
  const std::vector<std::int64_t>& tokens, const Interventions& interventions,
  const std::vector<std::vector<std::int64_t>>& others = {})
{
  const ReferenceTransformer reference(model);
  std::map<std::pair<std::string, std::int64_t>, ReferenceMatrix> source;
  if (interventions.NeedSource())
  {
    reference.Logits(interventions.source.tokens[0],
      [&](const std::string& place, std::int64_t l, const ReferenceMatrix& values)
      { source[{ place, l }] = values; });
  }
  return reference.Logits(tokens,
    [&](const std::string& place, std::int64_t l, ReferenceMatrix& values)
    {
      for (const Intervention& one : interventions.list)
      {
        if (one.site.layer == l && PlaceOf(one.site) == place)
        {
          const ReferenceMatrix& averaged = one.by == Replacement::MeanOverPrompts
                                              ? OthersAt(model, place, l, others)
                                              : ReferenceMatrix(values);
          const ReferenceMatrix mean = averaged.colwise().mean().replicate(values.rows(), 1);
          CopySite(model.GetConfig(), one.site,
            one.by == Replacement::Source ? source.at({ place, l })
            : one.by == Replacement::Zero
              ? ReferenceMatrix(ReferenceMatrix::Zero(values.rows(), values.cols()))
              : mean,
            values);
        }
      }
    });
}

}
