#include "Base/Error.h"
#include "Corpus/ScoreParts.h"
#include "NaiveHeads.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

struct ScorePartsTest : testing::Test
{
  TemporaryDirectory folder;
  std::shared_ptr<const OpenTransformer> model = OpenModel("language-2");
  std::string prose = WriteProse(this->folder);
  CorpusStatistics statistics = Measure(*this->model, this->prose, {}, 1500);
};

}

/// The parts add up to the scores, and their contributions to the variance over all pairs of a
/// query and a key.
TEST_F(ScorePartsTest, AddUpToTheScores)
{
  const NaiveHeads naive("language-2");
  const std::vector<CorpusWindow> windows = WindowsOf(*this->model, this->prose, this->statistics);
  for (const std::size_t number : { 0U, 13U })
  {
    const Eigen::MatrixXd queries = naive.OfAll(windows, number, &NaiveHeads::Head::query);
    const Eigen::MatrixXd keys = naive.OfAll(windows, number, &NaiveHeads::Head::key);
    const Eigen::RowVectorXd mean = keys.colwise().mean();
    const HeadPlace& place = this->statistics.places[number];
    const ScoreParts parts = FindScoreParts(this->statistics, place.layer, place.head, 16);
    EXPECT_LT((parts.keyMean.transpose() - mean).norm(), 1e-5 * mean.norm());
    const Eigen::MatrixXd centered = keys.rowwise() - mean;
    const Eigen::MatrixXd scores = queries * centered.transpose() / 4;
    const auto pairs = static_cast<double>(scores.size());
    EXPECT_NEAR(parts.variance, scores.squaredNorm() / pairs, 1e-5 * parts.variance);
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(scores.rows(), scores.cols());
    double variance = 0;
    double last = 1e30;
    for (const ScorePart& part : parts.parts)
    {
      const Eigen::VectorXd ofQueries = queries * part.query;
      const Eigen::VectorXd ofKeys = centered * part.key;
      EXPECT_NEAR(ofQueries.squaredNorm() / static_cast<double>(ofQueries.size()), 1, 1e-4);
      EXPECT_NEAR(ofKeys.squaredNorm() / static_cast<double>(ofKeys.size()), 1, 1e-4);
      const Eigen::MatrixXd scoresOfPart = part.strength * ofQueries * ofKeys.transpose();
      EXPECT_NEAR(scoresOfPart.squaredNorm() / pairs, part.variance, 1e-4 * parts.variance);
      EXPECT_LE(part.strength, last);
      last = part.strength;
      variance += part.variance;
      sum += scoresOfPart;
    }
    EXPECT_NEAR(variance, parts.variance, 1e-9 * parts.variance);
    EXPECT_LT((sum - scores).norm(), 1e-4 * scores.norm());
  }
}

TEST_F(ScorePartsTest, CoordinatesOfTheTokensThatWereDrawn)
{
  const ScoreParts parts = FindScoreParts(this->statistics, 1, 5, 3);
  const Eigen::MatrixXd queries = CoordinatesOf(this->statistics, 13, parts, false);
  const Eigen::MatrixXd keys = CoordinatesOf(this->statistics, 13, parts, true);
  ASSERT_EQ(queries.rows(), static_cast<Eigen::Index>(this->statistics.samples.size()));
  ASSERT_EQ(keys.cols(), 3);
  const CorpusSample& sample = this->statistics.samples[7];
  double query = 0;
  double key = 0;
  for (std::int64_t i = 0; i < 16; ++i)
  {
    query += static_cast<double>(sample.queries[13 * 16 + i]) * parts.parts[2].query[i];
    key +=
      (static_cast<double>(sample.keys[13 * 16 + i]) - parts.keyMean[i]) * parts.parts[2].key[i];
  }
  EXPECT_NEAR(queries(7, 2), query, 1e-9);
  EXPECT_NEAR(keys(7, 2), key, 1e-9);
}

TEST_F(ScorePartsTest, BadInput)
{
  EXPECT_THROW(FindScoreParts(this->statistics, 2, 0, 4), OptionError);
  EXPECT_THROW(FindScoreParts(BeginCorpus(*this->model, "", {}), 0, 0, 4), OptionError);
  EXPECT_EQ(FindScoreParts(this->statistics, 0, 0, 3).parts.size(), 3);
}
