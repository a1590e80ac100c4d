#include "Execution.h"

#include "Base/Parallel.h"
#include "ControlGroup.h"
#include "Core/WorkerThreads.h"
#include "Transformers.h"

#include <vtkSMPTools.h>

#include <exception>
#include <mutex>
#include <thread>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace atlas::test;
using AttentionAtlas::ThreadLimit;

namespace
{

/// Binds the process to one processor for the time of a scope, as mpirun binds a rank to a core.
class Binding
{
public:
  Binding()
  {
    sched_getaffinity(0, sizeof(this->Before), &this->Before);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~Binding() { sched_setaffinity(0, sizeof(this->Before), &this->Before); }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

private:
  cpu_set_t Before;
};

void With(int threads, const std::function<void()>& call)
{
  vtkSMPTools::LocalScope(vtkSMPTools::Config{ threads, "STDThread", false }, call);
}

class Execution : public testing::Test
{
protected:
  int Processors = atlas::ProcessorCount();

  void SetUp() override
  {
    for (const char* name : { "VTK_SMP_BACKEND_IN_USE", "VTK_SMP_MAX_THREADS",
           "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE" })
    {
      unsetenv(name);
    }
  }
};

TEST_F(Execution, TheLimitIsThatOfVtk)
{
  EXPECT_EQ(ThreadLimit(), this->Processors);
  With(1, [] { EXPECT_EQ(ThreadLimit(), 1); });
  With(2, [&] { EXPECT_EQ(ThreadLimit(), std::min(this->Processors, 2)); });
  vtkSMPTools::Initialize(1);
  EXPECT_EQ(ThreadLimit(), 1);
  vtkSMPTools::Initialize(0);
  EXPECT_EQ(ThreadLimit(), this->Processors);
}

TEST_F(Execution, TheEnvironmentLimitsThreads)
{
  const Variable limit("VTK_SMP_MAX_THREADS", "1");
  EXPECT_EQ(ThreadLimit(), 1);
}

TEST_F(Execution, ABoundProcessHasItsProcessors)
{
  const Binding binding;
  EXPECT_EQ(ThreadLimit(), 1);
}

/// What RequireMemory says in a process of a control group, "" if nothing.
std::string RefusalIn(const atlas::test::ControlGroup& group, double bytes)
{
  std::array<int, 2> start;
  std::array<int, 2> answer;
  EXPECT_EQ(pipe(start.data()), 0);
  EXPECT_EQ(pipe(answer.data()), 0);
  AttentionAtlas::RequireMemory(
    1, "the test", "wait."); // what this process knows is not the child's
  const pid_t child = fork();
  if (child == 0)
  {
    char go = 0;
    std::string refusal;
    if (read(start[0], &go, 1) == 1)
    {
      try
      {
        AttentionAtlas::RequireMemory(bytes, "the test", "ask for less.");
      }
      catch (const std::exception& e)
      {
        refusal = e.what();
      }
    }
    _exit(write(answer[1], refusal.data(), refusal.size()) < 0 ? 1 : 0);
  }
  group.Join(child);
  EXPECT_EQ(write(start[1], "g", 1), 1);
  close(answer[1]);
  std::array<char, 512> text;
  const ssize_t length = read(answer[0], text.data(), text.size());
  waitpid(child, nullptr, 0);
  for (const int end : { start[0], start[1], answer[0] })
  {
    close(end);
  }
  return { text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)) };
}

TEST_F(Execution, AContainerLimitsMemory)
{
  const atlas::test::ControlGroup group;
  if (!group.IsThere())
  {
    GTEST_SKIP() << "this machine lets no test make a control group";
  }
  EXPECT_EQ(RefusalIn(group, 1e6), "");
  EXPECT_THAT(RefusalIn(group, 1e8),
    testing::MatchesRegex(
      "the test would take 95 MiB of memory, but only [0-9]+ MiB are free within "
      "the limit of this container; ask for less."));
}

TEST_F(Execution, RanksShareTheProcessors)
{
  for (const char* name :
    { "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE" })
  {
    for (const int ranks : { 1, 2, 1000 })
    {
      const Variable variable(name, std::to_string(ranks).c_str());
      EXPECT_EQ(ThreadLimit(), std::max(this->Processors / ranks, 1)) << name << " " << ranks;
      const Binding binding;
      EXPECT_EQ(ThreadLimit(), 1);
    }
  }
}

TEST_F(Execution, ALimitComesBeforeTheShareOfARank)
{
  const Variable ranks("OMPI_COMM_WORLD_LOCAL_SIZE", "1000");
  EXPECT_EQ(ThreadLimit(), 1);
  With(2, [&] { EXPECT_EQ(ThreadLimit(), std::min(this->Processors, 2)); });
}

TEST_F(Execution, LoopsKeepToTheLimit)
{
  const auto threadsOf = []
  {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    AttentionAtlas::ParallelFor(0, 1000,
      [&](vtkIdType, vtkIdType)
      {
        const std::lock_guard<std::mutex> lock(mutex);
        threads.insert(std::this_thread::get_id());
      });
    return threads.size();
  };
  EXPECT_LE(threadsOf(), static_cast<std::size_t>(this->Processors));
  const Variable ranks("OMPI_COMM_WORLD_LOCAL_SIZE", "1000");
  EXPECT_EQ(threadsOf(), 1U);
}

/// Runs a recorder, with the threads of Core that it leaves behind.
int WorkersAfterRecording()
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  pipeline.Recorder->SetTokenIds("1 2 3 4 5 6 7 8\n9 10 11 12\n13 14");
  EXPECT_EQ(pipeline.Record().tokens.Count(), 14);
  return CountWorkers();
}

using RecorderExecution = Execution;

TEST_F(RecorderExecution, KeepsToTheLimit)
{
  const int before = CountWorkers();
  With(1, [&] { EXPECT_EQ(WorkersAfterRecording(), before); });
  {
    const Variable limit("VTK_SMP_MAX_THREADS", "1");
    EXPECT_EQ(WorkersAfterRecording(), before);
  }
  {
    const Variable ranks("OMPI_COMM_WORLD_LOCAL_SIZE", "1000");
    EXPECT_EQ(WorkersAfterRecording(), before);
  }
  {
    const Binding binding;
    EXPECT_EQ(WorkersAfterRecording(), before);
  }
  for (int run = 0; run < 3; ++run)
  {
    EXPECT_EQ(WorkersAfterRecording(), std::max(before, this->Processors - 1));
  }
}

using RecorderExecutionDeathTest = RecorderExecution;

TEST_F(RecorderExecutionDeathTest, IsAloneWithTheSequentialBackend)
{
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // a process that reads the variable anew
  const Variable backend("VTK_SMP_BACKEND_IN_USE", "Sequential");
  EXPECT_EXIT(
    {
      setenv("VTK_SMP_BACKEND_IN_USE", "Sequential", 1);
      exit(ThreadLimit() == 1 && WorkersAfterRecording() == 0 ? 0 : 1);
    },
    testing::ExitedWithCode(0), "");
}

}
