#include "HeadUpdates.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Files/MappedFile.h"
#include "Numerics/DotProduct.h"
#include "Numerics/MatrixProduct.h"
#include "Recording/RecordedAttention.h"
#include "Weights/ArchitectureLimits.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace atlas
{
namespace
{

double Norm(const float* x, std::int64_t count)
{
  return std::sqrt(DotProduct(x, x, count));
}

StreamUpdate UpdateOf(const float* update, const float* stream, std::int64_t count)
{
  const double length = Norm(update, count);
  const double before = Norm(stream, count);
  StreamUpdate result;
  if (before > 0)
  {
    result.magnitude = static_cast<float>(length / before);
  }
  if (before > 0 && length > 0)
  {
    const double cosine = DotProduct(update, stream, count) / (length * before);
    result.orientation = static_cast<float>(std::clamp(cosine, -1., 1.));
  }
  return result;
}

const SharedMatrix& ResidualBefore(const Recording& recording, std::int64_t layer)
{
  const bool isKnown = ToIndex(layer) < recording.residual.size();
  ThrowIf<OptionError>(!isKnown || !recording.residual[layer].IsRecorded(),
    "the recording has no residual stream before layer ", layer,
    ", with which updates are compared; record Residual.");
  return recording.residual[layer];
}

const SharedMatrix& OutputOf(const Recording& recording, std::int64_t layer, std::int64_t head)
{
  const SharedMatrix& output = FindHead(recording, layer, head).output;
  ThrowIf<OptionError>(!output.IsRecorded(), "the recording has no outputs of layer ", layer,
    ", head ", head, "; record HeadOutputs.");
  const SharedMatrix& stream = ResidualBefore(recording, layer);
  ThrowIf<OptionError>(stream.columns != output.columns, "layer ", layer, ", head ", head,
    ": expected outputs of ", stream.columns, " components like the residual stream, found ",
    output.columns, ".");
  return output;
}

/// z = sum_j a_ij v_j of queries begin <= i < end, behind the attention that `work` begins with.
const float* MixValues(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, std::int64_t begin, std::int64_t end, std::vector<float>& work)
{
  const SharedMatrix& value = FindHead(recording, layer, head).value;
  const std::int64_t keys = recording.SequenceLength(sequence);
  const std::int64_t weights = (end - begin) * keys;
  work.resize(weights + (end - begin) * value.columns);
  float* mixed = work.data() + weights;
  EvaluateAttention(
    recording, sequence, layer, head, AttentionQuantity::Weights, begin, end, work.data());
  const SingleThreadedBlas blas;
  MultiplyMatrices(end - begin, value.columns, keys, 1, { work.data(), keys },
    { value.Row(recording.sequenceOffsets[sequence]), value.columns }, mixed, value.columns);
  RequireIntact(value.values.get());
  return mixed;
}

}

bool HasContext(const RecordedHead& head)
{
  return head.value.IsRecorded() &&
         (head.HasAttention() || (head.query.IsRecorded() && head.key.IsRecorded()));
}

void MeasureUpdates(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, std::int64_t begin, std::int64_t end, std::vector<float>& work,
  HeadUpdate* updates)
{
  const SharedMatrix& output = OutputOf(recording, layer, head);
  const SharedMatrix& stream = ResidualBefore(recording, layer);
  const RecordedHead& recorded = FindHead(recording, layer, head);
  const float* mixed = HasContext(recorded) && begin < end
                         ? MixValues(recording, sequence, layer, head, begin, end, work)
                         : nullptr;
  const std::int64_t first = recording.sequenceOffsets[sequence];
  for (std::int64_t i = begin; i < end; ++i)
  {
    const float* before = stream.Row(first + i);
    HeadUpdate& update = updates[i - begin];
    update.output = UpdateOf(output.Row(first + i), before, stream.columns);
    if (mixed != nullptr)
    {
      const std::int64_t size = recorded.value.columns;
      const double length = Norm(before, stream.columns);
      update.contextMagnitude =
        length > 0 ? static_cast<float>(Norm(mixed + (i - begin) * size, size) / length) : 0;
    }
  }
  RequireIntact(output.values.get());
  RequireIntact(stream.values.get());
}

std::vector<float> OutputBias(const Transformer& model, std::int64_t layer)
{
  RefuseSwitches(model.GetConfig(), "updates of the residual stream",
    { ArchitectureSwitch::Encoder, ArchitectureSwitch::NormsAfterToo,
      ArchitectureSwitch::LayerScales, ArchitectureSwitch::LayerSides });
  std::vector<float> bias(model.GetConfig().modelDimension, 0.F);
  const TensorView& view = model.GetWeights().layers.at(layer).output.bias;
  if (view.data != nullptr)
  {
    view.ToFloat(0, bias.size(), bias.data());
  }
  return bias;
}

void MeasureLayerUpdates(const Recording& recording, std::int64_t layer,
  const std::vector<float>& outputBias, std::int64_t begin, std::int64_t end, StreamUpdate* updates)
{
  const SharedMatrix& stream = ResidualBefore(recording, layer);
  const std::size_t heads = FindLayer(recording, layer).heads.size();
  std::vector<const SharedMatrix*> outputs;
  outputs.reserve(heads);
  for (std::size_t h = 0; h < heads; ++h)
  {
    outputs.push_back(&OutputOf(recording, layer, static_cast<std::int64_t>(h)));
  }
  std::vector<float> sum;
  for (std::int64_t row = begin; row < end; ++row)
  {
    sum = outputBias;
    for (const SharedMatrix* output : outputs)
    {
      std::transform(sum.begin(), sum.end(), output->Row(row), sum.begin(), std::plus<>());
    }
    updates[row - begin] = UpdateOf(sum.data(), stream.Row(row), stream.columns);
  }
  for (const SharedMatrix* output : outputs)
  {
    RequireIntact(output->values.get());
  }
}

std::vector<std::int64_t> CountInBins(
  const std::vector<float>& values, double least, double largest, std::size_t bins)
{
  std::vector<std::int64_t> counts(bins, 0);
  const double perUnit = largest > least ? static_cast<double>(bins) / (largest - least) : 0;
  for (const float value : values)
  {
    const double bin = std::floor((static_cast<double>(value) - least) * perUnit);
    ++counts[static_cast<std::size_t>(std::clamp(bin, 0., static_cast<double>(bins - 1)))];
  }
  return counts;
}

}
