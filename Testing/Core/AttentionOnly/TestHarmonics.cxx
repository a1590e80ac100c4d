#include "AttentionOnly/Harmonics.h"
#include "Base/Pi.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "HandModel.h"
#include "Oracle.h"
#include "RandomModel.h"

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include <Eigen/SVD>
#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// The value of a trigonometric polynomial, summed term by term.
double EvaluateHarmonics(const HarmonicCoefficients& coefficients, double theta1, double theta2)
{
  const HarmonicCoefficients& k = coefficients;
  return k[Harmonic::Constant] + k[Harmonic::CosT1] * std::cos(theta1) +
         k[Harmonic::SinT1] * std::sin(theta1) + k[Harmonic::CosT2] * std::cos(theta2) +
         k[Harmonic::SinT2] * std::sin(theta2) + k[Harmonic::CosTwiceT2] * std::cos(2 * theta2) +
         k[Harmonic::SinTwiceT2] * std::sin(2 * theta2) +
         k[Harmonic::CosSum] * std::cos(theta1 + theta2) +
         k[Harmonic::SinSum] * std::sin(theta1 + theta2) +
         k[Harmonic::CosDifference] * std::cos(theta1 - theta2) +
         k[Harmonic::SinDifference] * std::sin(theta1 - theta2);
}

std::vector<double> ToVector(const HarmonicCoefficients& coefficients)
{
  return { coefficients.begin(), coefficients.end() };
}

/// Angles and parameters without any symmetry.
class Random
{
public:
  double Uniform(double low, double high)
  {
    return std::uniform_real_distribution<double>(low, high)(this->Engine);
  }
  double Angle() { return this->Uniform(-Pi, Pi); }

private:
  std::mt19937 Engine{ 7 };
};

HarmonicCoefficients RandomCoefficients(double size)
{
  Random random;
  HarmonicCoefficients coefficients{};
  for (double& coefficient : coefficients)
  {
    coefficient = random.Uniform(-size, size);
  }
  return coefficients;
}

using HarmonicsAgainstOracle = atlas::test::OracleTest;
INSTANTIATE_TEST_SUITE_P(
  , HarmonicsAgainstOracle, atlas::test::OracleTest::Models(), atlas::test::OracleTest::Name);

TEST_P(HarmonicsAgainstOracle, CoefficientsAreThoseOfTheOracle)
{
  const AttentionOnlyModel& model = GetOracle().GetModel();
  std::vector<double> found;
  for (std::size_t h = 0; h < model.HeadCount(); ++h)
  {
    const std::vector<double> head = ToVector(ScoreHarmonics(model, h));
    found.insert(found.end(), head.begin(), head.end());
  }
  const std::vector<double> expected = GetOracle().Values("harmonics");
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    EXPECT_NEAR(found[i], expected[i], 1e-9) << HarmonicNames.at(i % HarmonicCount);
  }
}

using HarmonicsOfDimension = testing::TestWithParam<int>;
INSTANTIATE_TEST_SUITE_P(
  , HarmonicsOfDimension, testing::Values(1, 2, 3, 4), testing::PrintToStringParamName());

TEST_P(HarmonicsOfDimension, SeriesIsTheReferenceScoreAnywhere)
{
  Random random;
  for (unsigned seed = 0; seed < 20; ++seed)
  {
    const AttentionOnlyModel model = RandomModel(2, 1, seed, GetParam());
    const HarmonicCoefficients coefficients = ScoreHarmonics(model, 0);
    EXPECT_NEAR(coefficients[Harmonic::CosTwiceT2], -coefficients[Harmonic::CosSum], 1e-12);
    EXPECT_NEAR(coefficients[Harmonic::SinTwiceT2], -coefficients[Harmonic::SinSum], 1e-12);
    const ReferenceEvaluator evaluator(model, {});
    for (int point = 0; point < 20; ++point)
    {
      const double t1 = 2 * random.Angle();
      const double t2 = 2 * random.Angle();
      EXPECT_NEAR(
        EvaluateHarmonics(coefficients, t1, t2), evaluator.AtAngles(t1, t2).heads[0].score, 1e-11);
    }
  }
}

TEST_P(HarmonicsOfDimension, FreeParametersAreTheRankOfTheDerivative)
{
  // The number of directions in which the coefficients move when all weights of a head vary.
  AttentionOnlyModel model = RandomModel(2, 1, 7, GetParam());
  std::vector<double*> weights;
  for (Rows3* matrix : { &model.positionEmbedding, &model.heads[0].query, &model.heads[0].key })
  {
    for (Eigen::Index i = 0; i < matrix->size(); ++i)
    {
      weights.push_back(matrix->data() + i);
    }
  }
  Eigen::MatrixXd derivative(HarmonicCount, weights.size());
  constexpr double step = 1e-5;
  for (std::size_t w = 0; w < weights.size(); ++w)
  {
    const double value = *weights[w];
    *weights[w] = value + step;
    const HarmonicCoefficients after = ScoreHarmonics(model, 0);
    *weights[w] = value - step;
    const HarmonicCoefficients before = ScoreHarmonics(model, 0);
    *weights[w] = value;
    for (std::size_t i = 0; i < HarmonicCount; ++i)
    {
      derivative(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(w)) =
        (after[i] - before[i]) / (2 * step);
    }
  }
  Eigen::JacobiSVD<Eigen::MatrixXd> svd(derivative);
  svd.setThreshold(1e-6);
  EXPECT_EQ(FreeParameterCount(GetParam()), svd.rank());
}

TEST(Harmonics, HaveDifferentNames)
{
  EXPECT_EQ(
    std::set<std::string>(HarmonicNames.begin(), HarmonicNames.end()).size(), HarmonicCount);
}

TEST(Harmonics, OfWeightsBeyondDoubleAreRefused)
{
  HandModel model;
  model.heads[1].query *= 1e200;
  model.heads[1].key *= 1e200;
  EXPECT_NO_THROW(ScoreHarmonics(model, 0));
  EXPECT_THAT(MessageOf<ModelError>([&] { ScoreHarmonics(model, 1); }),
    HasSubstr("the scores of head 1 are too large"));
}

TEST(Waves, AreTheirCosineAndSine)
{
  Random random;
  const HarmonicCoefficients coefficients = RandomCoefficients(2);
  for (std::size_t i = 1; i < HarmonicCount; ++i)
  {
    const std::size_t cosine = i - (i + 1) % 2;
    const Wave wave = WaveOf(coefficients, i);
    const double x = random.Angle();
    EXPECT_NEAR(wave.amplitude * std::cos(x - wave.phase),
      coefficients[cosine] * std::cos(x) + coefficients[cosine + 1] * std::sin(x), 1e-14);
  }
}

TEST(Waves, OfNothingHaveNoPhase)
{
  HarmonicCoefficients coefficients{};
  coefficients[Harmonic::Constant] = -5;
  coefficients[Harmonic::CosT1] = -0.0;
  coefficients[Harmonic::SinT1] = -0.0;
  coefficients[Harmonic::CosT2] = -1;
  coefficients[Harmonic::SinT2] = -0.0;
  EXPECT_EQ(WaveOf(coefficients, 0).amplitude, 0);
  EXPECT_EQ(WaveOf(coefficients, 0).phase, 0);
  EXPECT_EQ(WaveOf(coefficients, 1).phase, 0);
  EXPECT_EQ(WaveOf(coefficients, 3).phase, Pi);
}

TEST(Product, IsTheProduct)
{
  Random random;
  for (int repeat = 0; repeat < 200; ++repeat)
  {
    const ProductParameters p = { random.Uniform(-3, 3), random.Angle(), random.Uniform(-3, 3),
      random.Uniform(-3, 3), random.Angle(), random.Uniform(-3, 3) };
    const double t1 = random.Angle();
    const double t2 = random.Angle();
    const double expected = (p.a * std::cos(t2 - p.alpha) + p.b) *
                            (p.c * (std::cos(t1 - p.gamma) - std::cos(t2 - p.gamma)) + p.d);
    EXPECT_NEAR(EvaluateHarmonics(ProductHarmonics(p), t1, t2), expected, 1e-12);
  }
}

/// Scores and attentions over a chart.
struct Chart
{
  std::vector<float> score;
  std::vector<float> attention;

  Chart(const HarmonicCoefficients& coefficients, Pattern pattern,
    const std::vector<double>& theta1, const std::vector<double>& theta2)
    : score(theta1.size() * theta2.size(), -7)
    , attention(score)
  {
    const HarmonicField field(coefficients, pattern, theta1);
    for (std::size_t row = 0; row < theta2.size(); ++row)
    {
      const std::size_t begin = row * theta1.size();
      field.EvaluateRow(theta2[row], score.data() + begin, attention.data() + begin);
    }
  }
};

std::vector<double> RandomAngles(std::size_t count)
{
  Random random;
  std::vector<double> angles(count);
  for (double& angle : angles)
  {
    angle = random.Angle();
  }
  return angles;
}

TEST(HarmonicField, IsTheSumOfAll11Terms)
{
  const HarmonicCoefficients coefficients = RandomCoefficients(3);
  const std::vector<double> theta1 = RandomAngles(131);
  const std::vector<double> theta2 = RandomAngles(17);
  const Chart soft(coefficients, Pattern::Softmax, theta1, theta2);
  const Chart hard(coefficients, Pattern::Hardmax, theta1, theta2);
  std::vector<double> score;
  std::vector<double> attention;
  for (const double t2 : theta2)
  {
    for (const double t1 : theta1)
    {
      score.push_back(EvaluateHarmonics(coefficients, t1, t2));
      attention.push_back(1 / (1 + std::exp(-score.back())));
    }
  }
  ExpectClose("score", soft.score, score, 1e-6);
  ExpectClose("attention", soft.attention, attention, 1e-6);
  EXPECT_EQ(hard.score, soft.score);
  for (std::size_t i = 0; i < score.size(); ++i)
  {
    EXPECT_EQ(hard.attention[i], hard.score[i] > 0 ? 1 : 0);
  }
}

TEST(HarmonicField, OfAPointDoesNotDependOnItsNeighbours)
{
  const HarmonicCoefficients coefficients = RandomCoefficients(3);
  const std::vector<double> theta1 = RandomAngles(131);
  const Chart whole(coefficients, Pattern::Softmax, theta1, { 0.7 });
  for (std::size_t i = 0; i < theta1.size(); ++i)
  {
    const Chart alone(coefficients, Pattern::Softmax, { theta1[i] }, { 0.7 });
    EXPECT_EQ(alone.score[0], whole.score[i]);
    EXPECT_EQ(alone.attention[0], whole.attention[i]);
  }
}

TEST(HarmonicField, OfHugeScoresIsStillAnAttention)
{
  HarmonicCoefficients coefficients{};
  coefficients[Harmonic::CosT1] = 1e30;
  const Chart chart(coefficients, Pattern::Softmax, { 0, Pi }, { 0 });
  EXPECT_EQ(chart.attention[0], 1);
  EXPECT_NEAR(chart.attention[1], 0, 1e-30);
}

TEST(HarmonicField, RefusesCoefficientsWithoutAScore)
{
  HarmonicCoefficients coefficients{};
  for (const auto& [value, message] :
    { std::pair(std::numeric_limits<double>::quiet_NaN(), "found nan for sin(t1+t2)"),
      std::pair(1e39, "single precision") })
  {
    coefficients[Harmonic::SinSum] = value;
    EXPECT_THAT(
      MessageOf<OptionError>([&] { HarmonicField(coefficients, Pattern::Softmax, { 0 }); }),
      HasSubstr(message));
  }
}

}
