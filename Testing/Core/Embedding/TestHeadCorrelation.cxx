#include "Embedding/HeadCorrelation.h"

#include "EmbeddingOracle.h"
#include "TranslatedRecording.h"

#include <cmath>
#include <string>
#include <vector>

#include <Eigen/Core>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr double Tolerance = 1e-6;

struct NamedKind
{
  const char* name;
  CorrelationKind kind;
};
constexpr NamedKind Kinds[] = {
  { "dot_raw.distance", { false, true } },
  { "dot_translated.distance", { true, true } },
};

/// Values without NaN, and where they were.
std::vector<double> WithoutNaN(const std::vector<double>& values)
{
  std::vector<double> found;
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    if (!std::isnan(values[i]))
    {
      found.push_back(values[i]);
      found.push_back(static_cast<double>(i));
    }
  }
  return found;
}

using OracleCorrelation = OfEmbedding;

TEST_P(OracleCorrelation, IsThatOfTheOracle)
{
  this->ForHeads(
    [&](std::int64_t layer, std::int64_t head, const std::string& prefix)
    {
      const JointVectors joint = JoinQueriesAndKeys(this->Record, layer, head, this->Rows, true);
      const HeadCorrelation correlation(this->Record, this->Rows, joint);
      for (const NamedKind& one : Kinds)
      {
        const std::string name = prefix + "corr." + one.name;
        std::vector<double> found;
        for (const double scale : this->Expected.Values("scales"))
        {
          found.push_back(correlation.Pearson(one.kind, scale));
        }
        ExpectClose(name, found, this->Expected.Values(name), Tolerance);
        const ScaleOptimum best = correlation.LowestPearson(one.kind);
        const std::vector<double> expected = this->Expected.Values(name + ".best");
        EXPECT_NEAR(std::log(best.scale), std::log(expected[0]), Tolerance) << name;
        EXPECT_NEAR(best.correlation, expected[1], Tolerance) << name;
      }
      for (const bool byCosine : { true, false })
      {
        const std::string name = prefix + "spearman." + (byCosine ? "cosine" : "euclidean");
        ExpectClose(name + ".row", WithoutNaN(correlation.SpearmanOfQueries(byCosine)),
          WithoutNaN(this->Expected.Values(name + ".row")), Tolerance);
        EXPECT_NEAR(
          correlation.Spearman(byCosine), this->Expected.Value(name + ".mean"), Tolerance);
      }
      std::vector<double> atScales;
      for (const double scale : this->Expected.Values("scales"))
      {
        atScales.push_back(correlation.Spearman(false, scale));
      }
      ExpectClose("mean_at_scales", atScales,
        this->Expected.Values(prefix + "spearman.euclidean.mean_at_scales"), Tolerance);
    });
}

/// Pairs of a query of the target and a key of the source of the same sequence, one by one.
TEST(HeadCorrelation, OfCrossAttentionIsOverPairsOfTwoTexts)
{
  using Floats = Eigen::Matrix<float, 5, 1>;
  using Vector = Eigen::Matrix<double, 5, 1>;
  const Recording cross = *TranslatedRecording().cross;
  const JointRows rows = ChooseTokens(cross, {});
  const JointVectors joint = JoinQueriesAndKeys(cross, 1, 0, rows, true);
  const RecordedHead& head = cross.layers[1].heads[0];
  const double scale = 1.25;
  std::vector<double> dots;
  std::vector<double> distances;
  for (const std::int64_t query : rows.queries)
  {
    for (const std::int64_t key : rows.keys)
    {
      if (cross.tokens.sequence[query] == cross.tokens.sequence[key])
      {
        const Vector q = Eigen::Map<const Floats>(head.query.Row(query)).cast<double>();
        const Vector k = Eigen::Map<const Floats>(head.key.Row(key)).cast<double>() +
                         Eigen::Map<const Vector>(joint.shift.data());
        dots.push_back(q.dot(k));
        distances.push_back((q / scale - k * scale).norm());
      }
    }
  }
  const HeadCorrelation correlation(cross, rows, joint);
  ASSERT_EQ(correlation.PairCount(), 3 * 4 + 5 * 2);
  const Eigen::Map<const Eigen::ArrayXd> x(dots.data(), 22);
  const Eigen::Map<const Eigen::ArrayXd> y(distances.data(), 22);
  const double pearson = ((x - x.mean()) * (y - y.mean())).sum() /
                         std::sqrt((x - x.mean()).square().sum() * (y - y.mean()).square().sum());
  EXPECT_NEAR(correlation.Pearson({}, scale), pearson, 1e-8); // shifted keys are floats

  // Two keys have the ranks 1 and 2 twice, in the same order or in the other.
  const std::vector<double> ofQueries = correlation.SpearmanOfQueries(false, scale);
  ASSERT_EQ(ofQueries.size(), 3 + 5);
  for (std::size_t i = 0; i < 5; ++i)
  {
    const std::size_t pair = 12 + 2 * i;
    const bool isSame = (dots[pair] < dots[pair + 1]) == (distances[pair] < distances[pair + 1]);
    EXPECT_NEAR(ofQueries[3 + i], isSame ? 1 : -1, 1e-12);
  }
}

/// A text of which no token was drawn has no pairs.
TEST(HeadCorrelation, OfTextsWithoutKeysIsNotDefined)
{
  const Recording cross = *TranslatedRecording().cross;
  const JointRows apart = { { 4, 5 }, { 7, 8 } };
  const HeadCorrelation none(cross, apart, JoinQueriesAndKeys(cross, 0, 0, apart, true));
  EXPECT_EQ(none.PairCount(), 0);
  EXPECT_TRUE(std::isnan(none.Pearson({}, 1)));
  EXPECT_EQ(none.LowestPearson({}).scale, 1);
  EXPECT_TRUE(std::isnan(none.Spearman(true)));
  const JointRows half = { { 4, 5, 9 }, { 7, 8 } };
  const HeadCorrelation some(cross, half, JoinQueriesAndKeys(cross, 0, 0, half, true));
  EXPECT_EQ(some.PairCount(), 2);
  EXPECT_NEAR(std::abs(some.Pearson({}, 1)), 1, 1e-10); // of two points
}

INSTANTIATE_TEST_SUITE_P(
  All, OracleCorrelation, testing::Values("gpt2", "bert", "vit"), OfEmbedding::Name);

}
