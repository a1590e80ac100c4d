#include "Base/SystemLimits.h"

#include "Base/Internal/KnownMemory.h"
#include "Base/Parallel.h"
#include "ControlGroup.h"
#include "ErrorMessage.h"
#include "TemporaryDirectory.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

namespace fs = std::filesystem;
using namespace atlas;
using namespace testing;

constexpr double None = std::numeric_limits<double>::infinity();

void Write(const fs::path& path, const std::string& text)
{
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

/// A line of mountinfo (proc(5)) with an optional field, as kernels write them.
std::string Mount(const std::string& group, const std::string& folder, const std::string& type,
  const std::string& options)
{
  return "31 23 0:28 " + group + " " + folder + " rw,relatime shared:9 - " + type + " " + type +
         " " + options + "\n";
}

/// A system whose files are below a folder.
struct FakeSystem
{
  test::TemporaryDirectory folder;

  void File(const std::string& path, const std::string& text) const
  {
    Write(this->folder.Path() / path, text);
  }
  GroupLimits Limits(int process = 0) const { return LimitsOfGroups(process, this->folder.Path()); }
};

/// A machine with systemd: version 2, a service in a slice.
struct Unified : FakeSystem
{
  Unified()
  {
    this->File("proc/self/mountinfo",
      Mount("/", "/proc", "proc", "rw") + Mount("/", "/sys/fs/cgroup", "cgroup2", "rw,nsdelegate"));
    this->File("proc/self/cgroup", "0::/a.slice/b.service\n");
  }
};

TEST(SystemLimits, NoGroupIsNoLimit)
{
  const FakeSystem system;
  EXPECT_EQ(system.Limits().processors, None);
  EXPECT_EQ(system.Limits().freeMemory, None);
  EXPECT_EQ(FreeMemory(system.folder.Path()), None);
  const Unified unified; // without files of limits, as the root group has none
  EXPECT_EQ(unified.Limits().processors, None);
  EXPECT_EQ(unified.Limits().freeMemory, None);
}

TEST(SystemLimits, Version2)
{
  const Unified system;
  const std::string service = "sys/fs/cgroup/a.slice/b.service/";
  system.File(service + "cpu.max", "150000 100000\n");
  system.File(service + "memory.max", "1000000\n");
  system.File(service + "memory.current", "700000\n");
  system.File(service + "memory.stat",
    "anon 500000\nfile 200000\nshmem 50000\ninactive_file 90000\nactive_file 60000\n");
  EXPECT_EQ(system.Limits().processors, 1.5);
  EXPECT_EQ(system.Limits().freeMemory, 1000000 - (700000 - 150000));
}

TEST(SystemLimits, AGroupAboveCanBeSmaller)
{
  const Unified system;
  const std::string slice = "sys/fs/cgroup/a.slice/";
  for (const auto& [group, quota, most] :
    { std::tuple(slice + "b.service/", "max 100000\n", "max\n"),
      std::tuple(slice, "50000 100000\n", "4096\n") })
  {
    system.File(group + "cpu.max", quota);
    system.File(group + "memory.max", most);
    system.File(group + "memory.current", "5000\n");
    system.File(group + "memory.stat", "");
  }
  EXPECT_EQ(system.Limits().processors, 0.5);
  EXPECT_EQ(system.Limits().freeMemory, 0);
}

TEST(SystemLimits, Version1)
{
  const FakeSystem system;
  const std::string folder = "/sys/fs/cgroup/cpu,cpuacct";
  system.File(
    "proc/self/mountinfo", Mount("/", "/sys/fs/cgroup/systemd", "cgroup", "rw,name=systemd") +
                             Mount("/", folder, "cgroup", "rw,cpu,cpuacct") +
                             Mount("/", "/sys/fs/cgroup/memory", "cgroup", "rw,memory") +
                             Mount("/", "/sys/fs/cgroup/unified", "cgroup2", "rw"));
  system.File("proc/self/cgroup",
    "12:name=systemd:/job/step\n5:memory:/job/step\n4:cpu,cpuacct:/job\n0::/job/step\n");
  system.File(folder.substr(1) + "/job/cpu.cfs_quota_us", "200000\n");
  system.File(folder.substr(1) + "/job/cpu.cfs_period_us", "100000\n");
  system.File("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  system.File("sys/fs/cgroup/memory/memory.usage_in_bytes", "123456789\n");
  system.File("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "3000\n");
  system.File("sys/fs/cgroup/memory/job/step/memory.usage_in_bytes", "2500\n");
  system.File("sys/fs/cgroup/memory/job/step/memory.stat",
    "inactive_file 7\ntotal_inactive_file 200\ntotal_active_file 100\n");
  EXPECT_EQ(system.Limits().processors, 2);
  EXPECT_EQ(system.Limits().freeMemory, 3000 - 2200);
  system.File(folder.substr(1) + "/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(system.Limits().processors, None);
}

TEST(SystemLimits, AContainerSeesItsOwnGroupAtTheMountPoint)
{
  const FakeSystem system;
  // Without a namespace of its own, a container mounts its group; with one, it is "/".
  for (const auto& [mounted, group] : { std::pair("/docker/12ab", "/docker/12ab"),
         std::pair("/", "/"), std::pair("/docker/12ab", "/docker/12ab/."),
         std::pair("/docker/12ab", "/elsewhere"), std::pair("/", "/../../outside") })
  {
    system.File("proc/self/mountinfo", Mount(mounted, "/sys/fs/cgroup", "cgroup2", "rw"));
    system.File("proc/self/cgroup", "0::" + std::string(group) + "\n");
    system.File("sys/fs/cgroup/cpu.max", "300000 100000");
    EXPECT_EQ(system.Limits().processors, 3) << mounted << " " << group;
  }
}

TEST(SystemLimits, PathsWithSpacesAndOtherProcesses)
{
  const FakeSystem system;
  system.File("proc/self/mountinfo", Mount("/", "/a\\040b", "cgroup2", "rw"));
  system.File("proc/self/cgroup", "0::/\n");
  system.File("proc/77/cgroup", "0::/seven\n");
  system.File("a b/seven/cpu.max", "700000 100000");
  EXPECT_EQ(system.Limits().processors, None);
  EXPECT_EQ(system.Limits(77).processors, 7);
  EXPECT_EQ(system.Limits(78).processors, None);
}

TEST(SystemLimits, WhatCannotBeReadIsNoLimit)
{
  const Unified system;
  for (const char* text : { "", "\n", "max", "100000", "100000 0", "-5 100000", "many few" })
  {
    system.File("sys/fs/cgroup/a.slice/b.service/cpu.max", text);
    system.File("sys/fs/cgroup/a.slice/b.service/memory.max", "100\n"); // no usage beside it
    EXPECT_EQ(system.Limits().processors, None) << text;
    EXPECT_EQ(system.Limits().freeMemory, None) << text;
  }
  for (const char* text : { "", "0", "0:", ":::", "0::relative", "\\", "0::/../../..", "x:y:z" })
  {
    system.File("proc/self/cgroup", text);
    EXPECT_EQ(system.Limits().processors, None) << text;
  }
  for (const char* text : { "", "-", "1 2 3 4 5 6 - cgroup2", "- - - - - - - cgroup2 a b",
         "31 23 0:28 /\\9 /\\777\\04 rw - cgroup2 cgroup2 rw" })
  {
    system.File("proc/self/mountinfo", text);
    EXPECT_EQ(system.Limits().processors, None) << text;
  }
}

TEST(SystemLimits, FreeMemoryIsTheLeast)
{
  const Unified system;
  system.File("proc/meminfo", "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:  500 kB\n");
  EXPECT_EQ(AvailableMemory(system.folder.Path()), 500 * 1024);
  EXPECT_EQ(FreeMemory(system.folder.Path()), 500 * 1024);
  system.File("sys/fs/cgroup/a.slice/memory.max", "200000\n");
  system.File("sys/fs/cgroup/a.slice/memory.current", "0\n");
  EXPECT_EQ(AvailableMemory(system.folder.Path()), 500 * 1024);
  EXPECT_EQ(FreeMemory(system.folder.Path()), 200000);
}

TEST(SystemLimits, TheEnvironmentLimitsTheProcess)
{
  const char* variable = "ATLAS_MEMORY_LIMIT_KIB";
  ASSERT_EQ(std::getenv(variable), nullptr);
  ::setenv(variable, "1048576", 1);
  const double free = FreeMemory();
  EXPECT_LT(free, 1024. * 1048576);
  EXPECT_NO_THROW(RequireMemory(free / 2, "the test", "wait."));
  const auto require = [](double bytes) { RequireMemory(bytes, "the test", "wait."); };
  EXPECT_THAT(test::MessageOf<std::runtime_error>([&] { require(2.5 * 1024 * 1048576); }),
    AllOf(StartsWith("the test would take 2.50 GiB of memory, but only "),
      HasSubstr(" are free; wait.")));
  EXPECT_NO_THROW(require(1024));
  ::setenv(variable, "1", 1); // less than the process has
  EXPECT_EQ(FreeMemory(), 0);
  EXPECT_THROW(require(1024), std::runtime_error) << "what was free a moment ago is not asked";
  ::unsetenv(variable);
}

TEST(KnownMemory, GrantsLittleForASecond)
{
  using std::chrono::milliseconds;
  constexpr pid_t process = 7;
  const KnownMemory::Clock::time_point begin;
  KnownMemory known;
  EXPECT_FALSE(known.Grant(0, process, begin)) << "nothing is known";
  known.Set(1600, process, begin);
  EXPECT_FALSE(known.Grant(101, process, begin));
  EXPECT_FALSE(known.Grant(1, process + 1, begin));
  EXPECT_TRUE(known.Grant(100, process, begin + milliseconds(1000)));
  EXPECT_FALSE(known.Grant(94, process, begin)) << "1500 are left";
  EXPECT_TRUE(known.Grant(93, process, begin));
  EXPECT_FALSE(known.Grant(1, process, begin + milliseconds(1001)));
}

TEST(SystemLimits, OfAGroupThatTheTestMakes)
{
  const test::ControlGroup group;
  if (!group.IsThere())
  {
    GTEST_SKIP() << "this machine lets no test make a control group";
  }
  const pid_t child = fork();
  if (child == 0)
  {
    pause();
    _exit(0);
  }
  group.Join(child);
  const GroupLimits limits = LimitsOfGroups(child);
  EXPECT_EQ(limits.processors, 1);
  EXPECT_EQ(ProcessorCount(child), 1);
  EXPECT_LE(limits.freeMemory, test::ControlGroup::Bytes);
  EXPECT_GT(limits.freeMemory, test::ControlGroup::Bytes / 2);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}
