#pragma once

#include "RankGroup.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

namespace AttentionAtlas
{

/// Sends results of heads to all ranks, of which rank r has those of the heads r, r + Count(), ...:
/// `mine` [its heads, perHead]. Returns [heads, perHead].
template<class Result>
std::vector<Result> GatherHeads(
  const RankGroup& ranks, std::size_t heads, std::size_t perHead, const std::vector<Result>& mine)
{
  static_assert(std::is_trivially_copyable_v<Result>);
  if (ranks.Count() == 1)
  {
    return mine;
  }
  const char* first = reinterpret_cast<const char*>(mine.data());
  const std::vector<std::vector<char>> parts =
    ranks.Share({ first, first + mine.size() * sizeof(Result) });
  const std::size_t bytes = perHead * sizeof(Result);
  std::vector<Result> all(heads * perHead);
  for (std::size_t h = 0; h < heads; ++h)
  {
    std::memcpy(
      all.data() + h * perHead, parts[h % parts.size()].data() + h / parts.size() * bytes, bytes);
  }
  return all;
}

}
