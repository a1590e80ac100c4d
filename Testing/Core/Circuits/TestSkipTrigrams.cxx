#include "Circuits/SkipTrigrams.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Circuits/Internal/HeadFactors.h"
#include "Circuits/Internal/LargestPartners.h"
#include "ErrorMessage.h"
#include "Numerics/DotProduct.h"
#include "Numerics/MatrixProduct.h"
#include "Reports.h"
#include "TablesOracle.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::IsEmpty;
using testing::SizeIs;

namespace
{

using Ids = std::vector<std::int32_t>;

Ids IdsOf(const std::vector<SkipTrigram>& trigrams)
{
  Ids ids;
  for (const SkipTrigram& trigram : trigrams)
  {
    ids.insert(ids.end(), { trigram.source, trigram.destination, trigram.output });
  }
  return ids;
}

/// All skip-trigrams of a head with a positive score, in order.
std::vector<SkipTrigram> AllByBruteForce(
  const Transformer& model, bool processes, std::int64_t layer, std::int64_t head)
{
  const ProcessedWeights weights(
    model, processes ? WeightSteps::TransformerLens : WeightSteps::Stored);
  const HeadFactors factors = MakeHeadFactors(weights, layer, head, 1, {});
  const DoubleMatrix qk = factors.queries * factors.keys.transpose();
  const DoubleMatrix ov = factors.values * factors.outputs.transpose();
  std::vector<SkipTrigram> all;
  const auto count = static_cast<std::int32_t>(qk.rows());
  for (std::int32_t s = 0; s < count; ++s)
  {
    for (std::int32_t d = 0; d < count; ++d)
    {
      for (std::int32_t o = 0; qk(d, s) > 0 && o < count; ++o)
      {
        if (ov(s, o) > 0)
        {
          all.push_back({ s, d, o, qk(d, s), ov(s, o), qk(d, s) * ov(s, o) });
        }
      }
    }
  }
  std::sort(all.begin(), all.end(),
    [](const SkipTrigram& a, const SkipTrigram& b) { return a.IsBefore(b); });
  return all;
}

using OfSkipTrigrams = OfTables;

INSTANTIATE_TEST_SUITE_P(Models, OfSkipTrigrams, OfCircuits::Models(), OfCircuits::Name);

TEST_P(OfSkipTrigrams, AreExpected)
{
  const Transformer& model = this->Oracle.GetModel();
  SkipTrigramOptions options;
  Ids ids;
  std::vector<double> scores;
  std::vector<double> factors;
  for (options.layer = 0; options.layer < model.GetConfig().layers; ++options.layer)
  {
    for (options.head = 0; options.head < model.GetConfig().heads; ++options.head)
    {
      const auto found = FindSkipTrigrams(model, options);
      ASSERT_THAT(found.trigrams, SizeIs(50));
      const Ids some = IdsOf(found.trigrams);
      ids.insert(ids.end(), some.begin(), some.end());
      for (const SkipTrigram& trigram : found.trigrams)
      {
        scores.push_back(trigram.score);
        factors.insert(factors.end(), { trigram.queryKey, trigram.outputValue });
      }
    }
  }
  EXPECT_EQ(ids, this->Oracle.Ids("skip.ids"));
  ExpectClose("skip.score", scores, this->Oracle.Values("skip.score"), TablesTolerance);
  ExpectClose("skip.factors", factors, this->Oracle.Values("skip.factors"), TablesTolerance);
}

/// Long lists too, of which most products lie close together.
TEST_P(OfSkipTrigrams, AreThoseOfBruteForce)
{
  const std::vector<SkipTrigram> all = AllByBruteForce(this->Oracle.GetModel(), false, 1, 2);
  for (const int top : { 1, 7, 3000 })
  {
    SkipTrigramOptions options;
    options.layer = 1;
    options.head = 2;
    options.processes = false;
    options.top = top;
    const auto found = FindSkipTrigrams(this->Oracle.GetModel(), options);
    EXPECT_EQ(IdsOf(found.trigrams), IdsOf({ all.begin(), all.begin() + top }));
  }
}

TEST(SkipTrigrams, DoNotDependOnThreadsAndParts)
{
  const TablesOracle oracle("gpt2");
  SkipTrigramOptions options;
  options.threads = 1;
  const auto expected = FindSkipTrigrams(oracle.GetModel(), options);
  options.threads = 4;
  EXPECT_EQ(IdsOf(FindSkipTrigrams(oracle.GetModel(), options).trigrams), IdsOf(expected.trigrams));
  options.parts = 3;
  std::vector<SkipTrigram> joined;
  for (options.part = 0; options.part < options.parts; ++options.part)
  {
    const auto part = FindSkipTrigrams(oracle.GetModel(), options);
    joined.insert(joined.end(), part.trigrams.begin(), part.trigrams.end());
  }
  const std::vector<SkipTrigram> best = JoinSkipTrigrams(joined, options.top);
  EXPECT_EQ(IdsOf(best), IdsOf(expected.trigrams));
  for (std::size_t i = 0; i < best.size(); ++i)
  {
    EXPECT_EQ(best[i].score, expected.trigrams[i].score);
  }
}

TEST(SkipTrigrams, OfChosenSources)
{
  const TablesOracle oracle("attn-only");
  std::vector<SkipTrigram> all = AllByBruteForce(oracle.GetModel(), true, 0, 1);
  all.erase(std::remove_if(all.begin(), all.end(), [](const SkipTrigram& trigram)
              { return trigram.source != 5 && trigram.source != 40; }),
    all.end());
  SkipTrigramOptions options;
  options.head = 1;
  options.sources = { 40, 5, 40 };
  options.top = 20;
  EXPECT_EQ(IdsOf(FindSkipTrigrams(oracle.GetModel(), options).trigrams),
    IdsOf({ all.begin(), all.begin() + 20 }));
}

/// The tokens with the largest product of the lengths of centered key and value.
Ids WithLongestVectors(
  const Transformer& model, std::int64_t layer, std::int64_t head, std::int64_t count)
{
  const ProcessedWeights weights(model, WeightSteps::TransformerLens);
  const HeadFactors factors = MakeHeadFactors(weights, layer, head, 1, {});
  const Eigen::VectorXd lengths =
    factors.keys.rowwise().norm().cwiseProduct(factors.values.rowwise().norm());
  Ids ids(lengths.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::sort(ids.begin(), ids.end(),
    [&](std::int32_t a, std::int32_t b) { return lengths[a] > lengths[b]; });
  ids.resize(ToIndex(count));
  return ids;
}

TEST(SkipTrigrams, OfTheSourcesWithTheLongestKeysAndValues)
{
  const TablesOracle oracle("gpt2");
  const Transformer& model = oracle.GetModel();
  const std::vector<SkipTrigram> all = AllByBruteForce(model, true, 1, 2);
  SkipTrigramOptions options;
  options.layer = 1;
  options.head = 2;
  options.top = 1;
  int complete = 0; // lists that are those of all sources, although some were left out
  const std::int64_t vocabulary = model.GetConfig().vocabulary;
  for (options.most = 1; options.most <= vocabulary; ++options.most)
  {
    const Ids chosen = WithLongestVectors(model, 1, 2, options.most);
    const auto isChosen = [&](const SkipTrigram& trigram)
    { return std::find(chosen.begin(), chosen.end(), trigram.source) != chosen.end(); };
    const auto first = std::find_if(all.begin(), all.end(), isChosen);
    const SkipTrigramList found = FindSkipTrigrams(model, options);
    ASSERT_EQ(IdsOf(found.trigrams), IdsOf({ first, first + 1 })) << options.most;
    const auto other = std::find_if_not(all.begin(), all.end(), isChosen);
    EXPECT_EQ(found.leftOut > 0, options.most < vocabulary);
    EXPECT_TRUE(other == all.end() || other->score <= found.leftOut) << options.most;
    if (AreOfAllSources(found.trigrams, options.top, found.leftOut))
    {
      EXPECT_EQ(IdsOf(found.trigrams), IdsOf({ all.begin(), all.begin() + 1 })) << options.most;
      ++complete;
    }
    else
    {
      EXPECT_LT(options.most, vocabulary);
    }
  }
  EXPECT_GT(complete, 1);
  EXPECT_LT(complete, vocabulary);
}

TEST(SkipTrigrams, AreOfAllSourcesIfNoOtherCanHaveAPlace)
{
  const std::vector<SkipTrigram> two = { { 1, 2, 3, 2, 2, 4 }, { 2, 2, 3, 1, 3, 3 } };
  EXPECT_TRUE(AreOfAllSources(two, 2, 2.5));
  EXPECT_FALSE(AreOfAllSources(two, 2, 3)) << "a tie";
  EXPECT_FALSE(AreOfAllSources(two, 3, 2.5)) << "a place is left";
  EXPECT_TRUE(AreOfAllSources(two, 3, 0));
  EXPECT_TRUE(AreOfAllSources({}, 3, 0));
}

TEST(SkipTrigrams, StopOnRequest)
{
  const TablesOracle oracle("gpt2");
  SkipTrigramOptions options;
  for (std::size_t last = 1; last <= 3; ++last)
  {
    std::vector<double> reports;
    options.progress = KeepReports(reports, last);
    EXPECT_THROW(FindSkipTrigrams(oracle.GetModel(), options), Canceled);
  }
}

TEST(SkipTrigrams, RefuseOptionsThatDoNotFit)
{
  const TablesOracle oracle("gpt2");
  SkipTrigramOptions options;
  options.head = 4;
  EXPECT_THROW(FindSkipTrigrams(oracle.GetModel(), options), OptionError);
  options.head = 0;
  options.most = -1;
  EXPECT_THAT(MessageOf<OptionError>([&] { FindSkipTrigrams(oracle.GetModel(), options); }),
    testing::HasSubstr("SourceLimit: expected 0 or more, found -1"));
  const Transformer bert = Transformer::Read(TransformerOracle::Folder("bert"));
  EXPECT_THAT(
    MessageOf<ModelError>([&] { FindSkipTrigrams(bert, {}); }), testing::HasSubstr("found bert"));
}

/// Vectors of very different lengths, with many equal ones.
DoubleMatrix Vectors(Eigen::Index count, unsigned seed)
{
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  DoubleMatrix rows = DoubleMatrix::NullaryExpr(count, 24, [&] { return normal(random); });
  for (Eigen::Index i = 0; i < count; ++i)
  {
    rows.row(i) *= std::exp(normal(random));
  }
  for (Eigen::Index i = 700; i < 900; ++i)
  {
    rows.row(i) = rows.row(3);
  }
  return rows;
}

TEST(LargestPartners, AreThoseOfAllProducts)
{
  const SingleThreadedBlas blas;
  const DoubleMatrix tokens = Vectors(3000, 1);
  const DoubleMatrix vectors = Vectors(1000, 2).topRows(50);
  const SortedVectors sorted(tokens);
  for (const double least : { 0.0, 20.0 })
  {
    std::vector<PartnerSearch> searches;
    for (Eigen::Index i = 0; i < vectors.rows(); ++i)
    {
      searches.push_back({ vectors.row(i).data(), least });
    }
    std::int64_t bounded = 0;
    const std::vector<PartnerBounds> bounds = BoundPartners(searches, sorted, bounded);
    EXPECT_LT(bounded, vectors.rows() * tokens.rows() * 4 / 5);
    std::int64_t computed = 0;
    for (std::size_t s = 0; s < searches.size(); ++s)
    {
      const PartnerSearch& search = searches[s];
      const std::vector<Partner> found = FindPartners(search, bounds[s], sorted, 10, computed);
      std::vector<Partner> all;
      for (std::int32_t id = 0; id < tokens.rows(); ++id)
      {
        const double product = DotProduct(search.vector, tokens.row(id).data(), tokens.cols());
        if (product >= least && product > 0)
        {
          all.push_back({ id, product });
        }
      }
      std::sort(
        all.begin(), all.end(), [](const Partner& a, const Partner& b) { return a.IsBefore(b); });
      ASSERT_GE(found.size(), std::min<std::size_t>(all.size(), 10));
      for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 10); ++i)
      {
        EXPECT_EQ(found[i].id, all[i].id);
        EXPECT_EQ(found[i].product, all[i].product);
      }
      EXPECT_TRUE(all.empty() || all.front().product <= bounds[s].largest);
      EXPECT_LE(bounds[s].largest,
        std::max(all.empty() ? least : all.front().product, least) * (1 + 1e-5) +
          1e-5 * vectors.row(static_cast<Eigen::Index>(s)).norm() * sorted.Largest());
    }
    EXPECT_LT(computed, vectors.rows() * tokens.rows() / 2);
  }
}

TEST(LargestPartners, OfZeroThereAreNone)
{
  const SingleThreadedBlas blas;
  const DoubleMatrix zero = DoubleMatrix::Zero(5, 4);
  const DoubleMatrix ones = DoubleMatrix::Ones(5, 4);
  const auto find = [](const DoubleMatrix& vector, const DoubleMatrix& tokens)
  {
    const SortedVectors sorted(tokens);
    const PartnerSearch search = { vector.data(), 0 };
    std::int64_t computed = 0;
    const PartnerBounds bounds = BoundPartners({ search }, sorted, computed).front();
    EXPECT_EQ(bounds.largest, 0);
    return FindPartners(search, bounds, sorted, 3, computed);
  };
  EXPECT_THAT(find(zero, ones), IsEmpty());
  EXPECT_THAT(find(ones, zero), IsEmpty());
}

}
