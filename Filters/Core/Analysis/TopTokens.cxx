#include "TopTokens.h"

#include "Lanes.h"

#include <limits>

namespace atlas
{
namespace
{

constexpr float Lowest = -std::numeric_limits<float>::infinity();

float LargestOf(std::int64_t count, const float* values)
{
  Lanes maxima = Lanes::Constant(Lowest);
  ForLanes(count, [&](std::int64_t i, std::int64_t left)
    { maxima = maxima.max(Load(values + i, left, Lowest)); });
  return maxima.maxCoeff();
}

}

TopTokens::TopTokens(std::int64_t vectors, std::int64_t top)
  : Top(static_cast<std::size_t>(top))
  , Tokens(static_cast<std::size_t>(vectors) * static_cast<std::size_t>(top),
      { std::numeric_limits<std::int32_t>::max(), Lowest })
{
}

/// Puts a token that comes before the last one into its place.
void TopTokens::Insert(TokenLogit* tokens, const TokenLogit& token) const
{
  std::size_t place = this->Top - 1;
  for (; place > 0 && token.IsBefore(tokens[place - 1]); --place)
  {
    tokens[place] = tokens[place - 1];
  }
  tokens[place] = token;
}

void TopTokens::Add(
  std::int64_t vector, std::int32_t first, std::int64_t count, const float* logits)
{
  TokenLogit* tokens = this->Tokens.data() + static_cast<std::size_t>(vector) * this->Top;
  const TokenLogit& last = tokens[this->Top - 1];
  if (LargestOf(count, logits) < last.logit)
  {
    return; // as most parts have none of the largest
  }
  for (std::int64_t i = 0; i < count; ++i)
  {
    if (logits[i] >= last.logit)
    {
      const TokenLogit token = { first + static_cast<std::int32_t>(i), logits[i] };
      if (token.IsBefore(last))
      {
        this->Insert(tokens, token);
      }
    }
  }
}

void TopTokens::Join(std::int64_t vector, const TopTokens& other)
{
  TokenLogit* tokens = this->Tokens.data() + static_cast<std::size_t>(vector) * this->Top;
  const TokenLogit* found = other.Of(vector);
  for (std::size_t i = 0; i < this->Top && found[i].IsBefore(tokens[this->Top - 1]); ++i)
  {
    this->Insert(tokens, found[i]);
  }
}

}
