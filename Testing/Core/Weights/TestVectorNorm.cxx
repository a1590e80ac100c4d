#include "Weights/VectorNorm.h"

#include "Files/Tensor.h"

#include <vector>

#include <gtest/gtest.h>

using namespace atlas;

namespace
{

using Vector = Eigen::RowVectorXd;

TransformerConfig With(NormKind kind, double epsilon)
{
  TransformerConfig config;
  config.norm = kind;
  config.epsilon = epsilon;
  return config;
}

Vector Make(const std::vector<double>& values)
{
  return Eigen::Map<const Vector>(values.data(), static_cast<std::int64_t>(values.size()));
}

void ExpectNear(const Vector& found, const std::vector<double>& expected)
{
  ASSERT_EQ(found.size(), static_cast<std::int64_t>(expected.size()));
  EXPECT_LE((found - Make(expected)).cwiseAbs().maxCoeff(), 1e-15);
}

}

TEST(VectorNorm, LayerNormSubtractsTheMean)
{
  const TransformerConfig config = With(NormKind::LayerNorm, 0);
  Vector x = Make({ 1, 3, 1, 3 }); // mean 2, variance 1
  const NormSplit split = SplitNorm(config, x);
  EXPECT_EQ(split.sigma, 1);
  EXPECT_TRUE(split.centers);
  NormalizeVector(config, {}, x);
  ExpectNear(x, { -1, 1, -1, 1 });
}

TEST(VectorNorm, EpsilonIsAddedToTheVariance)
{
  EXPECT_EQ(SplitNorm(With(NormKind::LayerNorm, 3), Make({ 1, 3, 1, 3 })).sigma, 2);
  EXPECT_EQ(SplitNorm(With(NormKind::RmsNorm, 11), Make({ 1, 3, 1, 3 })).sigma, 4);
}

TEST(VectorNorm, RmsNormKeepsTheMean)
{
  const TransformerConfig config = With(NormKind::RmsNorm, 0);
  Vector x = Make({ 1, 7 }); // mean of squares 25
  EXPECT_FALSE(SplitNorm(config, x).centers);
  NormalizeVector(config, {}, x);
  ExpectNear(x, { 0.2, 1.4 });
}

TEST(VectorNorm, GainAndShiftComeAfterwards)
{
  const Tensor gain = Tensor::FromDouble(DType::F32, { 2 }, { 2, 4 });
  const Tensor shift = Tensor::FromDouble(DType::F32, { 2 }, { 10, 20 });
  Vector x = Make({ 1, 3 });
  NormalizeVector(With(NormKind::LayerNorm, 0), { gain.View(), shift.View() }, x);
  ExpectNear(x, { 8, 24 });
  EXPECT_EQ(ToVector(gain.View()), Make({ 2, 4 }));
}

TEST(VectorNorm, NoneChangesNothing)
{
  const TransformerConfig config = With(NormKind::None, 1);
  Vector x = Make({ 1, 7 });
  EXPECT_EQ(SplitNorm(config, x).sigma, 1);
  NormalizeVector(config, {}, x);
  ExpectNear(x, { 1, 7 });
  EXPECT_EQ(ToVector({}).size(), 0);
}
