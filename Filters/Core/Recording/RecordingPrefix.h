#pragma once

#include "Recording.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The recording of the first lengths[s] tokens of each sequence s, from none to all: what a causal
/// model would record for the shorter sequences, unless its rotary embedding depends on their
/// length (LongRope). Of a transformer with an encoder and a decoder these are the tokens of the
/// target; the source stays whole. One sequence shares its memory with `recording`; rows of several
/// are copied. Throws OptionError if there is not one length per sequence, if one exceeds its
/// sequence, or if the mask is not causal and a sequence is shortened; ModelError if the recording
/// is inconsistent.
Recording FirstTokens(const Recording& recording, const std::vector<std::int64_t>& lengths);

/// Rows first <= row < end.
struct RowRange
{
  std::int64_t first;
  std::int64_t end;
};

/// The recording of some rows of each sequence, such as those that are no padding; it has no parts
/// and no pictures. Memory is shared as by FirstTokens.
Recording RowsOfSequences(const Recording& recording, const std::vector<RowRange>& ranges);

}
