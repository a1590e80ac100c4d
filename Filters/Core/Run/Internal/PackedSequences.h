#pragma once

// Internal to Core: the rows of the matrices that a transformer computes.

#include "TransformerInput.h"
#include "TransformerLinear.h"

#include <optional>

namespace atlas
{

/// Sequences that share matrix products.
struct RowGroup
{
  std::int64_t begin = 0;              ///< rows begin <= row < end of all sequences; what follows
  std::int64_t end = 0;                ///< counts rows from `begin` on
  std::vector<std::int64_t> offsets;   ///< first row of each sequence, then the row count
  std::vector<std::int64_t> positions; ///< of each row in its sequence
  std::vector<RowTile> tiles;

  std::int64_t Rows() const { return this->end - this->begin; }
};

/// The tokens of all sequences as rows, one sequence behind the other without padding, and those of
/// them that are run.
struct PackedSequences
{
  /// Runs the sequences of `range`, or all. Throws OptionError for a range that is not within the
  /// sequences.
  PackedSequences(
    const std::vector<std::int64_t>& lengths, const std::optional<SequenceRange>& range);

  std::vector<std::int64_t> offsets; ///< first row of each sequence, then the row count
  SequenceRange run;                 ///< sequences that are run
  std::vector<RowGroup> groups;      ///< of these

  std::int64_t Length(std::int64_t sequence) const; ///< tokens

  std::int64_t FirstRow() const;
  std::int64_t EndRow() const;

  /// Rows to run, from FirstRow to EndRow.
  std::int64_t Rows() const { return this->EndRow() - this->FirstRow(); }

  std::int64_t LargestGroup() const;  ///< rows
  std::vector<RowTile> Tiles() const; ///< of all rows to run, counted from FirstRow
};

/// First row of each of the sequences of these lengths, then the row count.
std::vector<std::int64_t> SequenceOffsets(const std::vector<std::int64_t>& lengths);

}
