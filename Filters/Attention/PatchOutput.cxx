#include "PatchOutput.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Index.h"
#include "Pi.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkFloatArray.h>
#include <vtkIdTypeArray.h>
#include <vtkImageData.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace AttentionAtlas
{
namespace
{

using Place = std::array<double, 2>;

/// Where the cells of class tokens are, left of the picture and one below the other.
constexpr double ClassColumn = -1.75;
/// Heights above the picture, so that what is drawn later lies in front.
constexpr double PatchLevel = 0.005;
constexpr double FrameLevel = 0.01;
constexpr double ArrowLevel =
  0.015; ///< of a weight of 0; stronger arrows lie in front of weaker ones
constexpr double MarkLevel = 0.025;
/// Lengths in widths of a patch: half the shafts of arrows of weight 0 and 1, and others.
constexpr double ThinShaft = 0.02;
constexpr double ThickShaft = 0.06;
constexpr double HeadLength = 0.34;
constexpr double Lead = 0.02; ///< of the barbs before the neck
constexpr double Aside =
  0.07; ///< to the right, so that arrows there and back lie beside each other
constexpr double MarkRadius = 0.17;
constexpr int CircleCorners = 24;
/// Where no color is known.
constexpr std::uint8_t Gray = 220;

/// Cells with corners of their own.
class Shapes
{
public:
  void Add(const std::vector<Place>& corners, double level)
  {
    this->Cells->InsertNextCell(static_cast<int>(corners.size()));
    for (const Place& corner : corners)
    {
      this->Cells->InsertCellPoint(this->Points->InsertNextPoint(corner[0], corner[1], level));
    }
  }
  vtkPoints* GetPoints() { return this->Points; }
  vtkCellArray* GetCells() { return this->Cells; }

private:
  vtkNew<vtkPoints> Points;
  vtkNew<vtkCellArray> Cells;
};

/// A rectangle of the size of a patch, or smaller.
std::vector<Place> Rectangle(const ShownPatches& shown, std::int64_t token, double share = 1)
{
  const Place center = shown.Center(token);
  const double x = share / 2;
  const double y = share / 2 * shown.PatchHeight();
  return { { center[0] - x, center[1] - y }, { center[0] + x, center[1] - y },
    { center[0] + x, center[1] + y }, { center[0] - x, center[1] + y } };
}

std::vector<Place> Circle(const Place& center, double radius)
{
  std::vector<Place> corners;
  for (int i = 0; i < CircleCorners; ++i)
  {
    const double angle = 2 * atlas::Pi * i / CircleCorners;
    corners.push_back(
      { center[0] + radius * std::cos(angle), center[1] + radius * std::sin(angle) });
  }
  return corners;
}

/// An arrow as one polygon. A fan of triangles from its first corner fills it, as renderers make
/// it, and each of its edges is one of a triangle that is not thin. `share`: of the thickest shaft.
std::vector<Place> Arrow(const Place& from, const Place& to, double share)
{
  const double x = to[0] - from[0];
  const double y = to[1] - from[1];
  const double length = std::hypot(x, y);
  const Place along = { x / length, y / length };
  const Place right = { along[1], -along[0] };
  const auto at = [&](double forward, double aside)
  {
    return Place{ from[0] + forward * along[0] + (aside + Aside) * right[0],
      from[1] + forward * along[1] + (aside + Aside) * right[1] };
  };
  const double half = ThinShaft + share * (ThickShaft - ThinShaft);
  const double neck = length - std::min(HeadLength, length / 2);
  const double barb = 0.1 + 1.3 * half;
  return { at(neck, -half), at(0, -half), at(0, half), at(neck, half), at(neck + Lead, barb),
    at(length, 0), at(neck + Lead, -barb) };
}

template<class Array, class Rows, class Value>
vtkSmartPointer<Array> AddOf(
  vtkPolyData* output, const char* name, const Rows& rows, const Value& value)
{
  const auto array = MakeArray<Array>(name, rows, value);
  output->GetCellData()->AddArray(array);
  return array;
}

/// The arrays that all cells have: where the attention is of.
template<class Rows>
void AddPlace(const ShownPatches& shown, const Rows& rows, vtkPolyData* output)
{
  const auto constant = [](std::int64_t value)
  { return [value](const auto&) { return static_cast<int>(value); }; };
  AddOf<vtkIntArray>(output, ArrayNames::Layer, rows, constant(shown.options.layer));
  AddOf<vtkIntArray>(output, ArrayNames::Head, rows, constant(shown.options.head));
  AddOf<vtkIntArray>(output, ArrayNames::Sequence, rows, constant(shown.options.sequence));
}

/// The arrays Token Index, Position, Row and Column of tokens.
template<class Rows, class Token>
void AddTokens(
  const ShownPatches& shown, const Rows& rows, const Token& tokenOf, vtkPolyData* output)
{
  const auto index = AddOf<vtkIdTypeArray>(output, ArrayNames::TokenIndex, rows,
    [&](const auto& row) { return static_cast<vtkIdType>(shown.TokenIndex(tokenOf(row))); });
  output->GetCellData()->SetPedigreeIds(index);
  AddOf<vtkIntArray>(output, ArrayNames::Position, rows,
    [&](const auto& row) { return static_cast<int>(tokenOf(row)); });
  AddOf<vtkIntArray>(
    output, ArrayNames::Row, rows, [&](const auto& row) { return shown.grid.row[tokenOf(row)]; });
  AddOf<vtkIntArray>(output, ArrayNames::Column, rows,
    [&](const auto& row) { return shown.grid.column[tokenOf(row)]; });
}

/// The arrays of cells that stand for a query and a key.
void AddLinks(
  const ShownPatches& shown, const std::vector<atlas::AttentionLink>& links, vtkPolyData* output)
{
  using Link = atlas::AttentionLink;
  AddOf<vtkFloatArray>(
    output, ArrayNames::Weight, links, [](const Link& link) { return link.weight; });
  AddOf<vtkIdTypeArray>(output, ArrayNames::Query, links,
    [&](const Link& link) { return static_cast<vtkIdType>(shown.TokenIndex(link.query)); });
  AddOf<vtkIdTypeArray>(output, ArrayNames::Key, links,
    [&](const Link& link) { return static_cast<vtkIdType>(shown.TokenIndex(link.key)); });
  AddPlace(shown, links, output);
}

/// What all outputs of cells end with.
void Finish(const ShownPatches& shown, const char* format, vtkPolyData* output)
{
  CacheRanges(output->GetCellData());
  SetFormat(output, format);
  vtkFieldData* fields = output->GetFieldData();
  AddField(fields, "Sequence", shown.options.sequence);
  AddField(fields, "Layer", shown.options.layer);
  AddField(fields, "Head", shown.options.head);
}

/// What is drawn on the picture is visible on any: cyan to the strongest keys, green around what
/// was chosen.
constexpr std::array<std::uint8_t, 3> KeyMark = { 0, 217, 242 };
constexpr std::array<std::uint8_t, 3> ChosenMark = { 51, 230, 51 };
constexpr const char* MarkLegend = "Marks\n0 217 242 strongest key\n51 230 51 chosen patch";

/// Gives all cells a color, and the legend of these colors.
void AddMarkColor(const std::array<std::uint8_t, 3>& color, vtkPolyData* output)
{
  vtkNew<vtkUnsignedCharArray> colors;
  colors->SetName(ArrayNames::MarkColor);
  colors->SetNumberOfComponents(3);
  for (vtkIdType cell = 0; cell < output->GetNumberOfCells(); ++cell)
  {
    colors->InsertNextTypedTuple(color.data());
  }
  output->GetCellData()->AddArray(colors);
  AddField(output->GetFieldData(), ArrayNames::MarkColorLegend, std::string(MarkLegend));
}

/// The color of each patch, row by row.
std::vector<std::array<std::uint8_t, 3>> PatchColors(const ShownPatches& shown)
{
  const atlas::PatchGrid& grid = shown.grid;
  std::vector<std::array<std::uint8_t, 3>> colors(grid.rows * grid.columns, { Gray, Gray, Gray });
  const atlas::SharedMatrix& mean = shown.recording.tokens.color;
  for (std::size_t i = 0; mean.IsRecorded() && shown.options.sequence >= 0 && i < grid.row.size();
    ++i)
  {
    if (grid.row[i] >= 0)
    {
      const float* color = mean.Row(shown.TokenIndex(static_cast<std::int64_t>(i)));
      std::transform(color, color + 3, colors[grid.row[i] * grid.columns + grid.column[i]].begin(),
        [](float part)
        { return static_cast<std::uint8_t>(std::lround(255 * std::clamp(part, 0.0F, 1.0F))); });
    }
  }
  return colors;
}

}

std::int64_t ShownPatches::TokenIndex(std::int64_t token) const
{
  return this->recording.sequenceOffsets[std::max<std::int64_t>(this->options.sequence, 0)] + token;
}

double ShownPatches::PatchHeight() const
{
  const atlas::RecordedPictures& pictures = this->recording.pictures;
  return pictures.IsEmpty() ? 1
                            : static_cast<double>(pictures.height * this->grid.columns) /
                                static_cast<double>(pictures.width * this->grid.rows);
}

std::array<double, 2> ShownPatches::Center(std::int64_t token) const
{
  if (this->grid.IsPatch(token))
  {
    const std::size_t i = token;
    return { static_cast<double>(this->grid.column[i]), -this->grid.row[i] * this->PatchHeight() };
  }
  const auto& others = this->grid.classTokens;
  const auto number = std::find(others.begin(), others.end(), token) - others.begin();
  return { ClassColumn, -static_cast<double>(number) * this->PatchHeight() };
}

void MakePatches(const ShownPatches& shown, vtkPolyData* output)
{
  Shapes shapes;
  std::vector<std::int64_t> tokens(shown.attention.weights.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
  {
    tokens[i] = static_cast<std::int64_t>(i);
    shapes.Add(Rectangle(shown, tokens[i]), PatchLevel);
  }
  output->SetPoints(shapes.GetPoints());
  output->SetPolys(shapes.GetCells());
  output->GetCellData()->SetScalars(
    MakeArray<vtkFloatArray>(ArrayNames::Weight, shown.attention.weights));
  output->GetCellData()->AddArray(
    MakeArray<vtkFloatArray>(ArrayNames::Heat, shown.attention.weights));
  AddTokens(shown, tokens, [](std::int64_t token) { return token; }, output);
  AddPlace(shown, tokens, output);
  Finish(shown, Formats::PatchAttentionPatches, output);
}

void MakeArrows(const ShownPatches& shown, vtkPolyData* output)
{
  float largest = 1;
  for (const atlas::AttentionLink& arrow : shown.attention.arrows)
  {
    largest = std::max(largest, arrow.weight);
  }
  Shapes shapes;
  for (const atlas::AttentionLink& arrow : shown.attention.arrows)
  {
    const auto share = static_cast<double>(arrow.weight / largest);
    shapes.Add(Arrow(shown.Center(arrow.query), shown.Center(arrow.key), share),
      ArrowLevel + share * (MarkLevel - ArrowLevel) / 2);
  }
  output->SetPoints(shapes.GetPoints());
  output->SetPolys(shapes.GetCells());
  AddLinks(shown, shown.attention.arrows, output);
  AddMarkColor(KeyMark, output);
  Finish(shown, Formats::PatchAttentionArrows, output);
}

void MakeMarks(const ShownPatches& shown, vtkPolyData* output)
{
  using Link = atlas::AttentionLink;
  const std::vector<Link>& marks = shown.attention.marks;
  Shapes shapes;
  for (const Link& mark : marks)
  {
    const bool isSelf = mark.query == mark.key;
    shapes.Add(isSelf ? Circle(shown.Center(mark.query), MarkRadius)
                      : Rectangle(shown, mark.query, 2 * MarkRadius),
      MarkLevel);
  }
  output->SetPoints(shapes.GetPoints());
  output->SetPolys(shapes.GetCells());
  AddLinks(shown, marks, output);
  AddTokens(shown, marks, [](const Link& mark) { return std::int64_t{ mark.query }; }, output);
  AddOf<vtkUnsignedCharArray>(output, ArrayNames::Mark, marks,
    [](const Link& mark) { return static_cast<unsigned char>(mark.query != mark.key); });
  AddMarkColor(KeyMark, output);
  Finish(shown, Formats::PatchAttentionMarks, output);
}

void MakeFrames(const ShownPatches& shown, vtkPolyData* output)
{
  const std::vector<std::int64_t>& chosen = shown.options.tokens;
  const std::vector<std::int64_t> framed =
    chosen.size() < shown.grid.row.size() ? chosen : std::vector<std::int64_t>();
  Shapes shapes;
  for (const std::int64_t token : framed)
  {
    std::vector<Place> corners = Rectangle(shown, token);
    corners.push_back(corners.front());
    shapes.Add(corners, FrameLevel);
  }
  output->SetPoints(shapes.GetPoints());
  output->SetLines(shapes.GetCells());
  AddTokens(shown, framed, [](std::int64_t token) { return token; }, output);
  AddPlace(shown, framed, output);
  AddMarkColor(ChosenMark, output);
  Finish(shown, Formats::PatchAttentionFrames, output);
}

void MakePicture(const ShownPatches& shown, const std::uint8_t* pixels,
  const std::array<int, 2>& size, const std::array<int, 6>& extent, vtkImageData* output)
{
  const std::int64_t width = size[0];
  const std::int64_t height = size[1];
  const atlas::PatchGrid& grid = shown.grid;
  const std::vector<std::array<std::uint8_t, 3>> colors =
    pixels == nullptr ? PatchColors(shown) : std::vector<std::array<std::uint8_t, 3>>();
  output->SetExtent(extent[0], extent[1], extent[2], extent[3], 0, 0);
  vtkNew<vtkUnsignedCharArray> values;
  values->SetName(ArrayNames::PictureColor);
  values->SetNumberOfComponents(3);
  values->SetNumberOfTuples(output->GetNumberOfPoints());
  std::uint8_t* value = values->GetPointer(0);
  for (std::int64_t y = extent[2]; y <= extent[3]; ++y)
  {
    const std::int64_t row = height - 1 - y; // of the picture, from the top
    for (std::int64_t x = extent[0]; x <= extent[1]; ++x, value += 3)
    {
      const std::int64_t patch = row * grid.rows / height * grid.columns + x * grid.columns / width;
      const std::uint8_t* color =
        pixels != nullptr ? pixels + 3 * (row * width + x) : colors[patch].data();
      std::copy_n(color, 3, value);
    }
  }
  // The middle of each pixel, of which a patch has some; that of the first patch is at 0, 0.
  const double step = static_cast<double>(grid.columns) / static_cast<double>(width);
  const double tall = shown.PatchHeight();
  const double rise = tall * static_cast<double>(grid.rows) / static_cast<double>(height);
  output->SetSpacing(step, rise, 1);
  output->SetOrigin((step - 1) / 2, tall / 2 - rise * (static_cast<double>(height) - 0.5), 0);
  output->GetPointData()->SetScalars(values);
  CacheRanges(output->GetPointData());
  SetFormat(output, Formats::PatchAttentionPicture);
}

}
