#include "RecordTransformer.h"

#include "Error.h"
#include "Index.h"
#include "MappedFile.h"
#include "TransformerRun.h"

namespace atlas
{

void CheckInput(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  CheckInput(config, input);
  for (const std::int64_t layer : options.layers)
  {
    if (layer < 0 || layer >= config.layers)
    {
      throw OptionError("expected layers from 0 to " + std::to_string(config.layers - 1) +
                        ", found " + std::to_string(layer) + ".");
    }
  }
  if (options.logits && !model.HasLogits())
  {
    throw OptionError("the model has no unembedding, so there are no logits to record.");
  }
  CheckInterventions(config, SequenceLengths(config, input), options.interventions);
}

std::vector<SequenceRange> SplitSequences(
  const Transformer& model, const TransformerInput& input, int parts)
{
  const std::vector<std::int64_t> offsets =
    SequenceOffsets(SequenceLengths(model.GetConfig(), input));
  const auto count = static_cast<std::int64_t>(offsets.size()) - 1;
  std::vector<SequenceRange> ranges;
  std::int64_t first = 0;
  for (int part = 1; part <= parts; ++part)
  {
    // Ends before the sequence whose middle exceeds this fraction of all tokens.
    std::int64_t end = first;
    while (end < count && (offsets[ToIndex(end)] + offsets[ToIndex(end + 1)]) * parts <=
                            std::int64_t{ 2 } * part * offsets.back())
    {
      ++end;
    }
    ranges.push_back({ first, end });
    first = end;
  }
  return ranges;
}

MemoryEstimate EstimateMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  CheckInput(model, input, options);
  return TransformerRun(model, input, options).EstimateMemory();
}

std::optional<Recording> RecordTransformer(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  CheckInput(model, input, options);
  return ReadIntact(model.GetFiles(), [&] { return TransformerRun(model, input, options).Run(); });
}

}
