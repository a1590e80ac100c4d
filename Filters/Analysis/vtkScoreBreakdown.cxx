#include "vtkScoreBreakdown.h"

#include "Analysis/RecordedModel.h"
#include "Analysis/ScoreBreakdown.h"
#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "Recording/RecordedAttention.h"
#include "RecordingConversion.h"
#include "Task.h"
#include "TokenColumns.h"
#include "TokenText.h"
#include "TransformerConversion.h"

#include <vtkDataSetAttributes.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::QueriesPerBlock;
using atlas::ScoreParts;

/// Blocks between two reports of progress, each a chance to cancel.
constexpr std::int64_t BlocksPerStep = 64;

}

vtkStandardNewMacro(vtkScoreBreakdown);

/// The scores of a head, and where they belong.
struct vtkScoreBreakdown::Scores
{
  std::int64_t sequence;
  atlas::HeadPlace place;
  std::int64_t top;   ///< per query
  std::int64_t begin; ///< of the queries
  std::int64_t end;
  std::vector<float> queryBias;
  atlas::KeyScores keys;
  std::vector<ScoreParts> parts;

  Scores(const atlas::Recording& recording, const atlas::Transformer& model,
    const vtkScoreBreakdown& filter);

  void RequireMemory(const atlas::Recording& recording) const;
  void Evaluate(const atlas::Recording& recording, const atlas::Progress& progress);
  void FillScores(const atlas::Recording& recording, vtkTable* table) const;
  void FillKeys(const atlas::Recording& recording, vtkTable* table) const;
};

vtkScoreBreakdown::Scores::Scores(const atlas::Recording& recording,
  const atlas::Transformer& model, const vtkScoreBreakdown& filter)
  : sequence(filter.Sequence)
  , place{ filter.Layer, filter.Head }
  , queryBias(atlas::QueryBias(
      model, filter.Layer, filter.Head, static_cast<atlas::AttentionKind>(filter.AttentionKind)))
  , keys(atlas::EvaluateKeyScores(
      recording, this->sequence, filter.Layer, filter.Head, this->queryBias))
{
  const atlas::KeyRange queries = atlas::QueryPositions(recording, this->sequence);
  const std::int64_t length = queries.end - queries.begin;
  atlas::ThrowIf<atlas::OptionError>(filter.Query < -1 || filter.Query >= length,
    "Query: expected a position from 0 to ", length - 1, ", or -1 for all, found ", filter.Query,
    ".");
  atlas::ThrowIf<atlas::OptionError>(
    filter.Top < 0, "Top: expected at least 1, or 0 for all, found ", filter.Top, ".");
  this->begin = queries.begin + std::max(filter.Query, 0);
  this->end = filter.Query == -1 ? queries.end : this->begin + 1;
  this->top = filter.Top == 0 ? queries.end : std::min<std::int64_t>(filter.Top, queries.end);
  this->RequireMemory(recording);
}

void vtkScoreBreakdown::Scores::RequireMemory(const atlas::Recording& recording) const
{
  const auto queries = static_cast<double>(this->end - this->begin);
  const double share = recording.mask == atlas::AttentionMask::Causal ? 0.5 : 1;
  const double rows =
    queries * std::min(static_cast<double>(this->top), share * static_cast<double>(this->end) + 1);
  AttentionAtlas::RequireMemory(rows * (2. * sizeof(ScoreParts) + 5. * sizeof(int) +
                                         sizeof(vtkIdType) + 2. * sizeof(std::string)),
    "about " + std::to_string(static_cast<std::int64_t>(rows)) + " scores",
    "choose a Query, or the Top scores of each.");
}

/// Splits the scores in blocks on several threads.
void vtkScoreBreakdown::Scores::Evaluate(
  const atlas::Recording& recording, const atlas::Progress& progress)
{
  const std::int64_t first = this->begin / QueriesPerBlock;
  const std::int64_t count = (this->end + QueriesPerBlock - 1) / QueriesPerBlock - first;
  std::vector<std::vector<ScoreParts>> blocks(count);
  ParallelSteps(count, BlocksPerStep, progress,
    [&](vtkIdType firstBlock, vtkIdType endBlock)
    {
      for (vtkIdType b = firstBlock; b < endBlock; ++b)
      {
        const std::int64_t query = (first + b) * QueriesPerBlock;
        atlas::AppendScoreParts(recording, this->sequence, this->place.layer, this->place.head,
          this->queryBias, this->keys, std::max(query, this->begin),
          std::min(query + QueriesPerBlock, this->end), this->top, blocks[b]);
      }
    });
  for (std::vector<ScoreParts>& block : blocks)
  {
    this->parts.insert(this->parts.end(), block.begin(), block.end());
    block = {};
  }
}

void vtkScoreBreakdown::Scores::FillScores(const atlas::Recording& recording, vtkTable* table) const
{
  const std::int64_t first = recording.sequenceOffsets[this->sequence];
  const std::int64_t length = recording.SequenceLength(this->sequence);
  std::vector<std::string> texts;
  texts.reserve(length);
  for (std::int64_t i = 0; i < length; ++i)
  {
    texts.push_back(TokenText(recording, first + i));
  }
  const std::int64_t firstQuery = atlas::QueryPositions(recording, this->sequence).begin;
  vtkDataSetAttributes* data = table->GetRowData();
  const ListArrays arrays(this->parts, data);
  arrays.Int(Names::Layer, [&](const ScoreParts&) { return this->place.layer; })
    .Int(Names::Head, [&](const ScoreParts&) { return this->place.head; })
    .Int(Names::Sequence, [&](const ScoreParts&) { return this->sequence; })
    .Int(Names::Query, [&](const ScoreParts& part) { return part.query - firstQuery; })
    .Int(Names::Key, &ScoreParts::key)
    .Int(Names::Rank, &ScoreParts::rank)
    .Float(Names::Score, &ScoreParts::score)
    .Float(Names::Alibi, &ScoreParts::alibi);
  const atlas::RecordedLayer& layer = atlas::FindLayer(recording, this->place.layer);
  if (recording.distanceBias.IsRecorded() || layer.distanceBias.IsRecorded() ||
      layer.patchBias.IsRecorded())
  {
    arrays.Float(Names::DistanceBias, &ScoreParts::distance);
  }
  if (layer.positionKeys.IsRecorded() || layer.positionQueries.IsRecorded())
  {
    arrays.Float(Names::ContentToPosition, &ScoreParts::contentToPosition)
      .Float(Names::PositionToContent, &ScoreParts::positionToContent);
  }
  arrays.Float(Names::Bias, &ScoreParts::bias)
    .Float(Names::Attention, &ScoreParts::attention)
    .Id(Names::TokenIndex, [&](const ScoreParts& part) { return first + part.query; })
    .Text(Names::Token, [&](const ScoreParts& part) { return texts[part.query]; })
    .Text(Names::KeyToken, [&](const ScoreParts& part) { return texts[part.key]; });
  data->SetPedigreeIds(data->GetAbstractArray(Names::TokenIndex));
  SetFormat(table, Formats::ScoreBreakdown);
}

void vtkScoreBreakdown::Scores::FillKeys(const atlas::Recording& recording, vtkTable* table) const
{
  const std::int64_t keyCount = atlas::KeyPositions(recording, this->sequence).end;
  std::vector<std::int64_t> rows(keyCount);
  std::iota(rows.begin(), rows.end(), recording.sequenceOffsets[this->sequence]);
  AddTokenColumns(recording, { this->place }, rows, table);
  const auto ofKeys = [&](const std::vector<float>& values)
  { return atlas::WithoutMean({ values.begin(), values.begin() + keyCount }); };
  AddColumn<vtkDoubleArray>(table, Names::Alibi, ofKeys(this->keys.alibi));
  AddColumn<vtkDoubleArray>(table, Names::Bias, ofKeys(this->keys.bias));
  SetFormat(table, Formats::ScoreBreakdownKeys);
}

vtkScoreBreakdown::vtkScoreBreakdown()
  : vtkHeadAlgorithm(WITHOUT_MEANS, { "vtkMultiBlockDataSet", "vtkMultiBlockDataSet?" },
      { "vtkTable", "vtkTable" })
{
}

void vtkScoreBreakdown::Execute(Task& task)
{
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  if (IsEmpty(input) || !task.IsFirst())
  {
    return;
  }
  const atlas::Recording recording = ToRecording(input);
  const auto transformer = ToTransformer(task.Input<vtkMultiBlockDataSet>(1));
  atlas::RequireSamePart(recording, transformer->GetModel(),
    static_cast<atlas::AttentionKind>(this->AttentionKind), "Score Breakdown");
  Scores scores(recording, transformer->GetModel(), *this);
  scores.Evaluate(recording, task.Progress());
  scores.FillScores(recording, task.Output<vtkTable>(0));
  scores.FillKeys(recording, task.Output<vtkTable>(1));
  this->AddKind(task.Output<vtkTable>(0));
  this->AddKind(task.Output<vtkTable>(1));
}
