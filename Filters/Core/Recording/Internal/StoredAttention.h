#pragma once

// Internal to Core: what attention that a file holds says about the recording that it is part of.

#include "Recording.h"

#include <optional>

namespace atlas
{

/// Whether a query of the first layer attends to a later key, as the weights or scores there show;
/// nothing if that layer has no stored attention.
std::optional<bool> StoredAttentionLooksAhead(const Recording& recording);

/// Removes the stored attention of all heads if queries and keys give it: if for every query of
/// every sequence and head at most 2 % of the attention lies on other keys (the total variation
/// distance of the two rows of weights), in half precision too. Else it is kept. Attention is
/// computed once, in blocks, on up to ThreadCount(threads) threads. Returns a warning that says
/// what was done, and why; "" if no head has both. Throws as EvaluateAttention.
std::string DropStoredAttention(Recording& recording, int threads);

}
