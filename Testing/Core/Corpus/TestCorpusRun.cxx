#include "AttentionFocus.h"
#include "CorpusFile.h"
#include "CorpusRun.h"
#include "Error.h"
#include "ErrorMessage.h"
#include "HeadCopying.h"
#include "HeadPatterns.h"
#include "LogitAttribution.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"
#include "TemporaryDirectory.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace
{

std::shared_ptr<const OpenTransformer> OpenModel(const std::string& name)
{
  return OpenTransformer::Open(fs::path(ATLAS_DATA_DIR) / "models" / name, "");
}

/// Prose with no repetition made for heads.
std::vector<std::string> Prose()
{
  const fs::path documents = fs::path(ATLAS_SOURCE_DIR) / "Plugin" / "Documentation";
  return { (documents / "Tutorial.md").string(), (documents / "Learning.md").string() };
}

CorpusStatistics Measure(const OpenTransformer& model, const std::vector<std::string>& files,
  const CorpusOptions& options, std::int64_t limit = 0, int threads = 0)
{
  CorpusStatistics statistics = BeginCorpus(model, "model", options);
  CorpusRunOptions run;
  run.files = files;
  run.tokenLimit = limit;
  run.threads = threads;
  MeasureCorpus(model, run, statistics);
  return statistics;
}

/// Statistics of a text by full recordings of all its windows, and loops in double precision.
struct BruteForce
{
  const OpenTransformer& model;
  std::vector<CorpusWindow> windows;
  Recording recording;

  BruteForce(const OpenTransformer& opened, const std::vector<std::string>& files,
    const CorpusOptions& options, std::int64_t limit)
    : model(opened)
  {
    CorpusText text(opened, files, options);
    TransformerInput input;
    std::int64_t tokens = 0;
    std::int64_t ofBatch = 0;
    while (limit == 0 || tokens < limit || ofBatch < options.batch)
    {
      if (ofBatch >= options.batch)
      {
        ofBatch = 0;
      }
      const auto window = text.Next();
      if (!window)
      {
        break;
      }
      this->windows.push_back(*window);
      input.tokens.push_back(window->tokens);
      tokens += static_cast<std::int64_t>(window->tokens.size()) - window->firstQuery;
      ofBatch += static_cast<std::int64_t>(window->tokens.size());
    }
    RecordOptions record;
    record.headOutputs = true;
    record.residual = true;
    this->recording = RecordTransformer(opened.GetModel(), input, record);
  }

  /// Calls use(window, query, attention to all keys, row of the recording).
  template<class Use>
  void ForQueries(const HeadPlace& place, const Use& use) const
  {
    for (std::size_t w = 0; w < this->windows.size(); ++w)
    {
      const std::int64_t length = this->windows[w].tokens.size();
      std::vector<float> weights(length * length);
      EvaluateAttention(this->recording, static_cast<std::int64_t>(w), place.layer, place.head,
        AttentionQuantity::Weights, 0, length, weights.data());
      for (std::int64_t query = this->windows[w].firstQuery; query < length; ++query)
      {
        use(this->windows[w], query, weights.data() + query * length,
          this->recording.sequenceOffsets[w] + query);
      }
    }
  }
};

/// All sums of a statistics' heads as numbers, for comparisons to the byte.
std::vector<std::int64_t> BytesOf(const CorpusStatistics& statistics)
{
  std::vector<std::int64_t> all = { statistics.documents, statistics.windows, statistics.tokens };
  const auto addSums = [&all](const auto& sums)
  {
    for (const ExactSum& sum : sums)
    {
      all.insert(all.end(), { sum.High(), sum.Low() });
    }
  };
  all.insert(all.end(), statistics.ids.begin(), statistics.ids.end());
  all.insert(all.end(), statistics.occurrences.begin(), statistics.occurrences.end());
  addSums(statistics.products);
  for (const CorpusHead& head : statistics.heads)
  {
    addSums(head.sums);
    addSums(head.queryMoment);
    addSums(head.keyMoment);
    addSums(head.keySum);
    all.insert(all.end(), head.counts.begin(), head.counts.end());
    for (const auto& sketch : head.sketches)
    {
      all.insert(all.end(), sketch.GetBins().begin(), sketch.GetBins().end());
    }
    for (const WeightSum& sum : head.distances)
    {
      all.push_back(sum.Stored());
    }
    for (const TokenAttention& token : head.tokens)
    {
      all.insert(all.end(), { token.from.Stored(), token.fromDistance.Stored(), token.to.Stored(),
                              token.toDistance.Stored() });
    }
    for (const auto& list : head.contexts)
    {
      for (const TopContext& context : list)
      {
        all.insert(all.end(), { static_cast<std::int64_t>(std::llrint(context.value * 1e6F)),
                                context.document, context.begin, context.query, context.key });
      }
    }
  }
  for (const CorpusSample& sample : statistics.samples)
  {
    all.insert(all.end(),
      { static_cast<std::int64_t>(sample.order), sample.document, sample.position, sample.token });
  }
  return all;
}

struct CorpusRunTest : testing::TestWithParam<std::string>
{
};

}

/// 10,000 tokens of a model with biases, layer normalization and learned positions.
TEST(CorpusRun, IsEqualToBruteForce)
{
  const auto model = OpenModel("language-2");
  CorpusOptions options;
  options.overlap = 20;
  options.sinkThreshold = 0.25;
  const CorpusStatistics statistics = Measure(*model, Prose(), options, 10'000);
  const BruteForce brute(*model, Prose(), options, 10'000);
  ASSERT_EQ(statistics.windows, static_cast<std::int64_t>(brute.windows.size()));
  ASSERT_GE(statistics.tokens, 10'000);
  ASSERT_TRUE(statistics.hasLogits);
  const ProcessedWeights processed(model->GetModel(), WeightSteps::TransformerLens);
  const ResidualWeights weights(processed);
  std::vector<LogitTarget> targets;
  for (std::size_t w = 0; w < brute.windows.size(); ++w)
  {
    const CorpusWindow& window = brute.windows[w];
    for (std::int64_t i = window.firstQuery;
      i + 1 < static_cast<std::int64_t>(window.tokens.size()); ++i)
    {
      targets.push_back({ brute.recording.sequenceOffsets[w] + i,
        static_cast<std::int32_t>(window.tokens[i + 1]) });
    }
  }
  LastMlps mlps;
  const LogitTerms terms = AttributeLogits(brute.recording, weights, targets, mlps);
  for (std::size_t h = 0; h < statistics.places.size(); ++h)
  {
    const HeadPlace& place = statistics.places[h];
    const CorpusHead& head = statistics.heads[h];
    SCOPED_TRACE("head " + std::to_string(place.layer) + "." + std::to_string(place.head));
    FocusSums focus;
    PatternSums patterns;
    std::map<std::string, double> sums;
    std::vector<double> distances(statistics.options.window);
    std::map<std::int64_t, std::array<double, 4>> ofTokens;
    std::map<std::int64_t, RepeatedTokens> repeated;
    std::vector<double> norms;
    double bestScore = -1e30;
    double bestWeight = 0;
    std::vector<QueryFocus> foci;
    std::vector<float> work;
    Eigen::MatrixXd queries =
      Eigen::MatrixXd::Zero(statistics.headDimension, statistics.headDimension);
    Eigen::MatrixXd keys = queries;
    const RecordedHead& recorded = FindHead(brute.recording, place.layer, place.head);
    brute.ForQueries(place,
      [&](const CorpusWindow& window, std::int64_t query, const float* row, std::int64_t at)
      {
        const std::int64_t sequence = brute.recording.tokens.sequence[at];
        const auto found = repeated.try_emplace(sequence, brute.recording, sequence).first;
        patterns.Add(MeasurePatterns(brute.recording, found->second, sequence, place.layer,
          place.head, query, query + 1, {}, work));
        QueryFocus one;
        MeasureFocus(brute.recording, sequence, place.layer, place.head, AttentionQuantity::Weights,
          query, query + 1, work, &one);
        focus.Add(one, options.sinkThreshold);
        foci.push_back(one);
        std::vector<float> scores(window.tokens.size());
        EvaluateAttention(brute.recording, sequence, place.layer, place.head,
          AttentionQuantity::Scores, query, query + 1, scores.data());
        for (std::int64_t j = 0; j <= query; ++j)
        {
          const double weight = row[j];
          const auto distance = static_cast<double>(query - j);
          distances[query - j] += weight;
          if (j > 0 && j < query)
          {
            auto& from = ofTokens[window.tokens[query]];
            auto& to = ofTokens[window.tokens[j]];
            from[0] += weight;
            from[1] += weight * distance;
            to[2] += weight;
            to[3] += weight * distance;
            bestScore = std::max<double>(bestScore, scores[j]);
            bestWeight = std::max(bestWeight, weight);
          }
        }
        norms.push_back(
          Eigen::Map<const Eigen::VectorXf>(recorded.output.Row(at), recorded.output.columns)
            .cast<double>()
            .norm());
        const auto vectorOf = [&](const SharedMatrix& matrix) -> Eigen::VectorXd
        {
          return Eigen::Map<const Eigen::VectorXf>(matrix.Row(at), matrix.columns).cast<double>();
        };
        queries += vectorOf(recorded.query) * vectorOf(recorded.query).transpose();
        keys += vectorOf(recorded.key) * vectorOf(recorded.key).transpose();
      });
    const auto count = static_cast<double>(statistics.tokens);
    EXPECT_EQ(head.Count(CorpusCount::Queries), statistics.tokens);
    EXPECT_EQ(patterns.queries, statistics.tokens);
    EXPECT_EQ(head.Count(CorpusCount::PrefixQueries), patterns.prefixQueries);
    const auto value = [&](const std::string& name)
    {
      const auto column = std::find_if(CorpusColumns.begin(), CorpusColumns.end(),
        [&](const CorpusColumn& one) { return one.name == name; });
      return CorpusValue(head, *column);
    };
    const std::map<std::string, double> expected = {
      { "Entropy", focus.Mean(FocusMeasure::Entropy) },
      { "Concentration", focus.Mean(FocusMeasure::Concentration) },
      { "Self Weight", focus.Mean(FocusMeasure::SelfWeight) },
      { "First Weight", focus.Mean(FocusMeasure::FirstWeight) },
      { "Strongest Is Self", focus.Mean(FocusMeasure::StrongestIsSelf) },
      { "Strongest Is First", focus.Mean(FocusMeasure::StrongestIsFirst) },
      { "Sink Rate", focus.Mean(FocusMeasure::SinkRate) },
      { "Sink", patterns.Sink() },
      { "Prefix Matching", patterns.PrefixMatching() },
      { "Previous Token", patterns.Score(HeadPattern::PreviousToken, PatternMeasure::Mul) },
      { "Duplicate Token", patterns.Score(HeadPattern::DuplicateToken, PatternMeasure::Mul) },
      { "Induction", patterns.Score(HeadPattern::Induction, PatternMeasure::Mul) },
      { "Strongest Weight",
        std::accumulate(foci.begin(), foci.end(), 0.,
          [](double sum, const QueryFocus& one) { return sum + one.strongestWeight; }) /
          count },
      { "Written Norm", std::accumulate(norms.begin(), norms.end(), 0.) / count },
    };
    for (const auto& [name, number] : expected)
    {
      EXPECT_NEAR(value(name), number, 2e-6 * std::max(1., std::abs(number))) << name;
    }
    const auto column = std::find_if(terms.components.begin(), terms.components.end(),
      [&](const NamedComponent& one)
      {
        return one.name == "head " + std::to_string(place.layer) + "." + std::to_string(place.head);
      });
    ASSERT_NE(column, terms.components.end());
    EXPECT_EQ(head.Count(CorpusCount::NextQueries), static_cast<std::int64_t>(targets.size()));
    EXPECT_NEAR(
      value("Next Token Effect"), terms.values.col(column - terms.components.begin()).mean(), 1e-5);
    double allWeights = 0;
    double mean = 0;
    for (std::size_t d = 0; d < distances.size(); ++d)
    {
      // Each weight is that of another evaluation, rounded to a float.
      EXPECT_NEAR(head.distances[d].Value(), distances[d], 1e-4 + 1e-7 * distances[d]) << d;
      allWeights += distances[d];
      mean += distances[d] * static_cast<double>(d);
    }
    EXPECT_NEAR(MeanDistance(head), mean / allWeights, 1e-6);
    double half = 0;
    std::size_t median = 0;
    while (half + distances[median] < allWeights / 2)
    {
      half += distances[median++];
    }
    EXPECT_EQ(MedianDistance(head), static_cast<double>(median));
    for (std::size_t k = 0; k < statistics.ids.size(); ++k)
    {
      const auto& token = head.tokens[k];
      const auto& of = ofTokens[statistics.ids[k]];
      EXPECT_NEAR(token.from.Value(), of[0], 1e-4 + 1e-7 * of[0]);
      EXPECT_NEAR(token.fromDistance.Value(), of[1], 1e-2);
      EXPECT_NEAR(token.to.Value(), of[2], 1e-4 + 1e-7 * of[2]);
      EXPECT_NEAR(token.toDistance.Value(), of[3], 1e-2);
    }
    const auto best = [&](ContextMeasure measure)
    { return static_cast<double>(head.contexts[static_cast<std::size_t>(measure)].front().value); };
    EXPECT_NEAR(best(ContextMeasure::Score), bestScore, 1e-4);
    EXPECT_NEAR(best(ContextMeasure::Attention), bestWeight, 1e-5);
    std::sort(norms.begin(), norms.end());
    EXPECT_NEAR(best(ContextMeasure::WrittenNorm), norms.back(), 1e-5 * norms.back());
    const double quantile = norms[static_cast<std::size_t>(0.9 * (count - 1))];
    EXPECT_NEAR(head.sketches[static_cast<std::size_t>(CorpusSketch::WrittenNorm)].Quantile(0.9),
      quantile, 1.001 * QuantileSketch::RelativeError * quantile);
    for (std::int64_t j = 0; j < statistics.headDimension; ++j)
    {
      for (std::int64_t i = 0; i <= j; ++i)
      {
        const std::size_t at = j * statistics.headDimension + i;
        EXPECT_NEAR(head.queryMoment[at].Value(), queries(j, i), 1e-6 * queries.norm());
        EXPECT_NEAR(head.keyMoment[at].Value(), keys(j, i), 1e-6 * keys.norm());
      }
    }
  }
}

/// Copying by the function of recordings, on windows without overlap; agreement by the definition.
TEST(CorpusRun, CopyingAndAgreementAreEqualToBruteForce)
{
  const auto model = OpenModel("language-2");
  CorpusOptions options;
  options.window = 96;
  const CorpusStatistics statistics = Measure(*model, Prose(), options, 3000);
  const BruteForce brute(*model, Prose(), options, 3000);
  const std::vector<double> copying =
    MeasureCopying(brute.recording, model->GetModel(), statistics.places, 0);
  std::vector<std::vector<double>> weights(statistics.places.size());
  for (std::size_t h = 0; h < weights.size(); ++h)
  {
    EXPECT_NEAR(CorpusValue(statistics.heads[h], CorpusColumns.back()), copying[h], 1e-5);
    brute.ForQueries(statistics.places[h],
      [&](const CorpusWindow& window, std::int64_t, const float* row, std::int64_t)
      { weights[h].insert(weights[h].end(), row, row + window.tokens.size()); });
  }
  const Eigen::MatrixXd agreement = Agreement(statistics);
  for (std::size_t g = 0; g < weights.size(); ++g)
  {
    for (std::size_t h = 0; h < weights.size(); ++h)
    {
      const Eigen::Map<const Eigen::VectorXd> a(weights[g].data(), weights[g].size());
      const Eigen::Map<const Eigen::VectorXd> b(weights[h].data(), weights[h].size());
      EXPECT_NEAR(agreement(static_cast<Eigen::Index>(g), static_cast<Eigen::Index>(h)),
        a.dot(b) / (a.norm() * b.norm()), 1e-6);
    }
  }
}

/// The same bytes for any number of threads and of processes, and after an interruption.
TEST_P(CorpusRunTest, IsTheSameInParts)
{
  const auto model = OpenModel(GetParam());
  CorpusOptions options;
  options.batch = 300;
  options.samples = 50;
  options.contexts = 4;
  const std::vector<std::string> files = { Prose().front() };
  const CorpusStatistics whole = Measure(*model, files, options, 3000, 1);
  EXPECT_EQ(BytesOf(Measure(*model, files, options, 3000, 2)), BytesOf(whole));
  for (const int parts : { 2, 3 })
  {
    CorpusStatistics sum = BeginCorpus(*model, "model", options);
    CorpusPosition next;
    for (int part = 0; part < parts; ++part)
    {
      CorpusStatistics mine = BeginCorpus(*model, "model", options);
      CorpusRunOptions run;
      run.files = files;
      run.tokenLimit = 3000;
      run.part = part;
      run.parts = parts;
      MeasureCorpus(*model, run, mine);
      EXPECT_LT(mine.tokens, whole.tokens);
      sum.Add(mine);
      EXPECT_TRUE(part == 0 || mine.next == next);
      next = mine.next;
    }
    EXPECT_EQ(BytesOf(sum), BytesOf(whole)) << parts;
    EXPECT_TRUE(next == whole.next);
  }
  CorpusStatistics stopped = BeginCorpus(*model, "model", options);
  CorpusRunOptions run;
  run.files = files;
  run.tokenLimit = 3000;
  int calls = 0;
  run.goesOn = [&calls](double) { return ++calls % 3 != 0; };
  int stops = 0;
  while (stopped.tokens < whole.tokens)
  {
    MeasureCorpus(*model, run, stopped);
    ++stops;
  }
  EXPECT_GT(stops, 2);
  EXPECT_EQ(BytesOf(stopped), BytesOf(whole));
}

INSTANTIATE_TEST_SUITE_P(Models, CorpusRunTest,
  testing::Values("language-2", "bert", "language-alibi"),
  [](const auto& model)
  {
    std::string name = model.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  });

/// With ALiBi, scores of different queries are compared with the bias of the distance: late keys do
/// not win for being late. The best pair of each window, by the formula in double precision.
TEST(CorpusRun, ContextsHaveAlibiByDistance)
{
  const auto model = OpenModel("language-alibi");
  CorpusOptions options;
  const std::vector<std::string> files = { Prose().front() };
  const CorpusStatistics statistics = Measure(*model, files, options, 2000);
  EXPECT_TRUE(statistics.hasAlibi);
  EXPECT_FALSE(Measure(*OpenModel("language-2"), files, options, 100).hasAlibi);
  const BruteForce brute(*model, files, options, 2000);
  const std::vector<double> slopes = AlibiSlopes(model->GetModel().GetConfig().heads);
  for (std::size_t h = 0; h < statistics.places.size(); ++h)
  {
    const HeadPlace& place = statistics.places[h];
    const RecordedHead& recorded = FindHead(brute.recording, place.layer, place.head);
    const auto rowOf = [](const SharedMatrix& matrix, std::int64_t row) -> Eigen::VectorXd
    { return Eigen::Map<const Eigen::VectorXf>(matrix.Row(row), matrix.columns).cast<double>(); };
    std::vector<double> best;
    for (std::size_t w = 0; w < brute.windows.size(); ++w)
    {
      const std::int64_t first = brute.recording.sequenceOffsets[w];
      const auto length = static_cast<std::int64_t>(brute.windows[w].tokens.size());
      double largest = -1e30;
      for (std::int64_t query = 0; query < length; ++query)
      {
        for (std::int64_t key = 1; key < query; ++key)
        {
          const double content =
            rowOf(recorded.query, first + query).dot(rowOf(recorded.key, first + key));
          largest = std::max(largest, statistics.heads[h].scoreScale * content +
                                        slopes[place.head] * static_cast<double>(key - query));
        }
      }
      best.push_back(largest);
    }
    std::sort(best.rbegin(), best.rend());
    const std::vector<TopContext>& found = statistics.heads[h].contexts[0];
    for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), best.size()); ++i)
    {
      EXPECT_NEAR(found[i].value, best[i], 1e-4) << h << " " << i;
    }
  }
}

/// Memory is that of what was seen, whatever the vocabulary: the tables of tokens have the kinds
/// that occurred, and what is asked for grows with these alone.
TEST(CorpusRun, MemoryIsOfTheKindsOfTokensThatOccurred)
{
  const auto model = OpenModel("language-2");
  const CorpusStatistics statistics = Measure(*model, { Prose().front() }, {}, 300);
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
  const CorpusStatistics statistics = Measure(*model, Prose(), {}, 10'000);
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
  std::ofstream(file) << "a\nb\n";
  const CorpusStatistics statistics = Measure(*model, { file }, {});
  EXPECT_EQ(statistics.documents, 2);
  EXPECT_EQ(statistics.tokens, 2);
  EXPECT_TRUE(statistics.isComplete);
  EXPECT_EQ(CorpusValue(statistics.heads[0], CorpusColumns[3]), 1);  // SelfWeight
  EXPECT_EQ(CorpusValue(statistics.heads[0], CorpusColumns[14]), 0); // no next token
  std::ofstream(file) << "\n";
  EXPECT_THAT(MessageOf<OptionError>([&] { Measure(*model, { file }, {}); }),
    HasSubstr("expected documents with tokens, found none"));
  CorpusOptions options;
  options.layers = { 2 };
  EXPECT_THAT(MessageOf<OptionError>([&] { BeginCorpus(*model, "", options); }),
    HasSubstr("0 to 1, found 2"));
  options.layers = { 1 };
  EXPECT_EQ(BeginCorpus(*model, "", options).places.front().layer, 1);
  EXPECT_GT(EstimateCorpusMemory(*model, {}, 1000).Total(), 1 << 20);
}
