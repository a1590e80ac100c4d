#include "AttentionOnly/MixtureRegions.h"

#include "Oracle.h"
#include "RandomModel.h"

#include <random>

using namespace atlas;
using Eigen::Index;

namespace
{

/// Expects the counts of all rows of a grid to be those of HeadMixture::Evaluate at each point.
void ExpectSameCounts(
  const AttentionOnlyModel& model, const std::array<int, 3>& heads, Residual residual, int segments)
{
  SCOPED_TRACE(testing::Message() << "residual " << static_cast<int>(residual) << ", segments "
                                  << segments << ", heads " << heads[0] << heads[1] << heads[2]);
  const HeadMixture mixture(model, heads, residual);
  const MixtureRegions regions(mixture);
  const std::vector<Eigen::Vector3d> grid = SimplexGrid(segments);
  std::size_t first = 0;
  MixtureRow found;
  for (int row = 0; row <= segments; ++row)
  {
    regions.EvaluateRow(segments, row, found);
    const auto points = static_cast<std::size_t>(segments - row) + 1;
    MixtureRow expected;
    expected.correctByTarget.resize(points * mixture.PairsByTarget().size());
    for (std::size_t i = 0; i < points; ++i)
    {
      const MixtureAccuracy at = mixture.Evaluate(grid[first + i]);
      expected.correct.push_back(static_cast<int>(at.correct));
      for (std::size_t k = 0; k < at.correctByTarget.size(); ++k)
      {
        expected.correctByTarget[k * points + i] = static_cast<int>(at.correctByTarget[k]);
      }
    }
    ASSERT_EQ(found.correct, expected.correct) << "row " << row;
    ASSERT_EQ(found.correctByTarget, expected.correctByTarget) << "row " << row;
    first += points;
  }
}

void ExpectSameCounts(const AttentionOnlyModel& model)
{
  for (const Residual residual :
    { Residual::EmbeddingPosition, Residual::Embedding, Residual::None, Residual::RawEmbedding })
  {
    const int last = static_cast<int>(model.HeadCount()) - 1;
    ExpectSameCounts(model, { 0, 1, 2 }, residual, 16);
    ExpectSameCounts(model, { last, 0, 1 }, residual, 7);
    ExpectSameCounts(model, { 1, last, 0 }, residual, 30);
    ExpectSameCounts(model, { 0, 1, last }, residual, 1);
  }
}

/// A model whose targets are those that it predicts itself for about half of the pairs.
AttentionOnlyModel ModelWithTargets(Index classes, std::size_t heads, unsigned seed = 1)
{
  std::mt19937 random(seed);
  AttentionOnlyModel model = test::RandomModel(classes, heads, seed);
  const ReferenceEvaluator evaluator(model, {});
  model.nextToken.resize(classes, classes);
  for (Index pair = 0; pair < classes * classes; ++pair)
  {
    const Evaluation at = evaluator.AtTokens(pair / classes, pair % classes);
    const auto other = static_cast<std::int64_t>(random()) % classes;
    model.nextToken.data()[pair] = random() % 2 == 0 ? at.predicted : other;
  }
  return model;
}

using RegionsOfOracle = atlas::test::OracleTest;
INSTANTIATE_TEST_SUITE_P(
  , RegionsOfOracle, atlas::test::OracleTest::Models(), atlas::test::OracleTest::Name);

TEST_P(RegionsOfOracle, CountAsPointByPoint)
{
  if (GetOracle().HeadCount() < 3)
  {
    GTEST_SKIP() << "a simplex needs three heads";
  }
  ExpectSameCounts(GetOracle().GetModel());
}

TEST(MixtureRegions, CountRandomModelsAsPointByPoint)
{
  for (const Index classes : { 1, 2, 5, 13, 30 })
  {
    for (const std::size_t heads : { 3U, 7U })
    {
      SCOPED_TRACE(testing::Message() << classes << " classes, " << heads << " heads");
      ExpectSameCounts(ModelWithTargets(classes, heads));
    }
  }
}

TEST(MixtureRegions, CountFineGridsAsPointByPoint)
{
  for (unsigned seed = 2; seed < 6; ++seed)
  {
    ExpectSameCounts(ModelWithTargets(9, 3, seed), { 0, 1, 2 }, Residual::None, 200);
  }
}

/// Classes with equal logits everywhere or where nothing is added, equal heads, and heads that do
/// nothing.
TEST(MixtureRegions, CountTiesEverywhereAsPointByPoint)
{
  using Change = void (*)(AttentionOnlyModel&);
  const std::vector<Change> changes = {
    [](AttentionOnlyModel& model)
    {
      model.unembedding.row(3) = model.unembedding.row(0);
      model.unembedding.row(4) = model.unembedding.row(1);
      model.unembedding.row(8) = model.unembedding.row(1);
    },
    [](AttentionOnlyModel& model) { model.unembedding.rowwise() = Eigen::RowVector3d(1, -2, 0.5); },
    [](AttentionOnlyModel& model)
    {
      for (AttentionHead& head : model.heads)
      {
        head.output.row(1).setZero();
      }
      model.unembedding.row(2) = model.unembedding.row(5) + Eigen::RowVector3d(0, 1, 0);
    },
    [](AttentionOnlyModel& model) { model.heads[1] = model.heads[0]; },
    [](AttentionOnlyModel& model) { model.heads[2] = model.heads[1] = model.heads[0]; },
    [](AttentionOnlyModel& model) { model.heads[1].output.setZero(); },
    [](AttentionOnlyModel& model)
    {
      for (AttentionHead& head : model.heads)
      {
        head.output.setZero();
      }
    },
  };
  for (std::size_t i = 0; i < changes.size(); ++i)
  {
    SCOPED_TRACE(i);
    AttentionOnlyModel model = ModelWithTargets(9, i < 2 ? 4 : 3);
    changes[i](model);
    ExpectSameCounts(model);
  }
}

/// Opposite heads cancel along lines through the grid's points, where all classes tie.
TEST(MixtureRegions, CountTiesAlongLinesAsPointByPoint)
{
  for (int alone = 0; alone < 3; ++alone)
  {
    AttentionOnlyModel model = ModelWithTargets(9, 3);
    for (std::size_t i = 0; i < 3; ++i)
    {
      model.heads[i] = model.heads[alone];
      model.heads[i].output *= static_cast<int>(i) == alone ? 1 : -1;
    }
    ExpectSameCounts(model);
    model.heads[(alone + 1) % 3].output.setZero();
    ExpectSameCounts(model);
  }
}

/// Where the lines between two classes go through many points of the grid, or nearly.
TEST(MixtureRegions, CountNearTiesAsPointByPoint)
{
  for (const double nearly : { 0., 1e-16, -1e-15, 1e-14, 1e-12, -1e-10 })
  {
    SCOPED_TRACE(nearly);
    AttentionOnlyModel model = ModelWithTargets(9, 3);
    model.heads[1] = model.heads[0];
    model.heads[1].output *= -2 + nearly;
    model.heads[2].output = model.heads[0].output * nearly;
    model.unembedding.row(6) = model.unembedding.row(2) * (1 + nearly);
    model.unembedding.row(7) = model.unembedding.row(2) + Eigen::RowVector3d(nearly, 0, -nearly);
    ExpectSameCounts(model);
  }
}

TEST(MixtureRegions, CountLargeAndSmallNumbersAsPointByPoint)
{
  for (const double scale : { 1e-320, 1e-200, 1e-160, 1e-100, 1e100, 1e153, 1e155, 1e300 })
  {
    SCOPED_TRACE(scale);
    AttentionOnlyModel model = ModelWithTargets(6, 3);
    for (AttentionHead& head : model.heads)
    {
      head.output *= scale;
    }
    ExpectSameCounts(model);
    model.unembedding *= scale;
    ExpectSameCounts(model);
    model.heads[0].output /= scale;
    ExpectSameCounts(model);
  }
}

TEST(MixtureRegions, UseMemoryAgain)
{
  const HeadMixture mixture(ModelWithTargets(9, 3), { 0, 1, 2 }, Residual::None);
  const MixtureRegions regions(mixture);
  MixtureRow counts;
  regions.EvaluateRow(20, 0, counts);
  const int* correct = counts.correct.data();
  const int* correctByTarget = counts.correctByTarget.data();
  regions.EvaluateRow(20, 7, counts);
  EXPECT_EQ(counts.correct.data(), correct);
  EXPECT_EQ(counts.correctByTarget.data(), correctByTarget);
  EXPECT_EQ(counts.correct.size(), 14);
  EXPECT_EQ(counts.correctByTarget.size(), 9 * 14);
}

}
