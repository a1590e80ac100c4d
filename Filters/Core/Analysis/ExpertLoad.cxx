#include "ExpertLoad.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Joined.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace atlas
{
namespace
{

/// How often something happens, and with which weights.
struct Sum
{
  std::int64_t count = 0;
  double weights = 0;
  double scores = 0;

  void Add(float weight, float score)
  {
    ++this->count;
    this->weights += static_cast<double>(weight);
    this->scores += static_cast<double>(score);
  }
  double Mean(double sum) const
  {
    return this->count > 0 ? sum / static_cast<double>(this->count) : 0;
  }
};

/// For each token of a recording, the row where it is first; empty if tokens are not known.
std::vector<std::int64_t> FirstRows(const RecordedTokens& tokens)
{
  std::vector<std::int64_t> first;
  const auto find = [&](const auto& list)
  {
    std::map<typename std::decay_t<decltype(list)>::value_type, std::int64_t> seen;
    for (const auto& token : list)
    {
      const std::int64_t row = first.size();
      first.push_back(seen.emplace(token, row).first->second);
    }
  };
  if (!tokens.id.empty())
  {
    find(tokens.id);
  }
  else
  {
    find(tokens.text);
  }
  return first;
}

/// Calls visit(row, expert, weight, score) for each choice of a layer; without scores they are 0.
template<class Visit>
void ForEachChoice(const RecordedRouting& routing, const Visit& visit)
{
  for (std::int64_t row = 0; row < routing.chosen.rows; ++row)
  {
    for (std::int64_t k = 0; k < routing.chosen.columns; ++k)
    {
      const float score = routing.scores.IsRecorded() ? routing.scores.Row(row)[k] : 0;
      visit(row, static_cast<std::int32_t>(routing.chosen.Row(row)[k]), routing.weights.Row(row)[k],
        score);
    }
  }
}

}

std::vector<const RecordedLayer*> RoutedLayers(const Recording& recording)
{
  std::vector<const RecordedLayer*> layers;
  for (const RecordedLayer& layer : recording.layers)
  {
    if (layer.routing.chosen.IsRecorded())
    {
      layers.push_back(&layer);
    }
  }
  ThrowIf<ModelError>(
    layers.empty(), "expected a recording with Routing, of a model with experts, found none.");
  return layers;
}

const RecordedLayer& RoutedLayer(const Recording& recording, std::int64_t index)
{
  const std::vector<const RecordedLayer*> layers = RoutedLayers(recording);
  const auto found = std::find_if(layers.begin(), layers.end(),
    [index](const RecordedLayer* layer) { return layer->index == index; });
  if (found == layers.end())
  {
    throw OptionError("expected a layer with routing, one of ",
      Joined(
        layers, [](const RecordedLayer* one) { return std::to_string(one->index); }, " "),
      ", found ", index, ".");
  }
  return **found;
}

bool HasExpertBias(const Recording& recording)
{
  return std::any_of(recording.layers.begin(), recording.layers.end(),
    [](const RecordedLayer& layer)
    { return layer.routing.scores.IsRecorded() && layer.routing.bias.IsRecorded(); });
}

std::vector<ExpertLoad> MeasureExperts(const Recording& recording)
{
  std::vector<ExpertLoad> loads;
  for (const RecordedLayer* layer : RoutedLayers(recording))
  {
    std::vector<Sum> sums(layer->routing.experts);
    ForEachChoice(layer->routing, [&](std::int64_t, std::int32_t expert, float weight, float score)
      { sums[expert].Add(weight, score); });
    const auto tokens = static_cast<double>(layer->routing.chosen.rows);
    for (std::size_t e = 0; e < sums.size(); ++e)
    {
      ExpertLoad load;
      load.layer = layer->index;
      load.expert = static_cast<std::int32_t>(e);
      load.count = sums[e].count;
      load.share = load.count > 0 ? static_cast<double>(load.count) / tokens : 0;
      load.weight = sums[e].Mean(sums[e].weights);
      load.score = sums[e].Mean(sums[e].scores);
      const SharedMatrix& bias = layer->routing.bias;
      load.bias = bias.IsRecorded() ? static_cast<double>(bias.Row(0)[e]) : 0;
      loads.push_back(load);
    }
  }
  return loads;
}

std::vector<ExpertToken> TokensOfExperts(const Recording& recording, std::int64_t top)
{
  ThrowIf<OptionError>(top < 1, "Top: expected at least 1, found ", top, ".");
  const std::vector<const RecordedLayer*> layers = RoutedLayers(recording);
  const std::vector<std::int64_t> first = FirstRows(recording.tokens);
  std::vector<std::int64_t> places(first.size()); // of the token that is first in a row
  for (const std::int64_t row : first)
  {
    ++places[row];
  }
  std::vector<ExpertToken> tokens;
  for (const RecordedLayer* layer : first.empty() ? std::vector<const RecordedLayer*>() : layers)
  {
    std::vector<std::map<std::int64_t, Sum>> sums(layer->routing.experts); // by first rows
    ForEachChoice(layer->routing, [&](std::int64_t row, std::int32_t expert, float weight,
                                    float score) { sums[expert][first[row]].Add(weight, score); });
    for (std::size_t e = 0; e < sums.size(); ++e)
    {
      std::vector<ExpertToken> ofExpert;
      for (const auto& [row, sum] : sums[e])
      {
        const double share = static_cast<double>(sum.count) / static_cast<double>(places[row]);
        ofExpert.push_back({ layer->index, static_cast<std::int32_t>(e), 0, row, sum.count, share,
          sum.Mean(sum.weights), sum.Mean(sum.scores) });
      }
      std::sort(ofExpert.begin(), ofExpert.end(),
        [](const ExpertToken& a, const ExpertToken& b)
        {
          return std::tuple(-a.count, -a.weight, a.row) < std::tuple(-b.count, -b.weight, b.row);
        });
      ofExpert.resize(std::min(ofExpert.size(), ToIndex(top)));
      for (std::size_t i = 0; i < ofExpert.size(); ++i)
      {
        ofExpert[i].rank = static_cast<std::int32_t>(i) + 1;
      }
      tokens.insert(tokens.end(), ofExpert.begin(), ofExpert.end());
    }
  }
  return tokens;
}

}
