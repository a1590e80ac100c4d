#include "HeadCorrelation.h"

#include "EmbeddingOracle.h"

#include <cmath>
#include <string>
#include <vector>

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

TEST_P(OracleCorrelation, PearsonIsThatOfTheOracle)
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
    });
}

TEST_P(OracleCorrelation, SpearmanIsThatOfTheOracle)
{
  this->ForHeads(
    [&](std::int64_t layer, std::int64_t head, const std::string& prefix)
    {
      const JointVectors joint = JoinQueriesAndKeys(this->Record, layer, head, this->Rows, true);
      const HeadCorrelation correlation(this->Record, this->Rows, joint);
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

INSTANTIATE_TEST_SUITE_P(
  All, OracleCorrelation, testing::Values("gpt2", "bert", "vit"), OfEmbedding::Name);

}
