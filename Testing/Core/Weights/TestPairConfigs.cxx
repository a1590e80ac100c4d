// Settings of models with an encoder and a decoder. TestModelParity compares what they compute,
// with files that leave out little: here are the defaults and what differs between both.

#include "ConfigTexts.h"
#include "ExpectMembers.h"
#include "TemporaryDirectory.h"
#include "Weights/TransformerConfig.h"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

TEST(PairConfig, T5)
{
  const TransformerConfig decoder = ParseConfig(T5());
  ASSERT_NE(decoder.encoder, nullptr);
  for (const TransformerConfig* config : { decoder.encoder.get(), &decoder })
  {
    ExpectMembers(*config,
      "architecture=t5 input=Tokens layers=2 positions=0 epsilon=1e-6 relativeBuckets=32 "
      "relativeDistance=128 activation=Relu gated=0");
  }
  ExpectMembers(decoder, "tiedUnembedding=1 decoderStart=0");
  EXPECT_EQ(decoder.logitScale, 1 / std::sqrt(12.0));

  const TransformerConfig later = ParseConfig(
    T5(R"(, "num_decoder_layers": 3, "feed_forward_proj": "gated-gelu", "eos_token_id": 1,
      "tie_word_embeddings": false, "relative_attention_num_buckets": 8, "pad_token_id": 4,
      "relative_attention_max_distance": 20)"));
  ExpectMembers(later,
    "layers=3 activation=GeluTanh tiedUnembedding=0 logitScale=1 decoderStart=4"); // decoderStart:
                                                                                   // the padding
  ExpectMembers(*later.encoder, "layers=2 relativeBuckets=8 relativeDistance=20");
  EXPECT_TRUE(later.gated && later.encoder->gated);
  EXPECT_THAT(later.endTokens, ElementsAre(1));
  EXPECT_EQ(ParseConfig(T5(R"(, "decoder_start_token_id": 6)")).decoderStart, 6);
}

/// Release 5 of the original calls all models of T5 tied, and says beside it whether logits are
/// scaled.
TEST(PairConfig, LogitsOfT5AreScaledAsSaid)
{
  const double scale = 1 / std::sqrt(12.0);
  const std::string tied = R"(, "tie_word_embeddings": true)";
  const std::string scaled = R"(, "scale_decoder_outputs": true)";
  const std::string plain = R"(, "scale_decoder_outputs": false)";
  const std::string separate = R"(, "tie_word_embeddings": false)";
  EXPECT_EQ(ParseConfig(T5(tied)).logitScale, scale);
  EXPECT_EQ(ParseConfig(T5(tied + plain)).logitScale, 1);
  EXPECT_EQ(ParseConfig(T5(tied + scaled)).logitScale, scale);
  EXPECT_EQ(ParseConfig(T5(separate)).logitScale, 1);
  EXPECT_EQ(ParseConfig(T5(separate + scaled)).logitScale, scale);
  // The activation that a file states counts before the one of feed_forward_proj.
  const TransformerConfig other =
    ParseConfig(T5(R"(, "dense_act_fn": "silu", "is_gated_act": true)"));
  EXPECT_EQ(other.activation, Activation::Silu);
  EXPECT_TRUE(other.gated && other.encoder->gated);
  // mT5 is scaled by releases 4 if it is tied, and never by releases 5.
  const auto ofMT5 = [&](const std::string& version)
  {
    return ParseConfig(
      T5(tied + R"(, "model_type": "mt5", "transformers_version": ")" + version + "\""))
      .logitScale;
  };
  EXPECT_EQ(ofMT5("4.57.1"), scale);
  EXPECT_EQ(ofMT5("5.17.0"), 1);
  // uMT5 is scaled unless its file says that it is not tied, as in releases 4 and 5.24.
  const std::string umt5 = R"(, "model_type": "umt5")";
  EXPECT_EQ(ParseConfig(T5(tied + umt5)).logitScale, scale);
  EXPECT_EQ(ParseConfig(T5(umt5)).logitScale, scale);
  EXPECT_EQ(ParseConfig(T5(separate + umt5)).logitScale, 1);
}

TEST(PairConfig, Bart)
{
  const TransformerConfig decoder =
    ParseConfig(EncoderDecoder("bart", R"(, "scale_embedding": true)"));
  const TransformerConfig& encoder = *decoder.encoder;
  ExpectMembers(encoder, "layers=2 heads=3 mlpDimension=48");
  ExpectMembers(decoder, "layers=4 heads=6 mlpDimension=20");
  for (const TransformerConfig* config : { &encoder, &decoder })
  {
    ExpectMembers(*config, "positions=1024 activation=Gelu");
    EXPECT_EQ(config->embeddingScale, std::sqrt(12.0));
  }
  EXPECT_EQ(decoder.decoderStart, 2);
}

/// What differs from T5 is what files may leave out.
TEST(PairConfig, MT5)
{
  const TransformerConfig decoder = ParseConfig(T5(R"(, "model_type": "mt5")"));
  ExpectMembers(decoder, "architecture=mt5 tiedUnembedding=0 logitScale=1 activation=GeluTanh");
  EXPECT_TRUE(decoder.gated && decoder.encoder->gated);
}

TEST(PairConfig, MBartAndPegasus)
{
  for (const std::string name : { "mbart", "pegasus" })
  {
    const TransformerConfig decoder =
      ParseConfig(EncoderDecoder(name, R"(, "scale_embedding": true)"));
    for (const TransformerConfig* config : { &decoder, decoder.encoder.get() })
    {
      ExpectMembers(*config, "lastResidualIsNormed=1 activation=Gelu");
      EXPECT_EQ(config->embeddingScale, std::sqrt(12.0));
    }
    EXPECT_TRUE(decoder.tiedUnembedding);
    EXPECT_EQ(decoder.decoderStart, name == "mbart" ? -1 : 0); // of mBART a language
    EXPECT_EQ(
      ParseConfig(EncoderDecoder(name, R"(, "decoder_start_token_id": 2)")).decoderStart, 2);
  }
}

TEST(PairConfig, Marian)
{
  const TransformerConfig decoder = ParseConfig(
    EncoderDecoder("marian", R"(, "activation_function": "swish", "max_position_embeddings": 24)"));
  for (const TransformerConfig* config : { decoder.encoder.get(), &decoder })
  {
    ExpectMembers(*config, "positions=24 embeddingScale=1 activation=Silu vocabulary=7");
  }
  EXPECT_EQ(decoder.decoderStart, -1); // 58100 is beyond the vocabulary
  const TransformerConfig own = ParseConfig(EncoderDecoder("marian", R"(, "decoder_vocab_size": 9,
    "share_encoder_decoder_embeddings": false, "decoder_start_token_id": 8)"));
  EXPECT_EQ(own.encoder->vocabulary, 7);
  ExpectMembers(own, "vocabulary=9 outputVocabulary=9 decoderStart=8");
}

/// New files say with which token texts begin only there; a number that is no id counts as none.
TEST(PairConfig, StartOfTargetsMayBeInTheSettingsOfGeneration)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "config.json", EncoderDecoder("marian"));
  const auto start = [&](const std::string& settings)
  {
    WriteBytes(folder / "generation_config.json", settings);
    return ReadTransformerConfig(folder / "config.json").decoderStart;
  };
  EXPECT_EQ(start("{}"), -1);
  EXPECT_EQ(start(R"({"decoder_start_token_id": 6})"), 6);
  EXPECT_EQ(start(R"({"decoder_start_token_id": 7})"), -1);
  EXPECT_EQ(start(R"({"decoder_start_token_id": -1})"), -1);
  EXPECT_EQ(start(R"({"decoder_start_token_id": null})"), -1);
}

TEST(PairConfig, Whisper)
{
  const TransformerConfig decoder = ParseConfig(EncoderDecoder("whisper"));
  const TransformerConfig& encoder = *decoder.encoder;
  ExpectMembers(encoder, "input=Sound melBands=80 positions=1500 vocabulary=0");
  ExpectMembers(decoder, "input=Tokens positions=448");
}

}
