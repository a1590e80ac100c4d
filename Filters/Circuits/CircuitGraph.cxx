#include "CircuitGraph.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/NamedValues.h"
#include "Drawing/ColorLegend.h"
#include "HeadGraph.h"
#include "ListArrays.h"
#include "ModelConversion.h"
#include "ModelSizes.h"
#include "RecordingConversion.h"
#include "Signs.h"
#include "TitleFields.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace Names = AttentionAtlas::ArrayNames;

namespace AttentionAtlas
{
namespace
{

using atlas::CircuitEdge;
using atlas::CircuitNode;
using atlas::CircuitNodeKind;

/// A number from 1 to 100 000, as files of circuits have; else 0.
std::int64_t FieldNumber(vtkFieldData* fields, const char* name)
{
  vtkDataArray* array = fields->GetArray(name);
  const double value =
    array != nullptr && array->GetNumberOfValues() == 1 ? array->GetComponent(0, 0) : 0;
  constexpr double most = 100'000;
  return value >= 1 && value <= most ? static_cast<std::int64_t>(value) : 0;
}

/// Whether there is a number for each point or cell.
bool HasNumbers(vtkAbstractArray* array, vtkIdType count)
{
  return array != nullptr && array->GetNumberOfComponents() == 1 &&
         array->GetNumberOfTuples() == count;
}

}

CircuitGraph::CircuitGraph(atlas::CircuitShape shape)
  : Shape(std::move(shape))
  , Nodes(atlas::CircuitNodes(this->Shape))
{
}

std::string CircuitGraph::EdgeName(const CircuitEdge& edge) const
{
  return NameOf(this->Nodes[edge.from]) + " to " + NameOf(this->Nodes[edge.to]) +
         (edge.input == atlas::EdgeInput::Stream
             ? ""
             : " (" + atlas::NameOf(atlas::EdgeInputNames, edge.input) + ")");
}

void CircuitGraph::AddNodes(const std::vector<std::int32_t>& nodes, vtkFieldData* data) const
{
  ListArrays(nodes, data)
    .Text(Names::Node, [this](std::int32_t i) { return NameOf(this->Nodes[i]); })
    .Int(Names::Layer, [this](std::int32_t i) { return this->Nodes[i].layer; })
    .Int(Names::Head, [this](std::int32_t i) { return this->Nodes[i].head; });
}

void CircuitGraph::AddEdges(const std::vector<CircuitEdge>& edges, vtkFieldData* data) const
{
  const auto from = [this](const CircuitEdge& edge) { return this->Nodes[edge.from]; };
  const auto to = [this](const CircuitEdge& edge) { return this->Nodes[edge.to]; };
  ListArrays(edges, data)
    .Text(Names::From, [&](const CircuitEdge& edge) { return NameOf(from(edge)); })
    .Text(Names::To, [&](const CircuitEdge& edge) { return NameOf(to(edge)); })
    .Text(Names::Input,
      [](const CircuitEdge& edge) { return atlas::NameOf(atlas::EdgeInputNames, edge.input); })
    .Int(Names::FromLayer, [&](const CircuitEdge& edge) { return from(edge).layer; })
    .Int(Names::FromHead, [&](const CircuitEdge& edge) { return from(edge).head; })
    .Int(Names::ToLayer, [&](const CircuitEdge& edge) { return to(edge).layer; })
    .Int(Names::ToHead, [&](const CircuitEdge& edge) { return to(edge).head; })
    .Double(Names::Effect, &CircuitEdge::effect);
}

void CircuitGraph::MakePoints(const std::vector<std::int32_t>& inCircuit, vtkPolyData* output) const
{
  const double middle = static_cast<double>(this->Shape.heads - 1) / 2;
  const double mlpHeight = this->Shape.mlps == atlas::CircuitMlps::AfterHeads ? 0.5 : 0;
  vtkNew<vtkPoints> points;
  for (const CircuitNode& node : this->Nodes)
  {
    const bool isMlp = node.kind == CircuitNodeKind::Mlp;
    const double across = node.kind == CircuitNodeKind::Head ? node.head
                          : isMlp ? static_cast<double>(this->Shape.heads)
                                  : middle;
    points->InsertNextPoint(across, node.layer + (isMlp ? mlpHeight : 0), 0);
  }
  output->SetPoints(points);
  std::vector<std::int32_t> all(this->Nodes.size());
  std::iota(all.begin(), all.end(), 0);
  this->AddNodes(all, output->GetPointData());
  std::vector<bool> isIn(this->Nodes.size());
  for (const std::int32_t i : inCircuit)
  {
    isIn[i] = true;
  }
  ListArrays(all, output->GetPointData())
    .Int(Names::InCircuit, [&](std::int32_t i) { return isIn[i]; });
  vtkFieldData* fields = output->GetFieldData();
  AddField(fields, ArchitectureField, this->Shape.architecture);
  AddField(fields, LayersField, this->Shape.layers);
  AddField(fields, HeadsField, this->Shape.heads);
  AddField(fields, Names::Mlps, atlas::NameOf(atlas::CircuitMlpNames, this->Shape.mlps));
}

void CircuitGraph::MakeLines(
  std::vector<CircuitEdge> edges, std::size_t all, vtkPolyData* output) const
{
  std::reverse(edges.begin(), edges.end());
  vtkNew<vtkCellArray> cells;
  for (const CircuitEdge& edge : edges)
  {
    cells->InsertNextCell({ edge.from, edge.to });
  }
  output->SetLines(cells);
  vtkCellData* data = output->GetCellData();
  this->AddEdges(edges, data);
  const auto opacity = [&](const CircuitEdge& edge)
  {
    return LineOpacity(
      std::abs(edge.effect), std::abs(edges.front().effect), std::abs(edges.back().effect));
  };
  ListArrays(edges, data)
    .Int(Names::Layer, [this](const CircuitEdge& edge) { return this->Nodes[edge.to].layer; })
    .Int(Names::Head, [this](const CircuitEdge& edge) { return this->Nodes[edge.to].head; })
    .Text(Names::HeadName, [this](const CircuitEdge& edge) { return this->EdgeName(edge); })
    .Float(Names::Opacity, opacity)
    .Tuples(Names::CompositionColor,
      [&](const CircuitEdge& edge)
      {
        const atlas::Rgb color = atlas::ClassColor(static_cast<int>(edge.input));
        const auto alpha = static_cast<unsigned char>(std::lround(255 * opacity(edge)));
        return std::array<unsigned char, 4>{ color[0], color[1], color[2], alpha };
      });
  vtkFieldData* fields = output->GetFieldData();
  AddField(fields, Names::LinesLeftOut, static_cast<std::int64_t>(all - edges.size()));
  AddListed(fields, edges.size(), all, "edges");
  const std::string points = "A point is a head (layer.head), an MLP, the embedding or the logits.";
  if (edges.empty())
  {
    AddSigns(fields, points);
    return;
  }
  AddSigns(fields, points +
                     " A line goes up to what reads it; the wider, the more it changes the logit "
                     "difference, up or down; the widest: " +
                     ShortNumber(edges.back().effect) + ".");
  atlas::ColorLegend legend("Read by");
  const std::array<const char*, 4> meanings = { "queries", "keys", "values",
    "an MLP or the logits" };
  for (std::size_t i = 0; i < meanings.size(); ++i)
  {
    if (std::any_of(edges.begin(), edges.end(),
          [i](const CircuitEdge& edge) { return static_cast<std::size_t>(edge.input) == i; }))
    {
      legend.Add(atlas::ClassColor(static_cast<int>(i)), meanings.at(i));
    }
  }
  AddField(fields, Names::CompositionColorLegend, legend.Text());
}

void CircuitGraph::MakeLabels(vtkPolyData* output) const
{
  std::vector<std::string> names;
  std::vector<int> sides;
  for (const CircuitNode& node : this->Nodes)
  {
    names.push_back(
      node.kind == CircuitNodeKind::Head ? HeadNameOf(node.layer, node.head) : NameOf(node));
    sides.push_back(node.kind == CircuitNodeKind::Embedding ? BelowSide
                    : node.kind == CircuitNodeKind::Logits  ? AboveSide
                                                            : UpperRightSide);
  }
  LabelPoints(names, sides, output);
}

atlas::Circuit ToCircuit(vtkPolyData* graph)
{
  vtkFieldData* fields = graph->GetFieldData();
  atlas::CircuitShape shape;
  shape.architecture = FieldText(fields, ArchitectureField);
  shape.layers = FieldNumber(fields, LayersField);
  shape.heads = FieldNumber(fields, HeadsField);
  const auto* mlps = atlas::FindNamed(atlas::CircuitMlpNames, FieldText(fields, Names::Mlps));
  vtkDataArray* isIn = graph->GetPointData()->GetArray(Names::InCircuit);
  vtkDataArray* effects = graph->GetCellData()->GetArray(Names::Effect);
  auto* inputs = vtkStringArray::SafeDownCast(graph->GetCellData()->GetAbstractArray(Names::Input));
  const vtkIdType lines = graph->GetNumberOfLines();
  const bool hasLines =
    HasNumbers(effects, lines) && HasNumbers(inputs, lines) && graph->GetNumberOfCells() == lines;
  atlas::ThrowIf<atlas::OptionError>(mlps == nullptr || shape.layers < 1 || shape.heads < 1 ||
                                       !HasNumbers(isIn, graph->GetNumberOfPoints()) ||
                                       (lines > 0 && !hasLines),
    "input: expected the graph of Attribution Patching or Circuit Reader, found another dataset.");
  shape.mlps = mlps->value;
  atlas::ThrowIf<atlas::OptionError>(
    graph->GetNumberOfPoints() != shape.NodesBefore(shape.layers) + 1,
    "input: expected a graph with all points, ", shape.NodesBefore(shape.layers) + 1, ", found ",
    graph->GetNumberOfPoints(), ".");
  std::vector<std::int32_t> nodes;
  for (vtkIdType i = 0; i + 1 < graph->GetNumberOfPoints(); ++i)
  {
    if (isIn->GetTuple1(i) != 0)
    {
      nodes.push_back(static_cast<std::int32_t>(i));
    }
  }
  std::vector<CircuitEdge> edges;
  for (vtkIdType i = 0; i < lines; ++i)
  {
    vtkIdType count = 0;
    const vtkIdType* ends = nullptr;
    graph->GetLines()->GetCellAtId(i, count, ends);
    const auto* input = atlas::FindNamed(atlas::EdgeInputNames, std::string(inputs->GetValue(i)));
    const auto isPoint = [&](vtkIdType end)
    { return end >= 0 && end < graph->GetNumberOfPoints(); };
    atlas::ThrowIf<atlas::OptionError>(
      count != 2 || !isPoint(ends[0]) || !isPoint(ends[1]) || input == nullptr,
      "input: expected lines of two points with an Input, found another at line ", i, ".");
    edges.push_back({ static_cast<std::int32_t>(ends[0]), static_cast<std::int32_t>(ends[1]),
      input->value, effects->GetTuple1(i) });
  }
  // As a file it is checked whole.
  return atlas::ParseCircuit(
    atlas::ToJson(atlas::MakeCircuit(std::move(shape), std::move(nodes), std::move(edges))),
    "input");
}

}
