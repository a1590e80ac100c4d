#pragma once

// Internal to Core: what attention that a file holds says about the recording that it is part of.

#include "Recording.h"

#include <optional>

namespace atlas
{

/// Whether a query of the first layer attends to a later key, as the weights or scores there show;
/// nothing if that layer has no stored attention.
std::optional<bool> StoredAttentionLooksAhead(const Recording& recording);

/// Removes the stored attention of heads if queries and keys give it, for which the first sequence
/// is looked at. Returns a warning that says what was done, and why; "" if no head has both.
std::string DropStoredAttention(Recording& recording);

}
