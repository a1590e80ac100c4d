#pragma once

// Internal to Core: padding at the ends of sequences.

#include "Recording/RecordingPrefix.h"
#include "RecordingArrays.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// What an array of each row becomes without padding.
template<class List>
List WithoutPadding(const List& list, const std::vector<RowRange>& tokens)
{
  List kept;
  for (const RowRange& range : tokens)
  {
    kept.insert(kept.end(), list.begin() + range.first, list.begin() + range.end);
  }
  return kept;
}

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

}
