#include "Base/Error.h"
#include "Corpus/CorpusFile.h"
#include "Corpus/CorpusRun.h"
#include "ErrorMessage.h"
#include "NaiveHeads.h"
#include "TestName.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

using Rows = NaiveHeads::Rows;

struct CorpusRunTest : testing::TestWithParam<std::string>
{
  TemporaryDirectory folder;
  std::string prose = WriteProse(this->folder);

  static std::string Name(const testing::TestParamInfo<std::string>& info)
  {
    return TestName(info.param);
  }
};
using MeasuresOfCorpus = CorpusRunTest;

/// What is measured of a head, by its definition.
struct HeadSums
{
  std::map<std::string, std::pair<double, double>> means; ///< sum and count of each column
  std::vector<double> distances = std::vector<double>(128);
  std::map<std::int64_t, std::array<double, 4>> tokens; ///< as TokenAttention, by id
  Rows queries = Rows::Zero(16, 16);
  Rows keys = Rows::Zero(16, 16);
  std::vector<double> norms;
  std::array<std::vector<double>, ContextMeasureCount> best; ///< of each window

  void Add(const CorpusWindow& window, const NaiveHeads::Head& head, const Rows& residual,
    const Rows& unembedding)
  {
    const auto& ids = window.tokens;
    const std::set<std::int64_t> different(ids.begin(), ids.end());
    const Rows written = head.withoutBias.colwise() - head.withoutBias.rowwise().mean();
    const Rows logits = written * unembedding;
    std::array<double, ContextMeasureCount> largest;
    largest.fill(-1e30);
    const auto excites = [&](ContextMeasure measure, double value)
    {
      double& most = largest.at(static_cast<std::size_t>(measure));
      most = std::max(most, value);
    };
    for (Eigen::Index i = window.firstQuery; i < residual.rows(); ++i)
    {
      this->AddFocus(head.attention.row(i).head(i + 1));
      this->AddPatterns(ids, head.attention.row(i).head(i + 1));
      this->AddCopying(logits.row(i), different, ids, head.attention.row(i));
      this->norms.push_back(head.written.row(i).norm());
      this->AddTo("Written Norm", this->norms.back());
      excites(ContextMeasure::WrittenNorm, this->norms.back());
      if (i + 1 < residual.rows())
      {
        const auto centered = residual.row(i).array() - residual.row(i).mean();
        const double effect = logits(i, ids[i + 1]) / std::sqrt(centered.square().mean() + 1e-5);
        this->AddTo("Next Token Effect", effect);
        excites(ContextMeasure::NextTokenEffect, effect);
      }
      this->queries += head.query.row(i).transpose() * head.query.row(i);
      this->keys += head.key.row(i).transpose() * head.key.row(i);
      for (Eigen::Index j = 0; j <= i; ++j)
      {
        const double weight = head.attention(i, j);
        const auto distance = static_cast<double>(i - j);
        this->distances[i - j] += weight;
        if (j > 0 && j < i)
        {
          this->tokens[ids[i]][0] += weight;
          this->tokens[ids[i]][1] += weight * distance;
          this->tokens[ids[j]][2] += weight;
          this->tokens[ids[j]][3] += weight * distance;
          excites(ContextMeasure::Score, head.scores(i, j));
          excites(ContextMeasure::Attention, weight);
        }
      }
    }
    for (std::size_t m = 0; m < largest.size(); ++m)
    {
      this->best.at(m).push_back(largest.at(m));
    }
  }

private:
  void AddTo(const std::string& column, double value)
  {
    auto& [sum, count] = this->means[column];
    sum += value;
    count += 1;
  }

  /// The weights of a query, of which the last one is its own.
  void AddFocus(const Eigen::RowVectorXd& weights)
  {
    const Eigen::Index last = weights.size() - 1;
    std::vector<double> sorted(weights.begin(), weights.end());
    std::sort(sorted.rbegin(), sorted.rend());
    const double entropy = -(weights.array() * weights.array().max(1e-300).log()).sum();
    this->AddTo("Entropy", last > 0 ? entropy / std::log(static_cast<double>(last + 1)) : 0);
    this->AddTo("Concentration", sorted[0] - (last > 0 ? sorted[1] : 0));
    this->AddTo("Strongest Weight", sorted[0]);
    this->AddTo("Self Weight", weights[last]);
    this->AddTo("First Weight", weights[0]);
    this->AddTo("Strongest Is Self", weights[last] == sorted[0] ? 1 : 0);
    this->AddTo("Strongest Is First", weights[0] == sorted[0] ? 1 : 0);
    this->AddTo("Sink Rate", weights[0] > 0.25 ? 1 : 0);
  }

  void AddPatterns(const std::vector<std::int64_t>& ids, const Eigen::RowVectorXd& weights)
  {
    const Eigen::Index i = weights.size() - 1;
    double duplicate = 0;
    double induction = 0;
    bool isRepeated = false;
    for (Eigen::Index j = 0; j < i; ++j)
    {
      const bool isSame = ids[j] == ids[i];
      isRepeated = isRepeated || isSame;
      duplicate += isSame ? weights[j] : 0;
      induction += isSame ? weights[j + 1] : 0;
    }
    this->AddTo("Duplicate Token", duplicate);
    this->AddTo("Induction", induction);
    if (isRepeated)
    {
      this->AddTo("Prefix Matching", induction);
    }
    if (i > 0)
    {
      this->AddTo("Previous Token", weights[i - 1]);
      this->AddTo("Sink", weights[0]);
    }
  }

  /// By the formula of HeadCopying.h.
  void AddCopying(const Eigen::RowVectorXd& logits, const std::set<std::int64_t>& different,
    const std::vector<std::int64_t>& ids, const Eigen::RowVectorXd& weights)
  {
    double mean = 0;
    for (const std::int64_t id : different)
    {
      mean += logits[id] / static_cast<double>(different.size());
    }
    double raised = 0;
    for (const std::int64_t id : different)
    {
      raised += std::max(logits[id] - mean, 0.);
    }
    Eigen::Index strongest = 0;
    weights.maxCoeff(&strongest);
    if (raised > 0)
    {
      this->AddTo("Copying", std::max(logits[ids[strongest]] - mean, 0.) / raised);
    }
  }
};

void ExpectEqual(const CorpusStatistics& statistics, const CorpusHead& head, HeadSums& expected)
{
  for (const CorpusColumn& column : CorpusColumns)
  {
    const auto& [sum, count] = expected.means.at(column.name);
    EXPECT_NEAR(CorpusValue(head, column), sum / count, 1e-5 * std::max(1., std::abs(sum / count)))
      << column.name;
    // The weights of the token before are divided by the attention of the queries that have one.
    const std::int64_t first =
      column.sum == CorpusSum::Previous ? head.Count(CorpusCount::FirstQueries) : 0;
    EXPECT_EQ(head.Count(column.count), static_cast<std::int64_t>(count) + first) << column.name;
  }
  double all = 0;
  double mean = 0;
  for (std::size_t d = 0; d < expected.distances.size(); ++d)
  {
    EXPECT_NEAR(head.distances[d].Value(), expected.distances[d], 1e-3) << d;
    all += expected.distances[d];
    mean += expected.distances[d] * static_cast<double>(d);
  }
  EXPECT_NEAR(MeanDistance(head), mean / all, 1e-5);
  double half = 0;
  std::size_t median = 0;
  while (half + expected.distances[median] < all / 2)
  {
    half += expected.distances[median++];
  }
  EXPECT_EQ(MedianDistance(head), static_cast<double>(median));
  for (std::size_t k = 0; k < statistics.ids.size(); ++k)
  {
    const TokenAttention& found = head.tokens[k];
    const std::array<double, 4>& of = expected.tokens[statistics.ids[k]];
    EXPECT_NEAR(found.from.Value(), of[0], 1e-3);
    EXPECT_NEAR(found.fromDistance.Value(), of[1], 1e-2);
    EXPECT_NEAR(found.to.Value(), of[2], 1e-3);
    EXPECT_NEAR(found.toDistance.Value(), of[3], 1e-2);
  }
  for (std::size_t m = 0; m < ContextMeasureCount; ++m)
  {
    std::sort(expected.best.at(m).rbegin(), expected.best.at(m).rend());
    for (std::size_t i = 0; i < 20; ++i)
    {
      EXPECT_NEAR(head.contexts.at(m).at(i).value, expected.best.at(m).at(i), 1e-4)
        << ContextMeasureNames.at(m) << " " << i;
    }
  }
  std::sort(expected.norms.begin(), expected.norms.end());
  const double quantile =
    expected.norms[static_cast<std::size_t>(0.9 * static_cast<double>(statistics.tokens - 1))];
  EXPECT_NEAR(head.Sketch(CorpusSketch::WrittenNorm).Quantile(0.9), quantile,
    1.001 * QuantileSketch::RelativeError * quantile);
  for (Eigen::Index j = 0; j < 16; ++j)
  {
    for (Eigen::Index i = 0; i <= j; ++i)
    {
      EXPECT_NEAR(head.queryMoment[j * 16 + i].Value(), expected.queries(j, i),
        1e-6 * expected.queries.norm());
      EXPECT_NEAR(
        head.keyMoment[j * 16 + i].Value(), expected.keys(j, i), 1e-6 * expected.keys.norm());
    }
  }
}

}

/// Of models with biases and layer normalization, with learned positions and with ALiBi, by which
/// late keys do not win for being late.
TEST_P(MeasuresOfCorpus, AreEqualToTheirDefinitions)
{
  const auto model = OpenModel(GetParam());
  CorpusOptions options;
  options.overlap = 20;
  options.sinkThreshold = 0.25;
  const CorpusStatistics statistics = Measure(*model, this->prose, options, 4000);
  ASSERT_GE(statistics.tokens, 4000);
  EXPECT_TRUE(statistics.hasLogits);
  EXPECT_EQ(statistics.hasAlibi, GetParam() == "language-alibi");
  const NaiveHeads naive(GetParam());
  std::vector<HeadSums> expected(16);
  NaiveHeads::Rows products = NaiveHeads::Rows::Zero(16, 16);
  for (const CorpusWindow& window : WindowsOf(*model, this->prose, statistics))
  {
    const NaiveHeads::Run run = naive.Evaluate(window.tokens);
    const auto queries = run.residual.rows() - window.firstQuery;
    for (std::size_t h = 0; h < 16; ++h)
    {
      expected[h].Add(window, run.heads[h], run.residual, naive.Unembedding());
      for (std::size_t g = 0; g < 16; ++g)
      {
        products(g, h) += run.heads[g]
                            .attention.bottomRows(queries)
                            .cwiseProduct(run.heads[h].attention.bottomRows(queries))
                            .sum();
      }
    }
  }
  for (std::size_t h = 0; h < 16; ++h)
  {
    SCOPED_TRACE("head " + std::to_string(h / 8) + "." + std::to_string(h % 8));
    EXPECT_EQ(statistics.places[h].layer, h / 8);
    EXPECT_EQ(statistics.places[h].head, h % 8);
    ExpectEqual(statistics, statistics.heads[h], expected[h]);
  }
  const Eigen::VectorXd lengths = products.diagonal().cwiseSqrt();
  const Eigen::MatrixXd cosines = products.cwiseQuotient(lengths * lengths.transpose());
  EXPECT_LT((Agreement(statistics) - cosines).cwiseAbs().maxCoeff(), 1e-6);
}

/// The same bytes for any number of threads and of processes, and after an interruption.
TEST_P(CorpusRunTest, IsTheSameInParts)
{
  const auto model = OpenModel(GetParam());
  CorpusOptions options;
  options.batch = 300;
  options.samples = 50;
  options.contexts = 4;
  const CorpusStatistics whole = Measure(*model, this->prose, options, 3000, 1);
  const std::vector<char> expected = CorpusToBytes(whole);
  EXPECT_EQ(CorpusToBytes(Measure(*model, this->prose, options, 3000, 2)), expected);
  CorpusRunOptions run;
  run.files = { this->prose };
  run.tokenLimit = 3000;
  for (run.parts = 2; run.parts <= 3; ++run.parts)
  {
    CorpusStatistics sum;
    for (run.part = 0; run.part < run.parts; ++run.part)
    {
      CorpusStatistics mine = BeginCorpus(*model, "model", options);
      MeasureCorpus(*model, run, mine);
      EXPECT_LT(mine.tokens, whole.tokens);
      EXPECT_TRUE(mine.next == whole.next);
      if (run.part == 0)
      {
        sum = std::move(mine);
      }
      else
      {
        sum.Add(mine);
      }
    }
    EXPECT_EQ(CorpusToBytes(sum), expected) << run.parts;
  }
  run.part = 0;
  run.parts = 1;
  CorpusStatistics stopped = BeginCorpus(*model, "model", options);
  int calls = 0;
  run.goesOn = [&calls](double) { return ++calls % 3 != 0; };
  int stops = 0;
  while (stopped.tokens < whole.tokens)
  {
    MeasureCorpus(*model, run, stopped);
    ++stops;
  }
  EXPECT_GT(stops, 2);
  EXPECT_EQ(CorpusToBytes(stopped), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, CorpusRunTest,
  testing::Values("language-2", "bert", "language-alibi"), CorpusRunTest::Name);
INSTANTIATE_TEST_SUITE_P(
  Models, MeasuresOfCorpus, testing::Values("language-2", "language-alibi"), CorpusRunTest::Name);

/// Memory is that of what was seen, whatever the vocabulary: the tables of tokens have the kinds
/// that occurred, and what is asked for grows with these alone.
TEST(CorpusRun, MemoryIsOfTheKindsOfTokensThatOccurred)
{
  const auto model = OpenModel("language-2");
  const TemporaryDirectory folder;
  const CorpusStatistics statistics = Measure(*model, WriteProse(folder), {}, 300);
  const auto kinds = static_cast<std::int64_t>(statistics.ids.size());
  EXPECT_LT(kinds, model->GetModel().GetConfig().vocabulary / 2);
  for (const CorpusHead& head : statistics.heads)
  {
    EXPECT_EQ(head.tokens.size(), statistics.ids.size());
  }
  const CorpusStatistics begun = BeginCorpus(*model, "", {});
  const std::int64_t ofBatch = begun.options.batch + begun.options.window;
  EXPECT_EQ(KindsAfter(*model, begun, 100), 100);
  EXPECT_EQ(
    KindsAfterBatch(*model, begun), std::min(ofBatch, model->GetModel().GetConfig().vocabulary));
  EXPECT_EQ(KindsAfter(*model, statistics, statistics.next.queries + 10), kinds + 10);
  EXPECT_EQ(KindsAfter(*model, statistics, std::numeric_limits<std::int64_t>::max()),
    model->GetModel().GetConfig().vocabulary);
  const CorpusMemory few = EstimateCorpusMemory(*model, {}, 10);
  const CorpusMemory more = EstimateCorpusMemory(*model, {}, 11);
  EXPECT_EQ(more.statistics - few.statistics, 16 * sizeof(TokenAttention));
  EXPECT_EQ(more.working, few.working);
  // The file takes as much again, and no more is held while it is made.
  EXPECT_EQ(few.Total(), few.statistics + std::max(few.statistics, few.working));
  EXPECT_GE(EstimateCorpusMemory(*model, {}, kinds).statistics, CorpusToBytes(statistics).size());
  EXPECT_EQ(FindShortage(*model, statistics), "");
  ::setenv("ATLAS_MEMORY_LIMIT_KIB", "100", 1);
  EXPECT_THAT(FindShortage(*model, statistics), HasSubstr("the tables of tokens of all heads"));
  ::unsetenv("ATLAS_MEMORY_LIMIT_KIB");
}

/// On prose that was not made for them, heads do what they do on repeated tokens.
TEST(CorpusRun, KnownHeadsAreOnTop)
{
  const auto model = OpenModel("language-2");
  const TemporaryDirectory folder;
  const CorpusStatistics statistics = Measure(*model, WriteProse(folder), {}, 10'000);
  const auto top = [&](const char* name)
  {
    const auto column = std::find_if(CorpusColumns.begin(), CorpusColumns.end(),
      [&](const CorpusColumn& one) { return std::string(one.name) == name; });
    const auto best = std::max_element(statistics.heads.begin(), statistics.heads.end(),
      [&](const CorpusHead& a, const CorpusHead& b)
      { return CorpusValue(a, *column) < CorpusValue(b, *column); });
    return std::pair(
      statistics.places[best - statistics.heads.begin()], CorpusValue(*best, *column));
  };
  const auto [previous, previousValue] = top("Previous Token");
  EXPECT_EQ(previous.layer, 0);
  EXPECT_GT(previousValue, 0.5);
  const auto [induction, inductionValue] = top("Prefix Matching");
  EXPECT_EQ(induction.layer, 1);
  EXPECT_GT(inductionValue, 0.1);
}

TEST(CorpusRun, ShortDocumentsAndNone)
{
  const auto model = OpenModel("language-2");
  const TemporaryDirectory folder;
  const std::string file = (folder / "a.txt").string();
  WriteBytes(file, "a\nb\n");
  const CorpusStatistics statistics = Measure(*model, file, {});
  EXPECT_EQ(statistics.documents, 2);
  EXPECT_EQ(statistics.tokens, 2);
  EXPECT_TRUE(statistics.isComplete);
  EXPECT_EQ(CorpusValue(statistics.heads[0], CorpusColumns[3]), 1);  // SelfWeight
  EXPECT_EQ(CorpusValue(statistics.heads[0], CorpusColumns[14]), 0); // no next token
  WriteBytes(file, "\n");
  EXPECT_THAT(MessageOf<OptionError>([&] { Measure(*model, file, {}); }),
    HasSubstr("expected documents with tokens, found none"));
  CorpusOptions options;
  options.layers = { 2 };
  EXPECT_THAT(MessageOf<OptionError>([&] { BeginCorpus(*model, "", options); }),
    HasSubstr("0 to 1, found 2"));
  options.layers = { 1 };
  EXPECT_EQ(BeginCorpus(*model, "", options).places.front().layer, 1);
  EXPECT_GT(EstimateCorpusMemory(*model, {}, 1000).Total(), 1 << 20);
}
