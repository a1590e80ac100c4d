#include "vtkHeadScores.h"

#include "Analysis/HeadCopying.h"
#include "Analysis/HeadPatterns.h"
#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "DataFormat.h"
#include "HeadBlocks.h"
#include "ImageRequest.h"
#include "ListArrays.h"
#include "PanelTitles.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenColumns.h"
#include "TokenText.h"
#include "TransformerConversion.h"

#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;
using atlas::HeadPattern;
using atlas::HeadPlace;
using atlas::PatternSums;

namespace
{

std::vector<atlas::RepeatedTokens> TokensOf(const atlas::Recording& recording)
{
  std::vector<atlas::RepeatedTokens> tokens;
  tokens.reserve(recording.SequenceCount());
  for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
  {
    tokens.emplace_back(recording, s);
  }
  return tokens;
}

}

vtkStandardNewMacro(vtkHeadScores);

/// What is known of the heads of all ranks, by any Measure.
struct vtkHeadScores::Measured
{
  std::vector<HeadPlace> heads;
  std::vector<PatternSums> sums;
  std::optional<std::vector<double>> copying; ///< none without a transformer
  bool knowsTokens = false;
  bool repeats = false; ///< whether a sequence repeats a block
  bool isCross = false;
};

struct vtkHeadScores::Memory
{
  LastResult<Measured> measured;
};

/// The scores of all heads, as columns.
struct vtkHeadScores::Scores
{
  std::vector<std::pair<const char*, std::vector<double>>> columns;

  template<class Value>
  void Add(const char* name, const std::vector<PatternSums>& sums, const Value& valueOf)
  {
    std::vector<double> values;
    std::transform(sums.begin(), sums.end(), std::back_inserter(values), valueOf);
    this->columns.emplace_back(name, std::move(values));
  }

  void MakeTable(const std::vector<HeadPlace>& heads, vtkTable* table) const;
  void MakeImage(const std::vector<HeadPlace>& heads, vtkInformation* info) const;
  Scores WithGaps(const std::vector<int>& layers, int count, std::vector<HeadPlace>& heads) const;
};

/// The scores with NaN for `count` places in each of these layers, which have no heads. Such
/// places are added to `heads`, too, by layer.
vtkHeadScores::Scores vtkHeadScores::Scores::WithGaps(
  const std::vector<int>& layers, int count, std::vector<HeadPlace>& heads) const
{
  Scores all = *this;
  for (const int layer : layers)
  {
    const auto at = std::lower_bound(heads.begin(), heads.end(), HeadPlace{ layer, 0 });
    const std::ptrdiff_t first = at - heads.begin();
    for (auto& [name, values] : all.columns)
    {
      values.insert(values.begin() + first, count, std::numeric_limits<double>::quiet_NaN());
    }
    const auto inserted = heads.insert(at, count, HeadPlace{ layer, 0 });
    for (int head = 0; head < count; ++head)
    {
      inserted[head].head = head;
    }
  }
  return all;
}

void vtkHeadScores::Scores::MakeTable(const std::vector<HeadPlace>& heads, vtkTable* table) const
{
  AddHeadColumns(heads, table);
  for (const auto& [name, values] : this->columns)
  {
    AddColumn<vtkDoubleArray>(table, name, values);
  }
  SetFormat(table, Formats::HeadScores);
}

/// Makes the part of the image that is asked for.
void vtkHeadScores::Scores::MakeImage(
  const std::vector<HeadPlace>& heads, vtkInformation* info) const
{
  std::array<int, 6> whole = { 0, -1, 0, -1, 0, -1 };
  info->Get(vtkStreamingDemandDrivenPipeline::WHOLE_EXTENT(), whole.data());
  const int expected = (whole[1] + 1) * (whole[3] + 1);
  atlas::ThrowIf<atlas::ModelError>(heads.size() != atlas::ToIndex(expected),
    "Head Scores: expected a recording with ", expected, " heads, as its field data say, found ",
    heads.size(), "; extract no blocks of it.");
  const std::vector<std::size_t> shown = BeginImage(info); // heads of the points
  auto* image = vtkImageData::GetData(info);
  vtkPointData* data = image->GetPointData();
  for (const auto& [name, values] : this->columns)
  {
    data->AddArray(MakeArray<vtkDoubleArray>(
      name, shown, [&list = values](std::size_t head) { return list[head]; }));
  }
  ListArrays(shown, data)
    .Int(Names::Layer, [&](std::size_t head) { return heads[head].layer; })
    .Int(Names::Head, [&](std::size_t head) { return heads[head].head; });
  for (const char* name :
    { Names::Sink, Names::PreviousToken, Names::Induction }) // that shows something
  {
    const auto found = std::find_if(this->columns.begin(), this->columns.end(),
      [name](const auto& column) { return std::string(column.first) == name; });
    if (found != this->columns.end() && std::any_of(found->second.begin(), found->second.end(),
                                          [](double s) { return std::abs(s) > 0; }))
    {
      data->SetActiveScalars(name);
    }
  }
  SetFormat(image, Formats::HeadScoresImage);
}

namespace
{

/// The numbers of layers and heads beside their rows and columns.
void MakeTitles(const std::vector<HeadPlace>& heads, vtkPolyData* output)
{
  PanelTitles titles;
  int row = -1;
  for (std::size_t i = 0; i < heads.size(); ++i)
  {
    if (i == 0 || heads[i].layer != heads[i - 1].layer)
    {
      titles.AddToTheLeft(-0.7, -++row, "Layer " + std::to_string(heads[i].layer));
    }
    if (row == 0)
    {
      titles.Add(
        static_cast<double>(heads[i].head) - 0.5, 0.75, "Head " + std::to_string(heads[i].head));
    }
  }
  titles.MoveTo(output, Formats::HeadScoresTitles);
}

}

vtkHeadScores::vtkHeadScores()
  : vtkRecordingAlgorithm({ "vtkMultiBlockDataSet", "vtkMultiBlockDataSet?" },
      { "vtkTable", "vtkImageData", "vtkPolyData" }, TOGETHER | WHOLE_INPUT)
  , Kept(std::make_unique<Memory>())
{
}

int vtkHeadScores::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = this->OutlineOfPart();
  const bool isEmpty = IsEmpty(recording);
  // Never an empty image: VTK would not execute this rank, for which the others would wait.
  AnnounceImage(isEmpty ? 1 : RecordingRanges(recording).head[1] + 1,
    isEmpty
      ? 1
      : static_cast<int>(RecordedLayers(recording).size() + LayersWithoutHeads(recording).size()),
    outputVector->GetInformationObject(1), VTK_DOUBLE);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// Measures the heads with all ranks.
vtkHeadScores::Measured vtkHeadScores::MeasureHeads(
  vtkMultiBlockDataSet* input, vtkMultiBlockDataSet* model, const Task& task) const
{
  const atlas::Recording recording = ToRecording(input);
  const std::vector<atlas::RepeatedTokens> tokens = TokensOf(recording);
  Measured found;
  found.knowsTokens = !tokens.empty() && tokens.front().AreKnown();
  found.isCross = recording.mask == atlas::AttentionMask::Cross;
  found.repeats = std::any_of(tokens.begin(), tokens.end(),
    [](const atlas::RepeatedTokens& sequence) { return sequence.Period() > 0; });
  const HeadBlocks blocks(recording, task.Ranks());
  found.heads = blocks.GetHeads();
  std::vector<PatternSums> ofBlocks(blocks.GetBlocks().size());
  blocks.Run(task.Progress(),
    [&](std::size_t begin, std::size_t end)
    {
      std::vector<float> weights;
      for (std::size_t b = begin; b < end; ++b)
      {
        const QueryBlock& block = blocks.GetBlocks()[b];
        const HeadPlace& place = blocks.GetMine()[block.head];
        ofBlocks[b] = atlas::MeasurePatterns(recording, tokens[block.sequence], block.sequence,
          place.layer, place.head, block.begin, block.end,
          { this->ExcludeFirst, this->ExcludeCurrent }, weights);
      }
    });
  std::vector<PatternSums> sums(blocks.GetMine().size());
  for (std::size_t b = 0; b < ofBlocks.size(); ++b)
  {
    sums[blocks.GetBlocks()[b].head].Add(ofBlocks[b]);
  }
  found.sums = blocks.Gather(sums, 1);
  if (!IsEmpty(model))
  {
    const auto transformer = ToTransformer(model);
    found.copying = blocks.Gather(atlas::MeasureCopying(recording, transformer->GetModel(),
                                    blocks.GetMine(), ThreadLimit(), task.Progress()),
      1);
  }
  return found;
}

/// The scores of all heads.
vtkHeadScores::Scores vtkHeadScores::ScoresOf(const Measured& measured) const
{
  const auto measure = static_cast<atlas::PatternMeasure>(this->Measure);
  atlas::ThrowIf<atlas::OptionError>(measure == atlas::PatternMeasure::Stripe && measured.isCross,
    "Measure: expected Mul or Abs of cross attention, which has no diagonal of a repeated block, "
    "found Stripe.");
  atlas::ThrowIf<atlas::OptionError>(
    measure == atlas::PatternMeasure::Stripe && measured.knowsTokens && !measured.repeats,
    "Measure Stripe: expected a sequence that repeats a block of tokens, such as those of Random "
    "Prompts with Kind RepeatedBlock, found none.");
  const std::vector<PatternSums>& sums = measured.sums;
  Scores scores;
  const auto addPattern = [&](const char* name, HeadPattern pattern)
  { scores.Add(name, sums, [=](const PatternSums& sum) { return sum.Score(pattern, measure); }); };
  if (!measured.isCross)
  {
    addPattern(Names::PreviousToken, HeadPattern::PreviousToken);
  }
  if (measured.knowsTokens)
  {
    addPattern(Names::DuplicateToken, HeadPattern::DuplicateToken);
  }
  if (measured.knowsTokens && !measured.isCross)
  {
    addPattern(Names::Induction, HeadPattern::Induction);
    scores.Add(
      Names::PrefixMatching, sums, [](const PatternSums& sum) { return sum.PrefixMatching(); });
  }
  if (measured.copying)
  {
    scores.columns.emplace_back(Names::Copying, *measured.copying);
  }
  scores.Add(Names::Sink, sums, [](const PatternSums& sum) { return sum.Sink(); });
  return scores;
}

void vtkHeadScores::Execute(Task& task)
{
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  auto* model = task.Input<vtkMultiBlockDataSet>(1);
  if (task.Ranks().Any(IsEmpty(input))) // a rank without one has told why
  {
    return;
  }
  if (this->AttentionKind == CROSS || task.Ranks().Any(IsEmpty(model)))
  {
    model = nullptr;
  }
  const Measured& measured = this->Kept->measured.Get(task,
    MakeKey(
      TimeOf(input), TimeOf(model), this->AttentionKind, this->ExcludeFirst, this->ExcludeCurrent),
    [&] { return this->MeasureHeads(input, model, task); });
  const Scores scores = this->ScoresOf(measured);
  std::vector<HeadPlace> places = measured.heads;
  scores.WithGaps(LayersWithoutHeads(input), RecordingRanges(input).head[1] + 1, places)
    .MakeImage(places, task.OutputInformation(1));
  AddAllSequences(ToRecording(input), task.Output<vtkImageData>(1)->GetFieldData());
  if (task.IsFirst())
  {
    scores.MakeTable(measured.heads, task.Output<vtkTable>());
    MakeTitles(places, task.Output<vtkPolyData>(2));
  }
}
