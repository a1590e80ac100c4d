#include "Base/HashValues.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;

namespace
{

TEST(HashValues, DifferWithAnyByte)
{
  std::vector<float> values(1003, 1.25F);
  const std::size_t bytes = values.size() * sizeof(float);
  const std::uint64_t hash = HashValues(values.data(), bytes);
  EXPECT_EQ(HashValues(values.data(), bytes), hash);
  EXPECT_NE(HashValues(values.data(), bytes, 1), hash);
  EXPECT_NE(HashValues(values.data(), bytes - 1), hash);
  for (const std::size_t i : { 0U, 500U, 1002U })
  {
    values[i] = std::nextafter(1.25F, 2.F);
    EXPECT_NE(HashValues(values.data(), bytes), hash);
    values[i] = 1.25F;
  }
  std::swap(values[0], values[8]); // equal values
  EXPECT_EQ(HashValues(values.data(), bytes), hash);
}

TEST(HashValues, AreWrittenAsDigits)
{
  EXPECT_EQ(HashText(0), "0000000000000000");
  EXPECT_EQ(HashText(0xFEDCBA9876543210U), "fedcba9876543210");
}

}
