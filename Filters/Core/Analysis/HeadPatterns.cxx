#include "HeadPatterns.h"

#include "Numerics/Lanes.h"

#include <algorithm>
#include <map>
#include <string>

namespace atlas
{
namespace
{

/// The last earlier place of each item of a list, or -1.
template<class Item>
std::vector<std::int64_t> EarlierPlaces(const Item* items, std::int64_t count)
{
  std::map<Item, std::int64_t> last;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i)
  {
    const auto [found, isNew] = last.emplace(items[i], i);
    places.push_back(isNew ? -1 : found->second);
    found->second = i;
  }
  return places;
}

/// The smallest P such that items[i] = items[i - P] for all i >= P, if 2 P <= count; else 0. By the
/// failure function of Knuth, Morris and Pratt: the longest beginning that is also an end.
template<class Item>
std::int64_t PeriodOf(const Item* items, std::int64_t count)
{
  std::vector<std::int64_t> border(count);
  for (std::int64_t i = 1; i < count; ++i)
  {
    std::int64_t length = border[i - 1];
    while (length > 0 && !(items[length] == items[i]))
    {
      length = border[length - 1];
    }
    border[i] = items[length] == items[i] ? length + 1 : 0;
  }
  const std::int64_t period = count > 0 ? count - border.back() : 0;
  return 2 * period <= count ? period : 0;
}

/// Adds the pair of a query and a key that are in a pattern.
void AddPair(PatternSums::Sums& sums, float weight, bool isExcluded)
{
  if (!isExcluded)
  {
    sums.attention += static_cast<double>(weight);
    ++sums.pairs;
  }
}

void AddStripe(PatternSums::Sums& sums, float weight)
{
  sums.stripe += static_cast<double>(weight);
  ++sums.stripes;
}

double Ratio(double sum, double count)
{
  return count > 0 ? sum / count : 0;
}

}

RepeatedTokens::RepeatedTokens(const Recording& recording, std::int64_t sequence)
{
  RequireOneSequence(recording, sequence);
  const std::int64_t length = AttentionLength(recording, sequence);
  const std::int64_t first = recording.sequenceOffsets[sequence];
  const auto find = [&](const auto* items)
  {
    this->Known = true;
    this->Previous = EarlierPlaces(items, length);
    this->BlockLength = PeriodOf(items, length);
    if (this->BlockLength == 0 && length > 0)
    {
      this->BlockLength = PeriodOf(items + 1, length - 1);
      this->BlockBegin = this->BlockLength > 0 ? 1 : 0;
    }
  };
  const std::vector<std::int64_t>& ids = recording.tokens.id;
  const std::vector<std::string>& texts = recording.tokens.text;
  const bool isCross = recording.mask == AttentionMask::Cross;
  const bool isSound =
    isCross && std::any_of(ids.begin(), ids.end(), [](std::int64_t id) { return id < 0; });
  if (isSound || (ids.empty() && texts.empty()))
  {
    this->Previous.assign(length, -1);
  }
  else if (ids.empty() || (isCross && !texts.empty()))
  {
    find(texts.data() + first);
  }
  else
  {
    find(ids.data() + first);
  }
}

void PatternSums::Add(const PatternSums& other)
{
  this->queries += other.queries;
  this->attention += other.attention;
  this->firstQueries += other.firstQueries;
  this->firstAttention += other.firstAttention;
  for (std::size_t p = 0; p < HeadPatternCount; ++p)
  {
    this->patterns[p].attention += other.patterns[p].attention;
    this->patterns[p].pairs += other.patterns[p].pairs;
    this->patterns[p].stripe += other.patterns[p].stripe;
    this->patterns[p].stripes += other.patterns[p].stripes;
  }
  this->prefix += other.prefix;
  this->prefixQueries += other.prefixQueries;
  this->sink += other.sink;
  this->sinkQueries += other.sinkQueries;
}

void PatternSums::AddQuery(const float* row, std::int64_t query, std::int64_t keys,
  const RepeatedTokens& tokens, const PatternOptions& options)
{
  auto& [previousToken, duplicate, induction] = this->patterns;
  const auto isExcluded = [&](std::int64_t key)
  { return (options.excludeFirst && key == 0) || (options.excludeCurrent && key == query); };
  double all = SumOf(keys, row);
  all -= options.excludeFirst ? static_cast<double>(row[0]) : 0;
  all -= options.excludeCurrent && !(options.excludeFirst && query == 0)
           ? static_cast<double>(row[query])
           : 0;
  this->attention += all;
  this->firstAttention += query == 0 ? all : 0;
  this->firstQueries += query == 0 ? 1 : 0;
  ++this->queries;
  if (query > 0)
  {
    AddPair(previousToken, row[query - 1], isExcluded(query - 1));
    AddStripe(previousToken, row[query - 1]);
    this->sink += static_cast<double>(row[0]);
    ++this->sinkQueries;
  }
  this->prefixQueries += tokens.Before(query) >= 0 ? 1 : 0;
  for (std::int64_t same = tokens.Before(query); same >= 0; same = tokens.Before(same))
  {
    AddPair(duplicate, row[same], isExcluded(same));
    AddPair(induction, row[same + 1], isExcluded(same + 1));
    this->prefix += static_cast<double>(row[same + 1]);
  }
  const std::int64_t period = tokens.Period();
  if (period > 0 && query >= tokens.First() + period)
  {
    AddStripe(duplicate, row[query - period]);
    AddStripe(induction, row[query - period + 1]);
  }
}

void PatternSums::AddCrossQuery(const float* row, std::int64_t query, std::int64_t sources,
  const RepeatedTokens& tokens, const PatternOptions& options)
{
  this->attention += SumOf(sources, row) - (options.excludeFirst ? static_cast<double>(row[0]) : 0);
  ++this->queries;
  this->sink += static_cast<double>(row[0]);
  ++this->sinkQueries;
  PatternSums::Sums& duplicate =
    this->patterns[static_cast<std::size_t>(HeadPattern::DuplicateToken)];
  for (std::int64_t same = tokens.Before(query); same >= 0; same = tokens.Before(same))
  {
    if (same < sources)
    {
      AddPair(duplicate, row[same], options.excludeFirst && same == 0);
    }
  }
}

double PatternSums::Score(HeadPattern pattern, PatternMeasure measure) const
{
  const Sums& sums = this->patterns.at(static_cast<std::size_t>(pattern));
  const bool isPrevious = pattern == HeadPattern::PreviousToken;
  const double all = this->attention - (isPrevious ? this->firstAttention : 0);
  const std::int64_t count = this->queries - (isPrevious ? this->firstQueries : 0);
  switch (measure)
  {
    case PatternMeasure::Mul:
      return Ratio(sums.attention, all);
    case PatternMeasure::Abs:
    {
      // As A is from 0 to 1, |A - D| is A outside the pattern and 1 - A in it.
      const double difference = all - 2 * sums.attention + static_cast<double>(sums.pairs);
      return count > 0 ? 1 - difference / static_cast<double>(count) : 0;
    }
    case PatternMeasure::Stripe:
      break;
  }
  return Ratio(sums.stripe, static_cast<double>(sums.stripes));
}

double PatternSums::PrefixMatching() const
{
  return Ratio(this->prefix, static_cast<double>(this->prefixQueries));
}

double PatternSums::Sink() const
{
  return Ratio(this->sink, static_cast<double>(this->sinkQueries));
}

PatternSums MeasurePatterns(const Recording& recording, const RepeatedTokens& tokens,
  std::int64_t sequence, std::int64_t layer, std::int64_t head, std::int64_t begin,
  std::int64_t end, const PatternOptions& options, std::vector<float>& work)
{
  const auto quantity = AttentionQuantity::Weights;
  EvaluateAttention(recording, sequence, layer, head, quantity, 0, 0, nullptr); // checks the place
  const std::int64_t keys = AttentionLength(recording, sequence);
  work.resize(std::max<std::int64_t>(std::min(end, keys) - begin, 0) * keys);
  EvaluateAttention(recording, sequence, layer, head, quantity, begin, end, work.data());
  const bool isCross = recording.mask == AttentionMask::Cross;
  const std::int64_t sources = KeyPositions(recording, sequence).end;
  PatternSums sums;
  for (std::int64_t query = begin; query < end; ++query)
  {
    const float* row = work.data() + (query - begin) * keys;
    if (!isCross)
    {
      sums.AddQuery(row, query, keys, tokens, options);
    }
    else if (sources > 0)
    {
      sums.AddCrossQuery(row, query, sources, tokens, options);
    }
  }
  return sums;
}

}
