#include "Numerics/PackedProduct.h"

#include "EveryTarget.h"
#include "NumbersBelowOne.h"
#include "Numerics/InstructionSets.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;

namespace
{

constexpr ProductPrecision BothPrecisions[] = { ProductPrecision::Single,
  ProductPrecision::Bfloat16 };

/// The nearest number with 8 significant bits; of two, the one whose last bit is 0.
double RoundedToEightBits(float value)
{
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(value), &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

double FactorOf(float value, ProductPrecision products)
{
  return products == ProductPrecision::Single ? static_cast<double>(value)
                                              : RoundedToEightBits(value);
}

TEST(Bfloat16, RoundsToEightBits)
{
  std::vector<float> values = NumbersBelowOne(1000, 1);
  values.insert(values.end(), { 0.F, -3.F, 1 + 0x1p-8F, 1 + 0x3p-8F, 1 + 0x1p-8F + 0x1p-20F });
  std::vector<float> rounded = values;
  RoundToBfloat16(static_cast<std::int64_t>(rounded.size()), rounded.data());
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    EXPECT_EQ(static_cast<double>(rounded[i]), RoundedToEightBits(values[i])) << values[i];
  }
  EXPECT_THAT(std::vector<float>(rounded.end() - 3, rounded.end()),
    ElementsAre(1.F, 1 + 0x1p-6F, 1 + 0x1p-7F));
}

TEST(Bfloat16, RoundingKeepsWhatIsNotFinite)
{
  std::vector<float> values = { std::numeric_limits<float>::infinity(),
    -std::numeric_limits<float>::infinity(), 0.F };
  const std::uint32_t nan = 0x7FFFFFFF; // whose upper half rounds up to a negative zero
  std::memcpy(&values[2], &nan, sizeof(nan));
  RoundToBfloat16(3, values.data());
  EXPECT_EQ(values[0], std::numeric_limits<float>::infinity());
  EXPECT_EQ(values[1], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(values[2]));
}

TEST(Bfloat16, ProductsAreNotThoseOfTheMachineWithOtherInstructions)
{
  const bool has = HasBfloat16Products();
  UseTarget(SupportedTargets().back());
  EXPECT_FALSE(HasBfloat16Products());
  UseTarget("");
  EXPECT_EQ(HasBfloat16Products(), has);
}

struct Size
{
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
};

const std::vector<Size> Sizes = { { 1, 1, 1 }, { 2, 2, 64 }, { 5, 31, 63 }, { 6, 32, 65 },
  { 7, 33, 16 }, { 12, 64, 17 }, { 13, 97, 130 }, { 31, 768, 256 } };

using PackedProduct = OnTarget;

INSTANTIATE_TEST_SUITE_P(, PackedProduct, OnTarget::Targets(), OnTarget::Name);

/// The largest error of a product, by the sum of the sizes of its terms and their number.
double LargestError(const Size& size, bool transposed, ProductPrecision products)
{
  const std::int64_t stride = std::max(size.inner, size.columns) + 3; // of larger matrices
  const std::vector<float> a = NumbersBelowOne(size.rows * stride, 2);
  const std::vector<float> b = NumbersBelowOne(stride * stride, 3);
  PackedColumns columns;
  columns.Set({ b.data(), stride, transposed }, size.inner, size.columns, products);
  EXPECT_GE(columns.Stride(), size.columns);
  std::vector<float> found(static_cast<std::size_t>(size.rows * columns.Stride()), NAN);
  columns.Multiply(size.rows, a.data(), stride, found.data());
  double largest = 0;
  for (std::int64_t r = 0; r < size.rows; ++r)
  {
    for (std::int64_t c = 0; c < columns.Stride(); ++c)
    {
      double expected = 0;
      double sizes = 0;
      for (std::int64_t i = 0; i < size.inner && c < size.columns; ++i)
      {
        const std::int64_t place = transposed ? c * stride + i : i * stride + c;
        const double term = FactorOf(a[static_cast<std::size_t>(r * stride + i)], products) *
                            FactorOf(b[static_cast<std::size_t>(place)], products);
        expected += term;
        sizes += std::abs(term);
      }
      const double error = std::abs(
        static_cast<double>(found[static_cast<std::size_t>(r * columns.Stride() + c)]) - expected);
      const double scaled = error == 0 ? 0 : error / (sizes * static_cast<double>(size.inner));
      largest = scaled <= largest ? largest : scaled; // not with std::max, which would lose NaN
    }
  }
  return largest;
}

TEST_P(PackedProduct, IsTheSumOfProducts)
{
  for (const ProductPrecision products : BothPrecisions)
  {
    for (const Size& size : Sizes)
    {
      for (const bool transposed : { false, true })
      {
        EXPECT_LE(LargestError(size, transposed, products), 0x1p-23)
          << atlas::Name(products) << " " << size.rows << " x " << size.inner << " x "
          << size.columns << (transposed ? ", transposed" : "");
      }
    }
  }
}

TEST_P(PackedProduct, OfARowDependsOnNoOtherRowOrColumn)
{
  constexpr std::int64_t inner = 100;
  constexpr std::int64_t count = 23;
  constexpr std::int64_t width = 70;
  const std::vector<float> a = NumbersBelowOne(count * inner, 4);
  const std::vector<float> b = NumbersBelowOne(inner * width, 5);
  for (const ProductPrecision products : BothPrecisions)
  {
    PackedColumns all;
    all.Set({ b.data(), width }, inner, width, products);
    std::vector<float> together(static_cast<std::size_t>(count * all.Stride()));
    all.Multiply(count, a.data(), inner, together.data());
    for (const std::int64_t first : { 0, 13, 69 })
    {
      PackedColumns some;
      some.Set({ b.data() + first, width }, inner, width - first, products);
      std::vector<float> alone(static_cast<std::size_t>(some.Stride()));
      for (std::int64_t r = 0; r < count; ++r)
      {
        some.Multiply(1, a.data() + r * inner, inner, alone.data());
        EXPECT_EQ(std::memcmp(alone.data(), together.data() + r * all.Stride() + first,
                    static_cast<std::size_t>(width - first) * sizeof(float)),
          0)
          << atlas::Name(products) << " " << r << " " << first;
      }
    }
  }
}

/// Setting columns again leaves nothing of those before.
TEST_P(PackedProduct, IsThatOfTheLastColumns)
{
  const std::vector<float> a = NumbersBelowOne(50, 6);
  const std::vector<float> b = NumbersBelowOne(50 * 90, 7);
  PackedColumns fresh;
  fresh.Set({ b.data(), 50, true }, 33, 20);
  std::vector<float> expected(static_cast<std::size_t>(fresh.Stride()));
  fresh.Multiply(1, a.data(), 50, expected.data());
  PackedColumns used;
  for (const ProductPrecision products : BothPrecisions)
  {
    used.Set({ b.data(), 90 }, 50, 90, products);
    used.Set({ b.data(), 50, true }, 33, 20);
    ASSERT_EQ(used.Stride(), fresh.Stride());
    std::vector<float> found(expected.size());
    used.Multiply(1, a.data(), 50, found.data());
    EXPECT_EQ(found, expected);
  }
}

}
