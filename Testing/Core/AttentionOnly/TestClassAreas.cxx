#include "AttentionOnly/ClassAreas.h"
#include "Base/Pi.h"

#include "AttentionOnly/AttentionEvaluation.h"
#include "AttentionOnly/TorusAngles.h"
#include "Base/Error.h"

#include <gmock/gmock.h>

using namespace atlas;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace
{

/// A model whose prediction depends only on the angle of token 2: the class with the nearest
/// direction.
AttentionOnlyModel Compass(const std::vector<double>& directions)
{
  AttentionOnlyModel model;
  const std::int64_t n = directions.size();
  model.wordEmbedding = Rows3::Random(n, 3);
  model.positionEmbedding = Rows3::Zero(2, 3);
  model.unembedding.resize(n, 3);
  for (Eigen::Index k = 0; k < n; ++k)
  {
    model.unembedding.row(k) = EmbeddingAtAngle(directions[k], AngleMap::Isometric).transpose();
  }
  model.heads.push_back(
    { Rows3::Zero(1, 3), Rows3::Zero(1, 3), Rows3::Zero(1, 3), Columns3::Zero(3, 1) });
  return model;
}

AttentionOnlyModel Trained()
{
  return ReadAttentionOnlyModel(ATLAS_DATA_DIR "/trained-n5-h3.safetensors");
}

TEST(ClassAreas, AreThoseOfSectors)
{
  // The borders lie halfway between directions: sectors of 3/8, 1/4 and 3/8 of the circle.
  const AttentionOnlyModel model = Compass({ 0, Pi / 2, Pi });
  const ClassCounts counts = ClassCounter(model, {}, 7, 4000).Count(0, 4000);
  EXPECT_NEAR(counts.Area(0), 3. / 8, 1e-3);
  EXPECT_NEAR(counts.Area(1), 1. / 4, 1e-3);
  EXPECT_NEAR(counts.Area(2), 3. / 8, 1e-3);
}

TEST(ClassAreas, HaveTheProbabilityOfTheirPoints)
{
  const AttentionOnlyModel model = Trained();
  const ReferenceEvaluator evaluator(model, {});
  std::vector<double> points(5);
  std::vector<double> sums(5);
  for (const double theta2 : MiddleAngles(30))
  {
    for (const double theta1 : MiddleAngles(40))
    {
      const Evaluation at = evaluator.AtAngles(theta1, theta2);
      ++points[at.predicted];
      sums[at.predicted] += at.probability;
    }
  }
  const ClassCounts counts = ClassCounter(model, {}, 40, 30).Count(0, 30);
  for (std::size_t k = 0; k < 5; ++k)
  {
    EXPECT_EQ(counts.Area(k), points[k] / 1200) << k;
    EXPECT_NEAR(counts.MeanProbability(k), sums[k] / points[k], 1e-5) << k;
  }
}

TEST(ClassAreas, DoNotDependOnTheOrder)
{
  const ClassCounter counter(Trained(), {}, 101, 60);
  const ClassCounts all = counter.Count(0, 60);
  ClassCounts parts = counter.Count(47, 60);
  parts.Add(counter.Count(0, 1));
  parts.Add(counter.Count(1, 47));
  EXPECT_EQ(parts.points, all.points);
  EXPECT_EQ(parts.probability, all.probability);
}

TEST(ClassAreas, OfAClassThatIsNeverPredicted)
{
  AttentionOnlyModel model = Compass({ 0, Pi, 1 });
  model.unembedding.row(2).setZero(); // within the hull of the others
  const ClassCounts counts = ClassCounter(model, {}, 3, 50).Count(0, 50);
  EXPECT_EQ(counts.Area(2), 0);
  EXPECT_EQ(counts.MeanProbability(2), 0);
}

TEST(ClassAreas, RefuseSenselessSizes)
{
  EXPECT_THAT([]() { ClassCounter(Trained(), {}, 0, 5); },
    ThrowsMessage<OptionError>(HasSubstr("expected at least 1 x 1 points, found 0 x 5.")));
  EXPECT_THAT([]() { ClassCounter(Trained(), {}, 1 << 20, 1 << 20); },
    ThrowsMessage<OptionError>(
      HasSubstr("expected at most 2^33 points, found 1048576 x 1048576.")));
}

}
