#include "vtkTorusDeformation.h"

#include "Fields.h"
#include "Matchers.h"
#include "Torus.h"
#include "vtkTokenPairs.h"

#include <vtkFeatureEdges.h>

#include <Eigen/Dense>

using namespace atlas;
using namespace atlas::test;

namespace
{

class Deformed : public On<vtkTorusDeformation>
{
public:
  using On::On;

  void SetVectors(const char* name)
  {
    this->Get()->SetShape(vtkTorusDeformation::VECTORS);
    this->Get()->SetInputArrayToProcess(0, 0, 0, vtkDataObject::FIELD_ASSOCIATION_POINTS, name);
  }
};

/// A chart of the trained model with all its vectors.
vtkSmartPointer<vtkImageData> Chart(int columns, int rows)
{
  Torus torus(TrainedModel());
  torus->SetResolution(columns, rows);
  torus.Choose({ "Class", "Output", "Mix", "Head Output" });
  return vtkImageData::SafeDownCast(torus.Update());
}

vtkSmartPointer<vtkDataSet> PairsOfTheModel()
{
  return On<vtkTokenPairs>(DataSetOf(TrainedModel())).Output();
}

/// The points of a dataset, or an array of 3 components.
Rows3 Matrix(vtkDataArray* array)
{
  Rows3 rows(array->GetNumberOfTuples(), 3);
  for (vtkIdType i = 0; i < array->GetNumberOfTuples(); ++i)
  {
    array->GetTuple(i, rows.row(i).data());
  }
  return rows;
}
Rows3 PointsOf(vtkPolyData* data)
{
  return Matrix(data->GetPoints()->GetData());
}
Rows3 Vectors(vtkDataSet* data, const char* name)
{
  return Matrix(data->GetPointData()->GetArray(name));
}

/// The points of a chart without duplicates, which are the last of each row and column.
Rows3 WithoutEnds(const Rows3& values, int columns, int rows)
{
  Rows3 distinct((columns - 1) * (rows - 1), 3);
  for (int row = 0; row < rows - 1; ++row)
  {
    distinct.middleRows(row * (columns - 1), columns - 1) =
      values.middleRows(row * columns, columns - 1);
  }
  return distinct;
}

double Difference(const Rows3& a, const Rows3& b)
{
  EXPECT_EQ(a.rows(), b.rows());
  return a.rows() == b.rows() ? (a - b).cwiseAbs().maxCoeff() : 1e300;
}

/// The edges of one polygon, or of more than two.
vtkIdType OddEdges(vtkPolyData* surface)
{
  vtkNew<vtkFeatureEdges> edges;
  edges->SetInputData(surface);
  edges->FeatureEdgesOff();
  edges->ManifoldEdgesOff();
  edges->BoundaryEdgesOn();
  edges->NonManifoldEdgesOn();
  edges->Update();
  return OutputOf<vtkPolyData>(edges)->GetNumberOfCells();
}

TEST(TorusDeformation, DonutIsTheFormula)
{
  Deformed donut(Chart(31, 25));
  donut->SetMajorRadius(3);
  donut->SetMinorRadius(0.5);
  vtkPolyData* output = donut.Geometry();
  const Rows3 points = PointsOf(output);
  const std::vector<double> theta1 = Values(output->GetPointData(), "Theta1");
  const std::vector<double> theta2 = Values(output->GetPointData(), "Theta2");
  const Rows3 normals = Matrix(output->GetPointData()->GetNormals());
  ASSERT_EQ(points.rows(), 30 * 24);
  for (int row = 0; row < 24; ++row)
  {
    for (int column = 0; column < 30; ++column)
    {
      const std::size_t i = row * 30 + column;
      const double t1 = -Pi + 2 * Pi * column / 30;
      const double t2 = -Pi + 2 * Pi * row / 24;
      EXPECT_NEAR(theta1[i], t1, 1e-6);
      EXPECT_NEAR(theta2[i], t2, 1e-6);
      const Eigen::RowVector3d normal(
        std::cos(t2) * std::cos(t1), std::cos(t2) * std::sin(t1), std::sin(t2));
      const Eigen::RowVector3d middle(3 * std::cos(t1), 3 * std::sin(t1), 0);
      const auto r = static_cast<Eigen::Index>(i);
      EXPECT_LE((points.row(r) - middle - 0.5 * normal).norm(), 1e-6);
      EXPECT_LE((normals.row(r) - normal).norm(), 1e-6);
    }
  }
}

TEST(TorusDeformation, WholeChartsAreClosed)
{
  const auto chart = Chart(31, 25);
  for (const char* vectors : { "", "Output", "Mix 1" })
  {
    Deformed deformed(chart);
    if (*vectors != '\0')
    {
      deformed.SetVectors(vectors);
    }
    vtkPolyData* output = deformed.Geometry();
    EXPECT_EQ(OddEdges(output), 0) << vectors;
    EXPECT_EQ(output->GetNumberOfPoints(), 30 * 24);
    // As many faces as points, each with 4 edges of 2 faces: the Euler characteristic is 0.
    EXPECT_EQ(output->GetNumberOfPolys(), 30 * 24);
  }
}

TEST(TorusDeformation, PartsOfChartsAreNotJoined)
{
  const auto chart = Chart(31, 25);
  int extent[6] = { 0, 30, 3, 20, 0, 0 };
  chart->Crop(extent); // all around along theta_1 only
  Deformed donut(chart);
  vtkPolyData* output = donut.Geometry();
  EXPECT_EQ(output->GetNumberOfPoints(), 30 * 18);
  EXPECT_EQ(OddEdges(output), 2 * 30);
}

TEST(TorusDeformation, WithoutNormalizationIsTheArray)
{
  const auto chart = Chart(31, 25);
  for (const char* name : { "Output", "Head Output 0", "Head Output 2", "Mix 1" })
  {
    Deformed deformed(chart);
    deformed.SetVectors(name);
    EXPECT_EQ(
      Difference(PointsOf(deformed.Geometry()), WithoutEnds(Vectors(chart, name), 31, 25)), 0)
      << name;
  }
  Deformed byDefault(chart);
  byDefault->SetShape(vtkTorusDeformation::VECTORS);
  EXPECT_EQ(
    Difference(PointsOf(byDefault.Geometry()), WithoutEnds(Vectors(chart, "Output"), 31, 25)), 0);
}

TEST(TorusDeformation, KeepsTheArrays)
{
  const auto chart = Chart(31, 25);
  Deformed deformed(chart);
  vtkPolyData* output = deformed.Geometry();
  EXPECT_EQ(Difference(Vectors(output, "Mix 2"), WithoutEnds(Vectors(chart, "Mix 2"), 31, 25)), 0);
  EXPECT_EQ(Values(output->GetFieldData(), "Heads"), std::vector<double>{ 3 });
  EXPECT_EQ(output->GetPointData()->GetArray("Class")->GetDataType(), VTK_INT);
}

TEST(TorusDeformation, VerticesStayVertices)
{
  const auto pairs = PairsOfTheModel();
  Deformed deformed(pairs);
  deformed.SetVectors("Output");
  vtkPolyData* output = deformed.Geometry();
  EXPECT_EQ(output->GetNumberOfVerts(), 25);
  EXPECT_EQ(output->GetNumberOfCells(), 25);
  EXPECT_EQ(Difference(PointsOf(output), Vectors(pairs, "Output")), 0);
  EXPECT_EQ(output->GetPointData()->GetNormals(), nullptr);
}

TEST(TorusDeformation, PairsLieOnTheSurfaceOfTheReference)
{
  const auto chart = Chart(61, 51);
  const auto pairs = PairsOfTheModel();
  const Rows3 surface = WithoutEnds(Vectors(chart, "Output"), 61, 51);
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(surface, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::Matrix3d whiten =
    svd.matrixV() * svd.singularValues().cwiseInverse().asDiagonal() * svd.matrixV().transpose();
  Deformed deformed(pairs);
  deformed.SetVectors("Output");
  deformed->SetNormalization(vtkTorusDeformation::WHITENED);
  Connect(deformed.Get(), 1, chart);
  const Rows3 expected = Vectors(pairs, "Output") * whiten;
  EXPECT_LE(Difference(PointsOf(deformed.Geometry()), expected), 1e-5);
}

TEST(TorusDeformation, LinesWithoutVectorsGetThoseOfTheReference)
{
  // A line along the points of the chart, and between two of them.
  const auto chart = Chart(31, 25);
  const double step1 = 2 * Pi / 30;
  const double step2 = 2 * Pi / 24;
  const auto line =
    PointsAt({ -Pi + 3 * step1, -Pi + 3.5 * step1 }, { -Pi + 7 * step2, -Pi + 7 * step2 });
  Deformed deformed(line);
  deformed.SetVectors("Output");
  Connect(deformed.Get(), 1, chart);
  const Rows3 values = Vectors(chart, "Output");
  Rows3 expected(2, 3);
  expected.row(0) = values.row(7 * 31 + 3);
  expected.row(1) = (values.row(7 * 31 + 3) + values.row(7 * 31 + 4)) / 2;
  EXPECT_LE(Difference(PointsOf(deformed.Geometry()), expected), 1e-6);
}

TEST(TorusDeformation, AnglesOfASurfaceAreItsArrays)
{
  const auto chart = Chart(31, 25);
  Deformed byVectors(chart);
  byVectors.SetVectors("Output");
  vtkNew<vtkPolyData> surface;
  surface->DeepCopy(byVectors.Geometry());
  Deformed again(surface);
  Deformed donut(chart);
  EXPECT_LE(Difference(PointsOf(again.Geometry()), PointsOf(donut.Geometry())), 1e-6);
}

TEST(TorusDeformation, PiecesMakeUpTheWhole)
{
  const auto chart = Chart(31, 25);
  Deformed whole(chart);
  whole.SetVectors("Output");
  whole->SetNormalization(vtkTorusDeformation::WHITENED);
  const Rows3 expected = PointsOf(whole.Geometry());
  for (const int pieces : { 2, 3, 40 })
  {
    vtkIdType quads = 0;
    std::set<Eigen::Index> seen;
    for (int piece = 0; piece < pieces; ++piece)
    {
      Deformed part(chart);
      part.SetVectors("Output");
      part->SetNormalization(vtkTorusDeformation::WHITENED);
      part->UpdatePiece(piece, pieces, 0);
      vtkPolyData* output = OutputOf<vtkPolyData>(part.Get());
      quads += output->GetNumberOfPolys();
      const Rows3 points = output->GetNumberOfPoints() > 0 ? PointsOf(output) : Rows3(0, 3);
      for (Eigen::Index i = 0; i < points.rows(); ++i)
      {
        Eigen::Index nearest = 0;
        EXPECT_EQ((expected.rowwise() - points.row(i)).rowwise().norm().minCoeff(&nearest), 0);
        seen.insert(nearest);
      }
    }
    EXPECT_EQ(quads, 30 * 24) << pieces;
    EXPECT_EQ(seen.size(), 30 * 24) << pieces;
  }
}

/// The points, normals and arrays of a surface, as texts of numbers.
std::map<std::string, std::vector<double>> ContentOf(vtkPolyData* surface)
{
  std::map<std::string, std::vector<double>> content;
  for (int i = 0; i < surface->GetPointData()->GetNumberOfArrays(); ++i)
  {
    const std::string name = surface->GetPointData()->GetArrayName(i);
    content[name] = Values(surface->GetPointData(), name);
  }
  for (vtkIdType i = 0; i < surface->GetNumberOfPoints(); ++i)
  {
    content["Points"].insert(
      content["Points"].end(), surface->GetPoint(i), surface->GetPoint(i) + 3);
  }
  vtkNew<vtkIdList> corners;
  for (vtkIdType i = 0; i < surface->GetNumberOfCells(); ++i)
  {
    surface->GetCellPoints(i, corners);
    content["Quads"].insert(content["Quads"].end(), corners->begin(), corners->end());
  }
  return content;
}

/// What is kept between executions is never seen: each output is that of a new filter, and earlier
/// outputs stay as they were.
TEST(TorusDeformation, EachChangeGivesWhatANewFilterGives)
{
  const std::array<vtkSmartPointer<vtkImageData>, 3> charts = { Chart(31, 25), Chart(31, 25),
    Chart(21, 25) };
  charts[1]->GetPointData()->GetArray("Mix 2")->Fill(3);
  charts[1]->GetPointData()->GetArray("Output")->SetComponent(7, 1, 9);
  const vtkSmartPointer<vtkImageData> shifted = Chart(31, 25);
  shifted->SetOrigin(-3, -3, 0);
  const vtkSmartPointer<vtkImageData> mirrored = Chart(31, 25); // within the same bounds
  const std::array<double, 3> spacing = { mirrored->GetSpacing()[0], mirrored->GetSpacing()[1], 1 };
  mirrored->SetOrigin(
    mirrored->GetOrigin()[0] + 30 * spacing[0], mirrored->GetOrigin()[1], mirrored->GetOrigin()[2]);
  mirrored->SetSpacing(-spacing[0], spacing[1], spacing[2]);
  struct Change
  {
    vtkImageData* chart;
    int shape;
    double radius;
    int piece;
    int pieces = 2;
  };
  const std::vector<Change> changes = { { charts[0], 0, 3, 0 }, { charts[0], 0, 4, 0 },
    { charts[0], 1, 4, 0 }, { charts[1], 1, 4, 0 }, { charts[1], 0, 4, 0 }, { charts[2], 0, 4, 0 },
    { charts[2], 0, 4, 1 }, { charts[0], 0, 4, 1 }, { shifted, 0, 4, 1 }, { shifted, 1, 4, 0 },
    { charts[0], 0, 3, 0 }, { mirrored, 0, 3, 0 }, { charts[0], 0, 3, 0 },
    { charts[0], 0, 3, 0, 1 }, { charts[0], 1, 3, 0, 1 }, { mirrored, 1, 3, 0, 1 },
    { charts[0], 0, 3, 0, 3 } };
  const auto apply = [](Deformed& deformed, const Change& change)
  {
    Connect(deformed.Get(), 0, change.chart);
    deformed->SetShape(change.shape);
    deformed->SetMajorRadius(change.radius);
    deformed->UpdatePiece(change.piece, change.pieces, 0);
    return OutputOf<vtkPolyData>(deformed.Get());
  };
  Deformed deformed(charts[0]);
  std::vector<vtkSmartPointer<vtkPolyData>> shown;
  std::vector<std::map<std::string, std::vector<double>>> expected;
  for (const Change& change : changes)
  {
    auto& copy = shown.emplace_back(vtkSmartPointer<vtkPolyData>::New());
    copy->ShallowCopy(apply(deformed, change));
    Deformed fresh(change.chart);
    expected.push_back(ContentOf(apply(fresh, change)));
    for (std::size_t i = 0; i < shown.size(); ++i)
    {
      EXPECT_TRUE(ContentOf(shown[i]) == expected[i]) << i << " after " << shown.size();
    }
    if (shown.size() > 2) // so that arrays are free
    {
      shown.erase(shown.begin());
      expected.erase(expected.begin());
    }
  }
}

TEST(TorusDeformation, SeesAChartThatChangesInPlace)
{
  const auto chart = Chart(31, 25);
  Deformed deformed(chart);
  deformed.Geometry();
  chart->GetPointData()->GetArray("Mix 2")->Fill(3);
  chart->GetPointData()->GetArray("Mix 2")->Modified();
  chart->Modified();
  EXPECT_EQ(Vectors(deformed.Geometry(), "Mix 2"), Rows3::Constant(30 * 24, 3, 3));
}

TEST(TorusDeformation, CopiesArraysOfAllTypesAndWhichAreActive)
{
  const auto chart = Chart(5, 4);
  vtkNew<vtkStringArray> names;
  vtkNew<vtkDoubleArray> numbers;
  vtkNew<vtkIntArray> cells;
  names->SetName("Names");
  numbers->SetName("Numbers");
  numbers->SetNumberOfComponents(2);
  numbers->SetComponentName(1, "second");
  cells->SetName("Cells");
  for (int i = 0; i < 20; ++i)
  {
    names->InsertNextValue(std::to_string(i));
    numbers->InsertNextTuple2(i, -i);
  }
  for (int i = 0; i < 12; ++i)
  {
    cells->InsertNextValue(i);
  }
  chart->GetPointData()->AddArray(names);
  chart->GetPointData()->AddArray(numbers);
  chart->GetPointData()->SetActiveScalars("Mix 1");
  chart->GetCellData()->SetScalars(cells);
  Deformed deformed(chart);
  vtkPolyData* output = deformed.Geometry();
  ASSERT_EQ(output->GetNumberOfPoints(), 4 * 3);
  vtkPointData* data = output->GetPointData();
  ASSERT_NE(data->GetScalars(), nullptr);
  EXPECT_STREQ(data->GetScalars()->GetName(), "Mix 1");
  auto* copied = vtkStringArray::SafeDownCast(data->GetAbstractArray("Names"));
  EXPECT_EQ(copied->GetValue(0), "0");
  EXPECT_EQ(copied->GetValue(5), "6"); // the last of a row is its first
  EXPECT_EQ(copied->GetValue(11), "13");
  EXPECT_EQ(data->GetArray("Numbers")->GetComponent(5, 1), -6);
  EXPECT_STREQ(data->GetArray("Numbers")->GetComponentName(1), "second");
  EXPECT_EQ(output->GetCellData()->GetScalars()->GetComponent(7, 0), 7);
}

TEST(TorusDeformation, OthersComeFromTheFirstPiece)
{
  const auto pairs = PairsOfTheModel();
  for (const int piece : { 0, 1 })
  {
    Deformed deformed(pairs);
    deformed->UpdatePiece(piece, 2, 0);
    EXPECT_EQ(OutputOf<vtkPolyData>(deformed.Get())->GetNumberOfPoints(), piece == 0 ? 25 : 0);
  }
}

TEST(TorusDeformation, OfNothingIsNothing)
{
  vtkNew<vtkPolyData> nothing;
  Deformed deformed(nothing);
  deformed.SetVectors("Output");
  EXPECT_EQ(deformed.Geometry()->GetNumberOfPoints(), 0);
}

TEST(TorusDeformation, CanBeCancelled)
{
  for (const vtkSmartPointer<vtkDataSet>& input :
    { vtkSmartPointer<vtkDataSet>(Chart(9, 9)), PairsOfTheModel() })
  {
    Deformed deformed(input);
    deformed->SetAbortExecute(1);
    EXPECT_EQ(deformed.Geometry()->GetNumberOfPoints(), 0);
    EXPECT_GT(deformed.Geometry()->GetNumberOfPoints(), 0);
  }
}

/// TestHostileInput.py has what else may be wrong.
TEST(TorusDeformation, SaysWhatIsWrong)
{
  const auto chart = Chart(31, 25);
  Deformed nameless(chart);
  nameless.SetVectors("");
  nameless->SetInputArrayToProcess(
    0, 0, 0, vtkDataObject::FIELD_ASSOCIATION_POINTS, vtkDataSetAttributes::VECTORS);
  EXPECT_THAT(nameless.Error(), HasSubstr("found none named ''."));

  Deformed other(chart);
  other.SetVectors("Output");
  Connect(other.Get(), 1, PointsAt({ 0 }, { 0 }));
  EXPECT_THAT(other.Error(), HasSubstr("Reference: expected the point array 'Output'"));

  auto zero = PointsAt({ 0, 1 }, { 0, 0 });
  AddArray<vtkFloatArray, float>(zero->GetPointData(), "V", { 1, 0, 0, 0, 0, 0 }, 3);
  Deformed sphere(zero);
  sphere.SetVectors("V");
  sphere->SetNormalization(vtkTorusDeformation::UNIT_SPHERE);
  EXPECT_THAT(sphere.Error(),
    HasSubstr("expected vectors other than 0, as 0 has no direction, found 0 at point 1."));
}

}
