#include "VirtualWeights.h"

#include "Base/Error.h"
#include "CircuitFactors.h"
#include "CircuitWeights.h"
#include "Numerics/MatrixProduct.h"

#include <utility>

namespace atlas
{
namespace
{

void RequireHeads(const TransformerConfig& config, const VirtualWeightsOptions& options)
{
  ThrowIf<ModelError>(
    config.layers < 2, "virtual weights: expected a model with at least 2 layers, found 1.");
  RequireIndex("FromLayer", options.from.layer, config.layers);
  RequireIndex("FromHead", options.from.head, config.heads);
  RequireIndex("ToLayer", options.to.layer, config.layers);
  RequireIndex("ToHead", options.to.head, config.heads);
  ThrowIf<OptionError>(options.from.layer >= options.to.layer,
    "ToLayer: expected a layer after FromLayer ", options.from.layer,
    ", since heads read what earlier layers wrote, found ", options.to.layer, ".");
}

/// What reads W [d_model, d_head], and what comes after it [d_head, d_model].
std::pair<DoubleMatrix, DoubleMatrix> ReaderOf(const ProcessedHead& head, CompositionKind kind)
{
  switch (kind)
  {
    case CompositionKind::Query:
      return { head.query, head.key.transpose() };
    case CompositionKind::Key:
      return { head.key, head.query.transpose() };
    case CompositionKind::Value:
      break;
  }
  return { head.value, head.output };
}

}

VirtualWeights FindVirtualWeights(const Transformer& model, const VirtualWeightsOptions& options)
{
  RequireHeads(model.GetConfig(), options);
  const SingleThreadedBlas blas;
  const ProcessedWeights weights(model, options.steps, options.threads);
  const ProcessedHead from = FiniteHead(weights, options.from.layer, options.from.head);
  options.progress(0.2);
  const auto [reading, after] =
    ReaderOf(FiniteHead(weights, options.to.layer, options.to.head), options.kind);
  options.progress(0.4);
  const DoubleMatrix between = Product(from.output, reading);
  // The same singular values as with the large factors.
  const DoubleMatrix left = ColumnRoot(from.value);
  const DoubleMatrix right = RowRoot(after).transpose();
  options.progress(0.6);
  VirtualWeights found;
  switch (options.space)
  {
    case VirtualSpace::Heads:
      found.product = between;
      found.singularValues = SingularValues(between);
      break;
    case VirtualSpace::HeadToStream:
      found.product = Product(between, after);
      found.singularValues = SingularValues(between * right);
      break;
    case VirtualSpace::Streams:
      found.product = Product(Product(from.value, between), after);
      found.singularValues = SingularValues(left * between * right);
      break;
  }
  options.progress(0.9);
  const double norms = (left * from.output).norm() * (RowRoot(after) * reading.transpose()).norm();
  found.score = norms > 0 ? (left * between * right).norm() / norms : 0;
  return found;
}

}
