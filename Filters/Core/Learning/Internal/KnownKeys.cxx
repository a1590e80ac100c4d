#include "KnownKeys.h"

#include "Index.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"
#include "Safetensors.h"

#include <algorithm>
#include <sstream>

namespace atlas
{

KnownKeyAttention MeasureKnownKeys(const Transformer& model, const TransformerInput& input,
  const std::vector<std::int64_t>& keys, int threads)
{
  RecordOptions options;
  options.values = false;
  options.threads = threads;
  const Recording recording = RecordTransformer(model, input, options);
  KnownKeyAttention result;
  std::int64_t count = 0;
  std::size_t row = 0;
  std::vector<float> weights;
  for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
  {
    const std::int64_t length = recording.SequenceLength(s);
    weights.resize(ToIndex(length * length));
    EvaluateAttentionRows(recording,
      { s, model.GetConfig().layers - 1, AllHeads, AttentionQuantity::Weights, 0, length },
      weights.data(), threads);
    for (auto first = weights.begin(); first != weights.end(); first += length, ++row)
    {
      if (keys[row] >= 0)
      {
        const float weight = first[keys[row]];
        const auto isStronger = [&](float other) { return other >= weight; };
        result.first += std::count_if(first, first + length, isStronger) == 1 ? 1 : 0;
        result.weight += static_cast<double>(weight);
        ++count;
      }
    }
  }
  result.first /= static_cast<double>(count);
  result.weight /= static_cast<double>(count);
  return result;
}

std::string PixelFile(const TransformerInput& input, const std::vector<std::int64_t>& shape)
{
  const std::vector<double> pixels(
    input.pixels.begin(), input.pixels.begin() + ElementCount(shape).value_or(0));
  const Tensor tensor = Tensor::FromDouble(DType::F32, shape, pixels);
  std::ostringstream file;
  WriteSafetensorViews(file, { { "pixel_values", tensor.View() } }, {});
  return file.str();
}

}
