#include "vtkUnembeddingSphere.h"

#include "Core/Sphere.h"
#include "Drawing/ClassPalette.h"
#include "Matchers.h"
#include "Torus.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

AttentionOnlyModel ModelOf(const Rows3& unembedding)
{
  AttentionOnlyModel model = HandModel{};
  model.unembedding = unembedding;
  model.wordEmbedding = RandomRows(unembedding.rows(), 1);
  return model;
}

using Sphere = On<vtkUnembeddingSphere>;

using OracleSphere = OracleTest;
INSTANTIATE_TEST_SUITE_P(, OracleSphere, OracleTest::Models(), OracleTest::Name);

TEST_P(OracleSphere, HasPolygonsOfThePredictedClass)
{
  const Rows3& rows = GetOracle().GetModel().unembedding;
  Sphere sphere(DataSetOf(GetOracle().GetModel()));
  vtkPolyData* cells = sphere.Geometry();
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
      middle += PointOf(cells, id);
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
  Sphere sphere(DataSetOf(GetOracle().GetModel()));
  for (const int resolution : { 8, 128 })
  {
    sphere->SetResolution(resolution);
    const std::vector<Eigen::Vector3d> points = Tessellate(partition, resolution).points;
    vtkPolyData* cells = sphere.Geometry();
    ASSERT_EQ(cells->GetNumberOfPoints(), static_cast<vtkIdType>(points.size()));
    for (std::size_t i = 0; i < points.size(); ++i)
    {
      ASSERT_EQ(PointOf(cells, static_cast<vtkIdType>(i)), points[i]);
    }
  }
}

TEST_P(OracleSphere, HasArcsWhereTwoClassesTie)
{
  const Rows3& rows = GetOracle().GetModel().unembedding;
  Sphere sphere(DataSetOf(GetOracle().GetModel()));
  vtkPolyData* arcs = sphere.Geometry(vtkUnembeddingSphere::ARCS);
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
      const Eigen::VectorXd logits = rows * PointOf(arcs, id);
      for (const double c : { first[i], second[i] })
      {
        largest = std::max(largest, logits.maxCoeff() - logits[static_cast<Eigen::Index>(c)]);
      }
      ASSERT_EQ(PointOf(arcs, id), PointOf(sphere.Geometry(0), id)); // the same points, to the byte
    }
  }
  EXPECT_LE(largest, 1e-12 * rows.cwiseAbs().maxCoeff());
}

TEST_P(OracleSphere, HasCentresInTheDirectionsOfTheRows)
{
  const Rows3& rows = GetOracle().GetModel().unembedding;
  Sphere sphere(DataSetOf(GetOracle().GetModel()));
  vtkPolyData* centres = sphere.Geometry(vtkUnembeddingSphere::CENTRES);
  ASSERT_EQ(centres->GetNumberOfPoints(), rows.rows());
  ASSERT_EQ(centres->GetNumberOfVerts(), rows.rows());
  const std::vector<double> classes = sphere.Cells("Class");
  const std::set<double> withCells(classes.begin(), classes.end());
  for (Eigen::Index c = 0; c < rows.rows(); ++c)
  {
    const Eigen::Vector3d expected = rows.row(c).transpose() / rows.row(c).norm();
    EXPECT_LE((PointOf(centres, c) - expected).norm(), 1e-15);
    EXPECT_EQ(Values(centres->GetPointData(), "Class")[c], c);
    EXPECT_EQ(
      Values(centres->GetPointData(), "Reachable")[c], withCells.count(static_cast<double>(c)));
  }
}

TEST(UnembeddingSphere, HasItsTypes)
{
  Sphere sphere(DataSetOf(ModelOf(RandomRows(6, 2))));
  vtkPolyData* cells = sphere.Geometry();
  EXPECT_THAT(
    TypesOf(cells->GetCellData()), ElementsAre("Class int", "ClassColor unsigned char 3"));
  EXPECT_STREQ(cells->GetCellData()->GetScalars()->GetName(), "ClassColor");
  EXPECT_THAT(TypesOf(sphere.Geometry(1)->GetPointData()),
    ElementsAre("Class int", "ClassColor unsigned char 3", "Reachable int"));
  EXPECT_THAT(Names(sphere.Geometry(2)->GetCellData()), ElementsAre("First", "Second"));
  for (const int port : { 0, 1, 2 })
  {
    EXPECT_THAT(sphere.Field("VocabularySize", port), ElementsAre(6));
  }
}

TEST(UnembeddingSphere, HasARowOfZerosAtTheOrigin)
{
  Rows3 rows(3, 3);
  rows << 0, 0, 0, 2, 0, 0, 0, 0, -3;
  Sphere sphere(DataSetOf(ModelOf(rows)));
  vtkPolyData* centres = sphere.Geometry(vtkUnembeddingSphere::CENTRES);
  EXPECT_EQ(PointOf(centres, 0), Eigen::Vector3d(0, 0, 0));
  EXPECT_EQ(PointOf(centres, 1), Eigen::Vector3d(1, 0, 0));
  EXPECT_EQ(PointOf(centres, 2), Eigen::Vector3d(0, 0, -1));
  EXPECT_THAT(Values(centres->GetPointData(), "Reachable"), ElementsAre(1, 1, 1));
}

TEST(UnembeddingSphere, OfEqualRowsIsThatOfTheFirst)
{
  Sphere sphere(DataSetOf(ModelOf(Rows3::Constant(4, 3, 0.5))));
  EXPECT_THAT(sphere.Cells("Class"), Each(0));
  EXPECT_EQ(sphere.Geometry(2)->GetNumberOfCells(), 0);
  EXPECT_THAT(sphere.Points("Reachable", 1), ElementsAre(1, 0, 0, 0));
}

}
