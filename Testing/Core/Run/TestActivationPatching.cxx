#include "Run/ActivationPatching.h"

#include "Base/Index.h"
#include "ErrorMessage.h"
#include "ReferenceTransformer.h"
#include "Reports.h"
#include "TinyTransformer.h"
#include "WholeRuns.h"

#include <numeric>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;
using Matrix = ReferenceTransformer::Matrix;

namespace
{

using MapPatchingOfTiny = OnTiny;

struct Inputs
{
  TransformerInput prompt;
  TransformerInput source;
};

Inputs TinyPair(std::size_t length)
{
  const TransformerInput both = TinyInput({ length, length });
  Inputs inputs;
  inputs.prompt.tokens = { both.tokens[0] };
  inputs.source.tokens = { both.tokens[1] };
  return inputs;
}

PatchingOptions OptionsOf(ActivationKind kind, Replacement by)
{
  PatchingOptions options;
  options.kind = kind;
  options.by = by;
  options.target = 3;
  options.against = 5;
  options.threads = 1;
  return options;
}

/// One run of the reference per site.
double ReferenceEffect(const Transformer& model, const Inputs& inputs, const ActivationSite& site,
  const PatchingOptions& options)
{
  Interventions interventions;
  interventions.list = { { site, options.by } };
  interventions.source = inputs.source;
  const Matrix logits =
    ReferenceLogits(model, inputs.prompt.tokens[0], interventions, options.reference.tokens);
  return logits(logits.rows() - 1, *options.target) - logits(logits.rows() - 1, *options.against);
}

/// Every cell within 1e-5 of the largest, and not all the same.
void ExpectMap(const Transformer& model, const Inputs& inputs, const PatchingOptions& options)
{
  const PatchingMap map = MapPatching(model, inputs.prompt, inputs.source, options);
  const auto sites = PatchingSites(model.GetConfig(), inputs.prompt.tokens[0].size(), options);
  ASSERT_EQ(map.difference.size(), sites.size());
  for (std::size_t i = 0; i < sites.size(); ++i)
  {
    const double expected = ReferenceEffect(model, inputs, sites[i], options);
    EXPECT_NEAR(map.difference[i], expected, 1e-5 * std::max(1.0, std::abs(expected)))
      << ToText(sites[i]);
  }
  const auto [least, most] = std::minmax_element(map.difference.begin(), map.difference.end());
  EXPECT_GT(*most - *least, 1e-3);
}

TEST_F(MapPatchingOfTiny, EqualsOneReferenceRunPerSite)
{
  const Inputs inputs = TinyPair(6);
  for (const Replacement by : { Replacement::Source, Replacement::Zero,
         Replacement::MeanOverPositions, Replacement::MeanOverPrompts })
  {
    for (const ActivationKind kind : { ActivationKind::HeadOutput, ActivationKind::Residual,
           ActivationKind::AttentionOutput, ActivationKind::MlpOutput })
    {
      SCOPED_TRACE(
        std::to_string(static_cast<int>(by)) + " " + std::to_string(static_cast<int>(kind)));
      PatchingOptions options = OptionsOf(kind, by);
      options.reference = TinyInput({ 9, 3, 6 });
      ExpectMap(this->Model, inputs, options);
    }
  }
  PatchingOptions options = OptionsOf(ActivationKind::HeadOutput, Replacement::Source);
  options.position = 4;
  ExpectMap(this->Model, inputs, options);
  ExpectMap(this->Model, TinyPair(15), OptionsOf(ActivationKind::HeadOutput, Replacement::Source));
}

TEST_F(MapPatchingOfTiny, GivesExactlyThePromptsDifferenceWhereNothingFollows)
{
  const std::int64_t last = this->Model.GetConfig().layers - 1;
  const Inputs inputs = TinyPair(15);
  const PatchingOptions options = OptionsOf(ActivationKind::MlpOutput, Replacement::Source);
  const PatchingMap map = MapPatching(this->Model, inputs.prompt, inputs.source, options);
  const auto sites = PatchingSites(this->Model.GetConfig(), 15, options);
  for (std::size_t i = 0; i < sites.size(); ++i)
  {
    const bool isFollowed = sites[i].layer < last || sites[i].position == 14;
    EXPECT_EQ(map.difference[i] != map.prompt, isFollowed) << ToText(sites[i]);
  }
}

TEST(MapPatching, EqualsTheReferenceOnModels)
{
  for (const char* name : { "gpt2", "attn-only", "attn-only-shortformer" })
  {
    SCOPED_TRACE(name);
    const TransformerOracle oracle(name);
    const Transformer model = Transformer::Read(oracle.Path());
    std::vector<std::vector<std::int64_t>> tokens = oracle.Input().tokens;
    const std::size_t length = std::min(tokens[0].size(), tokens[1].size());
    tokens[0].resize(length);
    tokens[1].resize(length);
    Inputs inputs;
    inputs.prompt.tokens = { tokens[0] };
    inputs.source.tokens = { tokens[1] };
    ExpectMap(model, inputs, OptionsOf(ActivationKind::HeadOutput, Replacement::Source));
    ExpectMap(model, inputs, OptionsOf(ActivationKind::Residual, Replacement::Source));
  }
}

/// The tokens that the reference predicts after a sequence, the likeliest first.
std::vector<Eigen::Index> Predicted(const Eigen::RowVectorXd& logits)
{
  std::vector<Eigen::Index> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::sort(tokens.begin(), tokens.end(),
    [&](Eigen::Index a, Eigen::Index b) { return logits[a] > logits[b]; });
  return tokens;
}

Eigen::RowVectorXd LastLogits(const Transformer& model, const TransformerInput& input)
{
  return ReferenceTransformer(model).Logits(input.tokens[0]).bottomRows(1);
}

/// Two sequences after which the same token is predicted, or not.
Inputs PairWith(const Transformer& model, bool sameToken)
{
  const TransformerInput many = TinyInput(std::vector<std::size_t>(40, 9));
  Inputs inputs;
  inputs.prompt.tokens = { many.tokens[0] };
  const Eigen::Index first = Predicted(LastLogits(model, inputs.prompt))[0];
  for (const std::vector<std::int64_t>& tokens : many.tokens)
  {
    inputs.source.tokens = { tokens };
    const Eigen::Index other = Predicted(LastLogits(model, inputs.source))[0];
    if (tokens != many.tokens[0] && (other == first) == sameToken)
    {
      return inputs;
    }
  }
  throw std::runtime_error("no such sequence");
}

TEST_F(MapPatchingOfTiny, ComparesWhatTheRunsPredict)
{
  const Inputs inputs = PairWith(this->Model, false);
  const Eigen::RowVectorXd prompt = LastLogits(this->Model, inputs.prompt);
  const Eigen::RowVectorXd source = LastLogits(this->Model, inputs.source);
  const std::vector<Eigen::Index> promptTokens = Predicted(prompt);
  const Eigen::Index first = promptTokens[0];
  const Eigen::Index other = Predicted(source)[0];

  PatchingOptions options;
  const PatchingMap patched = MapPatching(this->Model, inputs.prompt, inputs.source, options);
  EXPECT_EQ(patched.target, other);
  EXPECT_EQ(patched.against, first);
  EXPECT_NEAR(patched.prompt, prompt[other] - prompt[first], 1e-4);
  EXPECT_NEAR(patched.source, source[other] - source[first], 1e-4);

  options.target = first; // of the prompt's run, so that the other one is the source's
  const PatchingMap reversed = MapPatching(this->Model, inputs.prompt, inputs.source, options);
  EXPECT_EQ(reversed.target, first);
  EXPECT_EQ(reversed.against, other);

  options.target.reset();
  options.by = Replacement::Zero;
  const PatchingMap ablated = MapPatching(this->Model, inputs.prompt, {}, options);
  EXPECT_EQ(ablated.target, first);
  EXPECT_EQ(ablated.against, promptTokens[1]);
  EXPECT_NEAR(ablated.prompt, prompt[first] - prompt[promptTokens[1]], 1e-4);
}

TEST_F(MapPatchingOfTiny, ComparesWhatChangesMostIfBothRunsPredictTheSame)
{
  const Inputs inputs = PairWith(this->Model, true);
  const std::vector<Eigen::Index> changed =
    Predicted(LastLogits(this->Model, inputs.source) - LastLogits(this->Model, inputs.prompt));
  const PatchingMap map = MapPatching(this->Model, inputs.prompt, inputs.source, {});
  EXPECT_EQ(map.target, changed.front());
  EXPECT_EQ(map.against, changed.back());
  EXPECT_THAT(
    MessageOf<OptionError>([&] { MapPatching(this->Model, inputs.prompt, inputs.prompt, {}); }),
    HasSubstr("expected a prompt with other logits than Prompt, found the same"));
}

TEST_F(MapPatchingOfTiny, GivesExactlyThePromptsDifferenceIfNothingChanges)
{
  for (const std::size_t length : { 6, 13, 15, 20, 24 })
  {
    const Inputs inputs = TinyPair(length);
    for (const ActivationKind kind : { ActivationKind::HeadOutput, ActivationKind::Residual,
           ActivationKind::AttentionOutput, ActivationKind::MlpOutput })
    {
      const PatchingMap map = MapPatching(
        this->Model, inputs.prompt, inputs.prompt, OptionsOf(kind, Replacement::Source));
      for (const double difference : map.difference)
      {
        EXPECT_EQ(difference, map.prompt) << length;
      }
    }
  }
}

TEST_F(MapPatchingOfTiny, GivesTheSameBytesOnAnyNumberOfThreadsAndParts)
{
  for (const std::size_t length : { 100, 15, 6 }) // one group of rows, or several
  {
    const Inputs inputs = TinyPair(length);
    PatchingOptions options = OptionsOf(ActivationKind::Residual, Replacement::Source);
    const PatchingMap whole = MapPatching(this->Model, inputs.prompt, inputs.source, options);
    options.threads = 4;
    EXPECT_EQ(
      MapPatching(this->Model, inputs.prompt, inputs.source, options).difference, whole.difference);
    options.parts = 3;
    std::vector<double> sum(whole.difference.size());
    for (options.part = 0; options.part < options.parts; ++options.part)
    {
      const PatchingMap part = MapPatching(this->Model, inputs.prompt, inputs.source, options);
      for (std::size_t i = 0; i < sum.size(); ++i)
      {
        sum[i] += part.difference[i];
      }
    }
    EXPECT_EQ(sum, whole.difference) << length;
  }
}

TEST_F(MapPatchingOfTiny, ReportsProgressAndStops)
{
  const Inputs inputs = TinyPair(40);
  PatchingOptions options = OptionsOf(ActivationKind::Residual, Replacement::Source);
  ExpectReports(
    options.progress, [&] { MapPatching(this->Model, inputs.prompt, inputs.source, options); });
}

TEST_F(MapPatchingOfTiny, SaysWhatDoesNotFit)
{
  Inputs inputs = TinyPair(4);
  PatchingOptions options = OptionsOf(ActivationKind::HeadOutput, Replacement::Source);
  const auto message = [&]
  {
    return MessageOf<OptionError>(
      [&] { MapPatching(this->Model, inputs.prompt, inputs.source, options); });
  };
  options.position = 4;
  EXPECT_THAT(message(), HasSubstr("Position: expected -1 or one of the prompt, 0 to 3, found 4"));
  options.position = AllPositions;
  options.against = 13;
  EXPECT_THAT(message(), HasSubstr("Against: expected a token id from 0 to 12, found 13"));
  options.against = 3;
  EXPECT_THAT(message(), HasSubstr("Against: expected another token than Target"));
  options.against = 5;
  inputs.source.tokens[0].pop_back();
  EXPECT_THAT(message(), HasSubstr("expected as many tokens as sequence 0, 4, found 3"));
  const TransformerOracle vit("vit");
  EXPECT_THAT(MessageOf<OptionError>(
                [&] { MapPatching(Transformer::Read(vit.Path()), vit.Input(), {}, options); }),
    HasSubstr("expected a model of texts with an unembedding"));
}

}
