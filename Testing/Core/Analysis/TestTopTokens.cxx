#include "Analysis/TopTokens.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;

namespace
{

constexpr std::int64_t Vocabulary = 103;
constexpr std::int64_t Top = 7;

/// Logits of which many are equal.
std::vector<float> Logits(int seed)
{
  std::vector<float> logits;
  for (int id = 0; id < Vocabulary; ++id)
  {
    logits.push_back(static_cast<float>((id * 37 + seed) * 53 % 29));
  }
  return logits;
}

/// The ids of the largest sums of logit and bias, by sorting all.
std::vector<std::int32_t> Sorted(const std::vector<float>& logits, const std::vector<float>& bias)
{
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < Vocabulary; ++id)
  {
    ids.push_back(id);
  }
  const auto sum = [&](std::int32_t id) { return logits[id] + bias[id]; };
  std::sort(ids.begin(), ids.end(),
    [&](std::int32_t a, std::int32_t b) { return sum(a) != sum(b) ? sum(a) > sum(b) : a < b; });
  ids.resize(Top);
  return ids;
}

std::vector<std::int32_t> IdsOf(const TopTokens& tokens, std::int64_t vector)
{
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < Top; ++i)
  {
    ids.push_back(tokens.Of(vector)[i].id);
  }
  return ids;
}

/// Of parts of the vocabulary in any order, in one list or in two that are joined.
TEST(TopTokens, AreTheLargestOfAllParts)
{
  const std::vector<float> bias = Logits(11);
  for (const std::int64_t part : { 1, 5, 16, 50, 103 })
  {
    TopTokens one(2, Top);
    TopTokens first(2, Top);
    TopTokens second(2, Top);
    for (std::int64_t begin = (Vocabulary - 1) / part * part; begin >= 0; begin -= part)
    {
      const std::int64_t count = std::min(part, Vocabulary - begin);
      for (const int vector : { 0, 1 })
      {
        const std::vector<float> logits = Logits(vector);
        for (TopTokens* tokens : { &one, begin / part % 2 == 0 ? &first : &second })
        {
          tokens->Add(vector, static_cast<std::int32_t>(begin), count, logits.data() + begin,
            bias.data() + begin);
        }
      }
    }
    for (const int vector : { 0, 1 })
    {
      TopTokens joined(2, Top);
      joined.Join(vector, first);
      joined.Join(vector, second);
      EXPECT_EQ(IdsOf(one, vector), Sorted(Logits(vector), bias)) << part;
      EXPECT_EQ(IdsOf(joined, vector), Sorted(Logits(vector), bias)) << part;
    }
  }
}

}
