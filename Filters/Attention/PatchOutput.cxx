#include "PatchOutput.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "Base/Pi.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "MarkLegend.h"
#include "Shapes.h"
#include "Signs.h"
#include "TitleFields.h"

#include <vtkImageData.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>

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
constexpr double CellLevel = 0.03;
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
/// Between pictures.
constexpr std::uint8_t White = 255;

/// A rectangle of the size of a patch, or smaller.
std::vector<Place> Rectangle(const ShownPatches& shown, std::int64_t token, double share = 1)
{
  const Place center = shown.Center(token);
  const double x = share / 2;
  const double y = share / 2 * shown.patchHeight;
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

/// The arrays that all cells have: where the attention is of.
template<class Rows>
void AddPlace(const ShownPatches& shown, const Rows& rows, vtkPolyData* output)
{
  const auto constant = [](std::int64_t value) { return [value](const auto&) { return value; }; };
  ListArrays(rows, output->GetCellData())
    .Int(ArrayNames::Layer, constant(shown.options.layer))
    .Int(ArrayNames::Head, constant(shown.options.head))
    .Int(ArrayNames::Sequence, constant(shown.options.sequence));
}

/// The arrays Token Index, Position, Row and Column of tokens.
template<class Rows, class Token>
void AddTokens(
  const ShownPatches& shown, const Rows& rows, const Token& tokenOf, vtkPolyData* output)
{
  vtkCellData* data = output->GetCellData();
  const ListArrays arrays(rows, data);
  arrays.Id(ArrayNames::TokenIndex, [&](const auto& row) { return shown.TokenIndex(tokenOf(row)); })
    .Int(ArrayNames::Position, tokenOf)
    .Int(ArrayNames::Row, [&](const auto& row) { return shown.grid.row[tokenOf(row)]; })
    .Int(ArrayNames::Column, [&](const auto& row) { return shown.grid.column[tokenOf(row)]; });
  data->SetPedigreeIds(data->GetAbstractArray(ArrayNames::TokenIndex));
  if (shown.grid.IsAmongWords())
  {
    arrays.Int(
      ArrayNames::Picture, [&](const auto& row) { return shown.grid.picture[tokenOf(row)]; });
  }
}

/// The arrays of cells that stand for a query and a key.
void AddLinks(
  const ShownPatches& shown, const std::vector<atlas::AttentionLink>& links, vtkPolyData* output)
{
  using Link = atlas::AttentionLink;
  ListArrays(links, output->GetCellData())
    .Float(ArrayNames::Weight, &Link::weight)
    .Id(ArrayNames::Query, [&](const Link& link) { return shown.TokenIndex(link.query); })
    .Id(ArrayNames::Key, [&](const Link& link) { return shown.TokenIndex(link.key); });
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
  if (shown.grid.IsAmongWords() && shown.IsOfOneHead())
  {
    AddField(fields, ArrayNames::WeightOnWords, shown.attention.onWords);
  }
}

/// What is drawn on the picture is visible on any: cyan to the strongest keys, green around what
/// was chosen. What the heat does not show, the arrows and marks of other queries, is gray.
constexpr atlas::Rgb KeyMark = { 0, 217, 242 };
constexpr atlas::Rgb ChosenMark = { 51, 230, 51 };
constexpr atlas::Rgb OtherMark = { 150, 150, 150 };

/// Of pictures among words: how much of the attention goes to words, which have no cells.
std::string ShareOfWords(const ShownPatches& shown)
{
  const bool isShare = shown.options.direction == atlas::PatchDirection::From &&
                       shown.options.quantity != atlas::AttentionQuantity::NormWeighted;
  return shown.grid.IsAmongWords() && isShare
           ? " " + std::to_string(std::lround(100 * shown.attention.onWords)) + "% goes to words."
           : "";
}

/// Whether the heat shows a link: from what was chosen or, of what attends to it, to it.
bool IsInHeat(const ShownPatches& shown, const atlas::AttentionLink& link)
{
  const std::vector<std::int64_t>& chosen = shown.options.tokens;
  const bool isFrom = shown.options.direction == atlas::PatchDirection::From;
  return std::binary_search(chosen.begin(), chosen.end(), isFrom ? link.query : link.key);
}

void AddMarkColors(
  const ShownPatches& shown, const std::vector<atlas::AttentionLink>& links, vtkPolyData* output)
{
  ListArrays(links, output->GetCellData())
    .Tuples(ArrayNames::MarkColor, [&shown](const atlas::AttentionLink& link)
      { return IsInHeat(shown, link) ? KeyMark : OtherMark; });
}

/// What squares, arrows and marks mean.
std::string SignsOf(const ShownPatches& shown)
{
  const bool isFrom = shown.options.direction == atlas::PatchDirection::From;
  const atlas::PatchGrid& grid = shown.grid;
  const std::vector<std::int64_t>& chosen = shown.options.tokens;
  const bool isPatch = chosen.size() == 1 && !grid.IsWord(chosen[0]);
  std::string what = chosen.size() == grid.row.size() ? "all patches"
                     : chosen.size() > 1              ? "the chosen tokens"
                     : isPatch ? "the patch in row " + std::to_string(grid.row[chosen[0]]) +
                                   ", column " + std::to_string(grid.column[chosen[0]])
                     : grid.IsAmongWords() ? "the chosen word"
                                           : "the class token";
  std::string signs = std::string("A square: the attention ") +
                      (isFrom ? "of " + what + " to its patch." : "of its patch to " + what + ".") +
                      ShareOfWords(shown);
  if (!grid.IsAmongWords() && !grid.classTokens.empty())
  {
    signs += " Left of the picture: the class token.";
  }
  const std::string least = ", of at least " + ShortNumber(shown.options.threshold) + ".";
  if (!shown.attention.arrows.empty())
  {
    signs += shown.options.arrows == atlas::PatchArrows::Strongest
               ? " An arrow: from a token to its own strongest key" + least
               : " An arrow: from a token to a key" + least;
  }
  const auto isSelf = [](const atlas::AttentionLink& mark) { return mark.query == mark.key; };
  const std::vector<atlas::AttentionLink>& marks = shown.attention.marks;
  signs += std::any_of(marks.begin(), marks.end(), isSelf)
             ? " A disc: a patch that attends most to itself."
             : "";
  signs += !std::all_of(marks.begin(), marks.end(), isSelf)
             ? std::string(" A small square: one that attends most to a ") +
                 (grid.IsAmongWords() ? "word." : "class token.")
             : "";
  return signs;
}

/// The color of each patch of a picture, row by row.
std::vector<std::array<std::uint8_t, 3>> PatchColors(
  const ShownPatches& shown, const CanvasPart& part)
{
  const atlas::PatchGrid& grid = shown.grid;
  std::vector<std::array<std::uint8_t, 3>> colors(part.rows * part.columns, { Gray, Gray, Gray });
  const atlas::SharedMatrix& mean = shown.recording.tokens.color;
  for (std::size_t i = 0; mean.IsRecorded() && shown.options.sequence >= 0 && i < grid.row.size();
    ++i)
  {
    if (grid.row[i] >= 0 && (part.number < 0 || grid.picture[i] == part.number))
    {
      const float* color = mean.Row(shown.TokenIndex(static_cast<std::int64_t>(i)));
      std::transform(color, color + 3, colors[grid.row[i] * part.columns + grid.column[i]].begin(),
        [](float channel)
        { return static_cast<std::uint8_t>(std::lround(255 * std::clamp(channel, 0.0F, 1.0F))); });
    }
  }
  return colors;
}

}

std::int64_t ShownPatches::TokenIndex(std::int64_t token) const
{
  return this->recording.sequenceOffsets[std::max<std::int64_t>(this->options.sequence, 0)] + token;
}

std::array<double, 2> ShownPatches::Center(std::int64_t token) const
{
  if (this->grid.IsPatch(token))
  {
    const std::size_t i = token;
    return { static_cast<double>(this->grid.Column(token)),
      -this->grid.row[i] * this->patchHeight };
  }
  const auto& others = this->grid.classTokens;
  const auto number = std::find(others.begin(), others.end(), token) - others.begin();
  return { ClassColumn, -static_cast<double>(number) * this->patchHeight };
}

void MakePatches(const ShownPatches& shown, vtkPolyData* output)
{
  Shapes shapes;
  const std::vector<std::int64_t>& tokens = shown.tokens;
  for (const std::int64_t token : tokens)
  {
    shapes.Add(Rectangle(shown, token, shown.heatSide), PatchLevel);
  }
  shapes.MoveToPolys(output);
  const auto weightOf = [&](std::int64_t token) { return shown.attention.weights[token]; };
  output->GetCellData()->SetScalars(MakeArray<vtkFloatArray>(ArrayNames::Weight, tokens, weightOf));
  ListArrays(tokens, output->GetCellData()).Float(ArrayNames::Heat, weightOf);
  AddTokens(shown, tokens, [](std::int64_t token) { return token; }, output);
  AddPlace(shown, tokens, output);
  AddSigns(output->GetFieldData(), SignsOf(shown));
  AddArrayTitle(output->GetFieldData(), ArrayNames::Heat, shown.options.quantity);
  Finish(shown, Formats::PatchAttentionPatches, output);
}

void MakePatchesOfHeads(const ShownPatches& shown, const PatchPanels& heads,
  const std::vector<std::int64_t>& others, vtkPolyData* output)
{
  struct Cell
  {
    std::size_t head;
    std::int64_t token;
  };
  const std::vector<atlas::HeadPlace>& places = heads.panels.Heads();
  std::vector<float> largest(places.size(), 0);
  std::vector<Cell> cells;
  for (std::size_t head = 0; head < places.size(); ++head)
  {
    for (const std::int64_t token : shown.tokens)
    {
      if (shown.grid.IsPatch(token))
      {
        cells.push_back({ head, token });
        largest[head] = std::max(largest[head], heads.weights[head][token]);
      }
    }
  }
  std::transform(others.begin(), others.end(), std::back_inserter(cells),
    [](std::int64_t token) { return Cell{ 0, token }; });
  Shapes shapes;
  const auto columns = static_cast<std::size_t>(heads.panels.PanelsInRow());
  for (const Cell& cell : cells)
  {
    const std::size_t row = cell.head / columns;
    const double x = static_cast<double>(cell.head % columns) * heads.panels.ColumnStep();
    const double y = static_cast<double>(row) * heads.panels.RowStep() * shown.patchHeight;
    std::vector<Place> corners = Rectangle(shown, cell.token, shown.heatSide);
    for (Place& corner : corners)
    {
      corner = { corner[0] + x, corner[1] - y };
    }
    shapes.Add(corners, PatchLevel);
  }
  shapes.MoveToPolys(output);
  const auto weightOf = [&](const Cell& cell) { return heads.weights[cell.head][cell.token]; };
  output->GetCellData()->SetScalars(MakeArray<vtkFloatArray>(ArrayNames::Weight, cells, weightOf));
  ListArrays(cells, output->GetCellData())
    .Float(ArrayNames::RelativeHeat, [&](const Cell& cell)
      { return largest[cell.head] > 0 ? weightOf(cell) / largest[cell.head] : 0; });
  AddTokens(shown, cells, [](const Cell& cell) { return cell.token; }, output);
  ListArrays(cells, output->GetCellData())
    .Int(ArrayNames::Layer, [&](const Cell& cell) { return places[cell.head].layer; })
    .Int(ArrayNames::Head, [&](const Cell& cell) { return places[cell.head].head; })
    .Int(ArrayNames::Sequence, [&](const Cell&) { return shown.options.sequence; });
  CacheRanges(output->GetCellData());
  SetFormat(output, Formats::PatchAttentionPatches);
  AddField(output->GetFieldData(), "Sequence", shown.options.sequence);
}

void MakeCells(vtkPolyData* patches, double heatSide, vtkPolyData* output)
{
  output->ShallowCopy(patches);
  output->GetCellData()->SetActiveScalars(nullptr); // they are not to be seen
  Shapes shapes;
  for (vtkIdType cell = 0; cell < patches->GetNumberOfCells(); ++cell)
  {
    std::array<double, 6> bounds;
    patches->GetCellBounds(cell, bounds.data());
    const Place center = { (bounds[0] + bounds[1]) / 2, (bounds[2] + bounds[3]) / 2 };
    const double x = (bounds[1] - bounds[0]) / 2 / heatSide;
    const double y = (bounds[3] - bounds[2]) / 2 / heatSide;
    shapes.AddRectangle(center[0] - x, center[1] - y, center[0] + x, center[1] + y, CellLevel);
  }
  shapes.MoveToPolys(output);
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
  shapes.MoveToPolys(output);
  AddLinks(shown, shown.attention.arrows, output);
  AddMarkColors(shown, shown.attention.arrows, output);
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
  shapes.MoveToPolys(output);
  AddLinks(shown, marks, output);
  AddTokens(shown, marks, [](const Link& mark) { return std::int64_t{ mark.query }; }, output);
  ListArrays(marks, output->GetCellData())
    .Byte(ArrayNames::Mark, [](const Link& mark) { return mark.query != mark.key; });
  AddMarkColors(shown, marks, output);
  Finish(shown, Formats::PatchAttentionMarks, output);
}

void MakeFrames(const ShownPatches& shown, vtkPolyData* output)
{
  const std::vector<std::int64_t>& chosen = shown.options.tokens;
  std::vector<std::int64_t> framed =
    chosen.size() < shown.grid.row.size() ? chosen : std::vector<std::int64_t>();
  if (shown.grid.IsAmongWords()) // words have no place
  {
    framed.erase(std::remove_if(framed.begin(), framed.end(),
                   [&](std::int64_t token) { return !shown.grid.IsPatch(token); }),
      framed.end());
  }
  Shapes shapes;
  for (const std::int64_t token : framed)
  {
    std::vector<Place> corners = Rectangle(shown, token);
    corners.push_back(corners.front());
    shapes.Add(corners, FrameLevel);
  }
  shapes.MoveToLines(output);
  AddTokens(shown, framed, [](std::int64_t token) { return token; }, output);
  AddPlace(shown, framed, output);
  ListArrays(framed, output->GetCellData())
    .Tuples(ArrayNames::MarkColor, [](std::int64_t) { return ChosenMark; });
  Finish(shown, Formats::PatchAttentionFrames, output);
}

void ExplainMarks(const std::vector<vtkPolyData*>& drawn)
{
  AddMarkLegend("Marks",
    { { KeyMark, "strongest key" }, { ChosenMark, "chosen patch" },
      { OtherMark, "strongest keys of other patches" } },
    drawn);
}

PatchCanvas FindCanvas(const atlas::Recording& recording, const atlas::PatchGrid& grid,
  std::int64_t sequence, const atlas::RecordedPictures& pictures)
{
  PatchCanvas canvas;
  const atlas::RecordedPictures& own = recording.pictures;
  if (!grid.IsAmongWords())
  {
    const bool isOwn = !own.IsEmpty();
    const std::optional<atlas::ImagePlace> place =
      isOwn ? atlas::ImagePlace{ sequence, 0, 0, own.HeightOf(std::max<std::int64_t>(sequence, 0)),
        own.WidthOf(std::max<std::int64_t>(sequence, 0)) }
            : atlas::FindImage(pictures, recording, sequence);
    CanvasPart part;
    part.rows = grid.rows;
    part.columns = grid.columns;
    part.source = place.value_or(atlas::ImagePlace{ -1, 0, 0, grid.rows, grid.columns });
    part.height = part.source.height;
    part.width = part.source.width;
    canvas.parts.push_back(part);
  }
  for (std::size_t n = 0; n < grid.pictures.size(); ++n)
  {
    const atlas::PatchPicture& picture = grid.pictures[n];
    if (picture.IsShown())
    {
      const bool isKnown = picture.entry < own.count;
      CanvasPart part;
      part.number = static_cast<std::int64_t>(n);
      part.left = picture.left;
      part.rows = picture.rows;
      part.columns = picture.columns;
      part.source = { isKnown ? picture.entry : -1, 0, 0,
        isKnown ? own.HeightOf(picture.entry) : picture.rows,
        isKnown ? own.WidthOf(picture.entry) : picture.columns };
      canvas.parts.push_back(part);
    }
  }
  const CanvasPart& first = canvas.parts.front();
  canvas.patchHeight = static_cast<double>(first.source.height * first.columns) /
                       static_cast<double>(first.source.width * first.rows);
  std::int64_t width = first.width;
  std::int64_t height = first.height;
  if (grid.IsAmongWords())
  {
    // The pixels of a patch: usually those of all pictures, otherwise the most.
    std::int64_t tall = 1;
    std::int64_t wide = 1;
    for (const CanvasPart& part : canvas.parts)
    {
      tall = std::max(tall, (part.source.height + part.rows - 1) / part.rows);
      wide = std::max(wide, (part.source.width + part.columns - 1) / part.columns);
    }
    constexpr std::int64_t most = atlas::MaximumPictureSide * atlas::MaximumPictureSide;
    if (tall > most / grid.rows / wide / grid.columns)
    {
      tall = wide = 1;
    }
    for (CanvasPart& part : canvas.parts)
    {
      part.x = part.left * wide;
      part.height = part.rows * tall;
      part.width = part.columns * wide;
    }
    width = grid.columns * wide;
    height = grid.rows * tall;
  }
  for (CanvasPart& part : canvas.parts)
  {
    const bool isTile = part.source.entry >= 0 && own.IsEmpty();
    part.sourceWidth = isTile ? pictures.WidthOf(part.source.entry) : part.source.width;
  }
  canvas.size = { static_cast<int>(width), static_cast<int>(height) };
  canvas.rows = grid.rows;
  canvas.columns = grid.columns;
  return canvas;
}

PatchCanvas RepeatCanvas(const PatchCanvas& canvas, const MatrixPanels& panels)
{
  PatchCanvas repeated;
  repeated.patchHeight = canvas.patchHeight;
  repeated.rows = panels.Height();
  repeated.columns = panels.Width();
  // The pixels of a patch, and of all patches.
  const auto pixelsOf = [](std::int64_t pixels, std::int64_t patches, std::int64_t all)
  {
    const std::int64_t own = (pixels + patches - 1) / patches;
    return std::clamp<std::int64_t>(MaximumGridSide / all, 1, own);
  };
  const std::int64_t wide = pixelsOf(canvas.size[0], canvas.columns, repeated.columns);
  const std::int64_t tall = pixelsOf(canvas.size[1], canvas.rows, repeated.rows);
  repeated.size = { static_cast<int>(wide * repeated.columns),
    static_cast<int>(tall * repeated.rows) };
  for (std::size_t head = 0; head < panels.Heads().size(); ++head)
  {
    const auto columns = static_cast<std::size_t>(panels.PanelsInRow());
    for (CanvasPart part : canvas.parts)
    {
      part.x = wide * (part.left + static_cast<std::int64_t>(head % columns) * panels.ColumnStep());
      part.y = tall * static_cast<std::int64_t>(head / columns) * panels.RowStep();
      part.width = wide * part.columns;
      part.height = tall * part.rows;
      repeated.parts.push_back(part);
    }
  }
  return repeated;
}

void MakePicture(const ShownPatches& shown, const PatchCanvas& canvas,
  const std::vector<std::shared_ptr<const std::uint8_t>>& pixels, const std::array<int, 6>& extent,
  vtkImageData* output)
{
  const std::int64_t width = canvas.size[0];
  const std::int64_t height = canvas.size[1];
  output->SetExtent(extent[0], extent[1], extent[2], extent[3], 0, 0);
  const auto values =
    NewTuples<vtkUnsignedCharArray>(ArrayNames::PictureColor, 3, output->GetNumberOfPoints());
  std::fill_n(values->GetPointer(0), values->GetNumberOfValues(), White);
  const std::int64_t line = std::int64_t{ 1 } + extent[1] - extent[0];
  for (std::size_t n = 0; n < canvas.parts.size(); ++n)
  {
    const CanvasPart& part = canvas.parts[n];
    const atlas::ImagePlace& source = part.source;
    const std::uint8_t* all = pixels[n].get();
    const std::vector<std::array<std::uint8_t, 3>> colors =
      all == nullptr ? PatchColors(shown, part) : std::vector<std::array<std::uint8_t, 3>>();
    const std::int64_t begin = std::max<std::int64_t>(part.x, extent[0]);
    const std::int64_t end = std::min<std::int64_t>(part.x + part.width, extent[1] + 1);
    for (std::int64_t y = extent[2]; y <= extent[3] && begin < end; ++y)
    {
      const std::int64_t row = height - 1 - y - part.y; // from the top
      if (row < 0 || row >= part.height)
      {
        continue;
      }
      std::uint8_t* value = values->GetPointer(3 * ((y - extent[2]) * line + begin - extent[0]));
      for (std::int64_t x = begin; x < end; ++x, value += 3)
      {
        const std::int64_t column = x - part.x;
        const std::int64_t patch =
          row * part.rows / part.height * part.columns + column * part.columns / part.width;
        const std::int64_t pixel =
          (source.top + row * source.height / part.height) * part.sourceWidth + source.left +
          column * source.width / part.width;
        std::copy_n(all != nullptr ? all + 3 * pixel : colors[patch].data(), 3, value);
      }
    }
  }
  // The middle of each pixel, of which a patch has some; that of the first patch is at 0, 0.
  const double step = static_cast<double>(canvas.columns) / static_cast<double>(width);
  const double tall = shown.patchHeight;
  const double rise = tall * static_cast<double>(canvas.rows) / static_cast<double>(height);
  output->SetSpacing(step, rise, 1);
  output->SetOrigin((step - 1) / 2, tall / 2 - rise * (static_cast<double>(height) - 0.5), 0);
  output->GetPointData()->SetScalars(values);
  CacheRanges(output->GetPointData());
  SetFormat(output, Formats::PatchAttentionPicture);
}

}
