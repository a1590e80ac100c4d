#pragma once

#include "Parallel.h"
#include "Progress.h"

#include <atomic>
#include <thread>

namespace atlas
{

/// ParallelFor with a report of progress: the fraction of bodies that are done, from the calling
/// thread, after each body that it ran and, as others may have run all, at the end. An exception of
/// the report, such as Canceled, ends the loop like an exception of a body.
inline void ParallelFor(std::int64_t count, int threads, const Progress& progress,
  const std::function<void(std::int64_t)>& body)
{
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<std::int64_t> done = 0;
  std::int64_t reported = 0;
  ParallelFor(count, threads,
    [&](std::int64_t i)
    {
      body(i);
      const std::int64_t all = ++done;
      if (std::this_thread::get_id() == caller)
      {
        reported = all;
        progress(all, count);
      }
    });
  if (reported < count)
  {
    progress(count, count);
  }
}

}
