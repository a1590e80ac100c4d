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
  ThrowIf<ModelError>(config.input != InputKind::Tokens || !model.HasLogits(), what,
    ": expected a model of texts with an unembedding, found ", config.architecture,
    " without one.");
  ThrowIf<ModelError>(config.layers == 0, what, ": expected a model with layers, found none.");
  ThrowIf<ModelError>(config.mask != AttentionMask::Causal, what,
    ": expected a model with causal attention, found ", config.architecture, " without.");
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

std::uint64_t GradientMemory(const Transformer& model, std::int64_t length, int threads)
{
  const TransformerConfig& config = model.GetConfig();
  const std::int64_t d = config.modelDimension;
  const std::int64_t heads = config.heads * config.headDimension;
  const std::int64_t keys = config.keyHeads * config.headDimension;
  const std::int64_t traced = 4 * d + 2 * (heads + keys) + 2 * config.mlpDimension;
  const std::int64_t gradients = 4 * d + 4 * heads;
  const std::int64_t widest = std::max({ heads, config.mlpDimension, d });
  const std::int64_t inThreads =
    std::int64_t{ 4 } * ThreadCount(threads) * length * (length + config.headDimension);
  return static_cast<std::uint64_t>(
           length * (config.layers * (traced + gradients) + 6 * (d + widest)) + d * widest +
           inThreads) *
         sizeof(double);
}

}
