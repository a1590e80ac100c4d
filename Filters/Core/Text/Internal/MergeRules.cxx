#include "MergeRules.h"

#include "Base/Error.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace atlas
{
namespace
{

/// Up to this many symbols, scanning all pairs for each merge is faster than a heap.
constexpr std::size_t ShortWord = 48;

}

Merge ParseMerge(std::string_view line, const std::string& place)
{
  const std::size_t space = line.find(' ');
  ThrowIf<FormatError>(space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
                         line.find(' ', space + 1) != std::string_view::npos,
    place, ": expected a merge of two tokens separated by a space, found '", line.substr(0, 80),
    "'.");
  return { std::string(line.substr(0, space)), std::string(line.substr(space + 1)) };
}

void AddMerge(MergeRules& rules, const Vocabulary& tokens, const std::vector<Merge>& merges,
  std::size_t rank, const std::string& source, std::size_t prefix)
{
  const std::string& left = merges[rank].first;
  const std::string& right = merges[rank].second;
  const auto fail = [&](const auto&... message)
  { throw FormatError(source, ": merge ", rank, " '", left, " ", right, "'", message...); };
  const auto idOf = [&](const std::string& token)
  {
    const std::optional<std::int64_t> id = tokens.IdOf(token);
    if (!id)
    {
      fail(": the vocabulary has no token '", token, "'.");
    }
    return static_cast<std::int32_t>(*id);
  };
  const std::int32_t result = idOf(left + right.substr(std::min(prefix, right.size())));
  if (!rules.Add(idOf(left), idOf(right), static_cast<std::uint32_t>(rank), result))
  {
    fail(" is listed twice.");
  }
}

bool MergeRules::Add(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t result)
{
  return this->Merges.emplace(KeyOf(left, right), Result{ rank, result }).second;
}

MergeRules::Result MergeRules::Find(std::int32_t left, std::int32_t right) const
{
  const auto found = this->Merges.find(KeyOf(left, right));
  return found == this->Merges.end() ? Result{ NoRank, -1 } : found->second;
}

void MergeRules::Apply(std::vector<std::int32_t>& symbols) const
{
  if (symbols.size() <= ShortWord)
  {
    this->MergeShort(symbols);
  }
  else
  {
    this->MergeLong(symbols);
  }
}

void MergeRules::MergeShort(std::vector<std::int32_t>& symbols) const
{
  std::array<Result, ShortWord> merges; // merge of each symbol with the next one
  std::size_t count = symbols.size();
  for (std::size_t i = 0; i + 1 < count; ++i)
  {
    merges[i] = this->Find(symbols[i], symbols[i + 1]);
  }
  while (count > 1)
  {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i)
    {
      best = merges[i].rank < merges[best].rank ? i : best;
    }
    if (merges[best].rank == NoRank)
    {
      break;
    }
    symbols[best] = merges[best].id;
    --count;
    for (std::size_t i = best + 1; i < count; ++i)
    {
      symbols[i] = symbols[i + 1];
      merges[i - 1] = merges[i];
    }
    if (best > 0)
    {
      merges[best - 1] = this->Find(symbols[best - 1], symbols[best]);
    }
    if (best + 1 < count)
    {
      merges[best] = this->Find(symbols[best], symbols[best + 1]);
    }
  }
  symbols.resize(count);
}

void MergeRules::MergeLong(std::vector<std::int32_t>& symbols) const
{
  // A linked list of symbols, indexed by their first byte, and a heap of merges. A merge in the
  // heap is obsolete if one of its symbols has changed since.
  struct Candidate
  {
    std::uint32_t rank;
    std::size_t left;
    std::size_t right;
    std::int32_t leftId;
    std::int32_t rightId;
    std::int32_t id;

    bool operator>(const Candidate& other) const
    {
      return std::pair(this->rank, this->left) > std::pair(other.rank, other.left);
    }
  };
  constexpr std::int32_t gone = std::numeric_limits<std::int32_t>::min();
  const std::size_t end = symbols.size();
  std::vector<std::size_t> next(end);
  std::vector<std::size_t> previous(end);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto offer = [&](std::size_t left, std::size_t right)
  {
    const Result result = this->Find(symbols[left], symbols[right]);
    if (result.rank != NoRank)
    {
      candidates.push({ result.rank, left, right, symbols[left], symbols[right], result.id });
    }
  };
  for (std::size_t i = 0; i < end; ++i)
  {
    next[i] = i + 1;
    previous[i] = i == 0 ? end : i - 1;
    if (i + 1 < end)
    {
      offer(i, i + 1);
    }
  }
  while (!candidates.empty())
  {
    const Candidate merge = candidates.top();
    candidates.pop();
    if (symbols[merge.left] != merge.leftId || symbols[merge.right] != merge.rightId ||
        next[merge.left] != merge.right)
    {
      continue;
    }
    symbols[merge.left] = merge.id;
    symbols[merge.right] = gone;
    next[merge.left] = next[merge.right];
    if (next[merge.left] < end)
    {
      previous[next[merge.left]] = merge.left;
      offer(merge.left, next[merge.left]);
    }
    if (previous[merge.left] < end)
    {
      offer(previous[merge.left], merge.left);
    }
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), gone), symbols.end());
}

}
