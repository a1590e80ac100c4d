#pragma once

#include "ClassPalette.h"
#include "DataFields.h"

#include <vtkCellArray.h>
#include <vtkDataSetAttributes.h>
#include <vtkIdTypeArray.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkType.h>
#include <vtkUnsignedCharArray.h>

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

inline void AddIntegers(
  vtkDataSetAttributes* attributes, const char* name, const std::vector<int>& values)
{
  attributes->AddArray(MakeArray<vtkIntArray>(name, values));
}

/// Adds an array of 3 bytes per tuple and makes it the active scalars.
inline void AddColors(
  vtkDataSetAttributes* attributes, const char* name, const std::vector<atlas::Rgb>& colors)
{
  vtkNew<vtkUnsignedCharArray> array;
  array->SetName(name);
  array->SetNumberOfComponents(3);
  array->SetNumberOfTuples(static_cast<vtkIdType>(colors.size()));
  for (std::size_t i = 0; i < colors.size(); ++i)
  {
    array->SetTypedTuple(static_cast<vtkIdType>(i), colors[i].data());
  }
  attributes->AddArray(array);
  attributes->SetActiveScalars(name);
}

/// Adds the colors of classes.
inline void AddClassColors(
  vtkDataSetAttributes* attributes, const char* name, const std::vector<int>& classes)
{
  std::vector<atlas::Rgb> colors;
  colors.reserve(classes.size());
  for (const int c : classes)
  {
    colors.push_back(atlas::ClassColor(c));
  }
  AddColors(attributes, name, colors);
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
