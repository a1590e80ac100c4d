#include "RecordTransformer.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Files/MappedFile.h"
#include "Internal/TransformerRun.h"
#include "Preprocessing/PictureTokens.h"
#include "PromptMeans.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace atlas
{
namespace
{

/// Throws OptionError unless there is a mean of each site that is replaced by it.
void RequireMeans(
  const Transformer& model, const TransformerInput& input, const Interventions& interventions)
{
  const TransformerConfig& config = model.GetConfig();
  const std::size_t expected =
    SequenceLengths(config, input).size() * ToIndex(MeanColumns(config, interventions));
  ThrowIf<OptionError>(interventions.means.size() != expected, "interventions: expected ", expected,
    " means over prompts, found ", interventions.means.size(), ".");
}

}

void CheckInput(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  CheckInput(config, input);
  for (const std::int64_t layer : options.layers)
  {
    ThrowIf<OptionError>(layer < 0 || layer >= config.layers, "expected layers from 0 to ",
      config.layers - 1, ", found ", layer, ".");
  }
  ThrowIf<OptionError>(options.logits && !model.HasLogits(),
    "the model has no unembedding, so there are no logits to record.");
  ThrowIf<OptionError>(options.routing && config.experts == 0,
    "the model has no experts, so there is no routing to record.");
  CheckInterventions(config, SequenceLengths(config, input), options.interventions);
}

std::vector<SequenceRange> SplitSequences(
  const Transformer& model, const TransformerInput& input, int parts)
{
  const TransformerConfig& config = model.GetConfig();
  std::vector<std::int64_t> lengths = SequenceLengths(config, input);
  const std::vector<std::int64_t> sources =
    config.vision == nullptr ? SourceLengths(config, input) : EncoderRows(config, input);
  std::transform(sources.begin(), sources.end(), lengths.begin(), lengths.begin(), std::plus<>());
  const std::vector<std::int64_t> offsets = SequenceOffsets(lengths);
  const auto count = static_cast<std::int64_t>(offsets.size()) - 1;
  std::vector<SequenceRange> ranges;
  std::int64_t first = 0;
  for (int part = 1; part <= parts; ++part)
  {
    // Ends before the sequence whose middle exceeds this fraction of all tokens.
    std::int64_t end = first;
    while (end < count &&
           (offsets[end] + offsets[end + 1]) * parts <= std::int64_t{ 2 } * part * offsets.back())
    {
      ++end;
    }
    ranges.push_back({ first, end });
    first = end;
  }
  return ranges;
}

std::vector<SequenceRange> EncoderRanges(const TransformerConfig& config,
  const TransformerInput& input, const std::vector<SequenceRange>& texts)
{
  const std::vector<ImageToken> tokens = ImageTokens(config, input);
  std::vector<SequenceRange> ranges;
  std::transform(texts.begin(), texts.end(), std::back_inserter(ranges),
    [&](const SequenceRange& range) { return EncoderRange(config, input, tokens, range); });
  return ranges;
}

MemoryEstimate EstimateMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  CheckInput(model, input, options);
  return TransformerRun(model, input, options).EstimateMemory();
}

Recording RecordTransformer(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  CheckInput(model, input, options);
  RequireMeans(model, input, options.interventions);
  return ReadIntact(model.GetFiles(), [&] { return TransformerRun(model, input, options).Run(); });
}

}
