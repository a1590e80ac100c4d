#include "Geometry/SpatialAttention.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "LongRecording.h"

#include <algorithm>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// Attention of a head of four tokens, as a file may store it.
const std::vector<float> First = { 0.5F, 0.25F, 0.125F, 0.125F, //
  0, 1, 0, 0,                                                   //
  0.25F, 0.25F, 0.25F, 0.25F,                                   //
  0.125F, 0, 0.375F, 0.5F };
const std::vector<float> Second = { 1, 0, 0, 0, //
  0, 1, 0, 0,                                   //
  0, 0, 1, 0,                                   //
  0, 0, 0, 1 };

Recording OfWeights()
{
  Recording recording = LongRecording(4, { 0 }, 2, 4, 1);
  recording.mask = AttentionMask::Bidirectional;
  std::vector<RecordedHead>& heads = recording.layers[0].heads;
  for (RecordedHead& head : heads)
  {
    head.weights = { SharedMatrix::Zero(4, 4) };
  }
  std::copy(First.begin(), First.end(), heads[0].weights[0].values.get());
  std::copy(Second.begin(), Second.end(), heads[1].weights[0].values.get());
  return recording;
}

SpatialOptions Of(const TokenMix& query, SpatialDirection direction = SpatialDirection::From)
{
  SpatialOptions options;
  options.query = query;
  options.direction = direction;
  return options;
}

TEST(SpatialAttention, IsARowOrAColumn)
{
  const Recording recording = OfWeights();
  EXPECT_THAT(
    EvaluateSpatialAttention(recording, Of({ { 3, 1 } })), ElementsAre(0.125F, 0, 0.375F, 0.5F));
  EXPECT_THAT(EvaluateSpatialAttention(recording, Of({ { 3, 1 } }, SpatialDirection::To)),
    ElementsAre(0.125F, 0, 0.25F, 0.5F));
  EXPECT_THAT(EvaluateSpatialAttention(recording, Of({ { 3, 1 } }, SpatialDirection::Holds)),
    ElementsAre(0, 0, 0, 1));
  SpatialOptions mean = Of({ { 3, 1 } });
  mean.head = AllHeads;
  EXPECT_THAT(EvaluateSpatialAttention(recording, mean),
    ElementsAre(0.0625F, 0, 0.1875F, 0.75F)); // with the identity of the second head
}

TEST(SpatialAttention, OfAMixIsTheMixOfTheRows)
{
  const Recording recording = OfWeights();
  const TokenMix query = { { 0, 0.25 }, { 2, 0.75 } };
  EXPECT_THAT(EvaluateSpatialAttention(recording, Of(query)),
    ElementsAre(0.3125F, 0.25F, 0.21875F, 0.21875F));
  EXPECT_THAT(EvaluateSpatialAttention(recording, Of(query, SpatialDirection::To)),
    ElementsAre(0.21875F, 0, 0.25F, 0.3125F));
  EXPECT_THAT(EvaluateSpatialAttention(recording, Of(query, SpatialDirection::Holds)),
    ElementsAre(0.25F, 0, 0.75F, 0));
}

/// Rollout of one layer is (mean of heads + identity) / 2, here 3/4 identity + First / 4.
TEST(SpatialAttention, HasTheQuantitiesOfOtherViews)
{
  Recording recording = OfWeights();
  SpatialOptions options = Of({ { 0, 1 } });
  options.quantity = AttentionQuantity::Rollout;
  EXPECT_THAT(EvaluateSpatialAttention(recording, options),
    ElementsAre(FloatEq(0.875F), FloatEq(0.0625F), FloatEq(0.03125F), FloatEq(0.03125F)));
  options.quantity = AttentionQuantity::NormWeighted;
  EXPECT_THAT(MessageOf<OptionError>([&] { EvaluateSpatialAttention(recording, options); }),
    HasSubstr("no value norms"));
  recording.layers[0].heads[0].valueNorm = SharedMatrix::Zero(4, 1);
  const std::vector<float> norms = { 2, 4, 0, 1 };
  std::copy(norms.begin(), norms.end(), recording.layers[0].heads[0].valueNorm.values.get());
  EXPECT_THAT(EvaluateSpatialAttention(recording, options), ElementsAre(1, 1, 0, 0.125F));
}

/// Many tokens, whose rows are computed in several parts.
TEST(SpatialAttention, OfALongSequenceIsTheSameInParts)
{
  constexpr std::int64_t length = 4500;
  const Recording recording = LongRecording(length, { 0 }, 1, 4);
  const TokenMix query = { { 7, 0.25 }, { 3000, 0.25 }, { 4400, 0.5 } };
  SpatialOptions options = Of(query);
  options.threads = 2;
  const std::vector<float> found = EvaluateSpatialAttention(recording, options);
  const RecordedHead& head = recording.layers[0].heads[0];
  using Vectors = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, 4, Eigen::RowMajor>>;
  const Eigen::MatrixXd queries = Vectors(head.query.Row(0), length, 4).cast<double>();
  const Eigen::MatrixXd keys = Vectors(head.key.Row(0), length, 4).cast<double>();
  Eigen::VectorXd expected = Eigen::VectorXd::Zero(length);
  for (const TokenShare& one : query)
  {
    const Eigen::VectorXd weights = // of a causal mask
      (2 * keys.topRows(one.token + 1) * queries.row(one.token).transpose()).array().exp();
    expected.head(one.token + 1) += one.share / weights.sum() * weights;
  }
  ASSERT_EQ(found.size(), length);
  const Eigen::VectorXd difference =
    Eigen::Map<const Eigen::VectorXf>(found.data(), length).cast<double>() - expected;
  EXPECT_LT(difference.cwiseAbs().maxCoeff(), 1e-6);
  options.threads = 1;
  EXPECT_EQ(EvaluateSpatialAttention(recording, options), found);
}

TEST(SpatialAttention, ChecksTheQuery)
{
  const Recording recording = OfWeights();
  const auto message = [&](const TokenMix& query)
  { return MessageOf<OptionError>([&] { EvaluateSpatialAttention(recording, Of(query)); }); };
  EXPECT_THAT(message({ { 4, 1 } }), HasSubstr("tokens from 0 to 3, found 4"));
  EXPECT_THAT(message({ { -1, 1 } }), HasSubstr("tokens from 0 to 3, found -1"));
  EXPECT_THAT(message({}), HasSubstr("found none"));
}

TEST(SpatialAttention, SpreadsOverPlacesByIndex)
{
  const std::vector<std::int32_t> tokens = { 1, -1, 0, 1 };
  BoundPlaces places;
  places.count = 4;
  places.tokens = tokens.data();
  std::vector<float> values(4);
  SpreadOverPlaces(places, { 0.75F, 0.25F }, values.data(), 2);
  EXPECT_THAT(values, ElementsAre(0.25F, 0, 0.75F, 0.25F));

  PlaceSums sums(2, { 0, 1, 4 });
  sums.Add(
    places, [](std::int64_t, double* position) { std::fill_n(position, 3, 0.0); }, nullptr, 1);
  std::vector<float> ofTokens = { 0.75F, 0.25F };
  DivideByPlaces(sums, ofTokens);
  SpreadOverPlaces(places, ofTokens, values.data(), 1);
  EXPECT_THAT(values, ElementsAre(0.125F, 0, 0.75F, 0.125F)); // adds up to 1
}

/// Against sums in double precision, for each width that ends a group of lanes differently.
TEST(SpatialAttention, SpreadsOverPlacesBySlices)
{
  for (const std::int64_t width : { 1, 3, 16, 19, 64 })
  {
    constexpr std::int64_t count = 40000;
    std::mt19937 generator(11);
    const SharedMatrix weights = RandomRows(count, width, generator);
    const SharedMatrix row = RandomRows(1, width + 2, generator);
    const std::vector<float> ofTokens(row.Row(0), row.Row(1));
    const BoundPlaces places = { count, width, nullptr, weights.values.get(), 2 };
    std::vector<float> values(count);
    SpreadOverPlaces(places, ofTokens, values.data(), 2);
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < count; ++i)
    {
      double expected = 0;
      for (std::int64_t s = 0; s < width; ++s)
      {
        expected += static_cast<double>(weights.Row(i)[s]) * static_cast<double>(ofTokens[2 + s]);
        tokens.push_back(static_cast<std::int32_t>(2 + s));
      }
      ASSERT_NEAR(static_cast<double>(values[i]), expected, 1e-5) << width << ", " << i;
    }
    std::vector<float> sparse(count);
    SpreadOverPlaces(
      { count, width, tokens.data(), weights.values.get(), 0 }, ofTokens, sparse.data(), 1);
    for (std::int64_t i = 0; i < count; ++i)
    {
      ASSERT_NEAR(static_cast<double>(values[i]), static_cast<double>(sparse[i]), 1e-5);
    }
  }
}

/// A query that holds one slice: each place has its weight of it, to the bit, whatever the others.
TEST(SpatialAttention, SpreadsOneSliceAlone)
{
  for (const std::int64_t width : { 19, 64 })
  {
    constexpr std::int64_t count = 1000;
    std::mt19937 generator(4);
    const SharedMatrix weights = RandomRows(count, width, generator);
    const BoundPlaces places = { count, width, nullptr, weights.values.get(), 1 };
    for (const std::int64_t slice : { std::int64_t{ 0 }, std::int64_t{ 17 }, width - 1 })
    {
      std::vector<float> ofTokens(width + 1, 0);
      ofTokens[0] = 5; // of a token in front of the slices
      ofTokens[1 + slice] = 1;
      std::vector<float> values(count, -1);
      SpreadOverPlaces(places, ofTokens, values.data(), 2);
      for (std::int64_t i = 0; i < count; ++i)
      {
        ASSERT_EQ(values[i], weights.Row(i)[slice]) << width << ", " << slice << ", " << i;
      }
    }
  }
}

TEST(SpatialAttention, QueriesOfPlacesAreMeans)
{
  const auto somewhere = [](std::int64_t, double* position) { std::fill_n(position, 3, 1.0); };
  const std::vector<std::int32_t> tokens = { 1, -1, 0, 1 };
  BoundPlaces byIndex;
  byIndex.count = 4;
  byIndex.tokens = tokens.data();
  PlaceSums ofIndex(2, { 1, 1, 4 });
  ofIndex.Add(byIndex, somewhere, std::vector<std::int64_t>{ 0, 1, 2, 3 });
  const TokenMix mean = MixOf(ofIndex, false);
  ASSERT_EQ(mean.size(), 2U);
  EXPECT_NEAR(mean[0].share, 1.0 / 3, 1e-12);
  EXPECT_NEAR(mean[1].share, 2.0 / 3, 1e-12);

  const std::vector<float> weights = { 0.5F, 0.25F, 0, 0.75F };
  const BoundPlaces bySlices = { 2, 2, nullptr, weights.data(), 5 };
  PlaceSums ofSlices(7, { 1, 0.75, 2 });
  ofSlices.Add(bySlices, somewhere, std::vector<std::int64_t>{ 0, 1 });
  const TokenMix mixed = MixOf(ofSlices, true);
  ASSERT_EQ(mixed.size(), 2U);
  EXPECT_EQ(mixed[0].token, 5);
  EXPECT_NEAR(mixed[0].share, 0.25, 1e-12);
  EXPECT_EQ(mixed[1].token, 6);
  EXPECT_NEAR(mixed[1].share, 0.5, 1e-12);
  EXPECT_EQ(Shifted(mixed, -4)[0].token, 1);
}

TEST(SpatialAttention, FindsTheLargestTokens)
{
  const std::vector<float> values = { 0.25F, 0.5F, 0, 0.5F, 0.125F };
  EXPECT_THAT(LargestTokens(values, 3), ElementsAre(1, 3, 0));
  EXPECT_THAT(LargestTokens(values, 9), ElementsAre(1, 3, 0, 4));
  EXPECT_THAT(LargestTokens(values, 0), IsEmpty());
  const std::vector<float> ofSlices = { 0.25F, -0.5F, 0, -0.0F, 0.125F, -0.25F };
  EXPECT_THAT(LargestTokens(ofSlices, 2), ElementsAre(1, 0));
  EXPECT_THAT(LargestTokens(ofSlices, 9), ElementsAre(1, 0, 5, 4));
}

}
