#include "Bfloat16Product.h"

#include "InstructionSets.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using testing::ElementsAre;

namespace
{

std::vector<float> NumbersBelowOne(std::int64_t count, unsigned seed)
{
  std::mt19937 generator(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values)
  {
    value = static_cast<float>(generator()) / 0x1p31F - 1;
  }
  return values;
}

/// The nearest number with 8 significant bits; of two, the one whose last bit is 0.
double RoundedToEightBits(float value)
{
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(value), &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

struct Size
{
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
};

const std::vector<Size> Sizes = { { 1, 1, 1 }, { 2, 2, 64 }, { 5, 31, 63 }, { 6, 32, 65 },
  { 7, 33, 16 }, { 12, 64, 17 }, { 13, 97, 130 }, { 31, 768, 256 } };

std::vector<float> Product(
  const Bfloat16Rows& rows, const Bfloat16Columns& columns, float before = 0)
{
  std::vector<float> product(static_cast<std::size_t>(rows.Count() * columns.Stride()), before);
  columns.Multiply(rows, product.data());
  return product;
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

class Bfloat16Product : public testing::Test
{
protected:
  void SetUp() override
  {
    if (!HasBfloat16Products())
    {
      GTEST_SKIP() << "the processor has no products of BF16";
    }
  }
};

TEST_F(Bfloat16Product, IsThatOfRoundedNumbers)
{
  for (const Size& size : Sizes)
  {
    const std::int64_t stride = std::max(size.inner, size.columns) + 3;
    const std::vector<float> a = NumbersBelowOne(size.rows * size.inner, 2);
    const std::vector<float> b = NumbersBelowOne(stride * stride, 3);
    Bfloat16Rows rows(size.inner);
    for (std::int64_t r = 0; r < size.rows; ++r)
    {
      rows.Add(a.data() + r * size.inner);
    }
    ASSERT_EQ(rows.Count(), size.rows);
    for (const bool transposed : { false, true })
    {
      Bfloat16Columns columns;
      columns.Set({ b.data(), stride, transposed }, size.inner, size.columns);
      ASSERT_GE(columns.Stride(), size.columns);
      const std::vector<float> found = Product(rows, columns, NAN);
      for (std::int64_t r = 0; r < size.rows; ++r)
      {
        for (std::int64_t c = 0; c < size.columns; ++c)
        {
          double expected = 0;
          double sizes = 0;
          for (std::int64_t i = 0; i < size.inner; ++i)
          {
            const double term =
              RoundedToEightBits(a[static_cast<std::size_t>(r * size.inner + i)]) *
              RoundedToEightBits(
                b[static_cast<std::size_t>(transposed ? c * stride + i : i * stride + c)]);
            expected += term;
            sizes += std::abs(term);
          }
          ASSERT_NEAR(found[static_cast<std::size_t>(r * columns.Stride() + c)], expected,
            sizes * static_cast<double>(size.inner) * 0x1p-23)
            << r << " " << c << " of " << size.rows << " x " << size.inner << " x " << size.columns
            << (transposed ? ", transposed" : "");
        }
      }
    }
  }
}

TEST_F(Bfloat16Product, OfWholeNumbersIsExact)
{
  const std::vector<float> a = { 1, 2, 3, -4, 5, 255 };
  const std::vector<float> b = { 7, -8, 9, 10, 11, 12 };
  Bfloat16Rows rows(3);
  rows.Add(a.data());
  rows.Add(a.data() + 3);
  Bfloat16Columns columns;
  columns.Set({ b.data(), 2 }, 3, 2);
  const std::vector<float> found = Product(rows, columns);
  const auto second = static_cast<std::size_t>(columns.Stride());
  EXPECT_THAT((std::vector<float>{ found[0], found[1], found[second], found[second + 1] }),
    ElementsAre(7 + 18 + 33, -8 + 20 + 36, -28 + 45 + 255 * 11, 32 + 50 + 255 * 12));
}

TEST_F(Bfloat16Product, OfARowDependsOnNoOtherRow)
{
  constexpr std::int64_t inner = 100;
  constexpr std::int64_t count = 23;
  const std::vector<float> a = NumbersBelowOne(count * inner, 4);
  const std::vector<float> b = NumbersBelowOne(inner * 70, 5);
  Bfloat16Columns columns;
  columns.Set({ b.data(), 70 }, inner, 70);
  Bfloat16Rows rows(inner);
  for (std::int64_t r = 0; r < count; ++r)
  {
    rows.Add(a.data() + r * inner);
  }
  const std::vector<float> together = Product(rows, columns);
  for (std::int64_t r = 0; r < count; ++r)
  {
    rows.Clear();
    rows.Add(a.data() + r * inner);
    const std::vector<float> alone = Product(rows, columns);
    EXPECT_EQ(
      std::memcmp(alone.data(), together.data() + r * columns.Stride(), 70 * sizeof(float)), 0);
  }
}

TEST_F(Bfloat16Product, IsNotUsedWithOtherInstructions)
{
  UseTarget(SupportedTargets().back());
  EXPECT_FALSE(HasBfloat16Products());
  UseTarget("");
  EXPECT_TRUE(HasBfloat16Products());
}

}
