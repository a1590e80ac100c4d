#pragma once

#include "OpenTransformer.h"
#include "RecorderInput.h"
#include "Recording/Recording.h"
#include "Run/GenerateTokens.h"
#include "Run/RecordTransformer.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace atlas
{

/// The time steps of texts that grow: a step shows the given tokens, and some of those that the
/// model has added.
struct TextSteps
{
  std::vector<std::int64_t> given;       ///< tokens per sequence
  std::int64_t shown = 0;                ///< added tokens to show, at most
  std::vector<std::int64_t> lastOffsets; ///< of the sequences with all tokens

  TextSteps(const RecorderInput& input, std::int64_t shownTokens);

  /// What is shown of a recording of the whole texts.
  Recording Of(const Recording& recording) const;
};

/// The sequences with the tokens that a model added to them last, so that a time step of the same
/// text runs nothing.
class GeneratedText
{
public:
  /// Adds tokens and their labels to the sequences of `input`. Texts whose recording at this step
  /// is not a part of that of the whole texts are cut to it (LongRope). `recorded`: what will be
  /// recorded of them, for which there must be memory. Throws as GenerateTokens does.
  void Extend(const std::shared_ptr<const OpenTransformer>& model, const GenerationOptions& options,
    const RecordOptions& recorded, RecorderInput& input, TextSteps& steps);

private:
  std::weak_ptr<const OpenTransformer> Model;
  TransformerInput Input;
  GenerationOptions Options;
  std::vector<std::vector<std::int64_t>> Tokens;

  bool IsCurrent(const std::shared_ptr<const OpenTransformer>& model,
    const GenerationOptions& options, const TransformerInput& input) const;
};

}
