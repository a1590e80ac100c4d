#include "Text/WordPieceTraining.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Text/Internal/TokenizerText.h"
#include "Text/TokenizerFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

/// By hand: characters . a b c, of which b, c and a continue words; "ab" and "abc" twice, "cab"
/// once.
constexpr const char* Letters = "Ab abc. ABC cab ab\nc";

TEST(WordPieceTraining, TheVocabularyIsCharactersAndFrequentWords)
{
  EXPECT_EQ(TrainWordPiece(Letters, 14).vocabulary,
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\na\nb\nc\n##a\n##b\n##c\nab\nabc\n");
  EXPECT_EQ(TrainWordPiece(Letters, 12).vocabulary,
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\na\nb\nc\n##a\n##b\n##c\n");
}

TEST(WordPieceTraining, BothFormsMeanTheSame)
{
  const WordPieceTexts texts = TrainWordPiece(Letters, 14);
  const Tokenizer json = ParseTokenizer(texts.tokenizer, "tokenizer.json");
  const Tokenizer lines = ParseWordPieceTokenizer(texts.vocabulary, "vocab.txt");
  for (const char* line : { "Ab abc. cab", "ab\tcab [MASK]", "d", "", "\u00c1bc" })
  {
    const Encoding expected = lines.EncodePrompt(line, true);
    EXPECT_EQ(json.EncodePrompt(line, true).ids, expected.ids) << line;
    EXPECT_EQ(json.EncodePrompt(line, true).types, expected.types) << line;
  }
  EXPECT_THAT(json.Encode("Ab abc. cab", true).tokens,
    ElementsAre("[CLS]", "ab", "abc", ".", "c", "##a", "##b", "[SEP]"));
  EXPECT_EQ(json.VocabularySize(), 14);
}

TEST(WordPieceTraining, ATextAllowsOnlySoManyTokens)
{
  EXPECT_THAT(MessageOf<OptionError>([] { TrainWordPiece(Letters, 11); }),
    HasSubstr("expected at least 12 tokens, the special ones and the characters of the text, "
              "found 11"));
  EXPECT_THAT(MessageOf<OptionError>([] { TrainWordPiece(Letters, 15); }),
    HasSubstr("the text has words that occur twice for 14 tokens, found 15"));
  EXPECT_THAT(MessageOf<FormatError>([] { TrainWordPiece("\xff", 14); }), HasSubstr("the text"));
}

TEST(TokenizerText, IdsAreThePlacesOfTokens)
{
  TokenizerText text;
  text.model["vocab"] = TokenizerText::Vocabulary({ "b", "a" });
  const auto json = nlohmann::json::parse(text.Text());
  EXPECT_EQ(json["model"]["vocab"], nlohmann::json({ { "a", 1 }, { "b", 0 } }));
  EXPECT_EQ(json["version"], "1.0");
  EXPECT_TRUE(json["normalizer"].is_null());
  EXPECT_TRUE(json["added_tokens"].is_array());
}

}
