#include "vtkHeadHistogram.h"

#include "ArrayNames.h"
#include "CorpusConversion.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "ScoreParts.h"
#include "Task.h"

#include <vtkDoubleArray.h>
#include <vtkObjectFactory.h>
#include <vtkTable.h>

#include <numeric>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::AddColumn;

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

void vtkHeadHistogram::Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task)
{
  const atlas::CorpusHead& head =
    statistics.heads[atlas::FindCorpusHead(statistics, this->Layer, this->Head)];
  const Bins bins = BinsOf(head, this->Quantity);
  const double all = std::accumulate(bins.counts.begin(), bins.counts.end(), 0.);
  const auto share = [all](double count) { return all > 0 ? count / all : 0; };
  auto* counts = task.Output<vtkTable>(0);
  AddColumn<vtkDoubleArray>(counts, Names::Value, bins.middles);
  AddColumn<vtkDoubleArray>(counts, Names::Count, bins.counts);
  AddColumn<vtkDoubleArray>(counts, Names::Share, bins.counts, share);
  double sum = 0;
  AddColumn<vtkDoubleArray>(
    counts, Names::Cumulative, bins.counts, [&](double count) { return share(sum += count); });
  AttentionAtlas::SetFormat(counts, AttentionAtlas::Formats::HeadHistogram);

  constexpr int Percents = 100;
  std::vector<double> quantiles;
  for (int percent = 0; percent <= Percents; ++percent)
  {
    quantiles.push_back(static_cast<double>(percent) / Percents);
  }
  auto* table = task.Output<vtkTable>(1);
  AddColumn<vtkDoubleArray>(table, Names::Quantile, quantiles);
  for (const atlas::CorpusSketch sketch : AttentionAtlas::SketchesOf(statistics))
  {
    AddColumn<vtkDoubleArray>(table, atlas::CorpusSketchNames[static_cast<std::size_t>(sketch)],
      quantiles, [&](double quantile) { return head.Sketch(sketch).Quantile(quantile); });
  }
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::HeadQuantiles);
  for (vtkTable* one : { counts, table })
  {
    AttentionAtlas::AddField(one->GetFieldData(), Names::Layer, this->Layer);
    AttentionAtlas::AddField(one->GetFieldData(), Names::Head, this->Head);
  }
}
