#include "HeadBlocks.h"

#include "Base/Index.h"
#include "Execution.h"
#include "Recording/RecordedAttention.h"
#include "TokenColumns.h"

#include <algorithm>

namespace AttentionAtlas
{
namespace
{

/// Weights between two reports of progress, each a chance to cancel.
constexpr std::int64_t WeightsPerStep = std::int64_t{ 1 } << 24;

}

HeadBlocks::HeadBlocks(const atlas::Recording& recording, const RankGroup& ranks)
  : Ranks(ranks)
  , Heads(HeadsOf(recording))
{
  const std::size_t first = ranks.Rank();
  for (std::size_t h = first; h < this->Heads.size(); h += atlas::ToIndex(ranks.Count()))
  {
    for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
    {
      const atlas::KeyRange queries = atlas::QueryPositions(recording, s);
      std::int64_t end = 0;
      for (std::int64_t begin = queries.begin; begin < queries.end; begin = end)
      {
        end = std::min((begin / atlas::QueriesPerBlock + 1) * atlas::QueriesPerBlock, queries.end);
        this->Blocks.push_back({ this->Mine.size(), s, begin, end });
        this->Weights.push_back((end - begin) * queries.end);
      }
    }
    this->Mine.push_back(this->Heads[h]);
  }
}

/// The first block that a step from `begin` on leaves to the next.
std::size_t HeadBlocks::EndOfStep(std::size_t begin) const
{
  std::size_t end = begin;
  for (std::int64_t weights = 0; end < this->Blocks.size() && weights < WeightsPerStep; ++end)
  {
    weights += this->Weights[end];
  }
  return end;
}

void HeadBlocks::Run(const atlas::Progress& progress,
  const std::function<void(std::size_t, std::size_t)>& measure) const
{
  for (std::size_t begin = 0; begin < this->Blocks.size();)
  {
    const std::size_t end = this->EndOfStep(begin);
    ParallelFor(static_cast<vtkIdType>(begin), static_cast<vtkIdType>(end),
      [&measure](vtkIdType first, vtkIdType last) { measure(first, last); });
    begin = end;
    progress(end, this->Blocks.size());
  }
}

}
