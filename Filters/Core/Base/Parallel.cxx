#include "Parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace atlas
{

int ThreadCount(int threads)
{
  return threads > 0 ? threads
                     : static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

void ParallelFor(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body)
{
  std::atomic<std::int64_t> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&]()
  {
    for (std::int64_t i = next++; i < count && !failed; i = next++)
    {
      try
      {
        body(i);
      }
      catch (...) // of any type: it must not leave its thread
      {
        const std::lock_guard<std::mutex> lock(mutex);
        error = error ? error : std::current_exception();
        failed = true;
      }
    }
  };
  const auto useful = std::min<std::int64_t>(ThreadCount(threads), count);
  std::vector<std::thread> helpers;
  try
  {
    for (std::int64_t i = 1; i < useful; ++i)
    {
      helpers.emplace_back(work);
    }
  }
  catch (const std::system_error&) // the system has no more: the others do the work
  {
  }
  work();
  for (std::thread& helper : helpers)
  {
    helper.join();
  }
  if (error)
  {
    std::rethrow_exception(error);
  }
}

}
