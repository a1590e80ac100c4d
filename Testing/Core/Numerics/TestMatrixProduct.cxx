#include "Numerics/MatrixProduct.h"

#include <limits>
#include <random>
#include <vector>

#include <cblas.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;

namespace
{

/// Small whole numbers, whose products and sums are exact in float.
std::vector<float> WholeNumbers(std::size_t count, unsigned seed)
{
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values)
  {
    value = static_cast<float>(generator() % 17) - 8;
  }
  return values;
}

float At(const MatrixBlock& block, std::int64_t row, std::int64_t column)
{
  return block.transposed ? block.data[column * block.stride + row]
                          : block.data[row * block.stride + column];
}

TEST(MatrixProduct, IsTheSumOfProducts)
{
  constexpr std::int64_t rows = 7;
  constexpr std::int64_t columns = 5;
  constexpr std::int64_t inner = 13;
  constexpr std::int64_t stride = 20; // more than any size: blocks of larger matrices
  const std::vector<float> left = WholeNumbers(20 * 20, 1);
  const std::vector<float> right = WholeNumbers(20 * 20, 2);
  for (const bool leftTransposed : { false, true })
  {
    for (const bool rightTransposed : { false, true })
    {
      for (const bool add : { false, true })
      {
        const MatrixBlock a = { left.data() + 3, stride, leftTransposed };
        const MatrixBlock b = { right.data() + 1, stride, rightTransposed };
        std::vector<float> c = WholeNumbers(rows * stride, 3);
        std::vector<float> expected = c;
        for (std::int64_t i = 0; i < rows; ++i)
        {
          for (std::int64_t j = 0; j < columns; ++j)
          {
            float sum = 0;
            for (std::int64_t k = 0; k < inner; ++k)
            {
              sum += At(a, i, k) * At(b, k, j);
            }
            float& value = expected[i * stride + j];
            value = 0.5F * sum + (add ? value : 0);
          }
        }
        MultiplyMatrices(rows, columns, inner, 0.5F, a, b, c.data(), stride, add);
        EXPECT_EQ(c, expected) << leftTransposed << rightTransposed << add;
      }
    }
  }
}

TEST(MatrixProduct, InDoublePrecision)
{
  const std::vector<double> a = { 1, 2, 1 + 0x1p-40, 4 };
  const std::vector<double> b = { 5, 6, 7, 8 };
  std::vector<double> c = { 1, 1, 1, 1 };
  MultiplyMatrices(2, 2, 2, 0.5, { a.data(), 2 }, { b.data(), 2, true }, c.data(), 2, true);
  EXPECT_EQ(c, (std::vector<double>{ 9.5, 12.5, 15.5 + 0x1p-40 * 2.5, 20.5 + 0x1p-40 * 3.5 }));
}

TEST(MatrixProduct, WhatIsNotAddedToMayBeAnything)
{
  const float one = 1;
  float c = std::numeric_limits<float>::quiet_NaN();
  MultiplyMatrices(1, 1, 1, 2, { &one, 1 }, { &one, 1 }, &c, 1);
  EXPECT_EQ(c, 2);
}

TEST(SingleThreadedBlas, LastsAsLongAsAnyOfThem)
{
  openblas_set_num_threads(2);
  const int before = openblas_get_num_threads(); // 1 if OpenBLAS was built so
  {
    const SingleThreadedBlas outer;
    EXPECT_EQ(openblas_get_num_threads(), 1);
    {
      const SingleThreadedBlas inner;
    }
    EXPECT_EQ(openblas_get_num_threads(), 1);
  }
  EXPECT_EQ(openblas_get_num_threads(), before);
}

}
