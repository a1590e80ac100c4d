#include "Run/Internal/PositionEncoding.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace testing;

namespace
{

TEST(PositionEncoding, RotaryTurnsPairsByTheirAngle)
{
  TransformerConfig config;
  config.position = PositionKind::Rotary;
  config.layers = 1;
  config.heads = config.keyHeads = 1;
  config.headDimension = 6;
  config.modelDimension = 6;
  config.rotaryBase = 100;
  const PositionEncoding positions(config, {}, 50);
  for (const std::int64_t position : { 0, 1, 49 })
  {
    std::vector<float> values = { 1, 2, 3, -1, 0, 0.5F };
    positions.Rotation(0, 50)->Apply(position, values.data());
    for (int i = 0; i < 3; ++i)
    {
      // Su et al., "RoFormer": component pair i turns by position * base^(-2i / d).
      const double angle = static_cast<double>(position) * std::pow(100., -2. * i / 6);
      const double a = i + 1;
      const double b = i == 0 ? -1 : i == 1 ? 0 : 0.5;
      const std::size_t at = i;
      EXPECT_NEAR(values[at], a * std::cos(angle) - b * std::sin(angle), 1e-5);
      EXPECT_NEAR(values[at + 3], b * std::cos(angle) + a * std::sin(angle), 1e-5);
    }
  }
  EXPECT_EQ(positions.Slope(0), 0);
  EXPECT_EQ(positions.Vector(3), nullptr);
}

/// GPT-J turns neighbors, of a part of the head alone.
TEST(PositionEncoding, RotaryMayTurnNeighborsOfAPart)
{
  TransformerConfig config;
  config.position = PositionKind::Rotary;
  config.layers = 1;
  config.headDimension = 6;
  config.rotaryDimension = 4;
  config.rotatesNeighbors = true;
  config.rotaryBase = 100;
  const PositionEncoding positions(config, {}, 4);
  std::vector<float> values = { 1, 2, 3, 4, 5, 6 };
  positions.Rotation(0, 4)->Apply(3, values.data());
  for (const int i : { 0, 1 })
  {
    const double angle = i == 0 ? 3 : 0.3;
    const double a = 2 * i + 1;
    const double b = 2 * i + 2;
    const std::size_t at = 2 * i;
    EXPECT_NEAR(values[at], a * std::cos(angle) - b * std::sin(angle), 1e-5);
    EXPECT_NEAR(values[at + 1], b * std::cos(angle) + a * std::sin(angle), 1e-5);
  }
  EXPECT_EQ(values[4], 5);
  EXPECT_EQ(values[5], 6);
}

/// Long and short sequences of one run have their own factors.
TEST(PositionEncoding, LongRopeDependsOnTheLengthOfTheSequence)
{
  TransformerConfig config;
  config.position = PositionKind::Rotary;
  config.layers = 1;
  config.headDimension = 2;
  config.rotaryScaling.kind = RotaryScaling::Kind::LongRope;
  config.rotaryScaling.originalPositions = 8;
  config.rotaryScaling.shortFactors = { 2 };
  config.rotaryScaling.longFactors = { 4 };
  config.rotaryScaling.attentionFactor = 3;
  const PositionEncoding positions(config, {}, 10);
  for (const std::int64_t length : { 8, 9 })
  {
    std::vector<float> values = { 1, 0 };
    positions.Rotation(0, length)->Apply(2, values.data());
    const double angle = length == 8 ? 1 : 0.5;
    EXPECT_NEAR(values[0], 3 * std::cos(angle), 1e-5);
    EXPECT_NEAR(values[1], 3 * std::sin(angle), 1e-5);
  }
}

TEST(PositionEncoding, AlibiHasASlopePerHead)
{
  TransformerConfig config;
  config.position = PositionKind::Alibi;
  config.heads = 4;
  const PositionEncoding positions(config, {}, 10);
  // Press et al., "Train short, test long": 2^(-8k/H).
  EXPECT_THAT(positions.GetSlopes(), ElementsAre(0.25, 0.0625, 0.015625, 0.00390625));
  EXPECT_EQ(positions.Slope(1), 0.0625F);
  EXPECT_EQ(positions.Rotation(0, 10), nullptr);
}

TEST(PositionEncoding, ShortformerHasVectors)
{
  TransformerConfig config;
  config.position = PositionKind::Shortformer;
  config.modelDimension = 2;
  TransformerWeights weights;
  const Tensor vectors = Tensor::FromDouble(DType::F64, { 3, 2 }, { 1, 2, 3, 4, 5, 6 });
  weights.positionEmbedding = vectors.View();
  const PositionEncoding positions(config, weights, 3);
  EXPECT_EQ(positions.Vector(2)[0], 5);
  EXPECT_EQ(positions.Vector(1)[1], 4);
  EXPECT_THAT(positions.GetSlopes(), IsEmpty());
}

TEST(PositionEncoding, LearnedPositionsAreNoPartOfIt)
{
  TransformerConfig config;
  config.position = PositionKind::Learned;
  const PositionEncoding positions(config, {}, 3);
  EXPECT_EQ(positions.Vector(1), nullptr);
  EXPECT_EQ(positions.Slope(0), 0);
}

}
