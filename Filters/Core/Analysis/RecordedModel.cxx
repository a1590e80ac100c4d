#include "RecordedModel.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Weights/ArchitectureLimits.h"
#include "Weights/ProcessedWeights.h"
#include "Weights/VectorNorm.h"

#include <algorithm>
#include <optional>
#include <string>

namespace atlas
{
namespace
{

using Vector = Eigen::RowVectorXd;

constexpr double QueryTolerance = 0.01;

/// The input of layer 0 at row 0, the first token of the first sequence.
Vector Embedding(const Recording& recording, const ProcessedWeights& stored)
{
  const Transformer& model = stored.GetModel();
  const std::int64_t id = recording.tokens.id[0];
  Vector x = stored.TokenEmbedding(id, id + 1);
  if (model.GetConfig().HasPositionVectors())
  {
    x += stored.PositionEmbedding().row(0);
  }
  if (model.GetConfig().embeddingNorm)
  {
    NormalizeVector(model.GetConfig(), model.GetWeights().embeddingNorm, x);
  }
  return x;
}

/// The input of a layer at row 0, if it is known.
std::optional<Vector> InputOf(
  const Recording& recording, const RecordedLayer& layer, const ProcessedWeights& stored)
{
  const std::size_t l = layer.index;
  if (l < recording.residual.size() && recording.residual[l].IsRecorded())
  {
    const SharedMatrix& residual = recording.residual[l];
    return Eigen::Map<const Eigen::RowVectorXf>(residual.Row(0), residual.columns).cast<double>();
  }
  const TransformerConfig& config = stored.GetModel().GetConfig();
  const bool isText = config.input == InputKind::Tokens && config.segments == 0;
  const bool isChanged = !recording.interventions.empty(); // perhaps this input too
  if (HasSwitch(config, { ArchitectureSwitch::Encoder, ArchitectureSwitch::EmbeddingProjection,
                          ArchitectureSwitch::ShiftedPositions }) ||
      config.maskToken >= 0) // which scales by what the text has
  {
    return std::nullopt;
  }
  return l == 0 && isText && !isChanged && !recording.tokens.id.empty()
           ? std::optional(Embedding(recording, stored))
           : std::nullopt;
}

/// Whether the first query of a layer with this input is that of the model, as far as it is a sum.
/// It is at position 0, where rotation changes nothing.
bool IsQueryOf(const RecordedLayer& layer, Vector x, const ProcessedWeights& stored)
{
  const Transformer& model = stored.GetModel();
  const TransformerConfig& config = model.GetConfig();
  if (HasSwitch(
        config, { ArchitectureSwitch::QueryKeyNorms, ArchitectureSwitch::ProjectionClip,
                  ArchitectureSwitch::RotationFactor, ArchitectureSwitch::LatentAttention }))
  {
    return true;
  }
  const bool normsBefore =
    config.normPlace == NormPlace::BeforeSublayer || config.normPlace == NormPlace::BeforeAndAfter;
  if (normsBefore && (layer.index > 0 || config.firstAttentionIsNormed))
  {
    NormalizeVector(config, model.GetWeights().layers[layer.index].attentionNorm, x);
  }
  if (config.position == PositionKind::Shortformer)
  {
    x += stored.PositionEmbedding().row(0);
  }
  const ProcessedHead head = stored.Attention(layer.index).heads[0];
  const Vector expected = x * head.query + head.queryBias;
  const SharedMatrix& query = layer.heads[0].query;
  const Vector found =
    Eigen::Map<const Eigen::RowVectorXf>(query.Row(0), query.columns).cast<double>();
  return (found - expected).cwiseAbs().maxCoeff() <=
         QueryTolerance * expected.cwiseAbs().maxCoeff();
}

std::string Sizes(std::size_t layers, std::size_t heads, std::int64_t dimension)
{
  return std::to_string(layers) + " layers of " + std::to_string(heads) + " heads of dimension " +
         std::to_string(dimension);
}

void RequireSameProducts(
  const Recording& recording, const Transformer& model, const std::string& begin)
{
  ThrowIf<OptionError>(recording.products != model.GetProducts(), begin, "expected products in ",
    Name(recording.products), " as in the recording, found ", Name(model.GetProducts()),
    "; change Products of the Transformer Reader.");
}

/// The number of layers, as far as it is known.
void RequireSameLayers(
  const Recording& recording, const TransformerConfig& config, const std::string& begin)
{
  const auto streams = static_cast<std::int64_t>(recording.residual.size()) - 1;
  const std::int64_t layers = recording.layerCount > 0 ? recording.layerCount : streams;
  ThrowIf<OptionError>(recording.layers.empty() && layers > 0 && layers != config.layers, begin,
    "expected ", config.layers, " layers as in the model, found ", layers, ".");
}

void RequireSameSizes(
  const Recording& recording, const TransformerConfig& config, const std::string& begin)
{
  const RecordedLayer& first = recording.layers.front();
  const std::int64_t dimension = first.heads.empty() || !first.heads[0].query.IsRecorded()
                                   ? config.headDimension
                                   : first.heads[0].query.columns;
  const auto layers = ToIndex(std::max(recording.layerCount, recording.layers.back().index + 1));
  ThrowIf<OptionError>(layers != ToIndex(config.layers) ||
                         first.heads.size() != ToIndex(config.heads) ||
                         dimension != config.headDimension,
    begin, "expected ", Sizes(config.layers, config.heads, config.headDimension),
    " as in the model, found ", Sizes(layers, first.heads.size(), dimension), ".");
}

void RequireSameTokens(
  const Recording& recording, const TransformerConfig& config, const std::string& begin)
{
  for (const std::int64_t id : recording.tokens.id)
  {
    ThrowIf<OptionError>(id < 0 || id >= config.vocabulary, begin, "expected token ids from 0 to ",
      config.vocabulary - 1, ", found ", id, ".");
  }
}

}

void RequireSameModel(const Recording& recording, const Transformer& model, const std::string& what)
{
  const std::string begin = what + " needs the model that was recorded: ";
  RequireSameLayers(recording, model.GetConfig(), begin);
  if (!recording.layers.empty())
  {
    RequireSameSizes(recording, model.GetConfig(), begin);
  }
  RequireSameTokens(recording, model.GetConfig(), begin);
  RequireSameProducts(recording, model, begin);
  if (recording.layers.empty() || recording.tokens.Count() == 0)
  {
    return;
  }
  const ProcessedWeights stored(model, WeightSteps::Stored, 1);
  for (const RecordedLayer& layer : recording.layers)
  {
    const bool hasQuery = !layer.heads.empty() && layer.heads[0].query.IsRecorded();
    const std::optional<Vector> x = hasQuery ? InputOf(recording, layer, stored) : std::nullopt;
    if (!x || x->size() != model.GetConfig().modelDimension)
    {
      continue;
    }
    ThrowIf<OptionError>(!IsQueryOf(layer, *x, stored), begin,
      "expected the queries that the model has in layer ", layer.index,
      " for the recorded tokens, found others; choose the model of the recording.");
    return;
  }
}

void RequireSamePart(
  const Recording& part, const Transformer& model, AttentionKind kind, const std::string& what)
{
  if (kind == AttentionKind::Decoder)
  {
    RequireSameModel(part, model, what);
    return;
  }
  const std::string begin = what + " needs the model that was recorded: ";
  const TransformerConfig& config = model.GetConfig();
  ThrowIf<OptionError>(config.encoder == nullptr, begin,
    "expected one with an encoder and a decoder, found one of ", config.architecture, ".");
  if (!part.layers.empty())
  {
    RequireSameSizes(part, kind == AttentionKind::Encoder ? *config.encoder : config, begin);
  }
  RequireSameProducts(part, model, begin);
}

void RequireSameProcessing(
  const Recording& recording, const Transformer& model, const std::string& what)
{
  const WeightProcessing recorded = recording.processing;
  const WeightProcessing given = model.GetWeights().processing;
  if (recorded != given && recorded != WeightProcessing::Unknown &&
      given != WeightProcessing::Unknown)
  {
    const auto nameOf = [](WeightProcessing processing)
    { return processing == WeightProcessing::Processed ? "processed" : "unprocessed"; };
    throw OptionError(what, " needs the weights that were recorded: expected ", nameOf(recorded),
      " ones, found ", nameOf(given), " ones; change Processing of the Transformer Reader.");
  }
}

}
