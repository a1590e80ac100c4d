#include "PromptMeans.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Files/MappedFile.h"
#include "Internal/LayerRunner.h"
#include "Numerics/MatrixProduct.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace atlas
{
namespace
{

/// A site that is replaced by its mean over prompts, and its first column in the sums.
struct SummedSite
{
  std::int64_t layer = 0;
  ActivationSlice slice;
  std::int64_t column = 0;
};

std::vector<SummedSite> SummedSites(
  const TransformerConfig& config, const Interventions& interventions)
{
  std::vector<SummedSite> sites;
  std::int64_t column = 0;
  for (const Intervention& one : interventions.list)
  {
    if (one.by == Replacement::MeanOverPrompts)
    {
      sites.push_back({ one.site.layer, SliceOf(config, one.site), column });
      column += sites.back().slice.count;
    }
  }
  return sites;
}

/// The matrix of the last of these sites in a run.
PlaceInLayer LastPlace(const std::vector<SummedSite>& sites)
{
  PlaceInLayer last = { 0, ActivationPlace::Residual };
  for (const SummedSite& site : sites)
  {
    last = std::max(last, { site.layer, site.slice.place });
  }
  return last;
}

/// The sum of each column over all prompts.
std::vector<double> TotalOf(const std::vector<double>& sums, std::size_t prompts)
{
  std::vector<double> total(sums.size() / prompts);
  for (std::size_t i = 0; i < sums.size(); ++i)
  {
    total[i % total.size()] += sums[i];
  }
  return total;
}

}

std::int64_t MeanColumns(const TransformerConfig& config, const Interventions& interventions)
{
  const std::vector<SummedSite> sites = SummedSites(config, interventions);
  return sites.empty() ? 0 : sites.back().column + sites.back().slice.count;
}

std::vector<double> SumOverPrompts(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  const std::vector<SummedSite> sites = SummedSites(config, options.interventions);
  const std::int64_t columns = MeanColumns(config, options.interventions);
  const PackedSequences sequences(SequenceLengths(config, input), options.sequences);
  std::vector<double> sums(ToIndex(columns) * (sequences.offsets.size() - 1));
  const auto add =
    [&](std::int64_t l, ActivationPlace place, const RowGroup& group, const float* values)
  {
    for (const SummedSite& site : sites)
    {
      for (std::size_t s = 0;
        site.layer == l && site.slice.place == place && s + 1 < group.offsets.size(); ++s)
      {
        const std::int64_t sequence = sequences.SequenceAt(group.begin + group.offsets[s]);
        AddRows(site.slice, group.offsets[s + 1] - group.offsets[s],
          values + group.offsets[s] * site.slice.width,
          sums.data() + sequence * columns + site.column);
      }
    }
  };
  return ReadIntact(model.GetFiles(),
    [&]
    {
      const SingleThreadedBlas blas;
      VisitActivations(
        model, input, sequences, LastPlace(sites), options.threads, add, options.progress);
      return std::move(sums);
    });
}

std::uint64_t PromptSumsMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  const PackedSequences sequences(SequenceLengths(config, input), options.sequences);
  const std::size_t sums =
    ToIndex(MeanColumns(config, options.interventions)) * (sequences.offsets.size() - 1);
  return sums * (sizeof(double) + sizeof(float)) +
         ToIndex(VisitFloats(config, sequences, options.threads)) * sizeof(float) +
         WidenedBytes(model.GetWeights(), options.threads);
}

std::vector<float> MeansOverOthers(
  const std::vector<double>& sums, const std::vector<std::int64_t>& lengths)
{
  ThrowIf<OptionError>(
    lengths.size() < 2, "the mean over other prompts: expected two prompts or more, found one.");
  const std::vector<double> total = TotalOf(sums, lengths.size());
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{ 0 });
  std::vector<float> means(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
  {
    const auto others = static_cast<double>(tokens - lengths[i / total.size()]);
    means[i] = static_cast<float>((total[i % total.size()] - sums[i]) / others);
  }
  return means;
}

std::vector<float> MeanOverAll(
  const std::vector<double>& sums, const std::vector<std::int64_t>& lengths)
{
  const auto tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{ 0 });
  const std::vector<double> total = TotalOf(sums, lengths.size());
  std::vector<float> means(total.size());
  std::transform(total.begin(), total.end(), means.begin(),
    [&](double sum) { return static_cast<float>(sum / static_cast<double>(tokens)); });
  return means;
}

}
