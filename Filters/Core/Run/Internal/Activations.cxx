#include "Activations.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// The mean of each column of a slice over all rows.
std::vector<float> MeanOf(const ActivationSlice& slice, std::int64_t length, const float* values)
{
  std::vector<double> sums(slice.count);
  AddRows(slice, length, values, sums.data());
  std::vector<float> means(sums.size());
  std::transform(sums.begin(), sums.end(), means.begin(),
    [&](double sum) { return static_cast<float>(sum / static_cast<double>(length)); });
  return means;
}

}

std::int64_t WidthOf(const TransformerConfig& config, ActivationPlace place)
{
  switch (place)
  {
    case ActivationPlace::Mixed:
      return config.heads * config.ValueDimension();
    case ActivationPlace::Hidden:
      return config.mlpDimension;
    default:
      return config.modelDimension;
  }
}

ActivationSlice SliceOf(const TransformerConfig& config, const ActivationSite& site)
{
  if (config.HasLayerSizes())
  {
    TransformerConfig own = config.WithSizesOf(site.layer);
    own.headDimensions = own.keyHeadCounts = own.mlpDimensions = {};
    return SliceOf(own, site);
  }
  ActivationSlice slice;
  slice.place = site.kind == ActivationKind::Residual    ? ActivationPlace::Residual
                : site.kind == ActivationKind::MlpOutput ? ActivationPlace::Hidden
                                                         : ActivationPlace::Mixed;
  slice.width = WidthOf(config, slice.place);
  const bool isHead = site.kind == ActivationKind::HeadOutput;
  slice.first = isHead ? site.head * config.ValueDimension() : 0;
  slice.count = isHead ? config.ValueDimension() : slice.width;
  return slice;
}

void AddRows(const ActivationSlice& slice, std::int64_t length, const float* values, double* sums)
{
  for (std::int64_t t = 0; t < length; ++t)
  {
    const float* row = values + t * slice.width + slice.first;
    for (std::int64_t i = 0; i < slice.count; ++i)
    {
      sums[i] += static_cast<double>(row[i]);
    }
  }
}

std::set<PlaceInLayer> SourcePlaces(
  const TransformerConfig& config, const Interventions& interventions)
{
  std::set<PlaceInLayer> places;
  for (const Intervention& one : interventions.list)
  {
    if (one.by == Replacement::Source)
    {
      places.insert({ one.site.layer, SliceOf(config, one.site).place });
    }
  }
  return places;
}

void Replace(const TransformerConfig& config, const Intervention& intervention, const float* given,
  std::int64_t length, float* values)
{
  const ActivationSite& site = intervention.site;
  const ActivationSlice slice = SliceOf(config, site);
  const bool isSource = intervention.by == Replacement::Source;
  std::vector<float> row(slice.count); // the new values; zeros
  if (intervention.by == Replacement::MeanOverPositions)
  {
    row = MeanOf(slice, length, values);
  }
  else if (intervention.by == Replacement::MeanOverPrompts)
  {
    row.assign(given, given + slice.count);
  }
  const bool isOne = site.position != AllPositions;
  const std::int64_t end = isOne ? site.position + 1 : length;
  for (std::int64_t t = isOne ? site.position : 0; t < end; ++t)
  {
    const std::int64_t offset = t * slice.width + slice.first;
    std::copy_n(isSource ? given + offset : row.data(), slice.count, values + offset);
  }
}

}
