#include "Embedding/TSne.h"

#include "Base/Error.h"
#include "Embedding/Internal/Attraction.h"
#include "Embedding/Internal/CurveOrder.h"
#include "Embedding/Internal/PerplexitySearch.h"
#include "Embedding/Internal/Repulsion.h"
#include "Embedding/Internal/StartLayout.h"
#include "ErrorMessage.h"
#include "EveryTarget.h"
#include "ExactTSne.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
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

/// Points in `groups` clusters on the unit sphere, point i in cluster i % groups.
std::vector<float> MakeClusters(std::int64_t count, std::int64_t dimension, int groups)
{
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::vector<float> centers(groups * dimension);
  std::generate(centers.begin(), centers.end(), [&] { return normal(generator); });
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
  {
    for (std::int64_t c = 0; c < dimension; ++c)
    {
      values.push_back(centers[i % groups * dimension + c] + 0.3F * normal(generator));
    }
  }
  return values;
}

std::vector<float> Normal(std::int64_t count, double deviation, unsigned seed)
{
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return normal(generator); });
  return values;
}

template<class Number>
using Rows = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The floats from one point to the next, as the fast code has them.
constexpr std::int64_t StrideOf(int dimensions)
{
  return dimensions == 2 ? 2 : 4;
}

/// Packed points [count, dimensions] in rows of the stride.
std::vector<float> InRows(const std::vector<float>& packed, int dimensions)
{
  const auto count = static_cast<std::int64_t>(packed.size()) / dimensions;
  std::vector<float> rows(count * StrideOf(dimensions));
  Eigen::Map<Rows<float>>(rows.data(), count, StrideOf(dimensions)).leftCols(dimensions) =
    Eigen::Map<const Rows<float>>(packed.data(), count, dimensions);
  return rows;
}

/// Root mean square difference of rows found to packed values expected, by that of the latter.
double RelativeError(
  const std::vector<float>& found, const std::vector<double>& expected, int dimensions)
{
  const auto count = static_cast<std::int64_t>(expected.size()) / dimensions;
  const Eigen::Map<const Rows<double>> exact(expected.data(), count, dimensions);
  const Eigen::Map<const Rows<float>> rows(found.data(), count, StrideOf(dimensions));
  return (rows.leftCols(dimensions).cast<double>() - exact).norm() / exact.norm();
}

struct RepulsionError
{
  double force; ///< root mean square, by that of the exact one
  double sum;   ///< of w, with those of points with themselves
};

/// The error of the fast repulsion beside the exact one.
RepulsionError ErrorOfRepulsion(const std::vector<float>& layout, int dimensions, double theta)
{
  const auto count = static_cast<std::int64_t>(layout.size()) / dimensions;
  const std::vector<float> rows = InRows(layout, dimensions);
  std::vector<float> found(rows.size());
  Repulsion repulsion(dimensions, count, StrideOf(dimensions), theta);
  const double sum = repulsion.Evaluate(rows.data(), 1, found.data());
  const std::vector<double> exact(layout.begin(), layout.end());
  double expectedSum = 0;
  const std::vector<double> expected =
    ExactRepulsion({ exact.data(), count, dimensions }, expectedSum);
  // Each point has the weight 1 with itself, which is subtracted at the end.
  return { RelativeError(found, expected, dimensions),
    std::abs(sum - expectedSum) / (expectedSum + static_cast<double>(count)) };
}

using TSneOnTarget = OnTarget;

/// Layouts from the start, which is much smaller than 1, to the end, which is much larger, of
/// numbers of points around those of groups and cells.
TEST_P(TSneOnTarget, RepulsionIsNearTheExactOne)
{
  for (const int dimensions : { 2, 3 })
  {
    for (const std::int64_t count : { 4, 15, 16, 17, 128, 129, 3000 })
    {
      for (const double size : { 1e-4, 1e-2, 0.3, 1., 3., 20., 60. })
      {
        SCOPED_TRACE(std::to_string(dimensions) + "-D, " + std::to_string(count) +
                     " points, deviation " + std::to_string(size));
        const std::vector<float> layout = Normal(count * dimensions, size, 3);
        const RepulsionError error = ErrorOfRepulsion(layout, dimensions, TSneOptions().theta);
        EXPECT_LE(error.force, 3e-3);
        EXPECT_LE(error.sum, 1e-3);
        const RepulsionError exact = ErrorOfRepulsion(layout, dimensions, 0);
        EXPECT_LE(exact.force, 2e-6); // of single precision
        EXPECT_LE(exact.sum, 1e-5);
      }
    }
  }
}

TEST_P(TSneOnTarget, AttractionIsNearTheExactOne)
{
  for (const std::int64_t count : { 130, 700 })
  {
    const std::vector<float> values = MakeClusters(count, 10, 4);
    const PointView points = { values.data(), count, 10 };
    const Affinities p =
      TSneAffinities(FindNeighbors(points, PointMetric::Cosine, 60, 1), PointMetric::Cosine, 20, 1);
    const std::vector<double> dense = DenseMatrix(p);
    EXPECT_NEAR(std::accumulate(dense.begin(), dense.end(), 0.0), 1, 1e-6);
    for (const int dimensions : { 2, 3 })
    {
      const std::vector<float> layout = Normal(count * dimensions, 5, 4);
      const std::vector<double> exact(layout.begin(), layout.end());
      const std::vector<float> rows = InRows(layout, dimensions);
      std::vector<std::uint32_t> order(count);
      std::iota(order.begin(), order.end(), 0U);
      const Attraction attraction(p, order, dimensions, 1);
      std::vector<float> found(rows.size());
      attraction.Evaluate(rows.data(), 1, found.data());
      const ExactLayout exactLayout = { exact.data(), count, dimensions };
      // Affinities have 12 bits.
      EXPECT_LE(RelativeError(found, ExactAttraction(dense, exactLayout), dimensions), 2e-4);
      double sum = 0;
      double entropy = 0;
      ExactRepulsion(exactLayout, sum);
      for (const float value : p.value)
      {
        entropy += value * std::log(static_cast<double>(value));
      }
      const double expected = ExactDivergence(dense, exactLayout) - std::log(sum) - entropy;
      EXPECT_NEAR(attraction.EvaluateDivergence(rows.data(), 1), expected, 2e-4 * expected);
    }
  }
}

/// All in all the fast code reaches a divergence as low as gradient descent by the definitions.
TEST_P(TSneOnTarget, ReachesTheDivergenceOfTheExactCode)
{
  constexpr std::int64_t count = 240;
  const std::vector<float> values = MakeClusters(count, 10, 4);
  const PointView points = { values.data(), count, 10 };
  TSneOptions options;
  options.perplexity = 20;
  options.iterations = 300;
  const Affinities p =
    TSneAffinities(FindNeighbors(points, PointMetric::Cosine, 60, 1), PointMetric::Cosine, 20, 1);
  const std::vector<double> dense = DenseMatrix(p);
  for (const int dimensions : { 2, 3 })
  {
    options.dimensions = dimensions;
    const Layout found = TSne(points, options);
    EXPECT_EQ(found.iterations, 300);
    EXPECT_FALSE(found.stopped);
    const std::vector<float> start = RandomStart(count, dimensions, 1);
    const std::vector<double> init(start.begin(), start.end());
    ExactDescentOptions descent;
    descent.steps = 100;
    const std::vector<double> early =
      ExactDescent(dense, { init.data(), count, dimensions }, descent);
    descent.steps = 400;
    descent.exaggeration = 1;
    descent.momentum = 0.8;
    const std::vector<double> late =
      ExactDescent(dense, { early.data(), count, dimensions }, descent);
    const double expected = ExactDivergence(dense, { late.data(), count, dimensions });
    EXPECT_LE(found.divergence, 1.1 * expected); // minima differ by some percent
    EXPECT_NEAR(found.divergence, TSneDivergence(p, found.points.data(), dimensions, 1), 2e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TSneOnTarget, TSneOnTarget::Targets(), TSneOnTarget::Name);

TEST(CurveOrder, NeighborsInTheOrderAreNeighborsInSpace)
{
  for (const int dimensions : { 2, 3 })
  {
    // All cells of a grid: a Hilbert curve goes from each to one beside it.
    const int side = 8;
    std::vector<float> points;
    for (int i = 0; i < (dimensions == 2 ? side * side : side * side * side); ++i)
    {
      points.push_back(static_cast<float>(i % side));
      points.push_back(static_cast<float>(i / side % side));
      points.push_back(static_cast<float>(i / side / side));
      points.push_back(0);
    }
    const auto count = static_cast<std::int64_t>(points.size()) / 4;
    const std::vector<std::uint32_t> order = CurveOrder(points.data(), count, dimensions, 4);
    EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), points.size() / 4);
    for (std::size_t i = 1; i < order.size(); ++i)
    {
      float steps = 0;
      for (std::size_t c = 0; c < 3; ++c)
      {
        steps += std::abs(points[4 * order[i] + c] - points[4 * order[i - 1] + c]);
      }
      EXPECT_EQ(steps, 1) << dimensions << "-D, " << i;
    }
  }
}

TEST(CurveOrder, KeepsTheOrderOfEqualPoints)
{
  const std::vector<float> points(20, 3);
  EXPECT_THAT(CurveOrder(points.data(), 5, 2, 4), testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(PerplexitySearch, IsMetOrShared)
{
  const std::vector<double> squares = { 0.1, 0.2, 0.4, 0.8, 1.6, 1.7, 1.8, 1.9, 2, 2.5, 3 };
  for (const double perplexity : { 1.01, 3.0, 10.9 })
  {
    std::vector<double> p(squares.size());
    const double beta =
      SearchPerplexity(squares.data(), squares.size(), std::log(perplexity), p.data());
    double entropy = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
    {
      entropy -= p[i] * std::log(p[i]);
      EXPECT_NEAR(p[i] / p[0], std::exp(-beta * (squares[i] - squares[0])), 1e-12);
    }
    EXPECT_NEAR(entropy, std::log(perplexity), 1e-10);
  }
  const std::vector<double> ties = { 0, 0, 0, 0, 1, 2 };
  std::vector<double> p(ties.size());
  EXPECT_TRUE(std::isinf(SearchPerplexity(ties.data(), ties.size(), std::log(2), p.data())));
  EXPECT_THAT(p, testing::ElementsAre(0.25, 0.25, 0.25, 0.25, 0, 0));
}

TEST(StartLayout, IsScaledPrincipalComponents)
{
  // Points along (1, 1, 0), and a tenth as far along (1, -1, 0).
  std::vector<float> values;
  const std::vector<float> along = Normal(2000, 1, 1);
  const std::vector<float> across = Normal(2000, 0.1, 2);
  for (std::size_t i = 0; i < along.size(); ++i)
  {
    values.insert(values.end(), { along[i] + across[i], along[i] - across[i], 5 });
  }
  const PointView points = { values.data(), 2000, 3 };
  const std::vector<float> start = PrincipalStart(points, PointMetric::Euclidean, 3, 0);
  std::vector<double> squares(3);
  double product = 0;
  for (std::size_t i = 0; i < along.size(); ++i)
  {
    product += start[3 * i] * along[i];
    for (std::size_t c = 0; c < 3; ++c)
    {
      squares[c] += start[3 * i + c] * start[3 * i + c] / 2000.0;
    }
  }
  EXPECT_NEAR(std::sqrt(squares[0]), 1e-4, 1e-6);
  EXPECT_NEAR(std::sqrt(squares[1]), 1e-5, 1e-6);
  EXPECT_NEAR(std::sqrt(squares[2]), 1e-6, 1e-7); // jitter
  EXPECT_GT(product, 0);
}

/// The mean share of the 10 nearest in the layout that are in the same cluster.
double Purity(const std::vector<float>& layout, int dimensions, int groups)
{
  const auto count = static_cast<std::int64_t>(layout.size()) / dimensions;
  const NeighborLists nearest =
    FindNeighbors({ layout.data(), count, dimensions }, PointMetric::Euclidean, 10, 1);
  double same = 0;
  for (std::size_t i = 0; i < nearest.index.size(); ++i)
  {
    const std::size_t point = i / 10;
    const std::size_t number = groups;
    same += nearest.index[i] % number == point % number ? 1 : 0;
  }
  return same / static_cast<double>(nearest.index.size());
}

class TSneRun : public testing::Test
{
protected:
  static constexpr std::int64_t Count = 600;
  std::vector<float> Values = MakeClusters(Count, 16, 5);
  PointView Points = { this->Values.data(), Count, 16 };
  TSneOptions Options;

  void SetUp() override
  {
    this->Options.perplexity = 30;
    this->Options.iterations = 250;
  }
  std::string Message() const
  {
    return MessageOf<OptionError>([&] { TSne(this->Points, this->Options); });
  }
};

TEST_F(TSneRun, KeepsClustersTogether)
{
  for (const PointMetric metric :
    { PointMetric::Cosine, PointMetric::SquaredCosine, PointMetric::Euclidean })
  {
    for (const int dimensions : { 2, 3 })
    {
      for (const bool isRandom : { false, true })
      {
        this->Options.metric = metric;
        this->Options.dimensions = dimensions;
        this->Options.randomStart = isRandom;
        const Layout found = TSne(this->Points, this->Options);
        EXPECT_GE(Purity(found.points, dimensions, 5), 0.99);
        double mean = 0;
        for (std::size_t i = 0; i < found.points.size(); i += static_cast<std::size_t>(dimensions))
        {
          mean += found.points[i] / static_cast<double>(Count);
        }
        EXPECT_NEAR(mean, 0, 1e-4);
      }
    }
  }
}

TEST_F(TSneRun, DoesNotDependOnThreads)
{
  const std::int64_t count = 3000; // several blocks of all kinds
  const std::vector<float> values = MakeClusters(count, 16, 5);
  const PointView points = { values.data(), count, 16 };
  this->Options.iterations = 60;
  for (const int dimensions : { 2, 3 })
  {
    this->Options.dimensions = dimensions;
    this->Options.threads = 1;
    const Layout one = TSne(points, this->Options);
    for (const int threads : { 2, 3 })
    {
      this->Options.threads = threads;
      const Layout found = TSne(points, this->Options);
      EXPECT_EQ(found.points, one.points);
      EXPECT_EQ(found.divergence, one.divergence);
    }
  }
}

TEST_F(TSneRun, SeedsDiffer)
{
  this->Options.iterations = 10;
  this->Options.randomStart = true;
  const Layout first = TSne(this->Points, this->Options);
  EXPECT_EQ(TSne(this->Points, this->Options).points, first.points);
  this->Options.seed = 1;
  EXPECT_NE(TSne(this->Points, this->Options).points, first.points);
}

TEST_F(TSneRun, ReportsWhileItGoesOnAndChangesNothing)
{
  const Layout silent = TSne(this->Points, this->Options);
  std::vector<int> iterations;
  std::vector<double> divergences;
  std::vector<float> last;
  bool soughtNeighbors = false;
  double done = 0;
  this->Options.interval = 50;
  this->Options.progress = [&](const LayoutStep& step)
  {
    EXPECT_GE(step.done, done);
    done = step.done;
    if (!step.layout)
    {
      soughtNeighbors = true;
      EXPECT_TRUE(std::isnan(step.divergence));
      return true;
    }
    iterations.push_back(step.iterations);
    divergences.push_back(step.divergence);
    last.assign(step.layout, step.layout + 2 * Count);
    return true;
  };
  const Layout found = TSne(this->Points, this->Options);
  EXPECT_TRUE(soughtNeighbors);
  EXPECT_EQ(done, 1);
  EXPECT_THAT(iterations, testing::ElementsAre(0, 50, 100, 150, 200, 250));
  EXPECT_GT(divergences.front(), divergences.back());
  EXPECT_EQ(divergences.back(), found.divergence);
  EXPECT_EQ(last, found.points);
  EXPECT_EQ(found.points, silent.points);
}

TEST_F(TSneRun, StopsWithTheLayoutReached)
{
  std::vector<float> last;
  this->Options.progress = [&](const LayoutStep& step)
  {
    if (step.layout)
    {
      last.assign(step.layout, step.layout + 2 * Count);
    }
    return step.iterations < 100;
  };
  const Layout found = TSne(this->Points, this->Options);
  EXPECT_TRUE(found.stopped);
  EXPECT_EQ(found.iterations, 100);
  EXPECT_EQ(found.points, last);
  EXPECT_TRUE(std::isfinite(found.divergence));

  this->Options.progress = [](const LayoutStep&) { return false; };
  const Layout early = TSne(this->Points, this->Options);
  EXPECT_TRUE(early.stopped);
  EXPECT_EQ(early.iterations, 0);
  EXPECT_EQ(early.points.size(), 2U * Count);
}

TEST_F(TSneRun, GoesOnFromALayout)
{
  const Layout first = TSne(this->Points, this->Options);
  this->Options.start = first.points.data();
  this->Options.iterations = 0;
  const Layout same = TSne(this->Points, this->Options);
  EXPECT_EQ(same.iterations, 0);
  for (std::size_t i = 0; i < same.points.size(); ++i)
  {
    EXPECT_NEAR(same.points[i], first.points[i], 1e-4);
  }
  EXPECT_NEAR(same.divergence, first.divergence, 1e-3);

  // Points stay near where they were: in the same cluster's place.
  this->Options.perplexity = 25;
  this->Options.iterations = 50;
  const Layout next = TSne(this->Points, this->Options);
  double moved = 0;
  double size = 0;
  for (std::size_t i = 0; i < next.points.size(); ++i)
  {
    moved += std::pow(next.points[i] - first.points[i], 2);
    size += std::pow(first.points[i], 2);
  }
  EXPECT_LT(moved, 0.05 * size);

  std::vector<float> wrong = first.points;
  wrong[7] = std::numeric_limits<float>::infinity();
  this->Options.start = wrong.data();
  EXPECT_THAT(this->Message(), HasSubstr("start from up to 1000000, found inf"));
}

TEST_F(TSneRun, UsesGivenNeighbors)
{
  const NeighborLists neighbors = FindNeighbors(this->Points, PointMetric::Cosine, 100, 1);
  EXPECT_EQ(
    TSne(this->Points, neighbors, this->Options).points, TSne(this->Points, this->Options).points);
  const NeighborLists few = FindNeighbors(this->Points, PointMetric::Cosine, 80, 1);
  EXPECT_THAT(MessageOf<OptionError>([&] { TSne(this->Points, few, this->Options); }),
    HasSubstr("90 neighbors of each of 600 points, found 80"));
}

TEST_F(TSneRun, RejectsWhatDoesNotFit)
{
  this->Options.perplexity = 199.66;
  this->Options.iterations = 1;
  EXPECT_EQ(TSne(this->Points, this->Options).iterations, 1);
  struct Bad
  {
    void (*change)(TSneOptions&);
    const char* message;
  };
  const std::vector<Bad> options = {
    { [](TSneOptions& bad) { bad.perplexity = 250; }, "199.66, the largest that works for 600" },
    { [](TSneOptions& bad) { bad.perplexity = std::nan(""); }, "found nan" },
    { [](TSneOptions& bad) { bad.dimensions = 4; }, "2 or 3 dimensions, found 4" },
    { [](TSneOptions& bad) { bad.theta = -1; }, "theta from 0 to 1, found -1" },
    { [](TSneOptions& bad) { bad.iterations = -1; }, "iterations" },
    { [](TSneOptions& bad) { bad.exaggeration = 0.5; }, "exaggeration" },
  };
  for (const Bad& bad : options)
  {
    this->Options = {};
    bad.change(this->Options);
    EXPECT_THAT(this->Message(), HasSubstr(bad.message));
  }
  this->Options = {};
  this->Points.count = 1;
  EXPECT_THAT(this->Message(), HasSubstr("at least 4 points, found 1"));
  this->Points.count = Count;
  this->Values[16 * 3 + 2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(this->Message(), HasSubstr("found nan in point 3, component 2"));
  std::fill(this->Values.begin(), this->Values.end(), 2.F);
  EXPECT_THAT(this->Message(), HasSubstr("each of the 600 points has only equal neighbors"));
}

/// Many equal points, points on a line, few points, a rate that is much too large: never a
/// coordinate that is not finite.
TEST_F(TSneRun, IsAlwaysFinite)
{
  const auto expectFinite = [&](const std::string& what)
  {
    for (const int dimensions : { 2, 3 })
    {
      this->Options.dimensions = dimensions;
      const Layout found = TSne(this->Points, this->Options);
      EXPECT_TRUE(std::all_of(
        found.points.begin(), found.points.end(), [](float value) { return std::isfinite(value); }))
        << what << dimensions;
      EXPECT_TRUE(std::isfinite(found.divergence)) << what << dimensions;
    }
  };
  this->Options.learningRate = 1e9;
  expectFinite("rate ");
  this->Options.learningRate = 0;
  std::fill(this->Values.begin() + 16 * 100, this->Values.end(), 1.F);
  expectFinite("equal points ");
  for (std::size_t i = 0; i < this->Values.size(); ++i)
  {
    this->Values[i] = static_cast<float>(i / 16 * (i % 16));
  }
  this->Options.metric = PointMetric::Euclidean;
  expectFinite("line ");
  this->Points.count = 4;
  this->Options.perplexity = 1;
  expectFinite("four points ");
  this->Points = { this->Values.data(), 600, 1 };
  this->Options.perplexity = 30;
  expectFinite("one dimension ");
}

}
