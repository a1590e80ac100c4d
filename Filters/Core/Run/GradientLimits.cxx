#include "GradientRun.h"

#include "Base/Error.h"
#include "Base/Parallel.h"
#include "Weights/ArchitectureLimits.h"

#include <algorithm>

namespace atlas
{

void CheckGradients(const Transformer& model)
{
  const TransformerConfig& config = model.GetConfig();
  using Switch = ArchitectureSwitch;
  const std::string what = "gradients";
  ThrowIf<ModelError>(config.input != InputKind::Tokens, what,
    ": expected a model of texts, found ", config.architecture, ", which reads ",
    config.input == InputKind::Images ? "images." : "sound.");
  ThrowIf<ModelError>(config.layers == 0, what, ": expected a model with layers, found none.");
  ThrowIf<ModelError>(config.mask != AttentionMask::Causal, what,
    ": expected a model with causal attention, found ", config.architecture,
    ", whose tokens attend to later ones.");
  ThrowIf<ModelError>(!model.HasLogits(), what, ": expected a model with an unembedding, found ",
    config.architecture, " without one.");
  ThrowIf<ModelError>(config.normPlace == NormPlace::AfterSublayer, what,
    ": expected a model whose residual stream is not normalized, found ", config.architecture,
    ", which normalizes it after each sublayer.");
  ThrowIf<ModelError>(config.queryKeyNorm == QueryKeyNorm::Together, what,
    ": expected a model without normalizations of the queries of all heads together, found ",
    config.architecture, ".");
  ThrowIf<ModelError>(config.ValueDimension() != config.headDimension, what,
    ": expected a model with values of the size of queries, ", config.headDimension, ", found ",
    config.ValueDimension(), ".");
  RefuseSwitches(config, what,
    { Switch::Encoder, Switch::NormsInside, Switch::QueryGrowth, Switch::XieluActivation,
      Switch::Sinks, Switch::ProjectionClip, Switch::Experts, Switch::ValueNorms,
      Switch::LayerSides, Switch::LatentAttention, Switch::Mixers, Switch::OutputGate,
      Switch::EmbeddingProjection, Switch::PositionScores, Switch::PatchRotation,
      Switch::LogitsTransform });
  ThrowIf<ModelError>(model.GetWeights().logitsTransform.Exists(), what,
    ": expected a model without a layer before its unembedding, found ", config.architecture, ".");
}

double TracedMemory(const Transformer& model, std::int64_t length)
{
  const TransformerConfig& config = model.GetConfig();
  const auto d = static_cast<double>(config.modelDimension);
  const auto hidden = static_cast<double>(config.mlpDimension);
  const auto heads = static_cast<double>(config.heads * config.headDimension);
  const auto keys = static_cast<double>(config.keyHeads * config.headDimension);
  const double layer = 4 * d + 2 * (heads + keys) + 2 * hidden;
  return static_cast<double>(length) * (static_cast<double>(config.layers) * layer + 3 * d) *
         sizeof(double);
}

double GradientMemory(const Transformer& model, std::int64_t length, int threads, bool loss)
{
  const TransformerConfig& config = model.GetConfig();
  const auto tokens = static_cast<double>(length);
  const auto d = static_cast<double>(config.modelDimension);
  const auto dimension = static_cast<double>(config.headDimension);
  const double heads = static_cast<double>(config.heads) * dimension;
  const double gradients = static_cast<double>(config.layers) * (4 * d + 4 * heads);
  const double widest = std::max({ heads, static_cast<double>(config.mlpDimension), d });
  constexpr double block = 1 << 16; // weights that are widened at a time
  const double inThread = 4 * tokens * (tokens + dimension) + 2 * std::max(block, d * dimension);
  const double logits = loss ? 2 * static_cast<double>(model.GetWeights().unembedding.outputs) : 0;
  return TracedMemory(model, length) +
         (tokens * (logits + gradients + 6 * (d + widest)) + ThreadCount(threads) * inThread) *
           sizeof(double);
}

}
