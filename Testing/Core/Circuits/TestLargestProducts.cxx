#include "Circuits/LargestProducts.h"

#include "Reports.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::KeepReports;

namespace
{

constexpr std::int64_t Count = 20000; ///< several steps

DoubleMatrix Random(Eigen::Index rows, Eigen::Index columns, unsigned seed)
{
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  return DoubleMatrix::NullaryExpr(rows, columns, [&] { return normal(random); });
}

TEST(LargestProducts, AreThoseOfTheProduct)
{
  const DoubleMatrix rows = Random(3, 5, 1);
  const DoubleMatrix tokens = Random(Count, 5, 2);
  const TokenRows source = { Count, [&](std::int64_t begin, std::int64_t end)
    { return DoubleMatrix(tokens.middleRows(begin, end - begin)); } };
  LargestProductOptions options;
  options.top = 4;
  for (const int threads : { 1, 3 })
  {
    options.threads = threads;
    const auto found = LargestProducts(rows, source, options);
    ASSERT_EQ(found.size(), 12U);
    for (std::size_t i = 0; i < found.size(); ++i)
    {
      const Eigen::VectorXd products =
        tokens * rows.row(static_cast<Eigen::Index>(i / 4)).transpose();
      const TokenLogit& entry = found[i];
      EXPECT_NEAR(entry.logit, products[entry.id], 1e-6);
      EXPECT_EQ((products.array() > products[entry.id]).count(), static_cast<long>(i % 4));
    }
  }
}

TEST(LargestProducts, EqualOnesAreInOrderOfIds)
{
  const TokenRows same = { Count, [](std::int64_t begin, std::int64_t end)
    { return DoubleMatrix(DoubleMatrix::Ones(end - begin, 2)); } };
  LargestProductOptions options;
  options.top = 3;
  const auto found = LargestProducts(DoubleMatrix::Ones(1, 2), same, options);
  for (std::int32_t i = 0; i < 3; ++i)
  {
    EXPECT_EQ(found[i].id, i);
    EXPECT_EQ(found[i].logit, 2);
  }
}

TEST(LargestProducts, StopOnRequest)
{
  LargestProductOptions options;
  std::vector<double> reports;
  options.progress = KeepReports(reports, 2);
  const TokenRows zeros = { Count, [](std::int64_t begin, std::int64_t end)
    { return DoubleMatrix(DoubleMatrix::Zero(end - begin, 1)); } };
  EXPECT_THROW(LargestProducts(DoubleMatrix::Zero(1, 1), zeros, options), Canceled);
  EXPECT_EQ(reports.size(), 2U);
}

}
