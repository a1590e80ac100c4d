#pragma once

#include "Base/Parallel.h"
#include "Geometry/PlaceBinding.h"

#include <algorithm>
#include <cstdint>

namespace atlas
{

/// Calls body(part, begin, end) for ranges that cover all places, on several threads: those of one
/// part, 0 <= part < ThreadCount(threads), one after the other. Reports progress every few
/// milliseconds.
template<class Body>
void ForPlaces(
  std::int64_t count, std::int64_t width, int threads, const Progress& progress, const Body& body)
{
  constexpr std::int64_t entriesPerReport = std::int64_t{ 1 } << 22U;
  constexpr std::int64_t ofPosition = 8; // checking a position takes as long as 8 entries
  const std::int64_t parts = ThreadCount(threads);
  const std::int64_t step = std::max(entriesPerReport / (width + ofPosition), parts);
  for (std::int64_t done = 0; done < count; done += step)
  {
    const std::int64_t places = std::min(step, count - done);
    ParallelFor(parts, threads, [&](std::int64_t part)
      { body(part, done + places * part / parts, done + places * (part + 1) / parts); });
    progress(done + places, count);
  }
}

}
