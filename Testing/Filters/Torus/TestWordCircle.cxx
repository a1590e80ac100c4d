#include "vtkWordCircle.h"

#include "DataFormat.h"
#include "Drawing/ClassPalette.h"
#include "Matchers.h"
#include "Torus.h"

using namespace atlas;
using namespace atlas::test;
using Eigen::Vector3d;

namespace
{

using Circle = On<vtkWordCircle>;

using OracleCircle = OracleTest;
INSTANTIATE_TEST_SUITE_P(, OracleCircle, OracleTest::Models(), OracleTest::Name);

TEST_P(OracleCircle, HasTheAnglesOfTheOracle)
{
  const std::vector<double> angles = GetOracle().Values("token_angle");
  const auto n = static_cast<vtkIdType>(angles.size());
  Circle circle(DataSetOf(GetOracle().GetModel()));
  vtkPolyData* tokens = circle.Geometry();
  ASSERT_EQ(tokens->GetNumberOfPoints(), 2 * n);
  const std::vector<double> found = Values(tokens->GetPointData(), "Angle");
  for (vtkIdType t = 0; t < n; ++t)
  {
    const double angle = angles[t];
    EXPECT_NEAR(found[t], angle, 1e-6);
    EXPECT_NEAR(found[n + t], angle, 1e-6);
    // Where that angle is on the circle: three cosines a third apart.
    const Vector3d expected = std::sqrt(2.0) * Vector3d(std::cos(angle + Pi / 6), std::sin(angle),
                                                 std::cos(angle + 5 * Pi / 6));
    EXPECT_LE((PointOf(tokens, n + t) - expected).norm(), 1e-6);
    EXPECT_EQ(
      PointOf(tokens, t), Vector3d(GetOracle().GetModel().wordEmbedding.row(t).transpose()));
  }
}

TEST_P(OracleCircle, JoinsTheTwoPointsOfAToken)
{
  const vtkIdType n = GetOracle().GetModel().VocabularySize();
  Circle circle(DataSetOf(GetOracle().GetModel()));
  vtkPolyData* tokens = circle.Geometry();
  EXPECT_EQ(tokens->GetNumberOfVerts(), 2 * n);
  ASSERT_EQ(tokens->GetNumberOfLines(), n);
  const std::vector<double> token = Values(tokens->GetPointData(), "Token");
  const std::vector<double> normalized = Values(tokens->GetPointData(), "Normalized");
  const std::vector<double> color = Values(tokens->GetPointData(), "ClassColor");
  for (vtkIdType t = 0; t < n; ++t)
  {
    const std::vector<std::int64_t> ids = CellsOf(tokens->GetLines())[t];
    ASSERT_EQ(ids.size(), 2U);
    for (const int end : { 0, 1 })
    {
      const std::size_t id = ids[end];
      EXPECT_EQ(token[id], t);
      EXPECT_EQ(normalized[id], end);
      EXPECT_THAT(std::vector<double>({ color[3 * id], color[3 * id + 1], color[3 * id + 2] }),
        ElementsAreArray(ClassColor(static_cast<int>(t))));
    }
  }
}

TEST(WordCircle, HasTheEmbeddingsOfTheHandModel)
{
  Circle circle(DataSetOf(HandModel{}));
  vtkPolyData* tokens = circle.Geometry();
  EXPECT_EQ(PointOf(tokens, 1), Vector3d(-10, 20, -10));
  EXPECT_LE((PointOf(tokens, 2) - HandModel::S * Vector3d(1, 1, -2)).norm(), 1e-15);
  EXPECT_LE((PointOf(tokens, 3) - HandModel::S * Vector3d(-1, 2, -1)).norm(), 1e-15);
  const std::vector<double> angles = Values(tokens->GetPointData(), "Angle");
  EXPECT_NEAR(angles[0], HandModel::Theta1, 1e-7);
  EXPECT_NEAR(angles[3], HandModel::Theta2, 1e-7);
}

TEST(WordCircle, HasAConstantEmbeddingAtTheOrigin)
{
  AttentionOnlyModel model = HandModel{};
  model.wordEmbedding.row(0).setConstant(0.1);
  model.wordEmbedding.row(1).setZero();
  Circle circle(DataSetOf(model));
  vtkPolyData* tokens = circle.Geometry();
  EXPECT_EQ(PointOf(tokens, 2), Vector3d(0, 0, 0));
  EXPECT_EQ(PointOf(tokens, 3), Vector3d(0, 0, 0));
  EXPECT_THAT(Values(tokens->GetPointData(), "Angle"), Each(0));
  for (vtkIdType i = 0; i < circle.Geometry(1)->GetNumberOfPoints(); ++i)
  {
    EXPECT_TRUE(PointOf(circle.Geometry(1), i).allFinite());
  }
}

TEST(WordCircle, IsAClosedCircleOfRadiusRootThree)
{
  Circle circle(DataSetOf(HandModel{}));
  vtkPolyData* output = circle.Geometry(vtkWordCircle::CIRCLE);
  ASSERT_EQ(output->GetNumberOfLines(), 1);
  const std::vector<std::int64_t> ids = CellsOf(output->GetLines())[0];
  ASSERT_GT(ids.size(), 100U);
  const std::vector<double> angles = Values(output->GetPointData(), "Angle");
  for (const std::int64_t id : ids)
  {
    const Vector3d point = PointOf(output, id);
    EXPECT_NEAR(point.norm(), std::sqrt(3.0), 1e-14);
    EXPECT_NEAR(point.sum(), 0, 1e-14);
    const double angle = std::atan2(point.dot(Vector3d(-1, 2, -1) / std::sqrt(6.0)),
      point.dot(Vector3d(1, 0, -1) / std::sqrt(2.0)));
    EXPECT_NEAR(std::remainder(angles[id] - angle, 2 * Pi), 0, 1e-6);
  }
  EXPECT_EQ(PointOf(output, ids.front()), PointOf(output, ids.back()));
  EXPECT_NEAR(angles[ids.front()], -Pi, 1e-6);
  EXPECT_NEAR(angles[ids.back()], Pi, 1e-6);
}

TEST(WordCircle, HasAPlaneAroundItAndTheTokens)
{
  Circle circle(DataSetOf(HandModel{}));
  vtkPolyData* output = circle.Geometry(vtkWordCircle::CIRCLE);
  ASSERT_EQ(output->GetNumberOfPolys(), 1);
  const std::vector<std::int64_t> ids = CellsOf(output->GetPolys())[0];
  ASSERT_EQ(ids.size(), 4U);
  // The farthest token, (-10, 20, -10), is in the plane, sqrt(600) from the origin.
  for (int i = 0; i < 4; ++i)
  {
    const Vector3d corner = PointOf(output, ids[i]);
    const Vector3d next = PointOf(output, ids[(i + 1) % 4]);
    EXPECT_NEAR(corner.sum(), 0, 1e-12);
    EXPECT_NEAR(corner.dot(next), 0, 1e-10); // a square
    EXPECT_GE(((corner + next) / 2).norm(), std::sqrt(600.0));
    EXPECT_LE(((corner + next) / 2).norm(), 2 * std::sqrt(600.0));
  }
}

TEST(WordCircle, HasItsTypes)
{
  Circle circle(DataSetOf(HandModel{}));
  EXPECT_THAT(TypesOf(circle.Geometry()->GetPointData()),
    ElementsAre("Angle float", "ClassColor unsigned char 3", "Normalized int", "Token int"));
  for (const int port : { 0, 1 })
  {
    EXPECT_THAT(circle.Field("VocabularySize", port), ElementsAre(2));
  }
}

TEST(WordCircle, PassesTheUsersFieldDataOn)
{
  const auto model = DataSetOf(HandModel{});
  AddArray<vtkDoubleArray, double>(model->GetFieldData(), "Run", { 7 });
  Circle circle(model);
  circle->Update();
  for (int port = 0; port < circle->GetNumberOfOutputPorts(); ++port)
  {
    vtkDataObject* output = circle->GetOutputDataObject(port);
    EXPECT_THAT(Values(output->GetFieldData(), "Run"), ElementsAre(7)) << port;
    EXPECT_NE(AttentionAtlas::FormatOf(output), AttentionAtlas::FormatOf(model)) << port;
  }
}

}
