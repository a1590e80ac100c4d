#include "vtkScoreAttribution.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Circuits/ScoreAttribution.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "RecordingConversion.h"
#include "StreamModel.h"
#include "Task.h"
#include "TokenText.h"
#include "TransformerConversion.h"

#include <vtkDataSetAttributes.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <tuple>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::NamedComponent;
using atlas::ScorePair;
using atlas::ScoreTerms;

constexpr int ScoreImage = 0;
constexpr int ScoreTable = 1;

/// Adds the arrays that points of the image and rows of the table have in common.
void AddArrays(const ScoreTerms& terms, const std::vector<ScorePair>& pairs, vtkFieldData* data)
{
  const auto query = [&](const ScorePair& pair) -> const NamedComponent&
  { return terms.queries[pair.query]; };
  const auto key = [&](const ScorePair& pair) -> const NamedComponent&
  { return terms.keys[pair.key]; };
  ListArrays(pairs, data)
    .Text(Names::QueryComponent, [&](const ScorePair& pair) { return query(pair).name; })
    .Text(Names::KeyComponent, [&](const ScorePair& pair) { return key(pair).name; })
    .Double(Names::ScoreContribution,
      [&](const ScorePair& pair) { return terms.values(pair.query, pair.key); })
    .Int(Names::QueryLayer, [&](const ScorePair& pair) { return query(pair).component.layer; })
    .Int(Names::QueryHead, [&](const ScorePair& pair) { return query(pair).component.head; })
    .Int(Names::KeyLayer, [&](const ScorePair& pair) { return key(pair).component.layer; })
    .Int(Names::KeyHead, [&](const ScorePair& pair) { return key(pair).component.head; });
}

void AddFields(const atlas::Recording& recording, const ScoreTerms& terms, vtkFieldData* fields)
{
  const atlas::ScorePlace& place = terms.place;
  AddField(fields, Names::Score, terms.score);
  AddField(fields, Names::Sum, terms.sum);
  AddField(fields, Names::Miss, terms.sum - terms.score);
  AddSequence(static_cast<int>(place.sequence), SequenceText(recording, place.sequence), fields);
  AddField(fields, Names::Layer, place.layer);
  AddField(fields, Names::Head, place.head);
  AddField(fields, Names::Query, place.query);
  AddField(fields, Names::Key, place.key);
  const std::int64_t first = recording.sequenceOffsets[place.sequence];
  AddField(fields, "Query Text", TokenText(recording, first + place.query));
  AddField(fields, "Key Text", TokenText(recording, first + place.key));
}

void FillImage(const ScoreTerms& terms, bool processes, vtkInformation* info)
{
  std::vector<ScorePair> pairs;
  const std::size_t columns = terms.keys.size();
  for (const std::size_t cell : BeginImage(info))
  {
    pairs.push_back(
      { static_cast<std::int64_t>(cell / columns), static_cast<std::int64_t>(cell % columns) });
  }
  auto* image = vtkImageData::GetData(info);
  AddArrays(terms, pairs, image->GetPointData());
  image->GetPointData()->SetActiveScalars(Names::ScoreContribution);
  vtkFieldData* fields = image->GetFieldData();
  ListArrays(terms.queries, fields).Text(Names::QueryToken, &NamedComponent::name);
  ListArrays(terms.keys, fields).Text(Names::KeyToken, &NamedComponent::name);
  Describe(image, Formats::ScoreAttribution, processes, {});
}

void FillTable(const ScoreTerms& terms, int top, bool processes, vtkTable* table)
{
  const std::vector<ScorePair> pairs = atlas::StrongestPairs(terms, top);
  ListArrays(pairs, table->GetRowData())
    .Int(Names::Rank, [rank = 0](const ScorePair&) mutable { return ++rank; });
  AddArrays(terms, pairs, table->GetRowData());
  Describe(table, Formats::ScoreAttributionPairs, processes, {});
}

/// The number of rows of the image.
int CountGroups(const atlas::TransformerConfig& config, bool hasAlibi, int layer, int grouping)
{
  const std::vector<NamedComponent> terms = atlas::ScoreComponents(config, layer, "b_Q", hasAlibi);
  return static_cast<int>(
    atlas::ComponentGroups(terms, static_cast<atlas::ComponentGrouping>(grouping)).groups.size());
}

}

vtkStandardNewMacro(vtkScoreAttribution);

/// What is kept between executions.
struct vtkScoreAttribution::Memory
{
  StreamModel stream;
  std::shared_ptr<const atlas::OpenTransformer> model; ///< of the head
  int layer = -1;
  int number = -1;
  atlas::ScoreHead head;

  const atlas::ScoreHead& Head(int ofLayer, int ofHead)
  {
    const auto& current = this->stream.GetOpenModel();
    if (this->model != current || this->layer != ofLayer || this->number != ofHead)
    {
      this->model = nullptr;
      this->head = atlas::ReadScoreHead(current->GetModel(), ofLayer, ofHead);
      std::tie(this->model, this->layer, this->number) = std::tie(current, ofLayer, ofHead);
    }
    return this->head;
  }
};

vtkScoreAttribution::vtkScoreAttribution()
  : vtkHeadAlgorithm(WITHOUT_MEANS, { "vtkMultiBlockDataSet", "vtkMultiBlockDataSet?" },
      { "vtkImageData", "vtkTable" }, WHOLE_INPUT)
  , Kept(std::make_unique<Memory>())
{
}

int vtkScoreAttribution::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  this->Superclass::RequestInformation(request, inputVector, outputVector); // finds the ranges
  vtkMultiBlockDataSet* recording = OutlineOfRecording(this);
  std::fill_n(this->PositionRange, 2, 0);
  int size = 0;
  if (!IsEmpty(recording))
  {
    this->PositionRange[0] = -1;
    this->PositionRange[1] = SequenceTokens(recording, std::max(this->Sequence, 0)) - 1;
    size = 1; // also if something is wrong, which RequestData tells
    try
    {
      const auto model = ToTransformer(vtkMultiBlockDataSet::SafeDownCast(OutlineOf(this, 1)));
      const bool hasAlibi = recording->GetFieldData()->HasArray(AlibiSlopesField) != 0;
      size = CountGroups(model->GetModel().GetConfig(), hasAlibi,
        std::clamp(this->Layer, 0, this->GetLayerRange()[1]), this->Grouping);
    }
    catch (const std::exception&)
    {
      size = 1;
    }
  }
  AnnounceImage(size, size, outputVector->GetInformationObject(ScoreImage), VTK_DOUBLE);
  return 1;
}

void vtkScoreAttribution::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input))
  {
    return;
  }
  const atlas::Recording recording = ToRecording(input);
  const auto model = ToTransformer(task.Input<vtkMultiBlockDataSet>(1));
  const bool processes = this->Processing == TRANSFORMER_LENS;
  this->Kept->stream.Open(model, processes, input, recording, "Score Attribution");
  atlas::ThrowIf<atlas::OptionError>(
    this->Top < 1, "Top: expected at least 1, found ", this->Top, ".");
  task.Progress()(0.3);
  const atlas::ScoreHead& head = this->Kept->Head(this->Layer, this->Head);
  task.Progress()(0.6);
  const ScoreTerms terms =
    atlas::Grouped(atlas::AttributeScore(recording, this->Kept->stream.GetWeights(), head,
                     { this->Sequence, this->Layer, this->Head, this->Query, this->Key }),
      static_cast<atlas::ComponentGrouping>(this->Grouping));
  FillImage(terms, processes, task.OutputInformation(ScoreImage));
  AddFields(recording, terms, task.Output<vtkImageData>(ScoreImage)->GetFieldData());
  if (task.IsFirst())
  {
    auto* table = task.Output<vtkTable>(ScoreTable);
    FillTable(terms, this->Top, processes, table);
    AddFields(recording, terms, table->GetFieldData());
  }
}
