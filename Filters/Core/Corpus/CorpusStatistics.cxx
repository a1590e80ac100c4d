#include "CorpusStatistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

double Ratio(double sum, double count)
{
  return count > 0 ? sum / count : 0;
}

template<class List>
void AddEach(const List& from, List& to)
{
  for (std::size_t i = 0; i < from.size(); ++i)
  {
    to[i].Add(from[i]);
  }
}

template<class Item>
void AddLists(const std::vector<Item>& from, std::vector<Item>& to)
{
  to.resize(std::max(to.size(), from.size()));
  AddEach(from, to);
}

template<std::size_t Count>
void AddCounts(const std::array<std::int64_t, Count>& from, std::array<std::int64_t, Count>& to)
{
  std::transform(from.begin(), from.end(), to.begin(), to.begin(), std::plus<>());
}

constexpr std::array SumsOfVectors = { &CorpusHead::queryMoment, &CorpusHead::keyMoment,
  &CorpusHead::keySum, &CorpusHead::valueMoment, &CorpusHead::valueSum };

void AddTokens(const TokenAttention& from, TokenAttention& to)
{
  to.from.Add(from.from);
  to.fromDistance.Add(from.fromDistance);
  to.to.Add(from.to);
  to.toDistance.Add(from.toDistance);
}

/// Falling values; of equal ones, the first in the text.
bool IsBetter(const TopContext& a, const TopContext& b)
{
  return std::tie(b.value, a.document, a.begin) < std::tie(a.value, b.document, b.begin);
}

bool IsBefore(const CorpusSample& a, const CorpusSample& b)
{
  return std::tie(a.order, a.document, a.position) < std::tie(b.order, b.document, b.position);
}

/// Inserts an item into a sorted list of at most `most`.
template<class Item, class Less>
void Insert(std::vector<Item>& list, Item item, std::int64_t most, const Less& less)
{
  const std::size_t limit = most;
  if (limit == 0 || (list.size() == limit && !less(item, list.back())))
  {
    return;
  }
  list.insert(std::upper_bound(list.begin(), list.end(), item, less), std::move(item));
  if (list.size() > limit)
  {
    list.pop_back();
  }
}

void AddHead(const CorpusHead& from, CorpusHead& to)
{
  AddEach(from.sums, to.sums);
  AddCounts(from.counts, to.counts);
  AddEach(from.sketches, to.sketches);
  for (std::size_t i = 0; i < CorpusHistogramCount; ++i)
  {
    AddCounts(from.histograms[i], to.histograms[i]);
  }
  AddLists(from.distances, to.distances);
  for (const auto sums : SumsOfVectors)
  {
    AddLists(from.*sums, to.*sums);
  }
}

}

std::int64_t CorpusStatistics::KindOf(std::int64_t id)
{
  if (this->Kinds.empty())
  {
    for (std::size_t i = 0; i < this->ids.size(); ++i)
    {
      this->Kinds[this->ids[i]] = static_cast<std::int64_t>(i);
    }
  }
  const auto [found, isNew] = this->Kinds.emplace(id, static_cast<std::int64_t>(this->ids.size()));
  if (isNew)
  {
    this->ids.push_back(id);
    this->occurrences.push_back(0);
  }
  return found->second;
}

void CorpusStatistics::Keep(std::size_t head, ContextMeasure measure, TopContext context)
{
  Insert(this->heads[head].contexts[static_cast<std::size_t>(measure)], std::move(context),
    this->options.contexts, IsBetter);
}

void CorpusStatistics::Keep(std::size_t feature, TopContext context)
{
  Insert(this->features[feature].contexts, std::move(context), this->options.contexts, IsBetter);
}

void CorpusStatistics::Keep(CorpusSample sample)
{
  Insert(this->samples, std::move(sample), this->options.samples, IsBefore);
}

void CorpusStatistics::Add(const CorpusStatistics& other)
{
  std::vector<std::int64_t> kinds;
  for (std::size_t i = 0; i < other.ids.size(); ++i)
  {
    kinds.push_back(this->KindOf(other.ids[i]));
    this->occurrences[kinds.back()] += other.occurrences[i];
    if (!other.texts.empty())
    {
      this->texts.resize(this->ids.size());
      this->texts[kinds.back()] = other.texts[i];
    }
  }
  this->heads.resize(other.heads.size());
  for (std::size_t h = 0; h < other.heads.size(); ++h)
  {
    const CorpusHead& from = other.heads[h];
    AddHead(from, this->heads[h]);
    this->heads[h].tokens.resize(this->ids.size());
    for (std::size_t i = 0; i < from.tokens.size(); ++i)
    {
      AddTokens(from.tokens[i], this->heads[h].tokens[kinds[i]]);
    }
    for (std::size_t m = 0; m < ContextMeasureCount; ++m)
    {
      for (const TopContext& context : from.contexts[m])
      {
        this->Keep(h, static_cast<ContextMeasure>(m), context);
      }
    }
  }
  AddLists(other.products, this->products);
  for (const CorpusSample& sample : other.samples)
  {
    this->Keep(sample);
  }
  this->features.resize(other.features.size());
  for (std::size_t f = 0; f < other.features.size(); ++f)
  {
    this->features[f].active += other.features[f].active;
    for (const TopContext& context : other.features[f].contexts)
    {
      this->Keep(f, context);
    }
  }
  this->featureTokens += other.featureTokens;
  this->documents += other.documents;
  this->windows += other.windows;
  this->tokens += other.tokens;
  this->SortKinds();
}

void CorpusStatistics::ForgetSums()
{
  const auto clear = [](auto& sums) { sums.assign(sums.size(), {}); };
  for (CorpusHead& head : this->heads)
  {
    CorpusHead empty;
    empty.scoreScale = head.scoreScale;
    empty.distances.resize(head.distances.size());
    for (const auto sums : SumsOfVectors)
    {
      empty.*sums = std::move(head.*sums);
      clear(empty.*sums);
    }
    head = std::move(empty);
  }
  clear(this->products);
  clear(this->features);
  this->ids.clear();
  this->texts.clear();
  this->occurrences.clear();
  this->samples.clear();
  this->Kinds.clear();
  this->documents = this->windows = this->tokens = this->featureTokens = 0;
}

void CorpusStatistics::SortKinds()
{
  std::vector<std::size_t> order(this->ids.size());
  std::iota(order.begin(), order.end(), std::size_t{ 0 });
  std::sort(order.begin(), order.end(),
    [this](std::size_t a, std::size_t b) { return this->ids[a] < this->ids[b]; });
  const auto sorted = [&order](const auto& list)
  {
    auto result = list;
    for (std::size_t i = 0; i < list.size(); ++i)
    {
      result[i] = list[order[i]];
    }
    return result;
  };
  for (CorpusHead& head : this->heads)
  {
    head.tokens.resize(this->ids.size());
    head.tokens = sorted(head.tokens);
  }
  if (!this->texts.empty())
  {
    this->texts.resize(this->ids.size());
    this->texts = sorted(this->texts);
  }
  this->occurrences = sorted(this->occurrences);
  this->ids = sorted(this->ids);
  this->Kinds.clear();
}

double CorpusValue(const CorpusHead& head, const CorpusColumn& column)
{
  const double attention = head.Sum(CorpusSum::Attention);
  switch (column.sum)
  {
    case CorpusSum::Previous:
      return Ratio(head.Sum(column.sum), attention - head.Sum(CorpusSum::FirstAttention));
    case CorpusSum::Duplicate:
    case CorpusSum::Induction:
      return Ratio(head.Sum(column.sum), attention);
    default:
      return Ratio(head.Sum(column.sum), static_cast<double>(head.Count(column.count)));
  }
}

double MeanDistance(const CorpusHead& head)
{
  double sum = 0;
  double all = 0;
  for (std::size_t d = 0; d < head.distances.size(); ++d)
  {
    sum += static_cast<double>(d) * head.distances[d].Value();
    all += head.distances[d].Value();
  }
  return Ratio(sum, all);
}

double MedianDistance(const CorpusHead& head)
{
  double all = 0;
  for (const WeightSum& sum : head.distances)
  {
    all += sum.Value();
  }
  double part = 0;
  std::size_t d = 0;
  while (d + 1 < head.distances.size() && part + head.distances[d].Value() < all / 2)
  {
    part += head.distances[d].Value();
    ++d;
  }
  return static_cast<double>(d);
}

Eigen::MatrixXd Agreement(const CorpusStatistics& statistics)
{
  const auto count = static_cast<Eigen::Index>(statistics.heads.size());
  if (statistics.products.empty())
  {
    return {};
  }
  const auto product = [&](Eigen::Index g, Eigen::Index h)
  { return statistics.products[std::max(g, h) * count + std::min(g, h)].Value(); };
  return Eigen::MatrixXd::NullaryExpr(count, count, [&](Eigen::Index g, Eigen::Index h)
    { return g == h ? 1. : Ratio(product(g, h), std::sqrt(product(g, g) * product(h, h))); });
}

}
