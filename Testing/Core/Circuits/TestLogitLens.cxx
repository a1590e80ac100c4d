#include "Circuits/LogitLens.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "LogitsOracle.h"
#include "ModelsOracle.h"
#include "Run/RecordTransformer.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

using OfLens = OfLogits;

}

TEST_P(OfLens, LogitsAreThoseOfTheIndependentProgram)
{
  const Recording& recording = this->Oracle.GetRecording();
  const std::vector<std::size_t> shape = this->Oracle.ShapeOf("lens.logits");
  std::vector<float> found;
  for (std::size_t layer = 0; layer < shape[0]; ++layer)
  {
    for (std::size_t s = 0; s < shape[1]; ++s)
    {
      const std::vector<float> logits =
        LensLogits(recording, this->Oracle.GetModel(), static_cast<std::int64_t>(layer),
          recording.sequenceOffsets[s], recording.sequenceOffsets[s + 1]);
      found.insert(found.end(), logits.begin(), logits.end());
    }
  }
  ExpectClose("lens.logits", found, this->Oracle.Values("lens.logits"), LogitsTolerance);
}

TEST_P(OfLens, CellsAreThoseOfTheLogits)
{
  const Recording& recording = this->Oracle.GetRecording();
  LensOptions options;
  options.top = 4;
  const LensCells cells = ReadThroughLens(recording, this->Oracle.GetModel(), options);
  const std::vector<double> logits = this->Oracle.Values("lens.logits");
  const std::vector<std::size_t> shape = this->Oracle.ShapeOf("lens.logits"); // [L + 1, B, T, V]
  ASSERT_EQ(cells.layers.size(), shape[0]);
  ASSERT_EQ(cells.length, static_cast<std::int64_t>(shape[2]));
  const double tolerance = LogitsTolerance * test::LargestMagnitude(logits);
  for (std::size_t cell = 0; cell < shape[0] * shape[2]; ++cell)
  {
    const std::size_t layer = cell / shape[2];
    const std::size_t position = cell % shape[2];
    const auto row =
      logits.begin() + static_cast<long>((layer * shape[1] * shape[2] + position) * shape[3]);
    std::vector<double> sorted(row, row + static_cast<long>(shape[3]));
    std::sort(sorted.rbegin(), sorted.rend());
    double sum = 0;
    for (const double logit : sorted)
    {
      sum += std::exp(logit);
    }
    for (std::size_t k = 0; k < 4; ++k)
    {
      const TokenLogit& token = cells.tokens[4 * cell + k];
      EXPECT_NEAR(token.logit, sorted[k], tolerance);
      EXPECT_NEAR(row[token.id], sorted[k], 2 * tolerance);
      EXPECT_NEAR(cells.probabilities[4 * cell + k], std::exp(sorted[k]) / sum, 1e-5);
    }
    if (position + 1 == shape[2])
    {
      EXPECT_EQ(cells.nextRank[cell], -1);
      EXPECT_EQ(cells.nextProbability[cell], -1);
      continue;
    }
    const double next = row[recording.tokens.id[position + 1]];
    EXPECT_NEAR(cells.nextProbability[cell], std::exp(next) / sum, 1e-5);
    const auto larger = [&](double than)
    {
      return std::count_if(
        sorted.begin(), sorted.end(), [than](double other) { return other > than; });
    };
    EXPECT_GT(cells.nextRank[cell], larger(next + tolerance));
    EXPECT_LE(cells.nextRank[cell], larger(next - tolerance));
  }
}

TEST_P(OfLens, PredictsTheLargestLogit)
{
  Recording recording = this->Oracle.GetRecording();
  const std::vector<std::int32_t> tokens =
    PredictedTokens(recording, this->Oracle.GetModel(), 2, 9);
  ASSERT_EQ(tokens.size(), 7U);
  const std::int64_t vocabulary = recording.logits.columns;
  for (std::int64_t i = 0; i < 7; ++i)
  {
    const float* logits = recording.logits.Row(2 + i);
    EXPECT_EQ(tokens[i], std::max_element(logits, logits + vocabulary) - logits);
  }
  recording.logits = {};
  EXPECT_EQ(PredictedTokens(recording, this->Oracle.GetModel(), 2, 9), tokens);
}

TEST_P(OfLens, ThreadsChangeNothing)
{
  const Recording& recording = this->Oracle.GetRecording();
  LensOptions options;
  options.top = 2;
  options.threads = 1;
  const LensCells one = ReadThroughLens(recording, this->Oracle.GetModel(), options);
  options.threads = 3;
  const LensCells three = ReadThroughLens(recording, this->Oracle.GetModel(), options);
  EXPECT_EQ(one.probabilities, three.probabilities);
  EXPECT_EQ(one.nextRank, three.nextRank);
}

INSTANTIATE_TEST_SUITE_P(LogitLens, OfLens, OfLogits::Models(), OfLogits::Name);

// An unembedding of a few bits gives the logits of the model, which TestModelParity compares.
TEST(LogitLens, ReadsQuantizedWeights)
{
  const Transformer model = Transformer::Read(ModelsOracle("files/gguf/llama-q8_0.gguf"));
  ASSERT_TRUE(IsBlock(model.GetWeights().unembedding.weight.dtype));
  TransformerInput input;
  input.tokens = { { 3, 10, 4, 9, 2, 7 } };
  RecordOptions options;
  options.logits = true;
  options.residual = true;
  const Recording recording = RecordTransformer(model, input, options);
  const std::vector<float> logits =
    LensLogits(recording, model, model.GetConfig().layers, 0, recording.logits.rows);
  ASSERT_EQ(logits.size(), recording.logits.Count());
  for (std::size_t i = 0; i < logits.size(); ++i)
  {
    ASSERT_NEAR(logits[i], recording.logits.Row(0)[i], 1e-5) << i;
  }
}

TEST(LogitLens, CanBeCanceled)
{
  const LogitsOracle oracle("gpt2");
  LensOptions options;
  options.progress = [](double) { throw Canceled(); };
  EXPECT_THROW(ReadThroughLens(oracle.GetRecording(), oracle.GetModel(), options), Canceled);
}

TEST(LogitLens, ShowsTheLayersThatWereRecorded)
{
  const LogitsOracle oracle("attn-only");
  Recording recording = oracle.GetRecording();
  recording.residual[0] = {};
  const LensCells cells = ReadThroughLens(recording, oracle.GetModel(), {});
  EXPECT_EQ(cells.layers, (std::vector<std::int32_t>{ 1, 2 }));
  recording.residual.clear();
  EXPECT_THAT(MessageOf<OptionError>([&] { ReadThroughLens(recording, oracle.GetModel(), {}); }),
    HasSubstr("expected a recording with Residual: the residual stream before layer 0"));
}

TEST(LogitLens, SaysWhatIsWrong)
{
  const LogitsOracle oracle("gpt2");
  const auto read = [&](const Transformer& model, const LensOptions& options)
  { return ReadThroughLens(oracle.GetRecording(), model, options); };
  LensOptions options;
  options.top = 0;
  EXPECT_THAT(MessageOf<OptionError>([&] { read(oracle.GetModel(), options); }),
    HasSubstr("Top: expected at least 1, found 0"));
  options = {};
  options.sequence = 2;
  EXPECT_THAT(MessageOf<OptionError>([&] { read(oracle.GetModel(), options); }),
    HasSubstr("Sequence: expected 0 to 1, found 2"));
  const Transformer vit = Transformer::Read(TransformerOracle::Folder("vit"));
  EXPECT_THROW(read(vit, {}), ModelError);
}
