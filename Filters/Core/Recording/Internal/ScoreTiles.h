#pragma once

#include <cstdint>
#include <limits>

namespace atlas
{

/// The number of queries whose scores are reduced side by side.
inline constexpr std::int64_t QueriesPerTile = 96;

/// The scores of QueriesPerTile queries with keys.
struct ScoreTile
{
  const float* queries = nullptr;    ///< as PackQueries writes them
  const float* keys = nullptr;       ///< [length, dimension]
  std::int64_t dimension = 0;        ///< d_head
  std::int64_t query = 0;            ///< position of the first query
  float cap = 0;                     ///< c > 0: scores are c tanh(query . key / c) + biases
  const float* keyBias = nullptr;    ///< [length], added to the scores of a key; nullptr: none
  const float* aheadBias = nullptr;  ///< added by how far the query is ahead of the key: points to
                                     ///< that of 0; nullptr: none
  std::int64_t least = -Everywhere;  ///< a query may attend to a key if least <= position of the
  std::int64_t beyond = +Everywhere; ///< query - position of the key < beyond

  /// Farther than any two positions.
  static constexpr std::int64_t Everywhere = std::numeric_limits<std::int32_t>::max() / 4;
};

/// How scores become one number.
enum class ScoreSum
{
  Scores,      ///< sum_j x_j
  Exponentials ///< sum_j exp(x_j - largest x)
};

/// Packs `rows` queries [rows, dimension], at most QueriesPerTile, times `scale`, for ScoreTile:
/// `packed` has QueriesPerTile * dimension numbers. Missing rows are 0.
void PackQueries(
  const float* queries, std::int64_t rows, std::int64_t dimension, float scale, float* packed);

/// For each query of a tile, and each of `cells` cells of keys, which begin at ascending positions
/// edges[0], edges[1], ... and end at the next of them: the largest score and the sum over the keys
/// that the query may attend to; -infinity and 0 if there are none. `largest` and `sums` are
/// [cells, QueriesPerTile]. What a query has of a cell depends neither on the others of the tile
/// nor on other cells. Sums are in single precision over at most 32 keys, and these are added up.
void ReduceCells(const ScoreTile& tile, const std::int64_t* edges, std::int64_t cells, ScoreSum sum,
  float* largest, float* sums);

/// From the results of `cells` cells [cells, QueriesPerTile] the largest score of
/// each query, and 1 / sum of exp(score - largest) over all keys and, if there is one, the sink. 0
/// and 0 for a query without keys.
void FindNormalizers(const float* largest, const float* sums, std::int64_t cells, const float* sink,
  float* shift, float* factor);

/// Turns the results of a cell into the largest attention weight of each query and the sum of its
/// weights.
void WeighCell(const float* largest, const float* sums, const float* shift, const float* factor,
  float* largestWeight, float* sumOfWeights);

}
