#include "AttentionOnly/TorusSurface.h"

#include "Base/Error.h"
#include "Base/Pi.h"
#include "Sphere.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include <Eigen/Geometry>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace testing;

namespace
{

constexpr std::array<double, 2> WholeTurn = { -Pi, Pi };

PointRow RowsOf(const Rows3& points, const TorusGrid& grid)
{
  const std::int64_t columns = grid.DistinctColumns();
  return [&points, columns](std::int64_t row, double* values)
  { std::copy_n(points.data() + 3 * row * columns, 3 * columns, values); };
}

VectorBlocks BlocksOf(const Rows3& vectors, std::int64_t perBlock)
{
  return { vectors.rows(), perBlock, [&vectors, perBlock](std::int64_t block, double* values)
    {
      const std::int64_t count = std::min(perBlock, vectors.rows() - block * perBlock);
      std::copy_n(vectors.data() + 3 * block * perBlock, 3 * count, values);
    } };
}

/// Points and normals of rows begin <= row < end.
struct Surface
{
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, 3, Eigen::RowMajor>;
  Floats points;
  Floats normals;

  Surface(const TorusGrid& grid, const Rows3& from, std::int64_t begin, std::int64_t end)
    : points((end - begin) * grid.DistinctColumns(), 3)
    , normals(points.rows(), 3)
  {
    EvaluateSurface(
      grid, RowsOf(from, grid), begin, end, this->points.data(), this->normals.data());
  }
};

/// The sums of the normals of all quads, each added to its four corners, as unit vectors.
Rows3 ScatteredNormals(const TorusGrid& grid, const Rows3& points)
{
  Rows3 sums = Rows3::Zero(points.rows(), 3);
  for (int row = 0; row + 1 < grid.rows; ++row)
  {
    for (int column = 0; column + 1 < grid.columns; ++column)
    {
      const std::array<std::int64_t, 4> corners = { grid.Distinct(column, row),
        grid.Distinct(column + 1, row), grid.Distinct(column + 1, row + 1),
        grid.Distinct(column, row + 1) };
      const Eigen::RowVector3d rising = points.row(corners[2]) - points.row(corners[0]);
      const Eigen::RowVector3d falling = points.row(corners[3]) - points.row(corners[1]);
      for (const std::int64_t corner : corners)
      {
        sums.row(corner) += rising.cross(falling);
      }
    }
  }
  return sums.rowwise().normalized();
}

TEST(TorusSurface, DonutIsTheFormula)
{
  const std::vector<double> theta1 = { -3, -1, 0.5, 2 };
  const std::vector<double> theta2 = { -2, 0, 1 };
  const Donut donut{ 3, 0.5 };
  const DonutGrid grid(theta1, theta2);
  for (std::size_t row = 0; row < theta2.size(); ++row)
  {
    std::vector<float> points(3 * theta1.size());
    std::vector<float> normals(points.size());
    grid.Points(donut, row, points.data());
    grid.Normals(row, normals.data());
    for (std::size_t i = 0; i < theta1.size(); ++i)
    {
      const Eigen::Vector3f point = donut.Point(theta1[i], theta2[row]).cast<float>();
      const Eigen::Vector3f normal = donut.Normal(theta1[i], theta2[row]).cast<float>();
      EXPECT_EQ(Eigen::Vector3f(points.data() + 3 * i), point);
      EXPECT_EQ(Eigen::Vector3f(normals.data() + 3 * i), normal);
    }
  }
}

/// Whatever is closed, normals are those of all quads that touch a point, and a row is the same
/// whichever others are evaluated.
TEST(TorusSurface, NormalsAreThoseOfTheQuads)
{
  const std::array<double, 2> part = { 0, 1 };
  for (const TorusGrid& grid :
    { TorusGrid(6, 5, WholeTurn, WholeTurn), TorusGrid(6, 5, part, WholeTurn),
      TorusGrid(6, 5, WholeTurn, part), TorusGrid(6, 5, part, part) })
  {
    const std::int64_t rows = grid.DistinctRows();
    const Rows3 points = test::RandomRows(rows * grid.DistinctColumns(), 1);
    const Surface whole(grid, points, 0, rows);
    EXPECT_EQ(whole.points, points.cast<float>());
    const Rows3 expected = ScatteredNormals(grid, points);
    EXPECT_LE((whole.normals.cast<double>() - expected).cwiseAbs().maxCoeff(), 1e-6);
    for (std::int64_t row = 0; row < grid.rows; ++row)
    {
      const Surface one(grid, points, row, row + 1);
      const Eigen::Index first = row % rows * grid.DistinctColumns();
      EXPECT_EQ(one.points, whole.points.middleRows(first, grid.DistinctColumns()));
      EXPECT_EQ(one.normals, whole.normals.middleRows(first, grid.DistinctColumns()));
    }
  }
}

TEST(TorusSurface, APointHasTheNormalOfAnAxis)
{
  const TorusGrid grid(6, 5, WholeTurn, WholeTurn);
  const Surface surface(grid, Rows3::Constant(20, 3, 7), 0, 4);
  for (Eigen::Index i = 0; i < surface.normals.rows(); ++i)
  {
    EXPECT_EQ(surface.normals.row(i), Eigen::RowVector3f(0, 0, 1));
  }
}

/// Block by block is as at once, and the same for any number of threads.
TEST(TorusSurface, NormalizesAsNormalize)
{
  const Rows3 vectors = test::RandomRows(1000, 1) * Eigen::Vector3d(1, 2, 5).asDiagonal();
  const Rows3 others = 3 * test::RandomRows(70, 1);
  for (const auto normalization : { Normalization::None, Normalization::PerAxis,
         Normalization::Whitened, Normalization::UnitSphere })
  {
    for (const Rows3* reference : { &vectors, &others })
    {
      const VectorBlocks blocks = BlocksOf(*reference, 32);
      const Rows3 expected = Normalize(vectors, *reference, normalization);
      Rows3 first;
      for (const int threads : { 1, 2 })
      {
        const VectorNormalizer normalizer(
          BlocksOf(vectors, 7), reference == &vectors ? nullptr : &blocks, normalization, threads);
        Rows3 found = vectors;
        normalizer.Apply(found.data(), found.rows());
        EXPECT_LE((found - expected).cwiseAbs().maxCoeff(), 1e-12);
        first = threads == 1 ? found : first;
        EXPECT_EQ(found, first);
      }
    }
  }
}

TEST(TorusSurface, SaysWhichVectorIsWrong)
{
  const auto normalize = [](const Rows3& vectors, Normalization normalization)
  { const VectorNormalizer all(BlocksOf(vectors, 7), nullptr, normalization, 2); };
  Rows3 vectors = test::RandomRows(100, 1);
  vectors.row(52).setZero();
  EXPECT_NO_THROW(normalize(vectors, Normalization::Whitened));
  EXPECT_THAT([&] { normalize(vectors, Normalization::UnitSphere); },
    Throws<OptionError>(Property(&OptionError::what, HasSubstr("found 0 at point 52."))));
  vectors(81, 1) = std::numeric_limits<double>::quiet_NaN();
  vectors(93, 1) = std::numeric_limits<double>::infinity();
  EXPECT_THAT([&] { normalize(vectors, Normalization::None); },
    Throws<OptionError>(Property(&OptionError::what, HasSubstr("nan, "))));
  EXPECT_THAT([&] { normalize(vectors, Normalization::None); },
    Throws<OptionError>(Property(&OptionError::what, HasSubstr(" at point 81."))));
}

}
