#include "Circuits/ScoreAttribution.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "LogitsOracle.h"
#include "ModelsOracle.h"
#include "Recording/RecordedAttention.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::AllOf;
using testing::HasSubstr;

namespace
{

using Vector = Eigen::RowVectorXd;

/// Every eleventh score of a sequence, of all heads.
template<class Visit>
void ForScores(const Recording& recording, const Visit& visit)
{
  int i = 0;
  const std::int64_t length = recording.SequenceLength(1);
  for (const RecordedLayer& layer : recording.layers)
  {
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      for (std::int64_t query = 0; query < length; ++query)
      {
        const std::int64_t end = recording.mask == AttentionMask::Causal ? query + 1 : length;
        for (std::int64_t key = 0; key < end; ++key)
        {
          if (i++ % 11 == 0)
          {
            visit(ScorePlace{ 1, layer.index, static_cast<std::int64_t>(h), query, key });
          }
        }
      }
    }
  }
}

float RecordedScore(const Recording& recording, const ScorePlace& place)
{
  std::vector<float> row(recording.SequenceLength(place.sequence));
  EvaluateAttention(recording, place.sequence, place.layer, place.head, AttentionQuantity::Scores,
    place.query, place.query + 1, row.data());
  return row[place.key];
}

/// The product of a query and a key whose rotary angles differ by `offset` positions.
double RotatedProduct(
  const TransformerConfig& config, const Vector& query, const Vector& key, std::int64_t offset)
{
  const std::vector<float> frequencies = RotaryFrequencies(config);
  const std::int64_t pairs = frequencies.size();
  double sum = 0;
  for (std::int64_t i = 0; i < pairs; ++i)
  {
    const double angle = static_cast<double>(offset) * static_cast<double>(frequencies[i]);
    const double even = query(i) * key(i) + query(i + pairs) * key(i + pairs);
    const double odd = query(i) * key(i + pairs) - query(i + pairs) * key(i);
    sum += std::cos(angle) * even + std::sin(angle) * odd;
  }
  return sum;
}

class OfScores : public OfLogits
{
protected:
  /// A term by weights that are folded and centered, and the relative rotation.
  double Expected(const ScorePlace& place, std::int64_t a, std::int64_t b) const
  {
    const TransformerConfig& config = this->Oracle.GetModel().GetConfig();
    const Recording& recording = this->Oracle.GetRecording();
    const ResidualWeights residual(this->Processed);
    const std::int64_t first = recording.sequenceOffsets[1];
    const ProcessedHead head = this->Processed.Attention(place.layer).heads[place.head];
    const auto part = [&](std::int64_t position, std::int64_t c, const DoubleMatrix& weight,
                        const Vector& bias) -> Vector
    {
      const DoubleMatrix vectors =
        ComponentVectors(recording, residual, first + position, place.layer);
      if (config.position == PositionKind::Shortformer && c == 1)
      {
        return residual.Positions().row(position) * weight;
      }
      const std::int64_t i = config.position == PositionKind::Shortformer && c > 1 ? c - 1 : c;
      if (i == vectors.rows())
      {
        return bias;
      }
      const Vector x = vectors.colwise().sum();
      const double mean = config.norm == NormKind::LayerNorm ? x.mean() : 0;
      const double sigma = config.norm == NormKind::None
                             ? 1
                             : std::sqrt((x.array() - mean).square().mean() + config.epsilon);
      return vectors.row(i) * weight / sigma;
    };
    const Vector query = part(place.query, a, head.query, head.queryBias);
    const Vector key = part(place.key, b, head.key, head.keyBias);
    const double product = config.position == PositionKind::Rotary
                             ? RotatedProduct(config, query, key, place.query - place.key)
                             : query.dot(key);
    return product / std::sqrt(static_cast<double>(config.headDimension));
  }
};

}

TEST_P(OfScores, SumsAreTheRecordedScores)
{
  const Recording& recording = this->Oracle.GetRecording();
  for (const ProcessedWeights* weights : { &this->Processed, &this->Stored })
  {
    const ResidualWeights residual(*weights);
    double largest = 0;
    double miss = 0;
    ForScores(recording,
      [&](const ScorePlace& place)
      {
        const ScoreHead head = ReadScoreHead(this->Oracle.GetModel(), place.layer, place.head);
        const ScoreTerms terms = AttributeScore(recording, residual, head, place);
        const auto expected = static_cast<double>(RecordedScore(recording, place));
        EXPECT_NEAR(terms.score, expected, 1e-6 * std::abs(expected) + 1e-6);
        EXPECT_NEAR(terms.sum, terms.values.sum(), 1e-12);
        miss = std::max(miss, std::abs(terms.sum - terms.score));
        largest = std::max(largest, std::abs(terms.score));
        const double alibi = recording.alibiSlopes.empty()
                               ? 0
                               : recording.alibiSlopes[place.head] * static_cast<double>(place.key);
        EXPECT_EQ(terms.queries.back().name == "ALiBi", !recording.alibiSlopes.empty());
        if (!recording.alibiSlopes.empty())
        {
          EXPECT_EQ(terms.values(terms.values.rows() - 1, terms.values.cols() - 1), alibi);
        }
        for (const ComponentGrouping grouping :
          { ComponentGrouping::Heads, ComponentGrouping::Layers })
        {
          const ScoreTerms grouped = Grouped(terms, grouping);
          EXPECT_EQ(grouped.queries.size(), static_cast<std::size_t>(grouped.values.rows()));
          EXPECT_NEAR(grouped.values.sum(), terms.sum, 1e-9);
        }
      });
    EXPECT_LE(miss, LogitsTolerance * largest);
    this->RecordProperty("miss", testing::PrintToString(miss / largest));
  }
}

TEST_P(OfScores, TermsAreThoseOfFoldedWeights)
{
  const Recording& recording = this->Oracle.GetRecording();
  const ResidualWeights residual(this->Processed);
  for (const ScorePlace& place : { ScorePlace{ 1, 0, 1, 9, 4 }, ScorePlace{ 1, 1, 3, 11, 2 } })
  {
    const ScoreTerms terms = AttributeScore(
      recording, residual, ReadScoreHead(this->Oracle.GetModel(), place.layer, place.head), place);
    const auto count =
      static_cast<std::int64_t>(terms.queries.size()) - (recording.alibiSlopes.empty() ? 0 : 1);
    const double tolerance = 1e-6 * terms.values.cwiseAbs().maxCoeff();
    for (std::int64_t a = 0; a < count; ++a)
    {
      for (std::int64_t b = 0; b < count; ++b)
      {
        EXPECT_NEAR(terms.values(a, b), this->Expected(place, a, b), tolerance)
          << terms.queries[a].name << " x " << terms.keys[b].name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ScoreAttribution, OfScores, OfLogits::Models(), OfLogits::Name);

/// Patches attend to those of their window, the class token to itself: the strongest key is one of
/// these, by a loop over all pairs.
TEST(ScoreAttribution, OfWindowsOfPatches)
{
  const Transformer vit = Transformer::Read(TransformerOracle::Folder("vit"));
  Recording recording = LogitsOracle::Run(vit, "vit");
  recording.layers[1].patchWindow = 2;
  const ProcessedWeights weights(vit, WeightSteps::TransformerLens);
  const ResidualWeights residual(weights);
  const ScoreHead head = ReadScoreHead(vit, 1, 2);
  const std::int64_t length = recording.SequenceLength(0);
  const auto windowOf = [&](std::int64_t token)
  {
    const std::int32_t row = recording.tokens.row[token];
    const std::int32_t column = recording.tokens.column[token];
    return row < 0 ? std::pair(-1, -1) : std::pair(row / 2, column / 2);
  };
  int outside = 0; // queries whose strongest key of all is in another window
  for (std::int64_t query = 0; query < length; ++query)
  {
    std::int64_t expected = -1;
    std::int64_t ofAll = 0;
    for (std::int64_t key = 0; key < length; ++key)
    {
      const float score = RecordedScore(recording, { 0, 1, 2, query, key });
      ofAll = score > RecordedScore(recording, { 0, 1, 2, query, ofAll }) ? key : ofAll;
      if (windowOf(key) != windowOf(query))
      {
        EXPECT_THAT(MessageOf<OptionError>(
                      [&] { AttributeScore(recording, residual, head, { 0, 1, 2, query, key }); }),
          AllOf(
            HasSubstr("in the query's window of patches, which the query can attend to, found "),
            HasSubstr(" " + std::to_string(key) + ".")));
      }
      else if (expected < 0 || score > RecordedScore(recording, { 0, 1, 2, query, expected }))
      {
        expected = key;
      }
    }
    const ScoreTerms terms = AttributeScore(recording, residual, head, { 0, 1, 2, query, -1 });
    EXPECT_EQ(terms.place.key, expected);
    EXPECT_NEAR(terms.score, RecordedScore(recording, terms.place), 1e-5);
    EXPECT_NEAR(terms.sum, terms.score, 1e-5);
    outside += ofAll != expected ? 1 : 0;
  }
  EXPECT_GT(outside, 3);
}

/// Rotated by other factors before and after its 16 original positions.
TEST(ScoreAttribution, OfLongRope)
{
  const Transformer model =
    Transformer::Read(atlas::test::ModelsOracle("transformers/phi3-longrope"));
  for (const std::int64_t length : { 12, 40 })
  {
    TransformerInput input;
    input.tokens.resize(2); // ForScores takes the second
    for (std::int64_t t = 0; t < length; ++t)
    {
      input.tokens[0].push_back(t);
      input.tokens[1].push_back((7 * t * t + 3) % model.GetConfig().vocabulary);
    }
    RecordOptions options;
    options.headOutputs = true;
    options.residual = true;
    const Recording recording = RecordTransformer(model, input, options);
    const ProcessedWeights weights(model, WeightSteps::Stored);
    const ResidualWeights residual(weights);
    double largest = 0;
    ForScores(recording,
      [&](const ScorePlace& place)
      {
        const ScoreTerms terms =
          AttributeScore(recording, residual, ReadScoreHead(model, place.layer, place.head), place);
        largest = std::max(largest, std::abs(terms.score));
        const auto expected = static_cast<double>(RecordedScore(recording, place));
        EXPECT_NEAR(terms.score, expected, 1e-6 * std::abs(expected) + 1e-6);
        EXPECT_NEAR(terms.sum, terms.score, 1e-5) << length << " tokens, query " << place.query;
      });
    EXPECT_GT(largest, 0.1);
  }
}

struct ScoresOfGpt2 : testing::Test
{
  LogitsOracle oracle{ "gpt2" };
  ProcessedWeights weights{ this->oracle.GetModel(), WeightSteps::TransformerLens };
  ResidualWeights residual{ this->weights };

  ScoreTerms Attribute(const ScorePlace& place) const
  {
    return this->Attribute(this->oracle.GetRecording(), place);
  }
  ScoreTerms Attribute(const Recording& recording, const ScorePlace& place) const
  {
    return AttributeScore(recording, this->residual,
      ReadScoreHead(this->oracle.GetModel(), place.layer, place.head), place);
  }
};

TEST_F(ScoresOfGpt2, BeginWithTheStrongestKeyOfTheLastQuery)
{
  const Recording& recording = this->oracle.GetRecording();
  const ScoreTerms terms = this->Attribute({ 0, 1, 2, -1, -1 });
  const std::int64_t length = recording.SequenceLength(0);
  EXPECT_EQ(terms.place.query, length - 1);
  for (std::int64_t key = 0; key < length; ++key)
  {
    const ScorePlace other = { 0, 1, 2, length - 1, key };
    EXPECT_LE(RecordedScore(recording, other), RecordedScore(recording, terms.place));
  }
  EXPECT_EQ(terms.queries.back().name, "b_Q");
  EXPECT_EQ(terms.keys.back().name, "b_K");
}

TEST_F(ScoresOfGpt2, LayersJoinTheirHeadsAndBias)
{
  const ScoreTerms terms = this->Attribute({ 0, 1, 2, 5, 3 });
  const ScoreTerms grouped = Grouped(terms, ComponentGrouping::Layers);
  std::vector<std::string> names;
  for (const NamedComponent& component : grouped.queries)
  {
    names.push_back(component.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{ "embed", "pos", "attn 0", "mlp 0", "b_Q" }));
  EXPECT_NEAR(grouped.values(2, 2), terms.values.block(2, 2, 5, 5).sum(), 1e-12);
  EXPECT_NEAR(grouped.values(3, 4), terms.values(7, 8), 1e-12);
}

TEST(ScoreAttribution, SortsPairsByMagnitude)
{
  ScoreTerms terms;
  terms.values.resize(2, 2);
  terms.values << 1, -3, 3, 0;
  const std::vector<ScorePair> pairs = StrongestPairs(terms, 3);
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_EQ(terms.values(pairs[0].query, pairs[0].key), -3);
  EXPECT_EQ(terms.values(pairs[1].query, pairs[1].key), 3);
  EXPECT_EQ(terms.values(pairs[2].query, pairs[2].key), 1);
  EXPECT_EQ(StrongestPairs(terms, 10).size(), 4U);
}

TEST_F(ScoresOfGpt2, SayWhatIsWrong)
{
  Recording recording = this->oracle.GetRecording();
  const auto refusal = [&](const ScorePlace& place)
  { return MessageOf<Error>([&] { this->Attribute(recording, place); }); };
  EXPECT_THAT(refusal({ 0, 1, 0, 17, 0 }), HasSubstr("from 0 to 16, or -1, found 17"));
  EXPECT_THAT(refusal({ 0, 1, 0, 3, 4 }), HasSubstr("from 0 to 3, which the query can attend to"));
  EXPECT_THROW(this->Attribute({ 0, 2, 0, 3, 3 }), OptionError);
  EXPECT_THROW(this->Attribute({ 2, 1, 0, 3, 3 }), OptionError);
  EXPECT_THROW(ReadScoreHead(this->oracle.GetModel(), 1, 4), OptionError);
  recording.layers[1].window = 2;
  EXPECT_THAT(refusal({ 0, 1, 0, 3, 1 }), HasSubstr("from 2 to 3, which the query can attend to"));
  EXPECT_GE(this->Attribute(recording, { 0, 1, 0, 9, -1 }).place.key, 8);
  recording.layers[1].scoreCap = 50;
  EXPECT_THAT(refusal({ 0, 1, 0, 3, 3 }), HasSubstr("layer 1: the model caps scores"));
  recording = this->oracle.GetRecording();
  recording.layers[0].heads[0].output = {};
  EXPECT_THAT(refusal({ 0, 1, 0, 3, 3 }),
    AllOf(HasSubstr("Score Attribution needs"), HasSubstr("of layer 0")));
  recording = this->oracle.GetRecording();
  recording.layers[1].heads[0].scores.resize(2, SharedMatrix::Zero(17, 17));
  EXPECT_THAT(refusal({ 0, 1, 0, 3, 3 }), HasSubstr("cannot be split"));
}
