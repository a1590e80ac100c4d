#include "vtkAttributionPatching.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Circuits/AttributionPatching.h"
#include "Circuits/HeadComposition.h"
#include "DataFormat.h"
#include "Drawing/ColorLegend.h"
#include "HeadGraph.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "PatchedPrompts.h"
#include "RecordingRanges.h"
#include "Run/Interventions.h"
#include "Signs.h"
#include "Task.h"
#include "TitleFields.h"
#include "TokenNames.h"
#include "TransformerConversion.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::CircuitEdge;
using atlas::CircuitNode;
using atlas::CircuitNodeKind;
using atlas::ToIndex;

/// The name of what an edge reads by; 3: a stream.
std::string InputName(atlas::EdgeInput input)
{
  const auto i = static_cast<std::size_t>(input);
  return i < atlas::CompositionKindNames.size() ? atlas::CompositionKindNames.at(i) : "Stream";
}

/// Sizes of circuits: all up to 32 of them, else about as many, closer where circuits are small.
std::vector<std::int64_t> SizesOf(std::int64_t count)
{
  constexpr int wanted = 32;
  std::vector<std::int64_t> sizes = { 0 };
  const double growth =
    std::pow(static_cast<double>(std::max<std::int64_t>(count, 1)), 1. / wanted);
  double next = 1;
  while (sizes.back() < count)
  {
    next = count <= wanted ? next + 1 : next * growth;
    const auto size = static_cast<std::int64_t>(std::lround(next)) - (count <= wanted ? 1 : 0);
    sizes.push_back(std::clamp(size, sizes.back() + 1, count));
  }
  return sizes;
}

}

vtkStandardNewMacro(vtkAttributionPatching);

/// What the outputs are made of.
struct vtkAttributionPatching::Result
{
  atlas::Attribution found; ///< edges by falling magnitude
  std::int64_t heads = 0;
  atlas::LogitPair logits;
  std::string target;
  std::string against;
  double prompt = 0;
  double source = 0;
  std::vector<double> exact; ///< of each node but the logits; empty: not asked for
  std::vector<atlas::CircuitPoint> circuit;

  std::string NodeName(std::int32_t node) const { return NameOf(this->found.nodes[node]); }
  std::string EdgeName(const CircuitEdge& edge) const
  {
    return this->NodeName(edge.from) + " to " + this->NodeName(edge.to) +
           (edge.input == atlas::EdgeInput::Stream ? "" : " (" + InputName(edge.input) + ")");
  }

  void AddFields(vtkDataObject* output, const char* format) const;
  void AddNodes(const std::vector<std::int64_t>& nodes, vtkFieldData* data) const;
  void AddEdges(const std::vector<CircuitEdge>& edges, vtkFieldData* data) const;
  void MakePoints(vtkPolyData* output) const;
  void MakeLines(int top, vtkPolyData* output) const;
  void MakeLabels(vtkPolyData* output) const;
  void MakeCircuit(vtkTable* output) const;
  std::vector<std::int64_t> Nodes(bool withLogits) const;
};

struct vtkAttributionPatching::Memory
{
  LastResult<Result> result;
};

void vtkAttributionPatching::Result::AddFields(vtkDataObject* output, const char* format) const
{
  vtkFieldData* fields = output->GetFieldData();
  AddField(fields, Names::Target, this->target);
  AddField(fields, Names::Against, this->against);
  AddField(fields, Names::TargetTokenId, this->logits.target);
  AddField(fields, Names::AgainstTokenId, this->logits.against);
  AddField(fields, Names::PromptLogitDifference, this->prompt);
  AddField(fields, Names::SourceLogitDifference, this->source);
  SetFormat(output, format);
}

std::vector<std::int64_t> vtkAttributionPatching::Result::Nodes(bool withLogits) const
{
  std::vector<std::int64_t> nodes(this->found.nodes.size() - (withLogits ? 0 : 1));
  std::iota(nodes.begin(), nodes.end(), std::int64_t{ 0 });
  return nodes;
}

void vtkAttributionPatching::Result::AddNodes(
  const std::vector<std::int64_t>& nodes, vtkFieldData* data) const
{
  ListArrays(nodes, data)
    .Text(Names::Node, [this](std::int64_t i) { return NameOf(this->found.nodes[i]); })
    .Int(Names::Layer, [this](std::int64_t i) { return this->found.nodes[i].layer; })
    .Int(Names::Head, [this](std::int64_t i) { return this->found.nodes[i].head; })
    .Double(Names::Effect, [this](std::int64_t i) { return this->found.Effect(i); });
}

void vtkAttributionPatching::Result::AddEdges(
  const std::vector<CircuitEdge>& edges, vtkFieldData* data) const
{
  const auto from = [this](const CircuitEdge& edge) { return this->found.nodes[edge.from]; };
  const auto to = [this](const CircuitEdge& edge) { return this->found.nodes[edge.to]; };
  ListArrays(edges, data)
    .Text(Names::From, [&](const CircuitEdge& edge) { return NameOf(from(edge)); })
    .Text(Names::To, [&](const CircuitEdge& edge) { return NameOf(to(edge)); })
    .Text(Names::Input, [](const CircuitEdge& edge) { return InputName(edge.input); })
    .Int(Names::FromLayer, [&](const CircuitEdge& edge) { return from(edge).layer; })
    .Int(Names::FromHead, [&](const CircuitEdge& edge) { return from(edge).head; })
    .Int(Names::ToLayer, [&](const CircuitEdge& edge) { return to(edge).layer; })
    .Int(Names::ToHead, [&](const CircuitEdge& edge) { return to(edge).head; })
    .Double(Names::Effect, &CircuitEdge::effect);
}

/// Heads at (head, layer), as Head Composition has them, and the others around them.
void vtkAttributionPatching::Result::MakePoints(vtkPolyData* output) const
{
  const double middle = static_cast<double>(this->heads - 1) / 2;
  vtkNew<vtkPoints> points;
  for (const CircuitNode& node : this->found.nodes)
  {
    const double across = node.kind == CircuitNodeKind::Head  ? node.head
                          : node.kind == CircuitNodeKind::Mlp ? static_cast<double>(this->heads)
                                                              : middle;
    points->InsertNextPoint(across, node.layer, 0);
  }
  output->SetPoints(points);
  this->AddNodes(this->Nodes(true), output->GetPointData());
}

void vtkAttributionPatching::Result::MakeLines(int top, vtkPolyData* output) const
{
  const std::vector<CircuitEdge>& all = this->found.edges;
  const std::size_t shown = top > 0 ? std::min(all.size(), ToIndex(top)) : all.size();
  const std::vector<CircuitEdge> edges(all.rend() - static_cast<std::ptrdiff_t>(shown), all.rend());
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
    .Int(Names::Layer, [this](const CircuitEdge& edge) { return this->found.nodes[edge.to].layer; })
    .Int(Names::Head, [this](const CircuitEdge& edge) { return this->found.nodes[edge.to].head; })
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
  AddField(fields, Names::LinesLeftOut, static_cast<std::int64_t>(all.size() - shown));
  AddListed(fields, shown, all.size(), "edges");
  AddSigns(fields, "A point is a head (layer.head), an MLP, the embedding or the logits. A line: "
                   "what the lower one "
                   "writes and the upper one reads changes the logit difference; the wider and "
                   "stronger, the more.");
  atlas::ColorLegend legend("Read by");
  const std::array<const char*, 4> meanings = { "queries", "keys", "values",
    "an MLP or the logits" };
  for (std::size_t i = 0; i < meanings.size(); ++i)
  {
    legend.Add(atlas::ClassColor(static_cast<int>(i)), meanings.at(i));
  }
  AddField(fields, Names::CompositionColorLegend, legend.Text());
}

void vtkAttributionPatching::Result::MakeLabels(vtkPolyData* output) const
{
  std::vector<std::string> names;
  std::vector<int> sides;
  for (const CircuitNode& node : this->found.nodes)
  {
    names.push_back(
      node.kind == CircuitNodeKind::Head ? HeadNameOf(node.layer, node.head) : NameOf(node));
    sides.push_back(node.kind == CircuitNodeKind::Embedding ? BelowSide
                    : node.kind == CircuitNodeKind::Logits  ? AboveSide
                                                            : UpperRightSide);
  }
  LabelPoints(names, sides, output);
}

void vtkAttributionPatching::Result::MakeCircuit(vtkTable* output) const
{
  const double whole = this->prompt - this->source;
  const auto part = [&](double measure) { return (measure - this->source) / whole; };
  ListArrays(this->circuit, output->GetRowData())
    .Int(Names::CircuitSize, &atlas::CircuitPoint::size)
    .Double(Names::Faithfulness, [&](const atlas::CircuitPoint& point) { return part(point.kept); })
    .Double(
      Names::Completeness, [&](const atlas::CircuitPoint& point) { return part(point.removed); });
}

vtkAttributionPatching::vtkAttributionPatching()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" },
      { "vtkPolyData", "vtkTable", "vtkTable", "vtkPolyData", "vtkTable" })
  , Prompt("When John and Mary went to the store, John gave a drink to")
  , PatchFrom("When Mary and John went to the store, Mary gave a drink to")
  , Kept(std::make_unique<Memory>())
{
}

vtkAttributionPatching::Result vtkAttributionPatching::Compute(
  vtkMultiBlockDataSet* input, const Task& task) const
{
  const auto open = ToTransformer(input);
  const atlas::Transformer& model = open->GetModel();
  const auto format = static_cast<atlas::PromptFormat>(this->PromptFormat);
  const atlas::EncodedPrompt prompt = ReadPatched(*open, this->Prompt, format, "Prompt");
  const atlas::EncodedPrompt source = ReadPatched(*open, this->PatchFrom, format, "PatchFrom");
  atlas::RequireSameLength(prompt.labels, source.labels);
  atlas::AttributionOptions options;
  options.target = FindToken(*open, this->Target, "Target");
  options.against = FindToken(*open, this->Against, "Against");
  options.position = this->Position;
  options.steps = this->Steps;
  options.threads = ThreadLimit();
  options.progress = task.Progress();
  atlas::CheckAttribution(model, prompt.input, source.input, options);
  RequireMemory(static_cast<double>(atlas::AttributionMemory(
                  model, static_cast<std::int64_t>(prompt.labels.size()), true, options.threads)),
    "the runs and their gradients", "give shorter prompts.");
  const atlas::AttributionPatching patching(model, prompt.input, source.input, options);
  Result result;
  result.found = patching.Attribute(true);
  result.heads = model.GetConfig().heads;
  result.logits = patching.GetLogits();
  const TokenNames names(open);
  result.target = names.Of(static_cast<std::int32_t>(result.logits.target));
  result.against = names.Of(static_cast<std::int32_t>(result.logits.against));
  result.prompt = patching.Clean();
  result.source = patching.Corrupted();
  const std::size_t nodes = result.found.nodes.size() - 1;
  for (std::size_t i = 0; this->Exact && i < nodes; ++i)
  {
    std::vector<bool> patched(nodes);
    patched[i] = true;
    result.exact.push_back(patching.WithPatched(patched) - result.prompt);
    task.Progress()(i + 1, nodes);
  }
  if (this->Circuit != NO_CIRCUIT)
  {
    atlas::ThrowIf<atlas::OptionError>(result.prompt == result.source,
      "expected prompts with different logits of '", result.target, "' and '", result.against,
      "', found the same difference, ", result.prompt, "; set Target or Against.");
    result.circuit =
      this->Circuit == NODES
        ? atlas::NodeCircuits(
            patching, result.found, SizesOf(static_cast<std::int64_t>(nodes)), task.Progress())
        : atlas::EdgeCircuits(patching, result.found,
            SizesOf(static_cast<std::int64_t>(result.found.edges.size())), task.Progress());
  }
  atlas::SortByMagnitude(result.found.edges);
  return result;
}

void vtkAttributionPatching::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input) || !task.IsFirst() || this->Prompt.empty() || this->PatchFrom.empty())
  {
    return;
  }
  const auto texts = std::hash<std::string>()(
    this->Prompt + '\0' + this->PatchFrom + '\0' + this->Target + '\0' + this->Against);
  const Result& result = this->Kept->result.Get(task,
    MakeKey(TimeOf(input), texts, this->PromptFormat, this->Position, this->Steps, this->Exact,
      this->Circuit),
    [&] { return this->Compute(input, task); });
  auto* graph = task.Output<vtkPolyData>(0);
  auto* nodes = task.Output<vtkTable>(1);
  auto* edges = task.Output<vtkTable>(2);
  auto* labels = task.Output<vtkPolyData>(3);
  result.MakePoints(graph);
  labels->ShallowCopy(graph);
  result.MakeLabels(labels);
  result.MakeLines(this->Top, graph);
  result.AddNodes(result.Nodes(false), nodes->GetRowData());
  if (!result.exact.empty())
  {
    ListArrays(result.exact, nodes->GetRowData()).Double(Names::ExactEffect);
  }
  result.AddEdges(result.found.edges, edges->GetRowData());
  if (!result.circuit.empty())
  {
    result.MakeCircuit(task.Output<vtkTable>(4));
  }
  const std::array<const char*, 5> formats = { Formats::AttributionPatching,
    Formats::AttributionPatchingNodes, Formats::AttributionPatchingEdges,
    Formats::AttributionPatchingLabels, Formats::AttributionPatchingCircuit };
  for (int port = 0; port < 5; ++port)
  {
    result.AddFields(task.Output<vtkDataObject>(port), formats.at(port));
  }
}
