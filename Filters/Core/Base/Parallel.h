#pragma once

#include <cstdint>
#include <functional>

namespace atlas
{

/// The number of processors that a process of this machine may use, at least 1: those of its
/// affinity mask, at most what its control groups allow (LimitsOfGroups, rounded up; read again
/// after a second). A rank that is bound to a core has 1, a container with 1.5 processors 2.
/// `process` is its id; 0: this process, and so also for one that is not there.
int ProcessorCount(int process = 0);

/// The number of threads meant by `threads`: itself, or ProcessorCount() for 0.
int ThreadCount(int threads);

/// Calls body(i) once for each 0 <= i < count, on up to ThreadCount(threads) threads, of which the
/// calling one is the first, and returns when all are done; on one thread in this order. The first
/// exception that a body throws is thrown again; bodies that have not begun by then are left out.
///
/// The other threads are those of one pool, which all calls share: it starts none before they are
/// needed, at most one less than the largest number asked for, and ends them with the library. They
/// are named "atlas-worker". Several threads may call at the same time; they share the pool, and
/// each goes on alone if it is busy. A call from within a body of a loop on several threads runs on
/// the thread of that body alone. After a fork the child has a pool of its own.
void ParallelFor(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

}
