#include "vtkHeadComposition.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Circuits/CircuitWeights.h"
#include "Circuits/HeadComposition.h"
#include "DataFormat.h"
#include "Drawing/ClassPalette.h"
#include "Drawing/ColorLegend.h"
#include "HeadGraph.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "RecordingRanges.h"
#include "Signs.h"
#include "Task.h"
#include "TitleFields.h"
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
#include <cstdio>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::ComposedHeads;
using atlas::ToIndex;

std::string FromName(const ComposedHeads& pair)
{
  return HeadNameOf(pair.fromLayer, pair.fromHead);
}

std::string ToName(const ComposedHeads& pair)
{
  return HeadNameOf(pair.toLayer, pair.toHead);
}

/// The heads as points at (head, layer), with their names.
void FillHeads(int layers, int heads, vtkPolyData* output)
{
  std::vector<int> all(static_cast<std::size_t>(layers) * static_cast<std::size_t>(heads));
  vtkNew<vtkPoints> points;
  for (std::size_t i = 0; i < all.size(); ++i)
  {
    all[i] = static_cast<int>(i);
    const int layer = all[i] / heads;
    points->InsertNextPoint(all[i] % heads, layer, 0);
  }
  output->SetPoints(points);
  vtkPointData* data = output->GetPointData();
  ListArrays(all, data)
    .Int(Names::Layer, [heads](int i) { return i / heads; })
    .Int(Names::Head, [heads](int i) { return i % heads; })
    .Text(Names::HeadName, [heads](int i) { return HeadNameOf(i / heads, i % heads); });
}

/// Makes the heads vertices with labels. Those of the first and the last layer are where no lines
/// are.
void FillLabels(int layers, int heads, vtkPolyData* output)
{
  std::vector<std::string> names;
  std::vector<int> sides;
  for (int i = 0; i < layers * heads; ++i)
  {
    const int layer = i / heads;
    names.push_back(HeadNameOf(layer, i % heads));
    sides.push_back(layer == 0 ? BelowSide : layer == layers - 1 ? AboveSide : UpperRightSide);
  }
  LabelPoints(names, sides, output);
}

/// The pairs that have lines, by rising score.
struct Lines
{
  std::vector<ComposedHeads> pairs;
  int leftOut = 0;

  Lines(const std::vector<ComposedHeads>& all, double least, int top)
  {
    std::copy_if(all.begin(), all.end(), std::back_inserter(this->pairs),
      [least](const ComposedHeads& pair) { return pair.score >= least; });
    const auto rank = [](const ComposedHeads& pair)
    { return std::tuple(-pair.score, pair.fromLayer, pair.fromHead, pair.toLayer, pair.toHead); };
    std::sort(this->pairs.begin(), this->pairs.end(),
      [&rank](const ComposedHeads& a, const ComposedHeads& b) { return rank(a) < rank(b); });
    if (top > 0 && this->pairs.size() > ToIndex(top))
    {
      this->leftOut = static_cast<int>(this->pairs.size() - ToIndex(top));
      this->pairs.resize(top);
    }
    std::reverse(this->pairs.begin(), this->pairs.end());
  }

  double Opacity(const ComposedHeads& pair) const
  {
    return LineOpacity(pair.score, this->pairs.front().score, this->pairs.back().score);
  }
};

/// The strongest and the weakest line, as they look on white.
std::string LegendOf(const Lines& lines, int kind, double baseline)
{
  atlas::ColorLegend legend(
    std::string(atlas::CompositionKindNames.at(kind)) + "-composition above chance");
  std::vector<ComposedHeads> ends = { lines.pairs.back(), lines.pairs.front() };
  ends.resize(lines.pairs.size() > 1 ? 2 : 1);
  for (const ComposedHeads& pair : ends)
  {
    const bool isStrongest = &pair == &ends.front();
    const atlas::Rgb color = OnWhite(atlas::ClassColor(kind), lines.Opacity(pair));
    std::array<char, 32> number = {};
    std::snprintf(number.data(), number.size(), "%.3f", pair.score - baseline);
    legend.Add(color, std::string(isStrongest ? "wide: " : "thin: ") + number.data() + ", head " +
                        FromName(pair) + " to head " + ToName(pair));
  }
  return legend.Text();
}

void AddHeads(const std::vector<ComposedHeads>& pairs, vtkFieldData* data)
{
  ListArrays(pairs, data)
    .Int(Names::FromLayer, &ComposedHeads::fromLayer)
    .Int(Names::FromHead, &ComposedHeads::fromHead)
    .Int(Names::ToLayer, &ComposedHeads::toLayer)
    .Int(Names::ToHead, &ComposedHeads::toHead);
}

void AddScores(const std::vector<ComposedHeads>& pairs, vtkFieldData* data, double baseline)
{
  ListArrays(pairs, data)
    .Double(Names::Score, &ComposedHeads::score)
    .Double(
      Names::Corrected, [baseline](const ComposedHeads& pair) { return pair.score - baseline; });
}

void FillLines(const Lines& lines, int heads, int kind, double baseline, vtkPolyData* output)
{
  const std::vector<ComposedHeads>& pairs = lines.pairs;
  vtkNew<vtkCellArray> cells;
  for (const ComposedHeads& pair : pairs)
  {
    cells->InsertNextCell({ static_cast<vtkIdType>(pair.fromLayer) * heads + pair.fromHead,
      static_cast<vtkIdType>(pair.toLayer) * heads + pair.toHead });
  }
  output->SetLines(cells);
  vtkCellData* data = output->GetCellData();
  AddHeads(pairs, data);
  ListArrays(pairs, data)
    .Int(Names::Layer, &ComposedHeads::toLayer)
    .Int(Names::Head, &ComposedHeads::toHead);
  AddScores(pairs, data, baseline);
  const atlas::Rgb color = atlas::ClassColor(kind);
  ListArrays(pairs, data)
    .Text(Names::HeadName,
      [](const ComposedHeads& pair) { return FromName(pair) + " to " + ToName(pair); })
    .Float(Names::Opacity, [&](const ComposedHeads& pair) { return lines.Opacity(pair); })
    .Tuples(Names::CompositionColor,
      [&](const ComposedHeads& pair)
      {
        const auto opacity = static_cast<unsigned char>(std::lround(255 * lines.Opacity(pair)));
        return std::array<unsigned char, 4>{ color[0], color[1], color[2], opacity };
      });
  vtkFieldData* fields = output->GetFieldData();
  const std::string name(atlas::CompositionKindNames.at(kind));
  AddField(fields, Names::Kind, name);
  AddSigns(fields,
    "A point is a head (layer.head). A line: what the lower head writes reaches the upper one by " +
      name + "-composition; the wider and stronger, the more." +
      (lines.leftOut > 0 ? " Weaker lines left out: " + std::to_string(lines.leftOut) + "." : ""));
  AddField(fields, Names::Baseline, baseline);
  AddField(fields, Names::LinesLeftOut, lines.leftOut);
  AddListed(fields, pairs.size(), pairs.size() + ToIndex(lines.leftOut), "pairs");
  if (!pairs.empty())
  {
    AddField(fields, Names::CompositionColorLegend, LegendOf(lines, kind, baseline));
  }
}

std::vector<std::string> LeftOut(
  const atlas::TransformerConfig& config, bool processes, bool ofValues)
{
  std::vector<std::string> left = ofValues ? atlas::LeftOutOfOutputValue(config, processes)
                                           : atlas::LeftOutOfQueryKey(config, processes);
  if (config.mlpDimension > 0)
  {
    left.emplace_back("MLPs between the heads");
  }
  return left;
}

}

vtkStandardNewMacro(vtkHeadComposition);

struct vtkHeadComposition::Memory
{
  LastResult<std::vector<ComposedHeads>> pairs; ///< of a model, a kind, processed or not
};

vtkHeadComposition::vtkHeadComposition()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkPolyData", "vtkTable", "vtkPolyData" })
  , Kept(std::make_unique<Memory>())
{
}

void vtkHeadComposition::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input) || !task.IsFirst())
  {
    return;
  }
  atlas::ThrowIf<atlas::OptionError>(
    std::isnan(this->Threshold), "Threshold: expected a number, found nan.");
  const auto model = ToTransformer(input);
  const atlas::TransformerConfig& config = model->GetModel().GetConfig();
  const std::vector<ComposedHeads>& pairs =
    this->Kept->pairs.Get(task, MakeKey(TimeOf(input), this->Kind, this->Processing),
      [&]
      {
        const auto count = static_cast<double>(atlas::CompositionPairs(model->GetModel()));
        RequireMemory(count * 2 * (sizeof(ComposedHeads) + 32),
          std::to_string(atlas::CompositionPairs(model->GetModel())) + " pairs of heads",
          "use a smaller model.");
        return atlas::FindHeadComposition(model->GetModel(),
          { static_cast<atlas::CompositionKind>(this->Kind), atlas::CircuitSteps(this->Processing),
            ThreadLimit(), task.Progress() });
      });
  const double baseline = atlas::CompositionBaseline(model->GetModel());
  const Lines lines(pairs, this->Threshold + (this->Corrected ? baseline : 0), this->Top);
  auto* graph = task.Output<vtkPolyData>(0);
  auto* table = task.Output<vtkTable>(1);
  auto* labels = task.Output<vtkPolyData>(2);
  FillHeads(static_cast<int>(config.layers), static_cast<int>(config.heads), graph);
  labels->ShallowCopy(graph);
  FillLabels(static_cast<int>(config.layers), static_cast<int>(config.heads), labels);
  FillLines(lines, static_cast<int>(config.heads), this->Kind, baseline, graph);
  AddHeads(pairs, table->GetRowData());
  AddScores(pairs, table->GetRowData(), baseline);
  const std::array<const char*, 3> formats = { Formats::HeadComposition,
    Formats::HeadCompositionPairs, Formats::HeadCompositionHeads };
  for (int port = 0; port < 3; ++port)
  {
    Describe(task.Output<vtkDataObject>(port), formats.at(port), this->Processing,
      LeftOut(config, this->Processing, this->Kind == V));
  }
}
