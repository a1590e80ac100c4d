#pragma once

#include "Recording/Recording.h"

#include <map>
#include <vector>

class vtkImageData;
class vtkPolyData;

namespace AttentionAtlas
{

/// Where a point of a matrix of panels lies.
struct PanelPoint
{
  int row = -1;    ///< of panels, from the top; -1 in a gap
  int column = -1; ///< of panels
  int query = 0;   ///< row in the panel
  int key = 0;     ///< column in the panel
};

/// The panels of several heads in an image: a row of panels for each layer.
class MatrixPanels
{
public:
  MatrixPanels() = default;

  /// Panels of keys x queries points. Each layer has `heads` of them, or a single one of all heads
  /// if `heads` is 0. `isSorted`: rows leave space for a title above each panel.
  MatrixPanels(const std::vector<int>& layers, int heads, int keys, int queries, bool isSorted);

  /// All heads by layer, then number.
  const std::vector<atlas::HeadPlace>& Heads() const { return this->Places; }
  int Keys() const { return this->PanelWidth; } ///< points of a panel
  int Queries() const { return this->PanelHeight; }
  int PanelsInRow() const { return this->Columns; }
  int ColumnStep() const; ///< points from one panel to the next
  int RowStep() const;
  int Width() const; ///< points of the image
  int Height() const;

  /// The place of a point, counted from the top left.
  PanelPoint PointAt(int x, int y) const;

  /// The head that a panel shows, as an index of Heads().
  std::size_t HeadAt(int row, int column) const;

  /// Shows the heads of each layer by falling score; those without one, or NaN, are last.
  void Sort(const std::map<atlas::HeadPlace, double>& scores);

  /// The titles of layers and heads, in an output of a format. `height`: that of a point, whose
  /// width is 1. `room`: what is left free for labels between the titles of layers and the panels,
  /// in points.
  void MakeTitles(
    vtkPolyData* output, const char* format, double height = 1, double room = 0) const;

private:
  std::vector<atlas::HeadPlace> Places;
  std::vector<std::size_t> Order; ///< of panels: indices of Places
  std::vector<int> Layers;
  int Columns = 0;
  int PanelWidth = 0;
  int PanelHeight = 0;
  bool Sorted = false;
};

}
