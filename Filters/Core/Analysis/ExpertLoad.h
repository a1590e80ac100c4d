#pragma once

#include "Recording/Recording.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// How the tokens of all sequences use an expert of a layer.
struct ExpertLoad
{
  std::int32_t layer = 0;
  std::int32_t expert = 0;
  std::int64_t count = 0; ///< tokens that it was chosen for
  double share = 0;       ///< of all tokens
  double weight = 0;      ///< mean over the tokens that it was chosen for; 0 if there are none
  double score = 0;       ///< likewise of the router's score, where it is recorded
  double bias = 0;        ///< that is added to scores where experts are chosen; 0: none
};

/// The loads of all experts, by layer and number. Of equal use, an expert's share is the number of
/// experts per token divided by that of all (Fedus et al. 2022). Throws ModelError if the recording
/// has no routing.
std::vector<ExpertLoad> MeasureExperts(const Recording& recording);

/// A token that a layer sends to an expert. Tokens are the same if they have the same id or, in
/// recordings without ids, the same text.
struct ExpertToken
{
  std::int32_t layer = 0;
  std::int32_t expert = 0;
  std::int32_t rank = 0;  ///< from 1
  std::int64_t row = 0;   ///< where the recording has the token first
  std::int64_t count = 0; ///< places where it goes to the expert
  double share = 0;       ///< of all places where it is
  double weight = 0;      ///< mean over the places where it goes to the expert
  double score = 0;       ///< likewise of the router's score, where it is recorded
};

/// Whether a layer has the scores of its router and the biases of its experts.
bool HasExpertBias(const Recording& recording);

/// The tokens that go to each expert most often, at most `top` of each, by layer, expert and rank;
/// of equal counts the one with the larger weight, then the first in the recording. Empty if tokens
/// have neither ids nor texts. Throws ModelError if the recording has no routing, and OptionError
/// if `top` is less than 1.
std::vector<ExpertToken> TokensOfExperts(const Recording& recording, std::int64_t top);

/// The recorded layers that have routing. Throws ModelError if there are none.
std::vector<const RecordedLayer*> RoutedLayers(const Recording& recording);

/// The one with this index. Throws OptionError, which names those that there are, if it has no
/// routing.
const RecordedLayer& RoutedLayer(const Recording& recording, std::int64_t index);

}
