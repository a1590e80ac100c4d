#include "Base/Error.h"
#include "Corpus/CorpusFile.h"
#include "Corpus/OutputParts.h"
#include "Corpus/ScoreParts.h"
#include "ErrorMessage.h"
#include "NaiveHeads.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

CorpusOptions WithValues()
{
  CorpusOptions options;
  options.sampleValues = true;
  return options;
}

struct OutputPartsTest : testing::Test
{
  TemporaryDirectory folder;
  std::string prose = WriteProse(this->folder);
  NaiveHeads naive;
  std::shared_ptr<const OpenTransformer> model;
  ProcessedWeights weights;
  CorpusStatistics statistics;

  explicit OutputPartsTest(const char* name = "language-2")
    : naive(name)
    , model(OpenModel(name))
    , weights(this->model->GetModel(), WeightSteps::TransformerLens)
    , statistics(Measure(*this->model, this->prose, WithValues(), 1500))
  {
  }
};

}

/// The parts add up to what is written, less its means over dimensions and tokens; their
/// contributions to the variance are those along their directions; coordinates have the variance 1.
TEST_F(OutputPartsTest, AddUpToWhatIsWritten)
{
  const std::vector<CorpusWindow> windows = WindowsOf(*this->model, this->prose, this->statistics);
  for (const HeadPlace& place : { HeadPlace{ 0, 0 }, HeadPlace{ 1, 5 } })
  {
    const Eigen::MatrixXd values =
      this->naive.OfAll(windows, place.layer * 8 + place.head, &NaiveHeads::Head::value);
    Eigen::MatrixXd written = values * this->naive.Output(place.layer, place.head);
    written.colwise() -= written.rowwise().mean().eval();
    written.rowwise() -= written.colwise().mean().eval();
    const auto tokens = static_cast<double>(written.rows());
    const double variance = written.squaredNorm() / tokens;
    const OutputParts found =
      FindOutputParts(this->statistics, this->weights, place.layer, place.head, 64);
    ASSERT_EQ(found.parts.size(), 16);
    EXPECT_NEAR(found.variance, variance, 1e-5 * variance);
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(written.rows(), written.cols());
    double last = 1e30;
    for (const OutputPart& part : found.parts)
    {
      EXPECT_LE(part.strength, last);
      last = part.strength;
      EXPECT_NEAR(part.writing.norm(), 1, 1e-9);
      EXPECT_NEAR(part.variance, part.strength * part.strength, 1e-12);
      const Eigen::VectorXd coordinates =
        (values.rowwise() - found.valueMean.transpose()) * part.reading;
      const Eigen::VectorXd along = written * part.writing;
      EXPECT_LT(
        (along - part.strength * coordinates).cwiseAbs().maxCoeff(), 1e-4 * std::sqrt(variance));
      EXPECT_NEAR(along.squaredNorm() / tokens, part.variance, 1e-4 * variance);
      EXPECT_NEAR(coordinates.squaredNorm() / tokens, 1, 1e-3);
      sum += part.strength * coordinates * part.writing.transpose();
    }
    EXPECT_LT((sum - written).cwiseAbs().maxCoeff(), 1e-4 * std::sqrt(variance));
  }
}

/// A model without embeddings of positions.
struct OutputPartsOfAlibi : OutputPartsTest
{
  OutputPartsOfAlibi()
    : OutputPartsTest("language-alibi")
  {
  }
};

/// In the first layer the value of a token is that of its embedding alone.
TEST_F(OutputPartsOfAlibi, CoordinatesOfEmbeddings)
{
  const OutputParts found = FindOutputParts(this->statistics, this->weights, 0, 3, 4);
  const Eigen::MatrixXd all = EmbeddingCoordinates(this->model->GetModel(), 0, 3, found, 2);
  ASSERT_EQ(all.rows(), 1000);
  ASSERT_EQ(all.cols(), 4);
  for (const std::int64_t token : { 11, 258, 511, 700 })
  {
    const Eigen::VectorXd value = this->naive.Evaluate({ token }).heads[3].value.row(0);
    for (Eigen::Index r = 0; r < 4; ++r)
    {
      EXPECT_NEAR(all(token, r), (value - found.valueMean).dot(found.parts[r].reading), 1e-4);
    }
  }
}

TEST_F(OutputPartsTest, EffectsOnLogits)
{
  const OutputParts found = FindOutputParts(this->statistics, this->weights, 1, 5, 3);
  const Eigen::MatrixXd effects = LogitEffects(this->weights, found, 2);
  ASSERT_EQ(effects.rows(), 1000);
  for (Eigen::Index r = 0; r < 3; ++r)
  {
    const OutputPart& part = found.parts[r];
    const Eigen::VectorXd expected =
      part.strength * this->naive.Unembedding().transpose() * part.writing;
    EXPECT_LT((effects.col(r) - expected).cwiseAbs().maxCoeff(), 1e-9);
  }
}

TEST_F(OutputPartsTest, ValuesOfTheTokensThatWereDrawn)
{
  const OutputParts found = FindOutputParts(this->statistics, this->weights, 1, 5, 3);
  const Eigen::MatrixXd drawn = OutputCoordinates(this->statistics, 13, found);
  ASSERT_EQ(drawn.rows(), static_cast<Eigen::Index>(this->statistics.samples.size()));
  const CorpusSample& sample = this->statistics.samples[7];
  double expected = 0;
  for (std::int64_t i = 0; i < 16; ++i)
  {
    expected += (static_cast<double>(sample.values[13 * 16 + i]) - found.valueMean[i]) *
                found.parts[2].reading[i];
  }
  EXPECT_NEAR(drawn(7, 2), expected, 1e-9);
}

/// Files keep the values, those without are as before, and the memory is stated.
TEST_F(OutputPartsTest, FilesAndMemory)
{
  const std::vector<char> bytes = CorpusToBytes(this->statistics);
  const CorpusStatistics read = CorpusFromBytes(bytes, "test");
  EXPECT_EQ(CorpusToBytes(read), bytes);
  EXPECT_TRUE(read.options.sampleValues);
  EXPECT_EQ(read.valueDimension, 16);
  EXPECT_EQ(read.samples[3].values, this->statistics.samples[3].values);
  const CorpusStatistics without = BeginCorpus(*this->model, "", {});
  const CorpusStatistics plain = CorpusFromBytes(CorpusToBytes(without), "test");
  EXPECT_FALSE(plain.options.sampleValues);
  const std::uint64_t more = EstimateCorpusMemory(*this->model, WithValues(), 10).statistics -
                             EstimateCorpusMemory(*this->model, {}, 10).statistics;
  EXPECT_EQ(more, 16 * (16 * 16 * sizeof(ExactSum) + 1024 * 16 * sizeof(float)));
  EXPECT_THROW(RequireSameOptions(this->statistics, without, "test"), OptionError);
}

TEST_F(OutputPartsTest, BadInput)
{
  EXPECT_THROW(FindOutputParts(this->statistics, this->weights, 2, 0, 4), OptionError);
  EXPECT_THROW(FindOutputParts(BeginCorpus(*this->model, "", WithValues()), this->weights, 0, 0, 4),
    OptionError);
  EXPECT_THROW(
    FindOutputParts(BeginCorpus(*this->model, "", {}), this->weights, 0, 0, 4), OptionError);
  const auto other = OpenModel("induction");
  const ProcessedWeights ofOther(other->GetModel(), WeightSteps::TransformerLens);
  EXPECT_THROW(FindOutputParts(this->statistics, ofOther, 0, 0, 4), OptionError);
  // The same model at another step of its training, which has the same sizes.
  const auto earlier = OpenModel("language-2/checkpoint-2297");
  const ProcessedWeights ofEarlier(earlier->GetModel(), WeightSteps::TransformerLens);
  EXPECT_THAT(
    MessageOf<OptionError>([&] { FindOutputParts(this->statistics, ofEarlier, 0, 0, 4); }),
    HasSubstr("found one with other weights"));
}
