#include "Corpus/CorpusFile.h"
#include "Corpus/HeadClusters.h"
#include "Corpus/ScoreParts.h"
#include "FuzzTarget.h"

#include <algorithm>
#include <vector>

using namespace atlas;

namespace
{

/// What views show of statistics, as far as it is quick.
void Evaluate(const CorpusStatistics& statistics)
{
  constexpr std::size_t most = 4; // heads
  for (std::size_t h = 0; h < std::min(statistics.heads.size(), most); ++h)
  {
    const CorpusHead& head = statistics.heads[h];
    for (const CorpusColumn& column : CorpusColumns)
    {
      CorpusValue(head, column);
    }
    MeanDistance(head);
    MedianDistance(head);
    for (const QuantileSketch& sketch : head.sketches)
    {
      sketch.Quantile(0.5);
    }
    if (statistics.headDimension <= 8)
    {
      fuzz::Use(
        [&]
        {
          const HeadPlace& place = statistics.places[h];
          const ScoreParts parts = FindScoreParts(statistics, place.layer, place.head, 4);
          CoordinatesOf(statistics, h, parts, true);
        });
    }
  }
  for (const ClusterDistance distance : { ClusterDistance::Statistics, ClusterDistance::Agreement })
  {
    fuzz::Use(
      [&]
      {
        const Eigen::MatrixXd distances = HeadDistances(statistics, distance);
        if (distances.rows() <= 32)
        {
          ClustersOf(MergeHeads(distances), 1);
        }
      });
  }
}

}

/// The reader of statistics of corpora, what is shown of them, that they can be added up, and that
/// they are read as they were written.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  CorpusStatistics statistics;
  if (!fuzz::Read([&]
        { statistics = CorpusFromBytes(reinterpret_cast<const char*>(data), size, fuzz::Source); }))
  {
    return 0;
  }
  fuzz::Require(!statistics.heads.empty() && statistics.heads.size() == statistics.places.size(),
    "heads with a place each");
  Evaluate(statistics);
  const std::vector<char> written = CorpusToBytes(statistics);
  CorpusStatistics again = CorpusFromBytes(written, "again");
  fuzz::Require(CorpusToBytes(again) == written, "the same statistics");
  again.Add(statistics);
  again.ForgetSums();
  return 0;
}
