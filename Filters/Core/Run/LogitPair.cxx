#include "LogitPair.h"

#include "Base/Error.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace atlas
{
namespace
{

using Token = std::optional<std::int64_t>;

void RequireToken(const TransformerConfig& config, const Token& token, const char* name)
{
  if (token && (*token < 0 || *token >= config.outputVocabulary))
  {
    throw OptionError(name, ": expected a token id from 0 to ", config.outputVocabulary - 1,
      ", found ", *token, ".");
  }
}

/// The indices of the largest value and of the second largest.
std::pair<std::int64_t, std::int64_t> LargestTwo(const std::vector<float>& values)
{
  std::pair<std::size_t, std::size_t> found = { 0, 0 };
  for (std::size_t i = 1; i < values.size(); ++i)
  {
    if (values[i] > values[found.first])
    {
      found = { i, found.first };
    }
    else if (found.second == found.first || values[i] > values[found.second])
    {
      found.second = i;
    }
  }
  return { static_cast<std::int64_t>(found.first), static_cast<std::int64_t>(found.second) };
}

/// The tokens whose logits rise and fall most from a run to another.
LogitPair ChooseChanged(const Token& target, const Token& against, const std::vector<float>& run,
  const std::vector<float>& other, const char* name)
{
  std::vector<float> change(run.size());
  std::transform(other.begin(), other.end(), run.begin(), change.begin(), std::minus<float>());
  const auto [least, most] = std::minmax_element(change.begin(), change.end());
  ThrowIf<OptionError>(
    *least == *most, name, ": expected a prompt with other logits than Prompt, found the same.");
  // The other token is not the one that is given.
  const std::int64_t given = target.value_or(against.value_or(-1));
  const auto extreme = [&](float sign)
  {
    std::int64_t best = given == 0 ? 1 : 0;
    for (std::int64_t id = 0; id < static_cast<std::int64_t>(change.size()); ++id)
    {
      if (id != given && sign * change[id] > sign * change[best])
      {
        best = id;
      }
    }
    return best;
  };
  return { target.value_or(extreme(1)), against.value_or(extreme(-1)) };
}

}

void RequireTokens(const TransformerConfig& config, const Token& target, const Token& against)
{
  RequireToken(config, target, "Target");
  RequireToken(config, against, "Against");
  ThrowIf<OptionError>(
    target && target == against, "Against: expected another token than Target, found the same.");
}

LogitPair ChooseTokens(const Token& target, const Token& against, const std::vector<float>& run,
  const std::vector<float>& other, const char* name)
{
  const std::int64_t first = LargestTwo(run).first;
  const std::int64_t second = LargestTwo(other).first;
  if (first == second && (!target || *target == first) && (!against || *against == first))
  {
    return ChooseChanged(target, against, run, other, name);
  }
  return { target.value_or(against == second ? first : second),
    against.value_or(target == first ? second : first) };
}

LogitPair ChooseTokens(const Token& target, const Token& against, const std::vector<float>& run)
{
  const auto [first, second] = LargestTwo(run);
  const std::int64_t found = target.value_or(against == first ? second : first);
  return { found, against.value_or(found == first ? second : first) };
}

}
