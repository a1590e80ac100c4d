#include "GeneratedText.h"

#include "Base/SystemLimits.h"
#include "Recording/RecordingPrefix.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

/// Cuts sequences to the time step shown if their keys are rotated otherwise by then than at the
/// end, which LongRope does: the recording at this step is not a part of that of the whole texts.
void CutToStep(const TransformerConfig& config, const std::vector<std::int64_t>& given,
  std::int64_t shown, RecorderInput& input)
{
  const RotaryScaling& scaling = config.rotaryScaling;
  std::vector<std::string> labels;
  std::vector<std::vector<std::int64_t>> sequences;
  bool isRescaled = false;
  auto label = input.labels.begin();
  for (std::size_t s = 0; s < given.size(); ++s)
  {
    const std::vector<std::int64_t>& whole = input.input.tokens[s];
    const std::int64_t all = whole.size();
    const std::int64_t length = std::min(all, given[s] + shown);
    isRescaled = isRescaled || (static_cast<double>(length) <= scaling.originalPositions &&
                                 static_cast<double>(all) > scaling.originalPositions);
    sequences.emplace_back(whole.begin(), whole.begin() + length);
    if (!input.labels.empty())
    {
      labels.insert(labels.end(), label, label + length);
      label += all;
    }
  }
  if (isRescaled && scaling.kind == RotaryScaling::Kind::LongRope)
  {
    input.input.tokens = std::move(sequences);
    input.labels = std::move(labels);
  }
}

void RequireMemoryFor(const Transformer& model, const TransformerInput& input,
  const GenerationOptions& options, const RecordOptions& recorded)
{
  TransformerInput whole = input;
  for (std::vector<std::int64_t>& sequence : whole.tokens)
  {
    sequence.resize(sequence.size() + static_cast<std::size_t>(options.count));
  }
  whole.segments.clear();
  const MemoryEstimate memory = EstimateMemory(model, whole, recorded);
  RequireMemory(
    static_cast<double>(memory.recording + memory.working + GenerationBytes(model, input, options)),
    "the recording with its generated tokens", "generate fewer tokens.");
}

}

TextSteps::TextSteps(const RecorderInput& input, std::int64_t shownTokens)
  : shown(shownTokens)
{
  for (const std::vector<std::int64_t>& sequence : input.input.tokens)
  {
    this->given.push_back(sequence.size());
  }
}

Recording TextSteps::Of(const Recording& recording) const
{
  std::vector<std::int64_t> lengths;
  bool isWhole = true;
  for (std::size_t s = 0; s < this->given.size(); ++s)
  {
    const std::int64_t all = recording.SequenceLength(static_cast<std::int64_t>(s));
    lengths.push_back(std::min(all, this->given[s] + this->shown));
    isWhole = isWhole && lengths.back() == all;
  }
  return isWhole ? recording : FirstTokens(recording, lengths);
}

bool GeneratedText::IsCurrent(const std::shared_ptr<const OpenTransformer>& model,
  const GenerationOptions& options, const TransformerInput& input) const
{
  const auto choice = [](const GenerationOptions& o)
  { return std::tie(o.count, o.temperature, o.topK, o.seed, o.ends); };
  return this->Model.lock() == model && choice(this->Options) == choice(options) &&
         this->Input == input;
}

void GeneratedText::Extend(const std::shared_ptr<const OpenTransformer>& model,
  const GenerationOptions& options, const RecordOptions& recorded, RecorderInput& input,
  TextSteps& steps)
{
  const TransformerConfig& config = model->GetModel().GetConfig();
  CheckGeneration(model->GetModel(), input.input, options);
  RequireMemoryFor(model->GetModel(), input.input, options, recorded);
  if (!this->IsCurrent(model, options, input.input))
  {
    this->Tokens = GenerateTokens(model->GetModel(), input.input, options);
    this->Model = model;
    this->Input = input.input;
    this->Options = options;
    this->Options.progress = {};
  }
  if (config.vision != nullptr && config.vision->seesWholePrompts)
  {
    input.input.prompts = steps.given;
  }
  for (std::size_t s = 0; s < this->Tokens.size(); ++s)
  {
    std::vector<std::int64_t>& sequence = input.input.tokens[s];
    sequence.insert(sequence.end(), this->Tokens[s].begin(), this->Tokens[s].end());
    if (s < input.input.segments.size())
    {
      std::vector<std::int64_t>& segments = input.input.segments[s];
      segments.resize(sequence.size(), segments.empty() ? 0 : segments.back());
    }
  }
  input.labels = LabelTokens(input.input.tokens, *model);
  steps.lastOffsets = SequenceOffsets(SequenceLengths(config, input.input));
  CutToStep(config, steps.given, steps.shown, input);
}

}
