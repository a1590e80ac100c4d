#include "LayerRunner.h"

#include "Base/Error.h"
#include "TransformerEmbedding.h"
#include "TransformerKernels.h"
#include "Weights/ArchitectureLimits.h"

#include <algorithm>
#include <optional>

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
  this->Spare.resize(size * (config.heads + 2 * config.keyHeads));
  std::vector<HeadRows> heads(config.heads);
  for (std::int64_t h = 0; h < config.heads; ++h)
  {
    const std::int64_t keyHead = h / (config.heads / config.keyHeads);
    HeadRows& head = heads[h];
    head.query = this->Spare.data() + h * size;
    head.key = this->Spare.data() + (config.heads + keyHead) * size;
    head.value = this->Spare.data() + (config.heads + config.keyHeads + keyHead) * size;
  }
  return heads;
}

void LayerRunner::Run(std::int64_t l, const PackedSequences& sequences, float* x,
  const ActivationVisitor& visitor, const Progress& progress)
{
  const TransformerConfig& config = this->Model.GetConfig();
  const TransformerLayer layer(config, this->Model.GetWeights().layers[l], l, this->Positions);
  const std::vector<HeadRows> heads = this->RowsOf(sequences.LargestGroup());
  for (const RowGroup& group : sequences.groups)
  {
    const std::int64_t first = sequences.FirstRow();
    const Progress ofGroup =
      progress.Part(group.begin - first, group.end - first, sequences.Rows());
    layer.Apply(group, heads, x + (group.begin - first) * config.modelDimension, this->Work,
      this->Threads, ofGroup, visitor);
    ofGroup(1);
  }
}

void VisitActivations(const Transformer& model, const TransformerInput& input,
  const PackedSequences& sequences, const PlaceInLayer& last, int threads,
  const LayerVisitor& visitor, const Progress& progress)
{
  const TransformerConfig& config = model.GetConfig();
  RefuseSwitches(config, "activations of a run",
    { ArchitectureSwitch::Encoder, ArchitectureSwitch::LayerSides });
  const std::int64_t d = config.modelDimension;
  const std::int64_t rows = sequences.Rows();
  const bool endsBefore = last.second == ActivationPlace::Residual; // the last layer does not run
  const std::int64_t layers = endsBefore ? last.first : last.first + 1;
  std::vector<float> x(rows * d);
  EmbedInput(config, model.GetWeights(), input, sequences, x.data(), threads);
  LayerRunner runner(model, sequences.Longest(), threads);
  for (std::int64_t l = 0; l <= last.first; ++l)
  {
    ThrowIf<ModelError>(FindNotFinite(rows * d, x.data()) >= 0, "an activation before layer ", l,
      " is not finite; expected finite numbers.");
    for (const RowGroup& group : sequences.groups)
    {
      visitor(
        l, ActivationPlace::Residual, group, x.data() + (group.begin - sequences.FirstRow()) * d);
    }
    const auto visit = [&](ActivationPlace place, const RowGroup& group, const float* values)
    { visitor(l, place, group, values); };
    if (l < layers)
    {
      runner.Run(l, sequences, x.data(), visit, progress.Part(l, l + 1, layers));
    }
  }
}

std::int64_t VisitFloats(
  const TransformerConfig& config, const PackedSequences& sequences, int threads)
{
  return sequences.Rows() * config.modelDimension +
         LayerRunner::WorkingFloats(config, sequences.LargestGroup(), threads);
}

Activations CaptureActivations(const Transformer& model, const TransformerInput& input,
  const std::set<PlaceInLayer>& places, int threads, const Progress& progress)
{
  const TransformerConfig& config = model.GetConfig();
  const PackedSequences sequences(SequenceLengths(config, input), std::nullopt);
  Activations found;
  const auto keep =
    [&](std::int64_t l, ActivationPlace place, const RowGroup& group, const float* values)
  {
    if (places.count({ l, place }) != 0)
    {
      found[{ l, place }].assign(values, values + group.Rows() * WidthOf(config, place));
    }
  };
  VisitActivations(model, input, sequences, *places.rbegin(), threads, keep, progress);
  return found;
}

std::int64_t CaptureFloats(const TransformerConfig& config, std::int64_t length,
  const std::set<PlaceInLayer>& places, int threads)
{
  std::int64_t floats = VisitFloats(config, PackedSequences({ length }, std::nullopt), threads);
  for (const auto& [layer, place] : places)
  {
    floats += length * WidthOf(config, place);
  }
  return floats;
}

}
