#include "Numerics/RowProduct.h"

#include "EveryTarget.h"
#include "NumbersBelowOne.h"
#include "Numerics/PackedProduct.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// Rows and a matrix, which are parts of larger ones.
struct Factors
{
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
  bool transposed;
  std::int64_t stride = std::max(this->inner, this->columns) + 3;
  std::vector<float> a = NumbersBelowOne(this->rows * this->stride, 1);
  std::vector<float> b = NumbersBelowOne(this->stride * this->stride, 2);

  /// Of columns from `first` on, from numbers begin <= i < end of the inner index.
  void Add(std::int64_t begin, std::int64_t end, std::int64_t first, std::vector<float>& to) const
  {
    const std::int64_t place =
      this->transposed ? first * this->stride + begin : begin * this->stride + first;
    AddRowProducts(this->rows, end - begin, this->a.data() + begin, this->stride,
      { this->b.data() + place, this->stride, this->transposed }, this->columns - first,
      to.data() + first, this->columns);
  }

  std::vector<float> Zeros() const
  {
    return std::vector<float>(static_cast<std::size_t>(this->rows * this->columns));
  }
};

std::vector<Factors> AllFactors()
{
  std::vector<Factors> all;
  for (std::int64_t rows = 1; rows <= FewRows; ++rows)
  {
    for (const std::int64_t inner : { 1, 3, 4, 31, 259 })
    {
      for (const std::int64_t columns : { 1, 7, 16, 33, 130 })
      {
        for (const bool transposed : { false, true })
        {
          all.push_back({ rows, inner, columns, transposed });
        }
      }
    }
  }
  return all;
}

std::string NameOf(const Factors& factors)
{
  return std::to_string(factors.rows) + " x " + std::to_string(factors.inner) + " x " +
         std::to_string(factors.columns) + (factors.transposed ? ", transposed" : "");
}

using RowProduct = OnTarget;

INSTANTIATE_TEST_SUITE_P(, RowProduct, OnTarget::Targets(), OnTarget::Name);

TEST_P(RowProduct, AddsTheSumOfProducts)
{
  for (const Factors& factors : AllFactors())
  {
    const std::vector<float> before = NumbersBelowOne(factors.rows * factors.columns, 3);
    std::vector<float> found = before;
    factors.Add(0, factors.inner, 0, found);
    double largest = 0;
    for (std::size_t place = 0; place < found.size(); ++place)
    {
      const std::int64_t row = static_cast<std::int64_t>(place) / factors.columns;
      const std::int64_t column = static_cast<std::int64_t>(place) % factors.columns;
      double expected = static_cast<double>(before[place]);
      double sizes = std::abs(expected);
      for (std::int64_t i = 0; i < factors.inner; ++i)
      {
        const std::int64_t of =
          factors.transposed ? column * factors.stride + i : i * factors.stride + column;
        const double term =
          static_cast<double>(factors.a[static_cast<std::size_t>(row * factors.stride + i)]) *
          static_cast<double>(factors.b[static_cast<std::size_t>(of)]);
        expected += term;
        sizes += std::abs(term);
      }
      const double error = std::abs(static_cast<double>(found[place]) - expected) /
                           (sizes * static_cast<double>(factors.inner + 1));
      largest = error <= largest ? largest : error; // not with std::max, which would lose NaN
    }
    EXPECT_LE(largest, 0x1p-23) << NameOf(factors);
  }
}

TEST_P(RowProduct, BytesAreThoseOfPackedColumns)
{
  for (const Factors& factors : AllFactors())
  {
    PackedColumns packed;
    packed.Set(
      { factors.b.data(), factors.stride, factors.transposed }, factors.inner, factors.columns);
    std::vector<float> padded(static_cast<std::size_t>(factors.rows * packed.Stride()));
    packed.Multiply(factors.rows, factors.a.data(), factors.stride, padded.data());
    std::vector<float> expected;
    for (std::int64_t row = 0; row < factors.rows; ++row)
    {
      const auto first = padded.begin() + row * packed.Stride();
      expected.insert(expected.end(), first, first + factors.columns);
    }
    std::vector<float> found = factors.Zeros();
    factors.Add(0, factors.inner, 0, found);
    EXPECT_EQ(found, expected) << NameOf(factors);
  }
}

TEST_P(RowProduct, BytesDependNeitherOnPartsNorOnOtherColumns)
{
  for (const Factors& factors : AllFactors())
  {
    std::vector<float> whole = factors.Zeros();
    factors.Add(0, factors.inner, 0, whole);
    const std::int64_t middle = factors.inner / 3;
    for (const std::int64_t first : { std::int64_t{ 0 }, factors.columns / 2 })
    {
      std::vector<float> parts = factors.Zeros();
      factors.Add(0, middle, first, parts);
      factors.Add(middle, factors.inner, first, parts);
      for (std::int64_t place = 0; place < factors.rows * factors.columns; ++place)
      {
        const auto index = static_cast<std::size_t>(place);
        EXPECT_EQ(parts[index], place % factors.columns < first ? 0 : whole[index])
          << NameOf(factors) << " from " << first << ", " << place;
      }
    }
  }
}

/// Integers of a byte with their scales and offsets are the same as their numbers.
TEST_P(RowProduct, BytesOfIntegersAreThoseOfTheirNumbers)
{
  constexpr std::int64_t inner = 80;
  constexpr std::int64_t stride = 112;
  constexpr std::int64_t groups = inner / 16;
  std::mt19937 generator(4);
  std::vector<std::int8_t> integers(IntegerColumnCount * stride);
  std::generate(integers.begin(), integers.end(),
    [&generator] { return static_cast<std::int8_t>(generator() % 256 - 128); });
  const std::vector<float> scales = NumbersBelowOne(groups * IntegerColumnCount, 5);
  const std::vector<float> offsets = NumbersBelowOne(groups * IntegerColumnCount, 6);
  const std::vector<float> from = NumbersBelowOne(FewRows * inner, 7);
  for (const bool hasOffsets : { false, true })
  {
    std::vector<float> numbers;
    for (std::int64_t c = 0; c < IntegerColumnCount; ++c)
    {
      for (std::int64_t i = 0; i < inner; ++i)
      {
        const auto group = static_cast<std::size_t>(i / 16 * IntegerColumnCount + c);
        const float scaled =
          scales[group] * static_cast<float>(integers[static_cast<std::size_t>(c * stride + i)]);
        numbers.push_back(hasOffsets ? scaled + offsets[group] : scaled);
      }
    }
    for (std::int64_t rows = 1; rows <= FewRows; ++rows)
    {
      std::vector<float> expected = NumbersBelowOne(rows * IntegerColumnCount, 8);
      std::vector<float> found = expected;
      AddRowProducts(rows, inner, from.data(), inner, { numbers.data(), inner, true },
        IntegerColumnCount, expected.data(), IntegerColumnCount);
      AddRowProducts(rows, inner, from.data(), inner,
        { integers.data(), stride, scales.data(), hasOffsets ? offsets.data() : nullptr },
        found.data(), IntegerColumnCount);
      EXPECT_EQ(found, expected) << rows << (hasOffsets ? " rows, with offsets" : " rows");
    }
  }
}

}
