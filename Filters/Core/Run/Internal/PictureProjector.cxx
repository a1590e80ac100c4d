#include "PictureProjector.h"

#include "Base/Index.h"
#include "Preprocessing/PictureTokens.h"
#include "TransformerLinear.h"
#include "TransformerNorm.h"

#include <algorithm>

namespace atlas
{

SharedMatrix ProjectPictures(
  const Transformer& model, const PackedSequences& sequences, const float* encoded, int threads)
{
  using Norm = VisionConfig::ProjectorNorm;
  const VisionConfig& vision = *model.GetConfig().vision;
  const VisionWeights& weights = *model.GetWeights().vision;
  TransformerConfig encoder = *vision.encoder;
  const std::int64_t d = encoder.modelDimension;
  const std::int64_t square = vision.merge * vision.merge;
  std::int64_t tokens = 0;
  std::vector<float> joined;
  joined.reserve(sequences.Rows() * d);
  for (std::int64_t s = sequences.run.first; s < sequences.run.end; ++s)
  {
    const float* rows = encoded + (sequences.offsets[s] - sequences.FirstRow()) * d;
    const std::int64_t patches = sequences.Length(s) - encoder.TokensBeforePatches();
    tokens += patches / square;
    for (std::int64_t i = 0; i < patches; ++i)
    {
      std::int64_t patch = i;
      if (!encoder.ReadsAnySize()) // their patches are in order of squares
      {
        const auto [row, column] = PlaceOfPatch(i, encoder.PatchColumns(), vision.merge);
        patch = row * encoder.PatchColumns() + column;
      }
      const float* from = rows + (encoder.TokensBeforePatches() + patch) * d;
      joined.insert(joined.end(), from, from + d);
    }
  }
  encoder.epsilon = vision.projectorEpsilon;
  if (vision.projectorNorm == Norm::OfMerged)
  {
    encoder.norm = NormKind::LayerNorm;
  }
  if (vision.projectorNorm != Norm::None)
  {
    const bool isOfPatches = vision.projectorNorm == Norm::OfPatches;
    TransformerNorm(encoder, weights.projectorNorm)
      .Apply(isOfPatches ? tokens * square : tokens, isOfPatches ? d : d * square, joined.data(),
        joined.data(), threads);
  }
  const std::int64_t outputs = model.GetConfig().modelDimension;
  SharedMatrix features = SharedMatrix::Zero(tokens, outputs);
  if (!vision.projectorHasTwo)
  {
    ApplyLinear(Linear(weights.projectorIn), tokens, joined.data(), features.Row(0), {}, threads);
    return features;
  }
  std::vector<float> hidden(ToIndex(tokens * weights.projectorIn.outputs));
  ApplyLinear(Linear(weights.projectorIn), tokens, joined.data(), hidden.data(),
    { vision.projectorActivation, nullptr, false }, threads);
  ApplyLinear(Linear(weights.projectorOut), tokens, hidden.data(), features.Row(0), {}, threads);
  return features;
}

std::int64_t ProjectFloats(const TransformerConfig& config, const PackedSequences& sequences)
{
  const VisionConfig& vision = *config.vision;
  const std::int64_t inputs = sequences.Rows() * vision.encoder->modelDimension; // as joined
  const std::int64_t tokens = sequences.Rows() / (vision.merge * vision.merge);
  return inputs + std::max(inputs, tokens * config.modelDimension) + tokens * config.modelDimension;
}

}
