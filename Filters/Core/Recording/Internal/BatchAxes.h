#pragma once

// Internal to Core.

#include "ForeignNames.h"

#include <initializer_list>

namespace atlas
{

/// The tokens that the arrays of a file in the names of others are about: B sequences of T tokens,
/// some of which are padding. Turns arrays with these axes into matrices with a row per token.
class BatchAxes
{
public:
  /// Takes B and T from the first array whose axes are certain, and leaves out what attention_mask
  /// calls padding. Throws ModelError.
  BatchAxes(RecordingArrays& arrays, const ForeignNames& names);

  bool HasAxis() const { return this->HasBatch; } ///< whether arrays have the axis B
  std::int64_t Sequences() const { return this->Batch; }
  std::int64_t Length() const { return this->Tokens; } ///< T, with padding

  /// The rows of [B * T] that are no padding.
  const std::vector<std::int64_t>& Kept() const { return this->Rows; }

  /// First of them of each sequence, then their count.
  const std::vector<std::int64_t>& Offsets() const { return this->FirstRows; }

  /// [B, sizes...] or [sizes...]
  Shape With(std::initializer_list<std::int64_t> sizes) const;

  /// A number per token, [B,T].
  std::vector<std::int64_t> ReadIntegers(RecordingArrays& arrays, const std::string& name) const;

  /// A vector per token, [B,T,d].
  SharedMatrix ReadVectors(RecordingArrays& arrays, const std::string& name) const;

  /// A vector per token and head: a matrix for each head. `flatWidth` is the length of the vectors
  /// of an array that is flat; 0: unknown.
  std::vector<SharedMatrix> ReadHeads(
    RecordingArrays& arrays, const ForeignArray& from, std::int64_t flatWidth) const;

  /// Attention of one sequence, without padded queries and keys: the matrix [T,T] behind so many of
  /// an array.
  SharedMatrix ReadSquare(const RecordingArrays& arrays, const std::string& name,
    const LoadedArray& array, std::int64_t before, std::int64_t sequence, bool isScores) const;

private:
  bool HasBatch = false;
  std::int64_t Batch = 1;
  std::int64_t Tokens = -1;
  std::vector<std::int64_t> Rows;
  std::vector<std::int64_t> FirstRows;

  bool TakeAxes(
    const RecordingArrays& arrays, const std::string& name, std::size_t axes, std::size_t behind);
  bool TakeAxesOfHeads(const RecordingArrays& arrays, const ForeignNames& names);
  bool FindAxes(const RecordingArrays& arrays, const ForeignNames& names);
  void LeaveOutPadding(RecordingArrays& arrays);
};

}
