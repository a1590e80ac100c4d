#include "CircuitWeights.h"

#include "ArchitectureLimits.h"
#include "CircuitFactors.h"
#include "Error.h"
#include "FloatValues.h"
#include "Index.h"

#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

/// Normalizes rows as TransformerNorm does, in double precision.
void Normalize(const TransformerConfig& config, const NormTensors& norm, DoubleMatrix& rows)
{
  if (config.norm == NormKind::LayerNorm)
  {
    rows.colwise() -= rows.rowwise().mean().eval();
  }
  const Eigen::ArrayXd scales =
    (rows.rowwise().squaredNorm().array() / static_cast<double>(rows.cols()) + config.epsilon)
      .sqrt();
  rows.array().colwise() /= scales;
  const FloatValues gain(norm.gain);
  rows.array().rowwise() *=
    Eigen::Map<const Eigen::RowVectorXf>(gain.Data(), rows.cols()).cast<double>().array();
  if (norm.shift.data != nullptr)
  {
    const FloatValues shift(norm.shift);
    rows.rowwise() +=
      Eigen::Map<const Eigen::RowVectorXf>(shift.Data(), rows.cols()).cast<double>();
  }
}

}

void RequireVocabulary(const Transformer& model)
{
  const TransformerConfig& config = model.GetConfig();
  if (config.input != InputKind::Tokens)
  {
    throw ModelError(
      "circuits of tokens: expected a language model, found " + config.architecture + ".");
  }
}

void RequireUnembedding(const Transformer& model)
{
  RequireVocabulary(model);
  RefuseSwitches(model.GetConfig(), "circuits of logits", { ArchitectureSwitch::Encoder });
  const bool readsResidual =
    !model.GetWeights().logitsTransform.Exists() && !model.GetWeights().embeddingOut.Exists();
  if (!model.HasLogits() || !readsResidual)
  {
    throw ModelError(
      "circuits of logits: expected a model whose unembedding reads the residual "
      "stream, found " +
      model.GetConfig().architecture +
      (model.HasLogits() ? ", which has another layer before it." : " without an unembedding."));
  }
}

void RequireHead(const Transformer& model, std::int64_t layer, std::int64_t head)
{
  RequireIndex("Layer", layer, model.GetConfig().layers);
  RequireIndex("Head", head, model.GetConfig().heads);
}

ProcessedHead FiniteHead(const ProcessedWeights& weights, std::int64_t layer, std::int64_t head)
{
  ProcessedAttention attention = weights.Attention(layer);
  RequireFinite(attention, layer);
  return std::move(attention.heads[head]);
}

void RequireFinite(const DoubleMatrix& matrix, const std::string& name)
{
  if (!matrix.allFinite())
  {
    throw ModelError(name + ": expected finite numbers, found NaN or infinity.");
  }
}

void RequireTop(int top)
{
  if (top < 1)
  {
    throw OptionError("Top: expected at least 1, found " + std::to_string(top) + ".");
  }
}

DoubleMatrix CircuitEmbedding(const ProcessedWeights& weights, std::int64_t begin, std::int64_t end)
{
  DoubleMatrix rows = weights.TokenEmbedding(begin, end);
  RequireFinite(rows, "the embedding of tokens");
  const Transformer& model = weights.GetModel();
  const NormTensors& norm = model.GetWeights().embeddingNorm;
  if (weights.GetSteps() != WeightSteps::Stored && norm.gain.data != nullptr)
  {
    Normalize(model.GetConfig(), norm, rows);
  }
  return rows;
}

DoubleMatrix CircuitEmbedding(
  const ProcessedWeights& weights, const std::vector<std::int32_t>& tokens)
{
  DoubleMatrix rows(tokens.size(), weights.GetModel().GetConfig().modelDimension);
  for (std::size_t i = 0; i < tokens.size(); ++i)
  {
    rows.row(static_cast<Eigen::Index>(i)) = CircuitEmbedding(weights, tokens[i], tokens[i] + 1);
  }
  return rows;
}

DoubleMatrix CircuitUnembedding(
  const ProcessedWeights& weights, std::int64_t begin, std::int64_t end)
{
  DoubleMatrix columns = weights.UnembeddingColumns(begin, end);
  RequireFinite(columns, "the unembedding");
  return columns;
}

namespace
{

std::vector<std::string> LeftOutOfAll(const TransformerConfig& config, bool processes)
{
  std::vector<std::string> left;
  left.emplace_back("biases");
  if (config.norm != NormKind::None)
  {
    left.emplace_back("division by the norm of the residual stream");
  }
  if (config.norm != NormKind::None && !processes)
  {
    left.emplace_back("gains of normalizations");
  }
  if (config.normPlace == NormPlace::BeforeAndAfter)
  {
    left.emplace_back("normalization of what a layer adds");
  }
  if (config.layerScales)
  {
    left.emplace_back("scales of what a layer adds");
  }
  if (config.projectionClip > 0)
  {
    left.emplace_back("limits of queries, keys and values");
  }
  if (config.embeddingNorm && !processes)
  {
    left.emplace_back("normalization of the embedding");
  }
  return left;
}

}

std::vector<std::string> LeftOutOfQueryKey(
  const TransformerConfig& config, bool processes, bool isOfPositions)
{
  std::vector<std::string> left = LeftOutOfAll(config, processes);
  if (config.queryKeyNorm != QueryKeyNorm::None)
  {
    left.emplace_back("normalization of queries and keys");
  }
  if (config.scoreCap > 0)
  {
    left.emplace_back("the cap of scores");
  }
  if (isOfPositions)
  {
    left.emplace_back("token embedding");
  }
  else if (config.position == PositionKind::Rotary)
  {
    left.emplace_back("rotary positions (as for a query and key at one position)");
  }
  else if (config.position == PositionKind::Alibi)
  {
    left.emplace_back("ALiBi positions");
  }
  else
  {
    left.emplace_back("position embedding");
  }
  return left;
}

std::vector<std::string> LeftOutOfOutputValue(const TransformerConfig& config, bool processes)
{
  return LeftOutOfAll(config, processes);
}

}
