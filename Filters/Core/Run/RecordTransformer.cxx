#include "RecordTransformer.h"

#include "Error.h"
#include "Index.h"
#include "MappedFile.h"
#include "PictureTokens.h"
#include "PromptMeans.h"
#include "TransformerRun.h"

#include <algorithm>
#include <functional>
#include <tuple>

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
  if (interventions.means.size() != expected)
  {
    throw OptionError("interventions: expected " + std::to_string(expected) +
                      " means over prompts, found " + std::to_string(interventions.means.size()) +
                      ".");
  }
}

}

bool RecordChoice::operator==(const RecordChoice& other) const
{
  const auto tie = [](const RecordChoice& choice)
  {
    return std::tie(choice.queriesAndKeys, choice.valueNorms, choice.values, choice.headOutputs,
      choice.residual, choice.logits, choice.routing, choice.finalScale, choice.layers,
      choice.interventions);
  };
  return tie(*this) == tie(other);
}

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
  if (options.routing && config.experts == 0)
  {
    throw OptionError("the model has no experts, so there is no routing to record.");
  }
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
