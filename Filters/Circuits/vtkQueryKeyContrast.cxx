#include "vtkQueryKeyContrast.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Circuits/QueryKeyContrast.h"
#include "DataFormat.h"
#include "Embedding/JointVectors.h"
#include "EmbeddingOutput.h"
#include "ListArrays.h"
#include "Recording/RecordingQuantities.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"

#include <vtkCompositeDataSet.h>
#include <vtkDataArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::HeadContrast;

constexpr std::array<const char*, 3> ByNames = { "Same Token", "Previous Token", "Column" };

/// Numbers the different values of a list in the order of their first appearance.
template<class Value>
std::vector<std::int64_t> Numbered(const std::vector<Value>& values)
{
  std::map<Value, std::int64_t> numbers;
  std::vector<std::int64_t> groups;
  groups.reserve(values.size());
  for (const Value& value : values)
  {
    groups.push_back(
      numbers.emplace(value, static_cast<std::int64_t>(numbers.size())).first->second);
  }
  return groups;
}

vtkTable* TokensOf(vtkMultiBlockDataSet* recording)
{
  for (unsigned int i = 0; i < recording->GetNumberOfBlocks(); ++i)
  {
    const char* name = recording->HasMetaData(i) != 0
                         ? recording->GetMetaData(i)->Get(vtkCompositeDataSet::NAME())
                         : nullptr;
    if (name != nullptr && std::string(name) == "tokens")
    {
      return vtkTable::SafeDownCast(recording->GetBlock(i));
    }
  }
  return nullptr;
}

/// The groups of tokens with equal values in a column of the recording's tokens.
std::vector<std::int64_t> GroupsOfColumn(vtkTable* tokens, const std::string& name)
{
  vtkAbstractArray* column = tokens != nullptr ? tokens->GetColumnByName(name.c_str()) : nullptr;
  if (column == nullptr)
  {
    std::string names;
    for (vtkIdType i = 0; tokens != nullptr && i < tokens->GetNumberOfColumns(); ++i)
    {
      names += (i > 0 ? ", " : "") + std::string(tokens->GetColumnName(i));
    }
    throw atlas::OptionError(
      "Column: expected a column of the recording's tokens (", names, "), found '", name, "'.");
  }
  atlas::ThrowIf<atlas::OptionError>(column->GetNumberOfComponents() != 1, "Column '", name,
    "': expected one value per token, found ", column->GetNumberOfComponents(), ".");
  if (auto* texts = vtkStringArray::SafeDownCast(column))
  {
    std::vector<std::string> values;
    values.reserve(texts->GetNumberOfValues());
    for (vtkIdType i = 0; i < texts->GetNumberOfValues(); ++i)
    {
      values.emplace_back(texts->GetValue(i));
    }
    return Numbered(values);
  }
  auto* numbers = vtkDataArray::SafeDownCast(column);
  if (numbers == nullptr)
  {
    throw atlas::OptionError(
      "Column '", name, "': expected numbers or texts, found a ", column->GetClassName(), ".");
  }
  std::vector<double> values;
  for (vtkIdType i = 0; i < numbers->GetNumberOfTuples(); ++i)
  {
    values.push_back(numbers->GetComponent(i, 0));
    atlas::ThrowIf<atlas::OptionError>(std::isnan(values.back()), "Column '", name,
      "': expected numbers or texts, found NaN in row ", i, ".");
  }
  return Numbered(values);
}

/// The groups of equal tokens: of equal ids or, if these are unknown, texts. In cross attention of
/// equal texts, if they are known, as source and target may have vocabularies of their own.
std::vector<std::int64_t> GroupsOfTokens(const atlas::Recording& recording)
{
  const atlas::RecordedTokens& tokens = recording.tokens;
  const bool isCross = recording.mask == atlas::AttentionMask::Cross;
  if (!tokens.id.empty() && !(isCross && !tokens.text.empty()))
  {
    return tokens.id;
  }
  atlas::ThrowIf<atlas::OptionError>(tokens.text.empty(),
    "By Same Token: expected token ids or texts in the recording, found none; choose a column.");
  return Numbered(tokens.text);
}

/// The root mean square of numbers.
double RootMeanSquare(const float* values, std::size_t count)
{
  const double squares = std::inner_product(values, values + count, values, 0.);
  return std::sqrt(squares / static_cast<double>(count));
}

/// A head as vtkHeadEmbedding lays it out: the projections, on a common scale.
std::shared_ptr<atlas::HeadLayout> LayoutOf(
  const atlas::Recording& recording, const HeadContrast& contrast, const atlas::JointRows& rows)
{
  auto layout = std::make_shared<atlas::HeadLayout>();
  layout->place = contrast.place;
  layout->points = atlas::ProjectOnContrast(recording, contrast, rows.queries, rows.keys);
  const std::size_t begin = 3 * rows.queries.size(); // of the keys
  const double queries = RootMeanSquare(layout->points.data(), begin);
  const double keys = RootMeanSquare(layout->points.data() + begin, 3 * rows.keys.size());
  const auto scale = queries > 0 && keys > 0 ? static_cast<float>(std::sqrt(queries / keys)) : 1.F;
  for (std::size_t i = 0; i < layout->points.size(); ++i)
  {
    layout->points[i] *= i < begin ? 1 / scale : scale;
  }
  const atlas::RecordedHead& head =
    atlas::FindHead(recording, contrast.place.layer, contrast.place.head);
  for (const auto& [matrix, ofPart] :
    { std::pair(&head.query, &rows.queries), std::pair(&head.key, &rows.keys) })
  {
    for (const std::int64_t row : *ofPart)
    {
      const float* values = matrix->Row(row);
      layout->norms.push_back(static_cast<float>(
        std::sqrt(std::inner_product(values, values + matrix->columns, values, 0.))));
    }
  }
  return layout;
}

void AddProjections(const atlas::Recording& recording, const atlas::QueryKeyContrast& contrast,
  const atlas::JointRows& rows, vtkPolyData* output)
{
  const auto array = NewTuples<vtkFloatArray>(Names::Projection, 3, output->GetNumberOfPoints());
  float* next = array->GetPointer(0);
  for (const HeadContrast& head : contrast.heads)
  {
    const std::vector<float> projected =
      atlas::ProjectOnContrast(recording, head, rows.queries, rows.keys);
    next = std::copy(projected.begin(), projected.end(), next);
  }
  output->GetPointData()->AddArray(array);
}

/// A singular value of a head.
struct Component
{
  const HeadContrast* head;
  std::size_t index;

  double Value() const { return this->head->singularValues[this->index]; }
  double Share() const
  {
    const std::vector<double>& all = this->head->singularValues;
    const double sum = std::inner_product(all.begin(), all.end(), all.begin(), 0.);
    return sum > 0 ? this->Value() * this->Value() / sum : 0;
  }
};

void FillTable(const atlas::QueryKeyContrast& contrast, vtkTable* table)
{
  std::vector<Component> rows;
  for (const HeadContrast& head : contrast.heads)
  {
    for (std::size_t r = 0; r < head.singularValues.size(); ++r)
    {
      rows.push_back({ &head, r });
    }
  }
  ListArrays(rows, table->GetRowData())
    .Int(Names::Layer, [](const Component& c) { return c.head->place.layer; })
    .Int(Names::Head, [](const Component& c) { return c.head->place.head; })
    .Int(Names::Index, &Component::index)
    .Double(Names::SingularValue, [](const Component& c) { return c.Value(); })
    .Double(Names::Share, [](const Component& c) { return c.Share(); })
    .Double(Names::ScoreDifference, [](const Component& c) { return c.head->scoreDifference; });
}

std::vector<std::string> LeftOut(const atlas::Recording& recording)
{
  std::vector<std::string> left;
  if (recording.mask == atlas::AttentionMask::Causal)
  {
    left.emplace_back("keys behind the query");
  }
  const auto has = [&](auto isThere)
  { return std::any_of(recording.layers.begin(), recording.layers.end(), isThere); };
  if (has([](const atlas::RecordedLayer& layer) { return layer.window > 0; }))
  {
    left.emplace_back("keys outside the windows of layers");
  }
  if (has([](const atlas::RecordedLayer& layer) { return layer.chunk > 0; }))
  {
    left.emplace_back("keys before the chunks of layers");
  }
  if (has([](const atlas::RecordedLayer& layer) { return layer.scoreCap > 0; }))
  {
    left.emplace_back("the cap of scores");
  }
  if (!recording.alibiSlopes.empty())
  {
    left.emplace_back("ALiBi positions");
  }
  if (recording.distanceBias.IsRecorded() || has(atlas::HasOwnBias))
  {
    left.emplace_back("what depends on distances");
  }
  return left;
}

}

vtkStandardNewMacro(vtkQueryKeyContrast);

vtkQueryKeyContrast::vtkQueryKeyContrast()
  : vtkRecordingAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkPolyData", "vtkTable", "vtkPolyData" })
{
}

int vtkQueryKeyContrast::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  const RecordingRanges ranges(this->OutlineOfPart());
  this->SequenceRange[1] = ranges.sequence[1];
  this->LayerRange[1] = ranges.layer[1];
  this->HeadRange[1] = ranges.head[1];
  for (int port = 0; port < 3; ++port)
  {
    outputVector->GetInformationObject(port)->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
  }
  return 1;
}

atlas::QueryKeyContrastOptions vtkQueryKeyContrast::OptionsOf(
  const atlas::Recording& recording, vtkMultiBlockDataSet* input, const Task& task)
{
  atlas::QueryKeyContrastOptions options;
  if (this->By == SAME_TOKEN)
  {
    options.group = GroupsOfTokens(recording);
  }
  else if (this->By == COLUMN)
  {
    options.group = GroupsOfColumn(TokensOf(input), this->Column);
  }
  options.distance = this->Distance;
  options.includesSelf = this->IncludeSelf;
  options.layer = this->Layer;
  options.head = this->Head;
  options.sequence = this->Sequence;
  options.threads = ThreadLimit();
  options.progress = task.Progress().Part(0, 0.9);
  return options;
}

void vtkQueryKeyContrast::MakeOutputs(const atlas::Recording& recording,
  const atlas::QueryKeyContrast& contrast, vtkInformationVector* outputVector) const
{
  const atlas::JointRows rows = atlas::ChooseTokens(recording, { this->Sequence, 0, 0 });
  const double points =
    static_cast<double>(rows.Points()) * static_cast<double>(contrast.heads.size());
  RequireMemory(points * (BytesPerPoint() + 28),
    "the queries and keys of " + std::to_string(contrast.heads.size()) + " heads",
    "choose fewer layers, heads or sequences.");
  atlas::LayoutOptions options;
  options.method = atlas::LayoutMethod::Principal;
  options.dimensions = 3;
  EmbeddedHeads heads{ recording, rows, options, true, this->Layer >= 0 && this->Head >= 0, 0, {},
    true };
  for (const HeadContrast& head : contrast.heads)
  {
    heads.layouts.push_back(LayoutOf(recording, head, rows));
  }
  auto* output = vtkPolyData::GetData(outputVector, 0);
  AddPointArrays(heads, output);
  PlacePoints(heads, output);
  output->GetFieldData()->RemoveArray("Method");
  AddProjections(recording, contrast, rows, output);
  FillTable(contrast, vtkTable::GetData(outputVector, 1));
  MakeTitles(heads, vtkPolyData::GetData(outputVector, 2));
  const std::array<const char*, 3> formats = { Formats::QueryKeyContrast,
    Formats::QueryKeyContrastTable, Formats::QueryKeyContrastTitles };
  for (int port = 0; port < 3; ++port)
  {
    vtkDataObject* data = vtkDataObject::GetData(outputVector, port);
    SetFormat(data, formats.at(port));
    this->AddKind(data);
    vtkFieldData* fields = data->GetFieldData();
    AddField(fields, Names::By, std::string(ByNames.at(this->By)));
    AddField(fields, Names::PairsInSet, static_cast<double>(contrast.pairs));
    AddField(fields, Names::OtherPairs, static_cast<double>(contrast.others));
    fields->AddArray(MakeArray<vtkStringArray>(Names::LeftOut, LeftOut(recording)));
  }
}

void vtkQueryKeyContrast::Execute(Task& task)
{
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  if (IsEmpty(input) || !task.IsFirst())
  {
    return;
  }
  const atlas::Recording recording = ToRecording(input);
  this->MakeOutputs(recording,
    atlas::FindQueryKeyContrast(recording, this->OptionsOf(recording, input, task)),
    task.Outputs());
}
