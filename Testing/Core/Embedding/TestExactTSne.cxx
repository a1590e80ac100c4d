#include "ExactTSne.h"

#include "EmbeddingOracle.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr double ExactTolerance = 1e-9;

/// Runs on one head of each oracle.
class OracleTSne : public testing::TestWithParam<std::string>
{
protected:
  EmbeddingOracle Oracle{ GetParam() };
  std::string Prefix = this->Oracle.Prefix(1, 2);
  std::vector<double> Joint = this->Oracle.Values(this->Prefix + "joint");
  std::vector<float> Floats{ this->Joint.begin(), this->Joint.end() };
  std::int64_t Count =
    static_cast<std::int64_t>(this->Oracle.Values(this->Prefix + "layout2").size() / 2);

  std::vector<double> Values(const std::string& quantity) const
  {
    return this->Oracle.Values(this->Prefix + quantity);
  }
  bool Has(const std::string& quantity) const { return this->Oracle.Has(this->Prefix + quantity); }
  PointView Points() const
  {
    return { this->Floats.data(), this->Count,
      static_cast<std::int64_t>(this->Floats.size()) / this->Count };
  }
  /// Calls check(metric, perplexity, beginning of the names of quantities).
  template<class Check>
  void ForSettings(const Check& check) const
  {
    for (const auto& [metric, metricName] : { std::pair(PointMetric::SquaredCosine, "cosine"),
           { PointMetric::Cosine, "unit" }, { PointMetric::Euclidean, "euclidean" } })
    {
      for (const double perplexity : { 5., 20. })
      {
        const std::string name =
          std::string("tsne.") + metricName + (perplexity == 5 ? ".p5." : ".p20.");
        SCOPED_TRACE(GetParam() + " " + name);
        check(metric, perplexity, name);
      }
    }
  }

public:
  static std::string Name(const testing::TestParamInfo<std::string>& info) { return info.param; }
};

TEST_P(OracleTSne, Affinities)
{
  this->ForSettings(
    [&](PointMetric metric, double perplexity, const std::string& name)
    {
      if (this->Has(name + "sparse_P"))
      {
        const int count = TSneNeighborCount(perplexity);
        EXPECT_EQ(count, this->Values(name + "sparse_k").front());
        const NeighborLists neighbors = FindNeighbors(this->Points(), metric, count, 1);
        const Affinities sparse = TSneAffinities(neighbors, metric, perplexity, 2);
        ExpectClose("sparse P", DenseMatrix(sparse), this->Values(name + "sparse_P"), 1e-6);
      }
    });
}

TEST_P(OracleTSne, DivergenceAndGradient)
{
  this->ForSettings(
    [&](PointMetric, double, const std::string& name)
    {
      const std::vector<double> p = this->Values(name + "P");
      for (const int dimensions : { 2, 3 })
      {
        const std::string suffix = std::to_string(dimensions);
        const std::vector<double> layout = this->Values("layout" + suffix);
        const ExactLayout exact = { layout.data(), this->Count, dimensions };
        const double divergence = this->Values(name + "kl" + suffix).front();
        EXPECT_NEAR(ExactDivergence(p, exact), divergence, ExactTolerance * divergence);
        ExpectClose("gradient" + suffix, ExactGradient(p, exact),
          this->Values(name + "gradient" + suffix), ExactTolerance);
        if (this->Has(name + "attraction" + suffix))
        {
          ExpectClose("attraction" + suffix, ExactAttraction(p, exact),
            this->Values(name + "attraction" + suffix), ExactTolerance);
        }
      }
    });
}

TEST_P(OracleTSne, RepulsionOfTheExactCode)
{
  for (const int dimensions : { 2, 3 })
  {
    const std::string name = "layout" + std::to_string(dimensions);
    const std::vector<double> layout = this->Values(name);
    double sum = 0;
    const std::vector<double> found =
      ExactRepulsion({ layout.data(), this->Count, dimensions }, sum);
    ExpectClose("repulsion", found, this->Values(name + ".repulsion"), 1e-9);
    EXPECT_NEAR(sum / this->Values(name + ".Z").front(), 1, 1e-9);
  }
}

TEST_P(OracleTSne, StepsOfTheDescent)
{
  const std::vector<double> p = this->Values("tsne.cosine.p20.P");
  const std::vector<double> init = this->Values("tsne.steps.init");
  for (const int steps : { 1, 5, 10, 30 })
  {
    SCOPED_TRACE(steps);
    ExactDescentOptions options;
    options.steps = steps;
    const std::vector<double> found = ExactDescent(p, { init.data(), this->Count, 2 }, options);
    // Small differences grow from step to step.
    const double tolerance = steps <= 10 ? 10 * ExactTolerance : 1e-3;
    ExpectClose("steps", found, this->Values("tsne.steps." + std::to_string(steps)), tolerance);
  }
}

/// The evaluator for sparse affinities agrees with that for dense ones.
TEST_P(OracleTSne, DivergenceOfSparseAffinities)
{
  constexpr double perplexity = 5;
  const NeighborLists neighbors =
    FindNeighbors(this->Points(), PointMetric::Cosine, TSneNeighborCount(perplexity), 1);
  const Affinities sparse = TSneAffinities(neighbors, PointMetric::Cosine, perplexity, 1);
  for (const int dimensions : { 2, 3 })
  {
    const std::vector<double> values = this->Values("layout" + std::to_string(dimensions));
    const std::vector<float> layout(values.begin(), values.end());
    const std::vector<double> rounded(layout.begin(), layout.end());
    const double expected =
      ExactDivergence(DenseMatrix(sparse), { rounded.data(), this->Count, dimensions });
    for (const int threads : { 1, 3 })
    {
      // Affinities are floats, whose sum is 1 within their rounding alone.
      EXPECT_NEAR(
        TSneDivergence(sparse, layout.data(), dimensions, threads), expected, 1e-6 * expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OracleTSne, testing::Values("gpt2", "bert", "vit"), OracleTSne::Name);

}
