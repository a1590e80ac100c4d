#pragma once

#include "ListArrays.h"

#include <vtkCellArray.h>
#include <vtkDataSetAttributes.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkType.h>

#include <numeric>
#include <vector>

#include <Eigen/Core>

/// Helpers of the filters that produce small geometry: conversions to VTK.
namespace AttentionAtlas
{

inline void SetPoints(vtkPoints* points, const std::vector<Eigen::Vector3d>& values)
{
  points->SetDataTypeToDouble();
  points->SetNumberOfPoints(static_cast<vtkIdType>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    points->SetPoint(static_cast<vtkIdType>(i), values[i].data());
  }
}

/// Adds an array of the colors of items and makes it the active scalars.
template<class List, class Color = Itself>
void AddColors(
  vtkDataSetAttributes* attributes, const char* name, const List& items, const Color& colorOf = {})
{
  ListArrays(items, attributes).Tuples(name, colorOf);
  attributes->SetActiveScalars(name);
}

/// A vertex at each of the first `count` points.
inline vtkSmartPointer<vtkCellArray> Vertices(vtkIdType count)
{
  vtkNew<vtkIdTypeArray> points;
  vtkNew<vtkIdTypeArray> offsets;
  points->SetNumberOfValues(count);
  offsets->SetNumberOfValues(count + 1);
  std::iota(points->GetPointer(0), points->GetPointer(0) + count, 0);
  std::iota(offsets->GetPointer(0), offsets->GetPointer(0) + count + 1, 0);
  auto vertices = vtkSmartPointer<vtkCellArray>::New();
  vertices->SetData(offsets, points);
  return vertices;
}

}
