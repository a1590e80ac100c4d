#include "Embedding/Internal/CrossEntropy.h"

#include "UmapOracle.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

using CrossEntropyOfUmap = OfUmap;

TEST_P(CrossEntropyOfUmap, CrossEntropy)
{
  for (const int dimensions : { 2, 3 })
  {
    const std::string suffix = std::to_string(dimensions);
    const std::vector<float> layout = this->Floats(this->Head + "layout" + suffix);
    const CrossEntropy found =
      EvaluateCrossEntropy(this->Graph(), layout.data(), dimensions, FitUmapCurve(0.1, 1), 0, 2);
    // Relative to the total, of which the parts can be a small difference. Graph and layout are in
    // single precision.
    ExpectClose("cross_entropy" + suffix,
      std::vector<double>{ found.Total(), found.attractive, found.repulsive },
      this->Expected.Values(this->Prefix + "cross_entropy" + suffix), 1e-6);
  }
}

TEST_P(CrossEntropyOfUmap, CrossEntropyOfASample)
{
  const std::vector<float> layout = this->Floats(this->Head + "layout2");
  const double expected = this->Expected.Values(this->Prefix + "cross_entropy2").front();
  const double found =
    EvaluateCrossEntropy(this->Graph(), layout.data(), 2, FitUmapCurve(0.1, 1), 20, 1).Total();
  EXPECT_NEAR(found / expected, 1, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Oracle, CrossEntropyOfUmap, OfUmap::All(), OfUmap::Name);

TEST(CrossEntropy, PointsAtOnePlaceAreFinite)
{
  const FuzzyGraph graph{ 3, { 0, 1, 2, 2 }, { 1, 0 }, { 1, 1 } };
  const std::vector<float> layout(6, 0);
  const CrossEntropy found = EvaluateCrossEntropy(graph, layout.data(), 2, { 1.5, 0.9 }, 0, 1);
  EXPECT_NEAR(found.attractive, 0, 1e-9);
  EXPECT_NEAR(found.repulsive, -2 * std::log(1e-12), 1e-2); // of two pairs without an edge
}

TEST(UmapCurve, IsThatOfTheAuthorsProgram)
{
  for (const std::string name : { "gpt2", "bert", "vit" })
  {
    const EmbeddingOracle oracle(name);
    const std::vector<double> distances = oracle.Values("umap.min_dist");
    std::vector<double> found;
    for (const double distance : distances)
    {
      const UmapCurve curve = FitUmapCurve(distance, 1);
      found.insert(found.end(), { curve.a, curve.b });
    }
    ExpectClose("ab", found, oracle.Values("umap.ab"), 1e-6);
  }
}

TEST(UmapCurve, ScalesWithTheSpread)
{
  // 1 / (1 + a d^2b) of d / spread.
  const UmapCurve one = FitUmapCurve(0.2, 1);
  for (const double spread : { 0.01, 0.5, 40. })
  {
    const UmapCurve curve = FitUmapCurve(0.2 * spread, spread);
    EXPECT_NEAR(curve.b, one.b, 1e-9);
    EXPECT_NEAR(curve.a * std::pow(spread, 2 * curve.b) / one.a, 1, 1e-8);
  }
}

}
