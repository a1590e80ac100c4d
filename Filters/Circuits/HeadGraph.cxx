#include "HeadGraph.h"

#include "ArrayNames.h"
#include "ListArrays.h"

#include <vtkCellArray.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <cmath>

namespace AttentionAtlas
{

double LineOpacity(double value, double least, double largest)
{
  constexpr double weakest = 0.15;
  return largest > least ? weakest + (1 - weakest) * (value - least) / (largest - least) : 1;
}

atlas::Rgb OnWhite(atlas::Rgb color, double opacity)
{
  for (std::uint8_t& channel : color)
  {
    channel = static_cast<std::uint8_t>(std::lround(255 + opacity * (channel - 255.)));
  }
  return color;
}

void LabelPoints(
  const std::vector<std::string>& names, const std::vector<int>& sides, vtkPolyData* output)
{
  vtkNew<vtkCellArray> vertices;
  for (vtkIdType point = 0; point < output->GetNumberOfPoints(); ++point)
  {
    vertices->InsertNextCell(1, &point);
  }
  output->SetVerts(vertices);
  ListArrays(names, output->GetPointData()).Text(ArrayNames::Token);
  ListArrays(sides, output->GetPointData()).Int(ArrayNames::Side);
}

}
