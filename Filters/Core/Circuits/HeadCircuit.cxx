#include "HeadCircuit.h"

#include "Base/Error.h"
#include "CircuitWeights.h"

#include <utility>

namespace atlas
{
namespace
{

void CheckOptions(const Transformer& model, const HeadCircuitOptions& options)
{
  if (options.circuit == CircuitKind::OutputValue)
  {
    RequireUnembedding(model);
    const std::int64_t logits = model.GetConfig().outputVocabulary;
    for (const std::int32_t id : options.tokens)
    {
      ThrowIf<OptionError>(id >= logits,
        "Tokens: expected tokens that the model can predict, with ids from 0 to ", logits - 1,
        ", found ", id, ".");
    }
  }
  else
  {
    RequireVocabulary(model);
  }
  RequireHead(model, options.layer, options.head);
  RequireTop(options.largest.top);
  const bool hasPositions = model.GetWeights().positionEmbedding.data != nullptr;
  ThrowIf<OptionError>(options.circuit == CircuitKind::PositionQueryKey && !hasPositions,
    "Circuit PositionQK: expected a model with a position embedding, found ",
    model.GetConfig().architecture, ", which has none.");
}

/// The entries of both directions, as two lists of one.
std::vector<LargestEntries> Split(std::vector<TokenLogit> found, std::int64_t rows)
{
  const auto half = static_cast<std::ptrdiff_t>(found.size() / 2);
  const std::int64_t top = half / rows;
  return { { "Source", top, { found.begin(), found.begin() + half } },
    { "Destination", top, { found.begin() + half, found.end() } } };
}

/// The circuit of queries and keys among rows of an embedding: of `chosen` with all.
HeadCircuitTables EvaluateQueryKey(const ProcessedHead& head, double scale,
  const DoubleMatrix& chosen, const TokenRows& all, const LargestProductOptions& options)
{
  const DoubleMatrix queries = scale * chosen * head.query;
  const DoubleMatrix keys = chosen * head.key;
  DoubleMatrix both(2 * chosen.rows(), chosen.cols());
  both << queries * head.key.transpose(), scale * keys * head.query.transpose();
  return { Split(LargestProducts(both, all, options), chosen.rows()), queries * keys.transpose() };
}

HeadCircuitTables EvaluateOutputValue(const ProcessedWeights& weights, const ProcessedHead& head,
  const DoubleMatrix& chosen, const HeadCircuitOptions& options)
{
  const DoubleMatrix written = chosen * head.value * head.output;
  const std::int64_t vocabulary = weights.OutputVocabulary();
  std::vector<TokenLogit> found = LargestProducts(written,
    { vocabulary, [&weights](std::int64_t begin, std::int64_t end)
      { return CircuitUnembedding(weights, begin, end); } },
    options.largest);
  DoubleMatrix columns(chosen.rows(), chosen.cols());
  for (Eigen::Index i = 0; i < columns.rows(); ++i)
  {
    const std::int32_t id = options.tokens[i];
    columns.row(i) = CircuitUnembedding(weights, id, id + 1);
  }
  const auto top = static_cast<std::int64_t>(found.size()) / chosen.rows();
  return { { { "Output", top, std::move(found) } }, written * columns.transpose() };
}

}

std::int64_t CircuitSize(const Transformer& model, const HeadCircuitOptions& options)
{
  CheckOptions(model, options);
  return options.circuit == CircuitKind::PositionQueryKey
           ? model.GetWeights().positionEmbedding.shape[0]
           : static_cast<std::int64_t>(options.tokens.size());
}

HeadCircuitTables EvaluateHeadCircuit(const Transformer& model, const HeadCircuitOptions& options)
{
  CheckOptions(model, options);
  const ProcessedWeights weights(model, CircuitSteps(options.processes), options.largest.threads);
  const ProcessedHead head = FiniteHead(weights, options.layer, options.head);
  const double scale = model.GetConfig().ScoreScale(options.layer);
  if (options.circuit == CircuitKind::PositionQueryKey)
  {
    const DoubleMatrix positions = weights.PositionEmbedding();
    return EvaluateQueryKey(head, scale, positions,
      { positions.rows(), [&positions](std::int64_t begin, std::int64_t end)
        { return DoubleMatrix(positions.middleRows(begin, end - begin)); } },
      options.largest);
  }
  const DoubleMatrix chosen = CircuitEmbedding(weights, options.tokens);
  if (options.circuit == CircuitKind::OutputValue)
  {
    return EvaluateOutputValue(weights, head, chosen, options);
  }
  return EvaluateQueryKey(head, scale, chosen,
    { model.GetConfig().vocabulary, [&weights](std::int64_t begin, std::int64_t end)
      { return CircuitEmbedding(weights, begin, end); } },
    options.largest);
}

}
