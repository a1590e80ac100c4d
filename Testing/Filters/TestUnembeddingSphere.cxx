#include "vtkUnembeddingSphere.h"

#include "ClassPalette.h"
#include "Core/HandModel.h"
#include "Core/Oracle.h"
#include "Core/Sphere.h"
#include "Pipeline.h"

#include <vtkCellData.h>
#include <vtkPointData.h>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;

namespace
{

AttentionOnlyModel ModelOf(const Rows3& unembedding)
{
  AttentionOnlyModel model = HandModel{};
  model.unembedding = unembedding;
  model.wordEmbedding = RandomRows(unembedding.rows(), 1);
  return model;
}

class Sphere : public Observed<vtkUnembeddingSphere>
{
public:
  explicit Sphere(const AttentionOnlyModel& model) { Connect(this->Get(), 0, DataSetOf(model)); }

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

Eigen::Vector3d Point(vtkPolyData* data, vtkIdType id)
{
  Eigen::Vector3d point;
  data->GetPoint(id, point.data());
  return point;
}

std::vector<std::vector<std::int64_t>> CellsOf(vtkCellArray* array)
{
  std::vector<std::vector<std::int64_t>> cells;
  for (vtkIdType c = 0; c < array->GetNumberOfCells(); ++c)
  {
    vtkIdType size = 0;
    const vtkIdType* ids = nullptr;
    array->GetCellAtId(c, size, ids);
    cells.emplace_back(ids, ids + size);
  }
  return cells;
}

using OracleSphere = OracleTest;
INSTANTIATE_TEST_SUITE_P(, OracleSphere, OracleTest::Models(), OracleTest::Name);

TEST_P(OracleSphere, HasPolygonsOfThePredictedClass)
{
  const Rows3& rows = GetOracle().GetModel().unembedding;
  Sphere sphere(GetOracle().GetModel());
  vtkPolyData* cells = sphere.Update();
  const std::vector<double> classes = Values(cells->GetCellData(), "Class");
  const std::vector<double> colors = Values(cells->GetCellData(), "ClassColor");
  const auto polygons = CellsOf(cells->GetPolys());
  ASSERT_EQ(classes.size(), polygons.size());
  std::size_t wrong = 0;
  for (std::size_t p = 0; p < polygons.size(); ++p)
  {
    Eigen::Vector3d middle = Eigen::Vector3d::Zero();
    for (const std::int64_t id : polygons[p])
    {
      middle += Point(cells, id);
    }
    Eigen::Index predicted = 0;
    (rows * middle).maxCoeff(&predicted);
    wrong += static_cast<int>(predicted) != static_cast<int>(classes[p]);
    const Rgb color = ClassColor(static_cast<int>(classes[p]));
    wrong +=
      !std::equal(color.begin(), color.end(), colors.begin() + static_cast<std::ptrdiff_t>(3 * p));
  }
  EXPECT_EQ(wrong, 0U);
}

/// TestSphericalVoronoi of Core shows that they cover the sphere.
TEST_P(OracleSphere, HasThePointsOfItsResolution)
{
  const SphericalVoronoi partition = PartitionSphere(GetOracle().GetModel().unembedding);
  Sphere sphere(GetOracle().GetModel());
  for (const int resolution : { 8, 128 })
  {
    sphere->SetResolution(resolution);
    const std::vector<Eigen::Vector3d> points = Tessellate(partition, resolution).points;
    vtkPolyData* cells = sphere.Update();
    ASSERT_EQ(cells->GetNumberOfPoints(), static_cast<vtkIdType>(points.size()));
    for (std::size_t i = 0; i < points.size(); ++i)
    {
      ASSERT_EQ(Point(cells, static_cast<vtkIdType>(i)), points[i]);
    }
  }
}

TEST_P(OracleSphere, HasArcsWhereTwoClassesTie)
{
  const Rows3& rows = GetOracle().GetModel().unembedding;
  Sphere sphere(GetOracle().GetModel());
  vtkPolyData* arcs = sphere.Update(vtkUnembeddingSphere::ARCS);
  const std::vector<double> first = Values(arcs->GetCellData(), "First");
  const std::vector<double> second = Values(arcs->GetCellData(), "Second");
  const auto lines = CellsOf(arcs->GetLines());
  ASSERT_EQ(lines.size(), first.size());
  ASSERT_GT(lines.size(), 2U);
  double largest = 0;
  for (std::size_t i = 0; i < lines.size(); ++i)
  {
    EXPECT_LT(first[i], second[i]);
    for (const std::int64_t id : lines[i])
    {
      const Eigen::VectorXd logits = rows * Point(arcs, id);
      for (const double c : { first[i], second[i] })
      {
        largest = std::max(largest, logits.maxCoeff() - logits[static_cast<Eigen::Index>(c)]);
      }
      ASSERT_EQ(Point(arcs, id), Point(sphere.GetOutput(0), id)); // the same points, to the byte
    }
  }
  EXPECT_LE(largest, 1e-12 * rows.cwiseAbs().maxCoeff());
}

TEST_P(OracleSphere, HasCentresInTheDirectionsOfTheRows)
{
  const Rows3& rows = GetOracle().GetModel().unembedding;
  Sphere sphere(GetOracle().GetModel());
  vtkPolyData* centres = sphere.Update(vtkUnembeddingSphere::CENTRES);
  ASSERT_EQ(centres->GetNumberOfPoints(), rows.rows());
  ASSERT_EQ(centres->GetNumberOfVerts(), rows.rows());
  const std::vector<double> classes = Values(sphere.GetOutput(0)->GetCellData(), "Class");
  const std::set<double> withCells(classes.begin(), classes.end());
  for (Eigen::Index c = 0; c < rows.rows(); ++c)
  {
    const Eigen::Vector3d expected = rows.row(c).transpose() / rows.row(c).norm();
    EXPECT_LE((Point(centres, c) - expected).norm(), 1e-15);
    EXPECT_EQ(Values(centres->GetPointData(), "Class")[c], c);
    EXPECT_EQ(
      Values(centres->GetPointData(), "Reachable")[c], withCells.count(static_cast<double>(c)));
  }
}

TEST(UnembeddingSphere, HasItsTypes)
{
  Sphere sphere(ModelOf(RandomRows(6, 2)));
  vtkPolyData* cells = sphere.Update();
  EXPECT_EQ(Names(cells->GetCellData()), (std::set<std::string>{ "Class", "ClassColor" }));
  EXPECT_EQ(cells->GetCellData()->GetArray("Class")->GetDataType(), VTK_INT);
  EXPECT_EQ(cells->GetCellData()->GetArray("ClassColor")->GetDataType(), VTK_UNSIGNED_CHAR);
  EXPECT_EQ(cells->GetCellData()->GetArray("ClassColor")->GetNumberOfComponents(), 3);
  EXPECT_STREQ(cells->GetCellData()->GetScalars()->GetName(), "ClassColor");
  vtkPolyData* centres = sphere.GetOutput(1);
  EXPECT_EQ(
    Names(centres->GetPointData()), (std::set<std::string>{ "Class", "Reachable", "ClassColor" }));
  EXPECT_EQ(centres->GetPointData()->GetArray("Reachable")->GetDataType(), VTK_INT);
  EXPECT_EQ(
    Names(sphere.GetOutput(2)->GetCellData()), (std::set<std::string>{ "First", "Second" }));
  for (const int port : { 0, 1, 2 })
  {
    EXPECT_THAT(Values(sphere.GetOutput(port)->GetFieldData(), "VocabularySize"), ElementsAre(6));
  }
}

TEST(UnembeddingSphere, HasARowOfZerosAtTheOrigin)
{
  Rows3 rows(3, 3);
  rows << 0, 0, 0, 2, 0, 0, 0, 0, -3;
  Sphere sphere(ModelOf(rows));
  vtkPolyData* centres = sphere.Update(vtkUnembeddingSphere::CENTRES);
  EXPECT_EQ(Point(centres, 0), Eigen::Vector3d(0, 0, 0));
  EXPECT_EQ(Point(centres, 1), Eigen::Vector3d(1, 0, 0));
  EXPECT_EQ(Point(centres, 2), Eigen::Vector3d(0, 0, -1));
  EXPECT_THAT(Values(centres->GetPointData(), "Reachable"), ElementsAre(1, 1, 1));
}

TEST(UnembeddingSphere, OfEqualRowsIsThatOfTheFirst)
{
  Sphere sphere(ModelOf(Rows3::Constant(4, 3, 0.5)));
  EXPECT_THAT(Values(sphere.Update()->GetCellData(), "Class"), testing::Each(0));
  EXPECT_EQ(sphere.GetOutput(2)->GetNumberOfCells(), 0);
  EXPECT_THAT(Values(sphere.GetOutput(1)->GetPointData(), "Reachable"), ElementsAre(1, 0, 0, 0));
}

}
