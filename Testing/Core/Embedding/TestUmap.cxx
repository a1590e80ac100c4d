#include "Embedding/Umap.h"

#include "Base/Error.h"
#include "Embedding/EmbeddingQuality.h"
#include "ErrorMessage.h"
#include "UmapOracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// Points along a closed curve in 6 dimensions.
std::vector<float> Curve(std::int64_t count)
{
  std::vector<float> points;
  for (std::int64_t i = 0; i < count; ++i)
  {
    const double t = 6.2831853 * static_cast<double>(i) / static_cast<double>(count);
    for (const double k : { 1., 2., 3. })
    {
      points.push_back(static_cast<float>(std::cos(k * t) / k));
      points.push_back(static_cast<float>(std::sin(k * t + 0.3 * k) / k));
    }
  }
  return points;
}

PointView View(const std::vector<float>& points, std::int64_t dimension = 6)
{
  return { points.data(), static_cast<std::int64_t>(points.size()) / dimension, dimension };
}

bool IsFinite(const std::vector<float>& values)
{
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

std::string Refusal(const PointView& points, const UmapOptions& options)
{
  return MessageOf<OptionError>([&] { Umap(points, options); });
}

using LayoutOfUmap = OfUmap;

TEST_P(LayoutOfUmap, KeepsNeighborhoods)
{
  UmapOptions options;
  options.metric = this->Metric;
  for (const int dimensions : { 2, 3 })
  {
    options.dimensions = dimensions;
    const Layout layout = Umap(this->Points(), options);
    ASSERT_TRUE(IsFinite(layout.points));
    EXPECT_EQ(layout.iterations, 500);
    EXPECT_FALSE(layout.stopped);
    // No worse than the layout that the oracle measured.
    const std::string name = this->Head + "layout" + std::to_string(dimensions);
    EXPECT_GT(
      MeasureEmbedding(this->Points(), this->Metric, layout.points.data(), dimensions, 10, 1)
        .trustworthiness,
      this->Expected.Value(name + ".trustworthiness10"));
    EXPECT_TRUE(std::isfinite(layout.divergence));
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(dimensions);
    for (std::size_t i = 0; i < layout.points.size(); ++i)
    {
      sum[static_cast<Eigen::Index>(i) % dimensions] += static_cast<double>(layout.points[i]);
    }
    EXPECT_LT(sum.norm() / static_cast<double>(this->Count()), 1e-5); // it is centered
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, LayoutOfUmap, OfUmap::All(), OfUmap::Name);

TEST(Umap, TheSameBytesForAnyNumberOfThreads)
{
  const std::vector<float> points = Curve(3000);
  UmapOptions options;
  options.epochs = 20;
  const std::vector<float> one = Umap(View(points), options).points;
  for (const int threads : { 2, 3, 7 })
  {
    options.threads = threads;
    EXPECT_EQ(Umap(View(points), options).points, one) << threads;
  }
  options.seed = 1;
  EXPECT_NE(Umap(View(points), options).points, one);
}

TEST(Umap, StoppedKeepsTheLayoutReached)
{
  const std::vector<float> points = Curve(200);
  UmapOptions options;
  options.epochs = 100;
  options.interval = 10;
  std::vector<int> epochs;
  std::vector<float> last;
  options.progress = [&](const LayoutStep& step)
  {
    if (!step.layout)
    {
      return true; // while neighbors are sought
    }
    EXPECT_TRUE(std::isfinite(step.divergence));
    epochs.push_back(step.iterations);
    last.assign(step.layout, step.layout + 400);
    return step.iterations < 30;
  };
  const Layout layout = Umap(View(points), options);
  EXPECT_TRUE(layout.stopped);
  EXPECT_EQ(layout.iterations, 30);
  EXPECT_EQ(layout.points, last);
  EXPECT_THAT(epochs, testing::ElementsAre(0, 10, 20, 30));
}

TEST(Umap, StoppedWhileNeighborsAreSought)
{
  const std::vector<float> points = Curve(2000);
  UmapOptions options;
  options.progress = [](const LayoutStep&) { return false; };
  for (const bool warm : { false, true })
  {
    const std::vector<float> start(4000, 3);
    options.start = warm ? start.data() : nullptr;
    const Layout layout = Umap(View(points), options);
    EXPECT_TRUE(layout.stopped);
    EXPECT_EQ(layout.iterations, 0);
    EXPECT_EQ(layout.points.size(), 4000U);
    EXPECT_TRUE(IsFinite(layout.points));
  }
}

TEST(Umap, GoesOnFromAStart)
{
  const std::vector<float> points = Curve(400);
  UmapOptions options;
  const Layout first = Umap(View(points), options);
  options.start = first.points.data();
  options.epochs = 50;
  const Layout second = Umap(View(points), options);
  // Points stay near where they were: compared with the extent.
  double moved = 0;
  double extent = 0;
  for (std::size_t i = 0; i < first.points.size(); ++i)
  {
    moved = std::max(moved, std::abs(static_cast<double>(first.points[i] - second.points[i])));
    extent = std::max(extent, std::abs(static_cast<double>(first.points[i])));
  }
  EXPECT_LT(moved, 0.3 * extent);
}

TEST(Umap, KnownNeighborsGiveTheSame)
{
  const std::vector<float> points = Curve(300);
  UmapOptions options;
  options.epochs = 10;
  const NeighborLists neighbors = FindNeighbors(View(points), PointMetric::Cosine, 20, 1);
  EXPECT_EQ(Umap(View(points), neighbors, options).points, Umap(View(points), options).points);
  options.neighbors = 30;
  EXPECT_THAT(MessageOf<OptionError>([&] { Umap(View(points), neighbors, options); }),
    HasSubstr("expected 29 neighbors of each of 300 points, found 20"));
}

TEST(Umap, FewPoints)
{
  for (const std::int64_t count : { 2, 3, 4, 5, 17 })
  {
    for (const int dimensions : { 2, 3 })
    {
      const std::vector<float> points = Curve(count);
      UmapOptions options;
      options.dimensions = dimensions;
      options.neighbors = static_cast<int>(std::min<std::int64_t>(count, 15));
      const Layout layout = Umap(View(points), options);
      EXPECT_TRUE(IsFinite(layout.points)) << count;
      EXPECT_TRUE(std::isfinite(layout.divergence)) << count;
    }
  }
}

TEST(Umap, EqualLargeAndSmallPoints)
{
  for (const float scale : { 1.F, 1e-15F, 1e15F })
  {
    std::vector<float> points = Curve(60);
    std::copy_n(points.begin(), 180, points.begin() + 180); // each point of the first half twice
    std::fill(points.begin(), points.begin() + 30, 0.F);    // no direction
    std::for_each(points.begin(), points.end(), [&](float& value) { value *= scale; });
    for (const PointMetric metric :
      { PointMetric::Cosine, PointMetric::SquaredCosine, PointMetric::Euclidean })
    {
      UmapOptions options;
      options.metric = metric;
      EXPECT_TRUE(IsFinite(Umap(View(points), options).points)) << scale;
    }
  }
}

TEST(Umap, ExtremeCurves)
{
  const std::vector<float> points = Curve(100);
  UmapOptions options;
  for (const double spread : { 0.001, 1., 1000. })
  {
    for (const double part : { 0., 0.5, 1. })
    {
      options.spread = spread;
      options.minimumDistance = part * spread;
      EXPECT_TRUE(IsFinite(Umap(View(points), options).points)) << spread << ", " << part;
    }
  }
}

TEST(Umap, RefusesWhatItCannotPlace)
{
  const std::vector<float> points = Curve(10);
  EXPECT_THAT(Refusal(View(points), {}),
    HasSubstr("expected 2 to 10 neighbors (the point itself counts) of 10 points, found 15"));
  const std::vector<float> one = Curve(1);
  EXPECT_THAT(Refusal(View(one), {}), HasSubstr("expected at least 2 points, found 1"));
  EXPECT_THAT(Refusal({}, {}), HasSubstr("UMAP: expected points"));
  const std::vector<float> equal(600, 1.5F);
  EXPECT_THAT(Refusal(View(equal), {}), HasSubstr("has only equal neighbors"));
  std::vector<float> bad = Curve(100);
  bad[45] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Refusal(View(bad), {}), HasSubstr("point 7, component 3"));
}

TEST(Umap, RefusesBadOptions)
{
  static const std::vector<float> start(200, std::numeric_limits<float>::infinity());
  struct Bad
  {
    void (*change)(UmapOptions&);
    const char* message;
  };
  const std::vector<Bad> all = {
    { [](UmapOptions& bad) { bad.dimensions = 4; }, "2 or 3 dimensions, found 4" },
    { [](UmapOptions& bad) { bad.neighbors = 1; }, "neighbors" },
    { [](UmapOptions& bad) { bad.minimumDistance = 2; }, "minimum distance" },
    { [](UmapOptions& bad) { bad.spread = std::nan(""); }, "spread" },
    { [](UmapOptions& bad) { bad.epochs = -1; }, "epochs" },
    { [](UmapOptions& bad) { bad.start = start.data(); }, "start" },
  };
  const std::vector<float> points = Curve(100);
  for (const Bad& bad : all)
  {
    UmapOptions options;
    bad.change(options);
    EXPECT_THAT(Refusal(View(points), options), HasSubstr(bad.message));
  }
}

}
