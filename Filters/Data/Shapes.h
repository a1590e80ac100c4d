#pragma once

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <array>
#include <vector>

namespace AttentionAtlas
{

/// Vertices, lines or polygons with points of their own.
class Shapes
{
public:
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> cells;

  /// Adds a vertex. Returns its point.
  vtkIdType AddVertex(double x, double y, double z = 0)
  {
    const vtkIdType point = this->points->InsertNextPoint(x, y, z);
    this->cells->InsertNextCell(1, &point);
    return point;
  }

  /// Adds a line or a polygon of these points at a height. `isLoop`: a line that ends where it
  /// begins.
  void Add(const std::vector<std::array<double, 2>>& corners, double z = 0, bool isLoop = false)
  {
    const vtkIdType first = this->points->GetNumberOfPoints();
    this->cells->InsertNextCell(static_cast<int>(corners.size()) + (isLoop ? 1 : 0));
    for (const auto& [x, y] : corners)
    {
      this->cells->InsertCellPoint(this->points->InsertNextPoint(x, y, z));
    }
    if (isLoop)
    {
      this->cells->InsertCellPoint(first);
    }
  }

  /// Adds a rectangle, counterclockwise from its lower left corner.
  void AddRectangle(
    double left, double bottom, double right, double top, double z = 0, bool isLoop = false)
  {
    this->Add({ { left, bottom }, { right, bottom }, { right, top }, { left, top } }, z, isLoop);
  }

  void MoveToVerts(vtkPolyData* output) const
  {
    output->SetPoints(this->points);
    output->SetVerts(this->cells);
  }
  void MoveToLines(vtkPolyData* output) const
  {
    output->SetPoints(this->points);
    output->SetLines(this->cells);
  }
  void MoveToPolys(vtkPolyData* output) const
  {
    output->SetPoints(this->points);
    output->SetPolys(this->cells);
  }
};

}
