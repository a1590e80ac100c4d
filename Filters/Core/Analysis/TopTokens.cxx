#include "TopTokens.h"

#include "Numerics/Lanes.h"

#include <limits>

namespace atlas
{
namespace
{

constexpr float NoLogit = -std::numeric_limits<float>::infinity();

float LargestOf(std::int64_t count, const float* values, const float* bias)
{
  Lanes maxima = Lanes::Constant(NoLogit);
  ForLanes(count,
    [&](std::int64_t i, std::int64_t left)
    {
      const Lanes lanes = Load(values + i, left, NoLogit);
      maxima = maxima.max(bias == nullptr ? lanes : lanes + Load(bias + i, left, 0));
    });
  return maxima.maxCoeff();
}

}

TopTokens::TopTokens(std::int64_t vectors, std::int64_t top)
  : Top(top)
  , Tokens(static_cast<std::size_t>(vectors) * static_cast<std::size_t>(top),
      { std::numeric_limits<std::int32_t>::max(), NoLogit })
{
}

void InsertToken(TokenLogit* tokens, std::size_t top, const TokenLogit& token)
{
  std::size_t place = top - 1;
  for (; place > 0 && token.IsBefore(tokens[place - 1]); --place)
  {
    tokens[place] = tokens[place - 1];
  }
  tokens[place] = token;
}

void TopTokens::Add(std::int64_t vector, std::int32_t first, std::int64_t count,
  const float* logits, const float* bias)
{
  TokenLogit* tokens = this->Tokens.data() + static_cast<std::size_t>(vector) * this->Top;
  const TokenLogit& last = tokens[this->Top - 1];
  if (LargestOf(count, logits, bias) < last.logit)
  {
    return; // as most parts have none of the largest
  }
  for (std::int64_t i = 0; i < count; ++i)
  {
    const float logit = bias == nullptr ? logits[i] : logits[i] + bias[i];
    const TokenLogit token = { first + static_cast<std::int32_t>(i), logit };
    if (logit >= last.logit && token.IsBefore(last))
    {
      InsertToken(tokens, this->Top, token);
    }
  }
}

void TopTokens::Join(std::int64_t vector, const TopTokens& other)
{
  TokenLogit* tokens = this->Tokens.data() + static_cast<std::size_t>(vector) * this->Top;
  const TokenLogit* found = other.Of(vector);
  for (std::size_t i = 0; i < this->Top && found[i].IsBefore(tokens[this->Top - 1]); ++i)
  {
    InsertToken(tokens, this->Top, found[i]);
  }
}

}
