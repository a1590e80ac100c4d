#pragma once

#include "Base/Progress.h"
#include "PooledAttention.h"
#include "RecordedAttention.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace atlas
{

/// Cells of a part of a map. A cell has 2^a queries and 2^b keys and begins at a multiple of them,
/// counted from the first query and key of the sequence; the last ones may have fewer.
struct MapCells
{
  KeyRange queries; ///< positions: all of the cells
  KeyRange keys;
  std::int64_t queryCell = 1; ///< 2^a
  std::int64_t keyCell = 1;   ///< 2^b

  std::int64_t Rows() const { return Count(this->queries, this->queryCell); }
  std::int64_t Columns() const { return Count(this->keys, this->keyCell); }

private:
  static std::int64_t Count(const KeyRange& range, std::int64_t cell)
  {
    return (range.end - range.begin + cell - 1) / cell;
  }
};

/// A part of a map: positions of queries and keys. An empty range means all of them, and what is
/// beyond the sequence is left out.
struct MapWindow
{
  KeyRange queries;
  KeyRange keys;
};

/// How large the base of a zoomed map is, unless it is told otherwise: cells along a side, at most.
inline constexpr std::int64_t BaseCells = 4096;

/// The smallest cells with which a window of a map has at most `size` of them along each side, at
/// least 1; the window is extended to whole cells. Where that would take more than 2^28 pairs,
/// cells are not smaller than those of the base (ZoomedAttention) on either side.
MapCells ChooseCells(const KeyRange& queries, const KeyRange& keys, const MapWindow& window,
  std::int64_t size, std::int64_t baseCells = BaseCells);

/// The map of a head on a sequence, pooled for windows that change: first of all, then of a part.
///
/// Kept are the normalizer of the softmax of each query, so that a window costs its own pairs only,
/// and the base: the maximum and the mean of all cells of the smallest power of two with which
/// there are `baseCells` along a side at most. Larger cells are made from the base; smaller ones
/// are evaluated anew. Values are the same, to the byte, on any number of threads and in any order
/// of windows.
///
/// The base is made at the first window; it takes as long as PoolCells for all tokens, twice for
/// NormWeighted, and 8 bytes per cell: 134 MB at most. Maps that are evaluated in rows (PoolCells)
/// have none, so that each window costs its rows.
class ZoomedAttention
{
public:
  explicit ZoomedAttention(const MapPlace& place, std::int64_t baseCells = BaseCells)
    : Place(place)
    , Cells(baseCells)
  {
  }

  /// The values [rows, columns] of cells that ChooseCells gives for the same number `baseCells`.
  /// `recording` is the same at each call. Throws as EvaluateAttention.
  std::vector<float> Pool(const Recording& recording, const MapCells& cells,
    AttentionPooling pooling, int threads, const Progress& progress = {});

private:
  struct Base;

  MapPlace Place;
  std::int64_t Cells;
  std::shared_ptr<const Base> Known; ///< nullptr before the first window, and without a base

  std::vector<float> FromBase(const MapCells& cells, AttentionPooling pooling) const;
};

}
