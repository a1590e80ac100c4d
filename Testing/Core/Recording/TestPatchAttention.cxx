#include "PatchAttention.h"

#include "EmbeddingOracle.h"
#include "Error.h"
#include "ErrorMessage.h"
#include "Index.h"
#include "OracleFile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

using Link = std::tuple<std::int64_t, std::int64_t>;

std::vector<Link> Pairs(const std::vector<AttentionLink>& links)
{
  std::vector<Link> pairs;
  for (const AttentionLink& link : links)
  {
    pairs.emplace_back(link.query, link.key);
  }
  return pairs;
}

std::vector<double> Weights(const std::vector<AttentionLink>& links)
{
  std::vector<double> weights;
  for (const AttentionLink& link : links)
  {
    weights.push_back(static_cast<double>(link.weight));
  }
  return weights;
}

PatchAttention Evaluate(const Recording& recording, const PatchOptions& options)
{
  return EvaluatePatches(recording, options);
}

/// The vision transformer of the oracle: two images of a class token and 4 x 4 patches.
class PatchOracle : public testing::Test
{
protected:
  static constexpr std::int64_t Tokens = 17;

  EmbeddingOracle Patches{ "vit" };
  TransformerOracle Transformer{ "vit" };
  OracleFile Views{ "embedding/vit.patches.safetensors" };
  Recording Record = MakeImages();

  Recording MakeImages() const
  {
    Recording recording = this->Patches.MakeRecording();
    for (RecordedLayer& layer : recording.layers)
    {
      for (RecordedHead& head : layer.heads)
      {
        head.weights.clear(); // to be computed
      }
    }
    for (const std::int64_t row : this->Views.Integers("token.row"))
    {
      recording.tokens.row.push_back(static_cast<std::int32_t>(row));
    }
    for (const std::int64_t column : this->Views.Integers("token.column"))
    {
      recording.tokens.column.push_back(static_cast<std::int32_t>(column));
    }
    return recording;
  }

  /// The attention matrix of a head on an image.
  std::vector<double> Attention(const PatchOptions& place) const
  {
    const std::vector<double> all = this->Transformer.Values(
      "layer." + std::to_string(place.layer) + ".attention", place.sequence);
    const auto begin = all.begin() + place.head * Tokens * Tokens;
    return { begin, begin + Tokens * Tokens };
  }

  /// Calls check(options, beginning of the names in the oracle) for each head and image.
  template<class Check>
  void ForHeads(const Check& check) const
  {
    for (std::int64_t i = 0; i < 16; ++i)
    {
      PatchOptions options;
      options.layer = i / 8;
      options.head = i / 2 % 4;
      options.sequence = i % 2;
      options.tokens = { 0 };
      const std::string name = "layer." + std::to_string(options.layer) + ".head." +
                               std::to_string(options.head) + ".sequence." +
                               std::to_string(options.sequence) + ".";
      SCOPED_TRACE(name);
      check(options, name);
    }
  }
};

TEST_F(PatchOracle, WeightsAreRowsAndColumns)
{
  this->ForHeads(
    [this](PatchOptions options, const std::string&)
    {
      const std::vector<double> attention = this->Attention(options);
      for (std::int64_t token = 0; token < Tokens; ++token)
      {
        options.tokens = { token };
        options.direction = PatchDirection::From;
        const auto begin = attention.begin() + token * Tokens;
        ExpectClose("from", Evaluate(this->Record, options).weights,
          std::vector<double>(begin, begin + Tokens), 1e-5);
        options.direction = PatchDirection::To;
        std::vector<double> column;
        for (std::int64_t query = 0; query < Tokens; ++query)
        {
          column.push_back(attention[query * Tokens + token]);
        }
        ExpectClose("to", Evaluate(this->Record, options).weights, column, 1e-5);
      }
    });
}

/// The source of the view draws arrows from 0.05 on, to the first of the strongest keys; the class
/// token and the token itself are marked.
TEST_F(PatchOracle, ArrowsGoToTheStrongestKeys)
{
  int marks = 0;
  this->ForHeads(
    [&](PatchOptions options, const std::string& name)
    {
      options.threshold = 0.05;
      const PatchAttention found = Evaluate(this->Record, options);
      const std::vector<std::int64_t> keys = this->Views.Integers(name + "strongest_key");
      const std::vector<std::int64_t> drawn = this->Views.Integers(name + "strongest_drawn");
      std::vector<Link> arrows;
      std::vector<Link> marked;
      for (std::size_t i = 0; i < keys.size(); ++i)
      {
        const auto query = static_cast<std::int64_t>(i);
        if (drawn[i] != 0)
        {
          const bool isMark = keys[i] == query || keys[i] == 0;
          (isMark ? marked : arrows).emplace_back(query, keys[i]);
        }
      }
      EXPECT_EQ(Pairs(found.arrows), arrows);
      EXPECT_EQ(Pairs(found.marks), marked);
      marks += static_cast<int>(marked.size());
    });
  EXPECT_GT(marks, 10);
}

TEST_F(PatchOracle, ArrowsAboveTheThresholdAreAllFlows)
{
  this->ForHeads(
    [this](PatchOptions options, const std::string& name)
    {
      options.arrows = PatchArrows::Above;
      const PatchAttention found = Evaluate(this->Record, options);
      const std::vector<std::int64_t> flows = this->Views.Integers(name + "flows");
      const std::vector<double> flowWeights = this->Views.Values(name + "flow_weight");
      const std::vector<Link> marked = Pairs(found.marks);
      std::vector<Link> arrows;
      std::vector<double> weights;
      for (std::size_t i = 0; i < flowWeights.size(); ++i)
      {
        const Link link(flows[2 * i], flows[2 * i + 1]);
        const bool isMarked = std::find(marked.begin(), marked.end(), link) != marked.end();
        if (flows[2 * i] != flows[2 * i + 1] && !isMarked)
        {
          arrows.push_back(link);
          weights.push_back(flowWeights[i]);
        }
      }
      EXPECT_EQ(Pairs(found.arrows), arrows);
      ExpectClose("weights", Weights(found.arrows), weights, 1e-5);
    });
}

TEST_F(PatchOracle, MeansOverImagesAndHeads)
{
  PatchOptions options;
  options.layer = 1;
  options.head = 2;
  options.sequence = AllSequences;
  options.tokens = { 6 };
  const std::vector<double> mean = this->Views.Values("layer.1.head.2.aggregate");
  ExpectClose("images", Evaluate(this->Record, options).weights,
    std::vector<double>(mean.begin() + 6 * Tokens, mean.begin() + 7 * Tokens), 1e-5);

  options.sequence = 1;
  options.head = AllHeads;
  std::vector<double> expected(Tokens, 0);
  for (std::int64_t head = 0; head < 4; ++head)
  {
    PatchOptions one = options;
    one.head = head;
    const std::vector<double> attention = this->Attention(one);
    for (std::size_t key = 0; key < expected.size(); ++key)
    {
      expected[key] += attention[6 * Tokens + key] / 4;
    }
  }
  ExpectClose("heads", Evaluate(this->Record, options).weights, expected, 1e-5);
}

TEST_F(PatchOracle, ManyTokensAreAveragedOrSummed)
{
  PatchOptions options;
  options.tokens = { 2, 3, 11 };
  const std::vector<double> attention = this->Attention(options);
  std::vector<double> from(Tokens, 0);
  std::vector<double> to(Tokens, 0);
  for (const std::int64_t token : options.tokens)
  {
    for (std::int64_t other = 0; other < Tokens; ++other)
    {
      from[other] += attention[token * Tokens + other] / 3;
      to[other] += attention[other * Tokens + token];
    }
  }
  ExpectClose("from", Evaluate(this->Record, options).weights, from, 1e-5);
  options.direction = PatchDirection::To;
  ExpectClose("to", Evaluate(this->Record, options).weights, to, 1e-5);
}

/// One image with these patches and stored weights.
Recording Stored(const std::vector<std::int32_t>& rows, const std::vector<std::int32_t>& columns,
  const std::vector<float>& weights)
{
  const std::int64_t tokens = rows.size();
  Recording recording;
  recording.architecture = "vit";
  recording.mask = AttentionMask::Bidirectional;
  recording.layerCount = 1;
  recording.sequenceOffsets = { 0, tokens };
  recording.tokens.sequence.assign(rows.size(), 0);
  for (std::int32_t i = 0; i < tokens; ++i)
  {
    recording.tokens.position.push_back(i);
  }
  recording.tokens.row = rows;
  recording.tokens.column = columns;
  RecordedHead head;
  head.weights.push_back(SharedMatrix::Zero(tokens, tokens));
  std::copy(weights.begin(), weights.end(), head.weights[0].values.get());
  recording.layers.push_back({ 0, 1, { head } });
  return recording;
}

PatchOptions Of(std::int64_t token, PatchArrows arrows, double threshold)
{
  PatchOptions options;
  options.tokens = { token };
  options.arrows = arrows;
  options.threshold = threshold;
  return options;
}

TEST(PatchAttention, MarksAndArrowsShareNoPair)
{
  // A class token and two patches: to the class token, to the first patch, to both the same.
  const Recording recording =
    Stored({ -1, 0, 0 }, { -1, 0, 1 }, { 0.2F, 0.5F, 0.3F, 0.6F, 0, 0.4F, 0.25F, 0.375F, 0.375F });
  const PatchAttention strongest = Evaluate(recording, Of(0, PatchArrows::Strongest, 0));
  EXPECT_THAT(Pairs(strongest.arrows), ElementsAre(Link(0, 1), Link(2, 1))); // a tie: the first
  EXPECT_THAT(Pairs(strongest.marks), ElementsAre(Link(1, 0)));
  const PatchAttention above = Evaluate(recording, Of(0, PatchArrows::Above, 0.3));
  EXPECT_THAT(Pairs(above.arrows), ElementsAre(Link(0, 1), Link(0, 2), Link(1, 2), Link(2, 1)));
  EXPECT_THAT(Pairs(above.marks), ElementsAre(Link(1, 0)));
  const PatchAttention all = Evaluate(recording, Of(0, PatchArrows::Above, 0));
  EXPECT_THAT(Pairs(all.arrows), // never a weight of 0
    ElementsAre(Link(0, 1), Link(0, 2), Link(1, 2), Link(2, 0), Link(2, 1)));
  EXPECT_THAT(Evaluate(recording, Of(0, PatchArrows::Strongest, 0.7)).marks, IsEmpty());
}

TEST(PatchAttention, OfOnePatch)
{
  const Recording recording = Stored({ 0 }, { 0 }, { 1 });
  const PatchAttention found = Evaluate(recording, Of(0, PatchArrows::Strongest, 0.1));
  EXPECT_THAT(found.weights, ElementsAre(1));
  EXPECT_THAT(found.arrows, IsEmpty());
  EXPECT_THAT(Pairs(found.marks), ElementsAre(Link(0, 0)));
}

TEST(PatchAttention, ChoosesPatches)
{
  const std::vector<float> weights(25, 0.2F);
  const PatchGrid grid = FindPatches(Stored({ -1, 0, 0, 1, 1 }, { -1, 0, 1, 0, 1 }, weights), 0);
  EXPECT_EQ(grid.rows, 2);
  EXPECT_EQ(grid.columns, 2);
  EXPECT_THAT(grid.classTokens, ElementsAre(0));
  EXPECT_THAT(ChoosePatch(grid, -1, -1), ElementsAre(0));
  EXPECT_THAT(ChoosePatch(grid, 1, 0), ElementsAre(3));
  for (const auto& [row, column] : { std::pair(2, 0), { 0, 2 }, { -1, 0 }, { 0, -1 }, { -2, -2 } })
  {
    EXPECT_THAT(MessageOf<OptionError>([&, r = row, c = column] { ChoosePatch(grid, r, c); }),
      HasSubstr("Patch: expected a row from 0 to 1 and a column from 0 to 1, or -1 -1 for the "
                "class token, found " +
                std::to_string(row) + " " + std::to_string(column)));
  }
  // Without a class token all patches, with two the first.
  const PatchGrid bare = FindPatches(Stored({ 0, 0 }, { 0, 1 }, { 1, 0, 0, 1 }), 0);
  EXPECT_THAT(ChoosePatch(bare, -1, -1), ElementsAre(0, 1));
  const PatchGrid two = FindPatches(Stored({ -1, -1, 0 }, { -1, -1, 0 }, std::vector<float>(9)), 0);
  EXPECT_THAT(ChoosePatch(two, -1, -1), ElementsAre(0));
}

TEST(PatchAttention, RefusesWhatIsNoImage)
{
  Recording text = Stored({ -1, 0 }, { -1, 0 }, { 1, 0, 0, 1 });
  text.tokens.row.clear();
  text.architecture = "gpt2";
  EXPECT_THAT(MessageOf<OptionError>([&] { FindPatches(text, 0); }),
    HasSubstr("expected a recording of images, whose tokens have a row and a column, found one of "
              "architecture 'gpt2'"));
  const Recording image = Stored({ -1, 0 }, { -1, 0 }, { 1, 0, 0, 1 });
  EXPECT_THAT(MessageOf<OptionError>([&] { FindPatches(image, 1); }),
    HasSubstr("expected a sequence from 0 to 0, found 1"));
  EXPECT_THAT(
    MessageOf<ModelError>([&] { FindPatches(Stored({ 1, 1 }, { 0, 0 }, { 1, 0, 0, 1 }), 0); }),
    HasSubstr("expected a token per patch, found two of row 1, column 0"));
  EXPECT_THAT(
    MessageOf<ModelError>([&] { FindPatches(Stored({ -1, -1 }, { -1, -1 }, { 1, 0, 0, 1 }), 0); }),
    HasSubstr("found 0 rows and 0 columns"));
  constexpr std::int32_t huge = std::numeric_limits<std::int32_t>::max();
  EXPECT_THAT(MessageOf<ModelError>(
                [&] { FindPatches(Stored({ 0, huge }, { 0, huge }, { 1, 0, 0, 1 }), 0); }),
    HasSubstr("expected 1 to 16777216 patches"));
}

TEST(PatchAttention, RefusesWrongOptions)
{
  const Recording image = Stored({ -1, 0 }, { -1, 0 }, { 1, 0, 0, 1 });
  const auto refusal = [&](const PatchOptions& options)
  { return MessageOf<OptionError>([&] { EvaluatePatches(image, options); }); };
  for (const double threshold : { -0.1, std::nan(""), std::numeric_limits<double>::infinity() })
  {
    EXPECT_THAT(refusal(Of(0, PatchArrows::Above, threshold)),
      HasSubstr("ArrowThreshold: expected a weight of at least 0"));
  }
  EXPECT_THAT(refusal(Of(2, PatchArrows::Above, 0)),
    HasSubstr("expected chosen tokens from 0 to 1, found 2"));
  PatchOptions options = Of(0, PatchArrows::Above, 0);
  options.tokens.clear();
  EXPECT_THAT(refusal(options), HasSubstr("expected at least one chosen token"));
  options = Of(0, PatchArrows::Above, 0);
  options.layer = 3;
  EXPECT_THAT(refusal(options), HasSubstr("layer 3 is not in the recording"));
}

/// Many tokens: several steps, whatever the threads; the weights are those of EvaluateAttention.
TEST(PatchAttention, OfManyPatches)
{
  constexpr std::int32_t side = 66;
  constexpr std::int64_t tokens = side * side;
  std::vector<std::int32_t> rows;
  std::vector<std::int32_t> columns;
  for (std::int32_t i = 0; i < tokens; ++i)
  {
    rows.push_back(i / side);
    columns.push_back(i % side);
  }
  Recording recording = Stored(rows, columns, {});
  RecordedHead& head = recording.layers[0].heads[0];
  head.weights.clear();
  head.query = SharedMatrix::Zero(tokens, 2);
  head.key = SharedMatrix::Zero(tokens, 2);
  for (std::int64_t i = 0; i < tokens; ++i)
  {
    head.query.Row(i)[i % 2] = static_cast<float>(i % 7);
    head.key.Row(i)[i / side % 2] = static_cast<float>(i % 11) - 5;
  }
  PatchOptions options = Of(tokens - 5, PatchArrows::Strongest, 0);
  options.threads = 1;
  int reports = 0;
  options.progress = [&reports](double done)
  {
    EXPECT_GT(done, 0);
    EXPECT_LE(done, 1);
    ++reports;
  };
  const PatchAttention one = Evaluate(recording, options);
  EXPECT_GE(reports, 2);
  options.threads = 3;
  const PatchAttention three = Evaluate(recording, options);
  EXPECT_EQ(one.weights, three.weights);
  EXPECT_EQ(Pairs(one.arrows), Pairs(three.arrows));
  std::vector<float> expected(tokens);
  EvaluateAttention(
    recording, 0, 0, 0, AttentionQuantity::Weights, tokens - 5, tokens - 4, expected.data());
  ExpectClose("weights", one.weights, std::vector<double>(expected.begin(), expected.end()), 1e-6);
  EXPECT_EQ(one.arrows.size() + one.marks.size(), static_cast<std::size_t>(tokens));

  options.progress = [](double) { throw Canceled(); };
  EXPECT_THROW(EvaluatePatches(recording, options), Canceled);
}

}
