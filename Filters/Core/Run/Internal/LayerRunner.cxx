#include "LayerRunner.h"

#include "Error.h"
#include "Index.h"
#include "TransformerEmbedding.h"
#include "TransformerKernels.h"

namespace atlas
{

LayerRunner::LayerRunner(const Transformer& model, std::int64_t length, int threads)
  : Model(model)
  , Positions(model.GetConfig(), model.GetWeights(), length)
  , Threads(threads)
{
}

std::int64_t LayerRunner::WorkingFloats(
  const TransformerConfig& config, std::int64_t rows, int threads)
{
  return rows * (config.heads + 2 * config.keyHeads) * config.headDimension +
         TransformerLayer::WorkingFloats(config, rows, threads);
}

/// Where queries, keys and values of this many rows are written; heads of a group share theirs.
std::vector<HeadRows> LayerRunner::RowsOf(std::int64_t rows)
{
  const TransformerConfig& config = this->Model.GetConfig();
  const std::int64_t size = rows * config.headDimension;
  this->Spare.resize(ToIndex(size * (config.heads + 2 * config.keyHeads)));
  std::vector<HeadRows> heads(ToIndex(config.heads));
  for (std::int64_t h = 0; h < config.heads; ++h)
  {
    const std::int64_t keyHead = h / (config.heads / config.keyHeads);
    HeadRows& head = heads[ToIndex(h)];
    head.query = this->Spare.data() + h * size;
    head.key = this->Spare.data() + (config.heads + keyHead) * size;
    head.value = this->Spare.data() + (config.heads + config.keyHeads + keyHead) * size;
  }
  return heads;
}

bool LayerRunner::Run(std::int64_t l, const PackedSequences& sequences, float* x,
  const ActivationVisitor& visitor, const std::function<bool(std::int64_t)>& progress)
{
  const TransformerConfig& config = this->Model.GetConfig();
  const TransformerLayer layer(
    config, this->Model.GetWeights().layers[ToIndex(l)], l, this->Positions);
  const std::vector<HeadRows> heads = this->RowsOf(sequences.LargestGroup());
  for (const RowGroup& group : sequences.groups)
  {
    layer.Apply(
      group, heads, x + group.begin * config.modelDimension, this->Work, this->Threads, visitor);
    if (!progress(group.end))
    {
      return false;
    }
  }
  return true;
}

std::optional<Activations> CaptureActivations(const Transformer& model,
  const TransformerInput& input, const std::set<PlaceInLayer>& places, int threads,
  const std::function<bool(std::int64_t)>& progress)
{
  const TransformerConfig& config = model.GetConfig();
  const PackedSequences sequences(SequenceLengths(config, input), std::nullopt);
  const std::int64_t rows = sequences.Rows();
  std::vector<float> x(ToIndex(rows * config.modelDimension));
  EmbedInput(config, model.GetWeights(), input, sequences, x.data(), threads);
  Activations found;
  LayerRunner runner(model, rows, threads);
  const std::int64_t last = places.empty() ? 0 : places.rbegin()->first;
  for (std::int64_t l = 0; l <= last; ++l)
  {
    const auto keep = [&](ActivationPlace place, const RowGroup&, const float* values)
    {
      if (places.count({ l, place }) != 0)
      {
        found[{ l, place }].assign(values, values + rows * WidthOf(config, place));
      }
    };
    if (FindNotFinite(rows * config.modelDimension, x.data()) >= 0)
    {
      throw ModelError("an activation before layer " + std::to_string(l) +
                       " is not finite; expected finite numbers.");
    }
    keep(ActivationPlace::Residual, sequences.groups.front(), x.data());
    const bool goesOn =
      l < config.layers && (l < last || places.rbegin()->second != ActivationPlace::Residual);
    if (goesOn &&
        !runner.Run(l, sequences, x.data(), keep, [&](std::int64_t) { return progress(l + 1); }))
    {
      return std::nullopt;
    }
  }
  return found;
}

std::int64_t CaptureFloats(const TransformerConfig& config, std::int64_t length,
  const std::set<PlaceInLayer>& places, int threads)
{
  std::int64_t floats =
    length * config.modelDimension + LayerRunner::WorkingFloats(config, length, threads);
  for (const auto& [layer, place] : places)
  {
    floats += length * WidthOf(config, place);
  }
  return floats;
}

}
