#include "vtkHeadHistogram.h"

#include "ArrayNames.h"
#include "Corpus/ScoreParts.h"
#include "CorpusConversion.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "Task.h"

#include <vtkObjectFactory.h>

#include <numeric>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

/// The counts of bins, and their middles.
struct Bins
{
  std::vector<double> middles;
  std::vector<double> counts;
};

Bins BinsOf(const atlas::CorpusHead& head, int quantity)
{
  Bins bins;
  if (quantity == vtkHeadHistogram::DISTANCE)
  {
    for (const atlas::WeightSum& attention : head.distances)
    {
      bins.middles.push_back(static_cast<double>(bins.middles.size()));
      bins.counts.push_back(attention.Value());
    }
    return bins;
  }
  const auto histogram = quantity == vtkHeadHistogram::ENTROPY
                           ? atlas::CorpusHistogram::Entropy
                           : atlas::CorpusHistogram::StrongestWeight;
  for (const std::int64_t count : head.histograms.at(static_cast<std::size_t>(histogram)))
  {
    bins.middles.push_back((static_cast<double>(bins.middles.size()) + 0.5) / atlas::HistogramBins);
    bins.counts.push_back(static_cast<double>(count));
  }
  return bins;
}

}

vtkStandardNewMacro(vtkHeadHistogram);

vtkHeadHistogram::vtkHeadHistogram()
  : vtkCorpusAlgorithm({ "vtkTable", "vtkTable" })
{
}

void vtkHeadHistogram::Show(const atlas::CorpusStatistics& statistics, Task& task)
{
  const atlas::CorpusHead& head =
    statistics.heads[atlas::FindCorpusHead(statistics, this->Layer, this->Head)];
  const Bins bins = BinsOf(head, this->Quantity);
  const double all = std::accumulate(bins.counts.begin(), bins.counts.end(), 0.);
  const auto share = [all](double count) { return all > 0 ? count / all : 0; };
  auto* counts = task.Output<vtkTable>(0);
  double sum = 0;
  ListArrays(bins.middles, counts->GetRowData()).Double(Names::Value);
  ListArrays(bins.counts, counts->GetRowData())
    .Double(Names::Count)
    .Double(Names::Share, share)
    .Double(Names::Cumulative, [&](double count) { return share(sum += count); });
  SetFormat(counts, Formats::HeadHistogram);

  constexpr int Percents = 100;
  std::vector<double> quantiles;
  for (int percent = 0; percent <= Percents; ++percent)
  {
    quantiles.push_back(static_cast<double>(percent) / Percents);
  }
  auto* table = task.Output<vtkTable>(1);
  AddColumn<vtkDoubleArray>(table, Names::Quantile, quantiles);
  for (const atlas::CorpusSketch sketch : SketchesOf(statistics))
  {
    AddColumn<vtkDoubleArray>(table, atlas::CorpusSketchNames[static_cast<std::size_t>(sketch)],
      quantiles, [&](double quantile) { return head.Sketch(sketch).Quantile(quantile); });
  }
  SetFormat(table, Formats::HeadQuantiles);
  this->AddHead(task);
}
