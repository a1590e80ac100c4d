#include "MixerOutputs.h"

#include "Base/Error.h"
#include "Internal/LayerMixer.h"
#include "Internal/TransformerNorm.h"
#include "Numerics/MatrixProduct.h"

#include <algorithm>
#include <optional>

namespace atlas
{

SharedMatrix MixerOutputs(
  const Transformer& model, std::int64_t layer, const SharedMatrix& residual, int threads)
{
  const TransformerConfig& whole = model.GetConfig();
  ThrowIf<ModelError>(whole.HasAttention(layer), "expected a layer without attention, found layer ",
    layer, " of ", whole.architecture, ".");
  const TransformerConfig config = whole.WithSizesOf(layer);
  ThrowIf<ModelError>(config.normPlace != NormPlace::BeforeSublayer, "layer ", layer, " of ",
    whole.architecture, ": expected a normalization before what it adds alone.");
  const SingleThreadedBlas blas;
  const LayerTensors& tensors = model.GetWeights().layers[layer];
  const PackedSequences sequence({ residual.rows }, std::nullopt);
  std::vector<float> normed(residual.Count());
  TransformerNorm(config, tensors.attentionNorm)
    .Apply(residual.rows, residual.columns, residual.Row(0), normed.data(), threads);
  SharedMatrix outputs = SharedMatrix::Zero(residual.rows, residual.columns);
  MixerWorkspace work;
  LayerMixer(config, tensors.mixer, whole.mixers[layer])
    .Add(sequence.groups.front(), normed.data(), outputs.Row(0), work, threads, nullptr, {});
  std::for_each_n(outputs.Row(0), outputs.Count(),
    [scale = static_cast<float>(config.residualScale)](float& value) { value *= scale; });
  return outputs;
}

}
