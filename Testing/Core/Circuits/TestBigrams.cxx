#include "Circuits/Bigrams.h"

#include "Base/Error.h"
#include "Circuits/CircuitWeights.h"
#include "ErrorMessage.h"
#include "TablesOracle.h"
#include "TemporaryDirectory.h"
#include "Text/TokenizerFile.h"

#include <numeric>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

using OfBigrams = OfTables;

INSTANTIATE_TEST_SUITE_P(Models, OfBigrams, OfCircuits::Models(), OfCircuits::Name);

TEST_P(OfBigrams, AreExpected)
{
  std::vector<std::int32_t> tokens(this->Oracle.GetModel().GetConfig().vocabulary);
  std::iota(tokens.begin(), tokens.end(), 0);
  for (const bool processes : { false, true })
  {
    const std::string name = processes ? "bigram.folded.top" : "bigram.raw.top";
    const auto found = FindBigrams(this->Oracle.GetModel(), processes, tokens, {});
    ExpectLargest(
      name, found, 10, this->Oracle.Ids(name + ".ids"), this->Oracle.Values(name + ".values"));
  }
}

TEST_P(OfBigrams, SampleIsThatOfTheOracle)
{
  const TokenFinder ids(nullptr, this->Oracle.GetModel().GetConfig().vocabulary);
  EXPECT_EQ(SampleTokens(ids), this->Oracle.Ids("table.tokens"));
}

/// Of GPT-2's vocabulary.
TEST(Bigrams, SampleIsOfWords)
{
  const auto folder = std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers/tokenizers";
  const Tokenizer words = ParseBytePairTokenizer(ReadBytes(folder / "gpt2-vocab.json"), "vocab",
    ReadBytes(folder / "gpt2-merges.txt"), "merges");
  const std::vector<std::int32_t> sample = SampleTokens(TokenFinder(&words, 50257));
  ASSERT_EQ(sample.size(), 16U);
  EXPECT_EQ(words.Label(sample[0]), " the");
}

TEST(Bigrams, NeedAnUnembeddingAndATop)
{
  const Transformer bert = Transformer::Read(TransformerOracle::Folder("bert"));
  EXPECT_THAT(MessageOf<ModelError>([&] { FindBigrams(bert, true, { 1 }, {}); }),
    HasSubstr("unembedding reads the residual stream, found bert"));
  const Transformer vit = Transformer::Read(TransformerOracle::Folder("vit"));
  EXPECT_THAT(MessageOf<ModelError>([&] { FindBigrams(vit, true, { 1 }, {}); }),
    HasSubstr("language model, found vit"));
  const TablesOracle oracle("gpt2");
  LargestProductOptions options;
  options.top = 0;
  EXPECT_THAT(MessageOf<OptionError>([&] { FindBigrams(oracle.GetModel(), true, { 1 }, options); }),
    HasSubstr("Top: expected at least 1, found 0"));
}

TEST(CircuitWeights, HeadsAreChecked)
{
  const TablesOracle oracle("gpt2");
  RequireHead(oracle.GetModel(), 1, 3);
  EXPECT_THAT(MessageOf<OptionError>([&] { RequireHead(oracle.GetModel(), 2, 0); }),
    HasSubstr("Layer: expected a number from 0 to 1, found 2"));
  EXPECT_THAT(MessageOf<OptionError>([&] { RequireHead(oracle.GetModel(), 0, -1); }),
    HasSubstr("Head: expected a number from 0 to 3, found -1"));
}

TEST(CircuitWeights, SayWhatIsLeftOut)
{
  const auto config = [](const char* name) { return TablesOracle(name).GetModel().GetConfig(); };
  EXPECT_THAT(LeftOutOfQueryKey(config("bloom"), true), testing::Contains("ALiBi positions"));
  EXPECT_THAT(LeftOutOfQueryKey(config("bloom"), true),
    testing::Not(testing::Contains("gains of normalizations")));
  EXPECT_THAT(LeftOutOfQueryKey(config("bloom"), false),
    testing::IsSupersetOf({ "gains of normalizations", "normalization of the embedding" }));
  EXPECT_THAT(LeftOutOfQueryKey(config("llama"), true), testing::Contains(HasSubstr("rotary")));
  EXPECT_THAT(LeftOutOfOutputValue(config("attn-only"), true), testing::Contains("biases"));
}

}
