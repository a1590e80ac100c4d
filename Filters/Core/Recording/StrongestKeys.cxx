#include "StrongestKeys.h"

#include "Base/Error.h"
#include "RecordedAttention.h"

#include <algorithm>
#include <cstddef>

namespace atlas
{
namespace
{

/// Adds a link to those of its query, from `first` on, which are sorted by falling weight and of
/// which `top` are kept. Keys come in ascending order.
void Insert(
  const AttentionLink& link, std::size_t first, std::size_t top, std::vector<AttentionLink>& links)
{
  if (links.size() - first == top)
  {
    if (links.back().weight >= link.weight)
    {
      return;
    }
    links.pop_back();
  }
  const auto after = std::find_if(links.begin() + static_cast<std::ptrdiff_t>(first), links.end(),
    [&](const AttentionLink& other) { return other.weight < link.weight; });
  links.insert(after, link);
}

}

void AppendStrongestKeys(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, std::int64_t begin, std::int64_t end, const StrongestKeysOptions& options,
  std::vector<float>& weights, std::vector<AttentionLink>& links)
{
  ThrowIf<OptionError>(options.top < 1, "Top: expected at least 1, found ", options.top, ".");
  ThrowIf<OptionError>(!(options.minimumWeight >= 0 && options.minimumWeight <= 1),
    "MinimumWeight: expected a weight from 0 to 1, found ", options.minimumWeight, ".");
  const auto quantity = AttentionQuantity::Weights;
  EvaluateAttention(recording, sequence, layer, head, quantity, 0, 0, nullptr); // checks the place
  const std::int64_t keys = AttentionLength(recording, sequence);
  const std::int64_t queries = std::max<std::int64_t>(std::min(end, keys) - begin, 0);
  weights.resize(queries * keys);
  EvaluateAttention(recording, sequence, layer, head, quantity, begin, end, weights.data());
  const std::size_t top = std::min<std::int64_t>(options.top, keys);
  for (std::int64_t query = begin; query < end; ++query)
  {
    const float* row = weights.data() + (query - begin) * keys;
    const std::size_t first = links.size();
    for (std::int64_t key = 0; key < keys; ++key)
    {
      const float weight = row[key];
      if (weight > 0 && static_cast<double>(weight) >= options.minimumWeight)
      {
        Insert({ static_cast<std::int32_t>(query), static_cast<std::int32_t>(key), weight }, first,
          top, links);
      }
    }
  }
}

}
