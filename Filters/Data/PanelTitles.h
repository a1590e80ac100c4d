#pragma once

#include "AttentionAtlasDataModule.h"

#include <vtkCellArray.h>
#include <vtkDoubleArray.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkStringArray.h>
#include <vtkUnsignedCharArray.h>

#include <string>

class vtkPolyData;

namespace AttentionAtlas
{

/// Titles of the panels of a view of many heads, for the representation Token Labels: points with
/// the arrays Token, Side and Radius. A title is to the upper right of its point (Side 2), to the
/// left (0), centered below (4), or where there is room around a disc of this Radius (6), of which
/// its point is the rightmost.
class ATTENTIONATLASDATA_EXPORT PanelTitles
{
public:
  PanelTitles();

  void Add(double x, double y, const std::string& text);
  void AddToTheLeft(double x, double y, const std::string& text);
  void AddBelow(double x, double y, const std::string& text);
  /// The middle and radius are those of a disc, in units of the scene.
  void AddAround(double x, double y, double radius, const std::string& text);

  /// Makes them the content of a data object of this format.
  void MoveTo(vtkPolyData* output, const char* format);

private:
  void Add(double x, double y, const std::string& text, unsigned char side, double radius = 0);

  vtkNew<vtkPoints> Points;
  vtkNew<vtkCellArray> Vertices;
  vtkNew<vtkStringArray> Texts;
  vtkNew<vtkUnsignedCharArray> Sides;
  vtkNew<vtkDoubleArray> Radii;
};

}
