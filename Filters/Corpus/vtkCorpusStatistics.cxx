#include "vtkCorpusStatistics.h"

#include "CorpusConversion.h"
#include "CorpusFile.h"
#include "CorpusRun.h"
#include "DataFields.h"
#include "Error.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkTable.h>

#include <filesystem>
#include <functional>
#include <sstream>
#include <utility>

using AttentionAtlas::Task;

vtkStandardNewMacro(vtkCorpusStatistics);

/// What was measured by the last executions.
struct vtkCorpusStatistics::State
{
  std::string key; ///< what it depends on; empty: nothing is known
  std::shared_ptr<const atlas::OpenTransformer> model;
  atlas::CorpusStatistics statistics; ///< of all ranks, on the first one; empty on the others
  int limit = 0;                      ///< TokenLimit of the last run
};

vtkCorpusStatistics::vtkCorpusStatistics()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkTable" }, TOGETHER)
  , Kept(std::make_unique<State>())
{
}

vtkCorpusStatistics::~vtkCorpusStatistics() = default;

void vtkCorpusStatistics::AddFile(const char* fileName)
{
  if (fileName != nullptr && *fileName != '\0')
  {
    this->Files.emplace_back(fileName);
    this->Modified();
  }
}

void vtkCorpusStatistics::ClearFiles()
{
  this->Files.clear();
  this->Modified();
}

void vtkCorpusStatistics::AddLayer(int layer)
{
  this->Layers.push_back(layer);
  this->Modified();
}

void vtkCorpusStatistics::ClearLayers()
{
  this->Layers.clear();
  this->Modified();
}

atlas::CorpusOptions vtkCorpusStatistics::GetOptions() const
{
  atlas::CorpusOptions options;
  options.split = static_cast<atlas::DocumentSplit>(this->Documents);
  options.addSpecialTokens = this->AddSpecialTokens;
  options.window = this->Window;
  options.overlap = this->Overlap;
  options.layers.assign(this->Layers.begin(), this->Layers.end());
  options.contexts = this->Contexts;
  options.samples = this->Samples;
  options.sampleValues = this->SampleValues;
  options.sinkThreshold = this->SinkThreshold;
  options.agreement = this->Agreement;
  options.batch = this->BatchTokens;
  return options;
}

/// All that statistics depend on, but for the limit.
std::string vtkCorpusStatistics::KeyOf(const atlas::OpenTransformer& model) const
{
  std::ostringstream key;
  key << this->Documents << ' ' << this->AddSpecialTokens << ' ' << this->Window << ' '
      << this->Overlap << ' ' << this->Contexts << ' ' << this->Samples << ' ' << this->SampleValues
      << ' ' << this->SinkThreshold << ' ' << this->Agreement << ' ' << this->BatchTokens << ' '
      << this->ContinueFrom;
  for (const int layer : this->Layers)
  {
    key << " layer " << layer;
  }
  for (const std::string& file : this->Files)
  {
    std::error_code ignored;
    key << '\n'
        << file << ' ' << std::filesystem::file_size(file, ignored) << ' '
        << std::filesystem::last_write_time(file, ignored).time_since_epoch().count();
  }
  key << '\n' << model.GetModel().GetConfig().architecture;
  return key.str();
}

/// Begins with nothing, or with a file of earlier statistics.
void vtkCorpusStatistics::Begin(
  const atlas::OpenTransformer& model, const std::string& path, bool isFirst)
{
  atlas::CorpusStatistics begun = atlas::BeginCorpus(model, path, this->GetOptions());
  if (!this->ContinueFrom.empty())
  {
    atlas::CorpusStatistics earlier = atlas::ReadCorpus(this->ContinueFrom);
    atlas::RequireSameOptions(earlier, begun, this->ContinueFrom);
    begun.next = earlier.next;
    begun.isComplete = earlier.isComplete;
    if (isFirst)
    {
      begun = std::move(earlier);
    }
  }
  this->Kept->statistics = std::move(begun);
}

/// Goes on with all ranks. What was known is lost if it fails.
void vtkCorpusStatistics::Run(const atlas::OpenTransformer& model, Task& task)
{
  const AttentionAtlas::RankGroup& ranks = task.Ranks();
  atlas::CorpusStatistics mine = std::move(this->Kept->statistics);
  const std::string path = mine.model;
  atlas::CorpusRunOptions run;
  run.files = this->Files;
  run.tokenLimit = this->TokenLimit;
  run.threads = AttentionAtlas::ThreadLimit();
  run.part = ranks.Rank();
  run.parts = ranks.Count();
  bool isCanceled = false;
  run.goesOn = [&](double done)
  {
    isCanceled = ranks.Any(!task.GoesOn(done));
    return !isCanceled;
  };
  atlas::MeasureCorpus(model, run, mine);
  const std::vector<std::vector<char>> all =
    ranks.Count() > 1 ? ranks.Share(ranks.Rank() == 0 ? std::vector<char>() : CorpusToBytes(mine))
                      : std::vector<std::vector<char>>();
  for (std::size_t rank = 1; rank < all.size(); ++rank)
  {
    if (ranks.Rank() == 0)
    {
      mine.Add(atlas::CorpusFromBytes(all[rank], "rank " + std::to_string(rank)));
    }
  }
  if (ranks.Rank() != 0)
  {
    atlas::CorpusStatistics empty = atlas::BeginCorpus(model, path, this->GetOptions());
    empty.next = mine.next;
    empty.isComplete = mine.isComplete;
    mine = std::move(empty);
  }
  this->Kept->statistics = std::move(mine);
  this->Kept->limit = this->TokenLimit;
  if (isCanceled)
  {
    task.KeepCanceled(); // what was seen until then is the result
    if (ranks.Rank() == 0)
    {
      vtkWarningMacro("Canceled after "
                      << this->Kept->statistics.next.queries
                      << " tokens, whose statistics are shown. Continue goes on.");
    }
  }
}

void vtkCorpusStatistics::Execute(Task& task)
{
  const AttentionAtlas::RankGroup& ranks = task.Ranks();
  auto* input = task.Input<vtkMultiBlockDataSet>();
  const bool isEmpty = AttentionAtlas::IsEmpty(input) || this->Files.empty();
  ranks.RequireSame(isEmpty ? 0 : 1);
  if (isEmpty)
  {
    return;
  }
  for (const std::string& file : this->Files)
  {
    task.Reads(file.c_str());
  }
  task.Reads(this->ContinueFrom.c_str());
  const auto model = AttentionAtlas::ToTransformer(input);
  const std::string path =
    AttentionAtlas::FieldText(input->GetFieldData(), AttentionAtlas::ModelFileField);
  const std::string key = this->KeyOf(*model);
  State& kept = *this->Kept;
  const bool isTooFar = this->TokenLimit > 0 && kept.limit != this->TokenLimit &&
                        kept.statistics.next.queries >= this->TokenLimit;
  if (ranks.Any(kept.key != key || kept.model != model || isTooFar))
  {
    kept.key.clear();
    const std::int64_t kinds = model->GetModel().GetConfig().vocabulary;
    AttentionAtlas::RequireMemory(
      static_cast<double>(atlas::CorpusMemory(*model, this->GetOptions(), kinds)),
      "the statistics of all heads", "choose fewer Layers, or switch Agreement off.");
    this->Begin(*model, path, ranks.Rank() == 0);
  }
  ranks.RequireSame(std::hash<std::string>()(key));
  kept.key.clear(); // unless the run succeeds
  this->Run(*model, task);
  kept.key = key;
  kept.model = model;
  if (task.IsFirst())
  {
    AttentionAtlas::ToTable(
      std::make_shared<const atlas::CorpusStatistics>(kept.statistics), task.Output<vtkTable>());
  }
}
