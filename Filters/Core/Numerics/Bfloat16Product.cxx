#include "Bfloat16Product.h"

#include "InstructionSets.h"

#include <Eigen/Core>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

// Highway before 1.1 does not know these instructions, so they are used directly.
#if defined(__x86_64__)
#include <immintrin.h>
#define ATLAS_HAS_BFLOAT16 1
#define ATLAS_BFLOAT16 __attribute__((target("avx512f,avx512bw,avx512bf16")))
#else
#define ATLAS_HAS_BFLOAT16 0
#endif

namespace atlas
{
namespace
{

constexpr std::int64_t Lanes = 16;       ///< floats of a vector
constexpr std::int64_t PanelVectors = 4; ///< of a panel, which has the columns of one pass
constexpr std::int64_t PanelColumns = PanelVectors * Lanes;

/// The sums of this many rows and a panel are in registers.
constexpr std::int64_t PassRows = 6;

std::int64_t PairCount(std::int64_t inner)
{
  return (inner + 1) / 2;
}

std::int64_t PanelCount(std::int64_t columns)
{
  return (columns + PanelColumns - 1) / PanelColumns;
}

#if ATLAS_HAS_BFLOAT16

// GCC 12 warns of the undefined vectors in its own headers.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

bool HasInstructions()
{
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512f") != 0;
  return has;
}

/// The mask of the first `count` lanes, of all if there are more.
__mmask16 FirstLanes(std::int64_t count)
{
  const std::int64_t lanes = std::clamp<std::int64_t>(count, 0, Lanes);
  return static_cast<__mmask16>((1U << static_cast<unsigned>(lanes)) - 1U);
}

/// Rounds `inner` floats to pairs.
ATLAS_BFLOAT16 void RoundRow(std::int64_t inner, const float* from, std::uint32_t* to)
{
  for (std::int64_t i = 0; i < inner; i += 2 * Lanes)
  {
    const __m512 low = _mm512_maskz_loadu_ps(FirstLanes(inner - i), from + i);
    const __mmask16 highLanes = FirstLanes(inner - i - Lanes);
    const __m512 high = _mm512_maskz_loadu_ps(highLanes, highLanes == 0 ? from : from + i + Lanes);
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

/// A panel of columns of b, of which there are `columns`, at most PanelColumns; the others are 0.
ATLAS_BFLOAT16 void PackPanel(
  const float* b, std::int64_t stride, std::int64_t inner, std::int64_t columns, std::uint32_t* to)
{
  for (std::int64_t i = 0; i < inner; i += 2)
  {
    const float* first = b + i * stride;
    const float* second = i + 1 < inner ? first + stride : first;
    for (std::int64_t c = 0; c < PanelColumns; c += Lanes)
    {
      const __mmask16 lanes = FirstLanes(columns - c);
      const std::int64_t place = lanes == 0 ? 0 : c;
      const __mmask16 secondLanes = i + 1 < inner ? lanes : __mmask16{ 0 };
      const __m512i pairs = RoundPairs(_mm512_maskz_loadu_ps(lanes, first + place),
        _mm512_maskz_loadu_ps(secondLanes, second + place));
      _mm512_storeu_si512(to, pairs);
      to += Lanes;
    }
  }
}

/// Likewise of columns that are stored as rows. `work` has PanelColumns times the pairs.
ATLAS_BFLOAT16 void PackTransposedPanel(const float* b, std::int64_t stride, std::int64_t inner,
  std::int64_t columns, std::uint32_t* work, std::uint32_t* to)
{
  const std::int64_t pairs = PairCount(inner);
  for (std::int64_t c = 0; c < columns; ++c)
  {
    RoundRow(inner, b + c * stride, work + c * pairs);
  }
  std::fill(work + columns * pairs, work + PanelColumns * pairs, 0U);
  const __m512i steps =
    _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
      _mm512_set1_epi32(static_cast<int>(pairs)));
  for (std::int64_t i = 0; i < pairs; ++i)
  {
    for (std::int64_t c = 0; c < PanelColumns; c += Lanes)
    {
      _mm512_storeu_si512(to, _mm512_i32gather_epi32(steps, work + c * pairs + i, 4));
      to += Lanes;
    }
  }
}

/// The products of Rows rows and a panel.
template<std::int64_t Rows>
ATLAS_BFLOAT16 void MultiplyPanel(std::int64_t pairs, const std::uint32_t* rows,
  const std::uint32_t* panel, float* product, std::int64_t stride)
{
  __m512 sums[Rows][PanelVectors];
  for (std::int64_t r = 0; r < Rows; ++r)
  {
    for (std::int64_t v = 0; v < PanelVectors; ++v)
    {
      sums[r][v] = _mm512_setzero_ps();
    }
  }
  for (std::int64_t i = 0; i < pairs; ++i)
  {
    __m512bh columns[PanelVectors];
    for (std::int64_t v = 0; v < PanelVectors; ++v)
    {
      columns[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel + v * Lanes));
    }
    panel += PanelColumns;
    for (std::int64_t r = 0; r < Rows; ++r)
    {
      const auto pair =
        reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(rows[r * pairs + i])));
      for (std::int64_t v = 0; v < PanelVectors; ++v)
      {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], pair, columns[v]);
      }
    }
  }
  for (std::int64_t r = 0; r < Rows; ++r)
  {
    for (std::int64_t v = 0; v < PanelVectors; ++v)
    {
      _mm512_storeu_ps(product + r * stride + v * Lanes, sums[r][v]);
    }
  }
}

using PanelProduct = void (*)(
  std::int64_t, const std::uint32_t*, const std::uint32_t*, float*, std::int64_t);

/// By the number of rows, less one.
constexpr std::array<PanelProduct, PassRows> PanelProducts = { MultiplyPanel<1>, MultiplyPanel<2>,
  MultiplyPanel<3>, MultiplyPanel<4>, MultiplyPanel<5>, MultiplyPanel<6> };

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#else

bool HasInstructions()
{
  return false;
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

Bfloat16Rows::Bfloat16Rows(std::int64_t inner)
  : Inner(inner)
{
}

std::int64_t Bfloat16Rows::Count() const
{
  return static_cast<std::int64_t>(this->Pairs.size()) / PairCount(this->Inner);
}

std::int64_t Bfloat16Columns::Stride() const
{
  return PanelCount(this->Columns) * PanelColumns;
}

#if ATLAS_HAS_BFLOAT16

void Bfloat16Rows::Add(const float* row)
{
  const std::size_t before = this->Pairs.size();
  this->Pairs.resize(before + static_cast<std::size_t>(PairCount(this->Inner)));
  RoundRow(this->Inner, row, this->Pairs.data() + before);
}

void Bfloat16Columns::Set(const MatrixBlock& b, std::int64_t inner, std::int64_t columns)
{
  this->Inner = inner;
  this->Columns = columns;
  const std::int64_t size = PairCount(inner) * PanelColumns;
  this->Pairs.resize(static_cast<std::size_t>(PanelCount(columns) * size));
  std::vector<std::uint32_t> work(b.transposed ? static_cast<std::size_t>(size) : 0);
  for (std::int64_t panel = 0; panel < PanelCount(columns); ++panel)
  {
    const std::int64_t first = panel * PanelColumns;
    const std::int64_t count = std::min(PanelColumns, columns - first);
    std::uint32_t* to = this->Pairs.data() + panel * size;
    if (b.transposed)
    {
      PackTransposedPanel(b.data + first * b.stride, b.stride, inner, count, work.data(), to);
    }
    else
    {
      PackPanel(b.data + first, b.stride, inner, count, to);
    }
  }
}

void Bfloat16Columns::Multiply(const Bfloat16Rows& rows, float* product) const
{
  const std::int64_t pairs = PairCount(this->Inner);
  const std::int64_t count = rows.Count();
  for (std::int64_t panel = 0; panel < PanelCount(this->Columns); ++panel)
  {
    const std::uint32_t* columns = this->Pairs.data() + panel * pairs * PanelColumns;
    for (std::int64_t row = 0; row < count; row += PassRows)
    {
      const std::int64_t passed = std::min(PassRows, count - row);
      PanelProducts[static_cast<std::size_t>(passed - 1)](pairs, rows.Pairs.data() + row * pairs,
        columns, product + row * this->Stride() + panel * PanelColumns, this->Stride());
    }
  }
}

#else

void Bfloat16Rows::Add(const float*) {}
void Bfloat16Columns::Set(const MatrixBlock&, std::int64_t, std::int64_t) {}
void Bfloat16Columns::Multiply(const Bfloat16Rows&, float*) const {}

#endif

}
