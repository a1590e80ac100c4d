#include "Recording/SpecialTokens.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

TEST(SpecialTokens, FrameTexts)
{
  for (const char* text : { "[CLS]", "[SEP]", "[PAD]", "<s>", "</s>", "<pad>", "<bos>", "<eos>",
         "<|endoftext|>", "<|begin_of_text|>", "<|im_start|>", "<end_of_turn>" })
  {
    EXPECT_TRUE(IsSpecialToken(text)) << text;
  }
  for (const char* text : { "", "[MASK]", "[UNK]", "<mask>", "<unk>", "CLS", "[cls]", " <s>", "<b>",
         "<||>", "<|", "|>", "[CLS] " })
  {
    EXPECT_FALSE(IsSpecialToken(text)) << text;
  }
}

Recording MakeTokens()
{
  Recording recording;
  recording.sequenceOffsets = { 0, 2, 5 };
  recording.tokens.sequence = { 0, 0, 1, 1, 1 };
  recording.tokens.position = { 0, 1, 0, 1, 2 };
  return recording;
}

TEST(SpecialTokens, AreFoundByText)
{
  Recording recording = MakeTokens();
  recording.tokens.text = { "[CLS]", "a", "b", "[CLS]", "</s>" };
  EXPECT_THAT(FindSpecialTokens(recording, 0), ElementsAre(true, false));
  EXPECT_THAT(FindSpecialTokens(recording, 1), ElementsAre(false, true, true));
}

TEST(SpecialTokens, AreClassTokensOfImages)
{
  Recording recording = MakeTokens();
  recording.tokens.row = { -1, 0, -1, 0, 0 };
  recording.tokens.column = { -1, 0, -1, 0, 1 };
  EXPECT_THAT(FindSpecialTokens(recording, 1), ElementsAre(true, false, false));
}

/// Words beside pictures have no row either.
TEST(SpecialTokens, AreNotAllWordsBesidePictures)
{
  Recording recording = MakeTokens();
  recording.tokens.text = { "a", "b", "[CLS]", "0: 0, 0", "c" };
  recording.tokens.picture = { -1, -1, -1, 0, -1 };
  recording.tokens.row = recording.tokens.column = recording.tokens.picture;
  EXPECT_THAT(FindSpecialTokens(recording, 1), ElementsAre(true, false, false));
}

TEST(SpecialTokens, NeedTexts)
{
  EXPECT_THAT(MessageOf<OptionError>([] { FindSpecialTokens(MakeTokens(), 0); }),
    HasSubstr("HideSpecial: expected a recording with the texts of its tokens, found one without"));
  EXPECT_THAT(MessageOf<OptionError>([] { FindSpecialTokens(MakeTokens(), AllSequences); }),
    HasSubstr("HideSpecial: expected"));
}

}
