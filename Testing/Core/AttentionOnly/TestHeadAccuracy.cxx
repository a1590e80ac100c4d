#include "HeadAccuracy.h"

#include "Error.h"
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

TEST_P(AccuracyAgainstOracle, CentreWithResidualIsTheModel)
{
  const AttentionOnlyModel& model = GetOracle().GetModel();
  if (model.HeadCount() < 3)
  {
    GTEST_SKIP() << "a simplex needs three heads";
  }
  const HeadMixture mixture(model, { 2, 0, 1 }, Residual::EmbeddingPosition);
  const std::vector<std::int64_t> expected = GetOracle().Integers("pair.class");
  for (std::size_t pair = 0; pair < expected.size(); ++pair)
  {
    EXPECT_EQ(
      mixture.Predict(Vector3d::Constant(1. / 3), static_cast<Eigen::Index>(pair)), expected[pair]);
  }
}

TEST_P(AccuracyAgainstOracle, CornersAreTheHeadsAlone)
{
  const AttentionOnlyModel& model = GetOracle().GetModel();
  if (model.HeadCount() != 3)
  {
    GTEST_SKIP() << "other heads than three do not meet at the corners alone";
  }
  const HeadMixture mixture(model, { 2, 0, 1 }, Residual::None);
  const std::vector<int> heads = { 2, 0, 1 };
  for (Eigen::Index corner = 0; corner < 3; ++corner)
  {
    const std::vector<int> expected = Alone(heads[corner]);
    for (std::size_t pair = 0; pair < expected.size(); ++pair)
    {
      EXPECT_EQ(
        mixture.Predict(Vector3d::Unit(corner), static_cast<Eigen::Index>(pair)), expected[pair]);
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

TEST(HeadAccuracy, OfTheHandModel)
{
  // Logits are r.0 and r.1. Head 0 gives multiples mix.1 (1, 2, 3) with mix.1 > 0 at tokens, so it
  // says 1. Head 1 gives mix.2 (1, 0, -1): 0 where mix.2 > 0, else 1.
  ThreeHeads model;
  const ReferenceEvaluator evaluator(model, {});
  int ones = 0;
  for (Eigen::Index pair = 0; pair < 4; ++pair)
  {
    ones += evaluator.AtTokens(pair / 2, pair % 2).heads[1].mix.z() > 0 ? 0 : 1;
  }
  const HeadAccuracies counts = CountCorrect(model, Residual::None);
  EXPECT_EQ(counts.pairs, 4);
  EXPECT_EQ(counts.alone[0], 4);
  EXPECT_EQ(counts.alone[1], ones);
  EXPECT_EQ(counts.any, 4);
}

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
      HasSubstr(
        "HeadIndices: expected three different heads of the model, which has 3 (0 to 2), found " +
        found));
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
