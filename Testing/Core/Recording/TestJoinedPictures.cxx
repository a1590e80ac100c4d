#include "Recording/JoinedPictures.h"

#include "Base/Error.h"
#include "DefinedAttention.h"
#include "ErrorMessage.h"
#include "LongRecording.h"
#include "PicturedRecording.h"
#include "Recording/SentenceAttention.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

TEST(JoinedPictures, RunsOfAPictureAreAWord)
{
  const Recording recording = PicturedRecording();
  EXPECT_THAT(JoinPictures(recording, 0).first, ElementsAre(0, 1, 7, 8, 10, 11));
  EXPECT_THAT(JoinPictures(recording, 1).first, ElementsAre(0, 1, 3, 5, 6)); // two of a video
  Recording words = recording;
  words.tokens.picture.clear();
  EXPECT_EQ(JoinPictures(words, 1).Count(), 6);
  EXPECT_THAT(MessageOf<OptionError>([&] { JoinPictures(recording, 2); }),
    HasSubstr("expected a sequence from 0 to 1, found 2"));
}

/// In layer 0, head 0, token i gives all to i / 2. The words are 0, 1 to 6, 7, 8 to 9, 10.
TEST(JoinedPictures, WeightsAreSumsOverKeysAndMeansOverQueries)
{
  const Recording recording = PicturedRecording();
  const Recording joined = JoinAttention(
    recording, { 0, 0, 0, AttentionQuantity::Weights, 0, 0 }, JoinPictures(recording, 0), 2);
  EXPECT_THAT(joined.tokens.text,
    ElementsAre("<s>", "picture 0 (6 tokens)", "dog", "picture 1 (2 tokens)", "cat"));
  EXPECT_NO_THROW(CheckRecording(joined, "joined"));
  const float* weights = joined.layers[0].heads[0].weights[0].values.get();
  constexpr float part = 1.0F / 6;
  EXPECT_THAT(std::vector<float>(weights, weights + 25),
    Pointwise(FloatEq(), std::vector<float>{ 1, 0, 0, 0, 0, part, 5 * part, 0, 0, 0, 0, 1, 0, 0, 0,
                           0, 1, 0, 0, 0, 0, 1, 0, 0, 0 }));
}

/// From queries and keys, with a sink in one layer, over several steps: as added up by hand.
TEST(JoinedPictures, OfComputedAttention)
{
  constexpr std::int64_t length = 300;
  Recording recording = LongRecording(length, { 0, 1 }, 1, 3, 0.5);
  for (std::int32_t i = 0; i < length; ++i)
  {
    const bool isWord = i % 100 < 3;
    recording.tokens.picture.push_back(isWord ? -1 : i / 100);
    recording.tokens.row.push_back(isWord ? -1 : i % 100);
    recording.tokens.column.push_back(isWord ? -1 : 0);
  }
  recording.layers[1].sinks = { 0.25F };
  const JoinedWords words = JoinPictures(recording, 0);
  ASSERT_EQ(words.Count(), 12);
  for (std::int64_t l = 0; l < 2; ++l)
  {
    const DefinedAttention all(recording, 0, l, 0);
    const Recording joined =
      JoinAttention(recording, { 0, l, 0, AttentionQuantity::Weights, 0, 0 }, words, 2);
    EXPECT_EQ(HasSinks(joined, l, AttentionQuantity::Weights), l == 1);
    EXPECT_TRUE(IsCausal(joined, 0));
    const std::vector<double> means =
      PoolMap(all.weights, length, words.first, words.first, AttentionPooling::Mean);
    for (std::size_t i = 0; i < means.size(); ++i)
    {
      const auto keys = static_cast<double>(words.first[i % 12 + 1] - words.first[i % 12]);
      EXPECT_NEAR(joined.layers[0].heads[0].weights[0].values.get()[i], keys * means[i], 1e-6);
    }
  }
}

}
