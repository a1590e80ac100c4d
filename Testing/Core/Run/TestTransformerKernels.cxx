#include "Run/Internal/TransformerKernels.h"

#include "EveryTarget.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;

namespace
{

std::vector<float> Numbers(std::size_t count, unsigned seed)
{
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values)
  {
    value = static_cast<float>(generator() % 8001) / 1000 - 4;
  }
  return values;
}

/// A normalization by its formula, in double.
std::vector<double> Normalized(const NormParameters& norm, const std::vector<float>& values)
{
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const float value : values)
  {
    mean += norm.kind == NormKind::LayerNorm ? static_cast<double>(value) / count : 0;
  }
  double square = 0;
  for (const float value : values)
  {
    square += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean) / count;
  }
  std::vector<double> result;
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    const double scaled = (static_cast<double>(values[i]) - mean) /
                          std::sqrt(square + static_cast<double>(norm.epsilon));
    result.push_back(scaled * (norm.gain == nullptr ? 1. : static_cast<double>(norm.gain[i])) +
                     (norm.shift == nullptr ? 0. : static_cast<double>(norm.shift[i])));
  }
  return result;
}

TEST(NormalizeRow, IsItsFormulaForAnyLength)
{
  const std::vector<float> gain = Numbers(70, 100);
  const std::vector<float> shift = Numbers(70, 101);
  for (const NormKind kind : { NormKind::LayerNorm, NormKind::RmsNorm })
  {
    for (std::size_t count = 2; count < 70; ++count)
    {
      const bool plain = count % 3 == 0;
      const NormParameters norm = { kind, 1e-3F, plain ? nullptr : gain.data(),
        count % 2 == 0 ? nullptr : shift.data() };
      std::vector<float> values = Numbers(count, static_cast<unsigned>(count));
      const std::vector<double> expected = Normalized(norm, values);
      std::vector<float> apart(count);
      NormalizeRow(norm, static_cast<std::int64_t>(count), values.data(), apart.data());
      NormalizeRow(norm, static_cast<std::int64_t>(count), values.data(), values.data());
      EXPECT_EQ(apart, values);
      for (std::size_t i = 0; i < count; ++i)
      {
        EXPECT_NEAR(values[i], expected[i], 2e-5) << i << " of " << count;
      }
    }
  }
}

TEST(NormalizeRow, NoneCopies)
{
  const std::vector<float> values = { 1, -2, 3 };
  std::vector<float> copy(3);
  NormalizeRow({ NormKind::None, 0, nullptr, nullptr }, 3, values.data(), copy.data());
  EXPECT_EQ(copy, values);
}

double Expected(Activation activation, double x)
{
  switch (activation)
  {
    case Activation::Gelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2)));
    case Activation::GeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1)) * (x + 0.044715 * x * x * x)));
    case Activation::Relu:
      return x > 0 ? x : 0;
    case Activation::Silu:
      return x / (1 + std::exp(-x));
    case Activation::QuickGelu:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::SquaredRelu:
      return x > 0 ? x * x : 0;
    case Activation::Xielu: // has parameters
      break;
  }
  return 0;
}

using Activations = atlas::test::OnTarget;
INSTANTIATE_TEST_SUITE_P(
  , Activations, atlas::test::OnTarget::Targets(), atlas::test::OnTarget::Name);

TEST_P(Activations, AreTheirFormulas)
{
  for (const Activation activation : { Activation::Gelu, Activation::GeluTanh, Activation::Relu,
         Activation::Silu, Activation::QuickGelu })
  {
    std::vector<float> values = { 1e30F, -1e30F }; // whose cubes are no floats
    for (int i = -600; i <= 600; ++i)
    {
      values.push_back(static_cast<float>(i) / 50);
    }
    const std::vector<float> arguments = values;
    Activate(activation, static_cast<std::int64_t>(values.size()) - 1, values.data());
    EXPECT_EQ(values.back(), 12) << "behind the row";
    for (std::size_t i = 0; i + 1 < values.size(); ++i)
    {
      const auto x = static_cast<double>(arguments[i]);
      EXPECT_NEAR(values[i], Expected(activation, x), 1e-6 * std::max(1., std::abs(x))) << x;
    }
  }
}

TEST_P(Activations, KeepWhatIsNotANumber)
{
  for (const Activation activation : { Activation::Gelu, Activation::GeluTanh, Activation::Relu,
         Activation::Silu, Activation::QuickGelu, Activation::SquaredRelu })
  {
    float value = std::numeric_limits<float>::quiet_NaN();
    Activate(activation, 1, &value);
    EXPECT_TRUE(std::isnan(value)) << static_cast<int>(activation);
  }
}

TEST(MoreActivations, HaveSquares)
{
  std::vector<float> values = { -2, 0, 0.5F, 3 };
  Activate(Activation::SquaredRelu, 4, values.data());
  EXPECT_THAT(values, testing::ElementsAre(0, 0, 0.25F, 9));
  values = { -2, -0.25F, 0, 3 };
  ApplyXielu({ 0.5F, 2, 0.25F, -1 }, 4, values.data()); // limited to exp(-1) - 1
  const double kept = std::exp(-1) - 1;
  EXPECT_THAT(
    values, testing::ElementsAre(
              testing::FloatNear(static_cast<float>(2 * (std::exp(-2) - 1 + 2) - 0.5), 1e-6F),
              testing::FloatNear(static_cast<float>(2 * (kept + 0.25) - 0.0625), 1e-6F),
              testing::FloatNear(static_cast<float>(2 * kept), 1e-6F), 5.25F));
}

TEST(Rows, AreAddedAndMultiplied)
{
  std::vector<float> values = { 1, 2, 3 };
  const std::vector<float> others = { 10, 0.5F, -1 };
  AddRow(2, others.data(), values.data());
  EXPECT_THAT(values, testing::ElementsAre(11, 2.5F, 3));
  MultiplyRow(3, others.data(), values.data());
  EXPECT_THAT(values, testing::ElementsAre(110, 1.25F, -3));
}

TEST(Rows, AreCappedAndLimited)
{
  std::vector<float> values = { -100, -1, 0, 2, 50 };
  CapRow(2, 4, values.data());
  for (const auto& [i, x] : { std::pair(0U, -100.), std::pair(1U, -1.), std::pair(3U, 2.) })
  {
    EXPECT_NEAR(values[i], 2 * std::tanh(x / 2), 1e-6);
  }
  EXPECT_EQ(values[4], 50);
  values = { -100, -1, std::numeric_limits<float>::quiet_NaN(), 2, 50 };
  LimitRow(1.5F, 4, values.data());
  EXPECT_EQ(values[0], -1.5F);
  EXPECT_EQ(values[1], -1);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_EQ(values[3], 1.5F);
  EXPECT_EQ(values[4], 50);
}

TEST(FindNotFinite, FindsTheFirst)
{
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t place = 0; place < 67; ++place)
  {
    std::vector<float> values(67, std::numeric_limits<float>::max());
    EXPECT_EQ(FindNotFinite(67, values.data()), -1);
    values[place] = place % 3 == 0 ? infinity : place % 3 == 1 ? -infinity : std::nanf("");
    EXPECT_EQ(FindNotFinite(67, values.data()), static_cast<std::int64_t>(place));
    values.back() = infinity;
    EXPECT_EQ(FindNotFinite(67, values.data()), static_cast<std::int64_t>(place));
  }
  EXPECT_EQ(FindNotFinite(0, nullptr), -1);
}

}
