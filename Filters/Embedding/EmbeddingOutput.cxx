#include "EmbeddingOutput.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "Base/Index.h"
#include "DataFormat.h"
#include "Drawing/ColorLegend.h"
#include "Drawing/TokenPalette.h"
#include "Execution.h"
#include "ListArrays.h"
#include "PanelTitles.h"
#include "TokenText.h"
#include "vtkHeadEmbedding.h"

#include <vtkCellArray.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace AttentionAtlas
{
namespace
{

using atlas::ToIndex;

constexpr std::array<const char*, 3> MethodNames = { "PCA", "TSNE", "UMAP" };

/// Adds an array with a value for each point, still to be set.
template<class Array>
Array* AddArray(const EmbeddedHeads& heads, const char* name, vtkDataSetAttributes* data)
{
  const auto array = NewArray<Array>(name, heads.PointCount());
  data->AddArray(array);
  return array;
}

/// Adds an array with the number or text of the token of each point, which are the same in all
/// heads.
template<class Array, class Value>
void AddOfTokens(
  const EmbeddedHeads& heads, const char* name, const Value& valueOf, vtkDataSetAttributes* data)
{
  auto* array = AddArray<Array>(heads, name, data);
  const auto points = static_cast<vtkIdType>(heads.PointsPerHead());
  ParallelFor(0, array->GetNumberOfValues() / points,
    [&](vtkIdType begin, vtkIdType end)
    {
      for (vtkIdType i = begin * points; i < end * points; ++i)
      {
        array->SetValue(i, valueOf(i % points));
      }
    });
}

/// Adds an array with a number of each head, for all its points, or of each part of them: those of
/// queries and those of keys.
template<class Array, class Value>
void AddOfParts(
  const EmbeddedHeads& heads, const char* name, const Value& valueOf, vtkDataSetAttributes* data)
{
  auto* next = AddArray<Array>(heads, name, data)->GetPointer(0);
  for (const auto& layout : heads.layouts)
  {
    for (const bool isKey : { false, true })
    {
      const std::vector<std::int64_t>& rows = isKey ? heads.rows.keys : heads.rows.queries;
      next = std::fill_n(next, rows.size(), valueOf(*layout, isKey));
    }
  }
}

/// The text of a token. In cross attention a sequence has two, the source and the target.
struct TextOfToken
{
  std::int64_t length;
  bool isTarget; ///< of cross attention
};

TextOfToken TextOf(const atlas::Recording& recording, std::int64_t row)
{
  const std::int64_t sequence = recording.tokens.sequence[row];
  const std::int64_t first = recording.sequenceOffsets[sequence];
  const std::int64_t length = recording.SequenceLength(sequence);
  const std::int64_t source =
    recording.mask == atlas::AttentionMask::Cross ? recording.sourceLengths[sequence] : length;
  return row < first + source ? TextOfToken{ source, false } : TextOfToken{ length - source, true };
}

/// How often each id occurs in the recording; in cross attention in all sources, or in all targets.
class IdCounts
{
public:
  explicit IdCounts(const atlas::Recording& recording)
    : Record(recording)
  {
    for (std::int64_t row = 0; row < recording.tokens.Count(); ++row)
    {
      ++this->Counts[ToIndex(TextOf(recording, row).isTarget)][recording.tokens.id[row]];
    }
  }

  int Of(std::int64_t row) const
  {
    return this->Counts.at(ToIndex(TextOf(this->Record, row).isTarget))
      .at(this->Record.tokens.id[row]);
  }

private:
  const atlas::Recording& Record;
  std::array<std::unordered_map<std::int64_t, int>, 2> Counts; ///< of sources, of targets
};

/// Adds an array of three components for each point, still to be set.
template<class Array>
Array* AddTriples(const EmbeddedHeads& heads, const char* name, vtkDataSetAttributes* data)
{
  const auto array = NewTuples<Array>(name, 3, heads.PointCount());
  data->AddArray(array);
  return array;
}

void AddPatchColors(const EmbeddedHeads& heads, vtkDataSetAttributes* data)
{
  float* next = AddTriples<vtkFloatArray>(heads, ArrayNames::PatchColor, data)->GetPointer(0);
  const std::vector<std::int64_t> rows = heads.rows.All();
  for (std::size_t head = 0; head < heads.layouts.size(); ++head)
  {
    for (const std::int64_t row : rows)
    {
      next = std::copy_n(heads.recording.tokens.color.Row(row), 3, next);
    }
  }
}

/// Adds the colors of TokenColors by relative position, with their legend.
void AddColors(const EmbeddedHeads& heads, vtkPolyData* output)
{
  vtkPointData* data = output->GetPointData();
  const auto* positions =
    vtkFloatArray::SafeDownCast(data->GetArray(ArrayNames::RelativePosition))->GetPointer(0);
  auto* colors = AddTriples<vtkUnsignedCharArray>(heads, ArrayNames::TokenColor, data);
  const auto points = static_cast<vtkIdType>(heads.PointsPerHead());
  const auto queries = static_cast<vtkIdType>(heads.rows.queries.size());
  ParallelFor(0, heads.PointCount() / points,
    [&](vtkIdType begin, vtkIdType end)
    {
      for (vtkIdType i = begin * points; i < end * points; ++i)
      {
        const auto kind = i % points < queries ? atlas::TokenKind::Query : atlas::TokenKind::Key;
        colors->SetTypedTuple(i, atlas::ShadedColor(kind, positions[i]).data());
      }
    });
  atlas::ColorLegend legend("Kind and position");
  for (const auto& [kind, name] :
    { std::pair(atlas::TokenKind::Query, "query"), std::pair(atlas::TokenKind::Key, "key") })
  {
    for (const double share : { 0., 1. })
    {
      legend.Add(atlas::ShadedColor(kind, share),
        std::string(name) + (share > 0 ? ", last token" : ", first token"));
    }
  }
  AddField(output->GetFieldData(), ArrayNames::TokenColorLegend, legend.Text());
}

void AddTokens(const EmbeddedHeads& heads, vtkDataSetAttributes* data)
{
  const atlas::Recording& recording = heads.recording;
  const atlas::RecordedTokens& tokens = recording.tokens;
  const std::vector<std::int64_t> rows = heads.rows.All(); // of the points of each head
  const auto rowOf = [&](std::size_t i) { return rows[i]; };
  const auto add = [&](const char* name, const std::vector<std::int32_t>& list)
  {
    if (!list.empty())
    {
      AddOfTokens<vtkIntArray>(heads, name, [&](std::size_t i) { return list[rowOf(i)]; }, data);
    }
  };
  AddOfTokens<vtkIdTypeArray>(heads, ArrayNames::TokenIndex, rowOf, data);
  add(ArrayNames::Sequence, tokens.sequence);
  add(ArrayNames::Position, tokens.position);
  AddOfTokens<vtkFloatArray>(
    heads, ArrayNames::RelativePosition,
    [&](std::size_t i)
    {
      const std::size_t row = rowOf(i);
      const std::int64_t last = TextOf(recording, rowOf(i)).length - 1;
      return last > 0 ? static_cast<float>(tokens.position[row]) / static_cast<float>(last) : 0.F;
    },
    data);
  if (!tokens.id.empty())
  {
    const IdCounts counts(recording);
    const auto idOf = [&](std::size_t i) { return tokens.id[rowOf(i)]; };
    AddOfTokens<vtkIntArray>(
      heads, ArrayNames::TokenCount, [&](std::size_t i) { return counts.Of(rowOf(i)); }, data);
    AddOfTokens<vtkTypeInt64Array>(heads, ArrayNames::TokenId, idOf, data);
  }
  add(ArrayNames::Segment, tokens.segment);
  add(ArrayNames::Row, tokens.row);
  add(ArrayNames::Column, tokens.column);
  if (tokens.color.IsRecorded())
  {
    AddPatchColors(heads, data);
  }
  std::vector<std::string> texts;
  texts.reserve(rows.size());
  for (const std::int64_t row : rows)
  {
    texts.emplace_back(TokenText(recording, row));
  }
  AddOfTokens<vtkStringArray>(
    heads, ArrayNames::Token, [&](std::size_t i) -> const std::string& { return texts[i]; }, data);
}

void AddNorms(const EmbeddedHeads& heads, vtkDataSetAttributes* data)
{
  float* next = AddArray<vtkFloatArray>(heads, ArrayNames::Norm, data)->GetPointer(0);
  for (const auto& layout : heads.layouts)
  {
    next = std::copy(layout->norms.begin(), layout->norms.end(), next);
  }
}

/// How one axis of a layout is mapped: factor * (coordinate - least) + begin.
struct AxisMap
{
  float least = 0;
  float factor = 1;
  float begin = 0;
};

/// Stretches the axis of a layout from `begin` to begin + 1; its middle if the axis has no extent.
AxisMap Stretched(const float* layout, std::size_t size, int axis, int dimensions, float begin)
{
  float least = layout[axis];
  float largest = least;
  for (std::size_t i = axis; i < size; i += ToIndex(dimensions))
  {
    least = std::min(least, layout[i]);
    largest = std::max(largest, layout[i]);
  }
  const float extent = largest - least;
  return extent > 0 ? AxisMap{ least, 1 / extent, begin } : AxisMap{ least, 0, begin + 0.5F };
}

/// Puts the origin at begin + 0.5, and the largest of all coordinates at a distance of 0.5.
AxisMap Centered(const float* layout, std::size_t size, float begin)
{
  float largest = 0;
  for (std::size_t i = 0; i < size; ++i)
  {
    largest = std::max(largest, std::abs(layout[i]));
  }
  return { 0, largest > 0 ? 0.5F / largest : 0, begin + 0.5F };
}

/// How an axis of a layout is mapped.
AxisMap MapOf(const EmbeddedHeads& heads, const atlas::HeadLayout& layout, int axis, float begin)
{
  const int dimensions = heads.options.dimensions;
  if (axis >= dimensions || !heads.isGrid)
  {
    return {};
  }
  const float* const values = layout.Frame(heads.frame);
  return heads.isCentered ? Centered(values, layout.points.size(), begin)
                          : Stretched(values, layout.points.size(), axis, dimensions, begin);
}

void PlaceHead(const EmbeddedHeads& heads, const atlas::HeadLayout& layout, float* points)
{
  constexpr auto step = static_cast<float>(vtkHeadEmbedding::GridStep);
  const auto row = static_cast<float>(heads.isOneHead ? 0 : layout.place.layer);
  const auto column = static_cast<float>(heads.isOneHead ? 0 : layout.place.head);
  const std::array<float, 3> corner = { step * column, -step * row, 0 };
  const int dimensions = heads.options.dimensions;
  const float* const values = layout.Frame(heads.frame);
  for (int axis = 0; axis < 3; ++axis)
  {
    const AxisMap map = MapOf(heads, layout, axis, corner.at(axis));
    for (std::size_t i = 0; i < heads.PointsPerHead(); ++i)
    {
      const float value = axis < dimensions ? values[i * ToIndex(dimensions) + ToIndex(axis)] : 0;
      points[3 * i + ToIndex(axis)] = map.factor * (value - map.least) + map.begin;
    }
  }
}

}

double BytesPerPoint()
{
  // Coordinates, vertex, Kind, Token Index, Layer, Head, Sequence, Position, Relative Position,
  // Norm, Token Count, TokenId, Segment, Row, Column, Patch Color, Token Color, Token
  return 12 + 16 + 1 + 8 + 4 * 10 + 8 + 12 + 3 + sizeof(std::string);
}

void AddPointArrays(const EmbeddedHeads& heads, vtkPolyData* output)
{
  const vtkIdType count = heads.PointCount();
  vtkNew<vtkCellArray> vertices;
  vertices->AllocateExact(count, count);
  const auto queries = static_cast<vtkIdType>(heads.rows.queries.size());
  const auto keys = static_cast<vtkIdType>(heads.rows.keys.size());
  for (vtkIdType head = 0; head < count; head += queries + keys)
  {
    for (vtkIdType i = 0; i < std::max(queries, keys); ++i)
    {
      for (const bool isKey : { i % 2 == 1, i % 2 == 0 }) // now one first, now the other
      {
        const vtkIdType point = head + (isKey ? queries : 0) + i;
        if (i < (isKey ? keys : queries))
        {
          vertices->InsertNextCell(1, &point);
        }
      }
    }
  }
  output->SetVerts(vertices);
  vtkPointData* data = output->GetPointData();
  AddOfParts<vtkUnsignedCharArray>(
    heads, ArrayNames::Kind,
    [](const atlas::HeadLayout&, bool isKey) { return static_cast<unsigned char>(isKey); }, data);
  AddOfParts<vtkIntArray>(
    heads, ArrayNames::Layer,
    [](const atlas::HeadLayout& layout, bool) { return layout.place.layer; }, data);
  AddOfParts<vtkIntArray>(
    heads, ArrayNames::Head,
    [](const atlas::HeadLayout& layout, bool) { return layout.place.head; }, data);
  AddNorms(heads, data);
  AddTokens(heads, data);
  AddColors(heads, output);
  data->SetPedigreeIds(data->GetAbstractArray(ArrayNames::TokenIndex));
  CacheRanges(data);
  SetFormat(output, Formats::HeadEmbeddingPoints);
}

void PlacePoints(const EmbeddedHeads& heads, vtkPolyData* output)
{
  const vtkIdType count = heads.PointCount();
  vtkNew<vtkFloatArray> coordinates;
  coordinates->SetNumberOfComponents(3);
  coordinates->SetNumberOfTuples(count);
  ParallelFor(0, static_cast<vtkIdType>(heads.layouts.size()),
    [&](vtkIdType begin, vtkIdType end)
    {
      for (vtkIdType i = begin; i < end; ++i)
      {
        PlaceHead(heads, *heads.layouts[i],
          coordinates->GetPointer(3 * i * static_cast<vtkIdType>(heads.PointsPerHead())));
      }
    });
  vtkNew<vtkPoints> points;
  points->SetData(coordinates);
  output->SetPoints(points);
  vtkFieldData* fields = output->GetFieldData();
  AddField(
    fields, "Method", std::string(MethodNames.at(static_cast<std::size_t>(heads.options.method))));
  AddField(fields, "Dimensions", heads.options.dimensions);
  AddField(fields, "Arrangement", std::string(heads.isGrid ? "Grid" : "Overlaid"));
}

void MakeTable(const EmbeddedHeads& heads, vtkTable* output)
{
  using atlas::HeadLayout;
  const ListArrays arrays(heads.layouts, output->GetRowData());
  arrays.Int(ArrayNames::Layer, [](const auto& layout) { return layout->place.layer; })
    .Int(ArrayNames::Head, [](const auto& layout) { return layout->place.head; })
    .Double(ArrayNames::KeyScale, &HeadLayout::scale)
    .Double(ArrayNames::Correlation, &HeadLayout::correlation)
    .Double(ArrayNames::CorrelationBefore, &HeadLayout::correlationBefore)
    .Double(ArrayNames::RankCorrelation, &HeadLayout::rankCorrelation)
    .Double(ArrayNames::QueryNorm, &HeadLayout::queryNorm)
    .Double(ArrayNames::KeyNorm, &HeadLayout::keyNorm);
  if (heads.options.method == atlas::LayoutMethod::TSne)
  {
    arrays.Double(ArrayNames::Divergence, &HeadLayout::divergence)
      .Int(ArrayNames::Iterations, &HeadLayout::iterations);
  }
  if (heads.options.method == atlas::LayoutMethod::Principal)
  {
    arrays.Double(ArrayNames::VarianceExplained, &HeadLayout::varianceExplained);
  }
  arrays.Double(ArrayNames::NeighborsKept, &HeadLayout::neighborsKept);
  SetFormat(output, Formats::HeadEmbeddingHeads);
}

void MakeTitles(const EmbeddedHeads& heads, vtkPolyData* output)
{
  constexpr double step = vtkHeadEmbedding::GridStep;
  std::set<std::int32_t> layers;
  std::set<std::int32_t> columns;
  for (const auto& layout : heads.layouts)
  {
    layers.insert(layout->place.layer);
    columns.insert(layout->place.head);
  }
  PanelTitles titles;
  if (heads.isGrid && heads.layouts.size() > 1)
  {
    for (const std::int32_t head : columns)
    {
      titles.Add(step * head, 1.05 - step * *layers.begin(), "Head " + std::to_string(head));
    }
    for (const std::int32_t layer : layers)
    {
      titles.AddToTheLeft(
        step * *columns.begin() - 0.1, 0.5 - step * layer, "Layer " + std::to_string(layer));
    }
  }
  titles.MoveTo(output, Formats::HeadEmbeddingTitles);
}

}
