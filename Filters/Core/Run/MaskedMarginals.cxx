#include "MaskedMarginals.h"

#include "Base/Error.h"
#include "RecordTransformer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace atlas
{
namespace
{

/// Sequences that run together.
std::int64_t SequencesAtOnce(const std::vector<std::int64_t>& tokens, const MaskedOptions& options)
{
  const auto length = std::max<std::int64_t>(static_cast<std::int64_t>(tokens.size()), 1);
  return std::max<std::int64_t>(options.tokensAtOnce / length, 1);
}

/// The sequence with each of the positions begin <= p < end of the list masked.
TransformerInput MaskedInput(const std::vector<std::int64_t>& tokens, const MaskedOptions& options,
  std::int64_t begin, std::int64_t end)
{
  TransformerInput input;
  for (std::int64_t p = begin; p < end; ++p)
  {
    input.tokens.push_back(tokens);
    input.tokens.back()[options.positions[p]] = options.mask;
  }
  return input;
}

RecordOptions LogitsAlone(const MaskedOptions& options)
{
  RecordOptions record;
  record.queriesAndKeys = false;
  record.valueNorms = false;
  record.values = false;
  record.logits = true;
  record.threads = options.threads;
  return record;
}

void CheckMasked(
  const Transformer& model, const std::vector<std::int64_t>& tokens, const MaskedOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  ThrowIf<OptionError>(config.input != InputKind::Tokens || config.encoder != nullptr ||
                         config.mask != AttentionMask::Bidirectional || !model.HasLogits(),
    "Input: expected a model that predicts masked tokens, such as ESM-2 with its head, found one "
    "of ",
    config.architecture, model.HasLogits() ? "." : " without a head.");
  const auto length = static_cast<std::int64_t>(tokens.size());
  for (const std::int64_t position : options.positions)
  {
    ThrowIf<OptionError>(position < 0 || position >= length,
      "positions: expected numbers from 0 to ", length - 1, ", found ", position, ".");
  }
  for (const std::int64_t id : options.candidates)
  {
    ThrowIf<OptionError>(id < 0 || id >= model.GetWeights().unembedding.outputs,
      "candidates: expected ids from 0 to ", model.GetWeights().unembedding.outputs - 1, ", found ",
      id, ".");
  }
}

/// The logarithm of the sum of exp of logits.
double LogSum(const float* logits, std::int64_t count)
{
  const auto largest = static_cast<double>(*std::max_element(logits, logits + count));
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
  {
    sum += std::exp(static_cast<double>(logits[i]) - largest);
  }
  return largest + std::log(sum);
}

}

std::uint64_t MaskedMemory(
  const Transformer& model, const std::vector<std::int64_t>& tokens, const MaskedOptions& options)
{
  CheckMasked(model, tokens, options);
  const std::int64_t count =
    std::min(SequencesAtOnce(tokens, options), static_cast<std::int64_t>(options.positions.size()));
  if (count == 0)
  {
    return 0;
  }
  const MemoryEstimate memory =
    EstimateMemory(model, MaskedInput(tokens, options, 0, count), LogitsAlone(options));
  return memory.recording + memory.working;
}

std::vector<double> PredictMasked(
  const Transformer& model, const std::vector<std::int64_t>& tokens, const MaskedOptions& options)
{
  CheckMasked(model, tokens, options);
  const auto all = static_cast<std::int64_t>(options.positions.size());
  const auto length = static_cast<std::int64_t>(tokens.size());
  const std::int64_t step = SequencesAtOnce(tokens, options);
  std::vector<double> found;
  found.reserve(all * options.candidates.size());
  for (std::int64_t begin = 0; begin < all; begin += step)
  {
    const std::int64_t end = std::min(begin + step, all);
    const Progress progress = options.progress.Part(begin, end, all);
    RecordOptions record = LogitsAlone(options);
    record.progress = progress;
    const Recording recording =
      RecordTransformer(model, MaskedInput(tokens, options, begin, end), record);
    for (std::int64_t p = begin; p < end; ++p)
    {
      const float* logits = recording.logits.Row((p - begin) * length + options.positions[p]);
      const double sum = LogSum(logits, recording.logits.columns);
      std::transform(options.candidates.begin(), options.candidates.end(),
        std::back_inserter(found),
        [&](std::int64_t id) { return static_cast<double>(logits[id]) - sum; });
    }
    progress(1);
  }
  return found;
}

}
