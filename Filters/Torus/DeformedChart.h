#pragma once

#include "ArrayPool.h"
#include "AttentionOnly/Deformation.h"
#include "AttentionOnly/TorusGrid.h"
#include "AttentionOnly/TorusSurface.h"

#include <vector>

#include <vtkCellData.h>
#include <vtkFloatArray.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkSmartPointer.h>
#include <vtkType.h>

class vtkCellArray;
class vtkImageData;
class vtkPolyData;

namespace AttentionAtlas
{

/// The surfaces that vtkTorusDeformation makes from charts. What a change leaves as it is, such as
/// the quads and the copied arrays while a radius changes, is used again.
class DeformedChart
{
public:
  /// Begins the part of a chart that a rank draws: quads, angles and arrays of the chart. Throws
  /// std::runtime_error for angles that are not finite.
  void Begin(
    vtkImageData* chart, const atlas::TorusGrid& grid, int piece, int pieces, vtkPolyData* output);

  /// Places the points on a donut.
  void PlaceDonut(const atlas::Donut& donut, vtkPolyData* output);

  /// Places the points where `read` says for the distinct rows of the grid.
  void PlaceVectors(const atlas::PointRow& read, vtkPolyData* output);

private:
  /// All that quads and angles depend on.
  struct Part
  {
    int columns = 0;
    int rows = 0;
    int piece = 0;
    int pieces = 0;
    std::vector<double> theta1; ///< of the distinct columns and rows
    std::vector<double> theta2;

    bool operator==(const Part& other) const;
  };

  void MakeQuads();
  void CopyArrays(vtkImageData* chart);
  vtkIdType PointCount() const;

  Part Known;
  atlas::TorusGrid Grid;
  vtkIdType FirstRow = 0;
  vtkIdType RowCount = 0; ///< of points
  vtkSmartPointer<vtkCellArray> Quads;
  vtkSmartPointer<vtkFloatArray> Angles1;
  vtkSmartPointer<vtkFloatArray> Angles2;
  vtkSmartPointer<vtkFloatArray> DonutNormals; ///< once they are needed

  vtkImageData* Copied = nullptr; ///< whose arrays were copied; may be gone
  vtkMTimeType CopyTime = 0;
  vtkNew<vtkPointData> OfPoints;
  vtkNew<vtkCellData> OfCells;
  ArrayPool Pool;
};

}
