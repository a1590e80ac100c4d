#include "Parallel.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;

namespace
{

TEST(Parallel, AGivenNumberOfThreadsIsTaken)
{
  EXPECT_EQ(ThreadCount(1), 1);
  EXPECT_EQ(ThreadCount(7), 7);
  EXPECT_GE(ThreadCount(0), 1);
}

TEST(Parallel, EveryIndexIsVisitedOnce)
{
  for (const int threads : { 0, 1, 2, 5 })
  {
    for (const std::int64_t count : { 0, 1, 4, 1000 })
    {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      ParallelFor(count, threads, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
      EXPECT_TRUE(
        std::all_of(visits.begin(), visits.end(), [](int visited) { return visited == 1; }))
        << count << " on " << threads;
    }
  }
}

TEST(Parallel, OneThreadGoesInOrder)
{
  std::vector<std::int64_t> visited;
  std::set<std::thread::id> threads;
  ParallelFor(100, 1,
    [&](std::int64_t i)
    {
      visited.push_back(i);
      threads.insert(std::this_thread::get_id());
    });
  std::vector<std::int64_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(visited, expected);
  EXPECT_THAT(threads, testing::ElementsAre(std::this_thread::get_id()));
}

TEST(Parallel, NoMoreThreadsRunThanGiven)
{
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  ParallelFor(60, 3,
    [&](std::int64_t)
    {
      const int now = ++running;
      int before = most;
      while (before < now && !most.compare_exchange_weak(before, now))
      {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --running;
    });
  EXPECT_LE(most, 3);
}

TEST(Parallel, TheFirstExceptionIsThrownAgain)
{
  std::vector<std::int64_t> visited;
  const auto body = [&](std::int64_t i)
  {
    visited.push_back(i);
    if (i == 3)
    {
      throw std::runtime_error("at 3");
    }
  };
  EXPECT_THAT(
    [&] { ParallelFor(100, 1, body); }, testing::ThrowsMessage<std::runtime_error>("at 3"));
  EXPECT_EQ(visited.size(), 4U);
}

TEST(Parallel, AnExceptionOfAnyThreadIsThrownAgain)
{
  std::atomic<int> done = 0;
  const auto body = [&](std::int64_t i)
  {
    ++done;
    if (i == 40)
    {
      throw 40; // not even a std::exception
    }
  };
  EXPECT_THROW(ParallelFor(1'000'000, 4, body), int);
  EXPECT_LT(done, 1'000'000);
}

}
