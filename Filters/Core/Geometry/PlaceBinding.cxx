#include "PlaceBinding.h"

#include "Base/Error.h"
#include "Internal/PlaceSteps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

namespace atlas
{
namespace
{

void CheckWidth(const BoundPlaces& places, std::int64_t tokens, const std::string& source)
{
  ThrowIf<OptionError>(places.tokens == nullptr && places.count > 0 &&
                         (places.firstToken < 0 || places.firstToken + places.width > tokens),
    source, ": expected weights of at most ", std::max<std::int64_t>(tokens - places.firstToken, 0),
    " slices, one per token from ", places.firstToken, " on, found ", places.width, ".");
}

void CheckTokens(const BoundPlaces& places, std::int64_t begin, std::int64_t end,
  std::int64_t tokens, const std::string& source)
{
  if (places.tokens == nullptr)
  {
    return;
  }
  const std::int32_t* first = places.tokens + begin * places.width;
  const std::int32_t* last = places.tokens + end * places.width;
  const std::int32_t* wrong = std::find_if(
    first, last, [tokens](std::int32_t token) { return token < NoToken || token >= tokens; });
  if (wrong != last)
  {
    throw OptionError(source, ": expected tokens from 0 to ", tokens - 1,
      ", or -1 for none, found ", *wrong, " at place ", (wrong - places.tokens) / places.width,
      ".");
  }
}

double LargestWeight(
  const BoundPlaces& places, std::int64_t begin, std::int64_t end, const std::string& source)
{
  if (places.weights == nullptr)
  {
    return 1;
  }
  float largest = 0;
  for (std::int64_t place = begin; place < end; ++place)
  {
    const float* row = places.weights + place * places.width;
    float ofRow = 0;
    bool isFinite = true;
    for (std::int64_t s = 0; s < places.width; ++s)
    {
      const float size = std::abs(row[s]);
      isFinite = isFinite && size <= std::numeric_limits<float>::max();
      ofRow = std::max(ofRow, size);
    }
    ThrowIf<OptionError>(
      !isFinite, source, ": expected finite weights, found others at place ", place, ".");
    largest = std::max(largest, ofRow);
  }
  return static_cast<double>(largest);
}

double LargestCoordinate(
  std::int64_t begin, std::int64_t end, const PositionOf& positionOf, const std::string& source)
{
  double largest = 0;
  std::array<double, 3> position;
  for (std::int64_t place = begin; place < end; ++place)
  {
    positionOf(place, position.data());
    for (const double x : position)
    {
      ThrowIf<OptionError>(!std::isfinite(x), source, ": expected finite positions, found ", x,
        " at place ", place, ".");
      largest = std::max(largest, std::abs(x));
    }
  }
  return largest;
}

}

void PlaceLimits::Add(const PlaceLimits& other)
{
  this->length = std::max(this->length, other.length);
  this->weight = std::max(this->weight, other.weight);
  this->places += other.places;
}

PlaceLimits CheckPlaces(const BoundPlaces& places, const PositionOf& positionOf,
  std::int64_t tokens, const std::string& source, int threads, const Progress& progress)
{
  CheckWidth(places, tokens, source);
  PlaceLimits limits;
  std::mutex mutex;
  ForPlaces(places.count, places.width, threads, progress,
    [&](std::int64_t /*part*/, std::int64_t begin, std::int64_t end)
    {
      CheckTokens(places, begin, end, tokens, source);
      const PlaceLimits part = { LargestCoordinate(begin, end, positionOf, source),
        LargestWeight(places, begin, end, source), end - begin };
      const std::lock_guard<std::mutex> lock(mutex);
      limits.Add(part);
    });
  return limits;
}

void RequireFinite(std::int64_t count, const PositionOf& positionOf, const std::string& source,
  int threads, const Progress& progress)
{
  ForPlaces(count, 0, threads, progress,
    [&](std::int64_t /*part*/, std::int64_t begin, std::int64_t end)
    { LargestCoordinate(begin, end, positionOf, source); });
}

std::int64_t PatchLattice::PatchAt(const double* position) const
{
  std::int64_t patch = 0;
  for (std::size_t axis = 3; axis-- > 0;)
  {
    const double at = (position[axis] - this->origin[axis]) / this->size[axis];
    const auto count = static_cast<double>(this->counts[axis]);
    if (!(at >= 0 && at <= count))
    {
      return NoToken;
    }
    const auto index = static_cast<std::int64_t>(at);
    patch = patch * this->counts[axis] + std::min(index, this->counts[axis] - 1);
  }
  return patch;
}

void CheckLattice(const PatchLattice& lattice, std::int64_t tokens)
{
  double patches = 1;
  for (std::size_t axis = 0; axis < 3; ++axis)
  {
    const double size = lattice.size[axis];
    ThrowIf<OptionError>(!(size > 0) || !std::isfinite(size),
      "PatchSize: expected numbers above 0, found ", size, ".");
    ThrowIf<OptionError>(!std::isfinite(lattice.origin[axis]),
      "GridOrigin: expected finite numbers, found ", lattice.origin[axis], ".");
    ThrowIf<OptionError>(lattice.counts[axis] < 1,
      "PatchCounts: expected numbers of at least 1, found ", lattice.counts[axis], ".");
    patches *= static_cast<double>(lattice.counts[axis]);
  }
  ThrowIf<OptionError>(patches > static_cast<double>(tokens), "PatchCounts: expected at most ",
    tokens, " patches, one per token, found ", lattice.counts[0], " x ", lattice.counts[1], " x ",
    lattice.counts[2], ".");
}

std::vector<Residue> DistinctResidues(std::vector<Residue> residues)
{
  std::sort(residues.begin(), residues.end());
  residues.erase(std::unique(residues.begin(), residues.end()), residues.end());
  return residues;
}

std::int64_t NumberOf(const std::vector<Residue>& distinct, const Residue& residue)
{
  return std::lower_bound(distinct.begin(), distinct.end(), residue) - distinct.begin();
}

}
