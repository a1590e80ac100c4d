#include "vtkAttributionPatching.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Joined.h"
#include "CircuitGraph.h"
#include "Circuits/AttributionPatching.h"
#include "Circuits/Circuit.h"
#include "Circuits/CircuitCurves.h"
#include "DataFormat.h"
#include "Files/MappedFile.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "PatchedPrompts.h"
#include "Run/GradientRun.h"
#include "Run/Interventions.h"
#include "Task.h"
#include "TokenNames.h"
#include "TransformerConversion.h"

#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::CircuitEdge;
using atlas::ToIndex;

/// The names of tokens, each once, at most three.
std::string NamesOfTokens(const TokenNames& names, const std::vector<std::int64_t>& tokens)
{
  std::vector<std::int64_t> different;
  for (const std::int64_t token : tokens)
  {
    if (std::find(different.begin(), different.end(), token) == different.end())
    {
      different.push_back(token);
    }
  }
  constexpr std::size_t most = 3;
  const std::size_t shown = std::min(most, different.size());
  const std::vector<std::int64_t> first(
    different.begin(), different.begin() + static_cast<std::ptrdiff_t>(shown));
  return atlas::Joined(
           first, [&](std::int64_t token) { return names.Of(static_cast<std::int32_t>(token)); }) +
         (different.size() > most ? ", ..." : "");
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
  atlas::CircuitShape shape;
  std::vector<std::int64_t> targets; ///< of each pair
  std::vector<std::int64_t> againsts;
  std::string target;
  std::string against;
  bool ofLoss = false;
  double prompt = 0;
  double source = 0;
  std::vector<double> exact;      ///< of each node but the logits; empty: not asked for
  std::vector<double> exactEdges; ///< of the first edges, of which NaN for the others
  std::vector<atlas::CircuitPoint> circuit;
  std::optional<atlas::Circuit> file; ///< that of CircuitFile, with effects of its edges

  std::int64_t Nodes() const { return static_cast<std::int64_t>(this->found.nodes.size()) - 1; }
  void AddFields(vtkDataObject* output, const char* format) const;
  void MakeCircuit(vtkTable* output) const;
  std::vector<CircuitEdge> Shown(int top) const;
  std::vector<std::int32_t> InCircuit(int top, const std::vector<CircuitEdge>& shown) const;
};

struct vtkAttributionPatching::Memory
{
  LastResult<Result> result;
};

void vtkAttributionPatching::Result::AddFields(vtkDataObject* output, const char* format) const
{
  vtkFieldData* fields = output->GetFieldData();
  if (!this->ofLoss)
  {
    AddField(fields, Names::Target, this->target);
    AddField(fields, Names::Against, this->against);
    ListArrays(this->targets, fields).Int(Names::TargetTokenId);
    ListArrays(this->againsts, fields).Int(Names::AgainstTokenId);
  }
  AddField(fields, this->ofLoss ? Names::PromptLoss : Names::PromptLogitDifference, this->prompt);
  AddField(fields, this->ofLoss ? Names::SourceLoss : Names::SourceLogitDifference, this->source);
  SetFormat(output, format);
}

void vtkAttributionPatching::Result::MakeCircuit(vtkTable* output) const
{
  const double whole = this->prompt - this->source;
  const auto part = [&](double measure) { return (measure - this->source) / whole; };
  ListArrays(this->circuit, output->GetRowData())
    .Int(Names::CircuitSize, &atlas::CircuitPoint::size)
    .Double(Names::Faithfulness, [&](const atlas::CircuitPoint& point) { return part(point.kept); })
    .Double(
      Names::WithoutCircuit, [&](const atlas::CircuitPoint& point) { return part(point.removed); })
    .Double(Names::Incompleteness,
      [&](const atlas::CircuitPoint& point) { return point.incomplete / std::abs(whole); });
}

/// The edges that have lines, by falling magnitude: those of the file, or the strongest.
std::vector<CircuitEdge> vtkAttributionPatching::Result::Shown(int top) const
{
  std::vector<CircuitEdge> edges = this->file ? this->file->edges : this->found.edges;
  atlas::SortByMagnitude(edges);
  if (!this->file && top > 0 && edges.size() > ToIndex(top))
  {
    edges.resize(top);
  }
  return edges;
}

/// The nodes of the circuit: those of the file, those at lines or, without edges, the strongest.
std::vector<std::int32_t> vtkAttributionPatching::Result::InCircuit(
  int top, const std::vector<CircuitEdge>& shown) const
{
  if (this->file)
  {
    return this->file->nodes;
  }
  if (!this->found.edges.empty())
  {
    return atlas::MakeCircuit(this->shape, {}, shown).nodes;
  }
  std::vector<std::int32_t> nodes(this->Nodes());
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto rank = [this](std::int32_t i)
  { return std::pair(-std::abs(this->found.Effect(i)), i); };
  std::sort(
    nodes.begin(), nodes.end(), [&](std::int32_t a, std::int32_t b) { return rank(a) < rank(b); });
  if (top > 0 && nodes.size() > ToIndex(top))
  {
    nodes.resize(top);
  }
  return nodes;
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
  vtkMultiBlockDataSet* input, const std::string& file, const Task& task) const
{
  const auto open = ToTransformer(input);
  const atlas::Transformer& model = open->GetModel();
  atlas::CheckGradients(model);
  Result result;
  result.shape = model.GetConfig();
  if (this->Circuit == FROM_FILE)
  {
    result.file = atlas::ParseCircuit(file, this->CircuitFile);
    atlas::CheckCircuit(*result.file, model.GetConfig(), this->CircuitFile);
  }
  const bool ofEdges = this->Circuit == EDGES || (result.file && !result.file->edges.empty());
  const bool edges = this->Edges || ofEdges || this->ExactEdges > 0;
  const auto format = static_cast<atlas::PromptFormat>(this->PromptFormat);
  atlas::TransformerInput prompt;
  atlas::TransformerInput source;
  ReadPairs(*open, { this->Prompt, this->PatchFrom }, format, prompt, source);
  atlas::AttributionOptions options;
  options.target = FindToken(*open, this->Target, "Target");
  options.against = FindToken(*open, this->Against, "Against");
  options.position = this->Position;
  options.loss = this->Measure == LOSS;
  result.ofLoss = options.loss;
  options.steps = this->Steps;
  options.threads = ThreadLimit();
  atlas::CheckAttribution(model, prompt, source, options);
  RequireMemory(atlas::AttributionMemory(model, atlas::SequenceLengths(model.GetConfig(), prompt),
                  edges, options.threads, options.loss),
    "the runs and their gradients", "give fewer or shorter prompts.");
  const std::size_t nodes = atlas::CircuitNodes(model.GetConfig()).size() - 1;
  const std::vector<std::int64_t> sizes =
    this->Circuit == NO_CIRCUIT ? std::vector<std::int64_t>()
    : this->Circuit == FROM_FILE
      ? std::vector<std::int64_t>(1)
      : SizesOf(this->Circuit == NODES ? static_cast<std::int64_t>(nodes)
                                       : atlas::CircuitEdgeCount(model.GetConfig()));
  // About how many runs each part takes as long as.
  const double gradients = 2 + (edges ? 5. : 3.) * this->Steps;
  const auto exactEdges =
    std::min<std::int64_t>(this->ExactEdges, atlas::CircuitEdgeCount(model.GetConfig()));
  const double ofNodes = gradients + (this->Exact ? static_cast<double>(nodes) : 0);
  const double exact = ofNodes + static_cast<double>(exactEdges);
  const double all = exact + 4 * static_cast<double>(sizes.size());
  const atlas::Progress& progress = task.Progress();
  options.progress = progress.Part(0., 2., all);
  const atlas::AttributionPatching patching(model, prompt, source, options);
  if (this->Circuit != NO_CIRCUIT)
  {
    atlas::CheckDifferentMeasures(patching, options.loss);
  }
  result.found = patching.Attribute(edges, progress.Part(2., gradients, all));
  const TokenNames names(open);
  for (std::size_t i = 0; i < prompt.tokens.size() && !options.loss; ++i)
  {
    const atlas::LogitPair& logits = patching.GetLogits(i);
    result.targets.push_back(logits.target);
    result.againsts.push_back(logits.against);
  }
  result.target = NamesOfTokens(names, result.targets);
  result.against = NamesOfTokens(names, result.againsts);
  result.prompt = patching.Clean();
  result.source = patching.Corrupted();
  const atlas::Progress ofExact = progress.Part(gradients, ofNodes, all);
  for (std::size_t i = 0; this->Exact && i < nodes; ++i)
  {
    std::vector<bool> patched(nodes);
    patched[i] = true;
    result.exact.push_back(
      patching.WithPatched(patched, ofExact.Part(i, i + 1, nodes)) - result.prompt);
  }
  std::vector<CircuitEdge> strongest = result.found.edges;
  atlas::SortByMagnitude(strongest);
  const atlas::Progress ofExactEdges = progress.Part(ofNodes, exact, all);
  for (std::int64_t i = 0; i < exactEdges; ++i)
  {
    const atlas::Progress part = ofExactEdges.Part(i, i + 1, exactEdges);
    result.exactEdges.push_back(patching.WithPatchedEdge(strongest[i], part) - result.prompt);
  }
  if (exactEdges > 0)
  {
    result.exactEdges.resize(strongest.size(), std::nan(""));
  }
  const atlas::Progress ofCircuits = progress.Part(exact, all, all);
  if (result.file)
  {
    result.circuit = { atlas::MeasureCircuit(patching, result.found, *result.file, ofCircuits) };
  }
  else if (this->Circuit == NODES)
  {
    result.circuit = atlas::NodeCircuits(patching, result.found, sizes, ofCircuits);
  }
  else if (this->Circuit == EDGES)
  {
    result.circuit = atlas::EdgeCircuits(patching, result.found, sizes, ofCircuits);
  }
  if (result.file) // with the effects for these prompts
  {
    std::vector<CircuitEdge> found;
    std::set_intersection(result.found.edges.begin(), result.found.edges.end(),
      result.file->edges.begin(), result.file->edges.end(), std::back_inserter(found),
      atlas::IsBefore);
    result.file->edges = std::move(found);
  }
  result.found.edges = std::move(strongest);
  return result;
}

void vtkAttributionPatching::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input) || !task.IsFirst() || this->Prompt.empty() || this->PatchFrom.empty())
  {
    return;
  }
  std::string file;
  if (this->Circuit == FROM_FILE)
  {
    atlas::ThrowIf<atlas::OptionError>(
      this->CircuitFile.empty(), "CircuitFile: expected the file of a circuit, found none.");
    task.Reads(this->CircuitFile.c_str());
    file = atlas::ReadFile(this->CircuitFile);
  }
  const auto texts =
    std::hash<std::string>()(this->Prompt + '\0' + this->PatchFrom + '\0' + this->Target + '\0' +
                             this->Against + '\0' + this->CircuitFile + '\0' + file);
  const Result& result = this->Kept->result.Get(task,
    MakeKey(TimeOf(input), texts, this->PromptFormat, this->Measure, this->Position, this->Steps,
      this->Exact, this->Circuit, this->Edges, this->ExactEdges),
    [&] { return this->Compute(input, file, task); });
  auto* graph = task.Output<vtkPolyData>(0);
  auto* nodes = task.Output<vtkTable>(1);
  auto* edges = task.Output<vtkTable>(2);
  auto* labels = task.Output<vtkPolyData>(3);
  const CircuitGraph drawing(result.shape);
  const std::vector<CircuitEdge> shown = result.Shown(this->Top);
  std::vector<std::int32_t> all(result.found.nodes.size());
  std::iota(all.begin(), all.end(), 0);
  const auto effect = [&](std::int32_t i) { return result.found.Effect(i); };
  drawing.MakePoints(result.InCircuit(this->Top, shown), graph);
  ListArrays(all, graph->GetPointData()).Double(Names::Effect, effect);
  labels->ShallowCopy(graph);
  drawing.MakeLabels(labels);
  drawing.MakeLines(shown, result.file ? shown.size() : result.found.edges.size(), graph);
  all.pop_back(); // the logits
  drawing.AddNodes(all, nodes->GetRowData());
  ListArrays(all, nodes->GetRowData()).Double(Names::Effect, effect);
  if (!result.exact.empty())
  {
    ListArrays(result.exact, nodes->GetRowData()).Double(Names::ExactEffect);
  }
  drawing.AddEdges(result.found.edges, edges->GetRowData());
  if (!result.exactEdges.empty())
  {
    ListArrays(result.exactEdges, edges->GetRowData()).Double(Names::ExactEffect);
  }
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
