#include "vtkAttentionMatrix.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Error.h"
#include "Execution.h"
#include "Index.h"
#include "MatrixPanels.h"
#include "PointArrays.h"
#include "PooledAttention.h"
#include "RankGroup.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"

#include <vtkDataSetAttributes.h>
#include <vtkFloatArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkTable.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::MatrixPanels;
using AttentionAtlas::PanelPoint;

namespace
{

constexpr double BytesPerPoint = sizeof(float) + 4 * sizeof(int);

/// The rows of a table of heads: layer, head and the number of a column, one after another.
std::vector<double> ScoresOf(vtkTable* table, const char* column)
{
  std::vector<double> scores;
  if (table == nullptr || table->GetNumberOfColumns() == 0)
  {
    return scores;
  }
  if (table->GetColumnByName(column) == nullptr)
  {
    throw atlas::OptionError(
      "SortBy: the table of heads has no column '" + std::string(column) + "'.");
  }
  const std::string advice = "give a table of heads, such as that of Head Scores.";
  const auto numbersOf = [&](const char* name)
  { return AttentionAtlas::RequireNumbers(table->GetRowData(), name, advice); };
  const std::vector<std::int64_t> layers = AttentionAtlas::Integers(numbersOf(Names::Layer));
  const std::vector<std::int64_t> heads = AttentionAtlas::Integers(numbersOf(Names::Head));
  vtkDataArray* numbers = numbersOf(column);
  for (std::size_t i = 0; i < layers.size(); ++i)
  {
    scores.insert(scores.end(), { static_cast<double>(layers[i]), static_cast<double>(heads[i]),
                                  numbers->GetComponent(static_cast<vtkIdType>(i), 0) });
  }
  return scores;
}

/// The scores of heads from the rows of the tables of all ranks.
std::map<atlas::HeadPlace, double> ByHead(const std::vector<double>& rows)
{
  std::map<atlas::HeadPlace, double> scores;
  for (std::size_t i = 0; i < rows.size(); i += 3)
  {
    scores[{ static_cast<std::int32_t>(rows[i]), static_cast<std::int32_t>(rows[i + 1]) }] =
      rows[i + 2];
  }
  return scores;
}

/// The point arrays of an image.
struct PointValues
{
  vtkNew<vtkFloatArray> values;
  vtkNew<vtkIntArray> layer;
  vtkNew<vtkIntArray> head;
  vtkNew<vtkIntArray> query;
  vtkNew<vtkIntArray> key;

  PointValues(const char* name, vtkIdType count)
  {
    this->values->SetName(name);
    this->layer->SetName(Names::Layer);
    this->head->SetName(Names::Head);
    this->query->SetName(Names::Query);
    this->key->SetName(Names::Key);
    this->values->SetNumberOfValues(count);
    for (vtkIntArray* array : this->Integers())
    {
      array->SetNumberOfValues(count);
    }
  }

  std::array<vtkIntArray*, 4> Integers()
  {
    return { this->layer, this->head, this->query, this->key };
  }

  void SetGap(vtkIdType i)
  {
    this->values->SetValue(i, std::numeric_limits<float>::quiet_NaN());
    for (vtkIntArray* array : this->Integers())
    {
      array->SetValue(i, -1);
    }
  }

  void AddTo(vtkPointData* data)
  {
    data->SetScalars(this->values);
    for (vtkIntArray* array : this->Integers())
    {
      data->AddArray(array);
    }
  }
};

}

vtkStandardNewMacro(vtkAttentionMatrix);

/// What was asked for, and the outcome. VTK executes an image filter again for another output or
/// extent, and whenever it has failed, which not all ranks need to do; so they exchange only what
/// is new.
struct vtkAttentionMatrix::Part
{
  using Wanted = std::tuple<vtkMTimeType, int, int, int, int, int, int, int>;

  Wanted wanted;                              ///< the input's time, the settings, and the rank
  std::pair<vtkMTimeType, std::string> order; ///< the time of the table of heads, and its column
  MatrixPanels panels;
  std::vector<float> values; ///< [heads of this rank, size, size], then those of all heads
  bool isPooled = false;     ///< whether `values` are those of all heads
  std::int64_t tokens = 0;
  std::vector<double> scores; ///< rows of the table of heads, which the first rank may have alone
  AttentionAtlas::RankResult result;
};

vtkAttentionMatrix::vtkAttentionMatrix()
  : Known(std::make_unique<Part>())
{
  this->SetNumberOfInputPorts(2);
  this->SetNumberOfOutputPorts(2);
}

vtkAttentionMatrix::~vtkAttentionMatrix()
{
  this->SetSortBy(nullptr);
}

int vtkAttentionMatrix::FillInputPortInformation(int port, vtkInformation* info)
{
  info->Set(
    vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), port == 0 ? "vtkMultiBlockDataSet" : "vtkTable");
  if (port == 1)
  {
    info->Set(vtkAlgorithm::INPUT_IS_OPTIONAL(), 1);
  }
  return 1;
}

int vtkAttentionMatrix::FillOutputPortInformation(int port, vtkInformation* info)
{
  info->Set(vtkDataObject::DATA_TYPE_NAME(), port == 0 ? "vtkImageData" : "vtkPolyData");
  return 1;
}

bool vtkAttentionMatrix::IsSorted()
{
  return this->SortBy != nullptr && *this->SortBy != '\0' &&
         this->GetNumberOfInputConnections(1) > 0;
}

MatrixPanels vtkAttentionMatrix::PanelsOf(vtkMultiBlockDataSet* recording, int tokens)
{
  const int heads =
    this->Quantity == ROLLOUT ? 0 : AttentionAtlas::RecordingRanges(recording).head[1] + 1;
  const int size = std::min(tokens, this->MaximumSize);
  return { this->Layer >= 0 ? std::vector<int>{ this->Layer }
                            : AttentionAtlas::RecordedLayers(recording),
    heads, size, this->IsSorted() };
}

int vtkAttentionMatrix::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = AttentionAtlas::UpdateRecording(this);
  const AttentionAtlas::RecordingRanges ranges(recording);
  const bool isEmpty = AttentionAtlas::IsEmpty(recording);
  this->SequenceRange[0] = this->LayerRange[0] = isEmpty ? 0 : -1;
  this->SequenceRange[1] = ranges.sequence[1];
  this->LayerRange[1] = ranges.layer[1];
  const MatrixPanels panels =
    isEmpty ? MatrixPanels()
            : this->PanelsOf(recording, AttentionAtlas::SequenceTokens(recording, this->Sequence));
  AttentionAtlas::AnnounceImage(
    panels.Width(), panels.Height(), outputVector->GetInformationObject(0));
  outputVector->GetInformationObject(1)->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
  return 1;
}

int vtkAttentionMatrix::RequestUpdateExtent(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector*)
{
  AttentionAtlas::KeepRequest(
    inputVector[0]->GetInformationObject(0)); // whatever part of the image
  return 1;
}

/// Pools the heads of this rank, unless they are known.
void vtkAttentionMatrix::PoolPart(
  vtkMultiBlockDataSet* input, const AttentionAtlas::RankGroup& ranks, Part& part)
{
  part.panels = this->PanelsOf(input, AttentionAtlas::SequenceTokensNow(input, this->Sequence));
  if (this->IsSorted())
  {
    part.scores = ScoresOf(vtkTable::SafeDownCast(this->GetInputDataObject(1, 0)), this->SortBy);
  }
  if (this->Known->wanted == part.wanted && this->Known->isPooled)
  {
    part.values = this->Known->values;
    part.tokens = this->Known->tokens;
    part.isPooled = true;
    return;
  }
  const atlas::Recording recording = AttentionAtlas::ToRecording(input);
  part.tokens = atlas::AttentionLength(recording, this->Sequence);
  std::vector<atlas::HeadPlace> mine;
  const std::vector<atlas::HeadPlace>& heads = part.panels.Heads();
  for (auto i = atlas::ToIndex(ranks.Rank()); i < heads.size(); i += atlas::ToIndex(ranks.Count()))
  {
    mine.push_back(heads[i]);
  }
  const int threads = AttentionAtlas::ThreadLimit();
  const auto size = static_cast<double>(part.panels.Size());
  const auto tokens = static_cast<double>(part.tokens);
  const double rows = this->Quantity == ROLLOUT ? 2 * tokens : 128. * threads; // at a time
  const double points = static_cast<double>(part.panels.Width()) * part.panels.Height();
  AttentionAtlas::RequireMemory(
    points * BytesPerPoint + 2 * static_cast<double>(heads.size()) * size * size * sizeof(float) +
      rows * tokens * sizeof(float),
    "a matrix of " + std::to_string(heads.size()) + " heads with " +
      std::to_string(part.panels.Size()) + " x " + std::to_string(part.panels.Size()) +
      " points each",
    "choose a smaller Maximum Size, or one layer.");
  const std::size_t side = atlas::ToIndex(part.panels.Size());
  part.values.resize(mine.size() * side * side);
  part.result.cancelled = !atlas::PoolAttention(recording, this->Sequence,
    static_cast<atlas::AttentionQuantity>(this->Quantity), mine,
    { part.panels.Size(), static_cast<atlas::AttentionPooling>(this->Pooling) }, part.values.data(),
    threads, [this](double done) { return AttentionAtlas::ReportProgress(this, done); });
}

/// Makes the part of the image that is asked for, and the titles.
void vtkAttentionMatrix::MakeOutputs(vtkInformationVector* outputVector)
{
  const MatrixPanels& panels = this->Known->panels;
  const std::vector<float>& values = this->Known->values;
  std::array<int, 6> extent = AttentionAtlas::RequestedExtent(
    outputVector->GetInformationObject(0), panels.Width(), panels.Height());
  const std::int64_t width = std::max(extent[1] - extent[0] + 1, 0);
  const std::int64_t height = std::max(extent[3] - extent[2] + 1, 0);
  PointValues points(
    atlas::AttentionQuantityNames.at(atlas::ToIndex(this->Quantity)), width * height);
  const int size = panels.Size();
  const std::int64_t tokens = this->Known->tokens;
  const auto fill = [&](vtkIdType begin, vtkIdType end)
  {
    for (vtkIdType i = begin * width; i < end * width; ++i)
    {
      const PanelPoint place = panels.PointAt(extent[0] + static_cast<int>(i % width),
        panels.Height() - 1 - extent[2] - static_cast<int>(i / width));
      if (place.row < 0)
      {
        points.SetGap(i);
        continue;
      }
      const std::size_t head = panels.HeadAt(place.row, place.column);
      points.values->SetValue(i,
        values[(head * atlas::ToIndex(size) + atlas::ToIndex(place.query)) * atlas::ToIndex(size) +
               atlas::ToIndex(place.key)]);
      points.layer->SetValue(i, panels.Heads()[head].layer);
      points.head->SetValue(i, panels.Heads()[head].head);
      points.query->SetValue(i, static_cast<int>(atlas::BinBegin(place.query, size, tokens)));
      points.key->SetValue(i, static_cast<int>(atlas::BinBegin(place.key, size, tokens)));
    }
  };
  AttentionAtlas::ParallelFor(0, height, fill);
  auto* image = vtkImageData::GetData(outputVector, 0);
  image->SetExtent(extent.data());
  image->SetOrigin(0, 1 - panels.Height(), 0);
  image->SetSpacing(1, 1, 1);
  points.AddTo(image->GetPointData());
  AttentionAtlas::SetFormat(image, AttentionAtlas::Formats::AttentionMatrix);
  vtkFieldData* fields = image->GetFieldData();
  AttentionAtlas::AddField(fields, Names::Sequence, this->Sequence);
  AttentionAtlas::AddField(fields, "Tokens", tokens);
  AttentionAtlas::AddField(fields, "Panel Size", size);
  AttentionAtlas::AddField(fields, "Column Step", panels.ColumnStep());
  AttentionAtlas::AddField(fields, "Row Step", panels.RowStep());
  if (AttentionAtlas::IsFirstPiece(outputVector))
  {
    panels.MakeTitles(vtkPolyData::GetData(outputVector, 1));
  }
}

/// Joins the heads of all ranks, and sorts them.
void vtkAttentionMatrix::JoinRanks(const AttentionAtlas::RankGroup& ranks, Part& part)
{
  const std::size_t side = atlas::ToIndex(part.panels.Size());
  const std::size_t size = side * side;
  if (!part.isPooled && ranks.Count() > 1)
  {
    const auto* begin = reinterpret_cast<const char*>(part.values.data());
    const auto all = ranks.Share({ begin, begin + part.values.size() * sizeof(float) });
    part.values.resize(part.panels.Heads().size() * size);
    for (std::size_t head = 0; head < part.panels.Heads().size(); ++head)
    {
      const auto bytes = all[head % all.size()].begin() +
                         static_cast<std::ptrdiff_t>(head / all.size() * size * sizeof(float));
      std::copy_n(
        bytes, size * sizeof(float), reinterpret_cast<char*>(part.values.data() + head * size));
    }
  }
  part.isPooled = true;
  part.panels.Sort(ByHead(ranks.Gather(part.scores)));
}

/// Computes what is not known, with all ranks. Returns false if the user has canceled.
bool vtkAttentionMatrix::Pool(vtkMultiBlockDataSet* input, const AttentionAtlas::RankGroup& ranks)
{
  auto part = std::make_unique<Part>();
  vtkDataObject* table = this->IsSorted() ? this->GetInputDataObject(1, 0) : nullptr;
  part->wanted = { std::max(input->GetMTime(), input->GetUpdateTime()), this->Sequence, this->Layer,
    this->Quantity, this->MaximumSize, this->Pooling, ranks.Rank(), ranks.Count() };
  part->order = { table != nullptr ? std::max(table->GetMTime(), table->GetUpdateTime()) : 0,
    table != nullptr ? this->SortBy : "" };
  if (this->Known->wanted == part->wanted && this->Known->order == part->order)
  {
    return true;
  }
  try
  {
    this->PoolPart(input, ranks, *part);
  }
  catch (const std::exception& e)
  {
    part->result.error = e.what();
  }
  try
  {
    if (!ranks.Agree(part->result))
    {
      return false;
    }
    this->JoinRanks(ranks, *part);
  }
  catch (const std::exception& e)
  {
    if (ranks.Leave(e))
    {
      return false;
    }
    part->result.error = e.what();
    part->isPooled = false;
    if (ranks.Rank() == 0)
    {
      vtkErrorMacro(<< e.what());
    }
  }
  this->Known = std::move(part);
  return true;
}

int vtkAttentionMatrix::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* input = vtkMultiBlockDataSet::GetData(inputVector[0]);
  vtkImageData::GetData(outputVector, 0)->Initialize();
  vtkPolyData::GetData(outputVector, 1)->Initialize();
  if (AttentionAtlas::IsEmpty(input))
  {
    return 1;
  }
  if (!this->Pool(input, AttentionAtlas::RankGroup(outputVector)))
  {
    return AttentionAtlas::LeaveUnfinished(this, outputVector);
  }
  if (this->Known->result.error.empty())
  {
    this->MakeOutputs(outputVector);
  }
  return 1; // after an error, too, as in vtkModelAlgorithm
}

void vtkAttentionMatrix::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Sequence: " << this->Sequence << "\n";
  os << indent << "Layer: " << this->Layer << "\n";
  os << indent << "Quantity: " << this->Quantity << "\n";
  os << indent << "MaximumSize: " << this->MaximumSize << "\n";
  os << indent << "Pooling: " << this->Pooling << "\n";
  os << indent << "SortBy: " << (this->SortBy != nullptr ? this->SortBy : "(none)") << "\n";
}
