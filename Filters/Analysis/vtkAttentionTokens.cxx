#include "vtkAttentionTokens.h"

#include "ArrayNames.h"
#include "AttentionTokens.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Error.h"
#include "Index.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenCells.h"
#include "TokenCounts.h"
#include "TransformerConversion.h"

#include <vtkDataSetAttributes.h>
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
#include <string>

using SDDP = vtkStreamingDemandDrivenPipeline;
namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::Task;

namespace
{

using atlas::HeadTokens;
using atlas::ToIndex;
using atlas::TokenCount;
using AttentionAtlas::AddColumn;
using AttentionAtlas::TokenNames;

constexpr std::array<const char*, 3> ReadingNames = { "Plain", "Refactored", "PublishedCode" };
constexpr std::array<int, 3> TablePorts = { 0, 2, 3 };
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
    const std::int64_t first = recording.sequenceOffsets[tokens.sequence];
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
  std::vector<atlas::TokenLogit> mine;
  for (const HeadTokens& ofHead : tokens)
  {
    mine.insert(mine.end(), ofHead.tokens.begin(), ofHead.tokens.end());
  }
  const std::vector<atlas::TokenLogit> all = ranks.Gather(mine);
  for (int rank = 0; rank < ranks.Count(); ++rank)
  {
    if (rank != ranks.Rank())
    {
      atlas::JoinTokens(tokens, all.data() + ToIndex(rank) * mine.size());
    }
  }
}

void RequireMemory(const atlas::Recording& recording, const atlas::Transformer& model,
  const atlas::AttentionTokenOptions& options)
{
  const atlas::AttentionTokenMemory memory = atlas::MemoryOf(recording, model, options);
  const double row = AttentionAtlas::CellBytes() + 2 * sizeof(std::string) + 64;
  AttentionAtlas::RequireMemory(
    static_cast<double>(memory.bytes) + static_cast<double>(memory.tokens) * row,
    std::to_string(memory.tokens) + " attention tokens of " +
      std::to_string(model.GetConfig().outputVocabulary) + " in the vocabulary",
    "choose a layer or head, fewer vectors, or a smaller MaximumTokens.");
}

}

vtkStandardNewMacro(vtkAttentionTokens);

vtkAttentionTokens::vtkAttentionTokens()
  : vtkHeadAlgorithm(WITHOUT_MEANS, { "vtkMultiBlockDataSet", "vtkMultiBlockDataSet?" },
      { "vtkTable", "vtkPolyData", "vtkTable", "vtkTable", "vtkPolyData" }, TOGETHER)
{
  this->SetHead(-1);
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

/// Asks for the same piece of all outputs, which are made together, with the ghost level that
/// ParaView asks for geometry on several ranks; else it would have all made again for that.
int vtkAttentionTokens::RequestUpdateExtent(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  AskForAllOutputs(request, outputVector);
  for (int port = 0; port < this->GetNumberOfOutputPorts(); ++port)
  {
    outputVector->GetInformationObject(port)->Set(SDDP::UPDATE_NUMBER_OF_GHOST_LEVELS(), 1);
  }
  return this->Superclass::RequestUpdateExtent(request, inputVector, outputVector);
}

atlas::AttentionTokenOptions vtkAttentionTokens::MakeOptions(
  const AttentionAtlas::RankGroup& ranks, const atlas::Progress& progress) const
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
  options.progress = progress;
  return options;
}

void vtkAttentionTokens::FillOutputs(const atlas::Recording& recording, const TokenNames& names,
  const std::vector<HeadTokens>& tokens, const Task& task) const
{
  const std::vector<TokenCount> counts = atlas::CountTokens(tokens);
  FillTokens(RowsOf(recording, tokens), names, task.Output<vtkTable>(0));
  FillCounts(counts, names, task.Output<vtkTable>(2));
  FillUnique(atlas::CountUnique(counts), task.Output<vtkTable>(3));
  auto* cells = task.Output<vtkPolyData>(CellPort);
  auto* labels = task.Output<vtkPolyData>(LabelPort);
  const AttentionAtlas::TokenImages images(recording, names, tokens);
  AttentionAtlas::FillCells(images, cells);
  AttentionAtlas::SetFormat(cells, AttentionAtlas::Formats::AttentionTokenCells);
  AttentionAtlas::FillLabels(images, labels);
  AttentionAtlas::SetFormat(labels, AttentionAtlas::Formats::AttentionTokenLabels);
  const bool processes = this->Processing == TRANSFORMER_LENS || this->Reading != PLAIN;
  for (const int port : TablePorts)
  {
    vtkFieldData* fields = task.Output<vtkTable>(port)->GetFieldData();
    AttentionAtlas::AddField(fields, Names::Reading, std::string(ReadingNames.at(this->Reading)));
    AttentionAtlas::AddField(
      fields, Names::Processing, std::string(processes ? "TransformerLens" : "None"));
  }
}

void vtkAttentionTokens::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (task.Ranks().Any(AttentionAtlas::IsEmpty(input))) // a rank without one has told why
  {
    return;
  }
  const atlas::Recording recording = AttentionAtlas::ToRecording(input);
  const auto transformer = AttentionAtlas::ToTransformer(task.Input<vtkMultiBlockDataSet>(1));
  const atlas::Transformer& model = transformer->GetModel();
  const atlas::Progress searched = task.Progress().Part(0., 0.95);
  const atlas::AttentionTokenOptions options = this->MakeOptions(task.Ranks(), searched);
  RequireMemory(recording, model, options);
  std::vector<HeadTokens> tokens = atlas::FindAttentionTokens(recording, model, options);
  JoinRanks(task.Ranks(), tokens);
  if (task.Ranks().Rank() == 0)
  {
    this->FillOutputs(recording, TokenNames(transformer), tokens, task);
  }
}
