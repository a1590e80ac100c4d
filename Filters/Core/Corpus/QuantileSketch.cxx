#include "QuantileSketch.h"

#include "Base/Error.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace atlas
{
namespace
{

const double Growth =
  std::log((1 + QuantileSketch::RelativeError) / (1 - QuantileSketch::RelativeError));

/// Bins of positive numbers.
std::int64_t Half()
{
  static const auto half = static_cast<std::int64_t>(
    std::ceil(std::log(QuantileSketch::Largest / QuantileSketch::Smallest) / Growth));
  return half;
}

/// The bin of a number, from -Half() to Half(); 0 is that of 0.
std::int64_t BinOf(double value)
{
  const double magnitude = std::abs(value);
  if (magnitude < QuantileSketch::Smallest)
  {
    return 0;
  }
  const double steps = std::floor(std::log(magnitude / QuantileSketch::Smallest) / Growth);
  const std::int64_t bin = 1 + std::min(static_cast<std::int64_t>(steps), Half() - 1);
  return value < 0 ? -bin : bin;
}

/// The number that has the same relative distance from both edges of a bin.
double ValueOf(std::int64_t bin)
{
  if (bin == 0)
  {
    return 0;
  }
  const double lower =
    QuantileSketch::Smallest * std::exp(Growth * static_cast<double>(std::abs(bin) - 1));
  const double middle = lower * (1 + QuantileSketch::RelativeError);
  return bin < 0 ? -middle : middle;
}

}

void QuantileSketch::Add(double value)
{
  this->Bins.resize(2 * Half() + 1);
  ++this->Bins[Half() + BinOf(value)];
}

void QuantileSketch::Add(const QuantileSketch& other)
{
  if (!other.Bins.empty())
  {
    this->Bins.resize(other.Bins.size());
    std::transform(
      other.Bins.begin(), other.Bins.end(), this->Bins.begin(), this->Bins.begin(), std::plus<>());
  }
}

std::int64_t QuantileSketch::Count() const
{
  return std::accumulate(this->Bins.begin(), this->Bins.end(), std::int64_t{ 0 });
}

double QuantileSketch::Quantile(double q) const
{
  const std::int64_t count = this->Count();
  if (count == 0)
  {
    return 0;
  }
  auto rank = static_cast<std::int64_t>(std::floor(q * static_cast<double>(count - 1)));
  std::int64_t bin = 0;
  while (rank >= this->Bins[bin])
  {
    rank -= this->Bins[bin];
    ++bin;
  }
  return ValueOf(bin - Half());
}

QuantileSketch QuantileSketch::FromBins(std::vector<std::int64_t> bins, const char* source)
{
  const std::size_t expected = 2 * Half() + 1;
  if ((!bins.empty() && bins.size() != expected) ||
      std::any_of(bins.begin(), bins.end(), [](std::int64_t count) { return count < 0; }))
  {
    throw FormatError(source, ": expected ", expected, " counts of a sketch, found ", bins.size(),
      " or a negative one.");
  }
  QuantileSketch sketch;
  sketch.Bins = std::move(bins);
  return sketch;
}

}
