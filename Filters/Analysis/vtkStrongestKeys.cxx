#include "vtkStrongestKeys.h"

#include "ArrayNames.h"
#include "AttentionFocus.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Index.h"
#include "RecordedAttention.h"
#include "RecordingConversion.h"
#include "Task.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkFloatArray.h>
#include <vtkIdTypeArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::Task;

namespace
{

using atlas::QueriesPerBlock;
using atlas::QueryFocus;
using atlas::ToIndex;

/// Blocks between two reports of progress, each a chance to cancel.
constexpr vtkIdType MeasuredPerStep = 64;

/// Lines are in front of the image that they mark.
constexpr double Front = 0.01;

/// Orange, green and purple of Okabe and Ito's palette, by kind.
constexpr std::array<std::array<unsigned char, 3>, 3> KindColors = { {
  { 230, 159, 0 },
  { 0, 158, 115 },
  { 204, 121, 167 },
} };

int KindOf(const QueryFocus& focus)
{
  if (focus.strongest == focus.query)
  {
    return vtkStrongestKeys::SELF;
  }
  return focus.strongest == 0 ? vtkStrongestKeys::FIRST : vtkStrongestKeys::OTHER;
}

/// Draws a frame around the square of each query and its strongest key.
void Draw(const std::vector<QueryFocus>& queries, vtkPolyData* output)
{
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> lines;
  for (const QueryFocus& focus : queries)
  {
    const double x = focus.strongest;
    const double y = -static_cast<double>(focus.query);
    const vtkIdType first = points->InsertNextPoint(x - 0.5, y - 0.5, Front);
    points->InsertNextPoint(x + 0.5, y - 0.5, Front);
    points->InsertNextPoint(x + 0.5, y + 0.5, Front);
    points->InsertNextPoint(x - 0.5, y + 0.5, Front);
    lines->InsertNextCell({ first, first + 1, first + 2, first + 3, first });
  }
  output->SetPoints(points);
  output->SetLines(lines);
}

/// Adds an array with a number of each query.
template<class Array, class Value>
void AddOfQueries(const char* name, const std::vector<QueryFocus>& queries, const Value& valueOf,
  vtkCellData* arrays)
{
  arrays->AddArray(AttentionAtlas::MakeArray<Array>(name, queries, valueOf));
}

void AddKinds(const std::vector<QueryFocus>& queries, vtkCellData* arrays)
{
  AddOfQueries<vtkUnsignedCharArray>(
    Names::Kind, queries,
    [](const QueryFocus& focus) { return static_cast<unsigned char>(KindOf(focus)); }, arrays);
  vtkNew<vtkUnsignedCharArray> colors;
  colors->SetName(Names::KindColor);
  colors->SetNumberOfComponents(3);
  for (const QueryFocus& focus : queries)
  {
    colors->InsertNextTypedTuple(KindColors.at(KindOf(focus)).data());
  }
  arrays->AddArray(colors);
}

}

vtkStandardNewMacro(vtkStrongestKeys);

vtkStrongestKeys::vtkStrongestKeys()
  : vtkHeadAlgorithm(WITHOUT_MEANS, { "vtkMultiBlockDataSet" }, { "vtkPolyData" })
{
}

/// Measures all queries in blocks on several threads.
std::vector<QueryFocus> vtkStrongestKeys::Measure(
  const atlas::Recording& recording, const atlas::Progress& progress) const
{
  const auto weights = atlas::AttentionQuantity::Weights;
  atlas::RequireOneSequence(recording, this->Sequence);
  atlas::EvaluateAttention( // checks the numbers
    recording, this->Sequence, this->Layer, this->Head, weights, 0, 0, nullptr);
  const std::int64_t length = recording.SequenceLength(this->Sequence);
  std::vector<QueryFocus> queries(length);
  AttentionAtlas::ParallelSteps((length + QueriesPerBlock - 1) / QueriesPerBlock, MeasuredPerStep,
    progress,
    [&](vtkIdType firstBlock, vtkIdType endBlock)
    {
      std::vector<float> work;
      for (vtkIdType b = firstBlock; b < endBlock; ++b)
      {
        const std::int64_t begin = b * QueriesPerBlock;
        atlas::MeasureFocus(recording, this->Sequence, this->Layer, this->Head, weights, begin,
          std::min(begin + QueriesPerBlock, length), work, queries.data() + begin);
      }
    });
  return queries;
}

void vtkStrongestKeys::AddArrays(const atlas::Recording& recording,
  const std::vector<QueryFocus>& queries, vtkCellData* arrays) const
{
  const auto integer = [&](const char* name, const auto& number)
  { AddOfQueries<vtkIntArray>(name, queries, number, arrays); };
  AddKinds(queries, arrays);
  integer(Names::Layer, [this](const QueryFocus&) { return this->Layer; });
  integer(Names::Head, [this](const QueryFocus&) { return this->Head; });
  integer(Names::Query, [](const QueryFocus& focus) { return focus.query; });
  integer(Names::Key, [](const QueryFocus& focus) { return focus.strongest; });
  AddOfQueries<vtkFloatArray>(
    Names::Weight, queries, [](const QueryFocus& focus) { return focus.strongestWeight; }, arrays);
  if (atlas::FindHead(recording, this->Layer, this->Head).weights.empty())
  {
    AddOfQueries<vtkFloatArray>(
      Names::Score, queries, [](const QueryFocus& focus) { return focus.strongestScore; }, arrays);
  }
  const std::int64_t first = recording.sequenceOffsets[this->Sequence];
  AddOfQueries<vtkIdTypeArray>(
    Names::TokenIndex, queries,
    [first](const QueryFocus& focus) { return vtkIdType{ first } + focus.query; }, arrays);
  arrays->SetPedigreeIds(arrays->GetAbstractArray(Names::TokenIndex));
}

void vtkStrongestKeys::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (AttentionAtlas::IsEmpty(input) || !task.IsFirst())
  {
    return;
  }
  const atlas::Recording recording = AttentionAtlas::ToRecording(input, this->Layer, this->Head);
  const std::vector<QueryFocus> queries = this->Measure(recording, task.Progress());
  auto* output = task.Output<vtkPolyData>();
  Draw(queries, output);
  this->AddArrays(recording, queries, output->GetCellData());
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::StrongestKeys);
}
