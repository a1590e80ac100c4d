#pragma once

#include <cstdint>
#include <functional>

namespace atlas
{

/// The number of threads meant by `threads`: itself, or one per processor for 0. Without OpenMP in
/// the compiler: 1.
int ThreadCount(int threads);

/// Calls body(i) once for each 0 <= i < count, on up to `threads` threads (0: one per processor),
/// in no particular order, and returns when all are done. The first exception that a body throws is
/// thrown again; bodies that have not begun by then are left out.
void ParallelFor(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

}
