#include "CorpusFile.h"
#include "CorpusRun.h"
#include "Error.h"
#include "ErrorMessage.h"
#include "OutputParts.h"
#include "RecordTransformer.h"
#include "ScoreParts.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
namespace fs = std::filesystem;

namespace
{

struct OutputPartsTest : testing::Test
{
  std::shared_ptr<const OpenTransformer> model;
  ProcessedWeights weights;
  CorpusStatistics statistics;
  Recording recording;

  static CorpusOptions Options()
  {
    CorpusOptions options;
    options.sampleValues = true;
    return options;
  }

  explicit OutputPartsTest(const char* name = "language-2")
    : model(OpenTransformer::Open(fs::path(ATLAS_DATA_DIR) / "models" / name, ""))
    , weights(this->model->GetModel(), WeightSteps::TransformerLens)
    , statistics(BeginCorpus(*this->model, "", Options()))
  {
    CorpusRunOptions run;
    run.files = { (fs::path(ATLAS_SOURCE_DIR) / "Plugin/Documentation/Tutorial.md").string() };
    run.tokenLimit = 1500;
    MeasureCorpus(*this->model, run, this->statistics);
    CorpusText text(*this->model, run.files, this->statistics.options);
    TransformerInput input;
    std::int64_t tokens = 0;
    while (tokens < this->statistics.tokens)
    {
      input.tokens.push_back(text.Next()->tokens);
      tokens += static_cast<std::int64_t>(input.tokens.back().size());
    }
    this->recording = RecordTransformer(this->model->GetModel(), input, {});
  }
};

/// What a head writes at each of the recorded tokens if it attends to this one alone, without the
/// mean over the dimensions: by loops over the stored weights.
std::vector<std::vector<double>> WrittenBy(const SharedMatrix& values, const DoubleMatrix& output)
{
  std::vector<std::vector<double>> written;
  for (std::int64_t t = 0; t < values.rows; ++t)
  {
    std::vector<double> row(output.cols());
    double mean = 0;
    for (Eigen::Index c = 0; c < output.cols(); ++c)
    {
      for (Eigen::Index i = 0; i < output.rows(); ++i)
      {
        row[c] += static_cast<double>(values.Row(t)[i]) * output(i, c);
      }
      mean += row[c] / static_cast<double>(output.cols());
    }
    for (double& value : row)
    {
      value -= mean;
    }
    written.push_back(std::move(row));
  }
  return written;
}

}

/// The parts add up to what is written, less its mean; their contributions to the variance are
/// those of a computation token by token; coordinates have the variance 1.
TEST_F(OutputPartsTest, AddUpToWhatIsWritten)
{
  const ProcessedWeights stored(this->model->GetModel(), WeightSteps::Stored);
  for (const HeadPlace& place : { HeadPlace{ 0, 0 }, HeadPlace{ 1, 5 } })
  {
    const SharedMatrix& values = FindHead(this->recording, place.layer, place.head).value;
    auto written = WrittenBy(values, stored.Attention(place.layer).heads[place.head].output);
    const std::size_t rows = written.size();
    const std::size_t columns = written.front().size();
    const OutputParts found =
      FindOutputParts(this->statistics, this->weights, place.layer, place.head, 64);
    ASSERT_EQ(found.parts.size(), 16);
    double variance = 0;
    for (std::size_t c = 0; c < columns; ++c)
    {
      double mean = 0;
      for (std::size_t t = 0; t < rows; ++t)
      {
        mean += written[t][c] / static_cast<double>(rows);
      }
      for (std::size_t t = 0; t < rows; ++t)
      {
        written[t][c] -= mean;
        variance += written[t][c] * written[t][c] / static_cast<double>(rows);
      }
    }
    EXPECT_NEAR(found.variance, variance, 1e-5 * variance);
    double last = 1e30;
    for (const OutputPart& part : found.parts)
    {
      EXPECT_LE(part.strength, last);
      last = part.strength;
      EXPECT_NEAR(part.writing.norm(), 1, 1e-9);
      EXPECT_NEAR(part.variance, part.strength * part.strength, 1e-12);
      double along = 0;  // the variance of what is written along the direction
      double square = 0; // of the coordinate
      for (std::size_t t = 0; t < rows; ++t)
      {
        double coordinate = 0;
        for (std::int64_t i = 0; i < values.columns; ++i)
        {
          const double value = static_cast<double>(values.Row(static_cast<std::int64_t>(t))[i]);
          coordinate += (value - found.valueMean[i]) * part.reading[i];
        }
        double amount = 0;
        for (std::size_t c = 0; c < columns; ++c)
        {
          amount += written[t][c] * part.writing[static_cast<Eigen::Index>(c)];
        }
        EXPECT_NEAR(amount, part.strength * coordinate, 1e-4 * std::sqrt(variance));
        along += amount * amount / static_cast<double>(rows);
        square += coordinate * coordinate / static_cast<double>(rows);
      }
      EXPECT_NEAR(along, part.variance, 1e-4 * variance);
      EXPECT_NEAR(square, 1, 1e-3);
    }
    // All parts together.
    for (std::size_t t = 0; t < rows; t += 97)
    {
      for (std::size_t c = 0; c < columns; ++c)
      {
        double sum = 0;
        for (const OutputPart& part : found.parts)
        {
          double coordinate = 0;
          for (std::int64_t i = 0; i < values.columns; ++i)
          {
            const double value = static_cast<double>(values.Row(static_cast<std::int64_t>(t))[i]);
            coordinate += (value - found.valueMean[i]) * part.reading[i];
          }
          sum += coordinate * part.strength * part.writing[static_cast<Eigen::Index>(c)];
        }
        EXPECT_NEAR(sum, written[t][c], 1e-4 * std::sqrt(variance));
      }
    }
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
  ASSERT_EQ(all.rows(), this->model->GetModel().GetConfig().vocabulary);
  ASSERT_EQ(all.cols(), 4);
  TransformerInput input;
  const std::vector<std::int64_t> tokens = { 11, 258, 511, 700 };
  for (const std::int64_t token : tokens)
  {
    input.tokens.push_back({ token });
  }
  const Recording alone = RecordTransformer(this->model->GetModel(), input, {});
  const SharedMatrix& values = FindHead(alone, 0, 3).value;
  for (std::size_t t = 0; t < tokens.size(); ++t)
  {
    for (Eigen::Index r = 0; r < 4; ++r)
    {
      double expected = 0;
      for (std::int64_t i = 0; i < values.columns; ++i)
      {
        const double value = static_cast<double>(values.Row(static_cast<std::int64_t>(t))[i]);
        expected += (value - found.valueMean[i]) * found.parts[r].reading[i];
      }
      EXPECT_NEAR(all(tokens[t], r), expected, 1e-4);
    }
  }
}

TEST_F(OutputPartsTest, EffectsOnLogits)
{
  const OutputParts found = FindOutputParts(this->statistics, this->weights, 1, 5, 3);
  const Eigen::MatrixXd effects = LogitEffects(this->weights, found, 2);
  ASSERT_EQ(effects.rows(), this->weights.OutputVocabulary());
  for (const std::int64_t token : { 0, 77, 513 })
  {
    const DoubleMatrix column = this->weights.UnembeddingColumns(token, token + 1);
    for (Eigen::Index r = 0; r < 3; ++r)
    {
      double expected = 0;
      for (Eigen::Index c = 0; c < column.cols(); ++c)
      {
        expected += found.parts[r].strength * found.parts[r].writing[c] * column(0, c);
      }
      EXPECT_NEAR(effects(token, r), expected, 1e-9);
    }
  }
  EXPECT_LT(effects.colwise().mean().cwiseAbs().maxCoeff(), 1e-9);
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
  const CorpusOptions options = Options();
  const std::uint64_t more = EstimateCorpusMemory(*this->model, options, 10).statistics -
                             EstimateCorpusMemory(*this->model, {}, 10).statistics;
  EXPECT_EQ(more, 16 * (16 * 16 * sizeof(ExactSum) + 1024 * 16 * sizeof(float)));
  EXPECT_THROW(RequireSameOptions(this->statistics, without, "test"), OptionError);
}

TEST_F(OutputPartsTest, BadInput)
{
  EXPECT_THROW(FindOutputParts(this->statistics, this->weights, 2, 0, 4), OptionError);
  EXPECT_THROW(
    FindOutputParts(BeginCorpus(*this->model, "", Options()), this->weights, 0, 0, 4), OptionError);
  EXPECT_THROW(
    FindOutputParts(BeginCorpus(*this->model, "", {}), this->weights, 0, 0, 4), OptionError);
  const auto other = OpenTransformer::Open(fs::path(ATLAS_DATA_DIR) / "models" / "induction", "");
  const ProcessedWeights ofOther(other->GetModel(), WeightSteps::TransformerLens);
  EXPECT_THROW(FindOutputParts(this->statistics, ofOther, 0, 0, 4), OptionError);
  // The same model at another step of its training, which has the same sizes.
  const auto earlier = OpenTransformer::Open(
    fs::path(ATLAS_DATA_DIR) / "models" / "language-2" / "checkpoint-2297", "");
  const ProcessedWeights ofEarlier(earlier->GetModel(), WeightSteps::TransformerLens);
  EXPECT_EQ(MessageOf<OptionError>([&] { FindOutputParts(this->statistics, ofEarlier, 0, 0, 4); }),
    "Model: expected that of the statistics, then at , found one with other weights or settings.");
}
