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
#include "Run/GradientRun.h"
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
  double mlpHeight = 0; ///< of an MLP above the heads of its layer
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

/// Heads at (head, layer), as Head Composition has them, and the others around them. An MLP that
/// reads the heads of its layer is above them, so that lines from them do not cover each other.
void vtkAttributionPatching::Result::MakePoints(vtkPolyData* output) const
{
  const double middle = static_cast<double>(this->heads - 1) / 2;
  vtkNew<vtkPoints> points;
  for (const CircuitNode& node : this->found.nodes)
  {
    const double across = node.kind == CircuitNodeKind::Head  ? node.head
                          : node.kind == CircuitNodeKind::Mlp ? static_cast<double>(this->heads)
                                                              : middle;
    const double above = node.kind == CircuitNodeKind::Mlp ? this->mlpHeight : 0;
    points->InsertNextPoint(across, node.layer + above, 0);
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
  AddSigns(
    fields, std::string("A point is a head (layer.head), an MLP, the embedding or the logits.") +
              (edges.empty()
                  ? ""
                  : " A line goes from a node up to one that reads what it writes. The wider and "
                    "stronger a line, the more this connection changes the logit difference, up "
                    "or down; the sign is in the table of edges."));
  if (edges.empty())
  {
    return;
  }
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
      Names::WithoutCircuit, [&](const atlas::CircuitPoint& point) { return part(point.removed); });
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
  atlas::CheckGradients(model);
  if (this->Circuit == EDGES)
  {
    atlas::CheckEdgeCircuits(model.GetConfig());
  }
  const bool edges = this->Edges || this->Circuit == EDGES;
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
  atlas::CheckAttribution(model, prompt.input, source.input, options);
  RequireMemory(atlas::AttributionMemory(
                  model, static_cast<std::int64_t>(prompt.labels.size()), edges, options.threads),
    "the runs and their gradients", "give shorter prompts.");
  const std::size_t nodes = atlas::CircuitNodes(model.GetConfig()).size() - 1;
  const std::vector<std::int64_t> sizes =
    this->Circuit == NO_CIRCUIT
      ? std::vector<std::int64_t>()
      : SizesOf(this->Circuit == NODES ? static_cast<std::int64_t>(nodes)
                                       : atlas::CircuitEdgeCount(model.GetConfig()));
  // About how many runs each part takes as long as.
  const double gradients = 2 + (edges ? 5. : 3.) * this->Steps;
  const double exact = gradients + (this->Exact ? static_cast<double>(nodes) : 0);
  const double all = exact + 2 * static_cast<double>(sizes.size());
  const atlas::Progress& progress = task.Progress();
  options.progress = progress.Part(0., 2., all);
  const atlas::AttributionPatching patching(model, prompt.input, source.input, options);
  if (this->Circuit != NO_CIRCUIT)
  {
    atlas::CheckDifferentMeasures(patching);
  }
  Result result;
  result.found = patching.Attribute(edges, progress.Part(2., gradients, all));
  result.heads = model.GetConfig().heads;
  result.mlpHeight = model.GetConfig().order == atlas::SublayerOrder::Sequential ? 0.5 : 0;
  result.logits = patching.GetLogits();
  const TokenNames names(open);
  result.target = names.Of(static_cast<std::int32_t>(result.logits.target));
  result.against = names.Of(static_cast<std::int32_t>(result.logits.against));
  result.prompt = patching.Clean();
  result.source = patching.Corrupted();
  const atlas::Progress ofExact = progress.Part(gradients, exact, all);
  for (std::size_t i = 0; this->Exact && i < nodes; ++i)
  {
    std::vector<bool> patched(nodes);
    patched[i] = true;
    result.exact.push_back(
      patching.WithPatched(patched, ofExact.Part(i, i + 1, nodes)) - result.prompt);
  }
  if (this->Circuit != NO_CIRCUIT)
  {
    const atlas::Progress ofCircuits = progress.Part(exact, all, all);
    result.circuit = this->Circuit == NODES
                       ? atlas::NodeCircuits(patching, result.found, sizes, ofCircuits)
                       : atlas::EdgeCircuits(patching, result.found, sizes, ofCircuits);
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
      this->Circuit, this->Edges),
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
