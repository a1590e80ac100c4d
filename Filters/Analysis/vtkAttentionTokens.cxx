#include "vtkAttentionTokens.h"

#include "ArrayNames.h"
#include "AttentionTokens.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Error.h"
#include "Execution.h"
#include "Index.h"
#include "RankGroup.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "TokenCells.h"
#include "TokenCounts.h"
#include "TransformerConversion.h"

#include <vtkDataSetAttributes.h>
#include <vtkExecutive.h>
#include <vtkFloatArray.h>
#include <vtkIdTypeArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPolyData.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTypeInt64Array.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>

using SDDP = vtkStreamingDemandDrivenPipeline;
namespace Names = AttentionAtlas::ArrayNames;

namespace
{

using atlas::HeadTokens;
using atlas::ToIndex;
using atlas::TokenCount;
using AttentionAtlas::AddColumn;
using AttentionAtlas::TokenNames;

constexpr std::array<const char*, 3> ReadingNames = { "Plain", "Refactored", "PublishedCode" };
constexpr int TableCount = 3;
constexpr std::array<int, TableCount> TablePorts = { 0, 2, 3 };
constexpr int CellPort = 1;
constexpr int LabelPort = 4;

std::string VectorName(atlas::HeadVector vector)
{
  return std::string(atlas::NameOf(vector));
}

/// A row of the table of tokens.
struct Row
{
  const HeadTokens* tokens;
  int position;
  int key;
  int rank;
  vtkIdType row; ///< of the token in the recording
  const atlas::TokenLogit* token;
};

std::vector<Row> RowsOf(const atlas::Recording& recording, const std::vector<HeadTokens>& all)
{
  std::vector<Row> rows;
  for (const HeadTokens& tokens : all)
  {
    const std::int64_t first = recording.sequenceOffsets[ToIndex(tokens.sequence)];
    const bool isOfCells = IsOfCells(tokens.vector);
    std::size_t i = 0;
    for (int position = 0; position < tokens.length; ++position)
    {
      for (int key = 0; key <= (isOfCells ? position : 0); ++key, ++i)
      {
        for (int rank = 0; rank < tokens.top; ++rank)
        {
          rows.push_back({ &tokens, position, isOfCells ? key : -1, rank + 1, first + position,
            &tokens.Best(i) + rank });
        }
      }
    }
  }
  return rows;
}

void FillTokens(const std::vector<Row>& rows, const TokenNames& names, vtkTable* table)
{
  const auto add = [&](const char* name, const auto& number)
  { AddColumn<vtkIntArray>(table, name, rows, number); };
  add(Names::Layer, [](const Row& row) { return row.tokens->layer; });
  add(Names::Head, [](const Row& row) { return row.tokens->head; });
  add(Names::Sequence, [](const Row& row) { return row.tokens->sequence; });
  add(Names::Position, [](const Row& row) { return row.position; });
  add(Names::KeyPosition, [](const Row& row) { return row.key; });
  AddColumn<vtkIdTypeArray>(table, Names::TokenIndex, rows, [](const Row& row) { return row.row; });
  AddColumn<vtkStringArray>(
    table, Names::Vector, rows, [](const Row& row) { return VectorName(row.tokens->vector); });
  add(Names::Rank, [](const Row& row) { return row.rank; });
  add(Names::TokenId, [](const Row& row) { return row.token->id; });
  AddColumn<vtkStringArray>(
    table, Names::Token, rows, [&](const Row& row) { return names.Of(row.token->id); });
  AddColumn<vtkFloatArray>(
    table, Names::Logit, rows, [](const Row& row) { return row.token->logit; });
  vtkDataSetAttributes* data = table->GetRowData();
  data->SetPedigreeIds(data->GetAbstractArray(Names::TokenIndex));
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::AttentionTokens);
}

void FillCounts(const std::vector<TokenCount>& counts, const TokenNames& names, vtkTable* table)
{
  const auto add = [&](const char* name, std::int32_t TokenCount::* number)
  {
    AddColumn<vtkIntArray>(
      table, name, counts, [number](const TokenCount& count) { return count.*number; });
  };
  add(Names::Layer, &TokenCount::layer);
  add(Names::Head, &TokenCount::head);
  AddColumn<vtkStringArray>(
    table, Names::Vector, counts, [](const TokenCount& count) { return VectorName(count.vector); });
  add(Names::TokenId, &TokenCount::id);
  AddColumn<vtkStringArray>(
    table, Names::Token, counts, [&](const TokenCount& count) { return names.Of(count.id); });
  AddColumn<vtkTypeInt64Array>(
    table, Names::Count, counts, [](const TokenCount& count) { return count.count; });
  AddColumn<vtkTypeInt64Array>(
    table, Names::Positions, counts, [](const TokenCount& count) { return count.positions; });
  add(Names::Rank, &TokenCount::rank);
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::AttentionTokenCounts);
}

void FillUnique(const std::vector<atlas::UniqueCount>& unique, vtkTable* table)
{
  using atlas::UniqueCount;
  AddColumn<vtkIntArray>(
    table, Names::Layer, unique, [](const UniqueCount& count) { return count.layer; });
  AddColumn<vtkIntArray>(
    table, Names::Head, unique, [](const UniqueCount& count) { return count.head; });
  AddColumn<vtkStringArray>(table, Names::Vector, unique,
    [](const UniqueCount& count) { return VectorName(count.vector); });
  AddColumn<vtkTypeInt64Array>(
    table, Names::Unique, unique, [](const UniqueCount& count) { return count.unique; });
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::AttentionTokenUnique);
}

/// The tokens of all ranks, each of which has searched a part of the vocabulary.
void JoinRanks(const AttentionAtlas::RankGroup& ranks, std::vector<HeadTokens>& tokens)
{
  if (ranks.Count() == 1)
  {
    return;
  }
  std::vector<char> mine;
  for (const HeadTokens& ofHead : tokens)
  {
    const auto* bytes = reinterpret_cast<const char*>(ofHead.tokens.data());
    mine.insert(mine.end(), bytes, bytes + ofHead.tokens.size() * sizeof(atlas::TokenLogit));
  }
  const std::vector<std::vector<char>> all = ranks.Share(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
  {
    if (static_cast<int>(rank) != ranks.Rank())
    {
      std::vector<atlas::TokenLogit> others(all[rank].size() / sizeof(atlas::TokenLogit));
      std::memcpy(others.data(), all[rank].data(), all[rank].size());
      atlas::JoinTokens(tokens, others.data());
    }
  }
}

void Clear(vtkInformationVector* outputVector)
{
  for (int port = 0; port < outputVector->GetNumberOfInformationObjects(); ++port)
  {
    vtkDataObject::GetData(outputVector, port)->Initialize();
  }
}

}

vtkStandardNewMacro(vtkAttentionTokens);

/// What is read and found.
struct vtkAttentionTokens::Work
{
  atlas::Recording recording;
  std::shared_ptr<const AttentionAtlas::OpenTransformer> model;
  std::vector<HeadTokens> tokens;
};

vtkAttentionTokens::vtkAttentionTokens()
{
  this->SetNumberOfInputPorts(2);
  this->SetNumberOfOutputPorts(5);
}

void vtkAttentionTokens::AddVector(int vector)
{
  this->Vectors.push_back(vector);
  this->Modified();
}

void vtkAttentionTokens::ClearVectors()
{
  this->Vectors.clear();
  this->Modified();
}

int vtkAttentionTokens::FillInputPortInformation(int port, vtkInformation* info)
{
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkMultiBlockDataSet");
  if (port == 1)
  {
    info->Set(vtkAlgorithm::INPUT_IS_OPTIONAL(), 1); // an error of ours says what is missing
  }
  return 1;
}

int vtkAttentionTokens::FillOutputPortInformation(int port, vtkInformation* info)
{
  const bool isGeometry = port == CellPort || port == LabelPort;
  info->Set(vtkDataObject::DATA_TYPE_NAME(), isGeometry ? "vtkPolyData" : "vtkTable");
  return 1;
}

/// Asks for the same piece of all outputs, which are made together, with the ghost level that
/// ParaView asks for geometry on several ranks; else it would have all made again for that.
int vtkAttentionTokens::RequestUpdateExtent(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  const int port = request->Get(vtkExecutive::FROM_OUTPUT_PORT());
  if (port >= 0)
  {
    vtkInformation* asked = outputVector->GetInformationObject(port);
    for (int other = 0; other < this->GetNumberOfOutputPorts(); ++other)
    {
      vtkInformation* info = outputVector->GetInformationObject(other);
      for (auto* key : { SDDP::UPDATE_PIECE_NUMBER(), SDDP::UPDATE_NUMBER_OF_PIECES() })
      {
        info->Set(key, asked->Get(key));
      }
      info->Set(SDDP::UPDATE_NUMBER_OF_GHOST_LEVELS(), 1);
    }
  }
  return this->Superclass::RequestUpdateExtent(request, inputVector, outputVector);
}

atlas::AttentionTokenOptions vtkAttentionTokens::MakeOptions(const AttentionAtlas::RankGroup& ranks)
{
  atlas::AttentionTokenOptions options;
  options.vectors.clear();
  for (const int vector : this->Vectors)
  {
    if (vector < QUERY || vector > DOT_PRODUCT)
    {
      throw atlas::OptionError(
        "Vectors: expected numbers from 0 to 5, found " + std::to_string(vector) + ".");
    }
    options.vectors.push_back(static_cast<atlas::HeadVector>(vector));
  }
  options.reading = static_cast<atlas::TokenReading>(this->Reading);
  options.processes = this->Processing == TRANSFORMER_LENS;
  options.top = this->Top;
  options.layer = this->Layer;
  options.head = this->Head;
  options.sequence = this->Sequence;
  options.tokens = this->MaximumTokens;
  options.threads = AttentionAtlas::ThreadLimit();
  options.part = ranks.Rank();
  options.parts = ranks.Count();
  options.progress = [this](double done)
  { return AttentionAtlas::ReportProgress(this, 0.95 * done); };
  return options;
}

/// Finds the tokens in this rank's part of the vocabulary. Returns false if the user has canceled.
bool vtkAttentionTokens::Find(
  vtkInformationVector** inputVector, const AttentionAtlas::RankGroup& ranks, Work& work)
{
  work.recording = AttentionAtlas::ToRecording(vtkMultiBlockDataSet::GetData(inputVector[0]));
  work.model = AttentionAtlas::ToTransformer(vtkMultiBlockDataSet::GetData(inputVector[1]));
  const atlas::AttentionTokenOptions options = this->MakeOptions(ranks);
  const atlas::AttentionTokenMemory memory =
    atlas::MemoryOf(work.recording, work.model->GetModel(), options);
  const double row = AttentionAtlas::CellBytes() + 2 * sizeof(std::string) + 64;
  AttentionAtlas::RequireMemory(
    static_cast<double>(memory.bytes) + static_cast<double>(memory.tokens) * row,
    std::to_string(memory.tokens) + " attention tokens of " +
      std::to_string(work.model->GetModel().GetConfig().outputVocabulary) + " in the vocabulary",
    "choose a layer or head, fewer vectors, or a smaller MaximumTokens.");
  std::optional<std::vector<HeadTokens>> found =
    atlas::FindAttentionTokens(work.recording, work.model->GetModel(), options);
  if (found)
  {
    work.tokens = std::move(*found);
  }
  return found.has_value();
}

void vtkAttentionTokens::FillOutputs(const Work& work, vtkInformationVector* outputVector)
{
  const TokenNames names(work.model);
  const std::vector<TokenCount> counts = atlas::CountTokens(work.tokens);
  FillTokens(RowsOf(work.recording, work.tokens), names, vtkTable::GetData(outputVector, 0));
  FillCounts(counts, names, vtkTable::GetData(outputVector, 2));
  FillUnique(atlas::CountUnique(counts), vtkTable::GetData(outputVector, 3));
  auto* cells = vtkPolyData::GetData(outputVector, CellPort);
  auto* labels = vtkPolyData::GetData(outputVector, LabelPort);
  const AttentionAtlas::TokenImages images(work.recording, names, work.tokens);
  AttentionAtlas::FillCells(images, cells);
  AttentionAtlas::SetFormat(cells, AttentionAtlas::Formats::AttentionTokenCells);
  AttentionAtlas::FillLabels(images, labels);
  AttentionAtlas::SetFormat(labels, AttentionAtlas::Formats::AttentionTokenLabels);
  const bool processes = this->Processing == TRANSFORMER_LENS || this->Reading != PLAIN;
  for (const int port : TablePorts)
  {
    vtkFieldData* fields = vtkTable::GetData(outputVector, port)->GetFieldData();
    AttentionAtlas::AddField(
      fields, Names::Reading, std::string(ReadingNames.at(ToIndex(this->Reading))));
    AttentionAtlas::AddField(
      fields, Names::Processing, std::string(processes ? "TransformerLens" : "None"));
  }
}

int vtkAttentionTokens::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  Clear(outputVector);
  const AttentionAtlas::RankGroup ranks(outputVector);
  // A rank without a recording has told why.
  if (ranks.Any(AttentionAtlas::IsEmpty(vtkMultiBlockDataSet::GetData(inputVector[0]))))
  {
    return 1;
  }
  AttentionAtlas::RankResult result;
  Work work;
  try
  {
    result.cancelled = !this->Find(inputVector, ranks, work);
  }
  catch (const std::exception& e)
  {
    result.error = e.what();
  }
  try
  {
    if (!ranks.Agree(result))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    JoinRanks(ranks, work.tokens);
    if (ranks.Rank() == 0)
    {
      this->FillOutputs(work, outputVector);
    }
  }
  catch (const std::exception& e)
  {
    if (ranks.Leave(e))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    Clear(outputVector);
    if (ranks.Rank() == 0)
    {
      vtkErrorMacro(<< e.what());
    }
  }
  return 1; // as in vtkModelAlgorithm
}

void vtkAttentionTokens::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Vectors:";
  for (const int vector : this->Vectors)
  {
    os << " " << vector;
  }
  os << "\n";
  os << indent << "Reading: " << this->Reading << "\n";
  os << indent << "Processing: " << this->Processing << "\n";
  os << indent << "Top: " << this->Top << "\n";
  os << indent << "Layer: " << this->Layer << "\n";
  os << indent << "Head: " << this->Head << "\n";
  os << indent << "Sequence: " << this->Sequence << "\n";
  os << indent << "MaximumTokens: " << this->MaximumTokens << "\n";
}
