#include "Parallel.h"

#include "System.h"
#include "SystemLimits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace atlas
{
namespace
{

/// Work that several threads take part in: each calls it once. It must not throw.
using Work = std::function<void()>;

class ThreadPool
{
public:
  /// Calls `work` on this thread, and at the same time on up to `helpers` others: on each that is
  /// idle before this one has done its part. Returns when all that began have ended.
  void Run(const Work& work, std::size_t helpers)
  {
    Job job{ &work, helpers };
    {
      const std::lock_guard<std::mutex> lock(this->Mutex);
      this->Grow(helpers);
      this->Jobs.push_back(&job);
    }
    this->Wake.notify_all();
    work();
    std::unique_lock<std::mutex> lock(this->Mutex);
    this->Jobs.erase(std::remove(this->Jobs.begin(), this->Jobs.end(), &job), this->Jobs.end());
    this->Done.wait(lock, [&job] { return job.active == 0; });
  }

  /// Ends the threads, each when it has done its part; others go on without them.
  void End()
  {
    std::vector<std::thread> threads;
    {
      const std::lock_guard<std::mutex> lock(this->Mutex);
      this->Ending = true;
      threads.swap(this->Threads);
    }
    this->Wake.notify_all();
    for (std::thread& thread : threads)
    {
      if (thread.get_id() == std::this_thread::get_id()) // a body has called exit
      {
        thread.detach();
      }
      else
      {
        thread.join();
      }
    }
  }

private:
  struct Job
  {
    const Work* work = nullptr;
    std::size_t wanted = 0; ///< helpers that may still begin
    std::size_t active = 0; ///< helpers that have begun and not ended
  };

  std::mutex Mutex; ///< of all below
  std::condition_variable Wake;
  std::condition_variable Done;
  std::vector<Job*> Jobs; ///< on the stacks of their callers
  std::vector<std::thread> Threads;
  bool Ending = false;

  void Grow(std::size_t count)
  {
    try
    {
      while (!this->Ending && this->Threads.size() < count)
      {
        this->Threads.emplace_back([this] { this->Serve(); });
        pthread_setname_np(this->Threads.back().native_handle(), "atlas-worker");
      }
    }
    catch (const std::system_error&)
    {
      return; // the system has no more: the others do the work
    }
  }

  void Serve()
  {
    std::unique_lock<std::mutex> lock(this->Mutex);
    while (true)
    {
      this->Wake.wait(lock, [this] { return this->Ending || !this->Jobs.empty(); });
      if (this->Ending)
      {
        return;
      }
      Job& job = *this->Jobs.front();
      --job.wanted;
      ++job.active;
      if (job.wanted == 0)
      {
        this->Jobs.erase(this->Jobs.begin());
      }
      lock.unlock();
      (*job.work)();
      lock.lock();
      if (--job.active == 0)
      {
        this->Done.notify_all(); // while the lock keeps the job
      }
    }
  }
};

/// The pool of this process. Its memory is never given back, as other threads may call while the
/// process exits; its threads end before the code that they run is unloaded.
class ProcessPool
{
public:
  ProcessPool()
  {
    Start();
    system::CallInChild(Start); // which leaves a child without the threads
  }
  ~ProcessPool() { Get().End(); }
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  static ThreadPool& Get() { return *std::launder(reinterpret_cast<ThreadPool*>(Memory)); }

private:
  alignas(ThreadPool) static std::byte Memory[sizeof(ThreadPool)];

  static void Start() { new (Memory) ThreadPool; }
};

alignas(ThreadPool) std::byte ProcessPool::Memory[sizeof(ThreadPool)];
const ProcessPool Pool;

/// Whether this thread is within a body.
thread_local bool IsWorking = false;

/// The calls of one loop, which any number of threads take one after the other.
class Loop
{
public:
  Loop(std::int64_t count, const std::function<void(std::int64_t)>& body)
    : Count(count)
    , Body(body)
  {
  }

  /// Takes part until no call is left.
  void Work()
  {
    IsWorking = true;
    for (std::int64_t i = this->Next++; i < this->Count && !this->Failed; i = this->Next++)
    {
      try
      {
        this->Body(i);
      }
      catch (...) // of any type: it must not leave its thread
      {
        const std::lock_guard<std::mutex> lock(this->Mutex);
        this->Error = this->Error ? this->Error : std::current_exception();
        this->Failed = true;
      }
    }
    IsWorking = false;
  }

  void Rethrow() const
  {
    if (this->Error)
    {
      std::rethrow_exception(this->Error);
    }
  }

private:
  std::int64_t Count;
  const std::function<void(std::int64_t)>& Body;
  std::atomic<std::int64_t> Next = 0;
  std::atomic<bool> Failed = false;
  std::mutex Mutex;
  std::exception_ptr Error;
};

/// The processors that the control groups of a process allow; as of the last second, since asking
/// takes a tenth of a millisecond.
double QuotaOf(int process)
{
  using Clock = std::chrono::steady_clock;
  static std::mutex mutex;
  static std::map<int, std::pair<Clock::time_point, double>> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const Clock::time_point now = Clock::now();
  const auto [entry, isNew] = known.try_emplace(process);
  auto& [until, quota] = entry->second;
  if (isNew || now >= until)
  {
    until = now + std::chrono::seconds(1);
    quota = std::max(std::ceil(LimitsOfGroups(process).processors), 1.);
  }
  return quota;
}

}

int ProcessorCount(int process)
{
  if (const int ofMask = system::AllowedProcessors(process))
  {
    return static_cast<int>(std::min<double>(ofMask, QuotaOf(process)));
  }
  return process != 0 ? ProcessorCount()
                      : static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

int ThreadCount(int threads)
{
  return threads > 0 ? threads : ProcessorCount();
}

void ParallelFor(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body)
{
  const std::int64_t useful = std::min<std::int64_t>(ThreadCount(threads), count);
  if (IsWorking || useful <= 1)
  {
    for (std::int64_t i = 0; i < count; ++i)
    {
      body(i);
    }
    return;
  }
  Loop loop(count, body);
  ProcessPool::Get().Run([&loop] { loop.Work(); }, useful - 1);
  loop.Rethrow();
}

}
