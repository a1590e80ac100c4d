#pragma once

// Internal to Core: the rows of the matrices in a transformer run.

#include "Preprocessing/TransformerInput.h"

#include <optional>

namespace atlas
{

/// A group of sequences that share matrix products.
struct RowGroup
{
  std::int64_t begin = 0; ///< rows begin <= row < end of all sequences; the lists
  std::int64_t end = 0;   ///< below count rows from `begin`
  std::int64_t past = 0;  ///< tokens of the only sequence that were run before: their keys and
                          ///< values are in the rows before those of this group
  std::vector<std::int64_t> offsets;   ///< first row of each sequence, then the row count
  std::vector<std::int64_t> positions; ///< of each row in its sequence
  std::vector<std::int64_t> lengths;   ///< of each row's sequence
  std::vector<RotaryPlace> places;     ///< of each row; empty: by its position alone
  std::vector<std::int32_t> keyEnds;   ///< of each row, see HeadScores; empty: none

  std::int64_t Rows() const { return this->end - this->begin; }
};

/// The tokens of all sequences as rows, one sequence after another without padding, and which of
/// them are run.
struct PackedSequences
{
  /// Runs the sequences of `range`, or all. Throws OptionError if the range exceeds the sequences.
  PackedSequences(
    const std::vector<std::int64_t>& lengths, const std::optional<SequenceRange>& range);

  /// Likewise, in groups whose sources, of these lengths, are not longer than a group either.
  PackedSequences(const std::vector<std::int64_t>& lengths,
    const std::optional<SequenceRange>& range, const std::vector<std::int64_t>& sources);

  /// The sources of these sequences, in the same groups.
  PackedSequences Sources(const std::vector<std::int64_t>& lengths) const;

  /// The next `rows` tokens of one sequence, after `past` tokens that were run before.
  static PackedSequences Continue(std::int64_t past, std::int64_t rows);

  std::int64_t past = 0;             ///< see RowGroup
  std::vector<std::int64_t> offsets; ///< first row of each sequence, then the row count
  SequenceRange run;                 ///< sequences that are run
  std::vector<RowGroup> groups;      ///< groups of the sequences in `run`

  /// Gives the rows of all groups their places, of which there is one for each row of all
  /// sequences.
  void SetPlaces(const std::vector<RotaryPlace>& places);

  /// Likewise the numbers of keys that they see.
  void SetKeyEnds(const std::vector<std::int32_t>& ends);

  /// In tokens.
  std::int64_t Length(std::int64_t sequence) const
  {
    return this->offsets[sequence + 1] - this->offsets[sequence];
  }

  /// The sequence that a row belongs to.
  std::int64_t SequenceAt(std::int64_t row) const;

  std::int64_t FirstRow() const { return this->offsets[this->run.first]; }
  std::int64_t EndRow() const { return this->offsets[this->run.end]; }

  /// The number of rows to run, FirstRow() <= row < EndRow().
  std::int64_t Rows() const { return this->EndRow() - this->FirstRow(); }

  std::int64_t LargestGroup() const; ///< rows
  std::int64_t Longest() const;      ///< tokens of the longest sequence to run
  std::int64_t LongestOfAll() const; ///< of those that are not run, too
};

}
