#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace atlas
{

struct TokenLogit
{
  std::int32_t id = 0;
  float logit = 0;

  /// Whether this token comes before another one: larger logits first, then smaller ids.
  bool IsBefore(const TokenLogit& other) const
  {
    return this->logit > other.logit || (this->logit == other.logit && this->id < other.id);
  }
};

/// The tokens of largest logit of many vectors, found from parts of the vocabulary. The result does
/// not depend on the parts or their order.
class TopTokens
{
public:
  /// Keeps `top` tokens, at least 1, of each of `vectors` vectors.
  TopTokens(std::int64_t vectors, std::int64_t top);

  /// Takes the logits of tokens first <= id < first + count into account.
  void Add(std::int64_t vector, std::int32_t first, std::int64_t count, const float* logits);

  /// Takes those that another list has found of a vector into account.
  void Join(std::int64_t vector, const TopTokens& other);

  /// The tokens of a vector [top], of which all are there once `top` were added.
  const TokenLogit* Of(std::int64_t vector) const
  {
    return this->Tokens.data() + static_cast<std::size_t>(vector) * this->Top;
  }

private:
  std::size_t Top;
  std::vector<TokenLogit> Tokens; ///< [vectors, top]

  void Insert(TokenLogit* tokens, const TokenLogit& token) const;
};

}
