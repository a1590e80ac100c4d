#include "PackedProduct.h"

#include "InstructionSets.h"
#include "ParallelBlocks.h"

#include <Eigen/Core>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

// Highway before 1.1 does not know these instructions, so they are used directly.
#if defined(__x86_64__)
#include <immintrin.h>
#define ATLAS_HAS_BFLOAT16 1
#define ATLAS_BFLOAT16 __attribute__((target("avx512f,avx512bw,avx512bf16")))
#else
#define ATLAS_HAS_BFLOAT16 0
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Numerics/PackedProduct.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before this header, which is read once per target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

/// The sums of so many rows and a panel are in registers.
constexpr std::int64_t PassRows = 6;

/// A panel has the columns of two vectors.
using PanelVector = hn::CappedTag<float, 16>;

std::int64_t PanelWidth()
{
  return 2 * static_cast<std::int64_t>(hn::Lanes(PanelVector()));
}

/// Copies a whole panel of columns [inner, PanelWidth()].
void CopyPanel(std::int64_t inner, const float* from, std::int64_t stride, float* to)
{
  const PanelVector d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < inner; ++i)
  {
    hn::StoreU(hn::LoadU(d, from + i * stride), d, to);
    hn::StoreU(hn::LoadU(d, from + i * stride + lanes), d, to + lanes);
    to += 2 * lanes;
  }
}

constexpr std::int64_t SquareSide = 4;

/// Transposes a square: four numbers of each of four columns, which are stored as rows.
HWY_INLINE void TransposeSquare(
  const float* from, std::int64_t stride, float* to, std::int64_t width)
{
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t i = 0; i < SquareSide * SquareSide; ++i)
  {
    to[i / SquareSide * width + i % SquareSide] = from[i % SquareSide * stride + i / SquareSide];
  }
#else
  const hn::FixedTag<float, SquareSide> d;
  const auto first = hn::LoadU(d, from);
  const auto second = hn::LoadU(d, from + stride);
  const auto third = hn::LoadU(d, from + 2 * stride);
  const auto fourth = hn::LoadU(d, from + 3 * stride);
  const auto low = hn::InterleaveLower(d, first, second);
  const auto lowNext = hn::InterleaveLower(d, third, fourth);
  const auto high = hn::InterleaveUpper(d, first, second);
  const auto highNext = hn::InterleaveUpper(d, third, fourth);
  hn::StoreU(hn::ConcatLowerLower(d, lowNext, low), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, lowNext, low), d, to + width);
  hn::StoreU(hn::ConcatLowerLower(d, highNext, high), d, to + 2 * width);
  hn::StoreU(hn::ConcatUpperUpper(d, highNext, high), d, to + 3 * width);
#endif
}

/// Copies `columns` columns, which are stored as rows, to a panel [inner, width].
void TransposePanel(std::int64_t inner, std::int64_t columns, const float* from,
  std::int64_t stride, std::int64_t width, float* to)
{
  constexpr std::int64_t block = 128; // of each column: what is written stays in the cache
  const std::int64_t inSquares = columns / SquareSide * SquareSide;
  for (std::int64_t begin = 0; begin < inner; begin += block)
  {
    const std::int64_t end = std::min(begin + block, inner);
    const std::int64_t squaresEnd = begin + (end - begin) / SquareSide * SquareSide;
    for (std::int64_t c = 0; c < columns; c += c < inSquares ? SquareSide : 1)
    {
      std::int64_t i = begin;
      for (; c < inSquares && i < squaresEnd; i += SquareSide)
      {
        TransposeSquare(from + c * stride + i, stride, to + i * width + c, width);
      }
      for (; i < end; ++i)
      {
        for (std::int64_t j = c; j < (c < inSquares ? c + SquareSide : c + 1); ++j)
        {
          to[i * width + j] = from[j * stride + i];
        }
      }
    }
  }
}

/// The products of Rows rows and a panel.
template<std::int64_t Rows>
HWY_INLINE void MultiplyPass(std::int64_t inner, const float* from, std::int64_t stride,
  const float* panel, float* product, std::int64_t productStride, bool adds)
{
  using V = hn::Vec<PanelVector>;
  const PanelVector d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sums[Rows][2];
  for (std::int64_t r = 0; r < Rows; ++r)
  {
    float* row = product + r * productStride;
    sums[r][0] = adds ? hn::LoadU(d, row) : hn::Zero(d);
    sums[r][1] = adds ? hn::LoadU(d, row + lanes) : hn::Zero(d);
  }
  for (std::int64_t i = 0; i < inner; ++i)
  {
    const V first = hn::LoadU(d, panel);
    const V second = hn::LoadU(d, panel + lanes);
    panel += 2 * lanes;
    for (std::int64_t r = 0; r < Rows; ++r)
    {
      const V number = hn::Set(d, from[r * stride + i]);
      sums[r][0] = hn::MulAdd(number, first, sums[r][0]);
      sums[r][1] = hn::MulAdd(number, second, sums[r][1]);
    }
  }
  for (std::int64_t r = 0; r < Rows; ++r)
  {
    hn::StoreU(sums[r][0], d, product + r * productStride);
    hn::StoreU(sums[r][1], d, product + r * productStride + lanes);
  }
}

/// The products of rows and a panel, which replace `product` or are added to it.
void MultiplyPanel(std::int64_t rows, std::int64_t inner, const float* from, std::int64_t stride,
  const float* panel, float* product, std::int64_t productStride, bool adds)
{
  const auto pass = [&](auto count, std::int64_t row) HWY_ATTR
  {
    MultiplyPass<decltype(count)::value>(inner, from + row * stride, stride, panel,
      product + row * productStride, productStride, adds);
  };
  std::int64_t row = 0;
  for (; row + PassRows <= rows; row += PassRows)
  {
    pass(std::integral_constant<std::int64_t, PassRows>(), row);
  }
  for (; row + 2 <= rows; row += 2)
  {
    pass(std::integral_constant<std::int64_t, 2>(), row);
  }
  if (row < rows)
  {
    pass(std::integral_constant<std::int64_t, 1>(), row);
  }
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(CopyPanel);
HWY_EXPORT(MultiplyPanel);
HWY_EXPORT(PanelWidth);
HWY_EXPORT(TransposePanel);

namespace
{

using HWY_NAMESPACE::PassRows;

constexpr std::int64_t PairWidth = 32; ///< columns of a panel of pairs

/// Copies the columns of b from `first` on, as many as `width` or all that there are, to a panel
/// [inner, width]; the others are 0.
void PackPanel(const MatrixBlock& b, std::int64_t first, std::int64_t inner, std::int64_t columns,
  std::int64_t width, float* to)
{
  const std::int64_t count = std::min(width, columns - first);
  if (!b.transposed && count == width)
  {
    HWY_DYNAMIC_DISPATCH(CopyPanel)(inner, b.data + first, b.stride, to);
    return;
  }
  if (!b.transposed)
  {
    for (std::int64_t i = 0; i < inner; ++i)
    {
      float* end = std::copy_n(b.data + i * b.stride + first, count, to);
      to += width;
      std::fill(end, to, 0.F);
    }
    return;
  }
  std::fill_n(to, count < width ? inner * width : 0, 0.F);
  HWY_DYNAMIC_DISPATCH(TransposePanel)
  (inner, count, b.data + first * b.stride, b.stride, width, to);
}

#if ATLAS_HAS_BFLOAT16

// GCC 12 warns of the undefined vectors in its own headers.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

constexpr std::int64_t VectorLanes = 16; ///< floats of a vector

bool HasInstructions()
{
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512f") != 0;
  return has;
}

std::int64_t PairCount(std::int64_t inner)
{
  return (inner + 1) / 2;
}

/// The mask of the first `count` lanes, of all if there are more.
__mmask16 FirstLanes(std::int64_t count)
{
  const std::int64_t lanes = std::clamp<std::int64_t>(count, 0, VectorLanes);
  return static_cast<__mmask16>((1U << static_cast<unsigned>(lanes)) - 1U);
}

/// Rounds `inner` floats to pairs.
ATLAS_BFLOAT16 void RoundRow(std::int64_t inner, const float* from, std::uint32_t* to)
{
  for (std::int64_t i = 0; i < inner; i += 2 * VectorLanes)
  {
    const __m512 low = _mm512_maskz_loadu_ps(FirstLanes(inner - i), from + i);
    const __mmask16 highLanes = FirstLanes(inner - i - VectorLanes);
    const __m512 high =
      _mm512_maskz_loadu_ps(highLanes, highLanes == 0 ? from : from + i + VectorLanes);
    const auto pairs = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    _mm512_mask_storeu_epi32(to + i / 2, FirstLanes(PairCount(inner - i)), pairs);
  }
}

/// 16 floats of each of two rows as pairs.
ATLAS_BFLOAT16 __m512i RoundPairs(__m512 first, __m512 second)
{
  const auto low = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(first));
  const auto high = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(second));
  return _mm512_or_si512(
    _mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

/// A panel of columns of b, of which there are `columns`; the others are 0.
ATLAS_BFLOAT16 void PackPairs(
  const float* b, std::int64_t stride, std::int64_t inner, std::int64_t columns, std::uint32_t* to)
{
  for (std::int64_t i = 0; i < inner; i += 2)
  {
    const float* first = b + i * stride;
    const float* second = i + 1 < inner ? first + stride : first;
    for (std::int64_t c = 0; c < PairWidth; c += VectorLanes)
    {
      const __mmask16 lanes = FirstLanes(columns - c);
      const std::int64_t place = lanes == 0 ? 0 : c;
      const __mmask16 secondLanes = i + 1 < inner ? lanes : __mmask16{ 0 };
      const __m512i pairs = RoundPairs(_mm512_maskz_loadu_ps(lanes, first + place),
        _mm512_maskz_loadu_ps(secondLanes, second + place));
      _mm512_storeu_si512(to, pairs);
      to += VectorLanes;
    }
  }
}

/// Likewise of columns that are stored as rows. `work` has PairWidth times the pairs.
ATLAS_BFLOAT16 void PackTransposedPairs(const float* b, std::int64_t stride, std::int64_t inner,
  std::int64_t columns, std::uint32_t* work, std::uint32_t* to)
{
  const std::int64_t pairs = PairCount(inner);
  for (std::int64_t c = 0; c < columns; ++c)
  {
    RoundRow(inner, b + c * stride, work + c * pairs);
  }
  std::fill(work + columns * pairs, work + PairWidth * pairs, 0U);
  const __m512i steps =
    _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
      _mm512_set1_epi32(static_cast<int>(pairs)));
  for (std::int64_t i = 0; i < pairs; ++i)
  {
    for (std::int64_t c = 0; c < PairWidth; c += VectorLanes)
    {
      _mm512_storeu_si512(to, _mm512_i32gather_epi32(steps, work + c * pairs + i, 4));
      to += VectorLanes;
    }
  }
}

/// The products of Rows rows and a panel.
template<std::int64_t Rows>
ATLAS_BFLOAT16 void MultiplyPairs(std::int64_t pairs, const std::uint32_t* rows,
  const std::uint32_t* panel, float* product, std::int64_t stride, bool adds)
{
  constexpr std::int64_t vectors = PairWidth / VectorLanes;
  __m512 sums[Rows][vectors];
  for (std::int64_t r = 0; r < Rows; ++r)
  {
    for (std::int64_t v = 0; v < vectors; ++v)
    {
      sums[r][v] =
        adds ? _mm512_loadu_ps(product + r * stride + v * VectorLanes) : _mm512_setzero_ps();
    }
  }
  for (std::int64_t i = 0; i < pairs; ++i)
  {
    __m512bh columns[vectors];
    for (std::int64_t v = 0; v < vectors; ++v)
    {
      columns[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel + v * VectorLanes));
    }
    panel += PairWidth;
    for (std::int64_t r = 0; r < Rows; ++r)
    {
      const auto pair =
        reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(rows[r * pairs + i])));
      for (std::int64_t v = 0; v < vectors; ++v)
      {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], pair, columns[v]);
      }
    }
  }
  for (std::int64_t r = 0; r < Rows; ++r)
  {
    for (std::int64_t v = 0; v < vectors; ++v)
    {
      _mm512_storeu_ps(product + r * stride + v * VectorLanes, sums[r][v]);
    }
  }
}

using PairProduct = void (*)(
  std::int64_t, const std::uint32_t*, const std::uint32_t*, float*, std::int64_t, bool);

/// By the number of rows, less one.
constexpr std::array<PairProduct, PassRows> PairProducts = { MultiplyPairs<1>, MultiplyPairs<2>,
  MultiplyPairs<3>, MultiplyPairs<4>, MultiplyPairs<5>, MultiplyPairs<6> };

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// Packs columns as pairs.
AlignedNumbers<std::uint32_t> PairsOf(
  const MatrixBlock& b, std::int64_t inner, std::int64_t columns)
{
  const std::int64_t size = PairCount(inner) * PairWidth;
  AlignedNumbers<std::uint32_t> packed;
  packed.Allocate(BlockCount(columns, PairWidth) * size);
  std::vector<std::uint32_t> work(b.transposed ? ToIndex(size) : 0);
  for (std::int64_t panel = 0; panel < BlockCount(columns, PairWidth); ++panel)
  {
    const std::int64_t first = panel * PairWidth;
    const std::int64_t count = std::min(PairWidth, columns - first);
    std::uint32_t* to = packed.Data() + panel * size;
    if (b.transposed)
    {
      PackTransposedPairs(b.data + first * b.stride, b.stride, inner, count, work.data(), to);
    }
    else
    {
      PackPairs(b.data + first, b.stride, inner, count, to);
    }
  }
  return packed;
}

/// The products of rows and packed pairs, which replace `product` or are added to it.
void MultiplyPacked(const std::uint32_t* packed, std::int64_t inner, std::int64_t panels,
  std::int64_t rows, const float* from, std::int64_t stride, float* product, bool adds)
{
  const std::int64_t pairs = PairCount(inner);
  const std::unique_ptr<std::uint32_t[]> rounded(new std::uint32_t[rows * pairs]);
  for (std::int64_t row = 0; row < rows; ++row)
  {
    RoundRow(inner, from + row * stride, rounded.get() + row * pairs);
  }
  for (std::int64_t panel = 0; panel < panels; ++panel)
  {
    const std::uint32_t* columns = packed + panel * pairs * PairWidth;
    for (std::int64_t row = 0; row < rows; row += PassRows)
    {
      const std::int64_t passed = std::min(PassRows, rows - row);
      PairProducts[passed - 1](pairs, rounded.get() + row * pairs, columns,
        product + (row * panels + panel) * PairWidth, panels * PairWidth, adds);
    }
  }
}

#else

bool HasInstructions()
{
  return false;
}

AlignedNumbers<std::uint32_t> PairsOf(const MatrixBlock&, std::int64_t, std::int64_t)
{
  return {};
}

void MultiplyPacked(const std::uint32_t*, std::int64_t, std::int64_t, std::int64_t, const float*,
  std::int64_t, float*, bool)
{
}

#endif

}

bool HasBfloat16Products()
{
  const std::string target = CurrentTarget();
  return HasInstructions() && (target.rfind("AVX3", 0) == 0 || target.rfind("AVX10", 0) == 0);
}

void RoundToBfloat16(std::int64_t count, float* values)
{
  std::transform(values, values + count, values,
    [](float value) { return static_cast<float>(Eigen::bfloat16(value)); });
}

void PackedColumns::Set(
  const MatrixBlock& b, std::int64_t inner, std::int64_t columns, ProductPrecision products)
{
  this->Inner = inner;
  this->Products = products;
  this->Pairs.Clear();
  if (products == ProductPrecision::Bfloat16 && HasBfloat16Products())
  {
    this->Pairs = PairsOf(b, inner, columns);
    this->Width = PairWidth;
    this->Panels = BlockCount(columns, this->Width);
    return;
  }
  InitializeTarget();
  this->Width = HWY_DYNAMIC_DISPATCH(PanelWidth)();
  this->Panels = BlockCount(columns, this->Width);
  const std::int64_t size = this->Panels * inner * this->Width;
  if (this->Capacity < size)
  {
    this->Capacity = size;
    this->Floats.Allocate(size);
  }
  for (std::int64_t panel = 0; panel < this->Panels; ++panel)
  {
    PackPanel(b, panel * this->Width, inner, columns, this->Width,
      this->Floats.Data() + panel * inner * this->Width);
  }
  if (products == ProductPrecision::Bfloat16)
  {
    RoundToBfloat16(size, this->Floats.Data());
  }
}

void PackedColumns::Multiply(
  std::int64_t rows, const float* from, std::int64_t stride, float* product) const
{
  this->Compute(rows, from, stride, product, false);
}

void PackedColumns::Add(
  std::int64_t rows, const float* from, std::int64_t stride, float* product) const
{
  this->Compute(rows, from, stride, product, true);
}

void PackedColumns::Compute(
  std::int64_t rows, const float* from, std::int64_t stride, float* product, bool adds) const
{
  if (this->Pairs.Data() != nullptr)
  {
    MultiplyPacked(
      this->Pairs.Data(), this->Inner, this->Panels, rows, from, stride, product, adds);
    return;
  }
  std::vector<float> rounded;
  if (this->Products == ProductPrecision::Bfloat16)
  {
    rounded.resize(rows * this->Inner);
    for (std::int64_t row = 0; row < rows; ++row)
    {
      std::copy_n(from + row * stride, this->Inner, rounded.data() + row * this->Inner);
    }
    RoundToBfloat16(rows * this->Inner, rounded.data());
    from = rounded.data();
    stride = this->Inner;
  }
  for (std::int64_t panel = 0; panel < this->Panels; ++panel)
  {
    HWY_DYNAMIC_DISPATCH(MultiplyPanel)
    (rows, this->Inner, from, stride, this->Floats.Data() + panel * this->Inner * this->Width,
      product + panel * this->Width, this->Stride(), adds);
  }
}

}

#endif
