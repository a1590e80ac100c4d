#include "vtkWordCircle.h"

#include "ClassPalette.h"
#include "Core/HandModel.h"
#include "Core/Oracle.h"
#include "DataFormat.h"
#include "Pipeline.h"

#include <vtkCellData.h>
#include <vtkDoubleArray.h>
#include <vtkNew.h>
#include <vtkPointData.h>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using Eigen::Vector3d;
using testing::Each;
using testing::ElementsAre;

namespace
{

const double Pi = std::acos(-1.0);

class Circle : public Observed<vtkWordCircle>
{
public:
  explicit Circle(const AttentionOnlyModel& model) { Connect(this->Get(), 0, DataSetOf(model)); }

  vtkPolyData* Update(int port = 0)
  {
    this->Get()->Update(port);
    return this->GetOutput(port);
  }
  vtkPolyData* GetOutput(int port)
  {
    return vtkPolyData::SafeDownCast(this->Get()->GetOutputDataObject(port));
  }
};

Vector3d Point(vtkPolyData* data, vtkIdType id)
{
  Vector3d point;
  data->GetPoint(id, point.data());
  return point;
}

using OracleCircle = OracleTest;
INSTANTIATE_TEST_SUITE_P(, OracleCircle, OracleTest::Models(), OracleTest::Name);

TEST_P(OracleCircle, HasTheAnglesOfTheOracle)
{
  const std::vector<double> angles = GetOracle().Values("token_angle");
  const auto n = static_cast<vtkIdType>(angles.size());
  Circle circle(GetOracle().GetModel());
  vtkPolyData* tokens = circle.Update();
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
    EXPECT_LE((Point(tokens, n + t) - expected).norm(), 1e-6);
    EXPECT_EQ(Point(tokens, t), Vector3d(GetOracle().GetModel().wordEmbedding.row(t).transpose()));
  }
}

TEST_P(OracleCircle, JoinsTheTwoPointsOfAToken)
{
  const vtkIdType n = GetOracle().GetModel().VocabularySize();
  Circle circle(GetOracle().GetModel());
  vtkPolyData* tokens = circle.Update();
  EXPECT_EQ(tokens->GetNumberOfVerts(), 2 * n);
  ASSERT_EQ(tokens->GetNumberOfLines(), n);
  const std::vector<double> token = Values(tokens->GetPointData(), "Token");
  const std::vector<double> normalized = Values(tokens->GetPointData(), "Normalized");
  const std::vector<double> color = Values(tokens->GetPointData(), "ClassColor");
  for (vtkIdType t = 0; t < n; ++t)
  {
    vtkIdType size = 0;
    const vtkIdType* ids = nullptr;
    tokens->GetLines()->GetCellAtId(t, size, ids);
    ASSERT_EQ(size, 2);
    for (const int end : { 0, 1 })
    {
      const std::size_t id = ids[end];
      EXPECT_EQ(token[id], t);
      EXPECT_EQ(normalized[id], end);
      EXPECT_THAT(std::vector<double>({ color[3 * id], color[3 * id + 1], color[3 * id + 2] }),
        testing::ElementsAreArray(ClassColor(static_cast<int>(t))));
    }
  }
}

TEST(WordCircle, HasTheEmbeddingsOfTheHandModel)
{
  Circle circle(HandModel{});
  vtkPolyData* tokens = circle.Update();
  EXPECT_EQ(Point(tokens, 1), Vector3d(-10, 20, -10));
  EXPECT_LE((Point(tokens, 2) - HandModel::S * Vector3d(1, 1, -2)).norm(), 1e-15);
  EXPECT_LE((Point(tokens, 3) - HandModel::S * Vector3d(-1, 2, -1)).norm(), 1e-15);
  const std::vector<double> angles = Values(tokens->GetPointData(), "Angle");
  EXPECT_NEAR(angles[0], HandModel::Theta1, 1e-7);
  EXPECT_NEAR(angles[3], HandModel::Theta2, 1e-7);
}

TEST(WordCircle, HasAConstantEmbeddingAtTheOrigin)
{
  AttentionOnlyModel model = HandModel{};
  model.wordEmbedding.row(0).setConstant(0.1);
  model.wordEmbedding.row(1).setZero();
  Circle circle(model);
  vtkPolyData* tokens = circle.Update();
  EXPECT_EQ(Point(tokens, 2), Vector3d(0, 0, 0));
  EXPECT_EQ(Point(tokens, 3), Vector3d(0, 0, 0));
  EXPECT_THAT(Values(tokens->GetPointData(), "Angle"), Each(0));
  for (vtkIdType i = 0; i < circle.GetOutput(1)->GetNumberOfPoints(); ++i)
  {
    EXPECT_TRUE(Point(circle.GetOutput(1), i).allFinite());
  }
}

TEST(WordCircle, IsAClosedCircleOfRadiusRootThree)
{
  Circle circle(HandModel{});
  vtkPolyData* output = circle.Update(vtkWordCircle::CIRCLE);
  ASSERT_EQ(output->GetNumberOfLines(), 1);
  vtkIdType size = 0;
  const vtkIdType* ids = nullptr;
  output->GetLines()->GetCellAtId(0, size, ids);
  ASSERT_GT(size, 100);
  const std::vector<double> angles = Values(output->GetPointData(), "Angle");
  for (vtkIdType i = 0; i < size; ++i)
  {
    const Vector3d point = Point(output, ids[i]);
    EXPECT_NEAR(point.norm(), std::sqrt(3.0), 1e-14);
    EXPECT_NEAR(point.sum(), 0, 1e-14);
    const double angle = std::atan2(point.dot(Vector3d(-1, 2, -1) / std::sqrt(6.0)),
      point.dot(Vector3d(1, 0, -1) / std::sqrt(2.0)));
    EXPECT_NEAR(std::remainder(angles[ids[i]] - angle, 2 * Pi), 0, 1e-6);
  }
  EXPECT_EQ(Point(output, ids[0]), Point(output, ids[size - 1]));
  EXPECT_NEAR(angles[ids[0]], -Pi, 1e-6);
  EXPECT_NEAR(angles[ids[size - 1]], Pi, 1e-6);
}

TEST(WordCircle, HasAPlaneAroundItAndTheTokens)
{
  Circle circle(HandModel{});
  vtkPolyData* output = circle.Update(vtkWordCircle::CIRCLE);
  ASSERT_EQ(output->GetNumberOfPolys(), 1);
  vtkIdType size = 0;
  const vtkIdType* ids = nullptr;
  output->GetPolys()->GetCellAtId(0, size, ids);
  ASSERT_EQ(size, 4);
  // The farthest token, (-10, 20, -10), is in the plane, sqrt(600) from the origin.
  for (int i = 0; i < 4; ++i)
  {
    const Vector3d corner = Point(output, ids[i]);
    const Vector3d next = Point(output, ids[(i + 1) % 4]);
    EXPECT_NEAR(corner.sum(), 0, 1e-12);
    EXPECT_NEAR(corner.dot(next), 0, 1e-10); // a square
    EXPECT_GE(((corner + next) / 2).norm(), std::sqrt(600.0));
    EXPECT_LE(((corner + next) / 2).norm(), 2 * std::sqrt(600.0));
  }
}

TEST(WordCircle, HasItsTypes)
{
  Circle circle(HandModel{});
  vtkPointData* data = circle.Update()->GetPointData();
  EXPECT_EQ(Names(data), (std::set<std::string>{ "Token", "Angle", "Normalized", "ClassColor" }));
  EXPECT_EQ(data->GetArray("Token")->GetDataType(), VTK_INT);
  EXPECT_EQ(data->GetArray("Angle")->GetDataType(), VTK_FLOAT);
  EXPECT_EQ(data->GetArray("Normalized")->GetDataType(), VTK_INT);
  EXPECT_EQ(data->GetArray("ClassColor")->GetDataType(), VTK_UNSIGNED_CHAR);
  for (const int port : { 0, 1 })
  {
    EXPECT_THAT(Values(circle.GetOutput(port)->GetFieldData(), "VocabularySize"), ElementsAre(2));
  }
}

TEST(WordCircle, PassesTheUsersFieldDataOn)
{
  const auto model = DataSetOf(HandModel{});
  vtkNew<vtkDoubleArray> array;
  array->SetName("Run");
  array->InsertNextValue(7);
  model->GetFieldData()->AddArray(array);
  vtkNew<vtkWordCircle> circle;
  circle->SetInputDataObject(model);
  circle->Update();
  for (int port = 0; port < circle->GetNumberOfOutputPorts(); ++port)
  {
    vtkDataObject* output = circle->GetOutputDataObject(port);
    EXPECT_THAT(Values(output->GetFieldData(), "Run"), ElementsAre(7)) << port;
    EXPECT_NE(AttentionAtlas::FormatOf(output), AttentionAtlas::FormatOf(model)) << port;
  }
}

}
