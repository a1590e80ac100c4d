#pragma once

#include "AttentionAtlasDataModule.h"

#include <vtkCellArray.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkStringArray.h>

#include <string>

class vtkPolyData;

namespace AttentionAtlas
{

/// Titles of the panels of a view of many heads, for the representation Token Labels: points with
/// the array Token. A title begins at its point.
class ATTENTIONATLASDATA_EXPORT PanelTitles
{
public:
  PanelTitles();

  void Add(double x, double y, const std::string& text);

  /// Makes them the content of a data object of this format.
  void MoveTo(vtkPolyData* output, const char* format);

private:
  vtkNew<vtkPoints> Points;
  vtkNew<vtkCellArray> Vertices;
  vtkNew<vtkStringArray> Texts;
};

}
