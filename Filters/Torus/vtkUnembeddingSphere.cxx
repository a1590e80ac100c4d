#include "vtkUnembeddingSphere.h"

#include "ArrayNames.h"
#include "AttentionOnlyModel.h"
#include "DataFormat.h"
#include "PolyOutput.h"
#include "SphericalVoronoi.h"
#include "Task.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkFloatArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <cstdint>

using AttentionAtlas::Task;

namespace
{

namespace Names = AttentionAtlas::ArrayNames;

/// A generous estimate of the bytes per point of the sphere: the point, a quad and their arrays,
/// both here and in Core.
constexpr double BytesPerSpherePoint = 240;

void SetCells(const atlas::SphereTessellation& sphere, vtkPolyData* output)
{
  vtkNew<vtkPoints> points;
  AttentionAtlas::SetPoints(points, sphere.points);
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
  AttentionAtlas::AddIntegers(output->GetCellData(), Names::Class, sphere.owners);
  AttentionAtlas::AddClassColors(output->GetCellData(), Names::ClassColor, sphere.owners);
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
  AttentionAtlas::SetPoints(points, centres);
  output->SetPoints(points);
  output->SetVerts(AttentionAtlas::Vertices(points->GetNumberOfPoints()));
  AttentionAtlas::AddIntegers(output->GetPointData(), Names::Class, classes);
  AttentionAtlas::AddIntegers(output->GetPointData(), Names::Reachable,
    { partition.reachable.begin(), partition.reachable.end() });
  AttentionAtlas::AddClassColors(output->GetPointData(), Names::ClassColor, classes);
}

/// Sets the arcs. Their points are the first points of the sphere.
void SetArcs(const atlas::SphericalVoronoi& partition, const atlas::SphereTessellation& sphere,
  vtkPolyData* output)
{
  vtkNew<vtkCellArray> lines;
  std::vector<int> first;
  std::vector<int> second;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < partition.arcs.size(); ++i)
  {
    lines->InsertNextCell(static_cast<int>(sphere.polylines[i].size()));
    for (const std::int64_t point : sphere.polylines[i])
    {
      lines->InsertCellPoint(point);
      count = std::max(count, point + 1);
    }
    first.push_back(partition.arcs[i].first);
    second.push_back(partition.arcs[i].second);
  }
  vtkNew<vtkPoints> points;
  AttentionAtlas::SetPoints(points, { sphere.points.begin(), sphere.points.begin() + count });
  output->SetPoints(points);
  output->SetLines(lines);
  AttentionAtlas::AddIntegers(output->GetCellData(), Names::First, first);
  AttentionAtlas::AddIntegers(output->GetCellData(), Names::Second, second);
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
  AttentionAtlas::RequireMemory(
    BytesPerSpherePoint * atlas::CountTessellationPoints(partition, this->Resolution),
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
  AttentionAtlas::SetFormat(cells, AttentionAtlas::Formats::UnembeddingCells);
  SetCentres(model.unembedding, partition, centres);
  AttentionAtlas::SetFormat(centres, AttentionAtlas::Formats::UnembeddingCentres);
  SetArcs(partition, tessellator.Get(), arcs);
  AttentionAtlas::SetFormat(arcs, AttentionAtlas::Formats::UnembeddingArcs);
}
