#include "RowProduct.h"

#include "InstructionSets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Numerics/RowProduct.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before this header, which is read once per target.
#include <hwy/highway.h>

// Read once, whatever the number of targets.
#ifndef ATLAS_ROW_FACTORS
#define ATLAS_ROW_FACTORS

namespace atlas
{

/// Rows of `inner` numbers, and where their products with some columns go.
struct RowFactors
{
  std::int64_t inner;
  const float* from;
  std::int64_t stride;
  float* product;
  std::int64_t productStride;
};

}

#endif

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_HAVE_SCALABLE
using RowVector = hn::FixedTag<float, 4>;
#else
using RowVector = hn::CappedTag<float, 16>;
#endif
using OneColumn = hn::CappedTag<float, 1>;

constexpr std::int64_t GroupSize = 16; ///< integers that share a scale

/// Reads, or writes, the sums of Rows rows for as many columns as Vectors vectors have.
template<std::int64_t Rows, std::int64_t Vectors, class D>
HWY_INLINE void LoadSums(D d, const RowFactors& rows, hn::Vec<D> (&sums)[Rows][Vectors])
{
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = 0; r < Rows; ++r)
  {
    for (std::int64_t v = 0; v < Vectors; ++v)
    {
      sums[r][v] = hn::LoadU(d, rows.product + r * rows.productStride + v * lanes);
    }
  }
}
template<std::int64_t Rows, std::int64_t Vectors, class D>
HWY_INLINE void StoreSums(D d, const hn::Vec<D> (&sums)[Rows][Vectors], const RowFactors& rows)
{
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = 0; r < Rows; ++r)
  {
    for (std::int64_t v = 0; v < Vectors; ++v)
    {
      hn::StoreU(sums[r][v], d, rows.product + r * rows.productStride + v * lanes);
    }
  }
}

/// Columns that lie side by side, in rows `step` numbers apart: Count numbers of the inner index
/// for all columns, so that whole rows are read.
template<std::int64_t Rows, std::int64_t Count, class D>
HWY_INLINE void AddColumns(D d, const RowFactors& rows, const float* from, const float* columns,
  std::int64_t step, std::int64_t count)
{
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = 0; c + lanes <= count; c += lanes)
  {
    V weights[Count];
    for (std::int64_t k = 0; k < Count; ++k)
    {
      weights[k] = hn::LoadU(d, columns + k * step + c);
    }
    for (std::int64_t r = 0; r < Rows; ++r)
    {
      float* product = rows.product + r * rows.productStride + c;
      V sum = hn::LoadU(d, product);
      for (std::int64_t k = 0; k < Count; ++k)
      {
        sum = hn::MulAdd(hn::Set(d, from[r * rows.stride + k]), weights[k], sum);
      }
      hn::StoreU(sum, d, product);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

constexpr std::int64_t SquareSide = 4;

/// Four numbers of lines 0, 4, 8 and so on, as many as fit.
template<class D>
HWY_INLINE hn::Vec<D> LoadSquares(D d, const float* lines, std::int64_t step)
{
  if constexpr (hn::MaxLanes(D()) <= SquareSide)
  {
    return hn::LoadU(d, lines);
  }
  else
  {
    const hn::Half<D> half;
    const auto count = static_cast<std::int64_t>(hn::Lanes(half));
    return hn::Combine(
      d, LoadSquares(half, lines + count * step, step), LoadSquares(half, lines, step));
  }
}

/// Four numbers of as many lines as a vector has lanes: vector i gets number i of each line.
template<class D>
HWY_INLINE void LoadTransposed(
  D d, const float* lines, std::int64_t step, hn::Vec<D> (&columns)[SquareSide])
{
  const hn::Repartition<std::uint64_t, D> pairs;
  const auto first = LoadSquares(d, lines, step);
  const auto second = LoadSquares(d, lines + step, step);
  const auto third = LoadSquares(d, lines + 2 * step, step);
  const auto fourth = LoadSquares(d, lines + 3 * step, step);
  const auto low = hn::BitCast(pairs, hn::InterleaveLower(d, first, second));
  const auto lowNext = hn::BitCast(pairs, hn::InterleaveLower(d, third, fourth));
  const auto high = hn::BitCast(pairs, hn::InterleaveUpper(d, first, second));
  const auto highNext = hn::BitCast(pairs, hn::InterleaveUpper(d, third, fourth));
  columns[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low, lowNext));
  columns[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low, lowNext));
  columns[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high, highNext));
  columns[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high, highNext));
}

/// Columns that are stored as lines, `step` numbers apart.
template<std::int64_t Rows, std::int64_t Vectors>
HWY_INLINE void AddLines(RowVector d, const RowFactors& rows, const float* lines, std::int64_t step)
{
  using V = hn::Vec<RowVector>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sums[Rows][Vectors];
  LoadSums(d, rows, sums);
  std::int64_t i = 0;
  for (; i + SquareSide <= rows.inner; i += SquareSide)
  {
    for (std::int64_t v = 0; v < Vectors; ++v)
    {
      V columns[SquareSide];
      LoadTransposed(d, lines + v * lanes * step + i, step, columns);
      for (std::int64_t k = 0; k < SquareSide; ++k)
      {
        for (std::int64_t r = 0; r < Rows; ++r)
        {
          const V number = hn::Set(d, rows.from[r * rows.stride + i + k]);
          sums[r][v] = hn::MulAdd(number, columns[k], sums[r][v]);
        }
      }
    }
  }
  for (; i < rows.inner; ++i)
  {
    for (std::int64_t v = 0; v < Vectors; ++v)
    {
      HWY_ALIGN float column[hn::MaxLanes(RowVector())];
      for (std::int64_t c = 0; c < lanes; ++c)
      {
        column[c] = lines[(v * lanes + c) * step + i];
      }
      const V weights = hn::Load(d, column);
      for (std::int64_t r = 0; r < Rows; ++r)
      {
        sums[r][v] = hn::MulAdd(hn::Set(d, rows.from[r * rows.stride + i]), weights, sums[r][v]);
      }
    }
  }
  StoreSums(d, sums, rows);
}

#endif

/// The sums of Rows rows and as many integers of a group as a square has, from the bits of them.
template<bool HasOffsets, std::int64_t Rows, int Byte, class V>
HWY_INLINE void AddBytes(
  RowVector d, V bits, V scale, V offset, const float* from, std::int64_t stride, V (&sums)[Rows])
{
  const hn::RebindToSigned<RowVector> ofIntegers;
  const auto integers =
    hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * Byte>(hn::BitCast(ofIntegers, bits)));
  V weights = hn::Mul(scale, hn::ConvertTo(d, integers));
  if constexpr (HasOffsets)
  {
    weights = hn::Add(weights, offset);
  }
  for (std::int64_t r = 0; r < Rows; ++r)
  {
    sums[r] = hn::MulAdd(hn::Set(d, from[r * stride + Byte]), weights, sums[r]);
  }
}

#if HWY_TARGET == HWY_SCALAR

/// Columns of integers.
template<std::int64_t Rows, bool HasOffsets>
void AddIntegers(const RowFactors& rows, const IntegerColumns& columns)
{
  for (std::int64_t i = 0; i < rows.inner; ++i)
  {
    for (std::int64_t c = 0; c < IntegerColumnCount; ++c)
    {
      const std::int64_t group = i / GroupSize * IntegerColumnCount + c;
      float weight =
        columns.scales[group] * static_cast<float>(columns.integers[c * columns.stride + i]);
      if constexpr (HasOffsets)
      {
        weight += columns.offsets[group];
      }
      RowFactors column = rows;
      column.product += c;
      AddColumns<Rows, 1>(OneColumn(), column, rows.from + i, &weight, 0, 1);
    }
  }
}

#else

/// Columns of integers, of which four are moved at once as the bits of a float. With two vectors of
/// columns a sum need not wait for the last one.
template<std::int64_t Rows, bool HasOffsets>
void AddIntegers(const RowFactors& rows, const IntegerColumns& columns)
{
  using V = hn::Vec<RowVector>;
  constexpr std::int64_t vectors = 2;
  const RowVector d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t step = columns.stride / SquareSide;
  for (std::int64_t first = 0; first < IntegerColumnCount; first += vectors * lanes)
  {
    V sums[vectors][Rows];
    const auto visit = [&](const auto& move) HWY_ATTR
    {
      for (std::int64_t v = 0; v < vectors; ++v)
      {
        for (std::int64_t r = 0; r < Rows; ++r)
        {
          move(sums[v][r], rows.product + r * rows.productStride + first + v * lanes);
        }
      }
    };
    visit([&](V& sum, const float* product) HWY_ATTR { sum = hn::LoadU(d, product); });
    for (std::int64_t i = 0; i < rows.inner; i += GroupSize)
    {
      for (std::int64_t v = 0; v < vectors; ++v)
      {
        const std::int64_t column = first + v * lanes;
        const auto* lines =
          reinterpret_cast<const float*>(columns.integers + column * columns.stride + i);
        const std::int64_t group = i / GroupSize * IntegerColumnCount + column;
        const V scale = hn::LoadU(d, columns.scales + group);
        const V offset = HasOffsets ? hn::LoadU(d, columns.offsets + group) : scale;
        V bits[SquareSide];
        LoadTransposed(d, lines, step, bits);
        for (std::int64_t k = 0; k < SquareSide; ++k)
        {
          const float* from = rows.from + i + k * SquareSide;
          AddBytes<HasOffsets, Rows, 0>(d, bits[k], scale, offset, from, rows.stride, sums[v]);
          AddBytes<HasOffsets, Rows, 1>(d, bits[k], scale, offset, from, rows.stride, sums[v]);
          AddBytes<HasOffsets, Rows, 2>(d, bits[k], scale, offset, from, rows.stride, sums[v]);
          AddBytes<HasOffsets, Rows, 3>(d, bits[k], scale, offset, from, rows.stride, sums[v]);
        }
      }
    }
    visit([&](const V& sum, float* product) HWY_ATTR { hn::StoreU(sum, d, product); });
  }
}

#endif

template<std::int64_t Rows>
void AddIntegerProducts(const RowFactors& rows, const IntegerColumns& columns)
{
  if (columns.offsets != nullptr)
  {
    AddIntegers<Rows, true>(rows, columns);
  }
  else
  {
    AddIntegers<Rows, false>(rows, columns);
  }
}

void AddIntegerProductsOf(std::int64_t count, const RowFactors& rows, const IntegerColumns& columns)
{
  switch (count)
  {
    case 1:
      return AddIntegerProducts<1>(rows, columns);
    case 2:
      return AddIntegerProducts<2>(rows, columns);
    case 3:
      return AddIntegerProducts<3>(rows, columns);
    default:
      return AddIntegerProducts<FewRows>(rows, columns);
  }
}

/// Products of Rows rows.
template<std::int64_t Rows>
HWY_INLINE void AddProducts(RowFactors rows, const MatrixBlock& b, std::int64_t columns)
{
  const RowVector d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float* from = b.data;
  const auto take = [&](std::int64_t count) HWY_ATTR
  {
    rows.product += count;
    columns -= count;
    from += count * (b.transposed ? b.stride : 1);
  };
  if (b.transposed)
  {
#if HWY_TARGET != HWY_SCALAR
    for (; columns >= 2 * lanes; take(2 * lanes))
    {
      AddLines<Rows, 2>(d, rows, from, b.stride);
    }
    for (; columns >= lanes; take(lanes))
    {
      AddLines<Rows, 1>(d, rows, from, b.stride);
    }
#endif
  }
  else
  {
    constexpr std::int64_t together = 4;
    std::int64_t i = 0;
    for (; i + together <= rows.inner; i += together)
    {
      AddColumns<Rows, together>(d, rows, rows.from + i, from + i * b.stride, b.stride, columns);
    }
    for (; i < rows.inner; ++i)
    {
      AddColumns<Rows, 1>(d, rows, rows.from + i, from + i * b.stride, b.stride, columns);
    }
    take(columns / lanes * lanes);
  }
  for (; columns > 0; take(1))
  {
    for (std::int64_t i = 0; i < rows.inner; ++i)
    {
      const float* weight = from + i * (b.transposed ? 1 : b.stride);
      AddColumns<Rows, 1>(OneColumn(), rows, rows.from + i, weight, 0, 1);
    }
  }
}

void AddProductsOf(
  std::int64_t count, const RowFactors& rows, const MatrixBlock& b, std::int64_t columns)
{
  switch (count)
  {
    case 1:
      return AddProducts<1>(rows, b, columns);
    case 2:
      return AddProducts<2>(rows, b, columns);
    case 3:
      return AddProducts<3>(rows, b, columns);
    default:
      return AddProducts<FewRows>(rows, b, columns);
  }
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(AddIntegerProductsOf);
HWY_EXPORT(AddProductsOf);

void AddRowProducts(std::int64_t rows, std::int64_t inner, const float* from, std::int64_t stride,
  const MatrixBlock& b, std::int64_t columns, float* product, std::int64_t productStride)
{
  InitializeTarget();
  HWY_DYNAMIC_DISPATCH(AddProductsOf)
  (rows, { inner, from, stride, product, productStride }, b, columns);
}

void AddRowProducts(std::int64_t rows, std::int64_t inner, const float* from, std::int64_t stride,
  const IntegerColumns& columns, float* product, std::int64_t productStride)
{
  InitializeTarget();
  HWY_DYNAMIC_DISPATCH(AddIntegerProductsOf)
  (rows, { inner, from, stride, product, productStride }, columns);
}

}

#endif
