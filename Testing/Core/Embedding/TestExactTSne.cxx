#include "ExactTSne.h"

#include "EmbeddingOracle.h"
#include "Error.h"
#include "ErrorMessage.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

struct NamedMetric
{
  PointMetric metric;
  std::string name;
};

const std::vector<NamedMetric>& Metrics()
{
  static const std::vector<NamedMetric> metrics = { { PointMetric::SquaredCosine, "cosine" },
    { PointMetric::Cosine, "unit" }, { PointMetric::Euclidean, "euclidean" } };
  return metrics;
}

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
  std::vector<double> Perplexities() const
  {
    return GetParam() == "spiral" ? std::vector<double>{ 10, 50 } : std::vector<double>{ 5, 20 };
  }

  /// Calls check(metric, perplexity, beginning of the names of quantities).
  template<class Check>
  void ForSettings(const Check& check) const
  {
    for (const NamedMetric& metric : Metrics())
    {
      for (const double perplexity : this->Perplexities())
      {
        const std::string name =
          "tsne." + metric.name + ".p" + std::to_string(static_cast<int>(perplexity)) + ".";
        SCOPED_TRACE(GetParam() + " " + name);
        check(metric.metric, perplexity, name);
      }
    }
  }

  /// The affinities of the oracle if it has them, else ours, which have errors of single precision.
  std::vector<double> P(PointMetric metric, double perplexity, const std::string& name) const
  {
    return this->Has(name + "P") ? this->Values(name + "P")
                                 : ExactAffinities(this->Points(), metric, perplexity);
  }
  double Tolerance(const std::string& name) const { return this->Has(name + "P") ? 1e-9 : 1e-6; }

public:
  static std::string Name(const testing::TestParamInfo<std::string>& info) { return info.param; }
};

TEST_P(OracleTSne, Affinities)
{
  this->ForSettings(
    [&](PointMetric metric, double perplexity, const std::string& name)
    {
      if (this->Has(name + "P"))
      {
        ExpectClose(
          "P", ExactAffinities(this->Points(), metric, perplexity), this->Values(name + "P"), 1e-6);
      }
      if (this->Has(name + "sparse_P"))
      {
        const int count = TSneNeighborCount(perplexity);
        EXPECT_EQ(count, this->Values(name + "sparse_k").front());
        const NeighborLists neighbors = FindNeighbors(this->Points(), metric, count, 1);
        const Affinities sparse = TSneAffinities(neighbors, metric, perplexity, 2);
        ExpectClose("sparse P", DenseAffinities(sparse), this->Values(name + "sparse_P"), 1e-6);
      }
    });
}

TEST_P(OracleTSne, DivergenceAndGradient)
{
  this->ForSettings(
    [&](PointMetric metric, double perplexity, const std::string& name)
    {
      const std::vector<double> p = this->P(metric, perplexity, name);
      for (const int dimensions : { 2, 3 })
      {
        const std::string suffix = std::to_string(dimensions);
        const std::vector<double> layout = this->Values("layout" + suffix);
        const ExactLayout exact = { layout.data(), this->Count, dimensions };
        const double tolerance = this->Tolerance(name);
        const double divergence = this->Values(name + "kl" + suffix).front();
        EXPECT_NEAR(ExactDivergence(p, exact), divergence, tolerance * divergence);
        ExpectClose("gradient" + suffix, ExactGradient(p, exact),
          this->Values(name + "gradient" + suffix), tolerance);
        if (this->Has(name + "attraction" + suffix))
        {
          ExpectClose("attraction" + suffix, ExactAttraction(p, exact),
            this->Values(name + "attraction" + suffix), tolerance);
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
  const double perplexity = this->Perplexities().back();
  const std::string name = "tsne.cosine.p" + std::to_string(static_cast<int>(perplexity)) + ".";
  const std::vector<double> p = this->P(PointMetric::SquaredCosine, perplexity, name);
  const std::vector<double> init = this->Values("tsne.steps.init");
  for (const int steps : { 1, 5, 10, 30 })
  {
    SCOPED_TRACE(steps);
    ExactDescentOptions options;
    options.steps = steps;
    const std::vector<double> found = ExactDescent(p, { init.data(), this->Count, 2 }, options);
    // Small differences grow from step to step: of rounding, or of affinities in single precision.
    const double tolerance = steps <= 10 ? 10 * this->Tolerance(name) : 1e-3;
    ExpectClose("steps", found, this->Values("tsne.steps." + std::to_string(steps)), tolerance);
  }
}

/// The evaluator for sparse affinities agrees with that for dense ones.
TEST_P(OracleTSne, DivergenceOfSparseAffinities)
{
  const double perplexity = this->Perplexities().front();
  const NeighborLists neighbors =
    FindNeighbors(this->Points(), PointMetric::Cosine, TSneNeighborCount(perplexity), 1);
  const Affinities sparse = TSneAffinities(neighbors, PointMetric::Cosine, perplexity, 1);
  for (const int dimensions : { 2, 3 })
  {
    const std::vector<double> values = this->Values("layout" + std::to_string(dimensions));
    const std::vector<float> layout(values.begin(), values.end());
    const std::vector<double> rounded(layout.begin(), layout.end());
    const double expected =
      ExactDivergence(DenseAffinities(sparse), { rounded.data(), this->Count, dimensions });
    for (const int threads : { 1, 3 })
    {
      // Affinities are floats, whose sum is 1 within their rounding alone.
      EXPECT_NEAR(
        TSneDivergence(sparse, layout.data(), dimensions, threads), expected, 1e-6 * expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
  All, OracleTSne, testing::Values("gpt2", "bert", "vit", "spiral"), OracleTSne::Name);

TEST(ExactTSne, RejectsPerplexitiesThatNoRowCanHave)
{
  const std::vector<float> values = { 0, 1, 2, 4 };
  for (const double perplexity : { 0.5, 3.0, std::nan("") })
  {
    EXPECT_THAT(
      MessageOf<OptionError>(
        [&] { ExactAffinities({ values.data(), 4, 1 }, PointMetric::Euclidean, perplexity); }),
      HasSubstr("expected a perplexity from 1 to less than 3"));
  }
}

}
