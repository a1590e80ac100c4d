#include "Circuits/LogitAttribution.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "LogitsOracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::AllOf;
using testing::HasSubstr;

namespace
{

/// Largest difference of the sums from the recorded logits, of the largest logit.
double Miss(const LogitTerms& terms)
{
  return test::LargestError(terms.sums, terms.logits);
}

/// The terms of targets, with nothing known before.
template<class... Rest>
LogitTerms Attribute(const Recording& recording, const ResidualWeights& weights,
  const std::vector<LogitTarget>& targets, const Rest&... rest)
{
  LastMlps mlps;
  return AttributeLogits(recording, weights, targets, mlps, rest...);
}

/// The next token of every token but the last of its sequence.
std::vector<LogitTarget> NextTokens(const Recording& recording)
{
  std::vector<LogitTarget> targets;
  for (std::int64_t row = 0; row + 1 < recording.tokens.Count(); ++row)
  {
    const std::size_t i = row;
    if (recording.tokens.sequence[i] == recording.tokens.sequence[i + 1])
    {
      targets.push_back({ row, static_cast<std::int32_t>(recording.tokens.id[i + 1]) });
    }
  }
  return targets;
}

using OfLogitTerms = OfLogits;

}

TEST_P(OfLogitTerms, TermsAreThoseOfTheIndependentProgram)
{
  const Recording& recording = this->Oracle.GetRecording();
  const std::vector<LogitTarget> targets = NextTokens(recording);
  const LogitTerms terms = Attribute(recording, ResidualWeights(this->Processed), targets);

  std::string names = "[";
  for (std::size_t c = 0; c + 1 < terms.components.size(); ++c)
  {
    names += (c > 0 ? ", \"" : "\"") + terms.components[c].name + "\"";
  }
  EXPECT_EQ(names + "]", this->Oracle.GetMetadata().at("dla.components"));
  EXPECT_EQ(terms.components.back().name, "b_U");

  const std::vector<std::int64_t> ids = this->Oracle.Integers("dla.target");
  ASSERT_EQ(ids.size(), targets.size());
  std::vector<double> values;
  std::vector<double> biases;
  for (std::size_t t = 0; t < targets.size(); ++t)
  {
    EXPECT_EQ(targets[t].id, ids[t]);
    const auto row = terms.values.row(static_cast<std::int64_t>(t));
    values.insert(values.end(), row.data(), row.data() + row.size() - 1);
    biases.push_back(row(row.size() - 1));
  }
  ExpectClose("dla.values", values, this->Oracle.Values("dla.values"), LogitsTolerance);
  ExpectClose("dla.b_U", biases, this->Oracle.Values("dla.b_U"), LogitsTolerance);
  ExpectClose("dla.logit", terms.sums, this->Oracle.Values("dla.logit"), LogitsTolerance);
  ExpectClose("recorded", terms.logits, this->Oracle.Values("dla.logit"), LogitsTolerance);
}

TEST_P(OfLogitTerms, AllTokensAtTheLastPosition)
{
  const Recording& recording = this->Oracle.GetRecording();
  const std::vector<std::size_t> shape = this->Oracle.ShapeOf("dla.last");
  std::vector<double> found(shape[0] * shape[1] * shape[2]);
  std::vector<double> scales;
  for (std::size_t s = 0; s < shape[0]; ++s)
  {
    std::vector<LogitTarget> targets;
    for (std::size_t v = 0; v < shape[2]; ++v)
    {
      targets.push_back({ recording.sequenceOffsets[s + 1] - 1, static_cast<std::int32_t>(v) });
    }
    const LogitTerms terms = Attribute(recording, ResidualWeights(this->Processed), targets);
    for (std::size_t v = 0; v < shape[2]; ++v)
    {
      for (std::size_t c = 0; c < shape[1]; ++c)
      {
        found[(s * shape[1] + c) * shape[2] + v] =
          terms.values(static_cast<std::int64_t>(v), static_cast<std::int64_t>(c));
      }
    }
    EXPECT_LE(Miss(terms), LogitsTolerance);
  }
  ExpectClose("dla.last", found, this->Oracle.Values("dla.last"), LogitsTolerance);
}

TEST_P(OfLogitTerms, ScalesAreThoseOfTheFinalNormalization)
{
  const Recording& recording = this->Oracle.GetRecording();
  std::vector<LogitTarget> targets;
  for (std::int64_t row = 0; row < recording.tokens.Count(); ++row)
  {
    targets.push_back({ row, 0 });
  }
  ExpectClose("dla.scale", Attribute(recording, ResidualWeights(this->Processed), targets).scales,
    this->Oracle.Values("dla.scale"), LogitsTolerance);
}

TEST_P(OfLogitTerms, SumsAreTheRecordedLogits)
{
  Recording recording = this->Oracle.GetRecording();
  std::vector<LogitTarget> targets = NextTokens(recording);
  for (const ProcessedWeights* weights : { &this->Processed, &this->Stored })
  {
    const ResidualWeights residual(*weights);
    recording.logits = this->Oracle.GetRecording().logits;
    const LogitTerms terms = Attribute(recording, residual, targets);
    EXPECT_LE(Miss(terms), LogitsTolerance);
    for (std::size_t t = 0; t < targets.size() && weights == &this->Stored; ++t)
    {
      EXPECT_EQ(terms.logits[t], recording.logits.Row(targets[t].row)[targets[t].id]);
    }
    // Without logits, those of the recorded end of the stream.
    recording.logits = {};
    const LogitTerms others = Attribute(recording, residual, targets);
    EXPECT_LE(Miss(others), LogitsTolerance);
    EXPECT_NE(others.logits, terms.logits);
    EXPECT_EQ(others.sums, terms.sums);
  }
}

TEST_P(OfLogitTerms, DifferencesAreThoseOfTheirLogits)
{
  const Recording& recording = this->Oracle.GetRecording();
  const ResidualWeights weights(this->Processed);
  const std::vector<LogitTarget> all = { { 5, 7, 3 }, { 5, 7 }, { 5, 3 } };
  const LogitTerms terms = Attribute(recording, weights, all);
  const double largest = terms.values.cwiseAbs().maxCoeff();
  const Eigen::RowVectorXd difference = terms.values.row(1) - terms.values.row(2);
  EXPECT_LE((terms.values.row(0) - difference).cwiseAbs().maxCoeff(), 1e-12 * largest);
  EXPECT_NEAR(terms.sums[0], terms.logits[0], LogitsTolerance * largest);
  const float* logits = recording.logits.Row(5);
  EXPECT_EQ(terms.logits[0], static_cast<double>(logits[7]) - static_cast<double>(logits[3]));
}

TEST_P(OfLogitTerms, ThreadsAndKnownMlpsChangeNothing)
{
  const Recording& recording = this->Oracle.GetRecording();
  const ResidualWeights weights(this->Processed, 1);
  const std::vector<LogitTarget> targets = NextTokens(recording);
  LastMlps mlps;
  const LogitTerms all = AttributeLogits(recording, weights, targets, mlps, 1);
  const LogitTerms three = Attribute(recording, ResidualWeights(this->Processed, 3), targets, 3);
  EXPECT_EQ(all.values, three.values);
  const LogitTerms again = AttributeLogits(recording, weights, { targets[9] }, mlps);
  const LogitTerms alone = Attribute(recording, weights, { targets[9] });
  EXPECT_EQ(again.values.row(0), all.values.row(9));
  EXPECT_LE((alone.values.row(0) - all.values.row(9)).cwiseAbs().maxCoeff(), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(LogitAttribution, OfLogitTerms, OfLogits::Models(), OfLogits::Name);

TEST(LogitAttribution, CanBeCanceled)
{
  const LogitsOracle oracle("gpt2");
  const ProcessedWeights weights(oracle.GetModel(), WeightSteps::TransformerLens);
  double done = 0;
  const auto stop = [&](double fraction)
  {
    done = fraction;
    throw Canceled();
  };
  EXPECT_THROW(
    Attribute(oracle.GetRecording(), ResidualWeights(weights), { { 0, 0 } }, 1, stop), Canceled);
  EXPECT_EQ(done, 1);
}

TEST(LogitAttribution, SaysWhatIsMissing)
{
  const LogitsOracle oracle("gpt2");
  const ProcessedWeights weights(oracle.GetModel(), WeightSteps::TransformerLens);
  const ResidualWeights residual(weights);
  const auto refusal = [&](const auto& change, std::int32_t id = 1)
  {
    Recording recording = oracle.GetRecording();
    change(recording);
    return MessageOf<OptionError>([&] { Attribute(recording, residual, { { 0, id } }); });
  };
  const std::int64_t tokens = oracle.GetRecording().tokens.Count();
  EXPECT_THAT(refusal([](Recording&) {}, 211), HasSubstr("from 0 to 210, found 211"));
  EXPECT_THAT(refusal([](Recording& recording) { recording.layers[1].heads[2].output = {}; }),
    AllOf(HasSubstr("HeadOutputs and Residual"), HasSubstr("outputs of all heads of layer 1")));
  EXPECT_THAT(refusal([](Recording& recording) { recording.residual.clear(); }),
    HasSubstr("the residual stream before layer 0, found none"));
  EXPECT_THAT(
    refusal([=](Recording& recording) { recording.logits = SharedMatrix::Zero(tokens, 5); }),
    HasSubstr("logits of 211 tokens as in the model, found 5"));
  EXPECT_THAT(refusal([](Recording& recording) { recording.tokens.position[0] = 64; }),
    HasSubstr("from 0 to 63 as in the model, found 64"));
  EXPECT_THAT(refusal([=](Recording& recording)
                { recording.layers[0].heads[1].output = SharedMatrix::Zero(tokens, 5); }),
    HasSubstr("32 components, found 5"));
  const Transformer bert = Transformer::Read(TransformerOracle::Folder("bert"));
  const ProcessedWeights ofBert(bert, WeightSteps::Stored);
  EXPECT_THAT(MessageOf<ModelError>([&] { ResidualWeights{ ofBert }; }),
    AllOf(HasSubstr("found bert"), HasSubstr("is no sum")));
}
