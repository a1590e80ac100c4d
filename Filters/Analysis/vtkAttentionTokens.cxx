#include "vtkAttentionTokens.h"

#include "Analysis/AttentionTokens.h"
#include "Analysis/TokenCounts.h"
#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenCells.h"
#include "TransformerConversion.h"

#include <vtkDataSetAttributes.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPolyData.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <array>
#include <string>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

using atlas::HeadTokens;
using atlas::ToIndex;
using atlas::TokenCount;

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
  ListArrays(rows, table->GetRowData())
    .Int(Names::Layer, [](const Row& row) { return row.tokens->layer; })
    .Int(Names::Head, [](const Row& row) { return row.tokens->head; })
    .Int(Names::Sequence, [](const Row& row) { return row.tokens->sequence; })
    .Int(Names::Position, &Row::position)
    .Int(Names::KeyPosition, &Row::key)
    .Id(Names::TokenIndex, &Row::row)
    .Text(Names::Vector, [](const Row& row) { return VectorName(row.tokens->vector); })
    .Int(Names::Rank, &Row::rank)
    .Int(Names::TokenId, [](const Row& row) { return row.token->id; })
    .Text(Names::Token, [&](const Row& row) { return names.Of(row.token->id); })
    .Float(Names::Logit, [](const Row& row) { return row.token->logit; });
  vtkDataSetAttributes* data = table->GetRowData();
  data->SetPedigreeIds(data->GetAbstractArray(Names::TokenIndex));
  SetFormat(table, Formats::AttentionTokens);
}

void FillCounts(const std::vector<TokenCount>& counts, const TokenNames& names, vtkTable* table)
{
  ListArrays(counts, table->GetRowData())
    .Int(Names::Layer, &TokenCount::layer)
    .Int(Names::Head, &TokenCount::head)
    .Text(Names::Vector, [](const TokenCount& count) { return VectorName(count.vector); })
    .Int(Names::TokenId, &TokenCount::id)
    .Text(Names::Token, [&](const TokenCount& count) { return names.Of(count.id); })
    .Int64(Names::Count, &TokenCount::count)
    .Int64(Names::Positions, &TokenCount::positions)
    .Int(Names::Rank, &TokenCount::rank);
  SetFormat(table, Formats::AttentionTokenCounts);
}

void FillUnique(const std::vector<atlas::UniqueCount>& unique, vtkTable* table)
{
  using atlas::UniqueCount;
  ListArrays(unique, table->GetRowData())
    .Int(Names::Layer, &UniqueCount::layer)
    .Int(Names::Head, &UniqueCount::head)
    .Text(Names::Vector, [](const UniqueCount& count) { return VectorName(count.vector); })
    .Int64(Names::Unique, &UniqueCount::unique);
  SetFormat(table, Formats::AttentionTokenUnique);
}

/// The tokens of all ranks, each of which has searched a part of the vocabulary.
void JoinRanks(const RankGroup& ranks, std::vector<HeadTokens>& tokens)
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
  const double row = CellBytes() + 2 * sizeof(std::string) + 64;
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
  const RankGroup& ranks, const atlas::Progress& progress) const
{
  atlas::AttentionTokenOptions options;
  options.vectors.clear();
  for (const int vector : this->Vectors)
  {
    atlas::ThrowIf<atlas::OptionError>(vector < QUERY || vector > DOT_PRODUCT,
      "Vectors: expected numbers from 0 to 5, found ", vector, ".");
    options.vectors.push_back(static_cast<atlas::HeadVector>(vector));
  }
  options.reading = static_cast<atlas::TokenReading>(this->Reading);
  options.processes = this->Processing == TRANSFORMER_LENS;
  options.top = this->Top;
  options.layer = this->Layer;
  options.head = this->Head;
  options.sequence = this->Sequence;
  options.tokens = this->MaximumTokens;
  options.threads = ThreadLimit();
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
  const TokenImages images(recording, names, tokens);
  FillCells(images, cells);
  SetFormat(cells, Formats::AttentionTokenCells);
  FillLabels(images, labels);
  SetFormat(labels, Formats::AttentionTokenLabels);
  const bool processes = this->Processing == TRANSFORMER_LENS || this->Reading != PLAIN;
  for (const int port : TablePorts)
  {
    vtkFieldData* fields = task.Output<vtkTable>(port)->GetFieldData();
    AddField(fields, Names::Reading, ReadingNames.at(this->Reading));
    AddField(fields, Names::Processing, processes ? "TransformerLens" : "None");
  }
}

void vtkAttentionTokens::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (task.Ranks().Any(IsEmpty(input))) // a rank without one has told why
  {
    return;
  }
  const atlas::Recording recording = ToRecording(input);
  const auto transformer = ToTransformer(task.Input<vtkMultiBlockDataSet>(1));
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
