#include "vtkCorpusStatistics.h"

#include "ArrayNames.h"
#include "Circuits/SparseDictionary.h"
#include "Corpus/CorpusFile.h"
#include "Corpus/CorpusRun.h"
#include "CorpusConversion.h"
#include "DataFields.h"
#include "Execution.h"
#include "ModelConversion.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkDataArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>
#include <utility>

using namespace AttentionAtlas;

vtkStandardNewMacro(vtkCorpusStatistics);

/// What was measured by the last executions.
struct vtkCorpusStatistics::State
{
  std::string key; ///< what it depends on; empty: nothing is known
  std::shared_ptr<const atlas::OpenTransformer> model;
  std::shared_ptr<atlas::CorpusStatistics>
    statistics;  ///< of all ranks, on the first one; empty on the others
  int limit = 0; ///< TokenLimit of the last run
};

vtkCorpusStatistics::vtkCorpusStatistics()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkTable" }, TOGETHER)
  , Kept(std::make_unique<State>())
{
}

/// The layers and heads that the statistics will have.
int vtkCorpusStatistics::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkNew<vtkTable> outline;
  auto* model = vtkMultiBlockDataSet::SafeDownCast(OutlineOf(this));
  const auto last = [model](const char* field)
  {
    vtkDataArray* counts = IsEmpty(model) ? nullptr : model->GetFieldData()->GetArray(field);
    return counts != nullptr && counts->GetNumberOfTuples() > 0
             ? static_cast<int>(counts->GetComponent(0, 0)) - 1
             : -1;
  };
  if (last(LayersField) >= 0 && last(HeadsField) >= 0)
  {
    std::vector<int> layers = { 0, last(LayersField) };
    if (!this->Layers.empty())
    {
      const auto [least, largest] = std::minmax_element(this->Layers.begin(), this->Layers.end());
      layers = { *least, *largest };
    }
    std::vector<int> heads = { 0, last(HeadsField) };
    for (const auto& [name, values] :
      { std::pair(ArrayNames::Layer, &layers), std::pair(ArrayNames::Head, &heads) })
    {
      outline->AddColumn(MakeArray<vtkIntArray>(name, *values));
    }
  }
  Announce(outputVector->GetInformationObject(0), outline);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
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
  options.dictionary = this->DictionaryFile;
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
  std::vector<std::string> files = this->Files;
  if (!this->DictionaryFile.empty())
  {
    files.push_back(atlas::DictionaryWeights(this->DictionaryFile).string());
    files.push_back((std::filesystem::path(files.back()).parent_path() / "cfg.json").string());
  }
  for (const std::string& file : files)
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
  const atlas::OpenTransformer& model, const std::string& path, Task& task)
{
  const atlas::Progress goesOn = [&](double) { task.Progress()(0); };
  atlas::CorpusStatistics begun =
    atlas::BeginCorpus(model, path, this->GetOptions(), ThreadLimit(), goesOn);
  if (!this->ContinueFrom.empty())
  {
    atlas::CorpusStatistics earlier = atlas::ContinueCorpus(
      model, atlas::ReadCorpus(this->ContinueFrom), begun, this->Files, this->ContinueFrom, goesOn);
    if (task.Ranks().Rank() != 0)
    {
      earlier.ForgetSums();
    }
    begun = std::move(earlier);
  }
  this->RequireMemory(model, begun, task.Ranks().Count());
  this->Kept->statistics = std::make_shared<atlas::CorpusStatistics>(std::move(begun));
}

/// Requires the memory for the batches of all kinds of tokens that were seen and one more.
void vtkCorpusStatistics::RequireMemory(
  const atlas::OpenTransformer& model, const atlas::CorpusStatistics& statistics, int ranks) const
{
  const atlas::CorpusMemory memory = atlas::EstimateCorpusMemory(
    model, statistics.options, atlas::KindsAfterBatch(model, statistics));
  AttentionAtlas::RequireMemory(static_cast<double>(memory.Total(ranks > 1 ? 2 : 1)),
    "the statistics of all heads",
    "choose fewer Layers, fewer Contexts of features, or switch Agreement off.");
}

/// Goes on with all ranks. What was known is lost if it fails.
void vtkCorpusStatistics::Run(const atlas::OpenTransformer& model, Task& task)
{
  const RankGroup& ranks = task.Ranks();
  atlas::CorpusStatistics mine = TakeCorpus(this->Kept->statistics);
  const bool isFirst = ranks.Rank() == 0;
  atlas::CorpusRunOptions run;
  run.files = this->Files;
  run.tokenLimit = this->TokenLimit;
  run.threads = ThreadLimit();
  run.part = ranks.Rank();
  run.parts = ranks.Count();
  bool isStopped = false;
  bool isCanceled = false;
  std::string shortage;
  run.goesOn = [&](double done)
  {
    isCanceled = !task.GoesOn(done);
    shortage = atlas::FindShortage(model, mine);
    isStopped = ranks.Any(isCanceled || !shortage.empty());
    return !isStopped;
  };
  atlas::MeasureCorpus(model, run, mine);
  for (int rank = 1; rank < ranks.Count(); ++rank)
  {
    // One after the other, as each may be large.
    const std::vector<std::vector<char>> all =
      ranks.Share(ranks.Rank() == rank ? CorpusToBytes(mine) : std::vector<char>());
    if (isFirst)
    {
      mine.Add(atlas::CorpusFromBytes(all[rank], "rank " + std::to_string(rank)));
    }
  }
  if (!isFirst)
  {
    mine.ForgetSums();
  }
  this->Kept->statistics = std::make_shared<atlas::CorpusStatistics>(std::move(mine));
  this->Kept->limit = this->TokenLimit;
  if (isStopped)
  {
    task.KeepCanceled(); // what was seen until then is the result
    if (isFirst)
    {
      vtkWarningMacro(<< (shortage.empty() ? "Canceled" : shortage + " Stopped") << " after "
                      << this->Kept->statistics->next.queries
                      << " tokens, whose statistics are shown."
                      << (shortage.empty() ? " Continue goes on." : ""));
    }
  }
}

void vtkCorpusStatistics::Execute(Task& task)
{
  const RankGroup& ranks = task.Ranks();
  auto* input = task.Input<vtkMultiBlockDataSet>();
  const bool isEmpty = IsEmpty(input) || this->Files.empty();
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
  if (!this->DictionaryFile.empty())
  {
    task.Reads(atlas::DictionaryWeights(this->DictionaryFile).string().c_str());
  }
  const auto model = ToTransformer(input);
  const std::string path = FieldText(input->GetFieldData(), ModelFileField);
  const std::string key = this->KeyOf(*model);
  State& kept = *this->Kept;
  const bool isTooFar = this->TokenLimit > 0 && kept.limit != this->TokenLimit &&
                        kept.statistics != nullptr &&
                        kept.statistics->next.queries >= this->TokenLimit;
  if (ranks.Any(kept.key != key || kept.model != model || isTooFar))
  {
    kept.key.clear();
    this->Begin(*model, path, task);
  }
  ranks.RequireSame(std::hash<std::string>()(key));
  kept.key.clear(); // unless the run succeeds
  this->Run(*model, task);
  kept.key = key;
  kept.model = model;
  if (task.IsFirst())
  {
    ToTable(kept.statistics, task.Output<vtkTable>());
  }
}
