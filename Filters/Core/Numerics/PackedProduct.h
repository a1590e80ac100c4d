#pragma once

#include "Base/AttentionKinds.h"
#include "Base/Index.h"
#include "MatrixProduct.h"

#include <cstdint>
#include <memory>

namespace atlas
{

/// Whether this machine multiplies numbers of BF16, floats with 8 significant bits, twice as fast
/// as floats (AVX512-BF16), and the instruction set in use (InstructionSets.h) is AVX-512.
bool HasBfloat16Products();

/// Rounds floats to numbers of BF16, ties to even.
void RoundToBfloat16(std::int64_t count, float* values);

/// Numbers that begin with a line of the cache, so that vectors of them lie in one line each.
template<class Number>
class AlignedNumbers
{
public:
  /// Reallocates `count` uninitialized elements. They are not from aligned operator
  /// new, with which recordings took 60 MiB more (measured with glibc 2.36).
  void Allocate(std::int64_t count)
  {
    this->Memory.reset(new Number[ToIndex(count) + LineBytes / sizeof(Number)]);
    const auto address = reinterpret_cast<std::uintptr_t>(this->Memory.get());
    this->First = this->Memory.get() + (LineBytes - address % LineBytes) / sizeof(Number);
  }

  void Clear() { *this = {}; }

  /// Or nullptr if there are none.
  Number* Data() const { return this->First; }

private:
  static constexpr std::size_t LineBytes = 64;

  std::unique_ptr<Number[]> Memory;
  Number* First = nullptr;
};

/// The columns of a matrix [inner, columns] in the order in which they are multiplied. Sums are in
/// single precision, in the order of the inner index. A row of a product thus depends on its own
/// row alone, whatever it is computed with; OpenBLAS, whose kernels take several rows at a time,
/// sums in an order that depends on the place of a row. It differs between instruction sets.
class PackedColumns
{
public:
  /// Replaces the columns by those of b. Sizes are at least 1. With Bfloat16 both factors of all
  /// products are rounded to BF16.
  void Set(const MatrixBlock& b, std::int64_t inner, std::int64_t columns,
    ProductPrecision products = ProductPrecision::Single);

  /// The floats between the rows of a product: the number of columns, rounded up.
  std::int64_t Stride() const { return this->Panels * this->Width; }

  /// Computes product = from b, [rows, Stride()]; padding columns are undefined.
  /// `from` is [rows, inner] with the given stride. The instruction set is that of Set. Where the
  /// machine multiplies BF16, numbers below 2^-126 count as 0.
  void Multiply(std::int64_t rows, const float* from, std::int64_t stride, float* product) const;

  /// The same for product += from b. Of any parts of the inner index, of which all but the last are
  /// even, the bytes are those of Multiply.
  void Add(std::int64_t rows, const float* from, std::int64_t stride, float* product) const;

private:
  std::int64_t Inner = 0;
  std::int64_t Width = 0; ///< columns of a panel
  std::int64_t Panels = 0;
  ProductPrecision Products = ProductPrecision::Single;
  std::int64_t Capacity = 0; ///< numbers of Floats

  AlignedNumbers<float> Floats; ///< [panels, inner, width]
  /// Or numbers of BF16 [panels, inner / 2, width] in pairs, the first in the lower half.
  AlignedNumbers<std::uint32_t> Pairs;

  void Compute(
    std::int64_t rows, const float* from, std::int64_t stride, float* product, bool adds) const;
};

}
