#include "AttentionOnly/HeadAccuracy.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "HandModel.h"
#include "Oracle.h"

#include <set>

#include <Eigen/LU>
#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using Eigen::Vector3d;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

class AccuracyAgainstOracle : public atlas::test::OracleTest
{
protected:
  std::vector<int> Alone(std::size_t head) const
  {
    const std::vector<std::int64_t> classes =
      GetOracle().Integers("head_alone." + std::to_string(head) + ".class");
    return { classes.begin(), classes.end() };
  }
};
INSTANTIATE_TEST_SUITE_P(
  , AccuracyAgainstOracle, atlas::test::OracleTest::Models(), atlas::test::OracleTest::Name);

TEST_P(AccuracyAgainstOracle, CountsAreThoseOfTheOracle)
{
  const AttentionOnlyModel& model = GetOracle().GetModel();
  const HeadAccuracies found = CountCorrect(model, Residual::EmbeddingPosition);
  const std::size_t pairs = found.pairs;
  ASSERT_EQ(pairs, GetOracle().Integers("pair.class").size());
  std::vector<bool> any(pairs);
  for (std::size_t h = 0; h < model.HeadCount(); ++h)
  {
    const std::vector<int> predicted = Alone(h);
    Eigen::Index correct = 0;
    for (std::size_t i = 0; i < pairs; ++i)
    {
      const bool isCorrect = predicted[i] == model.nextToken.data()[i];
      correct += isCorrect ? 1 : 0;
      any[i] = any[i] || isCorrect;
    }
    EXPECT_EQ(found.alone[h], correct) << h;
  }
  EXPECT_EQ(found.any, std::count(any.begin(), any.end(), true));
  const auto all = static_cast<double>(found.all);
  EXPECT_DOUBLE_EQ(
    all / static_cast<double>(found.pairs), GetOracle().Values("pair.accuracy").front());
  const HeadAccuracies raw = CountCorrect(model, Residual::RawEmbedding);
  EXPECT_DOUBLE_EQ(static_cast<double>(raw.all) / static_cast<double>(raw.pairs),
    GetOracle().Values("pair.raw_embedding.accuracy").front());
  EXPECT_EQ(raw.alone, found.alone);
}

TEST_P(AccuracyAgainstOracle, SimplexIsThatOfTheOracle)
{
  const AttentionOnlyModel& model = GetOracle().GetModel();
  if (model.HeadCount() < 3)
  {
    GTEST_SKIP() << "a simplex needs three heads";
  }
  const std::vector<double> points = GetOracle().Values("simplex.barycentric");
  const HeadMixture without(model, { 0, 1, 2 }, Residual::None);
  const HeadMixture with(model, { 0, 1, 2 }, Residual::EmbeddingPosition);
  const auto pairs = static_cast<double>(without.PairCount());
  std::vector<double> accuracy;
  std::vector<double> accuracyWithResidual;
  std::vector<double> byTarget;
  for (std::size_t i = 0; i < points.size(); i += 3)
  {
    const Vector3d weights(points[i], points[i + 1], points[i + 2]);
    const MixtureAccuracy at = without.Evaluate(weights);
    accuracy.push_back(static_cast<double>(at.correct) / pairs);
    accuracyWithResidual.push_back(static_cast<double>(with.Evaluate(weights).correct) / pairs);
    for (std::size_t k = 0; k < at.correctByTarget.size(); ++k)
    {
      byTarget.push_back(static_cast<double>(at.correctByTarget[k]) /
                         static_cast<double>(without.PairsByTarget()[k]));
    }
  }
  ExpectClose("accuracy", accuracy, GetOracle().Values("simplex.accuracy"), 1e-15);
  ExpectClose("with residual", accuracyWithResidual,
    GetOracle().Values("simplex.accuracy_with_residual"), 1e-15);
  ExpectClose("by target", byTarget, GetOracle().Values("simplex.accuracy_by_target"), 1e-15);
}

/// The center is the model, if the residual counts; corners are single heads if there are no others
/// than the three.
TEST_P(AccuracyAgainstOracle, MixturesPredictAsTheModelAndItsHeads)
{
  const AttentionOnlyModel& model = GetOracle().GetModel();
  if (model.HeadCount() < 3)
  {
    GTEST_SKIP() << "a simplex needs three heads";
  }
  const std::array<int, 3> heads = { 2, 0, 1 };
  const HeadMixture with(model, heads, Residual::EmbeddingPosition);
  const HeadMixture without(model, heads, Residual::None);
  const std::vector<std::int64_t> expected = GetOracle().Integers("pair.class");
  for (std::size_t i = 0; i < expected.size(); ++i)
  {
    const auto pair = static_cast<Eigen::Index>(i);
    EXPECT_EQ(with.Predict(Vector3d::Constant(1. / 3), pair), expected[i]);
    for (Eigen::Index corner = 0; corner < 3 && model.HeadCount() == 3; ++corner)
    {
      EXPECT_EQ(without.Predict(Vector3d::Unit(corner), pair), Alone(heads.at(corner))[i]);
    }
  }
}

/// The hand model with a third head and targets.
struct ThreeHeads : HandModel
{
  ThreeHeads()
  {
    this->heads.push_back(this->heads[0]);
    this->nextToken.resize(2, 2);
    this->nextToken << 1, 1, 1, 1;
  }
};

TEST(HeadAccuracy, OfATieIsTheLowestClass)
{
  ThreeHeads model;
  model.unembedding.setOnes();
  EXPECT_EQ(CountCorrect(model, Residual::None).alone[0], 0); // all targets are 1
  const HeadMixture mixture(model, { 0, 1, 2 }, Residual::None);
  EXPECT_EQ(mixture.Predict(Vector3d::Constant(1. / 3), 2), 0);
  EXPECT_EQ(mixture.Evaluate(Vector3d::Constant(1. / 3)).correct, 0);
}

TEST(HeadAccuracy, CountsOnlyTargetsThatOccur)
{
  const HeadMixture mixture(ThreeHeads(), { 0, 1, 2 }, Residual::None);
  EXPECT_THAT(mixture.PairsByTarget(), ElementsAre(0, 4));
  const MixtureAccuracy at = mixture.Evaluate(Vector3d::UnitX());
  EXPECT_EQ(at.correct, 4);
  EXPECT_THAT(at.correctByTarget, ElementsAre(0, 4));
}

TEST(HeadAccuracy, NeedsTargets)
{
  const HandModel model;
  EXPECT_THAT(MessageOf<ModelError>([&] { CountCorrect(model, Residual::None); }),
    HasSubstr("Input: expected a model with the tensor 'next_token' [2, 2]"));
  EXPECT_THAT(MessageOf<ModelError>([&] { HeadMixture(model, { 0, 1, 2 }, Residual::None); }),
    HasSubstr("'next_token'"));
}

TEST(HeadAccuracy, NeedsThreeDifferentHeads)
{
  const ThreeHeads model;
  for (const std::array<int, 3>& heads :
    { std::array<int, 3>{ 0, 1, 3 }, { -1, 1, 2 }, { 0, 0, 1 }, { 0, 1, 0 }, { 1, 2, 2 } })
  {
    const std::string found = std::to_string(heads[0]) + ", " + std::to_string(heads[1]) + ", " +
                              std::to_string(heads[2]) + ".";
    EXPECT_THAT(MessageOf<OptionError>([&] { HeadMixture(model, heads, Residual::None); }),
      HasSubstr("3 (0 to 2), found " + found));
  }
  ThreeHeads small;
  small.heads.resize(1);
  EXPECT_THAT(MessageOf<OptionError>([&] { HeadMixture(small, { 0, 1, 2 }, Residual::None); }),
    HasSubstr("which has 1 (head 0), found 0, 1, 2."));
}

TEST(Simplex, IsCutIntoEqualTriangles)
{
  for (const int segments : { 1, 2, 7 })
  {
    const std::vector<Vector3d> points = SimplexGrid(segments);
    const auto triangles = SimplexTriangles(segments);
    ASSERT_EQ(points.size(), static_cast<std::size_t>((segments + 1) * (segments + 2) / 2));
    ASSERT_EQ(triangles.size(), static_cast<std::size_t>(segments * segments));
    std::set<std::array<double, 3>> different;
    for (const Vector3d& point : points)
    {
      EXPECT_NEAR(point.sum(), 1, 1e-15);
      EXPECT_GE(point.minCoeff(), 0);
      different.insert({ point[0], point[1], point[2] });
    }
    EXPECT_EQ(different.size(), points.size());
    for (const auto& [a, b, c] : triangles)
    {
      // In barycentric coordinates the area is the determinant, whose sign is the orientation.
      Eigen::Matrix3d corners;
      corners << points[a], points[b], points[c];
      EXPECT_NEAR(corners.determinant(), 1. / (segments * segments), 1e-15);
    }
  }
}

}
