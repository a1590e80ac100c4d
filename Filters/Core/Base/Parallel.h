#pragma once

#include <cstdint>
#include <functional>

namespace atlas
{

/// The number of threads meant by `threads`: itself, or one per processor for 0.
int ThreadCount(int threads);

/// Calls body(i) once for each 0 <= i < count, on up to `threads` threads (0: one per processor),
/// of which the calling one is the first, and returns when all are done; on one thread in this
/// order. The first exception that a body throws is thrown again; bodies that have not begun by
/// then are left out.
void ParallelFor(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

}
