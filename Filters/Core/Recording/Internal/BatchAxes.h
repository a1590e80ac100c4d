#pragma once

#include "ForeignNames.h"
#include "Padding.h"

#include <initializer_list>

namespace atlas
{

/// The batch and token axes of arrays with foreign names: B sequences of T tokens, some of which
/// are padding. Converts arrays with these axes to matrices with one row per token.
class BatchAxes
{
public:
  /// Takes B and T from the first array with unambiguous axes, and drops the tokens that
  /// attention_mask marks as padding. Throws ModelError.
  BatchAxes(RecordingArrays& arrays, const ForeignNames& names);

  bool HasAxis() const { return this->HasBatch; } ///< whether arrays have a batch axis B
  std::int64_t Sequences() const { return this->Batch; }
  std::int64_t Length() const { return this->Tokens; } ///< T, including padding

  /// The rows of [B * T] of each sequence that are not padding.
  const std::vector<RowRange>& TokenRows() const { return this->Kept; }

  /// The index of the first such row of each sequence, then their number.
  const std::vector<std::int64_t>& Offsets() const { return this->FirstRows; }

  /// [B, sizes...] or [sizes...]
  Shape With(std::initializer_list<std::int64_t> sizes) const;

  /// Reads one integer per token, [B,T].
  std::vector<std::int64_t> ReadIntegers(RecordingArrays& arrays, const std::string& name) const;

  /// Reads one vector per token, [B,T,d].
  SharedMatrix ReadVectors(RecordingArrays& arrays, const std::string& name) const;

  /// Reads one vector per token and head, and returns a matrix per head. `flatWidth` is the length
  /// of the vectors if the array is flat; 0 if unknown.
  std::vector<SharedMatrix> ReadHeads(
    RecordingArrays& arrays, const ForeignArray& from, std::int64_t flatWidth) const;

  /// Reads the attention of one sequence, without padded queries and keys, from the matrix [T,T]
  /// that follows `before` matrices of an array.
  SharedMatrix ReadSquare(const RecordingArrays& arrays, const std::string& name,
    const LoadedArray& array, std::int64_t before, std::int64_t sequence, bool isScores) const;

private:
  bool HasBatch = false;
  std::int64_t Batch = 1;
  std::int64_t Tokens = -1;
  std::vector<RowRange> Kept;
  std::vector<std::int64_t> Rows;
  std::vector<std::int64_t> FirstRows;

  bool TakeAxes(
    const RecordingArrays& arrays, const std::string& name, std::size_t axes, std::size_t behind);
  bool TakeAxesOfHeads(const RecordingArrays& arrays, const ForeignNames& names);
  bool FindAxes(const RecordingArrays& arrays, const ForeignNames& names);
  void LeaveOutPadding(RecordingArrays& arrays);
};

}
