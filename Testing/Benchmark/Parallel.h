#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

namespace atlas::benchmarks
{

/// The shortest of `runs` times, in seconds, that `work(thread)` takes for all `threads` threads.
template<class Work>
double ShortestTime(int runs, int threads, const Work& work)
{
  double shortest = std::numeric_limits<double>::max();
  for (int run = 0; run < runs; ++run)
  {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread)
    {
      others.emplace_back(work, thread);
    }
    work(0);
    for (std::thread& other : others)
    {
      other.join();
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    shortest = std::min(shortest, time.count());
  }
  return shortest;
}

}
