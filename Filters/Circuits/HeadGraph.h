#pragma once

#include "Drawing/ClassPalette.h"

#include <string>
#include <vector>

class vtkPolyData;

/// What graphs of heads share.
namespace AttentionAtlas
{

/// Where labels are, as vtkTokenLabelsRepresentation has it.
inline constexpr int UpperRightSide = 2;
inline constexpr int BelowSide = 4;
inline constexpr int AboveSide = 5;

/// The opacity of a line: 0.15 for the least value, 1 for the largest.
double LineOpacity(double value, double least, double largest);

/// How a color of this opacity looks on white.
atlas::Rgb OnWhite(atlas::Rgb color, double opacity);

/// Makes the points of a dataset vertices with labels: arrays Token and Side.
void LabelPoints(
  const std::vector<std::string>& names, const std::vector<int>& sides, vtkPolyData* output);

}
