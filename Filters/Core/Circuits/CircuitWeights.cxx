#include "CircuitWeights.h"

#include "Base/Error.h"
#include "CircuitFactors.h"
#include "Weights/ArchitectureLimits.h"
#include "Weights/FloatValues.h"

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
  ThrowIf<ModelError>(config.input != InputKind::Tokens,
    "circuits of tokens: expected a language model, found ", config.architecture, ".");
}

void RequireUnembedding(const Transformer& model)
{
  RequireVocabulary(model);
  RefuseSwitches(model.GetConfig(), "circuits of logits", { ArchitectureSwitch::Encoder });
  const bool readsResidual =
    !model.GetWeights().logitsTransform.Exists() && !model.GetWeights().embeddingOut.Exists();
  ThrowIf<ModelError>(!model.HasLogits() || !readsResidual,
    "circuits of logits: expected a model whose unembedding reads the residual stream, found ",
    model.GetConfig().architecture,
    model.HasLogits() ? ", which has another layer before it." : " without an unembedding.");
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
  ThrowIf<ModelError>(
    !matrix.allFinite(), name, ": expected finite numbers, found NaN or infinity.");
}

void RequireTop(int top)
{
  ThrowIf<OptionError>(top < 1, "Top: expected at least 1, found ", top, ".");
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

/// Texts that hold.
using LeftOut = std::vector<std::pair<bool, const char*>>;

std::vector<std::string> TextsOf(const LeftOut& all)
{
  std::vector<std::string> texts;
  for (const auto& [holds, text] : all)
  {
    if (holds)
    {
      texts.emplace_back(text);
    }
  }
  return texts;
}

LeftOut LeftOutOfAll(const TransformerConfig& config, bool processes)
{
  const bool hasNorms = config.norm != NormKind::None;
  return { { true, "biases" }, { hasNorms, "division by the norm of the residual stream" },
    { hasNorms && !processes, "gains of normalizations" },
    { HasSwitch(config, { ArchitectureSwitch::NormsAfterToo }),
      "normalization of what a layer adds" },
    { config.normsInside, "normalization of what the output matrix reads" },
    { HasSwitch(config, { ArchitectureSwitch::LayerScales }), "scales of what a layer adds" },
    { config.projectionClip > 0, "limits of queries, keys and values" },
    { config.embeddingNorm && !processes, "normalization of the embedding" } };
}

}

std::vector<std::string> LeftOutOfQueryKey(
  const TransformerConfig& config, bool processes, bool isOfPositions)
{
  LeftOut left = LeftOutOfAll(config, processes);
  left.emplace_back(config.queryKeyNorm != QueryKeyNorm::None, "normalization of queries and keys");
  left.emplace_back(config.scoreCap > 0, "the cap of scores");
  left.emplace_back(config.queryGrowth > 0, "the growth of queries with their position");
  left.emplace_back(true, isOfPositions ? "token embedding"
                          : config.position == PositionKind::Rotary
                            ? "rotary positions (as for a query and key at one position)"
                          : config.position == PositionKind::RotaryOfPatches
                            ? "rotation by rows and columns of patches"
                          : config.position == PositionKind::Alibi ? "ALiBi positions"
                                                                   : "position embedding");
  left.emplace_back(config.position == PositionKind::Relative, "biases of distances");
  left.emplace_back(config.position == PositionKind::RelativeOfPatches, "biases of patches");
  left.emplace_back(
    config.position == PositionKind::Disentangled, "content to position and position to content");
  return TextsOf(left);
}

std::vector<std::string> LeftOutOfOutputValue(const TransformerConfig& config, bool processes)
{
  return TextsOf(LeftOutOfAll(config, processes));
}

}
