#pragma once

#include "Base/Parallel.h"

#include <algorithm>
#include <cstdint>

namespace atlas
{

/// How many blocks of `size` numbers there are among `count`; the last may be shorter.
constexpr std::int64_t BlockCount(std::int64_t count, std::int64_t size)
{
  return (count + size - 1) / size;
}

/// Calls body(begin, end) once for each block of numbers below `count`, as ParallelFor does.
template<class Body>
void ForBlocks(std::int64_t count, std::int64_t size, int threads, const Body& body)
{
  ParallelFor(BlockCount(count, size), threads,
    [&](std::int64_t block) { body(block * size, std::min((block + 1) * size, count)); });
}

}
