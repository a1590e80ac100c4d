#include "Matchers.h"
#include "vtkCorpusReader.h"
#include "vtkCorpusStatistics.h"
#include "vtkCorpusWriter.h"
#include "vtkHeadHistogram.h"
#include "vtkHeadScatter.h"
#include "vtkHeadTokenTable.h"
#include "vtkScoreParts.h"
#include "vtkTopContexts.h"

#include "Corpus/CorpusFile.h"
#include "Corpus/CorpusRun.h"
#include "Transformers.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <sstream>

using namespace atlas;
using namespace atlas::test;
namespace fs = std::filesystem;

namespace
{

struct CorpusFilters : testing::Test
{
  TemporaryDirectory folder;
  fs::path model = fs::path(ATLAS_DATA_DIR) / "models" / "language-2" / "checkpoint-3000";
  TransformerReader reader;
  Warned<vtkCorpusStatistics> corpus;
  std::string text = (fs::path(ATLAS_SOURCE_DIR) / "README.md").string();

  CorpusFilters()
  {
    this->reader->SetFileName((this->model / "config.json").c_str());
    this->corpus->SetTokenLimit(2000);
    this->SetOptions(this->corpus.Get());
  }

  void SetOptions(vtkCorpusStatistics* statistics)
  {
    statistics->SetInputConnection(this->reader->GetOutputPort());
    statistics->ClearFiles();
    statistics->AddFile(this->text.c_str());
    statistics->SetDocuments(vtkCorpusStatistics::PARAGRAPHS);
    statistics->SetBatchTokens(300);
    statistics->SetSamples(64);
  }

  /// Makes a view one of a head of the statistics.
  template<class View>
  void Show(Observed<View>& view, int layer, int head)
  {
    view->SetInputConnection(this->corpus->GetOutputPort());
    view->SetLayer(layer);
    view->SetHead(head);
  }

  vtkTable* Table() { return Updated<vtkTable>(this->corpus.Get()); }

  /// What Core measures.
  CorpusStatistics Measured() const
  {
    CorpusOptions options;
    options.split = DocumentSplit::Paragraphs;
    options.batch = 300;
    options.samples = 64;
    const auto opened = OpenTransformer::Open(this->model / "config.json", "");
    CorpusStatistics statistics =
      BeginCorpus(*opened, (this->model / "config.json").string(), options);
    CorpusRunOptions run;
    run.files = { this->text };
    run.tokenLimit = 2000;
    MeasureCorpus(*opened, run, statistics);
    return statistics;
  }

  std::string Bytes(vtkTable* table) const
  {
    vtkDataArray* bytes = table->GetFieldData()->GetArray("Statistics");
    const char* first = static_cast<const char*>(bytes->GetVoidPointer(0));
    return { first, first + bytes->GetNumberOfValues() };
  }
};

double Number(vtkTable* table, vtkIdType row, const char* name)
{
  return vtkDataArray::SafeDownCast(table->GetColumnByName(name))->GetComponent(row, 0);
}

std::string Text(vtkTable* table, vtkIdType row, const char* name)
{
  return vtkStringArray::SafeDownCast(table->GetColumnByName(name))->GetValue(row);
}

}

TEST_F(CorpusFilters, TableHasWhatCoreMeasures)
{
  const CorpusStatistics expected = this->Measured();
  vtkTable* table = this->Table();
  ASSERT_EQ(table->GetNumberOfRows(), 16);
  for (vtkIdType row = 0; row < 16; ++row)
  {
    EXPECT_EQ(Number(table, row, "Layer"), row / 8);
    EXPECT_EQ(Number(table, row, "Head"), row % 8);
    EXPECT_EQ(Number(table, row, "Queries"), static_cast<double>(expected.tokens));
    for (const CorpusColumn& column : CorpusColumns)
    {
      EXPECT_EQ(Number(table, row, column.name), CorpusValue(expected.heads[row], column));
    }
    EXPECT_EQ(Number(table, row, "Mean Distance"), MeanDistance(expected.heads[row]));
    for (const char* name : { "Entropy", "Concentration", "Written Norm", "Next Token Effect" })
    {
      const double low = Number(table, row, (std::string(name) + " P5").c_str());
      const double median = Number(table, row, (std::string("Median ") + name).c_str());
      const double high = Number(table, row, (std::string(name) + " P95").c_str());
      EXPECT_LT(low, median);
      EXPECT_LT(median, high);
      EXPECT_LT(low, Number(table, row, name));
      EXPECT_GT(high, Number(table, row, name));
    }
  }
  const std::vector<char> bytes = CorpusToBytes(expected);
  EXPECT_EQ(this->Bytes(table), std::string(bytes.begin(), bytes.end()));
}

TEST_F(CorpusFilters, GoesOnWithALargerLimit)
{
  const std::string whole = this->Bytes(this->Table());
  this->corpus->SetTokenLimit(1000);
  const std::string part = this->Bytes(this->Table());
  EXPECT_NE(part, whole);
  this->corpus->SetTokenLimit(2000);
  EXPECT_EQ(this->Bytes(this->Table()), whole);
}

/// Canceling in the middle keeps what was measured, and Continue goes on to the same bytes.
TEST_F(CorpusFilters, CancelKeepsAndContinues)
{
  const std::string whole = this->Bytes(this->Table());
  Warned<vtkCorpusStatistics> other;
  this->SetOptions(other.Get());
  other->SetTokenLimit(2000);
  {
    const Canceler canceler(other.Get(), 0.3);
    other->Update();
  }
  auto* table = OutputOf<vtkTable>(other.Get());
  EXPECT_THAT(other.TakeWarnings(), ElementsAre(HasSubstr("Continue goes on")));
  EXPECT_EQ(table->GetNumberOfRows(), 16);
  EXPECT_GT(Number(table, 0, "Queries"), 0);
  EXPECT_LT(Number(table, 0, "Queries"), 2000);
  other->Continue();
  EXPECT_EQ(this->Bytes(Updated<vtkTable>(other.Get())), whole);
}

TEST_F(CorpusFilters, IsWrittenAndRead)
{
  const std::string file = (this->folder / "corpus.safetensors").string();
  Observed<vtkCorpusWriter> writer;
  writer->SetInputConnection(this->corpus->GetOutputPort());
  writer->SetFileName(file.c_str());
  writer->Write();
  EXPECT_EQ(this->folder.Entries(), std::set<std::string>{ "corpus.safetensors" });
  EXPECT_EQ(ReadBytes(file), this->Bytes(this->Table()));
  Observed<vtkCorpusReader> read;
  EXPECT_EQ(read->CanReadFile(file.c_str()), 1);
  EXPECT_EQ(read->CanReadFile(this->text.c_str()), 0);
  read->SetFileName(file.c_str());
  EXPECT_EQ(this->Bytes(Updated<vtkTable>(read.Get())), ReadBytes(file));
  Warned<vtkCorpusStatistics> rest;
  rest->SetInputConnection(this->reader->GetOutputPort());
  rest->AddFile(this->text.c_str());
  rest->SetContinueFrom(file.c_str());
  EXPECT_THAT(rest.Error(), HasSubstr("expected statistics of"));
  this->SetOptions(rest.Get());
  rest->SetTokenLimit(2500);
  this->corpus->SetTokenLimit(2500);
  EXPECT_EQ(this->Bytes(Updated<vtkTable>(rest.Get())), this->Bytes(this->Table()));
}

/// A file of another model, or of another text of the same size, is refused.
TEST_F(CorpusFilters, GoesOnWithTheSameModelAndTextAlone)
{
  const std::string file = (this->folder / "corpus.safetensors").string();
  const std::string verse = (this->folder / "text.txt").string();
  WriteBytes(verse, "In the beginning God created the heaven and the earth.\n");
  const auto measured = [&](vtkCorpusStatistics* filter, vtkAlgorithm* input)
  {
    filter->SetInputConnection(input->GetOutputPort());
    filter->AddFile(verse.c_str());
    filter->SetSamples(8);
  };
  {
    Warned<vtkCorpusStatistics> first;
    measured(first.Get(), this->reader.Get());
    Observed<vtkCorpusWriter> writer;
    writer->SetInputConnection(first->GetOutputPort());
    writer->SetFileName(file.c_str());
    writer->Write();
  }
  TransformerReader other;
  other->SetFileName(
    (this->model.parent_path() / "checkpoint-2297" / "config.json").string().c_str());
  Warned<vtkCorpusStatistics> ofOther;
  measured(ofOther.Get(), other.Get());
  ofOther->SetContinueFrom(file.c_str());
  EXPECT_THAT(ofOther.Error(), HasSubstr("found those of one with other weights, then at "));
  WriteBytes(verse, "In the beginning Dog created the heaven and the earth.\n");
  Warned<vtkCorpusStatistics> ofText;
  measured(ofText.Get(), this->reader.Get());
  ofText->SetContinueFrom(file.c_str());
  EXPECT_THAT(ofText.Error(), HasSubstr("text.txt had other tokens when it was measured."));
}

/// In place of the layout and the clusters alone, which take long for many heads, other properties
/// compute what they change.
TEST_F(CorpusFilters, HeadScatterKeepsItsClusters)
{
  Observed<vtkHeadScatter> filter;
  filter->SetInputConnection(this->corpus->GetOutputPort());
  std::size_t last = 0; // report at which the filter is canceled
  Reports reports(filter.Get(),
    [&]
    {
      if (reports.Progress.size() == last)
      {
        filter->SetAbortExecute(1);
      }
    });
  const auto clusters = [&]
  {
    reports.Progress.clear();
    vtkCellData* discs = Updated<vtkPolyData>(filter.Get())->GetCellData();
    return discs->HasArray("Cluster") ? Values(discs, "Cluster") : std::vector<double>();
  };
  const std::vector<double> first = clusters();
  ASSERT_EQ(first.size(), 16);
  const std::size_t whole = reports.Progress.size();
  EXPECT_GE(whole, 14U); // one for each merge but the last
  filter->SetXColumn("Entropy");
  EXPECT_EQ(clusters(), first);
  EXPECT_LT(reports.Progress.size(), whole - 10);
  filter->SetClusters(1);
  EXPECT_EQ(clusters(), std::vector<double>(16, 0));
  EXPECT_LT(reports.Progress.size(), whole - 10);
  filter->SetClusters(4);
  filter->SetClusterBy(vtkHeadScatter::AGREEMENT);
  last = 5;
  EXPECT_TRUE(clusters().empty());
  last = 0;
  EXPECT_EQ(clusters().size(), 16);
  EXPECT_GE(reports.Progress.size(), 14U);
}

/// Of a model with ALiBi, the output says how its bias counts.
TEST_F(CorpusFilters, TopContextsSayHowAlibiCounts)
{
  const auto measureOf = [&](int measure)
  {
    Observed<vtkTopContexts> filter;
    filter->SetInputConnection(this->corpus->GetOutputPort());
    filter->SetMeasure(measure);
    return Texts(Updated<vtkTable>(filter.Get())->GetFieldData(), "Measure")[0];
  };
  EXPECT_EQ(measureOf(vtkTopContexts::SCORE), "Score");
  this->reader->SetFileName(
    (fs::path(ATLAS_DATA_DIR) / "models" / "language-alibi" / "config.json").string().c_str());
  EXPECT_EQ(measureOf(vtkTopContexts::SCORE), "Score, with the bias of ALiBi by distance");
  EXPECT_EQ(measureOf(vtkTopContexts::ATTENTION), "Attention");
}

TEST_F(CorpusFilters, TopContextsHaveTheirTokens)
{
  const CorpusStatistics expected = this->Measured();
  Observed<vtkTopContexts> filter;
  this->Show(filter, 1, 5);
  filter->SetTop(7);
  filter->SetRecorded(2);
  for (const int measure : { 0, 1, 2, 3 })
  {
    filter->SetMeasure(measure);
    auto* table = Updated<vtkTable>(filter.Get());
    const std::vector<TopContext>& contexts = expected.heads[13].contexts[measure];
    ASSERT_EQ(table->GetNumberOfRows(), 7);
    for (vtkIdType row = 0; row < 7; ++row)
    {
      const TopContext& context = contexts[row];
      EXPECT_EQ(Number(table, row, "Rank"), row + 1);
      EXPECT_EQ(Number(table, row, "Value"), static_cast<double>(context.value));
      EXPECT_EQ(Number(table, row, "Position"), static_cast<double>(context.begin + context.query));
      const auto tokenAt = [&](std::int32_t position)
      {
        const auto id =
          std::find(expected.ids.begin(), expected.ids.end(), context.tokens[position]);
        return expected.texts[id - expected.ids.begin()];
      };
      EXPECT_EQ(Text(table, row, "Query Token"), tokenAt(context.query));
      EXPECT_THAT(Text(table, row, "Text"), HasSubstr("(" + tokenAt(context.key) + ")"));
    }
    auto* prompts = OutputOf<vtkTable>(filter.Get(), 3);
    ASSERT_EQ(prompts->GetNumberOfRows(), static_cast<vtkIdType>(contexts[1].tokens.size()));
    for (vtkIdType row = 0; row < prompts->GetNumberOfRows(); ++row)
    {
      EXPECT_EQ(Number(prompts, row, "TokenId"), contexts[1].tokens[row]);
      EXPECT_EQ(Number(prompts, row, "Sequence"), 0);
    }
    const auto fieldOf = [&](const char* name)
    { return prompts->GetFieldData()->GetArray(name)->GetComponent(0, 0); };
    EXPECT_EQ(fieldOf("Query"), contexts[1].query);
    EXPECT_EQ(fieldOf("Key"), contexts[1].key);
    auto* marks = OutputOf<vtkPolyData>(filter.Get(), 2);
    EXPECT_GE(marks->GetNumberOfCells(), 7);
    EXPECT_LE(marks->GetNumberOfCells(), 14);
    auto* texts = OutputOf<vtkPolyData>(filter.Get(), 4);
    EXPECT_THAT(Values(texts->GetCellData(), "Rank"), testing::ElementsAre(1, 2, 3, 4, 5, 6, 7));
    for (vtkIdType row = 0; row < 7; ++row)
    {
      std::array<double, 6> bounds;
      texts->GetCellBounds(row, bounds.data());
      EXPECT_EQ((bounds[2] + bounds[3]) / 2, -1. - static_cast<double>(row));
    }
  }
}

/// Words lie at the marks of queries and keys that are among their letters; a text begins with its
/// value.
TEST_F(CorpusFilters, TopContextsTearNoWords)
{
  Observed<vtkTopContexts> filter;
  this->Show(filter, 1, 5);
  filter->SetTop(3);
  auto* table = Updated<vtkTable>(filter.Get());
  const std::size_t all = this->Measured().heads[13].contexts[vtkTopContexts::ATTENTION].size();
  EXPECT_EQ(Texts(table->GetFieldData(), "Listed")[0], "3 of " + std::to_string(all) + " texts");
  auto* words = OutputOf<vtkPolyData>(filter.Get(), 1);
  auto* marks = OutputOf<vtkPolyData>(filter.Get(), 2);
  const std::vector<std::string> tokens = Texts(words->GetPointData(), "Token");
  const std::vector<double> ranks = Values(words->GetPointData(), "Rank");
  const std::vector<double> sides = Values(words->GetPointData(), "Side");
  const std::vector<double> kinds = Values(words->GetPointData(), "Kind");
  std::map<double, std::string> texts;
  vtkIdType mark = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i)
  {
    const bool isFirst = i == 0 || ranks[i] != ranks[i - 1];
    if (isFirst)
    {
      std::array<char, 32> begin;
      std::snprintf(begin.data(), begin.size(), "%.0f.  %.3g", ranks[i],
        Number(table, static_cast<vtkIdType>(ranks[i]) - 1, "Value"));
      EXPECT_EQ(tokens[i], begin.data());
      continue;
    }
    texts[ranks[i]] += tokens[i];
    if (kinds[i] < 0)
    {
      continue;
    }
    std::array<double, 6> bounds;
    marks->GetCellBounds(mark++, bounds.data());
    const bool beginsWord = tokens[i].compare(0, 1, " ") == 0;
    if (sides[i - 1] == 0) // ends at the mark
    {
      EXPECT_DOUBLE_EQ(words->GetPoint(static_cast<vtkIdType>(i) - 1)[0], bounds[0]);
    }
    else
    {
      EXPECT_TRUE(beginsWord || kinds[i - 1] >= 0) << tokens[i - 1] << tokens[i];
    }
    if (i + 1 < tokens.size() && ranks[i + 1] == ranks[i] && sides[i + 1] == 1)
    {
      EXPECT_DOUBLE_EQ(words->GetPoint(static_cast<vtkIdType>(i) + 1)[0], bounds[1]);
    }
  }
  EXPECT_EQ(mark, marks->GetNumberOfCells());
  for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
  {
    std::string whole = Text(table, row, "Text");
    const auto isSign = [](char letter)
    { return std::string("[]()").find(letter) != std::string::npos; };
    whole.erase(std::remove_if(whole.begin(), whole.end(), isSign), whole.end());
    std::string shown = texts[static_cast<double>(row) + 1];
    shown.erase(std::remove_if(shown.begin(), shown.end(), isSign), shown.end());
    EXPECT_EQ(shown, whole);
  }
}

TEST_F(CorpusFilters, HeadTokenTableIsSorted)
{
  const CorpusStatistics expected = this->Measured();
  Observed<vtkHeadTokenTable> filter;
  this->Show(filter, 0, 6);
  filter->SetMinimumOccurrences(3);
  const std::vector<const char*> columns = { "To Total", "From Total", "To", "From",
    "Occurrences" };
  for (std::size_t by = 0; by < columns.size(); ++by)
  {
    filter->SetSortBy(static_cast<int>(by));
    auto* table = Updated<vtkTable>(filter.Get());
    const auto count = std::count_if(expected.occurrences.begin(), expected.occurrences.end(),
      [](std::int64_t number) { return number >= 3; });
    ASSERT_EQ(table->GetNumberOfRows(), count);
    for (vtkIdType row = 0; row < count; ++row)
    {
      const auto id = std::find(expected.ids.begin(), expected.ids.end(),
        static_cast<std::int64_t>(Number(table, row, "TokenId")));
      const std::size_t kind = id - expected.ids.begin();
      const TokenAttention& token = expected.heads[6].tokens[kind];
      EXPECT_EQ(Text(table, row, "Token"), expected.texts[kind]);
      EXPECT_EQ(Number(table, row, "To Total"), token.to.Value());
      EXPECT_EQ(Number(table, row, "From"),
        token.from.Value() / static_cast<double>(expected.occurrences[kind]));
      EXPECT_TRUE(
        row == 0 || Number(table, row - 1, columns[by]) >= Number(table, row, columns[by]));
    }
  }
  filter->SetTop(4);
  EXPECT_EQ(Updated<vtkTable>(filter.Get())->GetNumberOfRows(), 4);
}

/// Shares add up to all queries; means that follow from bins and quantiles are those of the table.
TEST_F(CorpusFilters, HeadHistogramCountsAllQueries)
{
  vtkTable* statistics = this->Table();
  Observed<vtkHeadHistogram> filter;
  this->Show(filter, 1, 5);
  constexpr vtkIdType Row = 13;
  for (const auto& [quantity, name] : { std::pair(vtkHeadHistogram::ENTROPY, "Entropy"),
         { vtkHeadHistogram::STRONGEST_WEIGHT, "Strongest Weight" },
         { vtkHeadHistogram::DISTANCE, "Mean Distance" } })
  {
    filter->SetQuantity(quantity);
    auto* table = Updated<vtkTable>(filter.Get());
    const bool isDistance = quantity == vtkHeadHistogram::DISTANCE;
    ASSERT_EQ(table->GetNumberOfRows(), isDistance ? 128 : 20);
    double queries = 0;
    double mean = 0;
    for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
    {
      const double value =
        isDistance ? static_cast<double>(row) : (static_cast<double>(row) + 0.5) / 20;
      EXPECT_DOUBLE_EQ(Number(table, row, "Value"), value);
      queries += Number(table, row, "Count");
      mean += value * Number(table, row, "Share");
      EXPECT_NEAR(
        Number(table, row, "Cumulative"), queries / Number(statistics, Row, "Queries"), 1e-5);
    }
    EXPECT_NEAR(queries, Number(statistics, Row, "Queries"), isDistance ? 0.01 : 0);
    EXPECT_NEAR(mean, Number(statistics, Row, name), isDistance ? 1e-4 : 0.5 / 20);
  }
  filter->Update();
  auto* quantiles = OutputOf<vtkTable>(filter.Get(), 1);
  ASSERT_EQ(quantiles->GetNumberOfRows(), 101);
  for (const char* name : { "Entropy", "Concentration", "Written Norm", "Next Token Effect" })
  {
    double sum = 0;
    for (vtkIdType row = 0; row < 101; ++row)
    {
      EXPECT_DOUBLE_EQ(Number(quantiles, row, "Quantile"), static_cast<double>(row) / 100);
      EXPECT_TRUE(row == 0 || Number(quantiles, row, name) >= Number(quantiles, row - 1, name));
      sum += Number(quantiles, row, name) * (row % 100 == 0 ? 0.5 : 1);
    }
    const double range = Number(quantiles, 100, name) - Number(quantiles, 0, name);
    EXPECT_NEAR(sum / 100, Number(statistics, Row, name), 0.02 * range) << name;
    EXPECT_EQ(Number(quantiles, 50, name),
      Number(statistics, Row, (std::string("Median ") + name).c_str()));
    EXPECT_EQ(
      Number(quantiles, 95, name), Number(statistics, Row, (std::string(name) + " P95").c_str()));
  }
}

/// Inner products of the points of queries and keys are what the three parts add to scores.
TEST_F(CorpusFilters, ScorePartsArePoints)
{
  const CorpusStatistics expected = this->Measured();
  Observed<vtkScoreParts> filter;
  this->Show(filter, 1, 5);
  filter->SetParts(16);
  filter->SetEnds(5);
  auto* table = Updated<vtkTable>(filter.Get());
  ASSERT_EQ(table->GetNumberOfRows(), 16);
  EXPECT_NEAR(Number(table, 15, "Cumulative"), 1, 1e-9);
  EXPECT_EQ(OutputOf<vtkTable>(filter.Get(), 1)->GetNumberOfRows(), 16 * 2 * 2 * 5);
  filter->SetParts(3);
  filter->Update();
  auto* points = OutputOf<vtkPolyData>(filter.Get(), 2);
  const std::int64_t samples = expected.samples.size();
  ASSERT_EQ(samples, 64);
  ASSERT_EQ(points->GetNumberOfPoints(), 2 * samples);
  // The three parts hold a known share of the variance of scores; what is left is the rest of it.
  double shown = 0;
  double rest = 0;
  Eigen::VectorXd mean(16);
  for (int i = 0; i < 16; ++i)
  {
    mean[i] = expected.heads[13].keySum[i].Value() / static_cast<double>(expected.tokens);
  }
  for (std::int64_t q = 0; q < samples; ++q)
  {
    for (std::int64_t k = 0; k < samples; ++k)
    {
      const auto vectorOf = [](const std::vector<float>& all) -> Eigen::VectorXd
      { return Eigen::Map<const Eigen::VectorXf>(all.data() + 13 * 16, 16).cast<double>(); };
      const double score =
        vectorOf(expected.samples[q].queries).dot(vectorOf(expected.samples[k].keys) - mean) / 4;
      double a[3];
      double b[3];
      points->GetPoint(q, a);
      points->GetPoint(samples + k, b);
      const double part = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
      shown += part * part;
      rest += (score - part) * (score - part);
    }
  }
  const double share = Number(OutputOf<vtkTable>(filter.Get()), 2, "Cumulative");
  EXPECT_NEAR(shown / (shown + rest), share, 0.15); // of 64 tokens of 2000
  EXPECT_EQ(points->GetPointData()->GetArray("Kind")->GetComponent(0, 0), 0);
  EXPECT_EQ(points->GetPointData()->GetArray("Kind")->GetComponent(samples, 0), 1);
}

/// With all tokens drawn, the points have the mean 0 and the variances of the parts along the axes,
/// which are not correlated.
TEST_F(CorpusFilters, OutputPartsArePrincipalComponents)
{
  this->corpus->SetSampleValues(true);
  this->corpus->SetAddSpecialTokens(false);
  this->corpus->SetSamples(100000);
  Observed<vtkScoreParts> filter;
  this->Show(filter, 1, 5);
  filter->SetModelConnection(this->reader->GetOutputPort());
  filter->SetCircuit(vtkScoreParts::OUTPUTS);
  filter->SetParts(3);
  filter->SetEnds(2);
  auto* table = Updated<vtkTable>(filter.Get());
  ASSERT_EQ(table->GetNumberOfRows(), 3);
  auto* points = OutputOf<vtkPolyData>(filter.Get(), 2);
  const auto tokens = static_cast<vtkIdType>(Number(this->Table(), 0, "Queries"));
  ASSERT_EQ(points->GetNumberOfPoints(), tokens);
  EXPECT_EQ(points->GetPointData()->GetArray("Kind")->GetRange()[0], 4);
  for (int i = 0; i < 3; ++i)
  {
    const double variance = Number(table, i, "Variance");
    EXPECT_NEAR(Number(table, i, "Strength"), std::sqrt(variance), 1e-12);
    double mean = 0;
    for (vtkIdType p = 0; p < tokens; ++p)
    {
      mean += points->GetPoint(p)[i] / static_cast<double>(tokens);
    }
    EXPECT_NEAR(mean, 0, 1e-4 * std::sqrt(variance));
    for (int j = 0; j <= i; ++j)
    {
      double product = 0;
      for (vtkIdType p = 0; p < tokens; ++p)
      {
        const double* place = points->GetPoint(p);
        product += place[i] * place[j] / static_cast<double>(tokens);
      }
      EXPECT_NEAR(product, i == j ? variance : 0, 1e-3 * Number(table, 0, "Variance"));
    }
  }
  auto* ends = OutputOf<vtkTable>(filter.Get(), 1);
  ASSERT_EQ(ends->GetNumberOfRows(), 3 * 3 * 2 * 2);
  EXPECT_EQ(Number(ends, 0, "Kind"), 2);
  EXPECT_EQ(Text(ends, 0, "End"), "Highest");
  EXPECT_GE(Number(ends, 0, "Coordinate"), Number(ends, 1, "Coordinate"));
  EXPECT_LE(Number(ends, 2, "Coordinate"), Number(ends, 3, "Coordinate"));
  EXPECT_EQ(Number(ends, 4, "Kind"), 3);
  EXPECT_EQ(Number(ends, 4, "Document"), -1);
  EXPECT_EQ(Number(ends, 8, "Kind"), 4);
  EXPECT_GE(Number(ends, 8, "Document"), 0);
}

TEST_F(CorpusFilters, HeadScatterPlacesHeads)
{
  Observed<vtkHeadScatter> filter;
  filter->SetInputConnection(this->corpus->GetOutputPort());
  filter->SetXColumn("Entropy");
  filter->SetYColumn("Mean Distance");
  filter->SetClusters(3);
  vtkTable* table = this->Table();
  auto* discs = Updated<vtkPolyData>(filter.Get());
  ASSERT_EQ(discs->GetNumberOfCells(), 16);
  const auto centerOf = [&](vtkIdType cell)
  {
    const double* box = discs->GetCell(cell)->GetBounds();
    return std::array<double, 2>{ (box[0] + box[1]) / 2, (box[2] + box[3]) / 2 };
  };
  // Places are linear in the columns.
  for (vtkIdType i = 2; i < 16; ++i)
  {
    const auto linear = [&](const char* name, int axis)
    {
      const double first = Number(table, 0, name);
      const double step = Number(table, 1, name) - first;
      const double at = (Number(table, i, name) - first) / step;
      const double base = centerOf(0).at(axis);
      EXPECT_NEAR(centerOf(i).at(axis), base + at * (centerOf(1).at(axis) - base), 1e-3)
        << name << i;
    };
    linear("Entropy", 0);
    linear("Mean Distance", 1);
  }
  const std::vector<double> clusters = Values(discs->GetCellData(), "Cluster");
  EXPECT_EQ(std::set<double>(clusters.begin(), clusters.end()), (std::set<double>{ 0, 1, 2 }));
  EXPECT_EQ(
    discs->GetCellData()->GetArray("Copying")->GetComponent(3, 0), Number(table, 3, "Copying"));
  EXPECT_THAT(
    Texts(discs->GetFieldData(), "Signs"), ElementsAre("A circle is a head (layer.head)."));
  // The legend names the heads of each cluster in its color.
  std::istringstream legend(Texts(discs->GetFieldData(), "ClusterColor Legend")[0]);
  std::string line;
  std::getline(legend, line);
  EXPECT_EQ(line, "Cluster: heads");
  std::size_t lines = 0;
  while (std::getline(legend, line))
  {
    std::string cluster = std::to_string(lines++) + ":";
    std::string color;
    int members = 0;
    for (vtkIdType i = 0; i < 16; ++i)
    {
      const auto at = [&](const char* name, int component)
      {
        return static_cast<int>(discs->GetCellData()->GetArray(name)->GetComponent(i, component));
      };
      if (at("Cluster", 0) == static_cast<int>(lines) - 1)
      {
        color = std::to_string(at("ClusterColor", 0)) + " " +
                std::to_string(at("ClusterColor", 1)) + " " +
                std::to_string(at("ClusterColor", 2)) + " ";
        cluster += ++members > 4
                     ? ""
                     : " " + std::to_string(at("Layer", 0)) + "." + std::to_string(at("Head", 0));
      }
    }
    cluster += members > 4 ? " +" + std::to_string(members - 4) : "";
    EXPECT_EQ(line, color + cluster);
  }
  EXPECT_EQ(lines, 3);
  EXPECT_THAT(Texts(OutputOf<vtkPolyData>(filter.Get(), 1)->GetPointData(), "Token"),
    testing::IsSupersetOf({ "Mean Distance (tokens)", "Entropy (share of its maximum)" }));
  for (const int layout : { 1, 2 })
  {
    filter->SetLayout(layout);
    discs = Updated<vtkPolyData>(filter.Get());
    EXPECT_EQ(discs->GetNumberOfCells(), 16);
    EXPECT_EQ(OutputOf<vtkPolyData>(filter.Get(), 2)->GetNumberOfCells(), 0);
    const double* box = discs->GetBounds();
    EXPECT_GE(box[0], 0);
    EXPECT_LE(box[3], 1);
    EXPECT_THAT(Texts(discs->GetFieldData(), "Signs")[0], testing::HasSubstr("The nearer two are"));
  }
  // The areas are told from the smallest value to the largest.
  filter->SetLayout(0);
  filter->SetSizeColumn("Entropy");
  const std::string signs = Texts(Updated<vtkPolyData>(filter.Get())->GetFieldData(), "Signs")[0];
  EXPECT_THAT(signs, testing::HasSubstr("Its area: Entropy (share of its maximum), from "));
  std::vector<double> entropies = Values(table->GetRowData(), "Entropy");
  std::sort(entropies.begin(), entropies.end());
  EXPECT_NEAR(std::stod(signs.substr(signs.find("from ") + 5)), entropies.front(), 1e-3);
  EXPECT_NEAR(std::stod(signs.substr(signs.find("to ") + 3)), entropies.back(), 1e-3);
}

/// TestHostileInput.py has bad input.
TEST_F(CorpusFilters, OfNoTextIsEmpty)
{
  this->corpus->ClearFiles();
  EXPECT_EQ(this->Table()->GetNumberOfRows(), 0);
  Observed<vtkHeadTokenTable> filter;
  filter->SetInputConnection(this->corpus->GetOutputPort());
  EXPECT_EQ(Updated<vtkTable>(filter.Get())->GetNumberOfRows(), 0);
}
