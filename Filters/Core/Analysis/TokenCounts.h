#pragma once

#include "AttentionTokens.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// How often a token is the best one of a head.
struct TokenCount
{
  std::int32_t layer = 0;
  std::int32_t head = 0;
  HeadVector vector = HeadVector::QueryKey;
  std::int32_t id = 0;
  std::int64_t count = 0; ///< cells that show it: each cell (i, j) of QueryKey and DotProduct has
                          ///< its own; Query, Key and Value i fill the i + 1 cells of row i, as
                          ///< in the code behind the published tables; Output counts once
  std::int64_t positions = 0; ///< vectors whose best token it is
  std::int32_t rank = 0;      ///< from 1, by falling count; equal counts have equal ranks, and none
                              ///< is left out
};

/// The counts of all tokens that occur, by layer, head, vector in their order of appearance, rank
/// and id.
std::vector<TokenCount> CountTokens(const std::vector<HeadTokens>& heads);

/// How many different tokens a head, or a layer's heads together, have as best ones.
struct UniqueCount
{
  std::int32_t layer = 0;
  std::int32_t head = -1; ///< -1: all of the layer
  HeadVector vector = HeadVector::QueryKey;
  std::int64_t unique = 0;
};

/// The numbers of tokens of each vector: those of the heads in the order of the counts, each layer
/// after its last head.
std::vector<UniqueCount> CountUnique(const std::vector<TokenCount>& counts);

/// The number, from 0, of each cell's best token in the order in which tokens appear in a row by
/// row reading of the cells (i, j), j <= i: [T (T + 1) / 2]. Where there is one vector for each
/// token, token i fills row i.
std::vector<std::int32_t> DiscoveryOf(const HeadTokens& tokens);

/// The tokens that two lists have in common, in ascending order, as both are.
std::vector<std::int32_t> CommonTokens(
  const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& second);

}
