#include "VirtualWeights.h"

#include "CircuitFactors.h"
#include "Error.h"
#include "Index.h"
#include "MatrixProduct.h"

#include <string>
#include <utility>

namespace atlas
{
namespace
{

void RequireHeads(const TransformerConfig& config, const VirtualWeightsOptions& options)
{
  if (config.layers < 2)
  {
    throw ModelError("virtual weights: expected a model with at least 2 layers, found 1.");
  }
  RequireIndex("FromLayer", options.from.layer, config.layers);
  RequireIndex("FromHead", options.from.head, config.heads);
  RequireIndex("ToLayer", options.to.layer, config.layers);
  RequireIndex("ToHead", options.to.head, config.heads);
  if (options.from.layer >= options.to.layer)
  {
    throw OptionError("ToLayer: expected a layer after FromLayer " +
                      std::to_string(options.from.layer) +
                      ", since heads read what earlier layers "
                      "wrote, found " +
                      std::to_string(options.to.layer) + ".");
  }
}

ProcessedHead HeadOf(const ProcessedWeights& weights, const HeadPlace& place)
{
  ProcessedAttention attention = weights.Attention(place.layer);
  RequireFinite(attention, place.layer);
  return std::move(attention.heads[place.head]);
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
  const ProcessedHead from = HeadOf(weights, options.from);
  options.progress(0.2);
  const auto [reading, after] = ReaderOf(HeadOf(weights, options.to), options.kind);
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
