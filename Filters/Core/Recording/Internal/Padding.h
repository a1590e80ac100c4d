#pragma once

// Internal to Core: padding at the ends of sequences.

#include "RecordingArrays.h"
#include "RecordingPrefix.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// The rows of each sequence that are tokens, as the array attention_mask says: 1 at tokens, 0 at
/// padding. Without it, all rows. Its shape is [rows] or, of sequences of one length, [sequences,
/// rows of each]. `offsets`: the first row of each sequence, then the number of rows. Throws
/// ModelError if the mask has another shape or other numbers, if padding is not at the ends of a
/// sequence, or if one has no tokens.
std::vector<RowRange> ReadPadding(
  RecordingArrays& arrays, const std::vector<std::int64_t>& offsets);

/// A recording without padding, and the rows of each sequence in the arrays that are its tokens.
struct UnpaddedRecording
{
  Recording recording;
  std::vector<RowRange> tokens;
  std::int64_t rows = 0; ///< in the arrays, with padding
};

/// The texts of tokens, if there is one for each row, without those of padding.
std::vector<std::string> WithoutPadding(
  std::vector<std::string> texts, const std::vector<RowRange>& tokens, std::int64_t rows);

}
