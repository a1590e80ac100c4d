#include "TokenCells.h"

#include "Analysis/TokenCounts.h"
#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "Base/Index.h"
#include "Drawing/ClassPalette.h"
#include "Drawing/ColorLegend.h"
#include "ListArrays.h"
#include "Recording/RecordedAttention.h"
#include "Shapes.h"
#include "Signs.h"
#include "Text/ScreenText.h"
#include "TokenText.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

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

/// Rectangles and what they stand for.
struct Quads
{
  std::vector<Quad> cells;
  Shapes shapes;

  /// Adds a cell around a point and, if it has attention, the border around it.
  void Add(const Quad& cell, double x, double y)
  {
    constexpr std::array<double, 4> right = { -1, 1, 1, -1 };
    constexpr std::array<double, 4> up = { -1, -1, 1, 1 };
    const bool hasBorder = cell.weight >= LeastBorder;
    const double inner = hasBorder ? 0.5 - (0.5 - InnerSide / 2) * cell.weight : 0.5;
    const auto corner = [&](std::size_t i, double half)
    { return std::array{ x + half * right[i % 4], y + half * up[i % 4] }; };
    this->cells.push_back(cell);
    this->shapes.Add({ corner(0, inner), corner(1, inner), corner(2, inner), corner(3, inner) });
    for (std::size_t side = 0; hasBorder && side < 4; ++side)
    {
      this->cells.push_back(cell);
      this->cells.back().color = { 255, 255, 255 };
      this->cells.back().isBorder = true;
      this->shapes.Add(
        { corner(side, 0.5), corner(side + 1, 0.5), corner(side + 1, inner), corner(side, inner) });
    }
  }
};

void AddArrays(const std::vector<Quad>& quads, vtkCellData* data)
{
  ListArrays(quads, data)
    .Int(Names::Layer, [](const Quad& quad) { return quad.head->layer; })
    .Int(Names::Head, [](const Quad& quad) { return quad.head->head; })
    .Int(Names::Sequence, [](const Quad& quad) { return quad.head->sequence; })
    .Int(Names::Query, &Quad::query)
    .Int(Names::Key, &Quad::key)
    .Int(Names::TokenId, [](const Quad& quad) { return quad.token->id; })
    .Int(Names::Discovery, &Quad::discovery)
    .Text(Names::Token, [](const Quad& quad) { return *quad.text; })
    .Float(Names::Logit, [](const Quad& quad) { return quad.token->logit; })
    .Float(Names::Weight, &Quad::weight)
    .Byte(Names::IsBorder, &Quad::isBorder)
    .Id(Names::TokenIndex, &Quad::row)
    .Tuples(Names::TokenColor, &Quad::color);
  data->SetPedigreeIds(data->GetAbstractArray(Names::TokenIndex));
  data->SetActiveScalars(Names::TokenColor);
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

/// The colors of the first token that appears, of the one in the middle of all, and of the last. Of
/// one head with the texts of these tokens.
std::string LegendOf(const std::vector<Quad>& cells, bool isOfOneHead)
{
  std::int32_t last = 0;
  for (const Quad& cell : cells)
  {
    last = std::max(last, cell.discovery);
  }
  const std::array<const char*, 3> names = { "first", "half of all", "last" };
  atlas::ColorLegend legend("Token, by first appearance");
  for (std::int32_t i = 0; i < 3; ++i)
  {
    std::string text = names.at(i);
    const std::int32_t discovery = i * last / 2;
    const auto cell = std::find_if(cells.begin(), cells.end(),
      [discovery](const Quad& quad) { return quad.discovery == discovery; });
    const bool isNamed = isOfOneHead && last > 1 && cell != cells.end();
    text += isNamed ? ": " + atlas::ScreenLabel(*cell->text) : "";
    legend.Add(RampColor(isNamed ? static_cast<double>(discovery) / last : 0.5 * i), text);
  }
  return legend.Text();
}

/// What the squares are, and the tokens around those of one head.
std::string SignsOf(const TokenImages& images)
{
  if (images.heads.empty())
  {
    return {};
  }
  const bool isOfCells = IsOfCells(images.ShownOf(0).vector);
  std::string signs = images.heads.size() == 1 ? "" : "Each image: a head (layer.head). ";
  signs += "A square: a query (row) and a key (column) of the text. The larger the attention "
           "weight, the smaller the square: 0 fills its cell, 1 takes 30 % of its side. Color: the "
           "token that the head reads from ";
  signs += isOfCells ? "both, so that equal colors are equal tokens." : "the token of the row.";
  std::string around;
  for (const HeadTokens* tokens : images.heads[0])
  {
    const auto add = [&](atlas::HeadVector vector, const char* words)
    { around += tokens->vector == vector ? std::string(around.empty() ? "" : ", ") + words : ""; };
    add(atlas::HeadVector::Query, "queries above");
    add(atlas::HeadVector::Key, "keys at the right");
    add(atlas::HeadVector::Value, "values below");
  }
  return images.heads.size() > 1 || around.empty()
           ? signs
           : signs + " Words: the text at the left; the tokens that are read from " + around + ".";
}

/// A text at a point.
struct Label
{
  double x;
  double y;
  std::string text;
  std::string axis;
  int side; ///< of its point
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
  using Place = std::tuple<double, double, int>;
  const auto add = [&](const std::string& axis, const auto& textOf)
  {
    for (std::int64_t i = 0; i < vectors[0]->length; ++i)
    {
      const auto place = static_cast<double>(i);
      const auto [x, y, side] = axis == "Query"   ? Place{ place, 0.5, 5 }
                                : axis == "Key"   ? Place{ end, -place, 1 }
                                : axis == "Value" ? Place{ place, -end, 4 }
                                                  : Place{ -0.5, -place, 0 };
      labels.push_back(
        { x, y, textOf(i), axis, side, vectors[0]->layer, vectors[0]->head, static_cast<int>(i) });
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
      std::to_string(head.layer) + "." + std::to_string(head.head), "Head", 2, head.layer,
      head.head, -1 });
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
  vtkFieldData* fields = output->GetFieldData();
  AddField(fields, Names::TokenColorLegend, LegendOf(quads.cells, images.heads.size() == 1));
  AddSigns(fields, SignsOf(images));
  if (!images.heads.empty())
  {
    const std::int32_t sequence = images.heads[0][0]->sequence;
    AddSequence(sequence, SequenceText(images.recording, sequence), fields);
  }
  quads.shapes.MoveToPolys(output);
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
  Shapes vertices;
  for (const Label& label : labels)
  {
    vertices.AddVertex(label.x, label.y);
  }
  vertices.MoveToVerts(output);
  ListArrays(labels, output->GetPointData())
    .Text(Names::Token, &Label::text)
    .Text(Names::Axis, &Label::axis)
    .Int(Names::Layer, &Label::layer)
    .Int(Names::Head, &Label::head)
    .Int(Names::Position, &Label::position)
    .Int(Names::Side, &Label::side);
}

double CellBytes()
{
  // Most cells have no border or a thin one; with it they are five rectangles.
  return 2 * (sizeof(Quad) + 12 * sizeof(float) + 6 * sizeof(vtkIdType) + 7 * sizeof(int) +
               sizeof(std::string) + 2 * sizeof(float) + 4);
}

}
