#include "GenerateTokens.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "RecordTransformer.h"
#include "Reports.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

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

/// Greedy tokens of models with all kinds of positions, grouped keys and masks, beside whole runs
/// without kept keys.
TEST(GenerateTokens, GreedyTokensAreThoseOfWholeRuns)
{
  for (const std::string name : { "gpt2", "bloom", "llama", "attn-only" })
  {
    if (!std::filesystem::exists(TransformerOracle::Folder(name)))
    {
      continue;
    }
    const Transformer model = Transformer::Read(TransformerOracle::Folder(name));
    TransformerInput input;
    input.tokens = { { 3, 1, 4, 1, 5 }, { 2 } };
    const Sequences found = GenerateTokens(model, input, Count(6));
    ASSERT_EQ(found.size(), 2U);
    for (std::size_t s = 0; s < 2; ++s)
    {
      ASSERT_EQ(found[s].size(), 6U) << name;
      std::vector<std::int64_t> text = input.tokens[s];
      for (const std::int64_t token : found[s])
      {
        const std::vector<double> logits = LastLogits(model, text);
        const double largest = *std::max_element(logits.begin(), logits.end());
        EXPECT_NEAR(logits[token], largest, 1e-4) << name;
        text.push_back(token);
      }
    }
  }
}

/// The same of today's architectures, with windows, caps, sinks, experts, parallel layers and
/// rotary embeddings that depend on the length: a prompt of 12 tokens goes on to 24 (LongRope
/// changes after 16).
TEST(GenerateTokens, GreedyTokensOfOtherArchitecturesAreThoseOfWholeRuns)
{
  int compared = 0;
  for (const std::string name :
    { "deepseek_v2", "deepseek_v2-lite", "gemma2", "gemma3-v5", "gpt_neo", "gpt_neox", "gpt_oss",
      "gptj", "llama-yarn", "mistral-window", "mixtral", "olmo", "olmoe", "opt-proj", "phi",
      "phi3-longrope", "qwen2-tied", "qwen2_moe", "qwen3-v5", "qwen3_moe", "stablelm" })
  {
    const std::filesystem::path folder = atlas::test::ModelsOracle("transformers/" + name);
    if (folder.empty())
    {
      continue;
    }
    const Transformer model = Transformer::Read(folder);
    TransformerInput input;
    input.tokens = { { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8 } };
    const Sequences found = GenerateTokens(model, input, Count(12));
    std::vector<std::int64_t> text = input.tokens.front();
    for (const std::int64_t token : found.front())
    {
      const std::vector<double> logits = LastLogits(model, text);
      const double largest = *std::max_element(logits.begin(), logits.end());
      EXPECT_NEAR(logits[token], largest, 2e-4) << name << " after " << text.size() << " tokens";
      text.push_back(token);
    }
    ++compared;
  }
  EXPECT_GE(compared, 16); // those of this repository
}

class GenerateTiny : public testing::Test
{
protected:
  TinyTransformer Weights;
  Transformer Model = Weights.Make();
};

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
