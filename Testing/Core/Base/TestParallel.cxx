#include "Base/Parallel.h"

#include "Base/SystemLimits.h"
#include "WorkerThreads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

using namespace atlas;
using atlas::test::CountWorkers;

namespace
{

/// The threads on which bodies ran. Bodies take a while, so that all of them get some.
class Visitors
{
public:
  void Add()
  {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const std::lock_guard<std::mutex> lock(this->Mutex);
    this->Threads.insert(std::this_thread::get_id());
  }
  std::size_t Count() const { return this->Threads.size(); }
  bool Has(std::thread::id id) const { return this->Threads.count(id) != 0; }

private:
  std::mutex Mutex;
  std::set<std::thread::id> Threads;
};

std::vector<int> Calls(std::int64_t count, int threads)
{
  std::vector<int> calls(count);
  ParallelFor(count, threads, [&](std::int64_t i) { ++calls[i]; });
  return calls;
}

TEST(Parallel, CallsEachOnce)
{
  for (const int threads : { 0, 1, 2, 5 })
  {
    for (const std::int64_t count : { 0, 1, 2, 3, 1000 })
    {
      EXPECT_EQ(Calls(count, threads), std::vector<int>(count, 1))
        << count << " on " << threads << " threads";
    }
  }
}

TEST(Parallel, OneThreadGoesInOrderAndStartsNoOther)
{
  const int before = CountWorkers();
  std::vector<std::int64_t> order;
  ParallelFor(100, 1, [&](std::int64_t i) { order.push_back(i); });
  std::vector<std::int64_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
  EXPECT_EQ(CountWorkers(), before);
}

TEST(Parallel, ManyCallsShareTheThreadsOfOne)
{
  const int before = CountWorkers();
  Visitors visitors;
  for (int call = 0; call < 200; ++call)
  {
    ParallelFor(6, 3, [&](std::int64_t) { visitors.Add(); });
  }
  EXPECT_TRUE(visitors.Has(std::this_thread::get_id()));
  const int workers = std::max(before, 2);
  EXPECT_LE(visitors.Count(), static_cast<std::size_t>(workers) + 1);
  EXPECT_EQ(CountWorkers(), workers);
  Calls(100, 2);
  EXPECT_EQ(CountWorkers(), workers);
  Calls(100, workers + 3);
  EXPECT_EQ(CountWorkers(), workers + 2);
  Calls(2, workers + 9); // no more than there are calls
  EXPECT_EQ(CountWorkers(), workers + 2);
}

TEST(Parallel, ThrowsTheFirstErrorAndBeginsNoMore)
{
  for (const int threads : { 1, 4 })
  {
    std::atomic<int> begun = 0;
    const auto loop = [&]
    {
      ParallelFor(100000, threads,
        [&](std::int64_t i)
        {
          ++begun;
          if (i == 10)
          {
            throw std::runtime_error("at 10");
          }
          std::this_thread::yield();
        });
    };
    EXPECT_THAT(loop, testing::ThrowsMessage<std::runtime_error>("at 10"));
    EXPECT_LT(begun, 100000);
    EXPECT_EQ(Calls(50, threads), std::vector<int>(50, 1)); // the pool goes on
  }
  EXPECT_THROW(ParallelFor(8, 4, [](std::int64_t) { throw 1; }), int);
}

TEST(Parallel, CallsWithinABodyStayOnItsThread)
{
  const int before = CountWorkers();
  std::atomic<int> elsewhere = 0;
  std::atomic<int> calls = 0;
  ParallelFor(8, 3,
    [&](std::int64_t)
    {
      const std::thread::id own = std::this_thread::get_id();
      ParallelFor(20, 7,
        [&](std::int64_t)
        {
          ++calls;
          elsewhere += std::this_thread::get_id() == own ? 0 : 1;
        });
    });
  EXPECT_EQ(calls, 160);
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(CountWorkers(), std::max(before, 2));
}

TEST(Parallel, SeveralThreadsMayCall)
{
  const int before = CountWorkers();
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
  {
    callers.emplace_back(
      [&]
      {
        for (int call = 0; call < 200; ++call)
        {
          ParallelFor(10, 3, [&](std::int64_t i) { sum += i; });
        }
      });
  }
  for (std::thread& caller : callers)
  {
    caller.join();
  }
  EXPECT_EQ(sum, 4 * 200 * 45);
  EXPECT_EQ(CountWorkers(), std::max(before, 2));
}

TEST(Parallel, AForkedProcessHasAPoolOfItsOwn)
{
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer allows no threads after a fork.";
#endif
  Calls(100, 3);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
  {
    alarm(60);
    const bool alone = CountWorkers() == 0;
    const std::vector<int> calls = Calls(1000, 3);
    const bool right = calls == std::vector<int>(1000, 1) && CountWorkers() == 2;
    exit(alone && right ? 0 : 1); // runs destructors, which end its threads
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Calls(100, 3), std::vector<int>(100, 1));
}

TEST(ParallelDeathTest, TheProcessMayEndWithinABody)
{
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leave = [](std::thread::id caller, bool onCaller)
  {
    ParallelFor(1000, 3,
      [&](std::int64_t)
      {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        if ((std::this_thread::get_id() == caller) == onCaller)
        {
          static std::atomic<bool> left = false;
          if (!left.exchange(true))
          {
            exit(7);
          }
        }
      });
  };
  EXPECT_EXIT(leave(std::this_thread::get_id(), true), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(leave(std::this_thread::get_id(), false), testing::ExitedWithCode(7), "");
}

TEST(Parallel, TheDefaultIsWhatTheProcessMayUse)
{
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const int all =
    static_cast<int>(std::min<double>(CPU_COUNT(&before), std::ceil(LimitsOfGroups().processors)));
  EXPECT_EQ(ProcessorCount(), all);
  EXPECT_EQ(ThreadCount(0), ProcessorCount());
  EXPECT_EQ(ThreadCount(3), 3);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0); // as a rank that is bound to a core
  EXPECT_EQ(ProcessorCount(), 1);
  EXPECT_EQ(ThreadCount(0), 1);
  EXPECT_EQ(ProcessorCount(getppid()), all);
  const int workers = CountWorkers();
  Calls(100, 0);
  EXPECT_EQ(CountWorkers(), workers);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(ProcessorCount(1 << 30), ProcessorCount()); // no such process
}

}
