#include "vtkHeadComposition.h"

#include "ArrayNames.h"
#include "CircuitWeights.h"
#include "ClassPalette.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Error.h"
#include "HeadComposition.h"
#include "Index.h"
#include "ModelSizes.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkDoubleArray.h>
#include <vtkFloatArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkTable.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
namespace Formats = AttentionAtlas::Formats;
using AttentionAtlas::Task;

namespace
{

using atlas::ComposedHeads;
using atlas::ToIndex;
using AttentionAtlas::AddField;
using AttentionAtlas::HeadNameOf;
using AttentionAtlas::MakeArray;

constexpr double LeastOpacity = 0.15;
/// Where labels are, as vtkTokenLabelsRepresentation has it.
constexpr int UpperRight = 2;
constexpr int Below = 4;
constexpr int Above = 5;

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
  data->AddArray(MakeArray<vtkIntArray>(Names::Layer, all, [heads](int i) { return i / heads; }));
  data->AddArray(MakeArray<vtkIntArray>(Names::Head, all, [heads](int i) { return i % heads; }));
  data->AddArray(MakeArray<vtkStringArray>(
    Names::HeadName, all, [heads](int i) { return HeadNameOf(i / heads, i % heads); }));
}

/// Makes the heads vertices with labels. Those of the first and the last layer are where no lines
/// are.
void FillLabels(int layers, vtkPolyData* output)
{
  vtkNew<vtkCellArray> vertices;
  for (vtkIdType i = 0; i < output->GetNumberOfPoints(); ++i)
  {
    vertices->InsertNextCell(1, &i);
  }
  output->SetVerts(vertices);
  vtkNew<vtkStringArray> tokens;
  tokens->DeepCopy(output->GetPointData()->GetAbstractArray(Names::HeadName));
  tokens->SetName(Names::Token);
  output->GetPointData()->AddArray(tokens);
  vtkNew<vtkIntArray> sides;
  sides->SetName(Names::Side);
  for (vtkIdType i = 0; i < output->GetNumberOfPoints(); ++i)
  {
    const double layer = output->GetPoint(i)[1];
    sides->InsertNextValue(layer == 0 ? Below : layer == layers - 1 ? Above : UpperRight);
  }
  output->GetPointData()->AddArray(sides);
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
    const double range = this->pairs.back().score - this->pairs.front().score;
    return range > 0
             ? LeastOpacity + (1 - LeastOpacity) * (pair.score - this->pairs.front().score) / range
             : 1;
  }
};

/// The strongest and the weakest line, as they look on white.
std::string LegendOf(const Lines& lines, int kind, double baseline)
{
  std::string text =
    std::string(atlas::CompositionKindNames.at(kind)) + "-composition above chance";
  std::vector<ComposedHeads> ends = { lines.pairs.back(), lines.pairs.front() };
  ends.resize(lines.pairs.size() > 1 ? 2 : 1);
  for (const ComposedHeads& pair : ends)
  {
    const bool isStrongest = &pair == &ends.front();
    text += "\n";
    for (const std::uint8_t channel : atlas::ClassColor(kind))
    {
      text += std::to_string(std::lround(255 + lines.Opacity(pair) * (channel - 255.))) + " ";
    }
    std::array<char, 32> number = {};
    std::snprintf(number.data(), number.size(), "%.3f", pair.score - baseline);
    text += std::string(isStrongest ? "wide: " : "thin: ") + number.data() + " (" + FromName(pair) +
            " to " + ToName(pair) + ")";
  }
  return text;
}

template<class Array>
void AddNumbers(const std::vector<ComposedHeads>& pairs, vtkFieldData* data, double baseline)
{
  const auto add = [&](const char* name, auto valueOf)
  { data->AddArray(MakeArray<Array>(name, pairs, valueOf)); };
  add(Names::Score, [](const ComposedHeads& pair) { return pair.score; });
  add(Names::Corrected, [baseline](const ComposedHeads& pair) { return pair.score - baseline; });
}

void AddHeads(const std::vector<ComposedHeads>& pairs, vtkFieldData* data)
{
  const auto add = [&](const char* name, std::int32_t ComposedHeads::* number)
  {
    data->AddArray(MakeArray<vtkIntArray>(
      name, pairs, [number](const ComposedHeads& pair) { return pair.*number; }));
  };
  add(Names::FromLayer, &ComposedHeads::fromLayer);
  add(Names::FromHead, &ComposedHeads::fromHead);
  add(Names::ToLayer, &ComposedHeads::toLayer);
  add(Names::ToHead, &ComposedHeads::toHead);
}

void FillLines(const Lines& lines, int heads, int kind, double baseline, vtkPolyData* output)
{
  const std::vector<ComposedHeads>& pairs = lines.pairs;
  vtkNew<vtkCellArray> cells;
  vtkNew<vtkUnsignedCharArray> colors;
  colors->SetName(Names::CompositionColor);
  colors->SetNumberOfComponents(4);
  const atlas::Rgb color = atlas::ClassColor(kind);
  for (const ComposedHeads& pair : pairs)
  {
    cells->InsertNextCell({ static_cast<vtkIdType>(pair.fromLayer) * heads + pair.fromHead,
      static_cast<vtkIdType>(pair.toLayer) * heads + pair.toHead });
    const std::array<unsigned char, 4> rgba = { color[0], color[1], color[2],
      static_cast<unsigned char>(std::lround(255 * lines.Opacity(pair))) };
    colors->InsertNextTypedTuple(rgba.data());
  }
  output->SetLines(cells);
  vtkCellData* data = output->GetCellData();
  AddHeads(pairs, data);
  data->AddArray(MakeArray<vtkIntArray>(
    Names::Layer, pairs, [](const ComposedHeads& pair) { return pair.toLayer; }));
  data->AddArray(MakeArray<vtkIntArray>(
    Names::Head, pairs, [](const ComposedHeads& pair) { return pair.toHead; }));
  AddNumbers<vtkDoubleArray>(pairs, data, baseline);
  data->AddArray(MakeArray<vtkStringArray>(Names::HeadName, pairs,
    [](const ComposedHeads& pair) { return FromName(pair) + " to " + ToName(pair); }));
  data->AddArray(MakeArray<vtkFloatArray>(Names::Opacity, pairs,
    [&](const ComposedHeads& pair) { return static_cast<float>(lines.Opacity(pair)); }));
  data->AddArray(colors);
  vtkFieldData* fields = output->GetFieldData();
  AddField(fields, Names::Kind, std::string(atlas::CompositionKindNames.at(kind)));
  AddField(fields, Names::Baseline, baseline);
  AddField(fields, Names::LinesLeftOut, lines.leftOut);
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
  AttentionAtlas::LastResult<std::vector<ComposedHeads>>
    pairs; ///< of a model, a kind, processed or not
};

vtkHeadComposition::vtkHeadComposition()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkPolyData", "vtkTable", "vtkPolyData" })
  , Kept(std::make_unique<Memory>())
{
}

vtkHeadComposition::~vtkHeadComposition() = default;

void vtkHeadComposition::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (AttentionAtlas::IsEmpty(input) || !task.IsFirst())
  {
    return;
  }
  if (std::isnan(this->Threshold))
  {
    throw atlas::OptionError("Threshold: expected a number, found nan.");
  }
  const auto model = AttentionAtlas::ToTransformer(input);
  const atlas::TransformerConfig& config = model->GetModel().GetConfig();
  const std::vector<ComposedHeads>& pairs = this->Kept->pairs.Get(task,
    AttentionAtlas::MakeKey(AttentionAtlas::TimeOf(input), this->Kind, this->Processing),
    [&]
    {
      const auto count = static_cast<double>(atlas::CompositionPairs(model->GetModel()));
      AttentionAtlas::RequireMemory(count * 2 * (sizeof(ComposedHeads) + 32),
        std::to_string(atlas::CompositionPairs(model->GetModel())) + " pairs of heads",
        "use a smaller model.");
      return atlas::FindHeadComposition(model->GetModel(),
        { static_cast<atlas::CompositionKind>(this->Kind), atlas::CircuitSteps(this->Processing),
          AttentionAtlas::ThreadLimit(), task.Progress() });
    });
  const double baseline = atlas::CompositionBaseline(model->GetModel());
  const Lines lines(pairs, this->Threshold + (this->Corrected ? baseline : 0), this->Top);
  auto* graph = task.Output<vtkPolyData>(0);
  auto* table = task.Output<vtkTable>(1);
  auto* labels = task.Output<vtkPolyData>(2);
  FillHeads(static_cast<int>(config.layers), static_cast<int>(config.heads), graph);
  labels->ShallowCopy(graph);
  FillLabels(static_cast<int>(config.layers), labels);
  FillLines(lines, static_cast<int>(config.heads), this->Kind, baseline, graph);
  AddHeads(pairs, table->GetRowData());
  AddNumbers<vtkDoubleArray>(pairs, table->GetRowData(), baseline);
  const std::array<const char*, 3> formats = { Formats::HeadComposition,
    Formats::HeadCompositionPairs, Formats::HeadCompositionHeads };
  for (int port = 0; port < 3; ++port)
  {
    AttentionAtlas::Describe(task.Output<vtkDataObject>(port), formats.at(port), this->Processing,
      LeftOut(config, this->Processing, this->Kind == V));
  }
}
