#include "vtkHeadUpdates.h"

#include "Analysis/HeadUpdates.h"
#include "Analysis/RecordedModel.h"
#include "ArrayNames.h"
#include "Base/Index.h"
#include "DataFormat.h"
#include "HeadBlocks.h"
#include "ListArrays.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenColumns.h"
#include "TokenText.h"
#include "TransformerConversion.h"

#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::HeadPlace;
using atlas::HeadUpdate;
using atlas::ToIndex;

constexpr std::size_t BinCount = vtkHeadUpdates::Bins;

/// Updates of all heads [heads, tokens].
struct Updates
{
  const atlas::Recording& recording;
  const std::vector<HeadPlace>& heads;
  std::vector<HeadUpdate> values;

  std::size_t TokenCount() const { return this->recording.tokens.Count(); }

  /// A number of each token of a head.
  template<class Value>
  std::vector<float> OfHead(std::size_t h, const Value& valueOf) const
  {
    std::vector<float> numbers;
    numbers.reserve(this->TokenCount());
    for (std::size_t i = 0; i < this->TokenCount(); ++i)
    {
      numbers.push_back(valueOf(this->values[h * this->TokenCount() + i]));
    }
    return numbers;
  }
};

float MagnitudeOf(const HeadUpdate& update)
{
  return update.output.magnitude;
}

float OrientationOf(const HeadUpdate& update)
{
  return update.output.orientation;
}

std::vector<std::int64_t> AllRows(const atlas::Recording& recording)
{
  std::vector<std::int64_t> rows(recording.tokens.Count());
  std::iota(rows.begin(), rows.end(), std::int64_t{ 0 });
  return rows;
}

void FillUpdates(const Updates& updates, vtkTable* table)
{
  const atlas::Recording& recording = updates.recording;
  AddTokenColumns(recording, updates.heads, AllRows(recording), table);
  ListArrays(updates.values, table->GetRowData())
    .Float(Names::Magnitude, MagnitudeOf)
    .Float(Names::Orientation, OrientationOf);
  const bool hasContext =
    std::all_of(updates.heads.begin(), updates.heads.end(), [&](const HeadPlace& place)
      { return atlas::HasContext(atlas::FindHead(recording, place.layer, place.head)); });
  if (hasContext)
  {
    AddColumn<vtkFloatArray>(table, Names::ContextMagnitude, updates.values,
      [](const HeadUpdate& update) { return update.contextMagnitude; });
  }
  SetFormat(table, Formats::HeadUpdates);
}

/// A bin of both histograms of a head.
struct Bin
{
  HeadPlace place;
  int bin;
  double largest; ///< magnitude of the layer
  std::int64_t magnitudes;
  std::int64_t orientations;
};

std::vector<Bin> CountBins(const Updates& updates)
{
  std::map<std::int64_t, float> largest; // of each layer
  for (std::size_t i = 0; i < updates.values.size(); ++i)
  {
    float& ofLayer = largest[updates.heads[i / updates.TokenCount()].layer];
    ofLayer = std::max(ofLayer, MagnitudeOf(updates.values[i]));
  }
  std::vector<Bin> bins;
  for (std::size_t h = 0; h < updates.heads.size(); ++h)
  {
    const HeadPlace& place = updates.heads[h];
    const double end = largest[place.layer];
    const auto magnitudes = atlas::CountInBins(updates.OfHead(h, MagnitudeOf), 0, end, BinCount);
    const auto orientations = atlas::CountInBins(updates.OfHead(h, OrientationOf), -1, 1, BinCount);
    for (std::size_t b = 0; b < BinCount; ++b)
    {
      bins.push_back({ place, static_cast<int>(b), end, magnitudes[b], orientations[b] });
    }
  }
  return bins;
}

void FillHistograms(const Updates& updates, vtkTable* table)
{
  const std::vector<Bin> bins = CountBins(updates);
  const auto magnitude = [](int offset)
  {
    return [offset](const Bin& bin)
    { return static_cast<double>(bin.bin + offset) / BinCount * bin.largest; };
  };
  const auto orientation = [](int offset)
  {
    return [offset](const Bin& bin)
    { return 2 * (static_cast<double>(bin.bin + offset) / BinCount) - 1; };
  };
  ListArrays(bins, table->GetRowData())
    .Int(Names::Layer, [](const Bin& bin) { return bin.place.layer; })
    .Int(Names::Head, [](const Bin& bin) { return bin.place.head; })
    .Int(Names::Bin, &Bin::bin)
    .Double(Names::MagnitudeLow, magnitude(0))
    .Double(Names::MagnitudeHigh, magnitude(1))
    .Int(Names::MagnitudeCount, &Bin::magnitudes)
    .Double(Names::OrientationLow, orientation(0))
    .Double(Names::OrientationHigh, orientation(1))
    .Int(Names::OrientationCount, &Bin::orientations);
  SetFormat(table, Formats::HeadUpdatesHistograms);
}

/// The sums over the heads and sequences that have a position.
struct PositionSums
{
  std::int64_t tokens = 0;
  double magnitude = 0;
  double orientation = 0;
};

void FillPositions(const Updates& updates, vtkTable* table)
{
  std::map<std::pair<std::int64_t, std::int32_t>, PositionSums> sums; // by layer and position
  for (std::size_t i = 0; i < updates.values.size(); ++i)
  {
    const std::size_t token = i % updates.TokenCount();
    PositionSums& sum = sums[{
      updates.heads[i / updates.TokenCount()].layer, updates.recording.tokens.position[token] }];
    ++sum.tokens;
    sum.magnitude += static_cast<double>(MagnitudeOf(updates.values[i]));
    sum.orientation += static_cast<double>(OrientationOf(updates.values[i]));
  }
  using Entry = decltype(sums)::value_type;
  const auto mean = [](double PositionSums::* sum)
  {
    return [sum](const Entry& entry)
    { return entry.second.*sum / static_cast<double>(entry.second.tokens); };
  };
  ListArrays(sums, table->GetRowData())
    .Int(Names::Layer, [](const Entry& entry) { return entry.first.first; })
    .Int(Names::Position, [](const Entry& entry) { return entry.first.second; })
    .Double(Names::Magnitude, mean(&PositionSums::magnitude))
    .Double(Names::Orientation, mean(&PositionSums::orientation))
    .Int(Names::Tokens, [](const Entry& entry) { return entry.second.tokens; });
  SetFormat(table, Formats::HeadUpdatesPositions);
}

void FillLayers(const atlas::Recording& recording, const atlas::Transformer& model, vtkTable* table)
{
  const std::int64_t tokens = recording.tokens.Count();
  std::vector<HeadPlace> layers;
  std::vector<atlas::StreamUpdate> updates(recording.layers.size() * ToIndex(tokens));
  for (const atlas::RecordedLayer& layer : recording.layers)
  {
    atlas::StreamUpdate* ofLayer = updates.data() + layers.size() * ToIndex(tokens);
    const std::vector<float> bias = atlas::OutputBias(model, layer.index);
    ParallelFor(0, tokens, [&](vtkIdType begin, vtkIdType end)
      { atlas::MeasureLayerUpdates(recording, layer.index, bias, begin, end, ofLayer + begin); });
    layers.push_back({ layer.index, -1 });
  }
  AddTokenColumns(recording, layers, AllRows(recording), table);
  ListArrays(updates, table->GetRowData())
    .Float(Names::Magnitude, &atlas::StreamUpdate::magnitude)
    .Float(Names::Orientation, &atlas::StreamUpdate::orientation);
  SetFormat(table, Formats::HeadUpdatesLayers);
}

}

vtkStandardNewMacro(vtkHeadUpdates);

/// What is measured on this rank.
struct vtkHeadUpdates::Work
{
  atlas::Recording recording;
  std::shared_ptr<const atlas::OpenTransformer> model; ///< may be null
  HeadBlocks heads;
  std::vector<HeadUpdate> updates; ///< [heads of this rank, tokens]

  Work(vtkMultiBlockDataSet* input, vtkMultiBlockDataSet* modelInput, const RankGroup& ranks)
    : recording(ToRecording(input))
    , heads(this->recording, ranks)
  {
    if (!IsEmpty(modelInput))
    {
      this->model = ToTransformer(modelInput);
      atlas::RequireSameModel(this->recording, this->model->GetModel(), "Head Updates");
      atlas::RequireSameProcessing(this->recording, this->model->GetModel(), "Head Updates");
    }
    std::vector<float> none;
    for (const HeadPlace& place : this->heads.GetHeads()) // checks all
    {
      atlas::MeasureUpdates(this->recording, 0, place.layer, place.head, 0, 0, none, nullptr);
    }
    const std::size_t tokens = this->recording.tokens.Count();
    const auto rows = static_cast<double>(this->heads.GetHeads().size() * tokens);
    RequireMemory(rows * (3. * sizeof(HeadUpdate) + TokenColumnBytes()),
      "a table of " + std::to_string(static_cast<std::int64_t>(rows)) + " rows",
      "record fewer layers or tokens.");
    this->updates.resize(this->heads.GetMine().size() * tokens);
  }

  void Run(const atlas::Progress& progress)
  {
    this->heads.Run(progress,
      [this](std::size_t begin, std::size_t end)
      {
        std::vector<float> memory;
        for (std::size_t b = begin; b < end; ++b)
        {
          this->Measure(this->heads.GetBlocks()[b], memory);
        }
      });
  }

  void Measure(const QueryBlock& block, std::vector<float>& memory)
  {
    const HeadPlace& place = this->heads.GetMine()[block.head];
    const std::int64_t row =
      static_cast<std::int64_t>(block.head) * this->recording.tokens.Count() +
      this->recording.sequenceOffsets[block.sequence] + block.begin;
    atlas::MeasureUpdates(this->recording, block.sequence, place.layer, place.head, block.begin,
      block.end, memory, this->updates.data() + row);
  }
};

vtkHeadUpdates::vtkHeadUpdates()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet", "vtkMultiBlockDataSet?" },
      { "vtkTable", "vtkTable", "vtkTable", "vtkTable" }, TOGETHER)
{
}

void vtkHeadUpdates::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (task.Ranks().Any(IsEmpty(input))) // a rank without one has told why
  {
    return;
  }
  Work work(input, task.Input<vtkMultiBlockDataSet>(1), task.Ranks());
  work.Run(task.Progress());
  const Updates updates{ work.recording, work.heads.GetHeads(),
    work.heads.Gather(work.updates, work.recording.tokens.Count()) };
  if (task.Ranks().Rank() != 0)
  {
    return;
  }
  FillUpdates(updates, task.Output<vtkTable>(0));
  AddAllSequences(work.recording, task.Output<vtkTable>(0)->GetFieldData());
  FillHistograms(updates, task.Output<vtkTable>(1));
  FillPositions(updates, task.Output<vtkTable>(2));
  if (work.model != nullptr)
  {
    FillLayers(work.recording, work.model->GetModel(), task.Output<vtkTable>(3));
  }
}
