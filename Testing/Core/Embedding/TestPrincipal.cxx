#include "Embedding/Principal.h"

#include "Base/Error.h"
#include "EmbeddingOracle.h"
#include "ErrorMessage.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

constexpr double Tolerance = 1e-6;

using PrincipalOfEmbedding = OfEmbedding;

TEST_P(PrincipalOfEmbedding, PrincipalComponentsAreThoseOfTheOracle)
{
  this->ForHeads(
    [&](std::int64_t layer, std::int64_t head, const std::string& prefix)
    {
      const JointVectors joint = JoinQueriesAndKeys(this->Record, layer, head, this->Rows, true);
      const PrincipalComponents found = FindPrincipalComponents(joint.View(), 3);
      const std::string name = prefix + "pca.";
      ExpectClose("mean", found.mean, this->Expected.Values(name + "mean"), Tolerance);
      ExpectClose("variance", found.variance, this->Expected.Values(name + "variance"), Tolerance);
      ExpectClose(
        "components", found.components, this->Expected.Values(name + "components"), Tolerance);
      ExpectClose("scores", Project(joint.View(), found, 3), this->Expected.Values(name + "scores"),
        Tolerance);
      const std::vector<double> ratio = this->Expected.Values(name + "ratio");
      EXPECT_NEAR(found.Ratio(1), ratio[0], Tolerance);
      EXPECT_NEAR(found.Ratio(3), ratio[0] + ratio[1] + ratio[2], Tolerance);
    });
}

INSTANTIATE_TEST_SUITE_P(
  All, PrincipalOfEmbedding, testing::Values("gpt2", "bert", "vit", "spiral"), OfEmbedding::Name);

/// Points on a line, far from the origin.
TEST(Principal, FindsALineFarAway)
{
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i)
  {
    const auto t = static_cast<float>(i % 11) - 5; // mean near 0
    values.insert(values.end(), { 1000 + 3 * t, 2000 - 4 * t });
  }
  const PointView points{ values.data(), 1000, 2 };
  const PrincipalComponents found = FindPrincipalComponents(points, 2);
  EXPECT_NEAR(found.components[0], -0.6, Tolerance);
  EXPECT_NEAR(found.components[1], 0.8, Tolerance); // the entry of largest magnitude is positive
  EXPECT_NEAR(found.Ratio(1), 1, Tolerance);
  const std::vector<float> scores = Project(points, found, 3);
  EXPECT_NEAR(scores[0] - scores[3], 5, 1e-4); // t = -5 and -4
  EXPECT_NEAR(scores[1], 0, 1e-3);
  EXPECT_EQ(scores[2], 0); // there is no third component
}

TEST(Principal, EqualPointsHaveNoVariance)
{
  const std::vector<float> values(30, 1.5F);
  const PointView points{ values.data(), 10, 3 };
  const PrincipalComponents found = FindPrincipalComponents(points, 2);
  EXPECT_THAT(found.variance, testing::Each(0));
  EXPECT_EQ(found.Ratio(1), 1);
  EXPECT_THAT(Project(points, found, 2), testing::Each(0));
}

TEST(Principal, NeedsTwoPoints)
{
  const std::vector<float> values = { 1, 2 };
  EXPECT_THAT(
    MessageOf<OptionError>([&]() { FindPrincipalComponents({ values.data(), 1, 2 }, 2); }),
    HasSubstr("expected at least 2 points and 1 component, found 1 and 2"));
}

}
