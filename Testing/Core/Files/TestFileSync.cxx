// What AtomicFile asks of the disk, and in which order. The functions of the C library are replaced
// in this program.

#include "Base/Error.h"
#include "Files/AtomicFile.h"

#include "ErrorMessage.h"
#include "TemporaryDirectory.h"

#include <cerrno>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace
{

std::vector<std::string> Calls;
int FailWith = 0; ///< error number of fsync; 0: none

}

extern "C" int fsync(int file)
{
  const std::filesystem::path path =
    std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file));
  const bool isFolder = std::filesystem::is_directory(path);
  Calls.push_back(isFolder ? "sync folder" : "sync file");
  errno = FailWith;
  return FailWith == 0 ? 0 : -1;
}

extern "C" int rename(const char* from, const char* to) noexcept
{
  Calls.emplace_back("rename");
  return static_cast<int>(::syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
}

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

/// What is called to write a file anew.
std::vector<std::string> CallsOf(const std::filesystem::path& path, const std::string& text)
{
  AtomicFile file(path);
  file.Write(text.data(), text.size());
  Calls.clear();
  file.Commit();
  return Calls;
}

TEST(FileSync, BytesAreOnTheDiskBeforeTheName)
{
  const TemporaryDirectory folder;
  EXPECT_THAT(CallsOf(folder / "x", "new"), ElementsAre("sync file", "rename", "sync folder"));
}

TEST(FileSync, AFailureKeepsTheOldContent)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", "old");
  FailWith = EIO;
  EXPECT_THAT(MessageOf<FileError>([&] { CallsOf(folder / "x", "new"); }),
    HasSubstr("cannot write file: Input/output error"));
  FailWith = 0;
  EXPECT_EQ(ReadBytes(folder / "x"), "old");
  EXPECT_THAT(folder.Entries(), ElementsAre("x"));
}

TEST(FileSync, AFileSystemMayNotOfferIt)
{
  const TemporaryDirectory folder;
  FailWith = EINVAL;
  CallsOf(folder / "x", "new");
  FailWith = 0;
  EXPECT_EQ(ReadBytes(folder / "x"), "new");
}

}
