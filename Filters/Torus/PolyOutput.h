#pragma once

#include "ClassPalette.h"
#include "DataFields.h"

#include <vtkCellArray.h>
#include <vtkDataSetAttributes.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkType.h>
#include <vtkUnsignedCharArray.h>

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
  auto vertices = vtkSmartPointer<vtkCellArray>::New();
  vertices->AllocateExact(count, count);
  for (vtkIdType i = 0; i < count; ++i)
  {
    vertices->InsertNextCell(1, &i);
  }
  return vertices;
}

}
