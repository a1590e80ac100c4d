#include "vtkHeadScores.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Error.h"
#include "Execution.h"
#include "HeadBlocks.h"
#include "HeadCopying.h"
#include "HeadPatterns.h"
#include "Index.h"
#include "PanelTitles.h"
#include "RecordingConversion.h"
#include "TokenColumns.h"
#include "TransformerConversion.h"

#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using atlas::HeadPattern;
using atlas::PatternSums;
using AttentionAtlas::HeadPlace;

namespace
{

std::vector<atlas::RepeatedTokens> TokensOf(const atlas::Recording& recording)
{
  std::vector<atlas::RepeatedTokens> tokens;
  tokens.reserve(static_cast<std::size_t>(recording.SequenceCount()));
  for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
  {
    tokens.emplace_back(recording, s);
  }
  return tokens;
}

}

vtkStandardNewMacro(vtkHeadScores);

/// What was asked for, and the outcome. VTK executes an image filter again for another output or
/// extent, and whenever it has failed, which not all ranks need to do; so they exchange only what
/// is new.
struct vtkHeadScores::Work
{
  using Wanted = std::tuple<vtkMTimeType, vtkMTimeType, bool, bool, int, int>;

  Wanted wanted;                              ///< times of the inputs, settings, and the rank
  std::vector<HeadPlace> heads;               ///< of all ranks
  std::vector<PatternSums> sums;              ///< of the heads of this rank, then of all
  std::optional<std::vector<double>> copying; ///< the same; none without a transformer
  bool knowsTokens = false;
  bool repeats = false; ///< whether a sequence repeats a block
  AttentionAtlas::RankResult result;
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
  void MakeImage(const std::vector<HeadPlace>& heads, vtkInformationVector* outputVector) const;
};

void vtkHeadScores::Scores::MakeTable(const std::vector<HeadPlace>& heads, vtkTable* table) const
{
  AttentionAtlas::AddHeadColumns(heads, table);
  for (const auto& [name, values] : this->columns)
  {
    AttentionAtlas::AddColumn<vtkDoubleArray>(table, name, values);
  }
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::HeadScores);
}

/// Makes the part of the image that is asked for.
void vtkHeadScores::Scores::MakeImage(
  const std::vector<HeadPlace>& heads, vtkInformationVector* outputVector) const
{
  vtkInformation* info = outputVector->GetInformationObject(1);
  std::array<int, 6> whole = { 0, -1, 0, -1, 0, -1 };
  info->Get(vtkStreamingDemandDrivenPipeline::WHOLE_EXTENT(), whole.data());
  const int expected = (whole[1] + 1) * (whole[3] + 1);
  if (heads.size() != atlas::ToIndex(expected))
  {
    throw atlas::ModelError("Head Scores: expected a recording with " + std::to_string(expected) +
                            " heads, as its field data say, found " + std::to_string(heads.size()) +
                            "; extract no blocks of it.");
  }
  const std::vector<std::size_t> shown = AttentionAtlas::BeginImage(info); // heads of the points
  auto* image = vtkImageData::GetData(info);
  vtkPointData* data = image->GetPointData();
  for (const auto& [name, values] : this->columns)
  {
    data->AddArray(AttentionAtlas::MakeArray<vtkDoubleArray>(
      name, shown, [&list = values](std::size_t head) { return list[head]; }));
  }
  data->AddArray(AttentionAtlas::MakeArray<vtkIntArray>(
    Names::Layer, shown, [&](std::size_t head) { return static_cast<int>(heads[head].layer); }));
  data->AddArray(AttentionAtlas::MakeArray<vtkIntArray>(
    Names::Head, shown, [&](std::size_t head) { return static_cast<int>(heads[head].head); }));
  data->SetActiveScalars(
    data->HasArray(Names::Induction) != 0 ? Names::Induction : Names::PreviousToken);
  AttentionAtlas::SetFormat(image, AttentionAtlas::Formats::HeadScoresImage);
}

namespace
{

/// The numbers of layers and heads beside their rows and columns.
void MakeTitles(const std::vector<HeadPlace>& heads, vtkPolyData* output)
{
  AttentionAtlas::PanelTitles titles;
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
  titles.MoveTo(output, AttentionAtlas::Formats::HeadScoresTitles);
}

}

vtkHeadScores::vtkHeadScores()
  : Known(std::make_unique<Work>())
{
  this->SetNumberOfInputPorts(2);
  this->SetNumberOfOutputPorts(3);
}

vtkHeadScores::~vtkHeadScores() = default;

int vtkHeadScores::FillInputPortInformation(int port, vtkInformation* info)
{
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkMultiBlockDataSet");
  if (port == 1)
  {
    info->Set(vtkAlgorithm::INPUT_IS_OPTIONAL(), 1);
  }
  return 1;
}

int vtkHeadScores::FillOutputPortInformation(int port, vtkInformation* info)
{
  constexpr std::array<const char*, 3> Types = { "vtkTable", "vtkImageData", "vtkPolyData" };
  info->Set(vtkDataObject::DATA_TYPE_NAME(), Types.at(atlas::ToIndex(port)));
  return 1;
}

int vtkHeadScores::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = AttentionAtlas::UpdateRecording(this);
  const bool isEmpty = AttentionAtlas::IsEmpty(recording);
  // Never an empty image: VTK would not execute this rank, for which the others would wait.
  AttentionAtlas::AnnounceImage(
    isEmpty ? 1 : AttentionAtlas::RecordingRanges(recording).head[1] + 1,
    isEmpty ? 1 : static_cast<int>(AttentionAtlas::RecordedLayers(recording).size()),
    outputVector->GetInformationObject(1), VTK_DOUBLE);
  for (const int port : { 0, 2 })
  {
    outputVector->GetInformationObject(port)->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
  }
  return 1;
}

int vtkHeadScores::RequestUpdateExtent(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector*)
{
  AttentionAtlas::KeepRequest(
    inputVector[0]->GetInformationObject(0)); // whatever part of the image
  return 1;
}

/// Measures the heads of this rank.
void vtkHeadScores::MeasurePart(vtkMultiBlockDataSet* input, vtkMultiBlockDataSet* model,
  const AttentionAtlas::RankGroup& ranks, Work& work)
{
  const atlas::Recording recording = AttentionAtlas::ToRecording(input);
  const std::vector<atlas::RepeatedTokens> tokens = TokensOf(recording);
  work.knowsTokens = !tokens.empty() && tokens.front().AreKnown();
  work.repeats = std::any_of(tokens.begin(), tokens.end(),
    [](const atlas::RepeatedTokens& sequence) { return sequence.Period() > 0; });
  const AttentionAtlas::HeadBlocks blocks(recording, ranks);
  work.heads = blocks.GetHeads();
  std::vector<PatternSums> sums(blocks.GetBlocks().size());
  work.result.cancelled = !blocks.Run(this,
    [&](std::size_t begin, std::size_t end)
    {
      std::vector<float> weights;
      for (std::size_t b = begin; b < end; ++b)
      {
        const AttentionAtlas::QueryBlock& block = blocks.GetBlocks()[b];
        const HeadPlace& place = blocks.GetMine()[block.head];
        sums[b] = atlas::MeasurePatterns(recording, tokens[atlas::ToIndex(block.sequence)],
          block.sequence, place.layer, place.head, block.begin, block.end,
          { this->ExcludeFirst, this->ExcludeCurrent }, weights);
      }
    });
  work.sums.resize(blocks.GetMine().size());
  for (std::size_t b = 0; b < sums.size(); ++b)
  {
    work.sums[blocks.GetBlocks()[b].head].Add(sums[b]);
  }
  if (AttentionAtlas::IsEmpty(model) || work.result.cancelled)
  {
    return;
  }
  std::vector<atlas::HeadPlace> mine;
  std::transform(blocks.GetMine().begin(), blocks.GetMine().end(), std::back_inserter(mine),
    [](const HeadPlace& place)
    {
      return atlas::HeadPlace{ static_cast<std::int32_t>(place.layer),
        static_cast<std::int32_t>(place.head) };
    });
  const auto transformer = AttentionAtlas::ToTransformer(model);
  work.copying =
    atlas::MeasureCopying(recording, transformer->GetModel(), mine, AttentionAtlas::ThreadLimit(),
      [this](double done) { return AttentionAtlas::ReportProgress(this, done); });
  work.result.cancelled = !work.copying;
}

/// Measures what is not known, with all ranks. Returns false if the user has canceled.
bool vtkHeadScores::MeasureHeads(
  vtkMultiBlockDataSet* input, vtkMultiBlockDataSet* model, const AttentionAtlas::RankGroup& ranks)
{
  auto work = std::make_unique<Work>();
  work->wanted = { AttentionAtlas::TimeOf(input), AttentionAtlas::TimeOf(model), this->ExcludeFirst,
    this->ExcludeCurrent, ranks.Rank(), ranks.Count() };
  if (this->Known->wanted == work->wanted)
  {
    return true;
  }
  try
  {
    this->MeasurePart(input, model, ranks, *work);
  }
  catch (const std::exception& e)
  {
    work->result.error = e.what();
  }
  try
  {
    if (!ranks.Agree(work->result))
    {
      return false;
    }
    const std::size_t heads = work->heads.size();
    work->sums = AttentionAtlas::GatherHeads(ranks, work->sums, heads, 1);
    std::optional<std::vector<double>>& copying = work->copying;
    if (copying)
    {
      copying = AttentionAtlas::GatherHeads(ranks, *copying, heads, 1);
    }
  }
  catch (const std::exception& e)
  {
    if (ranks.Leave(e))
    {
      return false;
    }
    work->result.error = e.what();
  }
  this->Known = std::move(work);
  return true;
}

/// The scores of all heads.
vtkHeadScores::Scores vtkHeadScores::ScoresOf(const Work& work) const
{
  if (!work.result.error.empty())
  {
    throw std::runtime_error(work.result.error);
  }
  const auto measure = static_cast<atlas::PatternMeasure>(this->Measure);
  if (measure == atlas::PatternMeasure::Stripe && work.knowsTokens && !work.repeats)
  {
    throw atlas::OptionError(
      "Measure Stripe: expected a sequence that repeats a block of tokens, such as those of Random "
      "Prompts with Kind RepeatedBlock, found none.");
  }
  const std::vector<PatternSums>& sums = work.sums;
  Scores scores;
  const auto addPattern = [&](const char* name, HeadPattern pattern)
  { scores.Add(name, sums, [=](const PatternSums& sum) { return sum.Score(pattern, measure); }); };
  addPattern(Names::PreviousToken, HeadPattern::PreviousToken);
  if (work.knowsTokens)
  {
    addPattern(Names::DuplicateToken, HeadPattern::DuplicateToken);
    addPattern(Names::Induction, HeadPattern::Induction);
    scores.Add(
      Names::PrefixMatching, sums, [](const PatternSums& sum) { return sum.PrefixMatching(); });
  }
  if (work.copying)
  {
    scores.columns.emplace_back(Names::Copying, *work.copying);
  }
  scores.Add(Names::Sink, sums, [](const PatternSums& sum) { return sum.Sink(); });
  return scores;
}

int vtkHeadScores::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* input = vtkMultiBlockDataSet::GetData(inputVector[0]);
  auto* model = inputVector[1]->GetNumberOfInformationObjects() > 0
                  ? vtkMultiBlockDataSet::GetData(inputVector[1])
                  : nullptr;
  const auto clear = [outputVector]()
  {
    for (int port = 0; port < 3; ++port)
    {
      vtkDataObject::GetData(outputVector, port)->Initialize();
    }
  };
  clear();
  const AttentionAtlas::RankGroup ranks(outputVector);
  if (ranks.Any(AttentionAtlas::IsEmpty(input))) // a rank without one has told why
  {
    return 1;
  }
  if (ranks.Any(AttentionAtlas::IsEmpty(model)))
  {
    model = nullptr;
  }
  if (!this->MeasureHeads(input, model, ranks))
  {
    return AttentionAtlas::LeaveUnfinished(this, outputVector);
  }
  try
  {
    const Scores scores = this->ScoresOf(*this->Known);
    scores.MakeImage(this->Known->heads, outputVector);
    if (AttentionAtlas::IsFirstPiece(outputVector))
    {
      scores.MakeTable(this->Known->heads, vtkTable::GetData(outputVector, 0));
      MakeTitles(this->Known->heads, vtkPolyData::GetData(outputVector, 2));
    }
  }
  catch (const std::exception& e)
  {
    if (ranks.Leave(e))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    clear();
    if (ranks.Rank() == 0 && this->Errors.IsNew(this))
    {
      vtkErrorMacro(<< e.what());
    }
  }
  return 1; // as in vtkModelAlgorithm
}

void vtkHeadScores::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Measure: " << this->Measure << "\n";
  os << indent << "ExcludeFirst: " << this->ExcludeFirst << "\n";
  os << indent << "ExcludeCurrent: " << this->ExcludeCurrent << "\n";
}
