#include "Numerics/VectorMath.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "EveryTarget.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using atlas::test::MessageOf;
using testing::HasSubstr;

namespace
{

/// The distance of `found` from `expected` in units in the last place of float at `expected`, which
/// are not smaller than those of the smallest normal number.
double ErrorInUlp(float found, double expected)
{
  const int exponent = std::max(std::ilogb(expected), std::numeric_limits<float>::min_exponent - 1);
  return std::abs(static_cast<double>(found) - expected) / std::ldexp(1.0, exponent - 23);
}

using Function = void (*)(const float*, std::size_t, float*);

class VectorMath : public atlas::test::OnTarget
{
protected:
  /// The range in which results are exact to rounding, according to the documentation.
  static constexpr float Limit = 87.3F;

  /// Calls `check(x, f(x))` for floats of all signs, exponents and mantissas, in blocks: every
  /// 1021st, or every one if the environment variable ATLAS_EXHAUSTIVE is set (minutes).
  template<class Check>
  static void ForAllFloats(Function function, const Check& check)
  {
    const std::uint64_t stride = std::getenv("ATLAS_EXHAUSTIVE") ? 1 : 1021;
    std::vector<float> x;
    std::vector<float> result;
    const auto flush = [&]
    {
      result.resize(x.size());
      function(x.data(), x.size(), result.data());
      for (std::size_t i = 0; i < x.size(); ++i)
      {
        check(x[i], result[i]);
      }
      x.clear();
    };
    for (std::uint64_t bits = 0; bits <= UINT32_MAX; bits += stride)
    {
      const auto low = static_cast<std::uint32_t>(bits);
      float value = 0;
      std::memcpy(&value, &low, sizeof(value));
      if (!std::isnan(value))
      {
        x.push_back(value);
      }
      if (x.size() == 4099)
      {
        flush();
      }
    }
    flush();
  }

  /// Checks that `function` is within `mostUlp` units in the last place of `expected` up to the
  /// limit, and that `isSaturated(x, f(x))` holds beyond it.
  template<class Expected, class IsSaturated>
  static void ExpectError(
    Function function, const Expected& expected, double mostUlp, const IsSaturated& isSaturated)
  {
    double largest = 0;
    float worst = 0;
    std::size_t notSaturated = 0;
    ForAllFloats(function,
      [&](float x, float found)
      {
        if (std::abs(x) > Limit)
        {
          notSaturated += isSaturated(x, found) ? 0U : 1U;
          return;
        }
        const double error = ErrorInUlp(found, expected(static_cast<double>(x)));
        worst = error > largest ? x : worst;
        largest = std::max(largest, error);
      });
    RecordProperty("LargestErrorInUlp", std::to_string(largest));
    EXPECT_LE(largest, mostUlp) << "at " << worst;
    EXPECT_GT(largest, 0.5); // rounding alone
    EXPECT_EQ(notSaturated, 0U);
  }
};
INSTANTIATE_TEST_SUITE_P(
  , VectorMath, atlas::test::OnTarget::Targets(), atlas::test::OnTarget::Name);

/// 1 / (1 + e^-x) is 0 where it is smaller than normal numbers, in every lane; -0 is as 0.
TEST_P(VectorMath, IsZeroInfinitelyFarBelow)
{
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float denormal = std::numeric_limits<float>::denorm_min();
  for (std::size_t place = 0; place < 37; ++place)
  {
    for (const float x : { -infinity, -std::numeric_limits<float>::max(), -104.F, -88.F, -87.4F })
    {
      std::vector<float> values(37, 1);
      values[place] = x;
      std::vector<float> found(37);
      atlas::Logistic(values.data(), 37, found.data());
      EXPECT_EQ(found[place], 0) << x;
      EXPECT_FALSE(std::signbit(found[place]));
      EXPECT_NEAR(found[(place + 1) % 37], 0.73105858F, 1e-6);
      if (!std::isinf(x))
      {
        atlas::MultiplyByLogistic(1, 0, 37, values.data());
        EXPECT_EQ(values[place], 0) << x;
      }
    }
  }
  const std::vector<float> near = { -0.F, 0.F, denormal, -denormal };
  std::vector<float> found(4);
  atlas::Logistic(near.data(), 4, found.data());
  EXPECT_THAT(found, testing::Each(0.5F));
  atlas::Logistic(&infinity, 1, found.data());
  EXPECT_EQ(found[0], 1);
}

TEST_P(VectorMath, TheLogisticFunctionIsWithinItsError)
{
  ExpectError(
    atlas::Logistic, [](double x) { return 1 / (1 + std::exp(-x)); }, 3.6,
    [](float x, float found)
    {
      return x > 0 ? found == 1
                   : found == 0 || (x >= -87.4F && found > 1.1e-38F && found < 1.3e-38F);
    });
}

void Silu(const float* x, std::size_t count, float* out)
{
  std::copy_n(x, count, out);
  atlas::MultiplyByLogistic(1, 0, static_cast<std::int64_t>(count), out);
}

TEST_P(VectorMath, SiluIsWithinItsError)
{
  ExpectError(
    Silu, [](double x) { return x / (1 + std::exp(-x)); }, 4.1,
    [](float x, float found)
    {
      return x > 0        ? found == x
             : x < -87.4F ? found == 0 || std::isinf(x)
                          : std::abs(found) <= 1.3e-38F * std::abs(x);
    });
}

TEST_P(VectorMath, AValueDependsOnItsArgumentAlone)
{
  std::vector<float> x;
  for (int i = 0; i < 77; ++i)
  {
    x.push_back(-12.3F + 0.37F * static_cast<float>(i));
  }
  for (const Function function : { atlas::Logistic, Silu })
  {
    std::vector<float> whole(x.size());
    function(x.data(), x.size(), whole.data());
    for (std::size_t begin = 0; begin < x.size(); ++begin)
    {
      std::vector<float> part(x.size() - begin);
      function(x.data() + begin, part.size(), part.data());
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + begin, part.size() * sizeof(float)), 0);
    }
  }
}

/// Softmax by its formula, in double.
std::vector<double> SoftmaxOf(const std::vector<float>& scores)
{
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  std::vector<double> weights;
  for (const float score : scores)
  {
    weights.push_back(std::exp(static_cast<double>(score) - largest));
    sum += weights.back();
  }
  for (double& weight : weights)
  {
    weight /= sum;
  }
  return weights;
}

using SoftmaxRow = atlas::test::OnTarget;
INSTANTIATE_TEST_SUITE_P(
  , SoftmaxRow, atlas::test::OnTarget::Targets(), atlas::test::OnTarget::Name);

TEST_P(SoftmaxRow, IsItsFormulaForAnyLengthAndPlace)
{
  std::mt19937 generator(1);
  for (std::size_t count = 1; count < 70; ++count)
  {
    std::vector<float> row(count);
    for (float& value : row)
    {
      value = static_cast<float>(generator() % 18001) / 1000 - 9;
    }
    const std::vector<double> expected = SoftmaxOf(row);
    std::vector<float> first;
    for (std::size_t place = 0; place < 17; ++place)
    {
      std::vector<float> values(place, 2);
      values.insert(values.end(), row.begin(), row.end());
      values.push_back(3);
      atlas::SoftmaxRow(static_cast<std::int64_t>(count), values.data() + place);
      EXPECT_EQ(values.back(), 3);
      EXPECT_EQ(std::count(values.begin(), values.end() - 1, 2), static_cast<std::int64_t>(place));
      const std::vector<float> found(
        values.begin() + static_cast<std::int64_t>(place), values.end() - 1);
      first = place == 0 ? found : first;
      EXPECT_EQ(std::memcmp(found.data(), first.data(), count * sizeof(float)), 0);
    }
    for (std::size_t i = 0; i < count; ++i)
    {
      EXPECT_NEAR(first[i], expected[i], 3e-6 * expected[i]) << i << " of " << count;
    }
  }
}

TEST_P(SoftmaxRow, LargeScoresDoNotOverflow)
{
  std::vector<float> values = { 1e30F, -1e30F, 1e30F, -std::numeric_limits<float>::infinity() };
  atlas::SoftmaxRow(4, values.data());
  EXPECT_EQ(values[0], 0.5F);
  EXPECT_EQ(values[2], 0.5F);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[3], 0);
}

/// What a mask excludes has no weight at all, in every lane.
TEST_P(SoftmaxRow, ExcludedKeysHaveNoWeight)
{
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t count = 2; count <= 41; ++count)
  {
    for (std::size_t place = 0; place < count; ++place)
    {
      std::vector<float> values(count, 3);
      values[place] = -infinity;
      atlas::SoftmaxRow(static_cast<std::int64_t>(count), values.data());
      EXPECT_EQ(values[place], 0);
      EXPECT_EQ(values[(place + 1) % count], 1 / static_cast<float>(count - 1));
    }
  }
}

TEST_P(SoftmaxRow, NotANumberMakesTheWholeRowSo)
{
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : { nan, -nan, std::numeric_limits<float>::infinity() })
  {
    for (std::size_t place = 0; place < 21; ++place)
    {
      std::vector<float> values(21, 1);
      values[place] = bad;
      atlas::SoftmaxRow(21, values.data());
      for (const float value : values)
      {
        EXPECT_TRUE(std::isnan(value) || (std::isinf(bad) && value == 0)) << place;
      }
      EXPECT_TRUE(std::isnan(values[place]));
    }
  }
}

TEST(Targets, TheBestIsUsedUnlessAnotherIsChosen)
{
  const std::vector<std::string> targets = atlas::SupportedTargets();
  ASSERT_FALSE(targets.empty());
  atlas::UseTarget("");
  EXPECT_EQ(atlas::CurrentTarget(), targets.front());
  for (const std::string& target : targets)
  {
    atlas::UseTarget(target);
    EXPECT_EQ(atlas::CurrentTarget(), target);
  }
  atlas::UseTarget("");
}

TEST(Targets, AnUnknownOneIsRefusedAndChangesNothing)
{
  atlas::UseTarget("");
  const std::string message = MessageOf<atlas::OptionError>([] { atlas::UseTarget("AVX99"); });
  EXPECT_THAT(message, HasSubstr("found 'AVX99'"));
  for (const std::string& target : atlas::SupportedTargets())
  {
    EXPECT_THAT(message, HasSubstr(target));
  }
  EXPECT_EQ(atlas::CurrentTarget(), atlas::SupportedTargets().front());
}

}
