#pragma once

#include <chrono>

#include <sys/resource.h>

namespace atlas::benchmarks
{

/// What a call takes.
struct Cost
{
  double seconds;
  double processor; ///< seconds of all threads
  double faults;    ///< of pages

  template<class Function>
  explicit Cost(const Function& function)
  {
    const rusage before = Usage();
    const auto begin = std::chrono::steady_clock::now();
    function();
    this->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const rusage after = Usage();
    this->processor = ProcessorTime(after) - ProcessorTime(before);
    this->faults = static_cast<double>(after.ru_minflt - before.ru_minflt);
  }

private:
  static rusage Usage()
  {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage;
  }
  static double ProcessorTime(const rusage& usage)
  {
    constexpr double micro = 1e-6;
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           micro * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }
};

}
