#include "SpatialOutput.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "MarkLegend.h"
#include "TokenText.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

namespace AttentionAtlas
{
namespace
{

namespace Names = ArrayNames;
using Vector = std::array<double, 3>;

/// Parts of a line that is bent.
constexpr int BentParts = 24;
/// What is drawn on the mesh is visible on any: cyan to the strongest keys, green for the query.
constexpr atlas::Rgb KeyMark = { 0, 217, 242 };
constexpr atlas::Rgb ChosenMark = { 51, 230, 51 };

/// The part of `up` that is across a line, of length 1.
Vector Across(const Vector& along, double length)
{
  Vector up = { 0, 0, 1 };
  if (std::abs(along[2]) > 0.99 * length)
  {
    up = { 0, 1, 0 };
  }
  double part = 0;
  for (std::size_t axis = 0; axis < 3; ++axis)
  {
    part += up[axis] * along[axis] / (length * length);
  }
  double size = 0;
  for (std::size_t axis = 0; axis < 3; ++axis)
  {
    up[axis] -= part * along[axis];
    size += up[axis] * up[axis];
  }
  size = std::sqrt(size);
  std::for_each(up.begin(), up.end(), [size](double& x) { x /= size; });
  return up;
}

/// The text of a token; of the mean of all sequences, in which they differ, its position.
std::string TextOf(const ShownQuery& shown, std::int64_t token)
{
  return shown.options.sequence < 0 ? std::to_string(token)
                                    : TokenText(shown.recording, shown.TokenIndex(token));
}

/// The cell arrays that all lines and marks have.
void Finish(
  const ShownQuery& shown, const atlas::Rgb& color, const char* format, vtkPolyData* output)
{
  const vtkIdType cells = output->GetNumberOfCells();
  ListArrays(std::vector<atlas::Rgb>(cells, color), output->GetCellData()).Tuples(Names::MarkColor);
  const auto add = [&](const char* name, std::int64_t value)
  {
    const auto array = NewArray<vtkIntArray>(name, cells);
    array->FillValue(static_cast<int>(value));
    output->GetCellData()->AddArray(array);
    AddField(output->GetFieldData(), name, value);
  };
  add(Names::Layer, shown.options.layer);
  add(Names::Head, shown.options.head);
  add(Names::Sequence, shown.options.sequence);
  CacheRanges(output->GetCellData());
  SetFormat(output, format);
}

}

std::int64_t ShownQuery::TokenIndex(std::int64_t token) const
{
  return this->recording.sequenceOffsets[std::max<std::int64_t>(this->options.sequence, 0)] + token;
}

std::int64_t ShownQuery::MainToken() const
{
  return std::max_element(this->options.query.begin(), this->options.query.end(),
    [](const atlas::TokenShare& a, const atlas::TokenShare& b) { return a.share < b.share; })
    ->token;
}

void MakeLines(const ShownQuery& shown, double bend, vtkPolyData* output)
{
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  vtkNew<vtkCellArray> lines;
  std::vector<std::int64_t> ends;
  const bool hasLines =
    shown.center.hasCenter && shown.options.direction != atlas::SpatialDirection::Holds;
  for (std::size_t i = 0; hasLines && i < shown.largest.size(); ++i)
  {
    const atlas::TokenPlaces places = shown.places.Of(shown.largest[i]);
    const Vector& from = shown.center.center;
    const Vector along = { places.center[0] - from[0], places.center[1] - from[1],
      places.center[2] - from[2] };
    const double length = std::hypot(along[0], along[1], along[2]);
    if (!places.hasCenter || length == 0)
    {
      continue;
    }
    const Vector across = Across(along, length);
    const int parts = bend == 0 ? 1 : BentParts;
    lines->InsertNextCell(parts + 1);
    for (int part = 0; part <= parts; ++part)
    {
      const double t = static_cast<double>(part) / parts;
      Vector at = from;
      for (std::size_t axis = 0; axis < 3; ++axis)
      {
        at[axis] += t * along[axis] + 4 * t * (1 - t) * bend * length * across[axis];
      }
      lines->InsertCellPoint(points->InsertNextPoint(at.data()));
    }
    ends.push_back(shown.largest[i]);
  }
  output->SetPoints(points);
  output->SetLines(lines);
  const bool isFrom = shown.options.direction == atlas::SpatialDirection::From;
  const auto query = static_cast<vtkIdType>(shown.TokenIndex(shown.MainToken()));
  output->GetCellData()->SetScalars(MakeArray<vtkFloatArray>(
    Names::Weight, ends, [&](std::int64_t token) { return shown.ofTokens[token]; }));
  for (const bool isQuery : { true, false })
  {
    output->GetCellData()->AddArray(
      MakeArray<vtkIdTypeArray>(isQuery ? Names::Query : Names::Key, ends, [&](std::int64_t token)
        { return isQuery == isFrom ? query : static_cast<vtkIdType>(shown.TokenIndex(token)); }));
  }
  Finish(shown, KeyMark, Formats::SpatialAttentionLines, output);
}

void MakeMark(const ShownQuery& shown, vtkPolyData* output)
{
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  vtkNew<vtkCellArray> vertices;
  if (shown.center.hasCenter)
  {
    vertices->InsertNextCell({ points->InsertNextPoint(shown.center.center.data()) });
  }
  output->SetPoints(points);
  output->SetVerts(vertices);
  const auto index = NewArray<vtkIdTypeArray>(Names::TokenIndex, output->GetNumberOfCells());
  index->FillValue(static_cast<vtkIdType>(shown.TokenIndex(shown.MainToken())));
  output->GetCellData()->AddArray(index);
  const std::string name = "Query " + TextOf(shown, shown.MainToken());
  ListArrays(std::vector<std::string>(points->GetNumberOfPoints(), name), output->GetPointData())
    .Text(Names::Token)
    .Int(
      Names::Kind, [](const std::string&) { return 0; }) // a query, whose label lies on its color
    .Tuples(Names::MarkColor, [](const std::string&) { return ChosenMark; });
  Finish(shown, ChosenMark, Formats::SpatialAttentionMarks, output);
}

void ExplainMarks(vtkPolyData* lines, vtkPolyData* mark)
{
  AddMarkLegend(
    "Marks", { { KeyMark, "strongest key" }, { ChosenMark, "query" } }, { lines, mark });
}

void MakeTokenTable(const ShownQuery& shown, vtkTable* output)
{
  const std::vector<std::int64_t>& tokens = shown.largest;
  std::vector<atlas::TokenPlaces> places(tokens.size());
  std::transform(tokens.begin(), tokens.end(), places.begin(),
    [&](std::int64_t token) { return shown.places.Of(token); });
  ListArrays(tokens, output->GetRowData())
    .Id(Names::TokenIndex, [&](std::int64_t token) { return shown.TokenIndex(token); })
    .Int(Names::Position)
    .Text(Names::Token, [&](std::int64_t token) { return TextOf(shown, token); })
    .Float(Names::Weight, [&](std::int64_t token) { return shown.ofTokens[token]; });
  ListArrays(places, output->GetRowData())
    .Id(Names::Places, &atlas::TokenPlaces::places)
    .Double(Names::PlaceWeight, &atlas::TokenPlaces::weight)
    .Tuples<vtkDoubleArray>(Names::Center,
      [](const atlas::TokenPlaces& of)
      {
        constexpr double nowhere = std::numeric_limits<double>::quiet_NaN();
        return of.hasCenter ? of.center : Vector{ nowhere, nowhere, nowhere };
      });
  SetFormat(output, Formats::SpatialAttentionTokens);
}

}
