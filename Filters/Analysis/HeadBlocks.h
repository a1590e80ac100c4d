#pragma once

#include "Base/Progress.h"
#include "RankGroup.h"
#include "Recording/Recording.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

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

/// All queries of a recording (QueryPositions) in blocks of one head; the heads are shared among
/// ranks.
class HeadBlocks
{
public:
  /// `ranks` must outlive this object.
  HeadBlocks(const atlas::Recording& recording, const RankGroup& ranks);

  /// The heads of all ranks, in the order of layers.
  const std::vector<atlas::HeadPlace>& GetHeads() const { return this->Heads; }

  /// The heads of this rank: rank r has those at r, r + Count(), ...
  const std::vector<atlas::HeadPlace>& GetMine() const { return this->Mine; }

  const std::vector<QueryBlock>& GetBlocks() const { return this->Blocks; }

  /// Calls measure(first block, end) on several threads until all blocks are done.
  void Run(const atlas::Progress& progress,
    const std::function<void(std::size_t, std::size_t)>& measure) const;

  /// Sends results of heads to all ranks: `mine` [heads of this rank, perHead]. Returns [all heads,
  /// perHead].
  template<class Result>
  std::vector<Result> Gather(const std::vector<Result>& mine, std::size_t perHead) const
  {
    return this->Ranks.GatherDealt(mine, this->Heads.size(), perHead);
  }

private:
  const RankGroup& Ranks;
  std::vector<atlas::HeadPlace> Heads;
  std::vector<atlas::HeadPlace> Mine;
  std::vector<QueryBlock> Blocks;
  std::vector<std::int64_t> Weights; ///< that each block evaluates

  std::size_t EndOfStep(std::size_t begin) const;
};

}
