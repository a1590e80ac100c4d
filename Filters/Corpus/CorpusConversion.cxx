#include "CorpusConversion.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Corpus/CorpusFile.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "TitleFields.h"

#include <vtkWeakPointer.h>

#include <algorithm>
#include <array>
#include <mutex>

namespace AttentionAtlas
{
namespace
{

/// The statistics that were last made of an array or made one, so that filters in a pipeline do not
/// parse them again.
class Known
{
public:
  static std::shared_ptr<const atlas::CorpusStatistics> Find(vtkDataArray* bytes)
  {
    const std::lock_guard<std::mutex> lock(Mutex());
    const Known& last = Last();
    return last.Bytes == bytes && last.Time == bytes->GetMTime() ? last.Statistics : nullptr;
  }

  static void Keep(vtkDataArray* bytes, std::shared_ptr<const atlas::CorpusStatistics> statistics)
  {
    const std::lock_guard<std::mutex> lock(Mutex());
    Last().Bytes = bytes;
    Last().Time = bytes->GetMTime();
    Last().Statistics = std::move(statistics);
  }

  static void Forget(const atlas::CorpusStatistics& statistics)
  {
    const std::lock_guard<std::mutex> lock(Mutex());
    if (Last().Statistics.get() == &statistics)
    {
      Last().Statistics.reset();
      Last().Bytes = nullptr;
    }
  }

private:
  vtkWeakPointer<vtkDataArray> Bytes;
  vtkMTimeType Time = 0;
  std::shared_ptr<const atlas::CorpusStatistics> Statistics;

  static std::mutex& Mutex()
  {
    static std::mutex mutex;
    return mutex;
  }
  static Known& Last()
  {
    static Known last;
    return last;
  }
};

constexpr const char* Advice = "it comes from Corpus Statistics or a Corpus Reader.";

}

std::string KindText(const atlas::CorpusStatistics& statistics, std::int64_t kind)
{
  return statistics.texts.empty() ? std::to_string(statistics.ids[kind]) : statistics.texts[kind];
}

std::int64_t FindKind(const atlas::CorpusStatistics& statistics, std::int64_t id)
{
  const auto found = std::lower_bound(statistics.ids.begin(), statistics.ids.end(), id);
  if (found == statistics.ids.end() || *found != id)
  {
    throw atlas::ModelError(
      "statistics: expected a token that occurs in the text, found ", id, ".");
  }
  return found - statistics.ids.begin();
}

std::vector<atlas::CorpusSketch> SketchesOf(const atlas::CorpusStatistics& statistics)
{
  std::vector<atlas::CorpusSketch> sketches = { atlas::CorpusSketch::Entropy,
    atlas::CorpusSketch::Concentration, atlas::CorpusSketch::WrittenNorm };
  if (statistics.hasLogits)
  {
    sketches.push_back(atlas::CorpusSketch::NextTokenEffect);
  }
  return sketches;
}

std::vector<std::pair<std::string, std::vector<double>>> ColumnsOf(
  const atlas::CorpusStatistics& statistics)
{
  std::vector<std::pair<std::string, std::vector<double>>> columns;
  const auto add = [&](const std::string& name, const auto& valueOf)
  {
    std::vector<double> values;
    std::transform(
      statistics.heads.begin(), statistics.heads.end(), std::back_inserter(values), valueOf);
    columns.emplace_back(name, std::move(values));
  };
  for (const atlas::CorpusColumn& column : atlas::CorpusColumns)
  {
    const bool isOfLogits = column.count == atlas::CorpusCount::NextQueries ||
                            column.count == atlas::CorpusCount::CopyingQueries;
    if (statistics.hasLogits || !isOfLogits)
    {
      add(column.name,
        [&column](const atlas::CorpusHead& head) { return atlas::CorpusValue(head, column); });
    }
  }
  add(ArrayNames::MeanDistance, atlas::MeanDistance);
  add(ArrayNames::MedianDistance, atlas::MedianDistance);
  for (const atlas::CorpusSketch sketch : SketchesOf(statistics))
  {
    const std::string name = atlas::CorpusSketchNames[static_cast<std::size_t>(sketch)];
    const auto addQuantile = [&](const std::string& column, double quantile)
    {
      add(column,
        [&](const atlas::CorpusHead& head) { return head.Sketch(sketch).Quantile(quantile); });
    };
    addQuantile("Median " + name, 0.5);
    addQuantile(name + " P5", 0.05);
    addQuantile(name + " P95", 0.95);
  }
  return columns;
}

void ToTable(std::shared_ptr<const atlas::CorpusStatistics> statistics, vtkTable* output)
{
  output->Initialize();
  const auto& places = statistics->places;
  ListArrays(places, output->GetRowData())
    .Int(ArrayNames::Layer, &atlas::HeadPlace::layer)
    .Int(ArrayNames::Head, &atlas::HeadPlace::head);
  AddColumn<vtkIdTypeArray>(output, ArrayNames::Queries, statistics->heads,
    [](const atlas::CorpusHead& head)
    { return static_cast<vtkIdType>(head.Count(atlas::CorpusCount::Queries)); });
  for (const auto& [name, values] : ColumnsOf(*statistics))
  {
    AddColumn<vtkDoubleArray>(output, name, values);
  }
  vtkFieldData* fields = output->GetFieldData();
  vtkSmartPointer<vtkUnsignedCharArray> bytes;
  atlas::CorpusToMemory(*statistics,
    [&](std::size_t size)
    {
      bytes = NewArray<vtkUnsignedCharArray>(ArrayNames::Statistics, static_cast<vtkIdType>(size));
      return reinterpret_cast<char*>(bytes->GetPointer(0));
    });
  fields->AddArray(bytes);
  AddField(fields, "Model", statistics->model);
  AddField(fields, ModelNameField, atlas::ModelName(statistics->model));
  const auto addCount = [&](const char* name, std::int64_t count)
  { fields->AddArray(MakeArray<vtkIdTypeArray>(name, std::array{ vtkIdType{ count } })); };
  addCount(ArrayNames::Documents, statistics->documents);
  addCount(ArrayNames::Tokens, statistics->tokens);
  AddField(fields, ArrayNames::Complete, statistics->isComplete ? 1 : 0);
  SetFormat(output, Formats::Corpus);
  Known::Keep(bytes, std::move(statistics));
}

atlas::CorpusStatistics TakeCorpus(std::shared_ptr<atlas::CorpusStatistics>& statistics)
{
  Known::Forget(*statistics);
  const auto mine = std::move(statistics);
  return mine.use_count() == 1 ? std::move(*mine) : *mine;
}

std::shared_ptr<const atlas::CorpusStatistics> ToCorpus(vtkTable* input)
{
  if (input == nullptr || input->GetNumberOfRows() == 0)
  {
    return nullptr;
  }
  RequireFormat(input, Formats::Corpus, "input", Advice);
  auto* bytes =
    vtkUnsignedCharArray::SafeDownCast(input->GetFieldData()->GetArray(ArrayNames::Statistics));
  if (bytes == nullptr)
  {
    throw atlas::ModelError("input: expected the field array Statistics, found none; ", Advice);
  }
  if (auto known = Known::Find(bytes))
  {
    return known;
  }
  const char* first = reinterpret_cast<const char*>(bytes->GetPointer(0));
  auto statistics = std::make_shared<const atlas::CorpusStatistics>(
    atlas::CorpusFromBytes(first, static_cast<std::size_t>(bytes->GetNumberOfValues()), "input"));
  Known::Keep(bytes, statistics);
  return statistics;
}

}
