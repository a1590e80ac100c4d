#pragma once

#include "ArrayNames.h"
#include "DataFields.h"
#include "Drawing/ColorLegend.h"

#include <vtkCellData.h>
#include <vtkDataArray.h>
#include <vtkPolyData.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace AttentionAtlas
{

/// Colors of marks, and what each means.
using MarkMeanings = std::vector<std::pair<atlas::Rgb, std::string>>;

/// Gives all of `drawn` the same legend of their cell arrays MarkColor, of the colors that any of
/// their cells has; none if none has one.
inline void AddMarkLegend(
  const std::string& title, const MarkMeanings& meanings, const std::vector<vtkPolyData*>& drawn)
{
  const auto isDrawn = [&drawn](const atlas::Rgb& color)
  {
    for (vtkPolyData* marks : drawn)
    {
      vtkDataArray* colors = marks->GetCellData()->GetArray(ArrayNames::MarkColor);
      for (vtkIdType i = 0; colors != nullptr && i < colors->GetNumberOfTuples(); ++i)
      {
        std::array<double, 3> found;
        colors->GetTuple(i, found.data());
        if (found == std::array<double, 3>{ 1. * color[0], 1. * color[1], 1. * color[2] })
        {
          return true;
        }
      }
    }
    return false;
  };
  atlas::ColorLegend legend(title);
  for (const auto& [color, meaning] : meanings)
  {
    if (isDrawn(color))
    {
      legend.Add(color, meaning);
    }
  }
  if (legend.Text() != title)
  {
    for (vtkPolyData* marks : drawn)
    {
      AddField(marks->GetFieldData(), ArrayNames::MarkColorLegend, legend.Text());
    }
  }
}

}
