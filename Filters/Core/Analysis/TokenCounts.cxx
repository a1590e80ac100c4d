#include "TokenCounts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

/// Vectors in the order of their appearance.
std::map<HeadVector, std::size_t> PlacesOf(const std::vector<HeadTokens>& heads)
{
  std::map<HeadVector, std::size_t> places;
  for (const HeadTokens& tokens : heads)
  {
    places.emplace(tokens.vector, places.size());
  }
  return places;
}

/// Sorts the counts of one head and vector, and numbers them.
void Rank(std::vector<TokenCount>::iterator begin, std::vector<TokenCount>::iterator end)
{
  std::sort(begin, end, [](const TokenCount& a, const TokenCount& b)
    { return a.count != b.count ? a.count > b.count : a.id < b.id; });
  for (auto token = begin; token != end; ++token)
  {
    const bool isFirst = token == begin;
    const bool isEqual = !isFirst && std::prev(token)->count == token->count;
    token->rank = isFirst ? 1 : std::prev(token)->rank + (isEqual ? 0 : 1);
  }
}

}

std::vector<TokenCount> CountTokens(const std::vector<HeadTokens>& heads)
{
  const std::map<HeadVector, std::size_t> places = PlacesOf(heads);
  using Key = std::tuple<std::int32_t, std::int32_t, std::size_t>;
  std::map<Key, std::map<std::int32_t, TokenCount>> counts;
  for (const HeadTokens& tokens : heads)
  {
    const bool fillsRow = !IsOfCells(tokens.vector) && tokens.vector != HeadVector::Output;
    std::map<std::int32_t, TokenCount>& ofHead =
      counts[{ tokens.layer, tokens.head, places.at(tokens.vector) }];
    for (std::size_t i = 0; i < tokens.Count(); ++i)
    {
      const std::int32_t id = tokens.Best(i).id;
      TokenCount& token =
        ofHead.emplace(id, TokenCount{ tokens.layer, tokens.head, tokens.vector, id })
          .first->second;
      token.count += fillsRow ? static_cast<std::int64_t>(i) + 1 : 1;
      ++token.positions;
    }
  }
  std::vector<TokenCount> all;
  for (const auto& [key, ofHead] : counts)
  {
    const std::int64_t begin = all.size();
    std::transform(ofHead.begin(), ofHead.end(), std::back_inserter(all),
      [](const auto& token) { return token.second; });
    Rank(all.begin() + begin, all.end());
  }
  return all;
}

std::vector<UniqueCount> CountUnique(const std::vector<TokenCount>& counts)
{
  std::vector<UniqueCount> unique;
  std::vector<std::pair<HeadVector, std::set<std::int32_t>>> ofLayer;
  const auto endLayer = [&](std::int32_t layer)
  {
    for (const auto& [vector, ids] : ofLayer)
    {
      unique.push_back({ layer, -1, vector, static_cast<std::int64_t>(ids.size()) });
    }
    ofLayer.clear();
  };
  for (std::size_t i = 0; i < counts.size(); ++i)
  {
    const TokenCount& token = counts[i];
    const bool isNew = i == 0 || counts[i - 1].layer != token.layer ||
                       counts[i - 1].head != token.head || counts[i - 1].vector != token.vector;
    if (i > 0 && counts[i - 1].layer != token.layer)
    {
      endLayer(counts[i - 1].layer);
    }
    if (isNew)
    {
      unique.push_back({ token.layer, token.head, token.vector, 0 });
    }
    ++unique.back().unique;
    auto found = std::find_if(ofLayer.begin(), ofLayer.end(),
      [&](const auto& ofVector) { return ofVector.first == token.vector; });
    if (found == ofLayer.end())
    {
      found = ofLayer.insert(found, { token.vector, {} });
    }
    found->second.insert(token.id);
  }
  if (!counts.empty())
  {
    endLayer(counts.back().layer);
  }
  return unique;
}

std::vector<std::int32_t> DiscoveryOf(const HeadTokens& tokens)
{
  std::map<std::int32_t, std::int32_t> numbers;
  std::vector<std::int32_t> discovery;
  discovery.reserve(VectorCount(HeadVector::QueryKey, tokens.length));
  for (std::size_t i = 0; i < tokens.Count(); ++i)
  {
    const auto next = static_cast<std::int32_t>(numbers.size());
    const std::int32_t number = numbers.emplace(tokens.Best(i).id, next).first->second;
    discovery.insert(discovery.end(), IsOfCells(tokens.vector) ? 1 : i + 1, number);
  }
  return discovery;
}

std::vector<std::int32_t> CommonTokens(
  const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& second)
{
  std::vector<std::int32_t> common;
  std::set_intersection(
    first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(common));
  return common;
}

}
