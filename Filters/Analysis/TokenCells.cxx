#include "TokenCells.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "ClassPalette.h"
#include "DataFields.h"
#include "Index.h"
#include "RecordedAttention.h"
#include "TokenCounts.h"
#include "TokenText.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkFloatArray.h>
#include <vtkIdTypeArray.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

namespace AttentionAtlas
{
namespace
{

using atlas::HeadTokens;
using atlas::ToIndex;
namespace Names = ArrayNames;

/// Side of a cell whose attention is 1, and the least attention whose border is drawn.
constexpr double InnerSide = 0.3;
constexpr float LeastBorder = 0.02F;

/// Viridis (van der Walt and Smith 2015, CC0) at equal distances.
constexpr std::array<atlas::Rgb, 9> Ramp = { { { 68, 1, 84 }, { 71, 45, 123 }, { 59, 82, 139 },
  { 44, 114, 142 }, { 33, 145, 140 }, { 39, 173, 129 }, { 92, 200, 99 }, { 170, 220, 50 },
  { 253, 231, 37 } } };

atlas::Rgb RampColor(double share)
{
  const double place = share * (Ramp.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(place), Ramp.size() - 2);
  const double rest = place - static_cast<double>(low);
  atlas::Rgb color;
  for (std::size_t c = 0; c < 3; ++c)
  {
    color[c] =
      static_cast<std::uint8_t>(std::lround((1 - rest) * Ramp[low][c] + rest * Ramp[low + 1][c]));
  }
  return color;
}

/// Where the images of heads are: each fills a square of `length` cells. Cell (0, 0) of the first
/// is at the origin.
struct Grid
{
  std::map<std::int32_t, std::int64_t> rows; ///< of layers
  std::map<std::int32_t, std::int64_t> columns;
  double length = 0;
  double step = 0;

  explicit Grid(const TokenImages& images)
  {
    for (const auto& head : images.heads)
    {
      this->rows.emplace(head[0]->layer, 0);
      this->columns.emplace(head[0]->head, 0);
      this->length = static_cast<double>(head[0]->length);
    }
    for (auto* places : { &this->rows, &this->columns })
    {
      std::int64_t next = 0;
      for (auto& [number, place] : *places)
      {
        place = next++;
      }
    }
    this->step = this->length + std::max(1.5, this->length / 8);
  }

  double X(const HeadTokens& head) const
  {
    return this->step * static_cast<double>(this->columns.at(head.head));
  }
  double Y(const HeadTokens& head) const
  {
    return -this->step * static_cast<double>(this->rows.at(head.layer));
  }
};

/// A rectangle of the image: a cell or a side of its border.
struct Quad
{
  const HeadTokens* head;
  int query;
  int key;
  vtkIdType row; ///< of the query's token in the recording
  const atlas::TokenLogit* token;
  const std::string* text;
  int discovery;
  float weight;
  atlas::Rgb color;
  bool isBorder;
};

/// Rectangles and their corners, four for each.
struct Quads
{
  std::vector<Quad> cells;
  vtkNew<vtkPoints> points;

  /// Adds a cell around a point and, if it has attention, the border around it.
  void Add(const Quad& cell, double x, double y)
  {
    constexpr std::array<double, 4> right = { -1, 1, 1, -1 };
    constexpr std::array<double, 4> up = { -1, -1, 1, 1 };
    const bool hasBorder = cell.weight >= LeastBorder;
    const double inner = hasBorder ? 0.5 - (0.5 - InnerSide / 2) * cell.weight : 0.5;
    const auto corner = [&](std::size_t i, double half)
    { this->points->InsertNextPoint(x + half * right[i % 4], y + half * up[i % 4], 0); };
    this->cells.push_back(cell);
    for (std::size_t i = 0; i < 4; ++i)
    {
      corner(i, inner);
    }
    for (std::size_t side = 0; hasBorder && side < 4; ++side)
    {
      this->cells.push_back(cell);
      this->cells.back().color = { 255, 255, 255 };
      this->cells.back().isBorder = true;
      corner(side, 0.5);
      corner(side + 1, 0.5);
      corner(side + 1, inner);
      corner(side, inner);
    }
  }
};

void AddArrays(const std::vector<Quad>& quads, vtkCellData* data)
{
  const auto add = [&](const char* name, const auto& number)
  { data->AddArray(MakeArray<vtkIntArray>(name, quads, number)); };
  add(Names::Layer, [](const Quad& quad) { return quad.head->layer; });
  add(Names::Head, [](const Quad& quad) { return quad.head->head; });
  add(Names::Sequence, [](const Quad& quad) { return quad.head->sequence; });
  add(Names::Query, [](const Quad& quad) { return quad.query; });
  add(Names::Key, [](const Quad& quad) { return quad.key; });
  add(Names::TokenId, [](const Quad& quad) { return quad.token->id; });
  add(Names::Discovery, [](const Quad& quad) { return quad.discovery; });
  data->AddArray(
    MakeArray<vtkStringArray>(Names::Token, quads, [](const Quad& quad) { return *quad.text; }));
  data->AddArray(MakeArray<vtkFloatArray>(
    Names::Logit, quads, [](const Quad& quad) { return quad.token->logit; }));
  data->AddArray(
    MakeArray<vtkFloatArray>(Names::Weight, quads, [](const Quad& quad) { return quad.weight; }));
  data->AddArray(MakeArray<vtkUnsignedCharArray>(Names::IsBorder, quads,
    [](const Quad& quad) { return static_cast<unsigned char>(quad.isBorder ? 1 : 0); }));
  const auto rows =
    MakeArray<vtkIdTypeArray>(Names::TokenIndex, quads, [](const Quad& quad) { return quad.row; });
  data->AddArray(rows);
  data->SetPedigreeIds(rows);
  vtkNew<vtkUnsignedCharArray> colors;
  colors->SetName(Names::TokenColor);
  colors->SetNumberOfComponents(3);
  colors->SetNumberOfTuples(static_cast<vtkIdType>(quads.size()));
  for (std::size_t i = 0; i < quads.size(); ++i)
  {
    colors->SetTypedTuple(static_cast<vtkIdType>(i), quads[i].color.data());
  }
  data->SetScalars(colors);
}

/// The weights of a head, [length, keys]; all 0 if its attention was not recorded.
std::vector<float> WeightsOf(
  const atlas::Recording& recording, const HeadTokens& head, std::int64_t keys)
{
  std::vector<float> weights(head.length * keys);
  const atlas::RecordedHead& recorded = atlas::FindHead(recording, head.layer, head.head);
  if (recorded.HasAttention() || (recorded.query.IsRecorded() && recorded.key.IsRecorded()))
  {
    atlas::EvaluateAttention(recording, head.sequence, head.layer, head.head,
      atlas::AttentionQuantity::Weights, 0, head.length, weights.data());
  }
  return weights;
}

/// Adds the cells of a head.
void AddImage(const TokenImages& images, const HeadTokens& head, const Grid& grid, Quads& quads)
{
  const std::int64_t keys = images.recording.SequenceLength(head.sequence);
  const std::int64_t first = images.recording.sequenceOffsets[head.sequence];
  const std::vector<float> weights = WeightsOf(images.recording, head, keys);
  const std::vector<std::int32_t> discovery = atlas::DiscoveryOf(head);
  const std::int32_t last = *std::max_element(discovery.begin(), discovery.end());
  std::size_t i = 0;
  for (int query = 0; query < head.length; ++query)
  {
    for (int key = 0; key <= query; ++key, ++i)
    {
      const atlas::TokenLogit& token = head.Best(IsOfCells(head.vector) ? i : ToIndex(query));
      const double share = last > 0 ? static_cast<double>(discovery[i]) / last : 0;
      quads.Add({ &head, query, key, first + query, &token, &images.names.Of(token.id),
                  discovery[i], weights[query * keys + key], RampColor(share), false },
        grid.X(head) + key, grid.Y(head) - query);
    }
  }
}

/// A text at a point.
struct Label
{
  double x;
  double y;
  std::string text;
  std::string axis;
  int layer;
  int head;
  int position;
};

/// The attention tokens of queries, keys and values, and the tokens of the sequence, clockwise from
/// the top.
void AddAxes(const TokenImages& images, std::vector<Label>& labels)
{
  const std::vector<const HeadTokens*>& vectors = images.heads[0];
  const double end = static_cast<double>(vectors[0]->length) - 0.5;
  const std::int64_t first = images.recording.sequenceOffsets[vectors[0]->sequence];
  const auto add = [&](const std::string& axis, const auto& textOf)
  {
    for (std::int64_t i = 0; i < vectors[0]->length; ++i)
    {
      const auto place = static_cast<double>(i);
      const std::array<double, 2> point = axis == "Query"   ? std::array{ place - 0.5, 1.5 }
                                          : axis == "Key"   ? std::array{ end + 0.5, -place }
                                          : axis == "Value" ? std::array{ place - 0.5, -end - 1.5 }
                                                            : std::array{ -0.2 * end - 2, -place };
      labels.push_back({ point[0], point[1], textOf(i), axis, vectors[0]->layer, vectors[0]->head,
        static_cast<int>(i) });
    }
  };
  for (const HeadTokens* tokens : vectors)
  {
    if (tokens->vector == atlas::HeadVector::Query || tokens->vector == atlas::HeadVector::Key ||
        tokens->vector == atlas::HeadVector::Value)
    {
      add(std::string(NameOf(tokens->vector)),
        [&](std::int64_t i) { return images.names.Of(tokens->Best(i).id); });
    }
  }
  add("Input", [&](std::int64_t i) { return TokenText(images.recording, first + i); });
}

/// The numbers of the heads above their images.
void AddHeadNumbers(const TokenImages& images, std::vector<Label>& labels)
{
  const Grid grid(images);
  for (const auto& vectors : images.heads)
  {
    const HeadTokens& head = *vectors[0];
    labels.push_back({ grid.X(head) + 0.45 * grid.length, grid.Y(head) - 0.1 * grid.length,
      std::to_string(head.layer) + "." + std::to_string(head.head), "Head", head.layer, head.head,
      -1 });
  }
}

}

TokenImages::TokenImages(const atlas::Recording& source, const TokenNames& texts,
  const std::vector<atlas::HeadTokens>& tokens)
  : recording(source)
  , names(texts)
{
  const auto first = std::find_if(
    tokens.begin(), tokens.end(), [](const HeadTokens& ofHead) { return ofHead.length > 0; });
  for (const HeadTokens& ofHead : tokens)
  {
    if (first == tokens.end() || ofHead.sequence != first->sequence)
    {
      continue;
    }
    if (this->heads.empty() || this->heads.back()[0]->layer != ofHead.layer ||
        this->heads.back()[0]->head != ofHead.head)
    {
      this->heads.emplace_back();
    }
    this->heads.back().push_back(&ofHead);
  }
}

const atlas::HeadTokens& TokenImages::ShownOf(std::size_t head) const
{
  const auto& vectors = this->heads[head];
  const auto found = std::find_if(vectors.begin(), vectors.end(),
    [](const HeadTokens* tokens) { return IsOfCells(tokens->vector); });
  return found == vectors.end() ? *vectors[0] : **found;
}

void FillCells(const TokenImages& images, vtkPolyData* output)
{
  const Grid grid(images);
  Quads quads;
  for (std::size_t i = 0; i < images.heads.size(); ++i)
  {
    AddImage(images, images.ShownOf(i), grid, quads);
  }
  vtkNew<vtkCellArray> cells;
  for (vtkIdType point = 0; point < quads.points->GetNumberOfPoints(); point += 4)
  {
    cells->InsertNextCell({ point, point + 1, point + 2, point + 3 });
  }
  output->SetPoints(quads.points);
  output->SetPolys(cells);
  AddArrays(quads.cells, output->GetCellData());
  CacheRanges(output->GetCellData());
}

void FillLabels(const TokenImages& images, vtkPolyData* output)
{
  std::vector<Label> labels;
  if (images.heads.size() == 1)
  {
    AddAxes(images, labels);
  }
  else
  {
    AddHeadNumbers(images, labels);
  }
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> vertices;
  for (const Label& label : labels)
  {
    const vtkIdType point = points->InsertNextPoint(label.x, label.y, 0);
    vertices->InsertNextCell(1, &point);
  }
  output->SetPoints(points);
  output->SetVerts(vertices);
  vtkPointData* data = output->GetPointData();
  data->AddArray(
    MakeArray<vtkStringArray>(Names::Token, labels, [](const Label& label) { return label.text; }));
  data->AddArray(
    MakeArray<vtkStringArray>(Names::Axis, labels, [](const Label& label) { return label.axis; }));
  for (const auto& [name, number] : { std::pair(Names::Layer, &Label::layer),
         std::pair(Names::Head, &Label::head), std::pair(Names::Position, &Label::position) })
  {
    data->AddArray(MakeArray<vtkIntArray>(
      name, labels, [member = number](const Label& label) { return label.*member; }));
  }
}

double CellBytes()
{
  // Most cells have no border or a thin one; with it they are five rectangles.
  return 2 * (sizeof(Quad) + 12 * sizeof(float) + 6 * sizeof(vtkIdType) + 7 * sizeof(int) +
               sizeof(std::string) + 2 * sizeof(float) + 4);
}

}
