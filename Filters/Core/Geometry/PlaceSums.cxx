#include "PlaceSums.h"

#include "Internal/PlaceSteps.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace atlas
{
namespace
{

constexpr std::int64_t Columns = 5;
/// The most bits of a summand, and those that a sum of double precision holds exactly.
constexpr int MaximumBits = 40;
constexpr int ExactBits = 53;

/// The smallest power of two that is at least a number; 1 for 0.
double PowerOver(double number)
{
  int exponent = 0;
  std::frexp(number, &exponent);
  return number > 0 ? std::ldexp(1.0, exponent) : 1;
}

}

PlaceSums::PlaceSums(std::int64_t tokens, const PlaceLimits& limits)
  : Tokens(tokens)
  , Bits(std::min(MaximumBits, 62 - static_cast<int>(std::ceil(std::log2(static_cast<double>(
                                      std::max<std::int64_t>(limits.places, 2)))))))
  , One(std::ldexp(1.0, this->Bits))
  , LengthScale(PowerOver(limits.length))
  , WeightScale(PowerOver(limits.weight))
  , WeightUnit(this->WeightScale / this->One)
  , PlaceUnit(1 / this->One)
  , Sums((tokens + 1) * Columns, 0)
{
}

void PlaceSums::AddPlace(const BoundPlaces& places, std::int64_t place, const double* position,
  std::vector<std::int64_t>& sums) const
{
  const auto add = [&](std::int64_t row, double weight)
  {
    std::int64_t* sum = sums.data() + row * Columns;
    ++sum[0];
    sum[1] += std::llrint(weight * this->One);
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      sum[2 + axis] += std::llrint(weight * (position[axis] / this->LengthScale) * this->One);
    }
  };
  add(this->Tokens, 1);
  for (std::int64_t entry = 0; entry < places.width; ++entry)
  {
    const std::int64_t token = places.TokenOf(place, entry);
    const auto weight = static_cast<double>(places.WeightOf(place, entry));
    if (token != NoToken && weight != 0)
    {
      add(token, weight / this->WeightScale);
    }
  }
}

/// The same for places begin <= i < end of dense slices. Numbers that are rounded to multiples of
/// the unit add up exactly in double precision as long as they are few.
void PlaceSums::AddSlices(const BoundPlaces& places, const PositionOf& positionOf,
  const std::uint8_t* left, std::int64_t begin, std::int64_t end,
  std::vector<std::int64_t>& sums) const
{
  const std::int64_t width = places.width;
  const double rounding = std::ldexp(1.5, ExactBits - 1 - this->Bits);
  std::vector<double> some(width * Columns, 0); // by column
  const auto addTo = [&](double* column, double factor, const float* weights)
  {
    for (std::int64_t s = 0; s < width; ++s)
    {
      const double value = static_cast<double>(weights[s]) * factor;
      column[s] += (value + rounding) - rounding;
    }
  };
  std::array<double, 3> position;
  const BoundPlaces none = { 1, 0, nullptr, nullptr, 0 };
  for (std::int64_t place = begin; place < end; ++place)
  {
    if (left != nullptr && left[place] != 0)
    {
      continue;
    }
    positionOf(place, position.data());
    this->AddPlace(none, 0, position.data(), sums); // to the sum of all
    const float* weights = places.weights + place * width;
    for (std::int64_t s = 0; s < width; ++s)
    {
      some[s] += weights[s] != 0 ? 1 : 0;
    }
    const double scale = 1 / this->WeightScale;
    addTo(some.data() + width, scale, weights);
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      addTo(
        some.data() + (2 + axis) * width, scale * (position[axis] / this->LengthScale), weights);
    }
  }
  for (std::int64_t s = 0; s < width; ++s)
  {
    std::int64_t* sum = sums.data() + (places.firstToken + s) * Columns;
    sum[0] += std::llrint(some[s]);
    for (std::int64_t column = 1; column < Columns; ++column)
    {
      sum[column] += std::llrint(some[column * width + s] * this->One);
    }
  }
}

void PlaceSums::Add(const BoundPlaces& places, const PositionOf& positionOf,
  const std::uint8_t* left, int threads, const Progress& progress)
{
  const std::int64_t perBlock = std::int64_t{ 1 } << static_cast<unsigned>(ExactBits - this->Bits);
  const bool isDense = places.tokens == nullptr;
  const int parts = ThreadCount(threads);
  std::vector<std::vector<std::int64_t>> ofParts(
    parts, std::vector<std::int64_t>(this->Sums.size(), 0));
  ForPlaces(places.count, places.width, parts, progress,
    [&](std::int64_t part, std::int64_t begin, std::int64_t end)
    {
      std::array<double, 3> position;
      for (std::int64_t place = begin; place < end;)
      {
        if (isDense)
        {
          const std::int64_t next = std::min(place + perBlock, end);
          this->AddSlices(places, positionOf, left, place, next, ofParts[part]);
          place = next;
          continue;
        }
        if (left == nullptr || left[place] == 0)
        {
          positionOf(place, position.data());
          this->AddPlace(places, place, position.data(), ofParts[part]);
        }
        ++place;
      }
    });
  for (const std::vector<std::int64_t>& sums : ofParts)
  {
    this->AddNumbers(sums.data());
  }
}

void PlaceSums::Add(
  const BoundPlaces& places, const PositionOf& positionOf, const std::vector<std::int64_t>& chosen)
{
  std::array<double, 3> position;
  for (const std::int64_t place : chosen)
  {
    positionOf(place, position.data());
    this->AddPlace(places, place, position.data(), this->Sums);
  }
}

void PlaceSums::AddNumbers(const std::int64_t* others)
{
  std::transform(
    this->Sums.begin(), this->Sums.end(), others, this->Sums.begin(), std::plus<std::int64_t>());
}

TokenPlaces PlaceSums::Row(std::int64_t row, double unit) const
{
  const std::int64_t* sum = this->Sums.data() + row * Columns;
  TokenPlaces found;
  found.places = sum[0];
  found.weight = static_cast<double>(sum[1]) * unit;
  found.hasCenter = sum[1] != 0;
  for (std::size_t axis = 0; axis < 3 && found.hasCenter; ++axis)
  {
    found.center[axis] =
      static_cast<double>(sum[2 + axis]) / static_cast<double>(sum[1]) * this->LengthScale;
  }
  return found;
}

}
