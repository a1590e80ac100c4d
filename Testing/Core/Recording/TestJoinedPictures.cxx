#include "JoinedPictures.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "LongRecording.h"
#include "PicturedRecording.h"
#include "SentenceAttention.h"

#include <random>
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
  EXPECT_THAT(JoinPictures(recording, 1).first, ElementsAre(0, 1, 3, 5, 6)); // two of a film
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
  std::mt19937 generator(3);
  Recording recording;
  recording.layerCount = 2;
  recording.sequenceOffsets = { 0, length };
  for (std::int32_t i = 0; i < length; ++i)
  {
    const bool isWord = i % 100 < 3;
    recording.tokens.sequence.push_back(0);
    recording.tokens.position.push_back(i);
    recording.tokens.picture.push_back(isWord ? -1 : i / 100);
    recording.tokens.row.push_back(isWord ? -1 : i % 100);
    recording.tokens.column.push_back(isWord ? -1 : 0);
  }
  for (std::int32_t l = 0; l < 2; ++l)
  {
    RecordedHead head;
    head.query = RandomRows(length, 3, generator);
    head.key = RandomRows(length, 3, generator);
    recording.layers.push_back({ l, 0.5, { head } });
  }
  recording.layers[1].sinks = { 0.25F };
  const JoinedWords words = JoinPictures(recording, 0);
  ASSERT_EQ(words.Count(), 12);
  for (std::int64_t l = 0; l < 2; ++l)
  {
    std::vector<float> all(length * length);
    EvaluateAttention(recording, 0, l, 0, AttentionQuantity::Weights, 0, length, all.data());
    const Recording joined =
      JoinAttention(recording, { 0, l, 0, AttentionQuantity::Weights, 0, 0 }, words, 2);
    EXPECT_EQ(HasSinks(joined, l, AttentionQuantity::Weights), l == 1);
    EXPECT_TRUE(IsCausal(joined, 0));
    for (std::int64_t query = 0; query < 12; ++query)
    {
      for (std::int64_t key = 0; key < 12; ++key)
      {
        double sum = 0;
        for (std::int64_t i = words.first[query]; i < words.first[query + 1]; ++i)
        {
          for (std::int64_t j = words.first[key]; j < words.first[key + 1]; ++j)
          {
            sum += static_cast<double>(all[i * length + j]);
          }
        }
        const auto tokens = static_cast<double>(words.first[query + 1] - words.first[query]);
        EXPECT_NEAR(joined.layers[0].heads[0].weights[0].Row(query)[key], sum / tokens, 1e-6);
      }
    }
  }
}

}
