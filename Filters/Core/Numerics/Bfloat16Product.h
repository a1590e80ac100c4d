#pragma once

#include "MatrixProduct.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// Whether this machine multiplies numbers of BF16, floats with 8 significant bits, twice as fast
/// as floats (AVX512-BF16), and the instruction set in use (InstructionSets.h) is AVX-512.
bool HasBfloat16Products();

/// Rounds floats to numbers of BF16, ties to even.
void RoundToBfloat16(std::int64_t count, float* values);

/// Rows of a product [rows, inner], rounded to BF16. This class and the next are for machines with
/// HasBfloat16Products.
class Bfloat16Rows
{
public:
  explicit Bfloat16Rows(std::int64_t inner);

  void Clear() { this->Pairs.clear(); }
  void Add(const float* row);

  std::int64_t Count() const;

private:
  std::int64_t Inner;
  std::vector<std::uint32_t> Pairs; ///< [rows, inner / 2], the first number in the lower half

  friend class Bfloat16Columns;
};

/// Columns of a product [inner, columns], rounded to BF16.
class Bfloat16Columns
{
public:
  /// Replaces the columns by those of b.
  void Set(const MatrixBlock& b, std::int64_t inner, std::int64_t columns);

  /// The floats between rows of a product: the number of columns, rounded up to whole panels.
  std::int64_t Stride() const;

  /// Computes product = rows b with sums in single precision, [rows, Stride()]. The order of the
  /// sums is that of the inner index, whatever the number of rows: a row of the result depends on
  /// its own row alone. Numbers below 2^-126 count as 0.
  void Multiply(const Bfloat16Rows& rows, float* product) const;

private:
  std::int64_t Inner = 0;
  std::int64_t Columns = 0;
  std::vector<std::uint32_t> Pairs; ///< [panels, inner / 2, 64]
};

}
