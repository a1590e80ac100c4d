#pragma once

#include "Weights/TransformerConfig.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace atlas
{

/// The logit of a token minus that of another, at a position of a sequence.
struct LogitPair
{
  std::int64_t target = 0; ///< token ids
  std::int64_t against = 0;
  std::int64_t position = 0;
};

/// Throws OptionError unless the tokens that are given have logits and differ.
void RequireTokens(const TransformerConfig& config, const std::optional<std::int64_t>& target,
  const std::optional<std::int64_t>& against);

/// The two tokens that compare a run with another one, as far as they are not given, by the logits
/// of both at a position: the target is what the other run predicts, and it is compared with what
/// the run predicts. If these are the same, the target is the token whose logit rises most from the
/// run to the other, and the one against it that whose logit falls most. If one that is given is
/// the default of the other, they change places. Throws OptionError if both have the same logits
/// and a token is to be chosen by their change; `name` is that of the other run's prompt.
LogitPair ChooseTokens(const std::optional<std::int64_t>& target,
  const std::optional<std::int64_t>& against, const std::vector<float>& run,
  const std::vector<float>& other, const char* name);

/// Likewise of one run alone: the most likely token against the second.
LogitPair ChooseTokens(const std::optional<std::int64_t>& target,
  const std::optional<std::int64_t>& against, const std::vector<float>& run);

}
