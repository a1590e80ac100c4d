#include "Peak.h"

#include "Numerics/InstructionSets.h"
#include "Parallel.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Peak.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h comes before highway.h, which is read once for each target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::benchmarks::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

/// Does `rounds` rounds and returns the number of operations.
double MultiplyAndAdd(std::size_t rounds)
{
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999F);
  const auto summand = hn::Set(d, 0.001F);
  // Enough for operations that take four cycles and begin two at a time; not equal, or the compiler
  // would keep one of them.
  auto a = hn::Set(d, 1.F);
  auto b = hn::Set(d, 2.F);
  auto c = hn::Set(d, 3.F);
  auto e = hn::Set(d, 4.F);
  auto f = hn::Set(d, 5.F);
  auto g = hn::Set(d, 6.F);
  auto h = hn::Set(d, 7.F);
  auto i = hn::Set(d, 8.F);
  auto j = hn::Set(d, 9.F);
  auto k = hn::Set(d, 10.F);
  for (std::size_t round = 0; round < rounds; ++round)
  {
    a = hn::MulAdd(a, factor, summand);
    b = hn::MulAdd(b, factor, summand);
    c = hn::MulAdd(c, factor, summand);
    e = hn::MulAdd(e, factor, summand);
    f = hn::MulAdd(f, factor, summand);
    g = hn::MulAdd(g, factor, summand);
    h = hn::MulAdd(h, factor, summand);
    i = hn::MulAdd(i, factor, summand);
    j = hn::MulAdd(j, factor, summand);
    k = hn::MulAdd(k, factor, summand);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
    hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)), hn::Add(j, k)));
  benchmark::DoNotOptimize(hn::GetLane(sum));
  return 2. * 10. * static_cast<double>(hn::Lanes(d) * rounds);
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas::benchmarks
{

HWY_EXPORT(MultiplyAndAdd);

double PeakOperations(int threads)
{
  // The machine may be busy with other things for a while: the best so far counts.
  static std::map<std::pair<std::string, int>, double> best;
  constexpr std::size_t rounds = 500000;
  double operations = 0;
  const double seconds = ShortestTime(10, threads,
    [&](int thread)
    {
      const double done = HWY_DYNAMIC_DISPATCH(MultiplyAndAdd)(rounds);
      if (thread == 0)
      {
        operations = done * threads;
      }
    });
  double& peak = best[{ CurrentTarget(), threads }];
  peak = std::max(peak, operations / seconds);
  return peak;
}

}

#endif
