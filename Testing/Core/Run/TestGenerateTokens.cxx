#include "Run/GenerateTokens.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "Reports.h"
#include "Run/RecordTransformer.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"
#include "WholeRuns.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

using Sequences = std::vector<std::vector<std::int64_t>>;

/// The logits at the last token of a sequence, from a run of the whole sequence.
std::vector<double> LastLogits(const Transformer& model, const std::vector<std::int64_t>& tokens)
{
  RecordOptions options;
  options.logits = true;
  TransformerInput input;
  input.tokens = { tokens };
  const SharedMatrix logits = RecordTransformer(model, input, options).logits;
  const float* row = logits.Row(logits.rows - 1);
  return { row, row + logits.columns };
}

GenerationOptions Count(std::int64_t count)
{
  GenerationOptions options;
  options.count = count;
  return options;
}

/// Models with all kinds of positions, grouped keys and masks, windows, caps, sinks, experts,
/// parallel layers, layers without attention and rotary embeddings that depend on the length: a
/// prompt of 12 tokens goes on to 24 (LongRope changes after 16).
TEST(GenerateTokens, GreedyTokensAreThoseOfWholeRuns)
{
  std::vector<std::filesystem::path> folders;
  for (const char* name : { "gpt2", "bloom", "llama", "attn-only" })
  {
    folders.push_back(TransformerOracle::Folder(name));
  }
  for (const char* name : { "deepseek_v2", "deepseek_v2-lite", "gemma2", "gemma3-v5", "gpt_neox",
         "gpt_oss", "gptj", "mixtral", "olmo", "olmoe", "opt-proj", "phi3-longrope", "qwen2-tied",
         "qwen2_moe", "qwen3-v5", "qwen3_moe" })
  {
    folders.push_back(ModelsOracle(std::string("transformers/") + name));
  }
  for (const char* name : { "gpt_neo", "llama-yarn", "mistral-window", "phi", "stablelm" })
  {
    const std::filesystem::path folder = ModelsOracle(std::string("transformers/") + name);
    if (!folder.empty()) // too large for this repository
    {
      folders.push_back(folder);
    }
  }
  for (const char* name : { "lfm2-d", "lfm2_moe-b", "qwen3_next-a", "olmo_hybrid-a", "bamba-b",
         "granitemoehybrid-a", "granitemoehybrid-b" })
  {
    folders.push_back(AnyOracle(std::string("v5/decoder/") + name));
  }
  for (const std::filesystem::path& folder : folders)
  {
    SCOPED_TRACE(folder);
    TransformerInput input;
    input.tokens = { { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8 }, { 2 } };
    ExpectGreedy(Transformer::Read(folder), input, 12);
  }
}

using GenerateTiny = OnTiny;

TEST_F(GenerateTiny, TokensDependOnTheSeedOnly)
{
  GenerationOptions options = Count(40);
  options.temperature = 1.5;
  options.seed = 3;
  const TransformerInput input = TinyInput({ 5, 140 });
  const Sequences found = GenerateTokens(this->Model, input, options);
  for (const int threads : { 1, 2, 3 })
  {
    options.threads = threads;
    EXPECT_EQ(GenerateTokens(this->Model, input, options), found) << threads;
  }
  TransformerInput alone;
  alone.tokens = { input.tokens.front() };
  EXPECT_EQ(GenerateTokens(this->Model, alone, options).front(), found.front());
  options.seed = 4;
  EXPECT_NE(GenerateTokens(this->Model, input, options), found);
}

/// The first drawn token, over many seeds, beside the softmax of the logits over the temperature.
TEST_F(GenerateTiny, TokensAreDrawnFromTheSoftmaxOfTheMostProbable)
{
  const TransformerInput input = TinyInput({ 7 });
  const std::vector<double> logits = LastLogits(this->Model, input.tokens.front());
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{ 0 });
  std::sort(order.begin(), order.end(),
    [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  GenerationOptions options = Count(1);
  options.temperature = 2;
  options.topK = 4;
  constexpr int draws = 4000;
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i)
  {
    options.seed = static_cast<std::uint64_t>(i);
    const Sequences found = GenerateTokens(this->Model, input, options);
    ++counts[found.front().front()];
  }
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i)
  {
    sum += std::exp(logits[order[i]] / 2);
  }
  for (std::size_t i = 0; i < order.size(); ++i)
  {
    const double p = i < 4 ? std::exp(logits[order[i]] / 2) / sum : 0;
    const double deviation = std::sqrt(p * (1 - p) * draws);
    EXPECT_NEAR(counts[order[i]], p * draws, 4.5 * deviation) << i; // exactly 0 beyond TopK
  }
  options.topK = 1;
  EXPECT_EQ(GenerateTokens(this->Model, input, options).front().front(),
    static_cast<std::int64_t>(order.front()));
}

TEST_F(GenerateTiny, ASequenceEndsAfterAnEnd)
{
  const TransformerInput input = TinyInput({ 5, 9 });
  const Sequences all = GenerateTokens(this->Model, input, Count(12));
  GenerationOptions options = Count(12);
  options.ends = { all.front()[3] };
  const Sequences found = GenerateTokens(this->Model, input, options);
  for (std::size_t s = 0; s < 2; ++s)
  {
    const auto end = std::find(all[s].begin(), all[s].end(), options.ends.front());
    const std::vector<std::int64_t> expected(all[s].begin(), end == all[s].end() ? end : end + 1);
    EXPECT_EQ(found[s], expected) << s;
  }
}

TEST_F(GenerateTiny, StopsWhenAsked)
{
  GenerationOptions options = Count(10);
  std::vector<double> seen;
  options.progress = KeepReports(seen, 4);
  EXPECT_THROW(GenerateTokens(this->Model, TinyInput({ 5 }), options), Canceled);
  EXPECT_THAT(seen, ElementsAre(0, 0.1, 0.2, testing::DoubleNear(0.3, 1e-12)));
  EXPECT_THAT(GenerateTokens(this->Model, TinyInput({ 5, 6 }), Count(0)),
    ElementsAre(testing::IsEmpty(), testing::IsEmpty()));
}

TEST_F(GenerateTiny, ImpossibleOptionsAreRefused)
{
  const TransformerInput input = TinyInput({ 5, 300 });
  const auto message = [&](const GenerationOptions& options)
  { return MessageOf<OptionError>([&] { GenerateTokens(this->Model, input, options); }); };
  EXPECT_THAT(message(Count(21)),
    HasSubstr("sequence 1 would have 321 tokens, but the model has 320 positions"));
  EXPECT_THAT(message(Count(-1)), HasSubstr("at least 0, found -1"));
  for (const double temperature :
    { -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity() })
  {
    GenerationOptions options = Count(2);
    options.temperature = temperature;
    EXPECT_THAT(message(options), HasSubstr("temperature of at least 0"));
  }
  GenerationOptions options = Count(2);
  options.topK = -2;
  EXPECT_THAT(message(options), HasSubstr("TopK to be at least 0, found -2"));
}

TEST(GenerateTokens, ModelsThatCannotGoOnAreRefused)
{
  TransformerInput input;
  input.tokens = { { 1, 2, 3 } };
  const Transformer bert = Transformer::Read(TransformerOracle::Folder("bert"));
  EXPECT_THAT(MessageOf<OptionError>([&] { GenerateTokens(bert, input, Count(1)); }),
    HasSubstr("architecture bert"));
}

}
