#pragma once

// Internal to Core: what attention that a file holds says about the recording that it is part of.

#include "Recording/Recording.h"

#include <optional>

namespace atlas
{

/// Whether a query of the first layer attends to a later key, as the weights or scores there show;
/// nothing if that layer has no stored attention.
std::optional<bool> StoredAttentionLooksAhead(const Recording& recording);

/// Removes the stored attention of all heads if queries and keys give it: if for every query no
/// more of the attention lies on other keys (the total variation distance of the two rows of
/// weights) than rounding to half precision explains. Else it is kept.
///
/// Let s be the largest absolute value of the scores of a query with the keys that it may attend
/// to. BF16 has 8 significant bits, so that a score is rounded by up to 2^-8 s. If all scores
/// change by up to d, the distance of their softmax is at most tanh(d / 2) < d / 2: s / 512. F16
/// rounds by an eighth of that; weights that are rounded themselves add 0.2 %. The tolerance is s /
/// 512, but at least 2 %, for a few roundings in succession, and at most 25 % (s = 128), beyond
/// which the comparison would say little: then attention is kept, which is safe.
///
/// Runs on up to ThreadCount(threads) threads. Returns a warning that says what was done, and why;
/// "" if no head has both. Throws as EvaluateAttention.
std::string DropStoredAttention(Recording& recording, int threads);

}
