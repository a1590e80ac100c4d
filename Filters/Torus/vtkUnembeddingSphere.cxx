#include "vtkUnembeddingSphere.h"

#include "ArrayNames.h"
#include "AttentionOnly/AttentionOnlyModel.h"
#include "AttentionOnly/SphericalVoronoi.h"
#include "DataFormat.h"
#include "Drawing/ClassPalette.h"
#include "PolyOutput.h"
#include "Task.h"

#include <vtkCellData.h>
#include <vtkInformation.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <cstdint>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

/// A generous estimate of the bytes per point of the sphere: the point, a quad and their arrays,
/// both here and in Core.
constexpr double BytesPerSpherePoint = 240;

void SetCells(const atlas::SphereTessellation& sphere, vtkPolyData* output)
{
  vtkNew<vtkPoints> points;
  SetPoints(points, sphere.points);
  vtkNew<vtkCellArray> polygons;
  polygons->AllocateExact(static_cast<vtkIdType>(sphere.owners.size()),
    static_cast<vtkIdType>(sphere.connectivity.size()));
  std::vector<vtkIdType> corners;
  for (std::size_t p = 0; p < sphere.owners.size(); ++p)
  {
    corners.assign(sphere.connectivity.begin() + sphere.offsets[p],
      sphere.connectivity.begin() + sphere.offsets[p + 1]);
    polygons->InsertNextCell(static_cast<vtkIdType>(corners.size()), corners.data());
  }
  output->SetPoints(points);
  output->SetPolys(polygons);
  vtkNew<vtkFloatArray> normals;
  normals->DeepCopy(points->GetData());
  normals->SetName("Normals");
  output->GetPointData()->SetNormals(normals);
  ListArrays(sphere.owners, output->GetCellData()).Int(Names::Class);
  AddColors(output->GetCellData(), Names::ClassColor, sphere.owners, atlas::ClassColor);
}

void SetCentres(
  const atlas::Rows3& rows, const atlas::SphericalVoronoi& partition, vtkPolyData* output)
{
  std::vector<Eigen::Vector3d> centres;
  std::vector<int> classes;
  for (std::int64_t c = 0; c < rows.rows(); ++c)
  {
    centres.emplace_back(rows.row(c).transpose().stableNormalized()); // 0 for a zero row
    classes.push_back(static_cast<int>(c));
  }
  vtkNew<vtkPoints> points;
  SetPoints(points, centres);
  output->SetPoints(points);
  output->SetVerts(Vertices(points->GetNumberOfPoints()));
  ListArrays(classes, output->GetPointData())
    .Int(Names::Class)
    .Int(Names::Reachable, [&](int c) { return partition.reachable[c]; });
  AddColors(output->GetPointData(), Names::ClassColor, classes, atlas::ClassColor);
}

/// Sets the arcs. Their points are the first points of the sphere.
void SetArcs(const atlas::SphericalVoronoi& partition, const atlas::SphereTessellation& sphere,
  vtkPolyData* output)
{
  vtkNew<vtkCellArray> lines;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < partition.arcs.size(); ++i)
  {
    lines->InsertNextCell(static_cast<int>(sphere.polylines[i].size()));
    for (const std::int64_t point : sphere.polylines[i])
    {
      lines->InsertCellPoint(point);
      count = std::max(count, point + 1);
    }
  }
  vtkNew<vtkPoints> points;
  SetPoints(points, { sphere.points.begin(), sphere.points.begin() + count });
  output->SetPoints(points);
  output->SetLines(lines);
  using Arc = std::decay_t<decltype(partition.arcs.front())>;
  ListArrays(partition.arcs, output->GetCellData())
    .Int(Names::First, &Arc::first)
    .Int(Names::Second, &Arc::second);
}

}

vtkStandardNewMacro(vtkUnembeddingSphere);

vtkUnembeddingSphere::vtkUnembeddingSphere()
  : vtkModelAlgorithm({ "vtkPolyData", "vtkPolyData", "vtkPolyData" })
{
}

void vtkUnembeddingSphere::Evaluate(const atlas::AttentionOnlyModel& model, Task& task)
{
  const atlas::SphericalVoronoi partition = atlas::PartitionSphere(model.unembedding);
  task.Progress()(0.5);
  RequireMemory(BytesPerSpherePoint * atlas::CountTessellationPoints(partition, this->Resolution),
    "a sphere with great circles of " + std::to_string(this->Resolution) + " segments",
    "lower Resolution.");
  atlas::SphereTessellator tessellator(partition, this->Resolution);
  const atlas::Progress tessellated = task.Progress().Part(0.5, 1.);
  for (std::size_t cell = 0; cell < partition.cells.size(); ++cell)
  {
    if (cell % 64 == 0)
    {
      tessellated(cell, partition.cells.size());
    }
    tessellator.AddCell(cell);
  }
  auto* cells = task.Output<vtkPolyData>(CELLS);
  auto* centres = task.Output<vtkPolyData>(CENTRES);
  auto* arcs = task.Output<vtkPolyData>(ARCS);
  SetCells(tessellator.Get(), cells);
  SetFormat(cells, Formats::UnembeddingCells);
  SetCentres(model.unembedding, partition, centres);
  SetFormat(centres, Formats::UnembeddingCentres);
  SetArcs(partition, tessellator.Get(), arcs);
  SetFormat(arcs, Formats::UnembeddingArcs);
}
