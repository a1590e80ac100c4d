#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace atlas::test
{

/// Random numbers between -1 and 1.
inline std::vector<float> NumbersBelowOne(std::int64_t count, unsigned seed)
{
  std::mt19937 generator(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  std::generate(values.begin(), values.end(),
    [&generator] { return static_cast<float>(generator()) / 0x1p31F - 1; });
  return values;
}

}
