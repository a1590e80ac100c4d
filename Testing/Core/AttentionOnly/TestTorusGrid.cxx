#include "AttentionOnly/TorusGrid.h"

#include "Base/Pi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using testing::ElementsAre;

namespace
{

constexpr std::array<double, 2> Whole = { -Pi, Pi };

TEST(TorusGrid, IsClosedWhereItGoesAllAround)
{
  const TorusGrid both(5, 4, Whole, Whole);
  EXPECT_TRUE(both.closed1);
  EXPECT_TRUE(both.closed2);
  EXPECT_EQ(both.DistinctColumns(), 4);
  EXPECT_EQ(both.DistinctRows(), 3);
  const TorusGrid half(5, 4, Whole, { -Pi, 0 });
  EXPECT_TRUE(half.closed1);
  EXPECT_FALSE(half.closed2);
  EXPECT_EQ(half.DistinctRows(), 4);
  // Three points all around are two distinct ones: no surface to join.
  EXPECT_FALSE(TorusGrid(3, 4, Whole, Whole).closed1);
}

TEST(TorusGrid, NumbersItsDistinctPoints)
{
  const TorusGrid grid(5, 4, Whole, Whole);
  EXPECT_EQ(grid.Distinct(0, 0), 0);
  EXPECT_EQ(grid.Distinct(3, 2), 11);
  EXPECT_EQ(grid.Distinct(4, 1), grid.Distinct(0, 1));
  EXPECT_EQ(grid.Distinct(2, 3), grid.Distinct(2, 0));
  EXPECT_THAT(grid.DistinctPoints(), ElementsAre(0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13));
}

/// A function a + b theta_1 + c theta_2 + d theta_1 theta_2 is its own bilinear interpolation.
TEST(TorusGrid, BilinearCornersReproduceBilinearFunctions)
{
  const TorusGrid grid(6, 5, Whole, { -1, 2 });
  const std::array<double, 4> bounds = { -Pi, Pi, -1, 2 };
  const auto function = [](double x, double y) { return 0.5 - 2 * x + 3 * y + 0.25 * x * y; };
  for (const double x : { -Pi, -1.3, 0.0, 2.9, Pi })
  {
    for (const double y : { -1.0, 0.1, 1.99, 2.0 })
    {
      double sum = 0;
      double weights = 0;
      for (const GridCorner& corner : BilinearCorners(grid, bounds, x, y))
      {
        const double cornerX = -Pi + 2 * Pi * static_cast<double>(corner.point % 6) / 5;
        const double cornerY = -1 + 3 * static_cast<double>(corner.point / 6) / 4;
        sum += corner.weight * function(cornerX, cornerY);
        weights += corner.weight;
      }
      EXPECT_NEAR(weights, 1, 1e-14);
      EXPECT_NEAR(sum, function(x, y), 1e-12) << x << " " << y;
    }
  }
}

TEST(TorusGrid, UnitNormals)
{
  EXPECT_EQ(UnitNormal({ 0, 3, 4 }), Eigen::RowVector3d(0, 0.6, 0.8));
  EXPECT_EQ(UnitNormal({ 0, 0, 0 }), Eigen::RowVector3d(0, 0, 1));
  EXPECT_NEAR(UnitNormal({ 1e200, 0, 1e200 }).norm(), 1, 1e-15);
}

/// Whatever the number of pieces, each quad is in one of them, and a piece's points are those of
/// its quads.
TEST(TorusGrid, PiecesShareTheQuads)
{
  const TorusGrid grid(5, 8, Whole, Whole);
  for (const int pieces : { 1, 2, 3, 10 })
  {
    std::int64_t quads = 0;
    int row = 0;
    for (int i = 0; i < pieces; ++i)
    {
      const GridPiece piece(grid, i, pieces);
      EXPECT_EQ(piece.FirstRow(), row);
      row = piece.LastRow();
      quads += piece.QuadCount();
      const std::vector<std::int64_t> points = piece.Points();
      for (int r = piece.FirstRow(); r < piece.LastRow(); ++r)
      {
        for (int column = 0; column < 5; ++column)
        {
          EXPECT_EQ(points.at(piece.Point(column, r)), grid.Distinct(column, r));
          EXPECT_EQ(points.at(piece.Point(column, r + 1)), grid.Distinct(column, r + 1));
        }
      }
    }
    EXPECT_EQ(row, 7);
    EXPECT_EQ(quads, 4 * 7);
  }
}

}
