#include "ZoomedAttention.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Internal/StreamedScores.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace atlas
{
namespace
{

/// Pairs that are evaluated anew for a window, at most, if larger cells avoid it.
constexpr std::int64_t PairsOfWindow = std::int64_t{ 1 } << 28;

std::int64_t LengthOf(const KeyRange& range)
{
  return range.end - range.begin;
}

/// The part of a window that is there; all if it is empty.
KeyRange Clip(const KeyRange& window, const KeyRange& all)
{
  if (window.begin >= window.end)
  {
    return all;
  }
  const std::int64_t begin = std::clamp(window.begin, all.begin, std::max(all.end - 1, all.begin));
  return { begin, std::clamp(window.end, std::min(begin + 1, all.end), all.end) };
}

/// A range extended to whole cells.
KeyRange Align(const KeyRange& range, const KeyRange& all, std::int64_t cell)
{
  const std::int64_t end = (range.end - all.begin + cell - 1) / cell * cell;
  return { all.begin + (range.begin - all.begin) / cell * cell,
    std::min(all.begin + end, all.end) };
}

/// The smallest cell, at least `cell`, with which a range has at most `size` cells.
std::int64_t CellFor(
  const KeyRange& range, const KeyRange& all, std::int64_t size, std::int64_t cell = 1)
{
  while (LengthOf(Align(range, all, cell)) > size * cell)
  {
    cell *= 2;
  }
  return cell;
}

/// The positions where cells begin, and the end.
std::vector<std::int64_t> EdgesOf(const KeyRange& range, std::int64_t cell)
{
  std::vector<std::int64_t> edges;
  for (std::int64_t begin = range.begin; begin < range.end; begin += cell)
  {
    edges.push_back(begin);
  }
  edges.push_back(range.end);
  return edges;
}

}

MapCells ChooseCells(const KeyRange& queries, const KeyRange& keys, const MapWindow& window,
  std::int64_t size, std::int64_t baseCells)
{
  ThrowIf<OptionError>(size < 1, "expected a size of at least 1, found ", size, ".");
  const KeyRange someQueries = Clip(window.queries, queries);
  const KeyRange someKeys = Clip(window.keys, keys);
  const std::int64_t base =
    std::max(CellFor(queries, queries, baseCells), CellFor(keys, keys, baseCells));
  MapCells cells;
  cells.queryCell = CellFor(someQueries, queries, size);
  cells.keyCell = CellFor(someKeys, keys, size);
  if (LengthOf(someQueries) * LengthOf(someKeys) > PairsOfWindow)
  {
    cells.queryCell = std::max(cells.queryCell, base);
    cells.keyCell = std::max(cells.keyCell, base);
  }
  cells.queries = Align(someQueries, queries, cells.queryCell);
  cells.keys = Align(someKeys, keys, cells.keyCell);
  return cells;
}

struct ZoomedAttention::Base
{
  MapCells cells;
  Normalizers normalizers;
  PooledCells values;
};

std::vector<float> ZoomedAttention::Pool(const Recording& recording, const MapCells& cells,
  AttentionPooling pooling, int threads, const Progress& progress)
{
  EvaluateAttention(recording, this->Place.sequence, this->Place.layer, this->Place.head,
    this->Place.quantity, 0, 0, nullptr);
  const std::vector<std::int64_t> queryEdges = EdgesOf(cells.queries, cells.queryCell);
  const std::vector<std::int64_t> keyEdges = EdgesOf(cells.keys, cells.keyCell);
  const std::optional<StreamedMap> map = FindStreamed(
    recording, this->Place.sequence, this->Place.layer, this->Place.head, this->Place.quantity);
  if (!map)
  {
    std::vector<float> values(ToIndex(cells.Rows() * cells.Columns()));
    PoolCells(
      recording, this->Place, queryEdges, keyEdges, pooling, values.data(), threads, progress);
    return values;
  }
  if (this->Known == nullptr)
  {
    const KeyRange queries = QueryPositions(recording, this->Place.sequence);
    const KeyRange keys = KeyPositions(recording, this->Place.sequence);
    const auto base = std::make_shared<Base>();
    base->cells.queryCell = base->cells.keyCell =
      std::max(CellFor(queries, queries, this->Cells), CellFor(keys, keys, this->Cells));
    base->cells.queries = queries;
    base->cells.keys = keys;
    const std::vector<std::int64_t> rows = EdgesOf(queries, base->cells.queryCell);
    const std::vector<std::int64_t> columns = EdgesOf(keys, base->cells.keyCell);
    const bool isWeighted = this->Place.quantity == AttentionQuantity::NormWeighted;
    const Progress rest = progress.Part(isWeighted ? 0.5 : 0, 1);
    if (isWeighted)
    {
      base->normalizers = FindNormalizers(*map, queries, columns, threads, progress.Part(0, 0.5));
    }
    const bool finds = this->Place.quantity == AttentionQuantity::Weights;
    base->values = PoolStreamed(*map, rows, columns, isWeighted ? &base->normalizers : nullptr,
      finds ? &base->normalizers : nullptr, threads, rest);
    this->Known = base;
  }
  const std::int64_t cell = this->Known->cells.queryCell;
  if (cells.queryCell >= cell && cells.keyCell >= cell)
  {
    return this->FromBase(cells, pooling);
  }
  const PooledCells found = PoolStreamed(*map, queryEdges, keyEdges,
    map->IsNormalized() ? &this->Known->normalizers : nullptr, nullptr, threads, progress);
  return pooling == AttentionPooling::Maximum ? found.largest : found.mean;
}

/// Makes cells from those of the base that they consist of.
std::vector<float> ZoomedAttention::FromBase(const MapCells& cells, AttentionPooling pooling) const
{
  const MapCells& base = this->Known->cells;
  const std::int64_t side = base.queryCell;
  const bool isMean = pooling == AttentionPooling::Mean;
  const std::vector<float>& values =
    isMean ? this->Known->values.mean : this->Known->values.largest;
  const std::int64_t baseColumns = base.Columns();
  const std::int64_t columns = cells.Columns();
  const std::size_t count = ToIndex(cells.Rows() * columns);
  std::vector<float> largest(count, -std::numeric_limits<float>::infinity());
  std::vector<double> sums(isMean ? count : 0);
  std::vector<double> pairs(sums.size());
  const auto sizeOf = [side](std::int64_t begin, const KeyRange& all)
  { return static_cast<double>(std::min(side, all.end - begin)); };
  for (std::int64_t query = cells.queries.begin; query < cells.queries.end; query += side)
  {
    const float* from = values.data() + (query - base.queries.begin) / side * baseColumns;
    const std::int64_t row = (query - cells.queries.begin) / cells.queryCell;
    const double rows = sizeOf(query, base.queries);
    for (std::int64_t key = cells.keys.begin; key < cells.keys.end; key += side)
    {
      const float value = from[(key - base.keys.begin) / side];
      const std::size_t place = ToIndex(row * columns + (key - cells.keys.begin) / cells.keyCell);
      if (isMean)
      {
        const double weight = rows * sizeOf(key, base.keys);
        sums[place] += weight * static_cast<double>(value);
        pairs[place] += weight;
      }
      else
      {
        largest[place] = std::max(largest[place], value);
      }
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
  {
    largest[i] = static_cast<float>(sums[i] / pairs[i]);
  }
  return largest;
}

}
