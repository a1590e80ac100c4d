#include "SpatialAttention.h"

#include "Base/Error.h"
#include "Base/Parallel.h"
#include "Numerics/Lanes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace atlas
{
namespace
{

/// Places that a thread evaluates at a time.
constexpr std::int64_t PlacesPerPart = std::int64_t{ 1 } << 14U;

void RequireTokensOf(const Recording& recording, const SpatialOptions& options)
{
  const std::int64_t tokens = RequireTokens(recording, options.sequence);
  ThrowIf<OptionError>(options.query.empty(),
    "query: expected at least one token, found none; the chosen places have none.");
  KeyRange range = { 0, tokens };
  if (options.direction == SpatialDirection::From)
  {
    range = QueryPositions(recording, options.sequence);
  }
  else if (options.direction == SpatialDirection::To)
  {
    range = KeyPositions(recording, options.sequence);
  }
  for (const TokenShare& one : options.query)
  {
    ThrowIf<OptionError>(!range.Has(one.token), "query: expected tokens from ", range.begin, " to ",
      range.end - 1, ", found ", one.token, ".");
  }
}

/// The sum of the rows of the query's tokens by their shares.
std::vector<float> EvaluateFrom(
  const Recording& recording, const SpatialOptions& options, AttentionRows rows)
{
  const TokenMix& query = options.query;
  const std::int64_t tokens = AttentionLength(recording, options.sequence);
  const std::int64_t step = QueriesAtOnce(tokens); // all of up to 4,096, as Rollout prefers
  std::vector<double> sums(tokens, 0);
  std::vector<float> values;
  for (auto first = query.begin(); first != query.end();)
  {
    const std::int64_t end = (first->token / step + 1) * step;
    const auto last =
      std::find_if(first, query.end(), [end](const TokenShare& one) { return one.token >= end; });
    rows.begin = first->token;
    rows.end = (last - 1)->token + 1;
    values.resize((rows.end - rows.begin) * tokens);
    EvaluateAttentionRows(recording, rows, values.data(), options.threads,
      options.progress.Part(
        first - query.begin(), last - query.begin(), static_cast<std::ptrdiff_t>(query.size())));
    for (; first != last; ++first)
    {
      const float* row = values.data() + (first->token - rows.begin) * tokens;
      for (std::int64_t token = 0; token < tokens; ++token)
      {
        sums[token] += first->share * static_cast<double>(row[token]);
      }
    }
  }
  return { sums.begin(), sums.end() };
}

/// The sum of the columns of the query's tokens by their shares.
std::vector<float> EvaluateTo(
  const Recording& recording, const SpatialOptions& options, AttentionRows rows)
{
  const std::int64_t tokens = AttentionLength(recording, options.sequence);
  const KeyRange queries = QueryPositions(recording, options.sequence);
  rows.begin = queries.begin;
  rows.end = queries.end;
  std::vector<float> found(tokens, 0);
  const auto use = [&](std::int64_t begin, std::int64_t end, const float* values)
  {
    for (std::int64_t i = begin; i < end; ++i, values += tokens)
    {
      double sum = 0;
      for (const TokenShare& one : options.query)
      {
        sum += one.share * static_cast<double>(values[one.token]);
      }
      found[i] = static_cast<float>(sum);
    }
  };
  EvaluateAttentionBlocks(recording, rows, use, options.threads, options.progress);
  return found;
}

/// The first slices of the groups of LaneCount slices whose values are not all 0. The others add
/// nothing to a place, and their weights need not be read.
std::vector<std::int64_t> GroupsWithValues(const float* values, std::int64_t width)
{
  std::vector<std::int64_t> groups;
  for (std::int64_t s = 0; s + LaneCount <= width; s += LaneCount)
  {
    if (std::any_of(values + s, values + s + LaneCount, [](float value) { return value != 0; }))
    {
      groups.push_back(s);
    }
  }
  return groups;
}

/// The value of a place with weights of all slices: in lanes, whose sums are added in the end.
float MixOfSlices(const float* weights, const float* values, std::int64_t width,
  const std::vector<std::int64_t>& groups)
{
  Lanes sum = Lanes::Zero();
  for (const std::int64_t s : groups)
  {
    sum += Eigen::Map<const Lanes>(weights + s) * Eigen::Map<const Lanes>(values + s);
  }
  float rest = 0;
  for (std::int64_t s = width / LaneCount * LaneCount; s < width; ++s)
  {
    rest += weights[s] * values[s];
  }
  return sum.sum() + rest;
}

float MixOfTokens(const BoundPlaces& places, std::int64_t place, const std::vector<float>& ofTokens)
{
  float sum = 0;
  for (std::int64_t entry = 0; entry < places.width; ++entry)
  {
    const std::int64_t token = places.TokenOf(place, entry);
    sum += token == NoToken ? 0 : places.WeightOf(place, entry) * ofTokens[token];
  }
  return sum;
}

}

TokenMix MixOf(const PlaceSums& chosen, bool hasSlices)
{
  TokenMix query;
  double all = 0;
  for (std::int64_t token = 0; token < chosen.TokenCount(); ++token)
  {
    const double weight = chosen.Of(token).weight;
    if (weight != 0)
    {
      query.push_back({ token, weight });
      all += weight;
    }
  }
  const double places = hasSlices ? static_cast<double>(chosen.OfAll().places) : all;
  for (TokenShare& one : query)
  {
    one.share /= places;
  }
  return query;
}

TokenMix Shifted(const TokenMix& query, std::int64_t tokens)
{
  TokenMix shifted = query;
  for (TokenShare& one : shifted)
  {
    one.token += tokens;
  }
  return shifted;
}

std::vector<float> EvaluateSpatialAttention(
  const Recording& recording, const SpatialOptions& options)
{
  RequireTokensOf(recording, options);
  const AttentionRows rows = { options.sequence, options.layer, options.head, options.quantity, 0,
    0 };
  EvaluateAttentionRows(recording, rows, nullptr, options.threads); // checks the place
  switch (options.direction)
  {
    case SpatialDirection::From:
      return EvaluateFrom(recording, options, rows);
    case SpatialDirection::To:
      return EvaluateTo(recording, options, rows);
    case SpatialDirection::Holds:
      break;
  }
  std::vector<float> found(AttentionLength(recording, options.sequence), 0);
  for (const TokenShare& one : options.query)
  {
    found[one.token] = static_cast<float>(one.share);
  }
  return found;
}

void DivideByPlaces(const PlaceSums& places, std::vector<float>& ofTokens)
{
  for (std::size_t token = 0; token < ofTokens.size(); ++token)
  {
    const double weight = places.Of(static_cast<std::int64_t>(token)).weight;
    if (weight != 0)
    {
      ofTokens[token] = static_cast<float>(static_cast<double>(ofTokens[token]) / weight);
    }
  }
}

void SpreadOverPlaces(
  const BoundPlaces& places, const std::vector<float>& ofTokens, float* values, int threads)
{
  const std::int64_t parts = (places.count + PlacesPerPart - 1) / PlacesPerPart;
  const bool isDense = places.tokens == nullptr;
  const float* ofSlices = ofTokens.data() + places.firstToken;
  const std::vector<std::int64_t> groups =
    isDense ? GroupsWithValues(ofSlices, places.width) : std::vector<std::int64_t>();
  ParallelFor(parts, threads,
    [&](std::int64_t part)
    {
      const std::int64_t begin = part * PlacesPerPart;
      const std::int64_t end = std::min(begin + PlacesPerPart, places.count);
      for (std::int64_t place = begin; place < end; ++place)
      {
        values[place] = isDense ? MixOfSlices(places.weights + place * places.width, ofSlices,
                                    places.width, groups)
                                : MixOfTokens(places, place, ofTokens);
      }
    });
}

std::vector<std::int64_t> LargestTokens(const std::vector<float>& ofTokens, std::int64_t count)
{
  std::vector<std::int64_t> tokens;
  for (std::size_t token = 0; token < ofTokens.size(); ++token)
  {
    if (ofTokens[token] != 0)
    {
      tokens.push_back(static_cast<std::int64_t>(token));
    }
  }
  const auto shown =
    std::min(std::max<std::int64_t>(count, 0), static_cast<std::int64_t>(tokens.size()));
  const auto isBefore = [&](std::int64_t a, std::int64_t b)
  {
    const float sizeOfA = std::abs(ofTokens[a]);
    const float sizeOfB = std::abs(ofTokens[b]);
    return sizeOfA != sizeOfB ? sizeOfA > sizeOfB : a < b;
  };
  std::partial_sort(tokens.begin(), tokens.begin() + shown, tokens.end(), isBefore);
  tokens.resize(shown);
  return tokens;
}

}
