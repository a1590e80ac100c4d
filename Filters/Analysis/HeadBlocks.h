#pragma once

#include "RankGroup.h"
#include "Recording.h"
#include "TokenColumns.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

class vtkAlgorithm;

namespace AttentionAtlas
{

/// Queries begin <= i < end of one head and sequence, which are evaluated together. Blocks begin at
/// multiples of their size, so that values do not depend on threads or ranks.
struct QueryBlock
{
  std::size_t head; ///< among those of this rank
  std::int64_t sequence;
  std::int64_t begin;
  std::int64_t end;
};

/// All queries of a recording in blocks of one head; the heads are shared among ranks.
class HeadBlocks
{
public:
  HeadBlocks(const atlas::Recording& recording, const RankGroup& ranks);

  /// The heads of all ranks, in the order of layers.
  const std::vector<HeadPlace>& GetHeads() const { return this->Heads; }

  /// The heads of this rank: rank r has those at r, r + Count(), ...
  const std::vector<HeadPlace>& GetMine() const { return this->Mine; }

  const std::vector<QueryBlock>& GetBlocks() const { return this->Blocks; }

  /// Calls measure(first block, end) on several threads until all blocks are done. Reports the
  /// progress of the filter; returns false if the user has canceled.
  bool Run(
    vtkAlgorithm* filter, const std::function<void(std::size_t, std::size_t)>& measure) const;

  /// Sends results of heads to all ranks: `mine` [heads of this rank, perHead]. Returns [all heads,
  /// perHead].
  template<class Result>
  std::vector<Result> Gather(const std::vector<Result>& mine, std::size_t perHead) const;

private:
  RankGroup Ranks;
  std::vector<HeadPlace> Heads;
  std::vector<HeadPlace> Mine;
  std::vector<QueryBlock> Blocks;
  std::vector<std::int64_t> Weights; ///< that each block evaluates

  std::size_t EndOfStep(std::size_t begin) const;
};

/// Sends results of heads that are shared as by HeadBlocks to all ranks: `mine` [heads of this
/// rank, perHead]. Returns [heads, perHead].
template<class Result>
std::vector<Result> GatherHeads(
  const RankGroup& ranks, const std::vector<Result>& mine, std::size_t heads, std::size_t perHead)
{
  static_assert(std::is_trivially_copyable_v<Result>);
  if (ranks.Count() == 1 || perHead == 0)
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
    const char* from = parts[h % parts.size()].data() + h / parts.size() * bytes;
    std::memcpy(static_cast<void*>(all.data() + h * perHead), from, bytes);
  }
  return all;
}

template<class Result>
std::vector<Result> HeadBlocks::Gather(const std::vector<Result>& mine, std::size_t perHead) const
{
  return GatherHeads(this->Ranks, mine, this->Heads.size(), perHead);
}

}
