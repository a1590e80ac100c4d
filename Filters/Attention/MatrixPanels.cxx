#include "MatrixPanels.h"

#include "PanelTitles.h"

#include <vtkPolyData.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace AttentionAtlas
{
namespace
{

/// The space beside panels of `size` points: a part of them, at least 1.
int GapOf(int size, int parts)
{
  return std::max(size / parts, 1);
}

}

MatrixPanels::MatrixPanels(
  const std::vector<int>& layers, int heads, int keys, int queries, bool isSorted)
  : Layers(layers)
  , Columns(std::max(heads, 1))
  , PanelWidth(keys)
  , PanelHeight(queries)
  , Sorted(isSorted)
{
  for (const int layer : layers)
  {
    for (int head = 0; head < this->Columns; ++head)
    {
      this->Places.push_back({ layer, heads == 0 ? static_cast<int>(atlas::AllHeads) : head });
    }
  }
  this->Order.resize(this->Places.size());
  std::iota(this->Order.begin(), this->Order.end(), std::size_t{ 0 });
}

int MatrixPanels::ColumnStep() const
{
  return this->PanelWidth + GapOf(this->PanelWidth, 16);
}

int MatrixPanels::RowStep() const
{
  return this->PanelHeight + GapOf(this->PanelHeight, this->Sorted ? 4 : 16);
}

int MatrixPanels::Width() const
{
  return this->Places.empty() ? 0 : (this->Columns - 1) * this->ColumnStep() + this->PanelWidth;
}

int MatrixPanels::Height() const
{
  const auto rows = static_cast<int>(this->Layers.size());
  return rows == 0 ? 0 : (rows - 1) * this->RowStep() + this->PanelHeight;
}

PanelPoint MatrixPanels::PointAt(int x, int y) const
{
  PanelPoint point;
  point.query = y % this->RowStep();
  point.key = x % this->ColumnStep();
  if (point.query < this->PanelHeight && point.key < this->PanelWidth)
  {
    point.row = y / this->RowStep();
    point.column = x / this->ColumnStep();
  }
  return point;
}

std::size_t MatrixPanels::HeadAt(int row, int column) const
{
  return this->Order[row * this->Columns + column];
}

void MatrixPanels::Sort(const std::map<atlas::HeadPlace, double>& scores)
{
  const auto scoreOf = [&](std::size_t head)
  {
    const auto found = scores.find(this->Places[head]);
    return found == scores.end() || std::isnan(found->second)
             ? -std::numeric_limits<double>::infinity()
             : found->second;
  };
  for (auto row = this->Order.begin(); row != this->Order.end(); row += this->Columns)
  {
    std::sort(row, row + this->Columns, [&](std::size_t a, std::size_t b)
      { return std::pair(-scoreOf(a), a) < std::pair(-scoreOf(b), b); });
  }
}

void MatrixPanels::MakeTitles(
  vtkPolyData* output, const char* format, double height, double room) const
{
  const int gap = this->RowStep() - this->PanelHeight;
  const double above = 0.25 * gap + 1;
  const bool isOfHeads = !this->Places.empty() && this->Places[0].head != atlas::AllHeads;
  PanelTitles titles;
  for (std::size_t row = 0; row < this->Layers.size(); ++row)
  {
    const double top = -static_cast<double>(row) * this->RowStep();
    titles.AddToTheLeft(-0.5 - above - room, height * (top - 0.5 * this->PanelHeight),
      "Layer " + std::to_string(this->Layers[row]));
    for (int column = 0; isOfHeads && (row == 0 || this->Sorted) && column < this->Columns;
      ++column)
    {
      const std::size_t head = this->HeadAt(static_cast<int>(row), column);
      titles.Add(static_cast<double>(column) * this->ColumnStep() - 0.5, height * (top + above),
        "Head " + std::to_string(this->Places[head].head));
    }
  }
  titles.MoveTo(output, format);
}

}
