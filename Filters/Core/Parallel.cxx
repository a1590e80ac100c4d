#include "Parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

namespace atlas
{

int ThreadCount(int threads)
{
#ifdef _OPENMP
  return threads > 0 ? threads
                     : static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
#else
  static_cast<void>(threads);
  return 1;
#endif
}

void ParallelFor(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body)
{
#ifdef _OPENMP
  std::atomic<bool> failed = false;
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic) num_threads(ThreadCount(threads)) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i)
  {
    if (failed)
    {
      continue;
    }
    try
    {
      body(i);
    }
    catch (...) // of any type: it must not leave its thread
    {
      if (!failed.exchange(true))
      {
        error = std::current_exception();
      }
    }
  }
  if (error)
  {
    std::rethrow_exception(error);
  }
#else
  static_cast<void>(threads);
  for (std::int64_t i = 0; i < count; ++i)
  {
    body(i);
  }
#endif
}

}
