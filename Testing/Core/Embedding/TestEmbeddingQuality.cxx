#include "Embedding/EmbeddingQuality.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "UmapOracle.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

using QualityOfUmap = OfUmap;

TEST_P(QualityOfUmap, QualityOfItsLayouts)
{
  if (this->Metric != PointMetric::Cosine)
  {
    GTEST_SKIP() << "the quality is by cosine distances";
  }
  for (const int dimensions : { 2, 3 })
  {
    const std::string name = this->Head + "layout" + std::to_string(dimensions);
    const std::vector<float> layout = this->Floats(name);
    const EmbeddingQuality quality =
      MeasureEmbedding(this->Points(), this->Metric, layout.data(), dimensions, 10, 2);
    EXPECT_NEAR(quality.trustworthiness, this->Expected.Value(name + ".trustworthiness10"),
      1e-6); // one rank of 400 points
    EXPECT_NEAR(NeighborsKept(this->Points(), this->Metric, layout.data(), dimensions, 10, 2),
      this->Expected.Value(name + ".knn_preservation10"), 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, QualityOfUmap, OfUmap::All(), OfUmap::Name);

/// Points on a circle, whose distances all differ.
std::vector<float> Circle(std::size_t count)
{
  std::vector<float> points;
  for (std::size_t i = 0; i < count; ++i)
  {
    const double angle = 6 * std::pow(static_cast<double>(i) / static_cast<double>(count), 1.1);
    points.push_back(static_cast<float>(std::cos(angle)));
    points.push_back(static_cast<float>(std::sin(angle)));
  }
  return points;
}

TEST(EmbeddingQuality, APerfectLayoutHasOne)
{
  const std::vector<float> points = Circle(1000);
  const PointView view{ points.data(), 1000, 2 };
  for (const PointMetric metric :
    { PointMetric::Cosine, PointMetric::SquaredCosine, PointMetric::Euclidean })
  {
    const EmbeddingQuality quality = MeasureEmbedding(view, metric, points.data(), 2, 7, 1);
    EXPECT_GT(quality.trustworthiness, 0.99999); // but for rounding of cosines
    EXPECT_GT(quality.neighborsKept, 0.995);
  }
}

TEST(EmbeddingQuality, ASampleIsNearTheWhole)
{
  const std::vector<float> points = Circle(2000);
  std::vector<float> layout = points;
  for (std::size_t i = 0; i < layout.size(); ++i)
  {
    layout[i] += 0.05F * std::sin(12.9F * static_cast<float>(i));
  }
  const PointView view{ points.data(), 2000, 2 };
  const EmbeddingQuality all = MeasureEmbedding(view, PointMetric::Cosine, layout.data(), 2, 15, 1);
  const EmbeddingQuality sample =
    MeasureEmbedding(view, PointMetric::Cosine, layout.data(), 2, 15, 1, 400);
  EXPECT_LT(all.trustworthiness, 0.999);
  EXPECT_NEAR(sample.trustworthiness, all.trustworthiness, 0.002);
  EXPECT_NEAR(sample.neighborsKept, all.neighborsKept, 0.02);
}

TEST(EmbeddingQuality, RefusesWhatItCannotMeasure)
{
  const std::vector<float> points = Circle(10);
  const PointView view{ points.data(), 10, 2 };
  const auto measure = [&view](const std::vector<float>& layout, int k)
  {
    return MessageOf<OptionError>(
      [&] { MeasureEmbedding(view, PointMetric::Cosine, layout.data(), 2, k, 1); });
  };
  EXPECT_THAT(measure(points, 0), HasSubstr("found 0"));
  EXPECT_THAT(measure(points, 7), HasSubstr("two thirds of the 10 points, found 7"));
  std::vector<float> bad = points;
  bad[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(measure(bad, 3), HasSubstr("Layout"));
}

}
