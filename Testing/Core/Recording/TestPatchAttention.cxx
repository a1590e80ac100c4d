#include "Recording/PatchAttention.h"

#include "Base/Error.h"
#include "EmbeddingOracle.h"
#include "ErrorMessage.h"
#include "LongRecording.h"
#include "OracleFile.h"
#include "PicturedRecording.h"
#include "StoredWeights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
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

using Pair = std::pair<std::int64_t, std::int64_t>;

std::vector<Pair> Pairs(const std::vector<AttentionLink>& links)
{
  std::vector<Pair> pairs;
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
    const auto rows = this->Views.Integers("token.row");
    const auto columns = this->Views.Integers("token.column");
    recording.tokens.row.assign(rows.begin(), rows.end());
    recording.tokens.column.assign(columns.begin(), columns.end());
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

/// The source of the view draws arrows from 0.05 on, to the first of the strongest keys; the class
/// token and the token itself are marked.
TEST_F(PatchOracle, ArrowsGoToTheStrongestKeys)
{
  int marks = 0;
  this->ForHeads(
    [&](PatchOptions options, const std::string& name)
    {
      options.threshold = 0.05;
      const PatchAttention found = EvaluatePatches(this->Record, options);
      const std::vector<std::int64_t> keys = this->Views.Integers(name + "strongest_key");
      const std::vector<std::int64_t> drawn = this->Views.Integers(name + "strongest_drawn");
      std::vector<Pair> arrows;
      std::vector<Pair> marked;
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
      const PatchAttention found = EvaluatePatches(this->Record, options);
      const std::vector<std::int64_t> flows = this->Views.Integers(name + "flows");
      const std::vector<double> flowWeights = this->Views.Values(name + "flow_weight");
      const std::vector<Pair> marked = Pairs(found.marks);
      std::vector<Pair> arrows;
      std::vector<double> weights;
      for (std::size_t i = 0; i < flowWeights.size(); ++i)
      {
        const Pair link(flows[2 * i], flows[2 * i + 1]);
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
  ExpectClose("images", EvaluatePatches(this->Record, options).weights,
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
  ExpectClose("heads", EvaluatePatches(this->Record, options).weights, expected, 1e-5);
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
  ExpectClose("from", EvaluatePatches(this->Record, options).weights, from, 1e-5);
  options.direction = PatchDirection::To;
  ExpectClose("to", EvaluatePatches(this->Record, options).weights, to, 1e-5);
}

/// One image with these patches and stored weights.
Recording Stored(const std::vector<std::int32_t>& rows, const std::vector<std::int32_t>& columns,
  const std::vector<float>& weights)
{
  Recording recording = StoredWeights({ weights });
  recording.architecture = "vit";
  recording.tokens.row = rows;
  recording.tokens.column = columns;
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
  const PatchAttention strongest = EvaluatePatches(recording, Of(0, PatchArrows::Strongest, 0));
  EXPECT_THAT(Pairs(strongest.arrows), ElementsAre(Pair(0, 1), Pair(2, 1))); // a tie: the first
  EXPECT_THAT(Pairs(strongest.marks), ElementsAre(Pair(1, 0)));
  const PatchAttention above = EvaluatePatches(recording, Of(0, PatchArrows::Above, 0.3));
  EXPECT_THAT(Pairs(above.arrows), ElementsAre(Pair(0, 1), Pair(0, 2), Pair(1, 2), Pair(2, 1)));
  EXPECT_THAT(Pairs(above.marks), ElementsAre(Pair(1, 0)));
  const PatchAttention all = EvaluatePatches(recording, Of(0, PatchArrows::Above, 0));
  EXPECT_THAT(Pairs(all.arrows), // never a weight of 0
    ElementsAre(Pair(0, 1), Pair(0, 2), Pair(1, 2), Pair(2, 0), Pair(2, 1)));
  EXPECT_THAT(EvaluatePatches(recording, Of(0, PatchArrows::Strongest, 0.7)).marks, IsEmpty());
}

TEST(PatchAttention, OfOnePatch)
{
  const Recording recording = Stored({ 0 }, { 0 }, { 1 });
  const PatchAttention found = EvaluatePatches(recording, Of(0, PatchArrows::Strongest, 0.1));
  EXPECT_THAT(found.weights, ElementsAre(1));
  EXPECT_THAT(found.arrows, IsEmpty());
  EXPECT_THAT(Pairs(found.marks), ElementsAre(Pair(0, 0)));
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
      AllOf(HasSubstr("Patch: expected a row from 0 to 1 and a column from 0 to 1"),
        HasSubstr("found " + std::to_string(row) + " " + std::to_string(column))));
  }
  // Without a class token all patches, with two the first.
  const PatchGrid bare = FindPatches(Stored({ 0, 0 }, { 0, 1 }, { 1, 0, 0, 1 }), 0);
  EXPECT_THAT(ChoosePatch(bare, -1, -1), ElementsAre(0, 1));
  const PatchGrid two = FindPatches(Stored({ -1, -1, 0 }, { -1, -1, 0 }, std::vector<float>(9)), 0);
  EXPECT_THAT(ChoosePatch(two, -1, -1), ElementsAre(0));
}

TEST(PatchAttention, RefusesWhatIsNoImage)
{
  const std::vector<float> weights = { 1, 0, 0, 1 };
  const Recording image = Stored({ -1, 0 }, { -1, 0 }, weights);
  Recording text = image;
  text.tokens.row.clear();
  text.architecture = "gpt2";
  EXPECT_THAT(MessageOf<OptionError>([&] { FindPatches(text, 0); }),
    HasSubstr("a recording of images, whose tokens have a row and a column, found one of "
              "architecture 'gpt2'"));
  EXPECT_THAT(MessageOf<OptionError>([&] { FindPatches(image, 1); }),
    HasSubstr("a sequence from 0 to 0, found 1"));
  constexpr std::int32_t huge = std::numeric_limits<std::int32_t>::max();
  for (const auto& [rows, columns, message] :
    { std::tuple(std::vector{ 1, 1 }, std::vector{ 0, 0 }, "two of row 1, column 0"),
      { { -1, -1 }, { -1, -1 }, "found 0 rows and 0 columns" },
      { { 0, huge }, { 0, huge }, "1 to 16777216 patches" } })
  {
    const Recording damaged = Stored(rows, columns, weights);
    EXPECT_THAT(MessageOf<ModelError>([&] { FindPatches(damaged, 0); }), HasSubstr(message));
  }
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
  Recording recording = LongRecording(tokens, { 0 }, 1, 2, 1);
  recording.mask = AttentionMask::Bidirectional;
  for (std::int32_t i = 0; i < tokens; ++i)
  {
    recording.tokens.row.push_back(i / side);
    recording.tokens.column.push_back(i % side);
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
  const PatchAttention one = EvaluatePatches(recording, options);
  EXPECT_GE(reports, 2);
  options.threads = 3;
  const PatchAttention three = EvaluatePatches(recording, options);
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

/// Options for text `sequence` of PicturedRecording.
PatchOptions OfText(std::int64_t sequence, std::int64_t token)
{
  PatchOptions options = Of(token, PatchArrows::Strongest, 0.1);
  options.sequence = sequence;
  return options;
}

TEST(PatchAttention, PicturesAmongWordsAreSideBySide)
{
  const Recording recording = PicturedRecording();
  const PatchGrid both = FindPatches(recording, 0);
  EXPECT_TRUE(both.IsAmongWords());
  EXPECT_EQ(both.rows, 2);
  EXPECT_EQ(both.columns, 3 + 1 + 1);
  ASSERT_THAT(both.pictures, SizeIs(2));
  EXPECT_EQ(both.pictures[1].entry, 1);
  EXPECT_EQ(both.pictures[1].left, 4);
  EXPECT_THAT(both.classTokens, ElementsAre(0, 7, 10));
  EXPECT_THAT(both.picture, ElementsAre(-1, 0, 0, 0, 0, 0, 0, -1, 1, 1, -1));
  EXPECT_EQ(both.Column(6), 2);
  EXPECT_EQ(both.Column(9), 4);

  const PatchGrid second = FindPatches(recording, 0, 1);
  EXPECT_EQ(second.rows, 2);
  EXPECT_EQ(second.columns, 1);
  EXPECT_EQ(second.Column(9), 0);
  EXPECT_TRUE(second.IsPatch(8));
  EXPECT_FALSE(second.IsPatch(6)); // of the other picture
  EXPECT_FALSE(second.IsWord(6));

  const PatchGrid video = FindPatches(recording, 1); // two groups of frames
  EXPECT_EQ(video.rows, 1);
  EXPECT_EQ(video.columns, 2 + 1 + 2);
  EXPECT_EQ(video.pictures[0].entry, 2);
  EXPECT_EQ(video.pictures[1].entry, 3);
}

TEST(PatchAttention, ChoosesTokensAndPatchesOfPictures)
{
  const PatchGrid grid = FindPatches(PicturedRecording(), 0);
  EXPECT_EQ(ChooseToken(grid, -1), 10);
  EXPECT_EQ(ChooseToken(grid, 7), 7);
  EXPECT_THAT(ChoosePatch(grid, 1, 2), ElementsAre(6));
  EXPECT_THAT(ChoosePatch(grid, 1, 0, 1), ElementsAre(9));
  EXPECT_THAT(ChoosePatch(grid, -1, -1, 1), ElementsAre(8, 9));
  for (const std::int64_t token : { -2, 11 })
  {
    EXPECT_THAT(MessageOf<OptionError>([&] { ChooseToken(grid, token); }),
      AllOf(HasSubstr("Token: expected a position from 0 to 10"),
        HasSubstr("found " + std::to_string(token))));
  }
  EXPECT_THAT(MessageOf<OptionError>([&] { ChoosePatch(grid, 0, 1, 1); }),
    HasSubstr("Patch: expected a row from 0 to 1 and a column from 0 to 0"));
  EXPECT_THAT(MessageOf<OptionError>([&] { ChoosePatch(grid, 0, 0, 2); }),
    HasSubstr("PatchPicture: expected a picture of the sequence from 0 to 1, found 2"));
}

/// Every query of every head gives all its weight to one token, known in closed form: that token
/// alone lights up, and the rest is on words.
TEST(PatchAttention, TheRightSquareLightsUp)
{
  const Recording recording = PicturedRecording();
  for (std::int64_t i = 0; i < 8; ++i)
  {
    const std::int64_t sequence = i % 2;
    const std::int64_t head = i / 2 % 2;
    const std::int64_t layer = i / 4;
    const PatchGrid grid = FindPatches(recording, sequence);
    const std::int64_t length = recording.SequenceLength(sequence);
    for (std::int64_t query = 0; query < length; ++query)
    {
      PatchOptions options = OfText(sequence, query);
      options.layer = layer;
      options.head = head;
      const std::int64_t key = KeyOf(layer, head, query);
      std::vector<float> expected(length, 0);
      expected[key] = 1;
      const PatchAttention found = EvaluatePatches(recording, options);
      EXPECT_EQ(found.weights, expected);
      EXPECT_EQ(found.onWords, grid.IsWord(key) ? 1 : 0);

      options.direction = PatchDirection::To;
      double words = 0;
      for (std::int64_t other = 0; other < length; ++other)
      {
        expected[other] = KeyOf(layer, head, other) == query ? 1 : 0;
        words += grid.IsWord(other) ? static_cast<double>(expected[other]) : 0;
      }
      const PatchAttention to = EvaluatePatches(recording, options);
      EXPECT_EQ(to.weights, expected);
      EXPECT_EQ(to.onWords, words);
    }
  }
}

/// In layer 0, head 0, query i attends to i / 2: patches 2 to 6 to 1, 1, 2, 2 and 3, patch 8 to 4,
/// 9 to 4, and patch 1 to the word 0.
TEST(PatchAttention, ArrowsAreBetweenPatchesAlone)
{
  const Recording recording = PicturedRecording();
  PatchOptions options = OfText(0, 10);
  const PatchAttention both = EvaluatePatches(recording, options);
  EXPECT_THAT(Pairs(both.arrows), ElementsAre(Pair(2, 1), Pair(3, 1), Pair(4, 2), Pair(5, 2),
                                    Pair(6, 3), Pair(8, 4), Pair(9, 4)));
  EXPECT_THAT(Pairs(both.marks), ElementsAre(Pair(1, 0)));
  options.arrows = PatchArrows::Above;
  EXPECT_EQ(Pairs(EvaluatePatches(recording, options).arrows), Pairs(both.arrows));
  options.picture = 1; // whose patches attend to the other picture
  for (const PatchArrows arrows : { PatchArrows::Above, PatchArrows::Strongest })
  {
    options.arrows = arrows;
    EXPECT_THAT(EvaluatePatches(recording, options).arrows, IsEmpty());
    EXPECT_THAT(EvaluatePatches(recording, options).marks, IsEmpty());
  }
  options.picture = 0;
  EXPECT_THAT(EvaluatePatches(recording, options).arrows, SizeIs(5));
}

TEST(PatchAttention, MeansOverHeadsAndLayers)
{
  const Recording recording = PicturedRecording();
  PatchOptions options = OfText(0, 10);
  const auto expect = [&](const std::vector<std::int64_t>& keys)
  {
    std::vector<double> expected(11, 0);
    for (const std::int64_t key : keys)
    {
      expected[key] += 1. / static_cast<double>(keys.size());
    }
    ExpectClose("mean", EvaluatePatches(recording, options).weights, expected, 1e-7);
  };
  options.head = AllHeads;
  expect({ 10 / 2, 10 / 3 });
  options.layer = AllLayers;
  expect({ 10 / 2, 10 / 3, 10, 20 / 3 });
  options.head = 1;
  expect({ 10 / 3, 20 / 3 });
  options.quantity = AttentionQuantity::Rollout;
  EXPECT_THAT(MessageOf<OptionError>([&] { EvaluatePatches(recording, options); }),
    HasSubstr("Layer: expected one for Rollout"));
}

TEST(PatchAttention, RefusesPicturesThatThereAreNot)
{
  Recording recording = PicturedRecording();
  const auto refusal = [&](std::int64_t sequence, std::int64_t picture)
  { return MessageOf<OptionError>([&] { FindPatches(recording, sequence, picture); }); };
  EXPECT_THAT(refusal(0, 2), HasSubstr("Picture: expected one from 0 to 1"));
  EXPECT_THAT(refusal(0, -2), HasSubstr("found -2"));
  EXPECT_THAT(
    refusal(AllSequences, -1), HasSubstr("expected one sequence of pictures among words"));
  recording.tokens.column[2] = 0;
  EXPECT_THAT(MessageOf<ModelError>([&] { FindPatches(recording, 0); }),
    HasSubstr("found two of row 0, column 0 of picture 0"));
  for (auto* list : { &recording.tokens.picture, &recording.tokens.row, &recording.tokens.column })
  {
    list->assign(17, -1);
  }
  EXPECT_THAT(refusal(1, -1), HasSubstr("found words alone"));
}

/// Images of different sizes: a grid of their own each, and no mean.
TEST(PatchAttention, OfImagesOfTheirOwnSizes)
{
  const Recording images = *PicturedRecording().encoder;
  const PatchGrid first = FindPatches(images, 0);
  EXPECT_EQ(first.rows, 4);
  EXPECT_EQ(first.columns, 6);
  EXPECT_EQ(FindPatches(images, 3).columns, 4);
  EXPECT_THAT(MessageOf<OptionError>([&] { FindPatches(images, AllSequences); }),
    HasSubstr("expected images of the same patches for their mean, found others in image 1"));
  PatchOptions options = Of(6 * 3 + 5, PatchArrows::Strongest, 0); // the last: of window 1, 2
  std::vector<float> expected(24, 0);
  expected[6 * 2 + 4] = 1;
  EXPECT_EQ(EvaluatePatches(images, options).weights, expected);
}

TEST(PatchAttention, FindsImagesOfTheEncoderInPictures)
{
  const Recording text = PicturedRecording();
  const auto expect = [](const std::optional<ImagePlace>& found, const ImagePlace& expected)
  {
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->entry, expected.entry);
    EXPECT_EQ(found->top, expected.top);
    EXPECT_EQ(found->left, expected.left);
    EXPECT_EQ(found->height, expected.height);
    EXPECT_EQ(found->width, expected.width);
  };
  expect(FindImage(text.pictures, *text.encoder, 0), { 0, 0, 0, 8, 12 });
  expect(FindImage(text.pictures, *text.encoder, 3), { 3, 0, 0, 4, 8 });
  EXPECT_FALSE(FindImage(text.pictures, *text.encoder, 4));
  EXPECT_FALSE(FindImage({}, *text.encoder, 0));

  // A picture of 2 x 3 tiles, then in small, and one of a single tile: 8 images of 2 x 4 patches of
  // 2 pixels.
  RecordedPictures tiled;
  tiled.contents = { { 0, 0, 1, false, 8, 24 }, { 0, 0, 1, true, 4, 8 }, { 1, 0, 1, false, 4, 8 } };
  tiled.count = 3;
  const Recording images = WindowedImages(std::vector(8, std::pair(2, 4)));
  for (std::int64_t tile = 0; tile < 6; ++tile)
  {
    expect(FindImage(tiled, images, tile), { 0, 4 * (tile / 3), 8 * (tile % 3), 4, 8 });
  }
  expect(FindImage(tiled, images, 6), { 1, 0, 0, 4, 8 });
  expect(FindImage(tiled, images, 7), { 2, 0, 0, 4, 8 });
  const Recording others = WindowedImages(std::vector(7, std::pair(2, 4)));
  EXPECT_FALSE(FindImage(tiled, others, 0));
}

}
