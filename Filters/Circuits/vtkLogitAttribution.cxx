#include "vtkLogitAttribution.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Circuits/LogitAttribution.h"
#include "Circuits/LogitLens.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "RecordingConversion.h"
#include "StreamModel.h"
#include "Task.h"
#include "TokenNames.h"
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
#include <exception>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::LogitTarget;
using atlas::NamedComponent;

constexpr int AttributionTable = 0;
constexpr int AttributionImage = 1;

/// A term: a row of the table or a point of the image.
struct Place
{
  const LogitTarget* target;
  const NamedComponent* component;
  double value;
};

}

vtkStandardNewMacro(vtkLogitAttribution);

/// What is kept between executions.
struct vtkLogitAttribution::Memory
{
  StreamModel stream;
  NamedToken target;
  NamedToken against;
};

/// The targets and what they consist of.
struct vtkLogitAttribution::Found
{
  const atlas::Recording& recording;
  TokenNames names;
  std::vector<LogitTarget> targets; ///< one per position
  atlas::LogitTerms terms;

  /// Adds the arrays that rows of the table and points of the image have in common.
  void AddArrays(const std::vector<Place>& places, vtkFieldData* data) const
  {
    const auto token = [](const Place& place) { return place.target->row; };
    ListArrays(places, data)
      .Text(Names::Component, [](const Place& place) { return place.component->name; })
      .Int(Names::Layer, [](const Place& place) { return place.component->component.layer; })
      .Int(Names::Head, [](const Place& place) { return place.component->component.head; })
      .Int(Names::Sequence,
        [&](const Place& place) { return this->recording.tokens.sequence[token(place)]; })
      .Int(Names::Position,
        [&](const Place& place) { return this->recording.tokens.position[token(place)]; })
      .Id(Names::TokenIndex, [](const Place& place) { return place.target->row; })
      .Text(Names::Token,
        [&](const Place& place) { return TokenText(this->recording, place.target->row); })
      .Int(Names::TokenId, [](const Place& place) { return place.target->id; })
      .Text(Names::Target, [&](const Place& place) { return this->names.Of(place.target->id); })
      .Double(Names::Contribution, &Place::value);
  }

  void AddFields(vtkFieldData* fields) const
  {
    std::vector<double> misses(this->terms.sums.size());
    std::transform(this->terms.sums.begin(), this->terms.sums.end(), this->terms.logits.begin(),
      misses.begin(), std::minus<>());
    ListArrays(this->terms.logits, fields).Double(Names::Logit);
    ListArrays(this->terms.sums, fields).Double(Names::Sum);
    ListArrays(misses, fields).Double(Names::Miss);
    if (this->targets.front().against >= 0)
    {
      AddField(fields, Names::Against, this->names.Of(this->targets.front().against));
      AddField(fields, Names::AgainstTokenId, this->targets.front().against);
    }
  }

  void FillTable(bool processes, vtkTable* table) const
  {
    std::vector<Place> places;
    for (std::size_t t = 0; t < this->targets.size(); ++t)
    {
      for (std::size_t c = 0; c < this->terms.components.size(); ++c)
      {
        places.push_back({ &this->targets[t], &this->terms.components[c],
          this->terms.values(static_cast<std::int64_t>(t), static_cast<std::int64_t>(c)) });
      }
    }
    vtkDataSetAttributes* rows = table->GetRowData();
    this->AddArrays(places, rows);
    rows->SetPedigreeIds(rows->GetAbstractArray(Names::TokenIndex));
    this->AddFields(table->GetFieldData());
    Describe(table, Formats::LogitAttribution, processes, {});
  }

  void FillImage(const atlas::ComponentGroups& groups, bool processes, vtkInformation* info) const
  {
    const std::int64_t count = this->targets.size();
    atlas::DoubleMatrix values = atlas::DoubleMatrix::Zero(groups.groups.size(), count);
    for (std::size_t c = 0; c < groups.groupOf.size(); ++c)
    {
      values.row(groups.groupOf[c]) +=
        this->terms.values.col(static_cast<std::int64_t>(c)).transpose();
    }
    std::vector<Place> places;
    for (const std::size_t cell : BeginImage(info, count, values.rows()))
    {
      places.push_back({ &this->targets[cell % this->targets.size()],
        &groups.groups[cell / this->targets.size()], values.data()[cell] });
    }
    auto* image = vtkImageData::GetData(info);
    this->AddArrays(places, image->GetPointData());
    image->GetPointData()->SetActiveScalars(Names::Contribution);
    vtkFieldData* fields = image->GetFieldData();
    this->AddFields(fields);
    ListArrays(this->targets, fields)
      .Text(Names::KeyToken,
        [this](const LogitTarget& target) { return TokenText(this->recording, target.row); });
    ListArrays(groups.groups, fields).Text(Names::QueryToken, &NamedComponent::name);
    const std::int32_t sequence = this->recording.tokens.sequence[this->targets.front().row];
    AddSequence(sequence, SequenceText(this->recording, sequence), fields);
    AddField(fields, Names::KeyTitle, "Token");
    AddField(fields, Names::QueryTitle, "Component");
    Describe(image, Formats::LogitAttributionImage, processes, {});
  }
};

vtkLogitAttribution::vtkLogitAttribution()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet", "vtkMultiBlockDataSet?" },
      { "vtkTable", "vtkImageData" }, WHOLE_INPUT)
  , Kept(std::make_unique<Memory>())
{
}

/// Announces the size of the image; that of one point if something is wrong, which RequestData
/// tells.
void vtkLogitAttribution::Announce(vtkInformation* info)
{
  vtkMultiBlockDataSet* recording = OutlineOfRecording(this);
  this->Ranges.Find(recording);
  std::fill_n(this->PositionRange, 2, 0);
  if (IsEmpty(recording))
  {
    AnnounceImage(0, 0, info, VTK_DOUBLE);
    return;
  }
  const int length = SequenceTokens(recording, std::max(this->Sequence, 0));
  this->PositionRange[0] = -1;
  this->PositionRange[1] = std::max(length - (this->Target == NEXT_TOKEN ? 2 : 1), 0);
  int columns = this->Position >= 0 ? 1 : this->Target == NEXT_TOKEN ? length - 1 : length;
  int rows = 1;
  try
  {
    const auto model = ToTransformer(vtkMultiBlockDataSet::SafeDownCast(OutlineOf(this, 1)));
    const atlas::TransformerConfig& config = model->GetModel().GetConfig();
    std::vector<NamedComponent> components = atlas::NamedComponentsBefore(config, config.layers);
    components.push_back({ "b_U", {}, false });
    rows = static_cast<int>(
      atlas::ComponentGroups(components, static_cast<atlas::ComponentGrouping>(this->Grouping))
        .groups.size());
  }
  catch (const std::exception&)
  {
    columns = 1;
  }
  AnnounceImage(std::max(columns, 1), rows, info, VTK_DOUBLE);
}

int vtkLogitAttribution::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  this->Announce(outputVector->GetInformationObject(AttributionImage));
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// The rows of the recording whose logits are asked for: the first, and the one after the last.
std::pair<std::int64_t, std::int64_t> vtkLogitAttribution::FindRows(
  const atlas::Recording& recording) const
{
  atlas::ThrowIf<atlas::OptionError>(
    this->Sequence < 0, "Sequence: expected 0 or more, found ", this->Sequence, ".");
  const bool isNext = this->Target == NEXT_TOKEN;
  const std::int64_t length = atlas::AttentionLength(recording, this->Sequence);
  const std::int64_t end = isNext ? length - 1 : length;
  atlas::ThrowIf<atlas::OptionError>(end == 0,
    "Target: expected a sequence of at least 2 tokens, since the last "
    "token has no next one, found 1; choose another Target.");
  atlas::ThrowIf<atlas::OptionError>(this->Position < -1 || this->Position >= end,
    "Position: expected a position from 0 to ", end - 1, ", or -1 for all",
    (isNext ? ", since the last token has no next one" : ""), ", found ", this->Position, ".");
  const std::int64_t first = recording.sequenceOffsets[this->Sequence];
  return this->Position == -1 ? std::pair(first, first + end)
                              : std::pair(first + this->Position, first + this->Position + 1);
}

/// The tokens whose logits are asked for at these rows.
std::vector<std::int32_t> vtkLogitAttribution::FindTargets(
  const atlas::Recording& recording, std::int64_t begin, std::int64_t end)
{
  const auto& model = this->Kept->stream.GetOpenModel();
  if (this->Target == PREDICTED)
  {
    return atlas::PredictedTokens(recording, model->GetModel(), begin, end, ThreadLimit());
  }
  if (this->Target == TOKEN)
  {
    return std::vector<std::int32_t>(
      end - begin, this->Kept->target.Find(model, this->TargetToken, "TargetToken"));
  }
  const std::vector<std::int64_t>& ids = recording.tokens.id;
  atlas::ThrowIf<atlas::OptionError>(
    ids.empty(), "Target: expected a recording with token ids, found none.");
  std::vector<std::int32_t> next;
  for (std::int64_t row = begin; row < end; ++row)
  {
    next.push_back(static_cast<std::int32_t>(ids[row + 1]));
  }
  return next;
}

/// The logits that are asked for, without their terms.
vtkLogitAttribution::Found vtkLogitAttribution::Find(const atlas::Recording& recording)
{
  const auto& model = this->Kept->stream.GetOpenModel();
  Found found{ recording, TokenNames(model), {}, {} };
  const auto [begin, end] = this->FindRows(recording);
  const atlas::TransformerConfig& config = model->GetModel().GetConfig();
  const std::size_t terms = atlas::ComponentsBefore(config, config.layers).size() + 1;
  RequireMemory(
    static_cast<double>(end - begin) * static_cast<double>(terms) *
      (2. * sizeof(Place) + 6. * sizeof(int) + 4. * sizeof(double) + 3. * sizeof(std::string)),
    std::to_string(end - begin) + " logits of " + std::to_string(terms) + " terms",
    "choose a Position.");
  const std::vector<std::int32_t> targets = this->FindTargets(recording, begin, end);
  const std::int32_t against =
    this->Against.empty() ? -1 : this->Kept->against.Find(model, this->Against, "Against");
  for (std::int64_t row = begin; row < end; ++row)
  {
    found.targets.push_back({ row, targets[row - begin], against });
  }
  return found;
}

void vtkLogitAttribution::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input))
  {
    return;
  }
  const atlas::Recording recording = ToRecording(input);
  const auto model = ToTransformer(task.Input<vtkMultiBlockDataSet>(1));
  const bool processes = this->Processing == TRANSFORMER_LENS;
  StreamModel& stream = this->Kept->stream;
  stream.Open(model, processes, input, recording, "Logit Attribution");
  Found found = this->Find(recording);
  found.terms = atlas::AttributeLogits(recording, stream.GetWeights(), found.targets,
    stream.GetLastMlps(), ThreadLimit(), task.Progress());
  if (task.IsFirst())
  {
    found.FillTable(processes, task.Output<vtkTable>(AttributionTable));
  }
  found.FillImage(atlas::ComponentGroups(
                    found.terms.components, static_cast<atlas::ComponentGrouping>(this->Grouping)),
    processes, task.OutputInformation(AttributionImage));
}
