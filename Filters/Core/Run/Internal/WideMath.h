#pragma once

// Internal to Core: parts of a transformer in double precision, forward and backward.

#include "Run/GradientMath.h"
#include "TransformerLinear.h"
#include "Weights/ProcessedWeights.h"

#include <optional>
#include <vector>

namespace atlas
{

/// a b, or a b^T. Runs in parallel; equal to the byte for any number of threads.
DoubleMatrix Product(const DoubleMatrix& a, const DoubleMatrix& b, bool transposed, int threads);

/// x W, or x W^T. A block of W at a time is widened, by each thread. Runs in parallel; equal to the
/// byte for any number of threads.
DoubleMatrix TimesWeights(
  const DoubleMatrix& x, const LinearTensors& tensors, bool transposed, int threads);

/// The same with W [inputs, heads d_head] of queries, keys or values.
DoubleMatrix TimesHeads(const DoubleMatrix& x, const LinearTensors& tensors, std::int64_t heads,
  std::int64_t dimension, bool transposed, int threads);

/// Rows of W from `first` on, as many as `to` [rows, outputs] has.
void WidenRows(const LinearTensors& tensors, std::int64_t first, DoubleMatrix& to);

/// W [inputs, d_head] of the queries, keys or values of one head.
DoubleMatrix WidenedHead(const LinearTensors& tensors, std::int64_t head, std::int64_t dimension);

/// x W + b
DoubleMatrix ApplyWide(const LinearTensors& tensors, const DoubleMatrix& x, int threads);

/// The weights [d_model] of the logit of a token.
Eigen::RowVectorXd UnembeddingColumn(const LinearTensors& unembedding, std::int64_t token);

/// A tensor of one row in double precision; empty if it is missing.
std::vector<double> WideRow(const TensorView& view);

/// A normalization of rows in double precision. Rows may be several vectors, one after the other.
class WideNorm
{
public:
  WideNorm(const TransformerConfig& config, const NormTensors& tensors, NormKind kind,
    std::int64_t dimension);

  DoubleMatrix Apply(const DoubleMatrix& x) const;

  /// The gradient of x.
  DoubleMatrix Backward(const DoubleMatrix& x, const DoubleMatrix& dy) const;

  /// By how much the result changes with x, to first order.
  DoubleMatrix Forward(const DoubleMatrix& x, const DoubleMatrix& dx) const;

private:
  NormKind Kind;
  double Epsilon;
  std::vector<double> Gain;
  std::vector<double> Shift;

  LearnedNorm<double> Norm(const std::vector<double>& gain) const;
  DoubleMatrix BackwardBy(
    const std::vector<double>& gain, const DoubleMatrix& x, const DoubleMatrix& dy) const;
};

}
