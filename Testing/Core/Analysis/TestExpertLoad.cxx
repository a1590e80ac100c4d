#include "Analysis/ExpertLoad.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

SharedMatrix Matrix(std::int64_t rows, std::int64_t columns, const std::vector<float>& values)
{
  SharedMatrix matrix = SharedMatrix::Zero(rows, columns);
  std::copy(values.begin(), values.end(), matrix.values.get());
  return matrix;
}

/// Five tokens in two sequences, "a b a" and "a c", of which layer 2 sends each to two of four
/// experts; layer 1 has no experts.
Recording Routed()
{
  Recording recording;
  recording.layerCount = 3;
  recording.sequenceOffsets = { 0, 3, 5 };
  recording.tokens.sequence = { 0, 0, 0, 1, 1 };
  recording.tokens.position = { 0, 1, 2, 0, 1 };
  recording.tokens.id = { 7, 8, 7, 7, 9 };
  recording.layers.resize(2);
  recording.layers[0].index = 1;
  recording.layers[1].index = 2;
  recording.layers[1].routing = { 4, Matrix(5, 2, { 0, 1, 1, 0, 0, 1, 3, 0, 0, 3 }),
    Matrix(5, 2, { 0.75F, 0.25F, 0.5F, 0.5F, 1, 0, 0.625F, 0.375F, 0.75F, 0.125F }) };
  return recording;
}

void ExpectLoad(
  const ExpertLoad& found, std::int32_t expert, std::int64_t count, double share, double weight)
{
  EXPECT_EQ(found.layer, 2);
  EXPECT_EQ(found.expert, expert);
  EXPECT_EQ(found.count, count);
  EXPECT_DOUBLE_EQ(found.share, share);
  EXPECT_DOUBLE_EQ(found.weight, weight);
}

TEST(ExpertLoad, IsTheShareOfTokensAndTheMeanWeight)
{
  const std::vector<ExpertLoad> loads = MeasureExperts(Routed());
  ASSERT_THAT(loads, SizeIs(4));
  ExpectLoad(loads[0], 0, 5, 1, (0.75 + 0.5 + 1 + 0.375 + 0.75) / 5);
  ExpectLoad(loads[1], 1, 3, 0.6, 0.25);
  ExpectLoad(loads[2], 2, 0, 0, 0);
  ExpectLoad(loads[3], 3, 2, 0.4, 0.375);
}

void ExpectToken(const ExpertToken& found, std::int32_t expert, std::int32_t rank, std::int64_t row,
  std::int64_t count, double share, double weight)
{
  EXPECT_EQ(found.layer, 2);
  EXPECT_EQ(found.expert, expert);
  EXPECT_EQ(found.rank, rank);
  EXPECT_EQ(found.row, row);
  EXPECT_EQ(found.count, count);
  EXPECT_DOUBLE_EQ(found.share, share);
  EXPECT_DOUBLE_EQ(found.weight, weight);
}

TEST(ExpertLoad, ListsTheTokensOfEachExpert)
{
  Recording recording = Routed();
  for (const bool isById : { true, false })
  {
    if (!isById)
    {
      recording.tokens.id.clear();
      recording.tokens.text = { "a", "b", "a", "a", "c" };
    }
    const std::vector<ExpertToken> tokens = TokensOfExperts(recording, 2);
    ASSERT_THAT(tokens, SizeIs(6));
    ExpectToken(tokens[0], 0, 1, 0, 3, 1, (0.75 + 1 + 0.375) / 3); // a, always
    ExpectToken(tokens[1], 0, 2, 4, 1, 1, 0.75);                   // c, before b with 0.5
    ExpectToken(tokens[2], 1, 1, 0, 2, 2.0 / 3, 0.125);            // a, but for the last
    ExpectToken(tokens[3], 1, 2, 1, 1, 1, 0.5);
    ExpectToken(tokens[4], 3, 1, 0, 1, 1.0 / 3, 0.625);
    ExpectToken(tokens[5], 3, 2, 4, 1, 1, 0.125);
  }
  recording.tokens.text.clear();
  EXPECT_THAT(TokensOfExperts(recording, 2), IsEmpty());
}

TEST(ExpertLoad, HasTheScoreAndTheBias)
{
  Recording recording = Routed();
  EXPECT_FALSE(HasExpertBias(recording));
  RecordedRouting& routing = recording.layers[1].routing;
  routing.scores =
    Matrix(5, 2, { 0.5F, 0.25F, 0.5F, 0.25F, 1, 0.125F, 0.75F, 0.375F, 0.25F, 0.125F });
  routing.bias = Matrix(1, 4, { 0.5F, -1, 2, 0.25F });
  EXPECT_TRUE(HasExpertBias(recording));
  const std::vector<ExpertLoad> loads = MeasureExperts(recording);
  EXPECT_DOUBLE_EQ(loads[0].score, (0.5 + 0.25 + 1 + 0.375 + 0.25) / 5);
  EXPECT_EQ(loads[0].bias, 0.5);
  EXPECT_EQ(loads[2].score, 0); // of an expert that was never chosen
  EXPECT_EQ(loads[2].bias, 2);
  const std::vector<ExpertToken> tokens = TokensOfExperts(recording, 1);
  EXPECT_DOUBLE_EQ(tokens[0].score, (0.5 + 1 + 0.375) / 3);
}

TEST(ExpertLoad, NeedsRouting)
{
  Recording recording = Routed();
  EXPECT_EQ(&RoutedLayer(recording, 2), &recording.layers[1]);
  EXPECT_THAT(
    MessageOf<OptionError>([&] { RoutedLayer(recording, 1); }), HasSubstr("one of 2, found 1"));
  EXPECT_THAT(MessageOf<OptionError>([&] { TokensOfExperts(recording, 0); }),
    HasSubstr("at least 1, found 0"));
  recording.layers.pop_back();
  EXPECT_THAT(MessageOf<ModelError>([&] { MeasureExperts(recording); }),
    HasSubstr("expected a recording with Routing"));
}

}
